//! Reading a command's options: `--name VALUE`, `--name=VALUE`, flags and positional words.
//!
//! An option that a command does not name is an error, never passed over.

use std::collections::HashMap;

/// What a command understands.
#[derive(Debug)]
pub struct Syntax {
    /// The text of `--help`.
    pub help: &'static str,
    /// Options with a value, with their dashes; each may be repeated.
    pub options: &'static [&'static str],
    /// Options without one, with their dashes.
    pub flags: &'static [&'static str],
    /// How many positional words there may be.
    pub words: usize,
}

/// The options of one invocation.
#[derive(Debug, Default, PartialEq)]
pub struct Arguments {
    options: HashMap<String, Vec<String>>,
    flags: Vec<String>,
    words: Vec<String>,
}

/// Why a command does not run.
#[derive(Debug, PartialEq)]
pub enum Stop {
    /// `--help` was asked for: this is it.
    Help(&'static str),
    /// The arguments make no sense, or what they name cannot be used.
    Usage(String),
}

impl From<String> for Stop {
    fn from(message: String) -> Self {
        Stop::Usage(message)
    }
}

impl Arguments {
    /// Reads the words after the command's name.
    ///
    /// # Errors
    /// [`Stop::Help`] for `--help`, [`Stop::Usage`] for what the syntax does not know.
    pub fn parse(words: &[String], syntax: &Syntax) -> Result<Self, Stop> {
        let mut parsed = Arguments::default();
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
                _ => (word.as_str(), None),
            };
            if matches!(name, "--help" | "-h") {
                return Err(Stop::Help(syntax.help));
            } else if syntax.options.contains(&name) {
                let value = value.or_else(|| rest.next().cloned());
                let value = value.ok_or_else(|| Stop::Usage(format!("{name} needs a value")))?;
                parsed.options.entry(name.to_owned()).or_default().push(value);
            } else if syntax.flags.contains(&name) && value.is_none() {
                parsed.flags.push(name.to_owned());
            } else if name.starts_with('-') {
                return Err(Stop::Usage(format!("unknown option {word}; --help lists them")));
            } else if parsed.words.len() == syntax.words {
                return Err(Stop::Usage(format!("{word} is one word too many; --help shows the syntax")));
            } else {
                parsed.words.push(word.clone());
            }
        }
        Ok(parsed)
    }

    /// Every value of a repeatable option.
    pub fn all(&self, name: &str) -> &[String] {
        self.options.get(name).map_or(&[], Vec::as_slice)
    }

    /// The last value of an option.
    pub fn one(&self, name: &str) -> Option<&str> {
        self.all(name).last().map(String::as_str)
    }

    /// The last value of an option as a number, or `default`.
    ///
    /// # Errors
    /// When it is none, or below `low`.
    pub fn number<N: std::str::FromStr + PartialOrd + std::fmt::Display>(
        &self,
        name: &str,
        default: N,
        low: N,
    ) -> Result<N, Stop> {
        match self.one(name) {
            None => Ok(default),
            Some(text) => match text.parse::<N>() {
                Ok(number) if number >= low => Ok(number),
                _ => Err(Stop::Usage(format!("{name} must be a number from {low} on, not {text:?}"))),
            },
        }
    }

    /// Whether a flag was given.
    pub fn has(&self, name: &str) -> bool {
        self.flags.iter().any(|flag| flag == name)
    }

    /// The positional words.
    pub fn words(&self) -> &[String] {
        &self.words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYNTAX: Syntax = Syntax { help: "help", options: &["--case"], flags: &["--list"], words: 1 };

    fn parse(line: &str) -> Result<Arguments, Stop> {
        Arguments::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>(), &SYNTAX)
    }

    #[test]
    fn options_flags_and_words() {
        let arguments = parse("here --case a --list --case=b=c").expect("arguments");
        assert_eq!(arguments.all("--case"), ["a", "b=c"]);
        assert_eq!(arguments.one("--case"), Some("b=c"));
        assert!(arguments.has("--list"));
        assert_eq!(arguments.words(), ["here"]);
        assert_eq!(parse("--case 7").expect("arguments").number("--case", 1, 1), Ok(7));
        assert_eq!(parse("").expect("arguments").number("--case", 1, 1), Ok(1));
    }

    #[test]
    fn mistakes() {
        assert_eq!(parse("--help"), Err(Stop::Help("help")));
        for line in ["--cases a", "--case", "a b", "--list=1", "-x"] {
            assert!(matches!(parse(line), Err(Stop::Usage(_))), "{line}");
        }
        for line in ["--case x", "--case 0"] {
            assert!(parse(line).expect("arguments").number("--case", 1, 1).is_err(), "{line}");
        }
    }
}
