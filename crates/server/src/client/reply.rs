//! Replies as they are read from a server, in RESP2 and RESP3.
//!
//! The decoder looks at bytes that are all there or not, and takes no memory for a length that was only announced. It
//! never gives an error reply another meaning: that is the caller's.

/// Elements in elements at most.
const DEPTH_MAX: usize = 32;

/// Longest bulk string that is believed, in bytes.
const BULK_MAX_BYTES: usize = 1 << 30;

/// A reply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// `+OK`
    Simple(Vec<u8>),
    /// `-ERR …`
    Error(Vec<u8>),
    /// `:1`
    Int(i64),
    /// A string of bytes.
    Bulk(Vec<u8>),
    /// Nothing, in any of its forms.
    Nil,
    /// A list; a map is one of names and values in turn.
    Array(Vec<Reply>),
}

impl Reply {
    /// The bytes of a string or of a status.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Reply::Simple(bytes) | Reply::Bulk(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The same as text; what is not UTF-8 is replaced.
    pub fn text(&self) -> String {
        match self {
            Reply::Simple(bytes) | Reply::Bulk(bytes) | Reply::Error(bytes) => {
                String::from_utf8_lossy(bytes).into_owned()
            }
            Reply::Int(n) => n.to_string(),
            Reply::Nil | Reply::Array(_) => String::new(),
        }
    }

    /// A number, also one that is written as a string.
    pub fn int(&self) -> Option<i64> {
        match self {
            Reply::Int(n) => Some(*n),
            Reply::Bulk(bytes) | Reply::Simple(bytes) => std::str::from_utf8(bytes).ok()?.parse().ok(),
            _ => None,
        }
    }

    /// The elements of a list; none of anything else.
    pub fn items(&self) -> &[Reply] {
        match self {
            Reply::Array(items) => items,
            _ => &[],
        }
    }

    /// What stands behind a name in a map.
    pub fn get(&self, name: &str) -> Option<&Reply> {
        let pair = self.items().chunks_exact(2).find(|pair| pair[0].bytes() == Some(name.as_bytes()))?;
        Some(&pair[1])
    }

    /// The text of an error reply.
    pub fn error(&self) -> Option<String> {
        match self {
            Reply::Error(_) => Some(self.text()),
            _ => None,
        }
    }
}

/// Reads the reply at the beginning of `bytes`: the reply and its length, or nothing when it has not come whole.
pub fn decode(bytes: &[u8]) -> Result<Option<(Reply, usize)>, &'static str> {
    let mut at = 0;
    Ok(element(bytes, &mut at, 0)?.map(|reply| (reply, at)))
}

fn line<'a>(bytes: &'a [u8], at: &mut usize) -> Option<&'a [u8]> {
    let rest = &bytes[*at..];
    let end = rest.windows(2).position(|two| two == b"\r\n")?;
    *at += end + 2;
    Some(&rest[..end])
}

fn number(text: &[u8]) -> Result<i64, &'static str> {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).ok_or("a length or number that is none")
}

fn element(bytes: &[u8], at: &mut usize, depth: usize) -> Result<Option<Reply>, &'static str> {
    if depth > DEPTH_MAX {
        return Err("lists in lists, too deep");
    }
    let Some(line) = line(bytes, at) else { return Ok(None) };
    let (&mark, rest) = line.split_first().ok_or("an empty line")?;
    Ok(Some(match mark {
        b'+' | b',' | b'(' => Reply::Simple(rest.to_vec()),
        b'-' => Reply::Error(rest.to_vec()),
        b':' => Reply::Int(number(rest)?),
        b'_' => Reply::Nil,
        b'#' => Reply::Int(i64::from(rest == b"t")),
        b'$' | b'=' | b'!' => {
            let Ok(len) = usize::try_from(number(rest)?) else { return Ok(Some(Reply::Nil)) };
            if len > BULK_MAX_BYTES {
                return Err("a string longer than any server sends");
            }
            if bytes.len() < *at + len + 2 {
                return Ok(None);
            }
            let body = &bytes[*at..*at + len];
            if &bytes[*at + len..*at + len + 2] != b"\r\n" {
                return Err("a string without its end");
            }
            *at += len + 2;
            match mark {
                // RESP3 puts the kind of text before it.
                b'=' => Reply::Bulk(body.get(4..).unwrap_or_default().to_vec()),
                b'!' => Reply::Error(body.to_vec()),
                _ => Reply::Bulk(body.to_vec()),
            }
        }
        b'*' | b'~' | b'>' | b'%' => {
            let Ok(count) = usize::try_from(number(rest)?) else { return Ok(Some(Reply::Nil)) };
            let count = if mark == b'%' { count.saturating_mul(2) } else { count };
            let mut items = Vec::with_capacity(count.min(bytes.len() - *at));
            for _ in 0..count {
                match element(bytes, at, depth + 1)? {
                    Some(item) => items.push(item),
                    None => return Ok(None),
                }
            }
            Reply::Array(items)
        }
        _ => return Err("a reply of an unknown kind"),
    }))
}

