//! Which server it is, by what it says in INFO.

use std::fmt;

use serde_json::{Value, json};

/// A server's process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// What kind it is.
    pub name: String,
    /// Its own version.
    pub version: String,
    /// The version of Redis that it goes by, which of Redis is its own.
    pub redis_version: String,
    /// What is another after each start.
    pub run_id: String,
}

impl Identity {
    /// Reads the text of INFO; nothing if there is no version in it.
    pub fn read(info: &str) -> Option<Identity> {
        let of = |name: &str| {
            let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
        };
        let redis_version = of("redis_version");
        // What has another name has a version of that name.
        let others = ["impel", "valkey", "dragonfly", "keydb", "garnet", "kvrocks"];
        let found = others.iter().find_map(|name| Some(((*name).to_owned(), of(&format!("{name}_version"))?)));
        let (name, version) = match found {
            Some(found) => found,
            None => (of("server_name").unwrap_or_else(|| "redis".into()), redis_version.clone()?),
        };
        Some(Identity {
            name,
            version,
            redis_version: redis_version.unwrap_or_default(),
            run_id: of("run_id").unwrap_or_default(),
        })
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        json!({
            "name": self.name, "version": self.version, "redis_version": self.redis_version, "run_id": self.run_id,
        })
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} (run {})", self.name, self.version, self.run_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_by_their_own_names() {
        let read = |info: &str| Identity::read(info).map(|found| format!("{found}, {}", found.redis_version));
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(read("# Server\r\nredis_version:7.0.15\r\nrun_id:ab\r\n"), some("redis 7.0.15 (run ab), 7.0.15"));
        assert_eq!(read("redis_version:8.2.3\r\nimpel_version:0.1.0\r\nrun_id:c"), some("impel 0.1.0 (run c), 8.2.3"));
        let valkey = "redis_version:7.2.4\nserver_name:valkey\nvalkey_version:9.1.0\nrun_id:d";
        assert_eq!(read(valkey), some("valkey 9.1.0 (run d), 7.2.4"));
        assert_eq!(read("server_name:other\nredis_version:6"), some("other 6 (run ), 6"));
        assert_eq!(read("# Server\n"), None);
    }
}
