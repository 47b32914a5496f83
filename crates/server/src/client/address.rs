//! Where a server is and who asks: `redis://[user:password@]host[:port][/db]`, `unix:///path[?user=…&pass=…&db=…]`, or
//! the options `--host`, `--port`, `--socket`, `--user`, `--pass`, `--db`.
//!
//! A password is never shown: [`Address`] prints itself without it.

use std::fmt;
use std::path::PathBuf;

/// Where the server listens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// A host and a port.
    Tcp(String, u16),
    /// A unix socket.
    Unix(PathBuf),
}

/// A server, and as whom to come to it.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// Where.
    pub place: Place,
    /// Name of the user; the default one without.
    pub user: Option<String>,
    /// The password.
    pub password: Option<String>,
    /// The database, 0 being the first.
    pub db: u32,
}

impl Default for Address {
    fn default() -> Self {
        Address { place: Place::Tcp("127.0.0.1".into(), 6379), user: None, password: None, db: 0 }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Tcp(host, port) if host.contains(':') => write!(f, "redis://[{host}]:{port}/{}", self.db),
            Place::Tcp(host, port) => write!(f, "redis://{host}:{port}/{}", self.db),
            Place::Unix(path) => write!(f, "unix://{}?db={}", path.display(), self.db),
        }
    }
}

/// Resolves `%41`.
fn unescaped(text: &str) -> Result<String, String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        rest = behind;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let digits = behind.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let byte = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
        bytes.push(byte.ok_or("a % in a URL wants two hexadecimal digits behind it")?);
        rest = &behind[2..];
    }
    String::from_utf8(bytes).map_err(|_| "the URL is not UTF-8".into())
}

fn database(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("{text:?} is no number of a database"))
}

impl Address {
    /// Reads a URL.
    pub fn parse(url: &str) -> Result<Address, String> {
        let (scheme, rest) =
            url.split_once("://").ok_or_else(|| format!("{url:?} is no URL (redis://host:port/db)"))?;
        match scheme {
            "redis" | "tcp" | "valkey" => Address::parse_tcp(rest),
            "unix" | "redis+unix" => Address::parse_unix(rest),
            "rediss" => Err("rediss:// is not there: put a TLS tunnel before the server".into()),
            _ => Err(format!("{scheme}:// is not known; redis:// and unix:// are")),
        }
    }

    fn parse_tcp(rest: &str) -> Result<Address, String> {
        let mut address = Address::default();
        let (authority, db) = rest.split_once('/').unwrap_or((rest, ""));
        if !db.is_empty() {
            address.db = database(db)?;
        }
        let (login, place) = match authority.rsplit_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, authority),
        };
        if let Some(login) = login {
            let (user, password) = login.split_once(':').unwrap_or((login, ""));
            address.user = Some(unescaped(user)?).filter(|user| !user.is_empty());
            address.password = Some(unescaped(password)?);
        }
        let (host, port) = match place.strip_prefix('[') {
            Some(six) => {
                let (host, port) = six.split_once(']').ok_or("a [ without its ]")?;
                (host, port.strip_prefix(':'))
            }
            None => match place.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (place, None),
            },
        };
        let port = match port {
            Some(port) => port.parse().map_err(|_| format!("{port:?} is no port"))?,
            None => 6379,
        };
        address.place = Place::Tcp(if host.is_empty() { "127.0.0.1".into() } else { host.into() }, port);
        Ok(address)
    }

    fn parse_unix(rest: &str) -> Result<Address, String> {
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        if path.is_empty() {
            return Err("unix:// wants a path behind it".into());
        }
        let mut address = Address { place: Place::Unix(unescaped(path)?.into()), ..Address::default() };
        for part in query.split('&').filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                Some(("db", db)) => address.db = database(db)?,
                Some(("user" | "username", user)) => address.user = Some(unescaped(user)?),
                Some(("pass" | "password", password)) => address.password = Some(unescaped(password)?),
                _ => return Err(format!("{part:?} is not known in unix://; db, user and pass are")),
            }
        }
        Ok(address)
    }

    /// Takes one of the options that say where the server is; `false` if `name` is none of them.
    pub fn take(&mut self, name: &str, value: impl FnOnce() -> Result<String, String>) -> Result<bool, String> {
        match name {
            "--url" | "-u" => *self = Address::parse(&value()?)?,
            "--host" => {
                let port = if let Place::Tcp(_, port) = self.place { port } else { 6379 };
                self.place = Place::Tcp(value()?, port);
            }
            "--port" => {
                let port = value()?;
                let port = port.parse().map_err(|_| format!("{port:?} is no port"))?;
                let host = if let Place::Tcp(host, _) = &self.place { host.clone() } else { "127.0.0.1".into() };
                self.place = Place::Tcp(host, port);
            }
            "--socket" => self.place = Place::Unix(value()?.into()),
            "--user" => self.user = Some(value()?),
            "--pass" => self.password = Some(value()?),
            "--db" => self.db = database(&value()?)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// The options of [`Address::take`], for `--help`.
pub const HELP: &str =
    "  --url URL            redis://[user:password@]host[:port][/db] or unix:///path[?db=N&user=U&pass=P]
                       (default redis://127.0.0.1:6379/0, or what IMPEL_URL in the environment says)
  --host H --port P --socket PATH --user U --pass P --db N    the same in parts
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let parse = |url| Address::parse(url).map(|a| (a.to_string(), a.user, a.password));
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(parse("redis://h"), Ok(("redis://h:6379/0".into(), None, None)));
        assert_eq!(parse("redis://u:p%40@h:7/3"), Ok(("redis://h:7/3".into(), some("u"), some("p@"))));
        assert_eq!(parse("redis://:p@[::1]:7"), Ok(("redis://[::1]:7/0".into(), None, some("p"))));
        assert_eq!(parse("unix:///a/b?db=2&pass=x"), Ok(("unix:///a/b?db=2".into(), None, some("x"))));
        for wrong in ["h:1", "http://h", "rediss://h", "redis://h:port", "redis://h/x", "unix://", "unix:///a?x=1"] {
            assert!(Address::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn options_change_their_part_alone() {
        let mut address = Address::default();
        let mut take = |name: &str, value: &str| address.take(name, || Ok(value.into()));
        assert_eq!(take("--port", "7"), Ok(true));
        assert_eq!(take("--host", "h"), Ok(true));
        assert_eq!(take("--other", "h"), Ok(false));
        assert!(take("--db", "x").is_err());
        assert_eq!(address.to_string(), "redis://h:7/0");
    }
}