/// Finds the end of a reply that comes in parts, without looking at a part twice.
#[derive(Debug)]
pub struct Scan {
    at: usize,
    /// Elements that are still to come.
    left: u64,
}

impl Default for Scan {
    fn default() -> Self {
        Scan { at: 0, left: 1 }
    }
}

impl Scan {
    /// Looks at `bytes`, which begin with the reply and with what was there the last time: its length, if all of it is.
    pub fn find_end(&mut self, bytes: &[u8]) -> Result<Option<usize>, &'static str> {
        while self.left > 0 {
            let mut at = self.at;
            let Some(line) = line(bytes, &mut at) else { return Ok(None) };
            let (mark, rest) = line.split_first().ok_or("an empty line")?;
            let mut more = 0;
            match mark {
                b'$' | b'=' | b'!' => {
                    let len = usize::try_from(number(rest)?).map_or(0, |len| len.saturating_add(2));
                    if len > BULK_MAX_BYTES {
                        return Err("a string longer than any server sends");
                    }
                    if bytes.len() < at + len {
                        return Ok(None);
                    }
                    at += len;
                }
                b'*' | b'~' | b'>' | b'%' => {
                    let count = u64::try_from(number(rest)?).unwrap_or(0);
                    more = if *mark == b'%' { count.saturating_mul(2) } else { count };
                }
                _ => {}
            }
            self.at = at;
            self.left = (self.left - 1).saturating_add(more);
        }
        Ok(Some(self.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Reply {
        Reply::Bulk(text.into())
    }

    #[test]
    fn every_kind_is_read_and_every_part_of_it_is_incomplete() {
        for (text, reply) in [
            ("+OK\r\n", Reply::Simple(b"OK".to_vec())),
            ("-ERR no\r\n", Reply::Error(b"ERR no".to_vec())),
            (":-5\r\n", Reply::Int(-5)),
            ("$3\r\na\r\n\r\n", bulk("a\r\n")),
            ("$-1\r\n", Reply::Nil),
            ("*-1\r\n", Reply::Nil),
            ("_\r\n", Reply::Nil),
            ("*2\r\n:1\r\n*1\r\n$0\r\n\r\n", Reply::Array(vec![Reply::Int(1), Reply::Array(vec![bulk("")])])),
            ("%1\r\n+a\r\n:2\r\n", Reply::Array(vec![Reply::Simple(b"a".to_vec()), Reply::Int(2)])),
            ("=7\r\ntxt:abc\r\n", bulk("abc")),
        ] {
            assert_eq!(decode(text.as_bytes()), Ok(Some((reply, text.len()))), "{text:?}");
            let mut scan = Scan::default();
            for cut in 0..text.len() {
                assert_eq!(decode(&text.as_bytes()[..cut]), Ok(None), "{text:?} cut at {cut}");
                assert_eq!(scan.find_end(&text.as_bytes()[..cut]), Ok(None), "{text:?} cut at {cut}");
            }
            assert_eq!(scan.find_end(format!("{text}+next").as_bytes()), Ok(Some(text.len())), "{text:?}");
        }
    }

    #[test]
    fn what_is_no_reply_is_refused() {
        for text in ["hello\r\n", "\r\n", ":x\r\n", "$9999999999\r\n", "$1\r\nabc", &"*1\r\n".repeat(40)] {
            assert!(decode(text.as_bytes()).is_err(), "{text:?}");
        }
    }

    #[test]
    fn values_are_found_by_name() {
        let map = Reply::Array(vec![bulk("a"), Reply::Int(1), bulk("b"), bulk("7")]);
        assert_eq!(map.get("b").and_then(Reply::int), Some(7));
        assert_eq!(map.get("c"), None);
    }
}
