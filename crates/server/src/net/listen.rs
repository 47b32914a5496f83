//! Opening the sockets that clients connect to, and accepting. An address that is taken, a socket file that is in use
//! or a missing address is an error that says which one it is, unless the address was marked as one that may be missing.

use std::error::Error;
use std::fmt;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use mio::event::Source;
use mio::net::{TcpListener, UnixListener};
use mio::{Interest, Registry, Token};
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};

use super::Stream;

/// A socket that clients connect to. A Unix socket's file is removed when this is dropped.
#[derive(Debug)]
pub enum Listener {
    /// TCP, and its address.
    Tcp(TcpListener, SocketAddr),
    /// A Unix socket, and its file.
    Unix(UnixListener, PathBuf),
}

/// Why clients could not be listened to.
#[derive(Debug)]
pub struct ListenError {
    /// The address or path.
    pub place: String,
    /// What went wrong.
    pub source: io::Error,
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot listen on {}: {}", self.place, self.source)?;
        match self.source.kind() {
            io::ErrorKind::AddrInUse => {
                write!(f, " (another server runs there; choose another with --port or --unixsocket)")
            }
            io::ErrorKind::AddrNotAvailable => write!(f, " (this machine has no such address; see --bind)"),
            _ => Ok(()),
        }
    }
}

impl Error for ListenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.source)
    }
}

/// What to listen on.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    /// Addresses as `bind` has them: `*` all of IPv4, `::*` all of IPv6, a `-` in front: may be missing.
    pub bind: &'a [String],
    /// TCP port; 0 for no TCP.
    pub port: u16,
    /// Unix socket; empty for none.
    pub unix: &'a str,
    /// Permissions of its file; 0 leaves them.
    pub unix_mode: u32,
    /// Connections that may wait to be accepted.
    pub backlog: u32,
}

/// Opens everything that is to be listened on.
pub fn listen(places: Places<'_>) -> Result<Vec<Listener>, ListenError> {
    let backlog = i32::try_from(places.backlog).unwrap_or(i32::MAX);
    let mut listeners = Vec::new();
    let mut missing = None;
    for address in places.bind.iter().filter(|_| places.port != 0) {
        let (name, may_be_missing) = match address.strip_prefix('-') {
            Some(name) => (name, true),
            None => (address.as_str(), false),
        };
        match resolve(name, places.port).and_then(|address| tcp(address, backlog)) {
            Ok(listener) => listeners.push(listener),
            Err(source) => {
                let error = ListenError { place: format!("{name} port {}", places.port), source };
                let is_missing = is_missing(&error.source);
                if !(may_be_missing && is_missing) {
                    return Err(error);
                }
                missing = Some(error);
            }
        }
    }
    if !places.unix.is_empty() {
        let path = Path::new(places.unix);
        let listener = unix(path, places.unix_mode, backlog)
            .map_err(|source| ListenError { place: places.unix.to_owned(), source })?;
        listeners.push(listener);
    }
    match (listeners.is_empty(), missing) {
        (true, Some(error)) => Err(error),
        (true, None) => Err(ListenError {
            place: "anything".into(),
            source: io::Error::new(
                io::ErrorKind::InvalidInput,
                "port is 0 (or bind is empty) and there is no unixsocket",
            ),
        }),
        (false, _) => Ok(listeners),
    }
}

fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrNotAvailable
        || error.raw_os_error() == Some(Errno::AFNOSUPPORT.raw_os_error())
        || error.raw_os_error() == Some(Errno::PROTONOSUPPORT.raw_os_error())
        || error.kind() == io::ErrorKind::NotFound
}

fn resolve(name: &str, port: u16) -> io::Result<SocketAddr> {
    match name {
        "*" => Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port)),
        "::*" => Ok(SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port)),
        name => match name.parse::<IpAddr>() {
            Ok(address) => Ok(SocketAddr::new(address, port)),
            Err(_) => (name, port)
                .to_socket_addrs()?
                .next()
                .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the name has no address")),
        },
    }
}

const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);

fn tcp(address: SocketAddr, backlog: i32) -> io::Result<Listener> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = rustix::net::socket_with(family, SocketType::STREAM, FLAGS, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if address.is_ipv6() {
        // Or `::*` would take the place of `*` beside it.
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    rustix::net::bind(&socket, &address)?;
    rustix::net::listen(&socket, backlog)?;
    let listener = TcpListener::from_std(std::net::TcpListener::from(socket));
    let address = listener.local_addr()?;
    Ok(Listener::Tcp(listener, address))
}

fn unix(path: &Path, mode: u32, backlog: i32) -> io::Result<Listener> {
    remove_stale(path)?;
    let socket: OwnedFd = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None)?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    let listening = || {
        if mode != 0 {
            // Before anybody can connect.
            rustix::fs::chmod(path, Mode::from_raw_mode(mode))?;
        }
        rustix::net::listen(&socket, backlog)
    };
    if let Err(errno) = listening() {
        let _ = fs::remove_file(path);
        return Err(errno.into());
    }
    Ok(Listener::Unix(UnixListener::from_std(std::os::unix::net::UnixListener::from(socket)), path.to_owned()))
}

/// Removes the file of a socket that nobody listens on any more. Anything else stays: binding then says what is wrong.
fn remove_stale(path: &Path) -> io::Result<()> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket());
    if is_socket {
        match std::os::unix::net::UnixStream::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path)?,
            _ => {}
        }
    }
    Ok(())
}

/// A connection and the names of its two ends.
#[derive(Debug)]
pub struct Accepted {
    /// It.
    pub stream: Stream,
    /// The peer, as CLIENT LIST shows it.
    pub addr: String,
    /// Our side.
    pub local_addr: String,
    /// Came over a Unix socket.
    pub unix: bool,
}

impl Listener {
    /// The next connection; `WouldBlock` when there is none.
    pub fn accept(&self) -> io::Result<Accepted> {
        match self {
            Listener::Tcp(listener, own) => {
                let (stream, addr) = listener.accept()?;
                let local = stream.local_addr().unwrap_or(*own);
                Ok(Accepted {
                    stream: Stream::Tcp(stream),
                    addr: addr.to_string(),
                    local_addr: local.to_string(),
                    unix: false,
                })
            }
            Listener::Unix(listener, path) => {
                let (stream, _) = listener.accept()?;
                let name = format!("{}:0", path.display());
                Ok(Accepted { stream: Stream::Unix(stream), addr: name.clone(), local_addr: name, unix: true })
            }
        }
    }

    /// Registers for connections that can be accepted.
    pub fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        match self {
            Listener::Tcp(listener, _) => listener.register(registry, token, Interest::READABLE),
            Listener::Unix(listener, _) => listener.register(registry, token, Interest::READABLE),
        }
    }
}

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Listener::Tcp(_, address) => write!(f, "tcp {address}"),
            Listener::Unix(_, path) => write!(f, "unix {}", path.display()),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Listener::Unix(_, path) = self {
            let _ = fs::remove_file(path);
        }
    }
}
