//! Ids of entries, and moments that are known to lie within two others.

/// An entry's id: milliseconds and sequence number.
pub type Id = (u64, u64);

/// An id as it is written.
pub fn id_text(id: Id) -> String {
    format!("{}-{}", id.0, id.1)
}

/// Reads `ms-seq`.
pub fn parse_id(text: &str) -> Option<Id> {
    let (ms, seq) = text.split_once('-')?;
    Some((ms.parse().ok()?, seq.parse().ok()?))
}

/// A moment that is known to lie within two others, both included; Unix time in ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Not before.
    pub from_ms: i64,
    /// Not after.
    pub to_ms: i64,
}

impl Span {
    /// An exactly known moment.
    pub fn exact(ms: i64) -> Self {
        Span { from_ms: ms, to_ms: ms }
    }

    /// The same span, so much later (earlier when negative).
    pub fn shifted(self, by_ms: i64) -> Self {
        Span { from_ms: self.from_ms + by_ms, to_ms: self.to_ms + by_ms }
    }

    /// The span from the beginning of the earlier one to the end of the later one.
    pub fn with(self, other: Span) -> Self {
        Span { from_ms: self.from_ms.min(other.from_ms), to_ms: self.to_ms.max(other.to_ms) }
    }

    /// Whether the two have a moment in common.
    pub fn meets(self, other: Span) -> bool {
        self.from_ms <= other.to_ms && other.from_ms <= self.to_ms
    }
}
