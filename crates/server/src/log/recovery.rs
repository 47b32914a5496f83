//! What to do with what is found in a data directory: a decision table with lettered rows.
//!
//! | row | found | done |
//! | --- | --- | --- |
//! | A | nothing at all | start at position 0 |
//! | B | frames up to a clean end | go on after them |
//! | C | an unreadable end with no whole frame behind it: a write that a crash tore | cut it off |
//! | D | damage, and a later frame proves that it had been durable | refuse |
//! | E | damage, and later frames, none of which had been known durable: writes that a crash left out of order | cut from the damage on |
//! | F | segments that do not join, after the position where replay begins | refuse |
//! | G | a good snapshot, and no log, or one that ends before a snapshot that was taken with the log off | keep the snapshot, begin a new segment at its position |
//! | H | the newest snapshot is damaged, but an older one (or none) and the log reach everything | use those; the end is treated as in B, C, E |
//! | I | no good snapshot, and the log does not begin at 0 | refuse |
//! | J | a snapshot or a segment of a format that this version does not know | refuse |
//! | K | a segment without a good header | refuse |
//! | L | the log begins after the snapshot | refuse |
//! | M | damage in a segment that another one follows, so it had been durable | refuse |
//! | N | damage, and too much behind it looks like a frame to tell C, D and E apart | refuse |
//! | O | the newest snapshot is damaged, and the log ends before it | refuse |
//! | P | a good snapshot that was taken with the log on, and the log ends before it: what was durable is missing | refuse |
//!
//! "Refuse" changes nothing on the disk. The table is data (`TABLE`), and a test proves that each combination of facts
//! is matched by exactly one row. Nothing here reads or writes a file; `survey.rs` collects the facts, `file.rs` acts.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;

use crate::disk::DiskError;
use crate::snapshots::SnapshotInfo;

/// What was found of snapshots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum SnapshotFact {
    /// No snapshot.
    None,
    /// The newest one is good, and was taken with the log on.
    Newest,
    /// The newest one is good, and was taken with the log off.
    NewestAlone,
    /// The newest one is damaged, an older one is good.
    Older,
    /// There are some, none of them is good.
    Damaged,
    /// The newest one that is not damaged has a format that we do not know.
    Foreign,
}

/// What was found of segments. "Needed" are those with a byte at or after the base: the position of the snapshot to be
/// used, or 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum SegmentFact {
    /// No segment.
    Empty,
    /// They begin at the base or before it.
    Reach,
    /// They begin after the base.
    Late,
    /// A needed one has a damaged header.
    BadHeader,
    /// A needed one has a format that we do not know.
    Foreign,
}

/// What was found in needed segments that another one follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum BodyFact {
    /// Each ends where the next begins.
    Whole,
    /// One ends cleanly, but not where the next begins.
    Gap,
    /// One is damaged.
    Damaged,
}

/// How the last segment ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum TailFact {
    /// Zeros, or the end of the file, after the last whole frame.
    Clean,
    /// Something else, and no whole frame in it.
    Torn,
    /// Damage, then whole frames that knew nothing after the damaged place to be durable.
    NeverSynced,
    /// Damage, then a whole frame that knew the damaged place to be durable.
    Durable,
    /// Damage, then too much that looks like a frame.
    Undecided,
}

impl TailFact {
    /// Is nothing that may have been durable after the last whole frame?
    pub fn may_be_cut(self) -> bool {
        matches!(self, TailFact::Clean | TailFact::Torn | TailFact::NeverSynced)
    }
}

/// Where the readable log ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum ReachFact {
    /// At the position of the newest snapshot, good or not, or after it.
    Enough,
    /// Before it.
    Short,
}

/// Everything that the decision depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    /// Snapshots.
    pub snapshots: SnapshotFact,
    /// Segments.
    pub segments: SegmentFact,
    /// All needed segments but the last.
    pub body: BodyFact,
    /// The last segment.
    pub tail: TailFact,
    /// The end of the log against the newest snapshot.
    pub reach: ReachFact,
}

/// A row of the table in the module's documentation. A letter keeps its meaning for ever.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the table above says what each is")]
pub enum Row {
    A,
    B,
    C,
    D,
    E,
    F,
    G,
    H,
    I,
    J,
    K,
    L,
    M,
    N,
    O,
    P,
}

/// What a row does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Begin a new segment at the base.
    Begin,
    /// Go on after the last whole frame; what stands after it is cut off first.
    Continue,
    /// Do not start.
    Refuse,
}

impl Row {
    /// What the row does.
    pub fn action(self) -> Action {
        match self {
            Row::A | Row::G => Action::Begin,
            Row::B | Row::C | Row::E | Row::H => Action::Continue,
            Row::D | Row::F | Row::I | Row::J | Row::K | Row::L | Row::M | Row::N | Row::O | Row::P => Action::Refuse,
        }
    }
}

