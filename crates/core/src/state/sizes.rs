//! How large the values of a database are: for each type, how many values there are in each power of two. Kept with
//! every change, so that INFO never looks at keys. A value counts in the bin of the greatest power of two that is not
//! above its size; empty values have a bin of their own.

use crate::state::keyspace::Value;

/// Bins: one for 0, one for each power of two.
const BINS: usize = 1 + u64::BITS as usize;

/// Types with a histogram, in the order in which they are shown; each with the name Redis gives it or would.
const TYPES: [&str; 2] = ["strings_sizes", "streams_items"];

/// A type and a bin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SizeClass {
    kind: usize,
    bin: usize,
}

impl SizeClass {
    /// Where a value counts: a string by its bytes, a stream by its entries.
    #[inline]
    pub fn of(value: &Value) -> SizeClass {
        let (kind, size) = match value {
            Value::String(bytes) => (0, bytes.len() as u64),
            Value::Stream(stream) => (1, stream.entries.len()),
        };
        SizeClass { kind, bin: size.checked_ilog2().map_or(0, |power| power as usize + 1) }
    }
}

/// The histograms of one database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sizes {
    counts: [[u64; BINS]; TYPES.len()],
}

impl Default for Sizes {
    fn default() -> Self {
        Sizes { counts: [[0; BINS]; TYPES.len()] }
    }
}

impl Sizes {
    /// A value came.
    pub fn add(&mut self, class: SizeClass) {
        self.counts[class.kind][class.bin] += 1;
    }

    /// A value went.
    pub fn remove(&mut self, class: SizeClass) {
        self.counts[class.kind][class.bin] -= 1;
    }

    /// For each type that there are values of: its name, and its bins (`0=1,4=2,1K=1`) that are not empty.
    pub fn lines(&self) -> impl Iterator<Item = (&'static str, String)> {
        TYPES.iter().zip(&self.counts).filter_map(|(&name, counts)| {
            let bins: Vec<String> = counts
                .iter()
                .enumerate()
                .filter(|(_, count)| **count > 0)
                .map(|(bin, count)| format!("{}={count}", label(bin)))
                .collect();
            (!bins.is_empty()).then(|| (name, bins.join(",")))
        })
    }
}

/// The smallest size of a bin, in units of 1024 where it has such.
fn label(bin: usize) -> String {
    const UNITS: [&str; 7] = ["", "K", "M", "G", "T", "P", "E"];
    match bin.checked_sub(1) {
        None => "0".into(),
        Some(power) => format!("{}{}", 1 << (power % 10), UNITS[power / 10]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn bins_begin_at_powers_of_two() {
        let mut sizes = Sizes::default();
        let string = |len: usize| SizeClass::of(&Value::String(Arc::new(vec![0; len])));
        for len in [0, 1, 2, 3, 4, 511, 512, 1023, 1024, 1 << 20] {
            sizes.add(string(len));
        }
        let lines: Vec<_> = sizes.lines().collect();
        assert_eq!(lines, [("strings_sizes", "0=1,1=1,2=2,4=1,256=1,512=2,1K=1,1M=1".to_owned())]);
        sizes.remove(string(2));
        sizes.remove(string(0));
        sizes.add(SizeClass::of(&Value::Stream(Box::default())));
        let lines: Vec<_> = sizes.lines().collect();
        assert_eq!(lines[0].1, "1=1,2=1,4=1,256=1,512=2,1K=1,1M=1");
        assert_eq!(lines[1], ("streams_items", "0=1".to_owned()));
        assert_eq!(label(BINS - 1), "8E");
    }
}
