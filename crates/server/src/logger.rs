//! Log lines: `2026-01-31T12:00:00.000Z notice text`, to standard output or to a file, one write each. Levels are those
//! of `loglevel`; `error!` and `warn!` are both `warning`.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;

use impel_core::settings::LogLevel;
use log::{Level, LevelFilter, Log, Metadata, Record};

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

/// Unix ms as ISO 8601 in UTC.
pub(crate) fn timestamp(unix_ms: u64) -> String {
    let (days, ms_of_day) = (unix_ms / 86_400_000, unix_ms % 86_400_000);
    let (year, month, day) = date(days);
    let (hour, minute) = (ms_of_day / 3_600_000, ms_of_day / 60_000 % 60);
    let (second, ms) = (ms_of_day / 1000 % 60, ms_of_day % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// The date so many days after 1970-01-01, counted in years that begin in March: then the leap day is the last one.
fn date(days: u64) -> (u64, u64, u64) {
    // 719468 days from 0000-03-01 to 1970-01-01; 146097 days in 400 years.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc() {
        assert_eq!(timestamp(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(timestamp(951_782_399_999), "2000-02-28T23:59:59.999Z");
        assert_eq!(timestamp(951_868_800_000), "2000-03-01T00:00:00.000Z");
        assert_eq!(timestamp(1_709_164_800_001), "2024-02-29T00:00:00.001Z");
        assert_eq!(timestamp(1_767_225_599_000), "2025-12-31T23:59:59.000Z");
        assert_eq!(timestamp(4_102_444_800_000), "2100-01-01T00:00:00.000Z");
    }
}
