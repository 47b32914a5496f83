//! Requests as they arrive, in pieces of any size: RESP arrays of bulk strings, and inline commands.
//!
//! A [`Decoder`] belongs to one connection and keeps its place inside a command that has not come whole, so that no
//! byte is looked at twice. It takes no memory for a length that was announced: the caller's buffer grows with what
//! really came. Offsets it keeps are relative to the start of the current command, so the caller may move those bytes.

use crate::command::args::Args;
use crate::limits::{ARGUMENTS_MAX_UNAUTHENTICATED, BULK_MAX_UNAUTHENTICATED_BYTES, INLINE_MAX_BYTES, MULTIBULK_MAX};

/// What came of looking at the input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// A whole command of so many bytes; its arguments: [`Decoder::args`]. An empty one (blank line, `*0`) has none.
    Command(usize),
    /// The command has not come whole: call again with the same bytes and more behind them.
    Incomplete,
    /// Not RESP: the error line to answer before closing.
    Broken(String),
}

/// What a connection may send.
#[derive(Clone, Copy, Debug)]
pub struct Caps {
    /// Longest bulk string, in bytes (`proto-max-bulk-len`).
    pub bulk_max: usize,
    /// Has the connection authenticated (or need not)?
    pub authenticated: bool,
}

/// Place of a connection inside its current command.
#[derive(Debug, Default)]
pub struct Decoder {
    spans: Vec<(usize, usize)>,
    /// Arguments of an inline command, with quotes and escapes resolved.
    unquoted: Vec<u8>,
    inline: bool,
    /// Arguments announced and not yet seen; 0 = before the command.
    left: usize,
    /// Length of the bulk string that comes next, when its header has been read.
    bulk: Option<usize>,
    /// First byte not looked at.
    at: usize,
}

const fn broken(text: String) -> Step {
    Step::Broken(text)
}

impl Decoder {
    /// The arguments of the command that [`Decoder::step`] has just found in `input`.
    pub fn args<'a>(&'a self, input: &'a [u8]) -> Args<'a> {
        Args::new(if self.inline { &self.unquoted } else { input }, &self.spans)
    }

    /// Begin with the next command; call when the bytes of the last one were taken away.
    pub fn reset(&mut self) {
        if self.spans.capacity() > 1024 {
            self.spans = Vec::new();
        }
        self.spans.clear();
        self.left = 0;
        self.bulk = None;
        self.at = 0;
    }

    /// Bytes that the command needs in all, as far as is known: lets the caller reserve what is about to come, at
    /// most `limit` ahead.
    pub fn wanted(&self, limit: usize) -> usize {
        self.bulk.map_or(0, |n| self.at.saturating_add(n.min(limit)).saturating_add(2))
    }

    /// Looks at `input`, which begins with the current command.
    #[inline]
    pub fn step(&mut self, input: &[u8], caps: Caps) -> Step {
        if self.left == 0 {
            match input.first() {
                None => return Step::Incomplete,
                Some(b'*') => match self.multibulk_header(input, caps) {
                    None => {}
                    Some(step) => return step,
                },
                Some(_) => return self.inline(input),
            }
        }
        while self.left > 0 {
            let length = match self.bulk {
                Some(length) => length,
                None => match self.bulk_header(input, caps) {
                    Ok(length) => length,
                    Err(step) => return step,
                },
            };
            if input.len() - self.at < length + 2 {
                self.bulk = Some(length);
                return Step::Incomplete;
            }
            self.bulk = None;
            self.spans.push((self.at, self.at + length));
            self.at += length + 2;
            self.left -= 1;
        }
        Step::Command(self.at)
    }

    /// A header line from `at` on: its number, and where the next line begins.
    #[inline]
    fn number_line(&self, input: &[u8], too_long: &'static str) -> Result<(Option<i64>, usize), Step> {
        let line = &input[self.at..];
        // Most headers are a digit or two: those are read without a search.
        let digit = |byte: u8| i64::from(byte - b'0');
        let end = match *line {
            [_, a @ b'0'..=b'9', b'\r', _, ..] => return Ok((Some(digit(a)), self.at + 4)),
            [_, a @ b'1'..=b'9', b @ b'0'..=b'9', b'\r', _, ..] => {
                return Ok((Some(10 * digit(a) + digit(b)), self.at + 5));
            }
            _ => match memchr::memchr(b'\r', line) {
                Some(end) => end,
                None if line.len() > INLINE_MAX_BYTES => return Err(broken(format!("ERR Protocol error: {too_long}"))),
                None => return Err(Step::Incomplete),
            },
        };
        if line.len() < end + 2 {
            return Err(Step::Incomplete);
        }
        Ok((crate::command::parse::integer(&line[1..end]), self.at + end + 2))
    }

