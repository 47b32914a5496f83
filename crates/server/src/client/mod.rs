//! A client for the command-line tools: one connection, commands and pipelines, each reply also as the bytes it came in
//! (evidence is kept in them; `docs/decisions/0009-client-of-the-tools.md`).
//!
//! It speaks RESP2, which every server does. It repeats nothing by itself: only the caller knows what may be done twice.

pub mod address;
pub mod entry;
pub mod reply;

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

pub use address::{Address, Place};
pub use reply::Reply;
use reply::Scan;

/// What is read at once, in bytes.
const READ_BYTES: usize = 64 << 10;

/// Why there is no reply. An error reply is a reply.
#[derive(Debug)]
pub enum Failure {
    /// The connection: with it, what became of the command is not known.
    Io(io::Error),
    /// The other side does not speak the protocol.
    Protocol(&'static str),
    /// The server does not let us in, with what it said.
    Refused(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Io(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                f.write_str("the server has not answered in time")
            }
            Failure::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                f.write_str("the server has closed the connection")
            }
            Failure::Io(error) => write!(f, "{error}"),
            Failure::Protocol(what) => write!(f, "what came is not the Redis protocol: {what}"),
            Failure::Refused(text) => write!(f, "the server refuses: {text}"),
        }
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Failure::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Io(error)
    }
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A connection.
#[derive(Debug)]
pub struct Connection {
    socket: Socket,
    /// What came and was not given out: from `at` on.
    input: Vec<u8>,
    at: usize,
    timeout: Duration,
    /// Until when the reply that is waited for must be there whole, if there is such a bound.
    deadline: Option<Instant>,
}

/// A command as it is sent.
pub fn encode<W: AsRef<[u8]>>(words: &[W], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        let word = word.as_ref();
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

impl Connection {
    /// Connects, logs in and chooses the database. No reply may take longer than `timeout`.
    pub fn open(address: &Address, timeout: Duration) -> Result<Connection, Failure> {
        let socket = match &address.place {
            Place::Unix(path) => Socket::Unix(UnixStream::connect(path)?),
            Place::Tcp(host, port) => {
                let mut last = io::Error::new(io::ErrorKind::NotFound, format!("{host} has no address"));
                let mut found = None;
                for place in (host.as_str(), *port).to_socket_addrs()? {
                    match TcpStream::connect_timeout(&place, timeout) {
                        Ok(stream) => {
                            found = Some(stream);
                            break;
                        }
                        Err(error) => last = error,
                    }
                }
                let stream = found.ok_or(last)?;
                stream.set_nodelay(true)?;
                Socket::Tcp(stream)
            }
        };
        let mut connection = Connection { socket, input: Vec::new(), at: 0, timeout, deadline: None };
        connection.set_timeout(timeout)?;
        connection.deadline = Some(Instant::now() + timeout);
        if let Some(password) = &address.password {
            let user = address.user.as_deref();
            let words: Vec<&str> = ["AUTH"].into_iter().chain(user).chain([password.as_str()]).collect();
            connection.expect_ok(&words)?;
        }
        if address.db != 0 {
            connection.expect_ok(&["SELECT", &address.db.to_string()])?;
        }
        // A server that wants a password says so here, before anything is done by halves.
        if let Some(text) = connection.ask(&["PING"])?.error() {
            return Err(Failure::Refused(text));
        }
        connection.deadline = None;
        connection.set_timeout(timeout)?;
        Ok(connection)
    }

    fn expect_ok(&mut self, words: &[&str]) -> Result<(), Failure> {
        match self.ask(words)?.error() {
            Some(text) => Err(Failure::Refused(text)),
            None => Ok(()),
        }
    }

    fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        match &self.socket {
            Socket::Tcp(stream) => {
                stream.set_read_timeout(Some(timeout))?;
                stream.set_write_timeout(Some(timeout))
            }
            Socket::Unix(stream) => {
                stream.set_read_timeout(Some(timeout))?;
                stream.set_write_timeout(Some(timeout))
            }
        }
    }

    /// Sends commands that were [encoded](encode).
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match &mut self.socket {
            Socket::Tcp(stream) => stream.write_all(bytes)?,
            Socket::Unix(stream) => stream.write_all(bytes)?,
        }
        Ok(())
    }

    /// The next reply; its bytes are put behind `raw`.
    pub fn receive(&mut self, raw: Option<&mut Vec<u8>>) -> Result<Reply, Failure> {
        let mut scan = Scan::default();
        let len = loop {
            match scan.find_end(&self.input[self.at..]).map_err(Failure::Protocol)? {
                Some(len) => break len,
                None => self.fill()?,
            }
        };
        let bytes = &self.input[self.at..self.at + len];
        let decoded = reply::decode(bytes).map_err(Failure::Protocol)?;
        let (reply, _) = decoded.ok_or(Failure::Protocol("a reply that has no end"))?;
        if let Some(raw) = raw {
            raw.extend_from_slice(bytes);
        }
        self.at += len;
        Ok(reply)
    }

    fn fill(&mut self) -> io::Result<()> {
        if let Some(deadline) = self.deadline {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.set_timeout(left)?;
        }
        self.input.drain(..self.at);
        self.at = 0;
        let before = self.input.len();
        self.input.resize(before + READ_BYTES, 0);
        let mut read_once = || match &mut self.socket {
            Socket::Tcp(stream) => stream.read(&mut self.input[before..]),
            Socket::Unix(stream) => stream.read(&mut self.input[before..]),
        };
        let read = loop {
            match read_once() {
                // A process that was stopped for a while goes on here: nothing is lost.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        self.input.truncate(before + *read.as_ref().unwrap_or(&0));
        match read? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// Sends a command and waits for its reply.
    pub fn ask<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Result<Reply, Failure> {
        let mut bytes = Vec::new();
        encode(words, &mut bytes);
        self.send(&bytes)?;
        self.receive(None)
    }

    /// Sends a command and waits for the whole of its reply no longer than the time for a part of one, so that a server which
    /// sends a byte now and then holds nobody up. The bytes are put behind `raw`, whatever becomes of it.
    pub fn ask_whole<W: AsRef<[u8]>>(&mut self, words: &[W], raw: &mut Vec<u8>) -> Result<Reply, Failure> {
        let mut bytes = Vec::new();
        encode(words, &mut bytes);
        self.deadline = Some(Instant::now() + self.timeout);
        let reply = self.send(&bytes).and_then(|()| self.receive(Some(raw)));
        self.deadline = None;
        if reply.is_err() {
            raw.extend_from_slice(&self.input[self.at..]);
        }
        self.set_timeout(self.timeout)?;
        reply
    }

    /// The same as [`Connection::ask`] for a command that waits for so many milliseconds by itself.
    pub fn ask_waiting<W: AsRef<[u8]>>(&mut self, words: &[W], block_ms: u64) -> Result<Reply, Failure> {
        self.set_timeout(self.timeout + Duration::from_millis(block_ms))?;
        let reply = self.ask(words);
        self.set_timeout(self.timeout)?;
        reply
    }
}
