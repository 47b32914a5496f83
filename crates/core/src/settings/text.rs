//! Configuration as text: lines of a file and words of a command line become directives. Knows quoting; what a directive
//! means is for [`Settings::apply`](super::Settings::apply). Reads no file: an `include` is a directive that the caller follows.

use std::fmt;

/// A name with its words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Directive {
    /// Line of the file, or word of the command line, counted from 1.
    pub position: usize,
    /// As written, without the dashes of an option.
    pub name: Vec<u8>,
    /// The words behind it.
    pub words: Vec<Vec<u8>>,
}

impl Directive {
    /// The path to read at this place, when that is what the directive says.
    pub fn include(&self) -> Option<&[u8]> {
        match self.words.as_slice() {
            [path] if self.name.eq_ignore_ascii_case(b"include") => Some(path),
            _ => None,
        }
    }
}

/// Text that is not in the form of directives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextError {
    /// Line of the file, or word of the command line, counted from 1.
    pub position: usize,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {}: {}", self.position, self.reason)
    }
}

impl std::error::Error for TextError {}

/// The directives of a file, one a line; empty lines and those that begin with `#` are passed over.
pub fn parse_file(text: &[u8]) -> Result<Vec<Directive>, TextError> {
    let mut directives = Vec::new();
    for (index, line) in text.split(|&b| b == b'\n').enumerate() {
        let (position, line) = (index + 1, line.trim_ascii());
        if line.is_empty() || line[0] == b'#' {
            continue;
        }
        let reason = "unbalanced quotes";
        let mut words = split_line(line).ok_or(TextError { position, reason })?;
        if words.is_empty() {
            continue;
        }
        let name = words.remove(0);
        directives.push(Directive { position, name, words });
    }
    Ok(directives)
}

/// The words of a line. Within double quotes `\n` `\r` `\t` `\a` `\b` `\xHH` and `\` before any other byte are escapes,
/// within single quotes only `\'`. A closing quote must end its word. `None` for quotes that do not match.
pub fn split_line(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = line.trim_ascii();
    while !rest.is_empty() {
        let (word, after) = next_word(rest)?;
        words.push(word);
        rest = after.trim_ascii_start();
    }
    Some(words)
}

fn next_word(mut rest: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut word = Vec::new();
    loop {
        match *rest {
            [] => return Some((word, rest)),
            [byte, ..] if byte.is_ascii_whitespace() => return Some((word, rest)),
            [quote @ (b'"' | b'\''), ref quoted @ ..] => {
                rest =
                    if quote == b'"' { double_quoted(quoted, &mut word)? } else { single_quoted(quoted, &mut word)? };
                // Another byte behind the quote is a mistake rather than a longer word.
                return rest.first().is_none_or(u8::is_ascii_whitespace).then_some((word, rest));
            }
            [byte, ref after @ ..] => {
                word.push(byte);
                rest = after;
            }
        }
    }
}

fn single_quoted<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match *rest {
            [] => return None,
            [b'\'', ref after @ ..] => return Some(after),
            [b'\\', b'\'', ref after @ ..] => {
                word.push(b'\'');
                rest = after;
            }
            [byte, ref after @ ..] => {
                word.push(byte);
                rest = after;
            }
        }
    }
}

fn double_quoted<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    let hex = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    loop {
        match *rest {
            [] => return None,
            [b'"', ref after @ ..] => return Some(after),
            [b'\\', b'x', high, low, ref after @ ..] if hex(high).is_some() && hex(low).is_some() => {
                word.push(hex(high)? << 4 | hex(low)?);
                rest = after;
            }
            [b'\\', escaped, ref after @ ..] => {
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'a' => 0x07,
                    b'b' => 0x08,
                    other => other,
                });
                rest = after;
            }
            [byte, ref after @ ..] => {
                word.push(byte);
                rest = after;
            }
        }
    }
}

/// What a command line says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CommandLine {
    /// Configuration file to read before the options: a first word that is no option. `-` is standard input.
    pub file: Option<Vec<u8>>,
    /// The options, in order.
    pub options: Vec<Directive>,
}

/// Reads the words behind the name of the program: a file, if the first word is none of the options, then options with
/// their values. A word with two dashes begins an option, but right behind an option that wants a value it does so only if
/// a setting has that name: a password may begin with dashes.
pub fn parse_command_line<T: AsRef<[u8]>>(words: &[T]) -> Result<CommandLine, TextError> {
    let mut line = CommandLine::default();
    for (index, word) in words.iter().enumerate() {
        let (position, word) = (index + 1, word.as_ref());
        let option = word.strip_prefix(b"--").filter(|name| !name.is_empty());
        match (option, line.options.last_mut()) {
            (Some(name), Some(last)) if last.words.is_empty() && !super::is_known(name) => {
                last.words.push(word.to_vec())
            }
            (Some(name), _) => line.options.push(Directive { position, name: name.to_vec(), words: Vec::new() }),
            (None, Some(last)) => last.words.push(word.to_vec()),
            (None, None) if index == 0 => line.file = Some(word.to_vec()),
            (None, None) => {
                return Err(TextError { position, reason: "an option begins with two dashes, such as --port" });
            }
        }
    }
    // Without a value `--save` means no snapshots, as in Redis.
    for option in &mut line.options {
        if option.words.is_empty() && option.name.eq_ignore_ascii_case(b"save") {
            option.words.push(Vec::new());
        }
    }
    Ok(line)
}
