//! A server process for a test, and a client that speaks RESP2 and nothing else. The server ends with the test, and its
//! log is shown when the test fails.

#![allow(dead_code, reason = "no test file uses all of it")]

pub mod tools;
pub mod watch;

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Nothing in these tests should take as long.
const PATIENCE: Duration = Duration::from_secs(20);

pub const IMPEL: &str = env!("CARGO_BIN_EXE_impel");

pub struct Server {
    pub child: Child,
    pub port: u16,
    pub log_file: PathBuf,
}

/// A port that is free now.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Server {
    /// Starts a server in `dir` and waits until it serves.
    pub fn start(dir: &Path, options: &[&str]) -> Server {
        let port = free_port();
        let mut server = Server::spawn(dir, port, Command::new(IMPEL), options);
        server.wait_ready();
        server
    }

    /// Starts a server without waiting for it.
    pub fn spawn(dir: &Path, port: u16, mut command: Command, options: &[&str]) -> Server {
        let log_file = dir.join("server.log");
        let _ = fs::remove_file(&log_file);
        let log = fs::File::create(&log_file).unwrap();
        let port_text = port.to_string();
        let child = command
            .args(["--port", &port_text, "--bind", "127.0.0.1", "--dir"])
            .arg(dir.join("data"))
            .args(options)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        Server { child, port, log_file }
    }

    /// Waits until the log says that clients are welcome.
    pub fn wait_ready(&mut self) {
        self.wait_log("changes are kept|only snapshots|nothing is kept");
    }

    /// Waits until one of the texts (`a|b`) is in the log.
    pub fn wait_log(&mut self, texts: &str) {
        let begun = Instant::now();
        loop {
            let log = self.log();
            if texts.split('|').any(|text| log.contains(text)) {
                return;
            }
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("the server ended with {status} before it said {texts:?}");
            }
            assert!(begun.elapsed() < PATIENCE, "no {texts:?} in the log");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.log_file).unwrap_or_default()
    }

    pub fn client(&self) -> Client {
        Client::tcp(self.port)
    }

    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// Waits for the end of the process.
    pub fn wait_end(&mut self) -> ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(begun.elapsed() < PATIENCE, "the server does not end");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// SIGTERM, and an exit code of 0.
    pub fn stop(mut self) {
        self.signal("TERM");
        let status = self.wait_end();
        assert_eq!(status.code(), Some(0), "{status}");
    }

    /// SIGKILL.
    pub fn kill(mut self) {
        self.signal("KILL");
        self.wait_end();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- log of the server\n{}---", self.log());
        }
    }
}

/// A RESP2 reply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    Simple(String),
    Error(String),
    Int(i64),
    Bulk(String),
    Null,
    Array(Vec<Reply>),
}

impl Reply {
    pub fn text(&self) -> &str {
        match self {
            Reply::Simple(text) | Reply::Bulk(text) | Reply::Error(text) => text,
            other => panic!("not a text: {other:?}"),
        }
    }

    pub fn int(&self) -> i64 {
        match self {
            Reply::Int(n) => *n,
            other => panic!("not a number: {other:?}"),
        }
    }

    pub fn array(&self) -> &[Reply] {
        match self {
            Reply::Array(items) => items,
            other => panic!("not an array: {other:?}"),
        }
    }
}

enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.read(buffer),
            Socket::Unix(stream) => stream.read(buffer),
        }
    }
}

pub struct Client {
    reader: BufReader<Socket>,
}

impl Client {
    pub fn tcp(port: u16) -> Client {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Client { reader: BufReader::new(Socket::Tcp(stream)) }
    }

    pub fn unix(path: &Path) -> Client {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Client { reader: BufReader::new(Socket::Unix(stream)) }
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: &[u8]) {
        self.try_send(bytes).unwrap();
    }

    pub fn try_send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.reader.get_mut() {
            Socket::Tcp(stream) => stream.write_all(bytes),
            Socket::Unix(stream) => stream.write_all(bytes),
        }
    }

    /// What comes next, byte for byte, up to a text.
    pub fn bytes_until(&mut self, end: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        while !bytes.ends_with(end) {
            let mut byte = [0];
            self.reader.read_exact(&mut byte).unwrap_or_else(|error| panic!("{error} after {}", bytes.escape_ascii()));
            bytes.push(byte[0]);
        }
        bytes
    }

    /// No more will be sent.
    pub fn end_sending(&mut self) {
        match self.reader.get_mut() {
            Socket::Tcp(stream) => stream.shutdown(std::net::Shutdown::Write).unwrap(),
            Socket::Unix(stream) => stream.shutdown(std::net::Shutdown::Write).unwrap(),
        }
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.reader.read_line(&mut line)?;
        match line.strip_suffix("\r\n") {
            Some(line) => Ok(line.to_owned()),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// The next reply; an error when the connection ends.
    pub fn try_reply(&mut self) -> io::Result<Reply> {
        let line = self.line()?;
        let (kind, rest) = line.split_at(1);
        Ok(match kind {
            "+" => Reply::Simple(rest.into()),
            "-" => Reply::Error(rest.into()),
            ":" => Reply::Int(rest.parse().unwrap()),
            "$" if rest == "-1" => Reply::Null,
            "*" if rest == "-1" => Reply::Null,
            "$" => {
                let mut bytes = vec![0; rest.parse::<usize>().unwrap() + 2];
                self.reader.read_exact(&mut bytes)?;
                bytes.truncate(bytes.len() - 2);
                Reply::Bulk(String::from_utf8(bytes).unwrap())
            }
            "*" => {
                Reply::Array((0..rest.parse::<usize>().unwrap()).map(|_| self.try_reply()).collect::<Result<_, _>>()?)
            }
            _ => panic!("not a reply: {line:?}"),
        })
    }

    pub fn reply(&mut self) -> Reply {
        self.try_reply().unwrap()
    }

    /// Sends a command and waits for its reply.
    pub fn ask(&mut self, words: &[&str]) -> Reply {
        self.send(&command(words));
        self.reply()
    }

    /// Is the connection closed, with nothing sent before?
    pub fn is_closed(&mut self) -> bool {
        let mut byte = [0];
        match self.reader.read(&mut byte) {
            Ok(0) => true,
            Ok(_) => false,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }

    /// Reads to the end of the connection and throws it away; the number of bytes.
    pub fn drain(&mut self) -> usize {
        let mut bytes = Vec::new();
        // A reset is an end as well.
        let _ = self.reader.read_to_end(&mut bytes);
        bytes.len()
    }
}

/// A command as RESP.
pub fn command<T: AsRef<[u8]>>(words: &[T]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        let word = word.as_ref();
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// What INFO says of a name.
pub fn info(client: &mut Client, name: &str) -> String {
    let text = client.ask(&["INFO"]).text().to_owned();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).to_owned()
}

/// A server without persistence, for what does not depend on it.
pub fn in_memory(options: &[&str]) -> (tempfile::TempDir, Server) {
    let folder = tempfile::tempdir().unwrap();
    let all: Vec<&str> = ["--appendonly", "no"].iter().chain(options).copied().collect();
    let server = Server::start(folder.path(), &all);
    (folder, server)
}

pub fn pong() -> Reply {
    Reply::Simple("PONG".into())
}
