//! The command line and configuration files, as redis-server takes them: a file (or `-` for standard input) may come
//! first, then `--name value ...`. What a name means is in the settings table of the core; here are only the files,
//! the words, and where in them something is wrong.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::Path;

use impel_core::engine::acl;
use impel_core::settings::text::{self, Directive};
use impel_core::settings::{self, Applied, Settings};

use crate::cli;
use crate::disk;

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
        /// What it is.
        kind: &'static str,
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
            ConfigError::File { kind, file, source } => {
                write!(f, "cannot read the {kind} {file}: {source}")?;
                match source.kind() {
                    io::ErrorKind::PermissionDenied => write!(f, " ({})", disk::MUST_READ),
                    _ => Ok(()),
                }
            }
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
    // Anywhere, for those who add it to a line they have typed. The short forms may be values, so only alone.
    let asks_for = |long: &[u8], short: &[u8]| words.iter().any(|word| word == long) || *words == [short];
    if asks_for(b"--help", b"-h") {
        return Ok(Invocation::Print(help()));
    }
    if asks_for(b"--version", b"-v") {
        return Ok(Invocation::Print(version()));
    }
    let mut reading = Reading { settings: Settings::default(), notes: Vec::new() };
    let place = "command line";
    let line = text::parse_command_line(words)
        .map_err(|error| ConfigError::Wrong { place: place.into(), what: error.to_string() })?;
    let config_file = line.file.map_or_else(String::new, |file| String::from_utf8_lossy(&file).into_owned());
    if !config_file.is_empty() {
        reading.file(&config_file, 0)?;
    }
    for option in &line.options {
        reading.follow(place, option, 0)?;
    }
    let aclfile = reading.settings.aclfile.clone();
    if !aclfile.is_empty() {
        if !reading.settings.users.is_empty() {
            let what = "users stand in the configuration or in the aclfile, not in both".into();
            return Err(ConfigError::Wrong { place: place.into(), what });
        }
        reading.users(&aclfile)?;
    }
    let Reading { settings, notes } = reading;
    Ok(Invocation::Serve(Box::new(Start { settings, config_file, notes })))
}

fn help() -> String {
    let commands = cli::help();
    let usage = format!(
        "\
Usage: impel [FILE | -] [--NAME VALUE ...]
       impel --help | --version
{commands}
Serves Redis streams. Without any option: on port 6379 of this machine, with everything kept in ./impel-data.
FILE is a configuration file as redis.conf is one; - reads it from standard input. Every setting of it can be
given as an option as well: --port 7000 --save \"\".

"
    );
    format!("{usage}{}", settings::help_text())
}

struct Reading {
    settings: Settings,
    notes: Vec<String>,
}

impl Reading {
    fn apply(&mut self, place: &str, directive: &Directive) -> Result<(), ConfigError> {
        match self.settings.apply(&directive.name, &directive.words) {
            Ok(Applied::Honoured(_)) => Ok(()),
            Ok(Applied::Known(name)) => {
                self.notes.push(format!("{place}: {name} is taken and has no meaning here"));
                Ok(())
            }
            Err(error) => Err(ConfigError::Wrong { place: place.into(), what: error.to_string() }),
        }
    }

    /// Does what a line of a file or an option says.
    fn follow(&mut self, place: &str, directive: &Directive, depth: usize) -> Result<(), ConfigError> {
        if !directive.is_include() {
            return self.apply(place, directive);
        }
        if depth == INCLUDE_DEPTH_MAX {
            return Err(ConfigError::Wrong { place: place.into(), what: "too many files include each other".into() });
        }
        directive.words.iter().try_for_each(|file| self.file(&String::from_utf8_lossy(file), depth + 1))
    }

    /// Takes the users of the ACL file.
    fn users(&mut self, file: &str) -> Result<(), ConfigError> {
        let bytes = disk::read_text_file(Path::new(file)).map_err(|source| ConfigError::File {
            kind: "file of users (aclfile)",
            file: file.into(),
            source,
        })?;
        let users = acl::users_of_file(&bytes)
            .map_err(|(line, what)| ConfigError::Wrong { place: format!("{file}:{line}"), what })?;
        users.iter().try_for_each(|(line, words)| {
            let applied = self.settings.apply(b"user", words).map(|_| ());
            applied.map_err(|error| ConfigError::Wrong { place: format!("{file}:{line}"), what: error.to_string() })
        })
    }

    fn file(&mut self, file: &str, depth: usize) -> Result<(), ConfigError> {
        let bytes = match file {
            "-" => disk::read_text(io::stdin()),
            file => disk::read_text_file(Path::new(file)),
        };
        let bytes =
            bytes.map_err(|source| ConfigError::File { kind: "configuration file", file: file.into(), source })?;
        let place = |line: usize| format!("{file}:{line}");
        let directives = text::parse_file(&bytes)
            .map_err(|error| ConfigError::Wrong { place: place(error.position), what: error.to_string() })?;
        directives.iter().try_for_each(|directive| self.follow(&place(directive.position), directive, depth))
    }
}

#[cfg(test)]
mod tests;