impl Row {
    /// What the table says: what was found, and what is done.
    pub fn meaning(self) -> (&'static str, &'static str) {
        match self {
            Row::A => ("nothing at all", "start at position 0"),
            Row::B => ("frames up to a clean end", "go on after them"),
            Row::C => ("an unreadable end with no whole frame behind it: a write that a crash tore", "cut it off"),
            Row::D => ("damage, and a later frame proves that it had been durable", "refuse"),
            Row::E => (
                "damage, and later frames, none of which had been known durable: writes that a crash left out of order",
                "cut from the damage on",
            ),
            Row::F => ("segments that do not join, after the position where replay begins", "refuse"),
            Row::G => (
                "a good snapshot, and no log, or one that ends before a snapshot that was taken with the log off",
                "keep the snapshot, begin a new segment at its position",
            ),
            Row::H => (
                "the newest snapshot is damaged, but an older one (or none) and the log reach everything",
                "use those; the end is treated as in B, C, E",
            ),
            Row::I => ("no good snapshot, and the log does not begin at 0", "refuse"),
            Row::J => ("a snapshot or a segment of a format that this version does not know", "refuse"),
            Row::K => ("a segment without a good header", "refuse"),
            Row::L => ("the log begins after the snapshot", "refuse"),
            Row::M => ("damage in a segment that another one follows, so it had been durable", "refuse"),
            Row::N => ("damage, and too much behind it looks like a frame to tell C, D and E apart", "refuse"),
            Row::O => ("the newest snapshot is damaged, and the log ends before it", "refuse"),
            Row::P => (
                "a good snapshot that was taken with the log on, and the log ends before it: what was durable is missing",
                "refuse",
            ),
        }
    }
}

/// The facts that a line of the table is for: of each kind a set, one bit a value.
#[derive(Clone, Copy)]
struct Pattern {
    snapshots: u8,
    segments: u8,
    body: u8,
    tail: u8,
    reach: u8,
}

const ANY: u8 = u8::MAX;
/// Every snapshot fact but `Foreign`.
const KNOWN: u8 = S_NONE | S_GOOD | S_LOST;
const S_NONE: u8 = 1 << SnapshotFact::None as u8;
const S_NEWEST: u8 = 1 << SnapshotFact::Newest as u8;
const S_ALONE: u8 = 1 << SnapshotFact::NewestAlone as u8;
const S_OLDER: u8 = 1 << SnapshotFact::Older as u8;
const S_DAMAGED: u8 = 1 << SnapshotFact::Damaged as u8;
const S_FOREIGN: u8 = 1 << SnapshotFact::Foreign as u8;
/// The newest snapshot is good.
const S_GOOD: u8 = S_NEWEST | S_ALONE;
/// The newest snapshot is damaged.
const S_LOST: u8 = S_OLDER | S_DAMAGED;
const EMPTY: u8 = 1 << SegmentFact::Empty as u8;
const REACH: u8 = 1 << SegmentFact::Reach as u8;
const LATE: u8 = 1 << SegmentFact::Late as u8;
const BAD_HEADER: u8 = 1 << SegmentFact::BadHeader as u8;
const FOREIGN: u8 = 1 << SegmentFact::Foreign as u8;
const WHOLE: u8 = 1 << BodyFact::Whole as u8;
const GAP: u8 = 1 << BodyFact::Gap as u8;
const DAMAGED: u8 = 1 << BodyFact::Damaged as u8;
const CLEAN: u8 = 1 << TailFact::Clean as u8;
const TORN: u8 = 1 << TailFact::Torn as u8;
const NEVER_SYNCED: u8 = 1 << TailFact::NeverSynced as u8;
const DURABLE: u8 = 1 << TailFact::Durable as u8;
const UNDECIDED: u8 = 1 << TailFact::Undecided as u8;
/// Ends that may be cut.
const CUTTABLE: u8 = CLEAN | TORN | NEVER_SYNCED;
const ENOUGH: u8 = 1 << ReachFact::Enough as u8;
const SHORT: u8 = 1 << ReachFact::Short as u8;

const fn pattern(snapshots: u8, segments: u8, body: u8, tail: u8, reach: u8) -> Pattern {
    Pattern { snapshots, segments, body, tail, reach }
}

