//! Which keys a command looks up whenever it answers without an error, told from its words alone. Only commands of which that
//! is certain are here: what is seen of the others is not judged.

use crate::model::words::is;

/// Commands with one key, behind their name.
const ONE: &[&str] = &[
    "XADD",
    "XADDM",
    "XLEN",
    "XRANGE",
    "XREVRANGE",
    "XACK",
    "XACKDEL",
    "XDEL",
    "XDELEX",
    "XTRIM",
    "XSETID",
    "XCLAIM",
    "XAUTOCLAIM",
    "XPENDING",
    "XNACK",
    "XCFGSET",
    "XCFGGET",
    "GET",
    "SET",
    "INCR",
    "APPEND",
    "TYPE",
    "PTTL",
    "PEXPIRE",
    "PERSIST",
    "GETDEL",
    "STRLEN",
];

/// Commands whose words behind the name are all keys.
const ALL: &[&str] = &["DEL", "EXISTS", "UNLINK", "MGET"];

/// The keys of a command; empty where nothing is certain.
pub fn of(words: &[Vec<u8>]) -> Vec<&[u8]> {
    let among = |names: &[&str]| names.iter().any(|name| is(&words[0], name));
    if among(ONE) {
        return words.get(1).map(Vec::as_slice).into_iter().collect();
    }
    if among(ALL) {
        return words[1..].iter().map(Vec::as_slice).collect();
    }
    if is(&words[0], "XINFO") || is(&words[0], "XGROUP") || is(&words[0], "XWORK") {
        return words.get(2).map(Vec::as_slice).into_iter().collect();
    }
    if is(&words[0], "XREAD") || is(&words[0], "XREADGROUP") {
        let Some(at) = words.iter().position(|word| is(word, "STREAMS")) else { return Vec::new() };
        // With one key, and so that the word is not a name that somebody has given to a group.
        return if at + 3 == words.len() && at > 3 || at == 1 && words.len() == 4 {
            vec![&words[at + 1]]
        } else {
            Vec::new()
        };
    }
    Vec::new()
}

/// Does the command begin, end or leave a transaction?
pub fn transaction(words: &[Vec<u8>]) -> Option<bool> {
    match () {
        () if is(&words[0], "MULTI") => Some(true),
        () if is(&words[0], "EXEC") || is(&words[0], "DISCARD") || is(&words[0], "RESET") => Some(false),
        () => None,
    }
}
