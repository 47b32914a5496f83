//! Configuration as text: lines of a file and words of a command line become directives. Knows quoting; what a directive
//! means is for [`Settings::apply`](super::Settings::apply). Reads no file: an `include` is a directive that the caller follows.

use std::fmt;

use crate::resp::decode::split_words;

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
    /// Are the words paths of files to read at this place?
    pub fn is_include(&self) -> bool {
        self.name.eq_ignore_ascii_case(b"include")
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
        f.write_str(self.reason)
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

/// The words of a line, as [`split_words`] finds them; `None` for quotes that do not match.
fn split_line(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (mut bytes, mut spans) = (Vec::new(), Vec::new());
    split_words(line, &mut bytes, &mut spans)?;
    Some(spans.iter().map(|&(start, end)| bytes[start..end].to_vec()).collect())
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