/// The table. Its lines exclude each other, so their order means nothing. A row may have several lines.
const TABLE: &[(Row, Pattern)] = &[
    (Row::J, pattern(S_FOREIGN, ANY, ANY, ANY, ANY)),
    (Row::J, pattern(KNOWN, FOREIGN, ANY, ANY, ANY)),
    (Row::K, pattern(KNOWN, BAD_HEADER, ANY, ANY, ANY)),
    // No segment: whatever the other facts say, they are about nothing.
    (Row::A, pattern(S_NONE, EMPTY, ANY, ANY, ANY)),
    (Row::G, pattern(S_GOOD, EMPTY, ANY, ANY, ANY)),
    (Row::O, pattern(S_OLDER, EMPTY, ANY, ANY, ANY)),
    (Row::I, pattern(S_DAMAGED, EMPTY, ANY, ANY, ANY)),
    // Segments that begin after the base.
    (Row::I, pattern(S_NONE | S_DAMAGED, LATE, ANY, ANY, ANY)),
    (Row::L, pattern(S_GOOD | S_OLDER, LATE, ANY, ANY, ANY)),
    // Segments that reach back to the base.
    (Row::F, pattern(KNOWN, REACH, GAP, ANY, ANY)),
    (Row::M, pattern(KNOWN, REACH, DAMAGED, ANY, ANY)),
    (Row::D, pattern(KNOWN, REACH, WHOLE, DURABLE, ANY)),
    (Row::N, pattern(KNOWN, REACH, WHOLE, UNDECIDED, ANY)),
    (Row::G, pattern(S_ALONE, REACH, WHOLE, CUTTABLE, SHORT)),
    (Row::P, pattern(S_NEWEST, REACH, WHOLE, CUTTABLE, SHORT)),
    (Row::O, pattern(S_LOST, REACH, WHOLE, CUTTABLE, SHORT)),
    (Row::H, pattern(S_LOST, REACH, WHOLE, CUTTABLE, ENOUGH)),
    // Without a snapshot there is nothing to end before.
    (Row::B, pattern(S_NONE, REACH, WHOLE, CLEAN, ANY)),
    (Row::C, pattern(S_NONE, REACH, WHOLE, TORN, ANY)),
    (Row::E, pattern(S_NONE, REACH, WHOLE, NEVER_SYNCED, ANY)),
    (Row::B, pattern(S_GOOD, REACH, WHOLE, CLEAN, ENOUGH)),
    (Row::C, pattern(S_GOOD, REACH, WHOLE, TORN, ENOUGH)),
    (Row::E, pattern(S_GOOD, REACH, WHOLE, NEVER_SYNCED, ENOUGH)),
];

impl Pattern {
    fn matches(&self, facts: &Facts) -> bool {
        self.snapshots & 1 << facts.snapshots as u8 != 0
            && self.segments & 1 << facts.segments as u8 != 0
            && self.body & 1 << facts.body as u8 != 0
            && self.tail & 1 << facts.tail as u8 != 0
            && self.reach & 1 << facts.reach as u8 != 0
    }
}

/// The row for these facts.
pub fn classify(facts: &Facts) -> Row {
    let line = TABLE.iter().find(|(_, pattern)| pattern.matches(facts));
    line.expect("the table has a line for every combination of facts").0
}

/// The place of some damage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// The first byte of it that cannot be used.
    pub offset: u64,
    /// The log position that this byte belongs to.
    pub position: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {} (log position {})", self.path.display(), self.offset, self.position)
    }
}

/// A refusal to start: what was found and what can be done. Nothing on the disk was changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The row of the table.
    pub row: Row,
    /// Where, if it is one place.
    pub place: Option<Place>,
    /// Particulars, such as the position that proves the damage.
    pub detail: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const RESTORE: &str = "Restore the data directory from a copy, or make a new one of what is whole in it (impel check \
                               DIR --repair NEWDIR)";
        write!(f, "not starting (recovery row {:?}): ", self.row)?;
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        write!(f, "{}. ", self.detail)?;
        match self.row {
            Row::D | Row::K | Row::M | Row::N => write!(
                f,
                "Going on would lose acknowledged data without a word. {RESTORE}; or, to give up everything from the \
                 beginning of this segment on, move it and all segments after it to another directory and start again"
            ),
            Row::F => write!(
                f,
                "{RESTORE}, or bring back the missing segment; or, to give up everything after the gap, move the \
                 segments after it to another directory and start again"
            ),
            Row::I | Row::L => write!(f, "{RESTORE}, or bring back the missing segments or an older snapshot"),
            Row::O => write!(
                f,
                "{RESTORE}; or, to give up everything after the end of the log, move the damaged snapshot to another \
                 directory and start again"
            ),
            Row::P => write!(
                f,
                "{RESTORE}, or bring back the missing end of the log; or, to give up everything after the snapshot, \
                 move all segments to another directory and start again"
            ),
            Row::J => write!(f, "Start the version that wrote it, or a later one"),
            Row::A | Row::B | Row::C | Row::E | Row::G | Row::H => unreachable!("row {:?} does not refuse", self.row),
        }
    }
}

impl Error for Refusal {}

