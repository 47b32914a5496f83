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
        if let Ok(digit @ 0..10) = u8::try_from(n) {
            // Most arrays and many texts are short: one copy of four bytes.
            self.out.extend_from_slice(&[mark, b'0' + digit, b'\r', b'\n']);
            return;
        }
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
        // One digit, as most of them have.
        if let Ok(digit @ 0..=9) = u8::try_from(n) {
            self.out.extend_from_slice(&[b':', b'0' + digit, b'\r', b'\n']);
            return;
        }
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

    /// What is written as it goes over the wire in both protocols: a bulk string that is always the same.
    pub fn written(&mut self, bytes: &'static [u8]) {
        debug_assert!(bytes.starts_with(b"$") && bytes.ends_with(b"\r\n"));
        self.out.extend_from_slice(bytes);
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
#[inline]
pub fn bulk_id(out: &mut Vec<u8>, id: StreamId) {
    if !usual_id::<false>(out, id) {
        any_id(out, id);
    }
}

/// Appends the head of an array of two, and an entry ID as its first element.
#[inline]
pub fn pair_with_id(out: &mut Vec<u8>, id: StreamId) {
    if !usual_id::<true>(out, id) {
        out.extend_from_slice(b"*2\r\n");
        any_id(out, id);
    }
}

/// Appends what nearly every ID is: a time of 13 digits (years 2001 to 2286) and a sequence number of up to 8. Of a reply
/// with many short entries the IDs are a large part, so these are appended in pieces whose lengths are known, without a
/// loop. Answers whether it is such an ID.
#[inline]
fn usual_id<const IN_PAIR: bool>(out: &mut Vec<u8>, id: StreamId) -> bool {
    const TIMES: std::ops::Range<u64> = 1_000_000_000_000..10_000_000_000_000;
    const EIGHT_DIGITS: u64 = 100_000_000;
    if !TIMES.contains(&id.ms) || id.seq >= EIGHT_DIGITS {
        return false;
    }
    out.reserve(4 + 5 + 13 + 1 + 8 + 2);
    let seq_len = id.seq.checked_ilog10().unwrap_or(0) as usize + 1;
    let len = 14 + seq_len as u8;
    let (tens, ones) = (b'0' + len / 10, b'0' + len % 10);
    if IN_PAIR {
        out.extend_from_slice(&[b'*', b'2', b'\r', b'\n', b'$', tens, ones, b'\r', b'\n']);
    } else {
        out.extend_from_slice(&[b'$', tens, ones, b'\r', b'\n']);
    }
    let high = eight_digits((id.ms / EIGHT_DIGITS) as u32).to_le_bytes();
    out.extend_from_slice(&high[3..]);
    out.extend_from_slice(&eight_digits((id.ms % EIGHT_DIGITS) as u32).to_le_bytes());
    if seq_len == 1 {
        out.extend_from_slice(&[b'-', b'0' + id.seq as u8, b'\r', b'\n']);
        return true;
    }
    out.push(b'-');
    let seq = eight_digits(id.seq as u32) >> (64 - 8 * seq_len);
    let end = out.len() + seq_len;
    out.extend_from_slice(&seq.to_le_bytes());
    out.truncate(end);
    out.extend_from_slice(b"\r\n");
    true
}

#[cold]
fn any_id(out: &mut Vec<u8>, id: StreamId) {
    let (mut ms, mut seq) = (itoa::Buffer::new(), itoa::Buffer::new());
    let (ms, seq) = (ms.format(id.ms), seq.format(id.seq));
    out.push(b'$');
    out.extend_from_slice(itoa::Buffer::new().format(ms.len() + 1 + seq.len()).as_bytes());
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(ms.as_bytes());
    out.push(b'-');
    out.extend_from_slice(seq.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// The eight digits of a number below 100 million, the first in the lowest byte: halved into ever smaller numbers side by
/// side in one word, instead of one digit after the other.
#[inline]
fn eight_digits(number: u32) -> u64 {
    debug_assert!(number < 100_000_000);
    let number = u64::from(number);
    // Two numbers below 10,000, four below 100, eight below 10. The factors are 1/100 and 1/10, exact for such numbers.
    let mut lanes = (number / 10_000) | ((number % 10_000) << 32);
    let hundreds = ((lanes * 10_486) >> 20) & 0x0000_007f_0000_007f;
    lanes = hundreds | ((lanes - 100 * hundreds) << 16);
    let tens = ((lanes * 103) >> 10) & 0x000f_000f_000f_000f;
    lanes = tens | ((lanes - 10 * tens) << 8);
    lanes | 0x3030_3030_3030_3030
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_digits_of_any_number() {
        let checked = (0..100_000).chain((0..100_000_000).step_by(997)).chain([99_999_999, 9999_0000, 99_9900]);
        for number in checked {
            assert_eq!(eight_digits(number).to_le_bytes(), format!("{number:08}").as_bytes(), "{number}");
        }
    }

    #[test]
    fn ids_are_written_at_any_length() {
        let powers = (0..20).flat_map(|power| [10_u64.pow(power) - 1, 10_u64.pow(power)]);
        let numbers: Vec<u64> = powers.chain([12_345_678, 1_700_000_000_123, u64::MAX]).collect();
        for &ms in &numbers {
            for &seq in &numbers {
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