    /// Reads `*n`; `None` when arguments follow.
    fn multibulk_header(&mut self, input: &[u8], caps: Caps) -> Option<Step> {
        self.inline = false;
        self.spans.clear();
        self.at = 0;
        let (n, next) = match self.number_line(input, "too big mbulk count string") {
            Ok(found) => found,
            Err(step) => return Some(step),
        };
        match n {
            Some(n) if n > MULTIBULK_MAX => Some(broken("ERR Protocol error: invalid multibulk length".to_owned())),
            None => Some(broken("ERR Protocol error: invalid multibulk length".to_owned())),
            Some(n) if n > ARGUMENTS_MAX_UNAUTHENTICATED as i64 && !caps.authenticated => {
                Some(broken("ERR Protocol error: unauthenticated multibulk length".to_owned()))
            }
            Some(n) if n <= 0 => Some(Step::Command(next)),
            Some(n) => {
                self.left = n as usize;
                self.at = next;
                None
            }
        }
    }

    /// Reads `$n`.
    #[inline]
    fn bulk_header(&mut self, input: &[u8], caps: Caps) -> Result<usize, Step> {
        match input.get(self.at) {
            None => return Err(Step::Incomplete),
            Some(b'$') => {}
            Some(&other) => {
                return Err(broken(format!("ERR Protocol error: expected '$', got '{}'", char::from(other))));
            }
        }
        let (n, next) = self.number_line(input, "too big bulk count string")?;
        let length = match n {
            Some(n) if n >= 0 && n as u64 <= caps.bulk_max as u64 => n as usize,
            _ => return Err(broken("ERR Protocol error: invalid bulk length".to_owned())),
        };
        if length > BULK_MAX_UNAUTHENTICATED_BYTES && !caps.authenticated {
            return Err(broken("ERR Protocol error: unauthenticated bulk length".to_owned()));
        }
        self.at = next;
        Ok(length)
    }

    fn inline(&mut self, input: &[u8]) -> Step {
        self.inline = true;
        self.spans.clear();
        self.unquoted.clear();
        let Some(end) = memchr::memchr(b'\n', &input[self.at..]).map(|end| self.at + end) else {
            self.at = input.len();
            return if input.len() > INLINE_MAX_BYTES {
                broken("ERR Protocol error: too big inline request".to_owned())
            } else {
                Step::Incomplete
            };
        };
        let line = input[..end].strip_suffix(b"\r").unwrap_or(&input[..end]);
        if split_words(line, &mut self.unquoted, &mut self.spans).is_none() {
            return broken("ERR Protocol error: unbalanced quotes in request".to_owned());
        }
        self.at = end + 1;
        Step::Command(self.at)
    }
}

