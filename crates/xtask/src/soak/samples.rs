//! What was seen of the server while it worked: a line of numbers for each moment, whether any of them grows, a drawing.

use serde_json::{Value as Json, json};

use crate::svg::Svg;

/// A moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Seconds since the beginning.
    pub at_s: f64,
    /// Entries added a second since the sample before.
    pub added_per_s: f64,
    /// Entries given a second, all groups together.
    pub given_per_s: f64,
    /// The 99th percentile of the calls since the sample before, in ms; 0: there was none.
    pub p99_ms: f64,
    /// RAM of the server's process, in MiB; 0: there was none.
    pub rss_mib: f64,
    /// What lies in the data directory, in MiB.
    pub disk_mib: f64,
}

/// The part at the beginning in which caches fill and streams reach their length.
const WARM_UP: f64 = 0.15;

/// One of its numbers.
pub type Number = fn(&Sample) -> f64;

/// A series, quarter by quarter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// The medians of the four quarters behind the warm-up.
    pub quarters: [f64; 4],
    /// By how much it grows in an hour, by least squares.
    pub per_hour: f64,
}

impl Trend {
    /// Of the numbers that are there (not 0); `None` if they are too few.
    pub fn of(samples: &[Sample], number: Number) -> Option<Trend> {
        let points: Vec<(f64, f64)> =
            samples.iter().map(|sample| (sample.at_s, number(sample))).filter(|(_, number)| *number > 0.0).collect();
        let points = &points[(points.len() as f64 * WARM_UP) as usize..];
        if points.len() < 4 {
            return None;
        }
        let quarters = std::array::from_fn(|quarter| {
            let part = &points[points.len() * quarter / 4..points.len() * (quarter + 1) / 4];
            let mut numbers: Vec<f64> = part.iter().map(|(_, number)| *number).collect();
            numbers.sort_by(f64::total_cmp);
            numbers[numbers.len() / 2]
        });
        let n = points.len() as f64;
        let mean = points.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0 / n, sum.1 + point.1 / n));
        let (mut above, mut below) = (0.0, 0.0);
        for (at_s, number) in points {
            above += (at_s - mean.0) * (number - mean.1);
            below += (at_s - mean.0) * (at_s - mean.0);
        }
        Some(Trend { quarters, per_hour: if below > 0.0 { 3600.0 * above / below } else { 0.0 } })
    }

    /// Is the last quarter above the first by more than a share of it and so much besides?
    pub fn grows(&self, share: f64, besides: f64) -> bool {
        self.quarters[3] > self.quarters[0] * (1.0 + share) + besides
    }
}

/// The samples for the file.
pub fn to_json(samples: &[Sample]) -> Json {
    let row = |sample: &Sample| {
        json!({"at_s": sample.at_s, "added_per_s": sample.added_per_s, "given_per_s": sample.given_per_s,
               "p99_ms": sample.p99_ms, "rss_mib": sample.rss_mib, "disk_mib": sample.disk_mib})
    };
    samples.iter().map(row).collect()
}

const WIDTH_PX: usize = 1100;
const LEFT_PX: f64 = 90.0;
const PANEL_PX: f64 = 170.0;

/// A curve: what it is called, its number, its color.
type Curve = (&'static str, Number, &'static str);

const PANELS: [(&str, &[Curve]); 3] = [
    ("entries a second", &[("added", |s| s.added_per_s, "#27a"), ("given, all groups", |s| s.given_per_s, "#2a7")]),
    ("ms, 99th percentile of all calls", &[("p99", |s| s.p99_ms, "#c63")]),
    ("MiB", &[("RSS", |s| s.rss_mib, "#827"), ("data directory", |s| s.disk_mib, "#888")]),
];

/// Draws the samples; dashed: the server was taken away.
pub fn draw(title: &str, samples: &[Sample], restarts_s: &[f64]) -> String {
    let mut svg = Svg::new(WIDTH_PX, (PANELS.len() as f64 * PANEL_PX) as usize + 60);
    svg.title(10.0, 20.0, title);
    let end_s = samples.last().map_or(1.0, |sample| sample.at_s).max(1e-9);
    let x = |at_s: f64| LEFT_PX + at_s / end_s * (WIDTH_PX as f64 - LEFT_PX - 20.0);
    for (place, (unit, curves)) in PANELS.iter().enumerate() {
        let (top, bottom) = (40.0 + place as f64 * PANEL_PX, 10.0 + (place + 1) as f64 * PANEL_PX);
        let numbers = curves.iter().flat_map(|(_, number, _)| samples.iter().map(number));
        let most = numbers.fold(1e-9, f64::max);
        restarts_s.iter().for_each(|at_s| svg.dashes([x(*at_s), top, x(*at_s), bottom], "#bbb"));
        svg.curve(&[(LEFT_PX, top), (LEFT_PX, bottom), (x(end_s), bottom)], "black");
        svg.text(8.0, top + 10.0, &format!("{most:.1}"));
        svg.text(8.0, bottom, "0");
        svg.text(LEFT_PX + 8.0, top - 6.0, unit);
        for (number, (name, value, color)) in curves.iter().enumerate() {
            let left = LEFT_PX + 260.0 + number as f64 * 160.0;
            svg.rect([left, top - 12.0, 16.0, 4.0], color);
            svg.text(left + 22.0, top - 6.0, name);
            let y = |value: f64| bottom - value / most * (bottom - top);
            let points: Vec<(f64, f64)> = samples.iter().map(|sample| (x(sample.at_s), y(value(sample)))).collect();
            svg.curve(&points, color);
        }
    }
    svg.text(x(end_s) - 60.0, 30.0 + PANELS.len() as f64 * PANEL_PX, &format!("{end_s:.0} s"));
    svg.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(rss: impl Fn(f64) -> f64) -> Vec<Sample> {
        (0..100)
            .map(|n| Sample { at_s: f64::from(n) * 36.0, rss_mib: rss(f64::from(n)), ..Sample::default() })
            .collect()
    }

    #[test]
    fn growth_is_told_from_noise_and_from_warming_up() {
        let of = |samples: &[Sample]| Trend::of(samples, |sample| sample.rss_mib).expect("enough of them");
        let flat = of(&samples(|n| if n < 10.0 { n } else { 100.0 + n % 7.0 }));
        assert!(!flat.grows(0.1, 1.0) && flat.per_hour.abs() < 3.0, "{flat:?}");
        let growing = of(&samples(|n| 100.0 + n));
        assert!(growing.grows(0.1, 1.0), "{growing:?}");
        assert!((growing.per_hour - 100.0).abs() < 0.1, "{growing:?}");
        // Moments without a server do not count.
        assert_eq!(of(&samples(|n| if n % 5.0 == 0.0 { 0.0 } else { 50.0 })).quarters, [50.0; 4]);
        assert_eq!(Trend::of(&samples(|_| 0.0), |sample| sample.rss_mib), None);
    }

    #[test]
    fn every_number_has_a_curve() {
        let svg = draw("title", &samples(|n| n), &[100.0]);
        assert_eq!(svg.matches("<polyline").count(), 3 + 5);
        assert_eq!(svg.matches("stroke-dasharray").count(), 3);
    }
}