/// Why a log could not be opened.
#[derive(Debug)]
pub enum OpenError {
    /// What was found must not be used as it is.
    Refused(Refusal),
    /// A file operation failed.
    Disk(DiskError),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Refused(refusal) => refusal.fmt(f),
            OpenError::Disk(error) => error.fmt(f),
        }
    }
}

impl Error for OpenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            OpenError::Refused(_) => None,
            OpenError::Disk(error) => Some(&error.source),
        }
    }
}

impl From<DiskError> for OpenError {
    fn from(error: DiskError) -> Self {
        OpenError::Disk(error)
    }
}

/// What opening a log found and did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recovery {
    /// The row of the table.
    pub row: Row,
    /// The snapshot to load first, if any.
    pub snapshot: Option<SnapshotInfo>,
    /// Replay from here: the snapshot's position, or 0.
    pub replay_from: u64,
    /// The position after the last byte of the log.
    pub end: u64,
    /// Whole frames in the segments that replay reads.
    pub frames: u64,
    /// Bytes of the last segment that were cut off, up to the last one that was not zero.
    pub cut_bytes: u64,
    /// What the operator should know, a sentence each: what was cut, which snapshot was damaged. Empty after a clean stop.
    pub notes: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_facts() -> Vec<Facts> {
        use {BodyFact as B, ReachFact as R, SegmentFact as L, SnapshotFact as S, TailFact as T};
        let mut all = Vec::new();
        for snapshots in [S::None, S::Newest, S::NewestAlone, S::Older, S::Damaged, S::Foreign] {
            for segments in [L::Empty, L::Reach, L::Late, L::BadHeader, L::Foreign] {
                for body in [B::Whole, B::Gap, B::Damaged] {
                    for tail in [T::Clean, T::Torn, T::NeverSynced, T::Durable, T::Undecided] {
                        for reach in [R::Enough, R::Short] {
                            all.push(Facts { snapshots, segments, body, tail, reach });
                        }
                    }
                }
            }
        }
        all
    }

    #[test]
    fn every_combination_of_facts_is_matched_by_exactly_one_line() {
        let all = all_facts();
        assert_eq!(all.len(), 6 * 5 * 3 * 5 * 2);
        for facts in all {
            let rows: Vec<Row> = TABLE.iter().filter(|(_, line)| line.matches(&facts)).map(|&(row, _)| row).collect();
            assert_eq!(rows.len(), 1, "{facts:?} is matched by {rows:?}");
        }
    }

    #[test]
    fn every_line_is_used_and_every_row_has_one() {
        let all = all_facts();
        for (row, line) in TABLE {
            assert!(all.iter().any(|facts| line.matches(facts)), "a line of row {row:?} matches nothing");
        }
        use Row::*;
        for row in [A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P] {
            assert!(TABLE.iter().any(|&(listed, _)| listed == row), "row {row:?} has no line");
        }
    }

    #[test]
    fn nothing_that_may_have_been_durable_is_ever_cut() {
        for facts in all_facts().iter().filter(|facts| classify(facts).action() != Action::Refuse) {
            if facts.segments == SegmentFact::Reach {
                assert_eq!(facts.body, BodyFact::Whole, "{facts:?}");
                assert!(!matches!(facts.tail, TailFact::Durable | TailFact::Undecided), "{facts:?}");
            }
            assert!(!matches!(facts.segments, SegmentFact::Late | SegmentFact::BadHeader), "{facts:?}");
        }
    }

    #[test]
    fn a_refusal_names_the_place_and_a_way_out() {
        for row in all_facts().iter().map(classify).filter(|row| row.action() == Action::Refuse) {
            let place = Place { path: PathBuf::from("data/log/x.log"), offset: 4096, position: 77 };
            let text = Refusal { row, place: Some(place), detail: "what was found".into() }.to_string();
            assert!(text.contains("data/log/x.log at byte 4096 (log position 77): what was found. "), "{text}");
            assert!(text.contains("Restore the data directory") || text.contains("Start the version"), "{text}");
        }
    }

    #[test]
    fn the_format_document_has_the_same_table() {
        // A row is a line that begins with a capital letter between bars.
        fn rows<'a>(text: &'a str, prefix: &str) -> Vec<&'a str> {
            let lines = text.lines().filter_map(|line| line.strip_prefix(prefix));
            let is_row = |line: &str| matches!(line.as_bytes(), [b'|', b' ', b'A'..=b'Z', b' ', b'|', ..]);
            lines.filter(|line| is_row(line)).collect()
        }
        let documented = rows(include_str!("../../../../docs/formats.md"), "");
        let here = rows(include_str!("recovery.rs"), "//! ");
        assert_eq!(here.len(), 16);
        assert_eq!(documented, here);
        use Row::*;
        let meanings = [A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P].map(|row| {
            let (found, done) = row.meaning();
            format!("| {row:?} | {found} | {done} |")
        });
        assert_eq!(documented, meanings);
    }
}
