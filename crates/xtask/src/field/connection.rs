//! A connection of a script: replies are taken in by a thread of its own, so that each is stamped with the moment it
//! arrived, whatever the player is doing meanwhile.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use crate::resp::{Address, Stream, Value, decode, encode_command};

/// One reply and when it was complete.
pub type Arrival = (Instant, Value);

/// One connection to the server.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    events: Receiver<Result<Arrival, String>>,
    /// Replies that no line has taken yet, oldest first.
    pub replies: VecDeque<Arrival>,
    /// How the connection was lost, once it is.
    pub lost: Option<String>,
    /// Commands sent whose reply no line has taken yet.
    pub owed: usize,
    /// When the last command was sent.
    pub sent_at: Instant,
    /// The BLOCK time of the last command, in milliseconds; `None` when it was no blocking read.
    pub block_ms: Option<u64>,
    /// The protocol it speaks: 2 until `HELLO 3`.
    pub version: u8,
}

impl Connection {
    /// Connects and starts the reader.
    ///
    /// # Errors
    /// When nobody listens, or the system refuses a descriptor.
    pub fn open(address: &Address, timeout: Duration) -> io::Result<Self> {
        let stream = Stream::connect(address, timeout)?;
        stream.set_write_timeout(Some(timeout))?;
        let reader = stream.try_clone()?;
        reader.set_read_timeout(None)?;
        let (sender, events) = mpsc::channel();
        // Not joined: it ends with the connection, at the latest when `drop` shuts that down.
        let _reader = thread::spawn(move || read_replies(reader, &sender));
        let (replies, lost, owed, sent_at) = (VecDeque::new(), None, 0, Instant::now());
        Ok(Connection { stream, events, replies, lost, owed, sent_at, block_ms: None, version: 2 })
    }

    /// Sends a command.
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn send<A: AsRef<str>>(&mut self, arguments: &[A]) -> io::Result<()> {
        let arguments: Vec<&str> = arguments.iter().map(AsRef::as_ref).collect();
        self.owed += 1;
        self.block_ms = block_ms(&arguments);
        self.sent_at = Instant::now();
        self.stream.write_all(&encode_command(&arguments))
    }

    /// Waits until a reply is there or the connection is lost, but not beyond `patience`; whether one of the two.
    pub fn wait(&mut self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        while self.replies.is_empty() && self.lost.is_none() {
            match self.events.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(Ok(arrival)) => self.replies.push_back(arrival),
                Ok(Err(why)) => self.lost = Some(why),
                Err(RecvTimeoutError::Timeout) => return false,
                Err(RecvTimeoutError::Disconnected) => self.lost = Some("the reader ended".into()),
            }
        }
        true
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.stream.shutdown();
    }
}

fn read_replies(mut stream: Stream, sender: &Sender<Result<Arrival, String>>) {
    let mut buffer = Vec::new();
    let mut chunk = [0; 1 << 16];
    let why = 'lost: loop {
        match stream.read(&mut chunk) {
            Ok(0) => break "the server closed the connection".to_owned(),
            Ok(count) => buffer.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => break error.to_string(),
        }
        let now = Instant::now();
        loop {
            match decode(&buffer) {
                Ok(None) => break,
                Ok(Some((value, length))) => {
                    buffer.drain(..length);
                    // A push is no answer to anything. A closed channel means that nobody listens any more.
                    if !matches!(value, Value::Push(_)) && sender.send(Ok((now, value))).is_err() {
                        return;
                    }
                }
                Err(error) => break 'lost error.to_string(),
            }
        }
    };
    let _nobody_listens = sender.send(Err(why));
}

/// The n of `BLOCK n` in a stream read.
fn block_ms(arguments: &[&str]) -> Option<u64> {
    let words: Vec<String> = arguments.iter().map(|a| a.to_uppercase()).collect();
    let mut at = match words.first()?.as_str() {
        "XREAD" => 1,
        "XREADGROUP" => 4,
        _ => return None,
    };
    while at + 1 < words.len() && words[at] != "STREAMS" {
        if words[at] == "BLOCK" {
            return words[at + 1].parse().ok();
        }
        at += if words[at] == "NOACK" { 1 } else { 2 };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::block_ms;

    #[test]
    fn block_times() {
        for (command, want) in [
            ("XREAD BLOCK 50 STREAMS q $", Some(50)),
            ("xread count 5 block 0 streams q $", Some(0)),
            ("XREADGROUP GROUP g c NOACK COUNT 1 BLOCK 7 STREAMS q >", Some(7)),
            ("XREADGROUP GROUP BLOCK 9 STREAMS q >", None),
            ("XREAD STREAMS BLOCK 5", None),
            ("XREAD BLOCK -1 STREAMS q $", None),
            ("XADD BLOCK 5 a b", None),
        ] {
            assert_eq!(block_ms(&command.split(' ').collect::<Vec<_>>()), want, "{command}");
        }
    }
}
