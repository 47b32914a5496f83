//! Lines of a file that somebody else has written: one that does not end takes no more memory than the longest that is believed.
//!
//! It must never give a part of a line as a whole one.

use std::io::{self, BufRead, Read};

/// Bytes of a line at most, with its end.
pub(super) const LINE_MAX_BYTES: u64 = 64 << 20;

/// The next line with its end; empty at the end of the file.
pub(super) fn next_line(file: &mut impl BufRead, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    file.take(max_bytes + 1).read_until(b'\n', &mut line)?;
    match line.len() as u64 > max_bytes {
        true => Err(io::Error::new(io::ErrorKind::InvalidData, format!("a line of more than {max_bytes} bytes"))),
        false => Ok(line),
    }
}

/// All lines, without their ends, up to the first error.
pub(super) struct Lines<R> {
    file: R,
    is_over: bool,
}

impl<R: BufRead> Lines<R> {
    /// Those of a file.
    pub fn of(file: R) -> Lines<R> {
        Lines { file, is_over: false }
    }

    fn line(&mut self) -> io::Result<Option<String>> {
        let mut line = next_line(&mut self.file, LINE_MAX_BYTES)?;
        if line.is_empty() {
            return Ok(None);
        }
        if line.ends_with(b"\n") {
            line.pop();
        }
        if line.ends_with(b"\r") {
            line.pop();
        }
        String::from_utf8(line).map(Some).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = io::Result<String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let next = self.line().transpose();
        self.is_over = !matches!(next, Some(Ok(_)));
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_an_end_is_refused_before_it_fills_the_memory() {
        let mut endless = io::BufReader::new(io::repeat(0));
        let error = next_line(&mut endless, 1000).unwrap_err().to_string();
        assert_eq!(error, "a line of more than 1000 bytes");
        assert_eq!(next_line(&mut &b"ab\ncd"[..], 3).unwrap(), b"ab\n");
        assert!(next_line(&mut &b"abc\ncd"[..], 3).is_err());
    }

    #[test]
    fn lines_lose_their_ends() {
        let lines: Vec<String> = Lines::of(&b"a\r\n\nb"[..]).map(Result::unwrap).collect();
        assert_eq!(lines, ["a", "", "b"]);
        let mut bad = Lines::of(&b"\xff\nb"[..]);
        assert!(bad.next().unwrap().is_err() && bad.next().is_none());
    }
}
