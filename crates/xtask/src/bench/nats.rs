//! NATS JetStream as a peer: it speaks a protocol of its own, of which this is as much as one load needs: produce, consume
//! and acknowledge, each confirmed only when it is on disk (`sync_interval: always`).

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::cpu_time;
use super::load::{CYCLE_CLIENTS as CLIENTS, CYCLE_ENTRIES as COUNT, value};
use crate::server::TempFolder;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server with a folder of its own; gone when dropped.
struct Nats {
    process: Child,
    port: u16,
    _folder: TempFolder,
}

impl Nats {
    fn start(binary: &Path) -> Result<Self, String> {
        let folder = TempFolder::new("nats")?;
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| format!("no free port: {e}"))?;
        let port = listener.local_addr().map_err(|e| e.to_string())?.port();
        drop(listener);
        let config = folder.path().join("nats.conf");
        let store = folder.path().join("store");
        let text = format!("jetstream {{\n  store_dir: \"{}\"\n  sync_interval: always\n}}\n", store.display());
        fs::write(&config, text).map_err(|e| format!("{}: {e}", config.display()))?;
        let process = Command::new(binary)
            .args(["-a", "127.0.0.1", "-p", &port.to_string(), "-c"])
            .arg(&config)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| format!("{}: {e}", binary.display()))?;
        let nats = Nats { process, port, _folder: folder };
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if Instant::now() > deadline {
                return Err("nats-server does not take connections".into());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(nats)
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        let _ended_before = self.process.kill();
        let _status = self.process.wait();
    }
}

/// A message that arrived.
struct Message {
    reply_to: Option<String>,
    body: Vec<u8>,
}

/// One connection with an inbox of its own.
struct Client {
    stream: TcpStream,
    input: BufReader<TcpStream>,
    inbox: String,
    out: Vec<u8>,
}

impl Client {
    fn connect(port: u16, name: usize) -> Result<Self, String> {
        let stream = TcpStream::connect(("127.0.0.1", port)).map_err(|e| e.to_string())?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(|e| e.to_string())?;
        stream.set_nodelay(true).map_err(|e| e.to_string())?;
        let input = BufReader::with_capacity(1 << 16, stream.try_clone().map_err(|e| e.to_string())?);
        let mut client = Client { stream, input, inbox: format!("_INBOX.{name}"), out: Vec::new() };
        let hello = format!("CONNECT {{\"verbose\":false,\"pedantic\":false}}\r\nSUB {} 1\r\n", client.inbox);
        client.out.extend_from_slice(hello.as_bytes());
        client.flush()?;
        Ok(client)
    }

    fn publish(&mut self, subject: &str, body: &[u8]) {
        let head = format!("PUB {subject} {} {}\r\n", self.inbox, body.len());
        self.out.extend_from_slice(head.as_bytes());
        self.out.extend_from_slice(body);
        self.out.extend_from_slice(b"\r\n");
    }

    fn flush(&mut self) -> Result<(), String> {
        self.stream.write_all(&self.out).map_err(|e| e.to_string())?;
        self.out.clear();
        Ok(())
    }

    fn receive(&mut self) -> Result<Message, String> {
        loop {
            let mut line = String::new();
            if self.input.read_line(&mut line).map_err(|e| e.to_string())? == 0 {
                return Err("nats-server has closed the connection".into());
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["MSG", _, _, ref rest @ .., bytes] => {
                    let length: usize = bytes.parse().map_err(|_| line.clone())?;
                    let mut body = vec![0; length + 2];
                    self.input.read_exact(&mut body).map_err(|e| e.to_string())?;
                    body.truncate(length);
                    return Ok(Message { reply_to: rest.first().map(|&subject| subject.to_owned()), body });
                }
                ["PING"] => {
                    self.out.extend_from_slice(b"PONG\r\n");
                    self.flush()?;
                }
                ["-ERR", ..] => return Err(line),
                _ => {}
            }
        }
    }

    /// Asks the server's own interface.
    fn ask(&mut self, subject: &str, body: &str) -> Result<(), String> {
        self.publish(subject, body.as_bytes());
        self.flush()?;
        let answer = String::from_utf8_lossy(&self.receive()?.body).into_owned();
        if answer.contains("\"error\"") { Err(format!("{subject}: {answer}")) } else { Ok(()) }
    }
}

/// Produces, consumes and acknowledges so many entries as `durable-cycle` does: entries a second, and the server's
/// processor time for each in microseconds.
///
/// # Errors
/// When the server does not start, or answers something else than it should.
pub fn cycle(binary: &Path, operations: usize) -> Result<(f64, f64), String> {
    let nats = Nats::start(binary)?;
    let mut clients = (0..CLIENTS).map(|name| Client::connect(nats.port, name)).collect::<Result<Vec<_>, _>>()?;
    clients[0].ask("$JS.API.STREAM.CREATE.S", "{\"name\":\"S\",\"subjects\":[\"s\"],\"storage\":\"file\"}")?;
    clients[0].ask(
        "$JS.API.CONSUMER.DURABLE.CREATE.S.C",
        "{\"stream_name\":\"S\",\"config\":{\"durable_name\":\"C\",\"ack_policy\":\"explicit\",\"max_ack_pending\":-1}}",
    )?;
    let (value, process_id) = (value(), nats.process.id());
    let (before, started, mut done) = (cpu_time(process_id)?, Instant::now(), 0);
    while done < operations {
        for client in &mut clients {
            (0..COUNT).for_each(|_| client.publish("s", value.as_bytes()));
            client.flush()?;
        }
        for client in &mut clients {
            for _ in 0..COUNT {
                let stored = client.receive()?;
                if !stored.body.windows(5).any(|part| part == b"\"seq\"") {
                    return Err(format!("PUB: {}", String::from_utf8_lossy(&stored.body)));
                }
            }
        }
        for client in &mut clients {
            client.publish("$JS.API.CONSUMER.MSG.NEXT.S.C", format!("{{\"batch\":{COUNT}}}").as_bytes());
            client.flush()?;
        }
        for client in &mut clients {
            for _ in 0..COUNT {
                let message = client.receive()?;
                let reply_to = message.reply_to.filter(|_| message.body == value.as_bytes());
                let reply_to = reply_to.ok_or("a message that was not produced")?;
                client.publish(&reply_to, b"+ACK");
            }
            client.flush()?;
        }
        for client in &mut clients {
            for _ in 0..COUNT {
                client.receive()?;
            }
        }
        done += CLIENTS * COUNT;
    }
    let rate = done as f64 / started.elapsed().as_secs_f64();
    let cpu = cpu_time(process_id)?.saturating_sub(before);
    Ok((rate, cpu.as_secs_f64() * 1e6 / done as f64))
}
