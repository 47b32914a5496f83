//! Sockets: listening on TCP and on a Unix socket, accepting, and one type for both kinds of connection. Knows no
//! command and no engine.

mod listen;

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use rustix::net::sockopt;

pub use listen::{Accepted, ListenError, Listener, Places, listen};

/// A connection, nonblocking.
#[derive(Debug)]
pub enum Stream {
    /// Over TCP.
    Tcp(TcpStream),
    /// Over a Unix socket.
    Unix(UnixStream),
}

impl Stream {
    /// Reads what is there.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Unix(stream) => stream.read(buffer),
        }
    }

    /// Writes what the system takes.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
        }
    }

    /// The descriptor's number, for CLIENT LIST.
    pub fn number(&self) -> i64 {
        i64::from(self.as_fd().as_raw_fd())
    }

    /// Sets what a client's connection needs: no waiting for more to send, and signs of life on an idle line.
    pub fn prepare(&self, keepalive_seconds: u32) -> io::Result<()> {
        if let Stream::Tcp(stream) = self {
            sockopt::set_tcp_nodelay(stream, true)?;
            if keepalive_seconds > 0 {
                sockopt::set_socket_keepalive(stream, true)?;
                let idle = Duration::from_secs(u64::from(keepalive_seconds));
                sockopt::set_tcp_keepidle(stream, idle)?;
                // A peer that is gone is noticed after about twice the time, as in Redis.
                sockopt::set_tcp_keepintvl(stream, Duration::from_secs(u64::from((keepalive_seconds / 3).max(1))))?;
                sockopt::set_tcp_keepcnt(stream, 3)?;
            }
        }
        Ok(())
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
        }
    }
}

impl Source for Stream {
    fn register(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.register(registry, token, interests),
            Stream::Unix(stream) => stream.register(registry, token, interests),
        }
    }

    fn reregister(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.reregister(registry, token, interests),
            Stream::Unix(stream) => stream.reregister(registry, token, interests),
        }
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.deregister(registry),
            Stream::Unix(stream) => stream.deregister(registry),
        }
    }
}
