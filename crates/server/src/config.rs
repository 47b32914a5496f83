//! The command line and configuration files, as redis-server takes them: a file (or `-` for standard input) may come
//! first, then `--name value ...`. What a name means is in the settings table of the core; here are only the files,
//! the words, and where in them something is wrong.

use std::error::Error;
use std::fmt;
use std::fs;
use std::io::Read;
use std::path::Path;

use impel_core::resp::decode::split_words;
use impel_core::settings::{self, Applied, Settings};

/// How deep `include` may go.
const INCLUDE_DEPTH_MAX: usize = 16;

/// What the command line asks for.
#[derive(Debug)]
pub enum Invocation {
    /// Serve.
    Serve(Box<Start>),
    /// Print this and end.
    Print(String),
}

/// What serving starts from.
#[derive(Debug)]
pub struct Start {
    /// The settings.
    pub settings: Settings,
    /// The configuration file, as it was named; empty if there was none.
    pub config_file: String,
    /// Lines to log once there is a log.
    pub notes: Vec<String>,
}

/// Why the settings could not be taken.
#[derive(Debug)]
pub enum ConfigError {
    /// A file could not be read.
    File {
        /// The file.
        file: String,
        /// Why not.
        source: std::io::Error,
    },
    /// A line or an option is wrong.
    Wrong {
        /// `FILE:LINE`, or `command line`.
        place: String,
        /// What is wrong there.
        what: String,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::File { file, source } => write!(f, "cannot read the configuration file {file}: {source}"),
            ConfigError::Wrong { place, what } => write!(f, "{place}: {what} (impel --help lists the settings)"),
        }
    }
}

impl Error for ConfigError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            ConfigError::File { source, .. } => Some(source),
            ConfigError::Wrong { .. } => None,
        }
    }
}

/// The version line.
pub fn version() -> String {
    format!("impel {} ({} {})", env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH)
}

/// Reads a command line (without the program's name) and what it names.
pub fn read(words: &[Vec<u8>]) -> Result<Invocation, ConfigError> {
    match words {
        [only] if matches!(&only[..], b"--help" | b"-h") => {
            return Ok(Invocation::Print(help()));
        }
        [only] if matches!(&only[..], b"--version" | b"-v") => return Ok(Invocation::Print(version())),
        _ => {}
    }
    let mut reading = Reading { settings: Settings::default(), notes: Vec::new() };
    let mut config_file = String::new();
    let mut options = words;
    if let Some((first, rest)) = words.split_first()
        && !first.starts_with(b"--")
    {
        config_file = String::from_utf8_lossy(first).into_owned();
        reading.file(&config_file, 0)?;
        options = rest;
    }
    reading.options(options)?;
    let Reading { settings, notes } = reading;
    Ok(Invocation::Serve(Box::new(Start { settings, config_file, notes })))
}

fn help() -> String {
    let usage = "\
Usage: impel [FILE | -] [--NAME VALUE ...]
       impel --help | --version

Serves Redis streams. Without any option: on port 6379 of this machine, with everything kept in ./impel-data.
FILE is a configuration file as redis.conf is one; - reads it from standard input. Every setting of it can be
given as an option as well: --port 7000 --save \"\".

";
    format!("{usage}{}", settings::help_text())
}

struct Reading {
    settings: Settings,
    notes: Vec<String>,
}

impl Reading {
    fn apply(&mut self, place: &str, name: &[u8], words: &[&[u8]]) -> Result<(), ConfigError> {
        match self.settings.apply(name, words) {
            Ok(Applied::Honoured(_)) => Ok(()),
            Ok(Applied::Known(name)) => {
                self.notes.push(format!("{place}: {name} is taken and has no meaning here"));
                Ok(())
            }
            Err(error) => Err(ConfigError::Wrong { place: place.into(), what: error.to_string() }),
        }
    }

    fn options(&mut self, words: &[Vec<u8>]) -> Result<(), ConfigError> {
        let place = "command line";
        let mut rest = words;
        while let Some((first, more)) = rest.split_first() {
            let Some(name) = first.strip_prefix(b"--").filter(|name| !name.is_empty()) else {
                let what = format!("'{}' is not an option", String::from_utf8_lossy(first));
                return Err(ConfigError::Wrong { place: place.into(), what });
            };
            // A value may begin with two dashes as well: the first one does not end the option unless it is a name.
            let count = more
                .iter()
                .enumerate()
                .position(|(at, word)| match word.strip_prefix(b"--") {
                    Some(name) => at > 0 || settings::is_known(name),
                    None => false,
                })
                .unwrap_or(more.len());
            let values: Vec<&[u8]> = more[..count].iter().map(Vec::as_slice).collect();
            if name.eq_ignore_ascii_case(b"include") {
                for file in values {
                    self.file(&String::from_utf8_lossy(file), 1)?;
                }
            } else {
                self.apply(place, name, &values)?;
            }
            rest = &more[count..];
        }
        Ok(())
    }

    fn file(&mut self, file: &str, depth: usize) -> Result<(), ConfigError> {
        let unreadable = |source| ConfigError::File { file: file.into(), source };
        let mut text = Vec::new();
        match file {
            "-" => std::io::stdin().read_to_end(&mut text).map(|_| ()).map_err(unreadable)?,
            file => text = fs::read(Path::new(file)).map_err(unreadable)?,
        }
        let (mut bytes, mut spans) = (Vec::new(), Vec::new());
        for (number, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() || line[0] == b'#' {
                continue;
            }
            let place = format!("{file}:{}", number + 1);
            bytes.clear();
            spans.clear();
            if split_words(line, &mut bytes, &mut spans).is_none() {
                return Err(ConfigError::Wrong { place, what: "unbalanced quotes".into() });
            }
            let words: Vec<&[u8]> = spans.iter().map(|&(start, end)| &bytes[start..end]).collect();
            let Some((name, values)) = words.split_first() else { continue };
            if !name.eq_ignore_ascii_case(b"include") {
                self.apply(&place, name, values)?;
                continue;
            }
            if depth == INCLUDE_DEPTH_MAX {
                return Err(ConfigError::Wrong { place, what: "too many files include each other".into() });
            }
            for other in values {
                self.file(&String::from_utf8_lossy(other), depth + 1)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
