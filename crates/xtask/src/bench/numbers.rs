//! The few statistics of a comparison.

/// Median, smallest and largest of some measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The middle one, or the mean of the two in the middle.
    pub median: f64,
    /// The smallest.
    pub low: f64,
    /// The largest.
    pub high: f64,
}

impl Spread {
    /// Of one or more numbers; `None` of none.
    pub fn of(numbers: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = numbers.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (low, high) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = if sorted.len().is_multiple_of(2) {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        } else {
            sorted[middle]
        };
        Some(Spread { median, low, high })
    }

    /// Half the distance from smallest to largest, in percent of the median.
    pub fn percent(&self) -> f64 {
        if self.median == 0.0 { 0.0 } else { (self.high - self.low) / 2.0 / self.median * 100.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::Spread;

    #[test]
    fn medians() {
        assert_eq!(Spread::of([]), None);
        assert_eq!(Spread::of([3.0, 1.0, 2.0]), Some(Spread { median: 2.0, low: 1.0, high: 3.0 }));
        assert_eq!(Spread::of([4.0, 2.0]), Some(Spread { median: 3.0, low: 2.0, high: 4.0 }));
        assert_eq!(Spread { median: 10.0, low: 9.0, high: 11.0 }.percent(), 10.0);
        assert_eq!(Spread { median: 0.0, low: 0.0, high: 0.0 }.percent(), 0.0);
    }
}
