//! A small synchronous client for the Redis protocol, RESP2 and RESP3, over TCP or a unix socket.
//!
//! It exists so that tests look at what a server really sent: every reply keeps the exact type it came as, and bytes
//! stay bytes. It must never share code with the server under test, or a common mistake would go unseen.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How a null was spelled on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nil {
    /// `$-1`, the null bulk string of RESP2.
    Bulk,
    /// `*-1`, the null array of RESP2.
    Array,
    /// `_`, the one null of RESP3.
    Null,
}

/// One reply, with the type that the server gave it.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `+OK`
    Simple(Vec<u8>),
    /// `-ERR …`, or the bulk error `!` of RESP3; without its marker.
    Error(Vec<u8>),
    /// `:7`
    Int(i64),
    /// `$3`
    Bulk(Vec<u8>),
    /// `*2`
    Array(Vec<Value>),
    /// Any of the nulls.
    Nil(Nil),
    /// `%1`, in the order in which it came.
    Map(Vec<(Value, Value)>),
    /// `~2`
    Set(Vec<Value>),
    /// `>2`: not an answer to a command.
    Push(Vec<Value>),
    /// `,1.5`, as written.
    Double(Vec<u8>),
    /// `#t`
    Bool(bool),
    /// `(123…`, as written.
    Big(Vec<u8>),
    /// `=15`, with its three-letter format and colon.
    Verbatim(Vec<u8>),
}

impl Value {
    /// Whether this is an error reply.
    pub fn is_error(&self) -> bool {
        matches!(self, Value::Error(_))
    }

    /// The reply as plain text where it is a scalar; of the others a form that tells two different ones apart.
    pub fn text(&self) -> String {
        match self {
            Value::Simple(b)
            | Value::Error(b)
            | Value::Bulk(b)
            | Value::Double(b)
            | Value::Big(b)
            | Value::Verbatim(b) => String::from_utf8_lossy(b).into_owned(),
            Value::Int(n) => n.to_string(),
            Value::Bool(b) => b.to_string(),
            Value::Nil(_) | Value::Array(_) | Value::Map(_) | Value::Set(_) | Value::Push(_) => format!("{self:?}"),
        }
    }
}

/// What can go wrong between us and the server.
#[derive(Debug)]
pub enum ClientError {
    /// The connection is gone, or never was; the text says how.
    Closed(String),
    /// Nothing complete arrived within the time given.
    NoReply,
    /// What arrived is not RESP.
    Garbage(String),
}

impl std::fmt::Display for ClientError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ClientError::Closed(why) => f.write_str(why),
            ClientError::NoReply => f.write_str("no reply in time"),
            ClientError::Garbage(what) => write!(f, "not a RESP reply: {what}"),
        }
    }
}

impl std::error::Error for ClientError {}

impl From<io::Error> for ClientError {
    fn from(error: io::Error) -> Self {
        ClientError::Closed(error.to_string())
    }
}

/// Nesting beyond this is no reply that a streams server gives, and would only exhaust our stack.
const MAX_DEPTH: usize = 64;

/// Decodes one reply from the start of `bytes`: the reply and the number of bytes it took, or `None` when `bytes`
/// ends inside it. Attributes (`|`) are passed over; they belong to the reply that follows.
///
/// # Errors
/// [`ClientError::Garbage`] when the bytes cannot be the start of a reply.
pub fn decode(bytes: &[u8]) -> Result<Option<(Value, usize)>, ClientError> {
    let mut position = 0;
    Ok(decode_at(bytes, &mut position, 0)?.map(|value| (value, position)))
}

