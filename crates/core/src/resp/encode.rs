//! Replies as bytes. A [`Reply`] appends to the connection's output buffer in the protocol that the connection speaks;
//! nothing is built in between. Counts are written before their elements, so the caller must know them.

use crate::id::StreamId;

/// Protocol version of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// RESP2, what a connection speaks until it says HELLO 3.
    Resp2,
    /// RESP3.
    Resp3,
}

/// Writes one reply (or the parts of one) to a buffer.
pub struct Reply<'a> {
    /// Where the bytes go: appended, never changed.
    pub out: &'a mut Vec<u8>,
    /// Decides the form of nulls, maps, sets and pushes.
    pub protocol: Protocol,
}

impl Reply<'_> {
    fn header(&mut self, mark: u8, n: usize) {
        self.out.push(mark);
        self.out.extend_from_slice(itoa::Buffer::new().format(n).as_bytes());
        self.out.extend_from_slice(b"\r\n");
    }

    fn line(&mut self, mark: u8, text: &[u8]) {
        self.out.push(mark);
        self.out.extend_from_slice(text);
        self.out.extend_from_slice(b"\r\n");
    }

    /// A status such as `+OK`. The text must hold no CR or LF.
    pub fn simple(&mut self, text: &str) {
        debug_assert!(!text.contains(['\r', '\n']));
        self.line(b'+', text.as_bytes());
    }

    /// `+OK`
    pub fn ok(&mut self) {
        self.out.extend_from_slice(b"+OK\r\n");
    }

    /// An error line; `text` begins with its code (`ERR …`). CR and LF, which a client's argument may have brought
    /// in, become blanks, as in Redis.
    pub fn error(&mut self, text: &[u8]) {
        self.out.push(b'-');
        self.out.extend(text.iter().map(|&b| if b == b'\r' || b == b'\n' { b' ' } else { b }));
        self.out.extend_from_slice(b"\r\n");
    }

    /// An integer.
    pub fn int(&mut self, n: i64) {
        self.out.push(b':');
        self.out.extend_from_slice(itoa::Buffer::new().format(n).as_bytes());
        self.out.extend_from_slice(b"\r\n");
    }

    /// A count. Values beyond `i64::MAX` cannot arise from counting.
    pub fn count(&mut self, n: u64) {
        self.int(n as i64);
    }

    /// A bulk string.
    pub fn bulk(&mut self, bytes: &[u8]) {
        bulk(self.out, bytes);
    }

    /// An entry ID as a bulk string.
    pub fn id(&mut self, id: StreamId) {
        bulk_id(self.out, id);
    }

    /// An integer as a bulk string (XPENDING's counts per consumer).
    pub fn bulk_int(&mut self, n: i64) {
        self.bulk(itoa::Buffer::new().format(n).as_bytes());
    }

    /// RESP2 `$-1`, RESP3 `_`.
    pub fn null(&mut self) {
        match self.protocol {
            Protocol::Resp2 => self.out.extend_from_slice(b"$-1\r\n"),
            Protocol::Resp3 => self.out.extend_from_slice(b"_\r\n"),
        }
    }

    /// RESP2 `*-1`, RESP3 `_`.
    pub fn null_array(&mut self) {
        match self.protocol {
            Protocol::Resp2 => self.out.extend_from_slice(b"*-1\r\n"),
            Protocol::Resp3 => self.out.extend_from_slice(b"_\r\n"),
        }
    }

    /// Head of an array of `n` elements.
    pub fn array(&mut self, n: usize) {
        self.header(b'*', n);
    }

    /// Head of a map of `n` pairs; a flat array of `2n` in RESP2.
    pub fn map(&mut self, n: usize) {
        match self.protocol {
            Protocol::Resp2 => self.header(b'*', 2 * n),
            Protocol::Resp3 => self.header(b'%', n),
        }
    }

    /// Head of a map whose pairs are arrays of two in RESP2 (XREAD): each pair begins with [`Reply::pair`].
    pub fn pairs(&mut self, n: usize) {
        match self.protocol {
            Protocol::Resp2 => self.header(b'*', n),
            Protocol::Resp3 => self.header(b'%', n),
        }
    }

    /// Head of one pair within [`Reply::pairs`].
    pub fn pair(&mut self) {
        if self.protocol == Protocol::Resp2 {
            self.out.extend_from_slice(b"*2\r\n");
        }
    }

    /// Head of a set of `n`; an array in RESP2.
    pub fn set(&mut self, n: usize) {
        match self.protocol {
            Protocol::Resp2 => self.header(b'*', n),
            Protocol::Resp3 => self.header(b'~', n),
        }
    }

    /// Head of an out-of-band push of `n`; an array in RESP2.
    pub fn push(&mut self, n: usize) {
        match self.protocol {
            Protocol::Resp2 => self.header(b'*', n),
            Protocol::Resp3 => self.header(b'>', n),
        }
    }

    /// A text for people: a verbatim string (`txt`) in RESP3, a bulk string in RESP2.
    pub fn verbatim(&mut self, text: &[u8]) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(text),
            Protocol::Resp3 => {
                self.header(b'=', text.len() + 4);
                self.out.extend_from_slice(b"txt:");
                self.out.extend_from_slice(text);
                self.out.extend_from_slice(b"\r\n");
            }
        }
    }
}