/// Splits a line into words as Redis does for inline commands and its config file: blanks separate, `"…"` with escapes
/// (`\n \r \t \b \a \xHH`), `'…'` with `\'`. Words go to `out`, their places to `spans`. `None`: unbalanced quotes.
pub fn split_words(line: &[u8], out: &mut Vec<u8>, spans: &mut Vec<(usize, usize)>) -> Option<()> {
    let blank = |byte: u8| byte.is_ascii_whitespace() || byte == 0x0b;
    let hex = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let mut at = 0;
    loop {
        while at < line.len() && blank(line[at]) {
            at += 1;
        }
        if at == line.len() {
            return Some(());
        }
        let start = out.len();
        while at < line.len() && !blank(line[at]) {
            let quote = line[at];
            if quote != b'"' && quote != b'\'' {
                out.push(quote);
                at += 1;
                continue;
            }
            at += 1;
            loop {
                match &line[at..] {
                    [] => return None,
                    [b'\\', b'x', high, low, ..] if quote == b'"' && hex(*high).is_some() && hex(*low).is_some() => {
                        out.push(hex(*high)? << 4 | hex(*low)?);
                        at += 4;
                    }
                    [b'\\', escaped, ..] if quote == b'"' => {
                        out.push(match escaped {
                            b'n' => b'\n',
                            b'r' => b'\r',
                            b't' => b'\t',
                            b'b' => 8,
                            b'a' => 7,
                            other => *other,
                        });
                        at += 2;
                    }
                    [b'\\', b'\'', ..] if quote == b'\'' => {
                        out.push(b'\'');
                        at += 2;
                    }
                    [byte, rest @ ..] if *byte == quote => {
                        // A closing quote must end the word.
                        if rest.first().is_some_and(|&next| !blank(next)) {
                            return None;
                        }
                        at += 1;
                        break;
                    }
                    [byte, ..] => {
                        out.push(*byte);
                        at += 1;
                    }
                }
            }
        }
        spans.push((start, out.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPS: Caps = Caps { bulk_max: 512 << 20, authenticated: true };

    fn words(input: &[u8]) -> Vec<Vec<u8>> {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.step(input, CAPS), Step::Command(input.len()));
        decoder.args(input).iter().map(<[u8]>::to_vec).collect()
    }

    #[test]
    fn commands_in_any_pieces_are_the_same_commands() {
        let input = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$12\r\nhello\r\nworld\r\n";
        for cut in 0..input.len() {
            let mut decoder = Decoder::default();
            assert_eq!(decoder.step(&input[..cut], CAPS), Step::Incomplete, "{cut}");
            assert_eq!(decoder.step(input, CAPS), Step::Command(input.len()));
            let args: Vec<&[u8]> = decoder.args(input).iter().collect();
            assert_eq!(args, [b"SET".as_ref(), b"k", b"hello\r\nworld"]);
        }
    }

    #[test]
    fn inline_quotes_and_escapes() {
        assert_eq!(
            words(b" SET  k \"a\\x41\\n\" 'c d'\r\n"),
            [b"SET".to_vec(), b"k".into(), b"aA\n".into(), b"c d".into()]
        );
        assert_eq!(words(b"\r\n"), Vec::<Vec<u8>>::new());
        let mut decoder = Decoder::default();
        assert!(matches!(decoder.step(b"\"open\r\n", CAPS), Step::Broken(_)));
        assert!(matches!(decoder.step(b"\"a\"b\r\n", CAPS), Step::Broken(_)));
    }

    #[test]
    fn malformed_input_is_named() {
        for (input, text) in [
            (b"*1\r\n+PING\r\n".as_ref(), "expected '$', got '+'"),
            (b"*abc\r\n", "invalid multibulk length"),
            (b"*1\r\n$abc\r\n", "invalid bulk length"),
            (b"*1\r\n$-5\r\n", "invalid bulk length"),
            (b"*1\r\n$600000000\r\n", "invalid bulk length"),
        ] {
            let step = Decoder::default().step(input, CAPS);
            assert_eq!(step, Step::Broken(format!("ERR Protocol error: {text}")));
        }
        let strangers = Caps { authenticated: false, ..CAPS };
        assert!(matches!(Decoder::default().step(b"*11\r\n", strangers), Step::Broken(_)));
        assert!(matches!(Decoder::default().step(b"*1\r\n$20000\r\n", strangers), Step::Broken(_)));
    }

    #[test]
    fn empty_arrays_are_no_commands() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.step(b"*0\r\n*1\r\n", CAPS), Step::Command(4));
        assert!(decoder.args(b"*0\r\n").is_empty());
        decoder.reset();
        assert_eq!(decoder.step(b"*-1\r\n", CAPS), Step::Command(5));
    }

    #[test]
    fn words_of_a_line() {
        let check = |line: &str, want: Option<&[&str]>| {
            let (mut bytes, mut spans) = (Vec::new(), Vec::new());
            let whole = split_words(line.as_bytes(), &mut bytes, &mut spans);
            let words: Vec<_> =
                spans.iter().map(|&(start, end)| std::str::from_utf8(&bytes[start..end]).unwrap()).collect();
            assert_eq!(whole.map(|()| words.as_slice()), want, "{line}");
        };
        check("", Some(&[]));
        check("  a  b ", Some(&["a", "b"]));
        check(r#"a "b c" 'd e'"#, Some(&["a", "b c", "d e"]));
        check(r#""\n\r\t\a\b\x41\\\"\q""#, Some(&["\n\r\t\x07\x08A\\\"q"]));
        check(r"'a\'b\n'", Some(&[r"a'b\n"]));
        check(r#"a"b c""#, Some(&["ab c"]));
        check(r#""\xZZ""#, Some(&["xZZ"]));
        check(r#""a"b"#, None);
        check(r#""a"#, None);
        check("'a", None);
        check(r#""a\"#, None);
    }
}