fn decode_at(bytes: &[u8], position: &mut usize, depth: usize) -> Result<Option<Value>, ClientError> {
    if depth > MAX_DEPTH {
        return Err(ClientError::Garbage("nested too deeply".into()));
    }
    let rest = &bytes[*position..];
    let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
    let (line, garbage) = (&rest[..end], || ClientError::Garbage(String::from_utf8_lossy(&rest[..end]).into_owned()));
    let (&marker, body) = line.split_first().ok_or_else(garbage)?;
    *position += end + 2;
    match marker {
        b'+' => return Ok(Some(Value::Simple(body.to_vec()))),
        b'-' => return Ok(Some(Value::Error(body.to_vec()))),
        b',' => return Ok(Some(Value::Double(body.to_vec()))),
        b'(' => return Ok(Some(Value::Big(body.to_vec()))),
        b'_' if body.is_empty() => return Ok(Some(Value::Nil(Nil::Null))),
        b'#' if matches!(body, b"t" | b"f") => return Ok(Some(Value::Bool(body == b"t"))),
        _ => {}
    }
    let number: i64 = std::str::from_utf8(body).ok().and_then(|s| s.parse().ok()).ok_or_else(garbage)?;
    match (marker, number) {
        (b':', n) => return Ok(Some(Value::Int(n))),
        (b'$', -1) => return Ok(Some(Value::Nil(Nil::Bulk))),
        (b'*', -1) => return Ok(Some(Value::Nil(Nil::Array))),
        _ => {}
    }
    let count = usize::try_from(number).map_err(|_| garbage())?;
    match marker {
        b'$' | b'=' | b'!' => {
            let Some(data) = bytes.get(*position..*position + count + 2) else { return Ok(None) };
            if &data[count..] != b"\r\n" {
                return Err(ClientError::Garbage("a bulk string that does not end where it should".into()));
            }
            *position += count + 2;
            let data = data[..count].to_vec();
            Ok(Some(match marker {
                b'$' => Value::Bulk(data),
                b'=' => Value::Verbatim(data),
                _ => Value::Error(data),
            }))
        }
        b'*' | b'~' | b'>' => {
            let mut items = Vec::new();
            for _ in 0..count {
                let Some(item) = decode_at(bytes, position, depth + 1)? else { return Ok(None) };
                items.push(item);
            }
            Ok(Some(match marker {
                b'*' => Value::Array(items),
                b'~' => Value::Set(items),
                _ => Value::Push(items),
            }))
        }
        b'%' | b'|' => {
            let mut pairs = Vec::new();
            for _ in 0..count {
                let Some(key) = decode_at(bytes, position, depth + 1)? else { return Ok(None) };
                let Some(value) = decode_at(bytes, position, depth + 1)? else { return Ok(None) };
                pairs.push((key, value));
            }
            if marker == b'%' { Ok(Some(Value::Map(pairs))) } else { decode_at(bytes, position, depth + 1) }
        }
        _ => Err(garbage()),
    }
}

/// A command as the array of bulk strings that clients send.
pub fn encode_command<A: AsRef<[u8]>>(arguments: &[A]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        let argument = argument.as_ref();
        bytes.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        bytes.extend_from_slice(argument);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Host name or IP address, and port.
    Tcp(String, u16),
    /// Path of a unix socket.
    Unix(PathBuf),
}

impl Address {
    /// Reads `HOST:PORT`, `:PORT` (this machine), `[v6]:PORT`, or the path of a unix socket (anything with a `/`).
    ///
    /// # Errors
    /// A sentence for the user when it is neither.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.contains('/') {
            return Ok(Address::Unix(PathBuf::from(text)));
        }
        let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
        let port = port.parse().map_err(|_| format!("{text:?} is neither HOST:PORT nor the path of a unix socket"))?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        Ok(Address::Tcp(if host.is_empty() { "127.0.0.1".into() } else { host.into() }, port))
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Address::Tcp(host, port) => write!(f, "{host}:{port}"),
            Address::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// A connected socket of either kind.
#[derive(Debug)]
pub enum Stream {
    /// With Nagle's delay switched off.
    Tcp(TcpStream),
    /// Of type stream.
    Unix(UnixStream),
}

impl Stream {
    /// Connects.
    ///
    /// # Errors
    /// What the system says: nobody listens, no such host, no such file.
    pub fn connect(address: &Address, timeout: Duration) -> io::Result<Self> {
        match address {
            Address::Unix(path) => Ok(Stream::Unix(UnixStream::connect(path)?)),
            Address::Tcp(host, port) => {
                let mut last = io::Error::new(io::ErrorKind::NotFound, format!("{host} has no address"));
                for candidate in (host.as_str(), *port).to_socket_addrs()? {
                    match TcpStream::connect_timeout(&candidate, timeout) {
                        Ok(stream) => {
                            stream.set_nodelay(true)?;
                            return Ok(Stream::Tcp(stream));
                        }
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
        }
    }

    /// A second handle on the same socket, for a thread that only reads.
    ///
    /// # Errors
    /// When the system refuses another descriptor.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Stream::Tcp(s) => Stream::Tcp(s.try_clone()?),
            Stream::Unix(s) => Stream::Unix(s.try_clone()?),
        })
    }

