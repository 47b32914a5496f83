//! Log lines: `2026-01-31T12:00:00.000Z notice text`, to standard output or to a file, one write each. Levels are those
//! of `loglevel`; `error!` and `warn!` are both `warning`.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;

use impel_core::settings::LogLevel;
use log::{Level, LevelFilter, Log, Metadata, Record};

use crate::calendar::timestamp;
use crate::clock;

struct Logger {
    /// `None`: standard output.
    file: Option<Mutex<File>>,
}

/// Makes the `log` crate's macros write where `path` says (empty: standard output). Only the first call of a process
/// has an effect; later ones change the level alone.
pub fn start(path: &str, level: LogLevel) -> io::Result<()> {
    let file = match path {
        "" => None,
        path => Some(Mutex::new(OpenOptions::new().create(true).append(true).open(Path::new(path))?)),
    };
    // An error means that there is one already.
    let _ = log::set_boxed_logger(Box::new(Logger { file }));
    set_level(level);
    Ok(())
}

/// Which lines are written from now on.
pub fn set_level(level: LogLevel) {
    log::set_max_level(match level {
        LogLevel::Debug => LevelFilter::Trace,
        LogLevel::Verbose => LevelFilter::Debug,
        LogLevel::Notice => LevelFilter::Info,
        LogLevel::Warning => LevelFilter::Warn,
        LogLevel::Nothing => LevelFilter::Off,
    });
}

impl Log for Logger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let level = match record.level() {
            Level::Error | Level::Warn => "warning",
            Level::Info => "notice",
            Level::Debug => "verbose",
            Level::Trace => "debug",
        };
        let line = format!("{} {level} {}\n", timestamp(clock::wall_us() / 1000), record.args());
        // There is nowhere to tell that a line could not be written.
        let _ = match &self.file {
            None => io::stdout().lock().write_all(line.as_bytes()),
            Some(file) => file.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).write_all(line.as_bytes()),
        };
    }

    fn flush(&self) {}
}