/// Appends a bulk string, the same in both protocols.
pub fn bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'$');
    out.extend_from_slice(itoa::Buffer::new().format(bytes.len()).as_bytes());
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// Appends an entry ID as a bulk string.
pub fn bulk_id(out: &mut Vec<u8>, id: StreamId) {
    let (text, at) = id_text(id);
    out.extend_from_slice(&text[at..]);
}

/// Appends the head of an array of two, and an entry ID as its first element.
#[inline]
pub fn pair_with_id(out: &mut Vec<u8>, id: StreamId) {
    let (mut text, at) = id_text(id);
    text[at - 4..at].copy_from_slice(b"*2\r\n");
    out.extend_from_slice(&text[at - 4..]);
}

/// What precedes the longest ID: `*2`, `$41` and their line ends; two numbers of 20 digits, a dash, a line end.
const ID_TEXT_BYTES: usize = 4 + 5 + 20 + 1 + 20 + 2;

/// An ID as a bulk string at the end of an array, from the answered place on. Filled from its end, so that it is appended
/// at once however long it is: of a reply with many short entries the IDs are a large part.
#[inline]
fn id_text(id: StreamId) -> ([u8; ID_TEXT_BYTES], usize) {
    let mut text = [b'\n'; ID_TEXT_BYTES];
    let mut at = ID_TEXT_BYTES - 2;
    text[at] = b'\r';
    let end = at;
    at = digits(&mut text, at, id.seq) - 1;
    text[at] = b'-';
    at = digits(&mut text, at, id.ms);
    let len = end - at;
    at -= 2;
    text[at] = b'\r';
    text[at + 1] = b'\n';
    at = digits(&mut text, at, len as u64) - 1;
    text[at] = b'$';
    (text, at)
}

/// Writes the digits of a number so that they end before `at`; answers where they begin.
#[inline]
fn digits(text: &mut [u8; ID_TEXT_BYTES], mut at: usize, mut number: u64) -> usize {
    // Eight digits at a time by the quicker division of 32 bits.
    while number >= 100_000_000 {
        let mut low = (number % 100_000_000) as u32;
        number /= 100_000_000;
        for _ in 0..8 {
            at -= 1;
            text[at] = b'0' + (low % 10) as u8;
            low /= 10;
        }
    }
    let mut rest = number as u32;
    loop {
        at -= 1;
        text[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            return at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_written_at_any_length() {
        let numbers = [0, 9, 10, 99, 12_345_678, 99_999_999, 100_000_000, 1_700_000_000_123, u64::MAX];
        for ms in numbers {
            for seq in numbers {
                let text = format!("{ms}-{seq}");
                let wanted = format!("${}\r\n{text}\r\n", text.len());
                let (mut alone, mut paired) = (Vec::new(), Vec::new());
                bulk_id(&mut alone, StreamId { ms, seq });
                pair_with_id(&mut paired, StreamId { ms, seq });
                assert_eq!(String::from_utf8_lossy(&alone), wanted);
                assert_eq!(String::from_utf8_lossy(&paired), format!("*2\r\n{wanted}"));
            }
        }
    }
}