    /// How long a read may take; `None` is for ever.
    ///
    /// # Errors
    /// When the system refuses, e.g. a time of zero.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Tcp(s) => s.set_read_timeout(timeout),
            Stream::Unix(s) => s.set_read_timeout(timeout),
        }
    }

    /// How long a write may take; `None` is for ever.
    ///
    /// # Errors
    /// When the system refuses, e.g. a time of zero.
    pub fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Tcp(s) => s.set_write_timeout(timeout),
            Stream::Unix(s) => s.set_write_timeout(timeout),
        }
    }

    /// Ends the connection in both directions, also for other handles on it. An error means that it had ended before.
    pub fn shutdown(&self) {
        let _already_gone = match self {
            Stream::Tcp(s) => s.shutdown(Shutdown::Both),
            Stream::Unix(s) => s.shutdown(Shutdown::Both),
        };
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(s) => s.read(buffer),
            Stream::Unix(s) => s.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(s) => s.write(bytes),
            Stream::Unix(s) => s.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One connection: commands out, replies in, in order.
#[derive(Debug)]
pub struct Client {
    stream: Stream,
    buffer: Vec<u8>,
    /// Bytes of `buffer` that earlier replies took; dropped when more has to be read.
    taken: usize,
    timeout: Duration,
    sent_at: Instant,
}

impl Client {
    /// Connects; `timeout` is then also how long [`Client::receive`] waits.
    ///
    /// # Errors
    /// [`ClientError::Closed`] when there is nobody to talk to.
    pub fn connect(address: &Address, timeout: Duration) -> Result<Self, ClientError> {
        let stream = Stream::connect(address, timeout)?;
        stream.set_write_timeout(Some(timeout))?;
        Ok(Client { stream, buffer: Vec::new(), taken: 0, timeout, sent_at: Instant::now() })
    }

    /// When the last command or raw bytes were sent.
    pub fn sent_at(&self) -> Instant {
        self.sent_at
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// [`ClientError::Closed`] when the connection is gone.
    pub fn send_raw(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        self.sent_at = Instant::now();
        Ok(self.stream.write_all(bytes)?)
    }

    /// Sends a command without waiting for its reply.
    ///
    /// # Errors
    /// [`ClientError::Closed`] when the connection is gone.
    pub fn send<A: AsRef<[u8]>>(&mut self, arguments: &[A]) -> Result<(), ClientError> {
        self.send_raw(&encode_command(arguments))
    }

    /// The next reply, waiting for it at most the connection's timeout.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub fn receive(&mut self) -> Result<Value, ClientError> {
        let deadline = Instant::now() + self.timeout;
        loop {
            if let Some((value, length)) = decode(&self.buffer[self.taken..])? {
                self.taken += length;
                return Ok(value);
            }
            if !self.fill(deadline)? {
                return Err(ClientError::NoReply);
            }
        }
    }

    /// Whether nothing at all arrives for that long.
    ///
    /// # Errors
    /// [`ClientError::Closed`] when the server hangs up meanwhile: that is not silence.
    pub fn is_silent(&mut self, period: Duration) -> Result<bool, ClientError> {
        Ok(self.buffer.len() == self.taken && !self.fill(Instant::now() + period)?)
    }

    /// Sends a command and waits for its reply.
    ///
    /// # Errors
    /// Any [`ClientError`]; an error *reply* is a value.
    pub fn call<A: AsRef<[u8]>>(&mut self, arguments: &[A]) -> Result<Value, ClientError> {
        self.send(arguments)?;
        self.receive()
    }

    /// Reads what has arrived into the buffer; false when nothing did before the deadline.
    fn fill(&mut self, deadline: Instant) -> Result<bool, ClientError> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        self.buffer.drain(..self.taken);
        self.taken = 0;
        self.stream.set_read_timeout(Some(left))?;
        let mut chunk = [0; 1 << 16];
        match self.stream.read(&mut chunk) {
            Ok(0) => Err(ClientError::Closed("connection closed by the server".into())),
            Ok(count) => {
                self.buffer.extend_from_slice(&chunk[..count]);
                Ok(true)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
            Err(error) => Err(error.into()),
        }
    }
}

/// Text with everything that does not print written as `\xNN`, for messages.
pub fn printable(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        for byte in chunk.invalid() {
            // Writing to a String cannot fail.
            let _infallible = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(bytes: &[u8]) -> Value {
        let (value, length) = decode(bytes).expect("RESP").expect("a whole reply");
        assert_eq!(length, bytes.len(), "all of it is taken");
        value
    }

    #[test]
    fn every_type_decodes_to_itself() {
        let bulk = |s: &str| Value::Bulk(s.as_bytes().to_vec());
        for (bytes, value) in [
            ("+OK\r\n", Value::Simple(b"OK".to_vec())),
            ("-ERR no\r\n", Value::Error(b"ERR no".to_vec())),
            ("!6\r\nERR no\r\n", Value::Error(b"ERR no".to_vec())),
            (":-7\r\n", Value::Int(-7)),
            ("$2\r\nab\r\n", bulk("ab")),
            ("$0\r\n\r\n", bulk("")),
            ("$4\r\na\r\nb\r\n", bulk("a\r\nb")),
            ("$-1\r\n", Value::Nil(Nil::Bulk)),
            ("*-1\r\n", Value::Nil(Nil::Array)),
            ("_\r\n", Value::Nil(Nil::Null)),
            ("*0\r\n", Value::Array(vec![])),
            ("*2\r\n:1\r\n$1\r\na\r\n", Value::Array(vec![Value::Int(1), bulk("a")])),
            ("%1\r\n$1\r\nk\r\n*1\r\n:1\r\n", Value::Map(vec![(bulk("k"), Value::Array(vec![Value::Int(1)]))])),
            ("~1\r\n:1\r\n", Value::Set(vec![Value::Int(1)])),
            (">1\r\n:1\r\n", Value::Push(vec![Value::Int(1)])),
            (",1.5\r\n", Value::Double(b"1.5".to_vec())),
            ("#t\r\n", Value::Bool(true)),
            ("#f\r\n", Value::Bool(false)),
            ("(123456789012345678901\r\n", Value::Big(b"123456789012345678901".to_vec())),
            ("=6\r\ntxt:ab\r\n", Value::Verbatim(b"txt:ab".to_vec())),
            ("|1\r\n+k\r\n+v\r\n:1\r\n", Value::Int(1)),
        ] {
            assert_eq!(whole(bytes.as_bytes()), value, "{bytes:?}");
            for cut in 0..bytes.len() {
                assert!(decode(&bytes.as_bytes()[..cut]).expect("a start").is_none(), "{bytes:?} cut at {cut}");
            }
        }
    }

    #[test]
    fn what_is_not_resp_is_refused() {
        for bytes in ["hello\r\n", "$x\r\n", "*-2\r\n", "\r\n", "$1\r\nabc", "#x\r\n", "?1\r\n"] {
            assert!(matches!(decode(bytes.as_bytes()), Err(ClientError::Garbage(_))), "{bytes:?}");
        }
        let deep = "*1\r\n".repeat(MAX_DEPTH + 2);
        assert!(matches!(decode(deep.as_bytes()), Err(ClientError::Garbage(_))));
    }

    #[test]
    fn addresses() {
        assert_eq!(Address::parse("h:1"), Ok(Address::Tcp("h".into(), 1)));
        assert_eq!(Address::parse(":1"), Ok(Address::Tcp("127.0.0.1".into(), 1)));
        assert_eq!(Address::parse("6379"), Ok(Address::Tcp("127.0.0.1".into(), 6379)));
        assert_eq!(Address::parse("[::1]:1"), Ok(Address::Tcp("::1".into(), 1)));
        assert_eq!(Address::parse("./s"), Ok(Address::Unix("./s".into())));
        assert!(Address::parse("h:x").is_err());
    }

    #[test]
    fn commands_are_arrays_of_bulk_strings() {
        assert_eq!(encode_command(&["GET", "k"]), b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n");
    }
}
