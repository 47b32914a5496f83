//! Times for people: Unix milliseconds as ISO 8601 in UTC, and back. Pure; nothing here reads a clock.

/// Unix ms as ISO 8601 in UTC.
pub fn timestamp(unix_ms: u64) -> String {
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

/// The days from 1970-01-01 to a date; the other way round than [`date`].
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    // In years that begin in March.
    let (year, month_from_march) = if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    (year * 365 + year / 4 - year / 100 + year / 400 + day_of_year).checked_sub(719_468)
}

/// Unix ms of a time as people write it, UTC: `2026-11-30`, `2026-11-30T12:34`, `2026-11-30T12:34:56.789Z` (a space does for the
/// `T`), or seconds since 1970 with or without a fraction (`1796040000.5`). `None` for anything else.
pub fn parse(text: &str) -> Option<u64> {
    match text.split_once('-') {
        None => seconds(text),
        Some(_) => {
            let text = text.strip_suffix('Z').unwrap_or(text);
            let (date_text, time_text) = text.split_once(['T', ' ']).unwrap_or((text, "0:0"));
            let mut date_parts = date_text.split('-').map(digits);
            let (year, month, day) = (date_parts.next()??, date_parts.next()??, date_parts.next()??);
            let mut time_parts = time_text.splitn(3, ':');
            let (hour, minute) = (digits(time_parts.next()?)?, digits(time_parts.next()?)?);
            let second_ms = time_parts.next().map_or(Some(0), seconds)?;
            let days = days(year, month, day)?;
            let is_valid = date_parts.next().is_none()
                && year <= 9999
                && (1..=12).contains(&month)
                && date(days) == (year, month, day)
                && (hour < 24 && minute < 60 && second_ms < 60_000);
            is_valid.then_some(((days * 24 + hour) * 60 + minute) * 60_000 + second_ms)
        }
    }
}

/// Digits and nothing else, few enough for what a time can be.
fn digits(text: &str) -> Option<u64> {
    let is_number = (1..=12).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

/// Seconds with or without a fraction, in ms; more digits than three are cut off.
fn seconds(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    digits(fraction)?;
    let ms: u64 = format!("{fraction:0<3}")[..3].parse().ok()?;
    Some(digits(whole)? * 1000 + ms)
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

    #[test]
    fn times_are_read_as_they_are_written() {
        for ms in [0, 1, 951_782_399_999, 951_868_800_000, 1_709_164_800_001, 1_767_225_599_000, 253_402_300_799_999] {
            assert_eq!(parse(&timestamp(ms)), Some(ms));
        }
        assert_eq!(parse("2024-02-29"), Some(1_709_164_800_000));
        assert_eq!(parse("2024-02-29 00:01"), Some(1_709_164_860_000));
        assert_eq!(parse("2024-02-29T00:01:02"), Some(1_709_164_862_000));
        assert_eq!(parse("2024-02-29T00:01:02.5Z"), Some(1_709_164_862_500));
        assert_eq!(parse("1709164862"), Some(1_709_164_862_000));
        assert_eq!(parse("1709164862.1239"), Some(1_709_164_862_123));
        for wrong in [
            "",
            "now",
            "-1",
            "-",
            "2023-02-29",
            "2024-13-01",
            "2024-00-01",
            "2024-01-00",
            "2024-01-01T24:00",
            "2024-01-01T1",
            "2024-01-01T00:60",
            "2024-01-01T00:00:60",
            "2024-01-01T00:00:00.",
            "2024-01-01T00:00:00+01:00",
            "2024-1-1-1",
            "+5",
            "1.2.3",
            "99999999999999999999",
            "1969-12-31",
            "0000-01-01",
            "20240-01-01",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
