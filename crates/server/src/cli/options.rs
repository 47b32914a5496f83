//! Reading the options of the commands that talk to a server: `--name value` or `--name=value`, until `--`.

use std::time::Duration;

use crate::client::{Address, Connection, Failure};

/// How long a server may take to answer, where no option says otherwise.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Words of a command line, one after the other.
pub(super) struct Words<'a> {
    words: std::slice::Iter<'a, Vec<u8>>,
    /// What stood behind the `=` of the current option.
    value: Option<String>,
    /// Where the server is.
    pub address: Address,
    /// How long it may take.
    pub timeout: Duration,
}

/// A word.
pub(super) enum Word<'a> {
    /// `--name`; its value is fetched with [`Words::value`].
    Option(String),
    /// Anything else.
    Plain(&'a [u8]),
}

impl<'a> Words<'a> {
    pub fn new(words: &'a [Vec<u8>]) -> Result<Words<'a>, String> {
        let address = match std::env::var("IMPEL_URL") {
            Ok(url) if !url.is_empty() => Address::parse(&url).map_err(|what| format!("IMPEL_URL: {what}"))?,
            _ => Address::default(),
        };
        Ok(Words { words: words.iter(), value: None, address, timeout: TIMEOUT })
    }

    /// The next word that does not say where the server is; nothing at the end, or behind `--`.
    pub fn next(&mut self) -> Result<Option<Word<'a>>, String> {
        loop {
            if let Some(value) = self.value.take() {
                return Err(format!("an option that takes no value was given {value:?}"));
            }
            let Some(word) = self.words.next() else { return Ok(None) };
            if word == b"--" {
                return Ok(None);
            }
            if !word.starts_with(b"--") && word != b"-h" && word != b"-u" {
                return Ok(Some(Word::Plain(word)));
            }
            let word = String::from_utf8(word.clone()).map_err(|_| "an option that is not UTF-8")?;
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (word, None),
            };
            self.value = value;
            let mut address = self.address.clone();
            if address.take(&name, || self.value(&name))? {
                self.address = address;
                continue;
            }
            if name == "--reply-timeout" {
                self.timeout = Duration::from_millis(self.number(&name)?.max(1));
                continue;
            }
            return Ok(Some(Word::Option(name)));
        }
    }

    /// The value of the option `name`.
    pub fn value(&mut self, name: &str) -> Result<String, String> {
        if let Some(value) = self.value.take() {
            return Ok(value);
        }
        let word = self.words.next().ok_or_else(|| format!("{name} wants a value"))?;
        String::from_utf8(word.clone()).map_err(|_| format!("the value of {name} is not UTF-8"))
    }

    /// The same, a number.
    pub fn number(&mut self, name: &str) -> Result<u64, String> {
        let value = self.value(name)?;
        value.parse().map_err(|_| format!("{name} wants a number, 0 or more, and not {value:?}"))
    }

    /// What has not been looked at.
    pub fn take_rest(&mut self) -> Vec<Vec<u8>> {
        self.words.by_ref().cloned().collect()
    }
}

/// Reads a command line: what `parse` makes of it, and the words, which know where the server is. `None`: help is wanted.
pub(super) fn read<'a, T>(
    words: &'a [Vec<u8>],
    parse: impl FnOnce(&mut Words<'a>) -> Result<Option<T>, String>,
) -> Result<Option<(T, Words<'a>)>, String> {
    let mut words = Words::new(words)?;
    Ok(parse(&mut words)?.map(|arguments| (arguments, words)))
}

/// Connects.
pub(super) fn connect(address: &Address, timeout: Duration) -> Result<Connection, String> {
    Connection::open(address, timeout).map_err(|failure| trouble(address, &failure))
}

/// What went wrong, and with which server.
pub(super) fn trouble(address: &Address, failure: &Failure) -> String {
    format!("{address}: {failure}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_in_both_forms_and_what_stands_behind_the_dashes() {
        let words: Vec<Vec<u8>> =
            ["a", "--url=redis://h:1/2", "--n", "3", "--port", "5", "--", "--x"].map(|w| w.as_bytes().to_vec()).into();
        let mut words = Words::new(&words).unwrap();
        assert!(matches!(words.next(), Ok(Some(Word::Plain(b"a")))));
        assert!(matches!(words.next(), Ok(Some(Word::Option(name))) if name == "--n"));
        assert_eq!(words.number("--n"), Ok(3));
        assert!(matches!(words.next(), Ok(None)));
        assert_eq!(words.address.to_string(), "redis://h:5/2");
        assert_eq!(words.take_rest(), [b"--x".to_vec()]);
    }

    #[test]
    fn a_value_that_nobody_takes_is_an_error() {
        let words = [b"--json=yes".to_vec()];
        let mut words = Words::new(&words).unwrap();
        assert!(matches!(words.next(), Ok(Some(Word::Option(_)))));
        assert!(words.next().is_err());
        let words = [b"--n".to_vec()];
        let mut words = Words::new(&words).unwrap();
        assert!(words.next().is_ok() && words.number("--n").is_err());
    }
}
