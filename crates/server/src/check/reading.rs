//! Reads a whole log, also behind damage, and tells what is whole and what is not.
//!
//! Events come in the order of the log: frames, and before the frame that follows it each hole. A hole's end is the position
//! where whole frames begin again; none if none do.

use std::path::PathBuf;

use crate::disk::{DataDir, DiskError, Holder};
use crate::log::inspect::{self, FRAMES_AT, Header, Piece, Segment};

use super::LOOKS_MAX;

/// A segment that is there.
#[derive(Clone, Debug)]
pub struct SegmentReport {
    /// The file.
    pub path: PathBuf,
    /// Position of its first byte.
    pub start: u64,
    /// Position after its last whole frame.
    pub end: u64,
    /// Whole frames: commits.
    pub commits: u64,
    /// The time of the first, and of the last (Unix ms).
    pub times: Option<(u64, u64)>,
    /// Bytes up to the last whole frame's end.
    pub used_bytes: u64,
    /// Length of the file.
    pub len_bytes: u64,
    /// Nothing in it is damaged.
    pub is_whole: bool,
}

/// Something damaged or missing.
#[derive(Clone, Debug)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// From which byte to before which; to the end of what is there if the second is not known. `None`: the file is missing.
    pub bytes: Option<(u64, Option<u64>)>,
    /// Log positions that are lost by it: from, and to before which, if that is known. `None`: none are.
    pub positions: Option<(u64, Option<u64>)>,
    /// Time of the last whole commit before (Unix ms).
    pub before_ms: Option<u64>,
    /// Time of the next whole one.
    pub after_ms: Option<u64>,
    /// What it is.
    pub what: String,
}

/// What is read, in the order of the log.
pub(super) enum Event<'a> {
    /// A whole frame.
    Frame {
        /// Position of its payload.
        position: u64,
        /// The time stored with it.
        now_ms: u64,
        /// Its payload.
        payload: &'a [u8],
    },
    /// Here something is missing; `from` and `to` are the same where segments overlap.
    Hole {
        /// The first position that is missing.
        from: u64,
        /// The next one that is there.
        to: Option<u64>,
    },
}

/// What was read.
#[derive(Default)]
pub(super) struct LogReading {
    pub segments: Vec<SegmentReport>,
    pub damage: Vec<Damage>,
}

struct Reader<'v> {
    done: LogReading,
    visit: &'v mut dyn FnMut(Event<'_>),
    last_ms: Option<u64>,
    /// Damages that no whole frame has come after yet.
    open: Vec<usize>,
}

/// Reads the log: all of it, or what is needed from a position on. That it begins after that position is a hole as well.
pub(super) fn read_log(
    dir: &DataDir,
    needed_from: u64,
    all: bool,
    holder: Holder,
    visit: &mut dyn FnMut(Event<'_>),
    tell: &mut dyn FnMut(&str),
) -> Result<LogReading, DiskError> {
    let starts = inspect::starts(dir)?;
    let first_needed = starts.iter().rposition(|&start| start <= needed_from).unwrap_or(0);
    let starts = if all { &starts[..] } else { &starts[first_needed..] };
    let mut reader = Reader { done: LogReading::default(), visit, last_ms: None, open: Vec::new() };
    let mut bytes = Vec::new();
    // Where the segment before ended, and whether it ended in damage.
    let mut before: Option<(u64, bool)> = None;
    for (index, &start) in starts.iter().enumerate() {
        tell(&format!("reading segment {} of {}", index + 1, starts.len()));
        let is_last = index + 1 == starts.len();
        let segment = read_segment(dir, start, bytes, is_last && holder == Holder::Server)?;
        reader.join(&segment, needed_from, before);
        before = Some(reader.segment(&segment, is_last && holder == Holder::Server));
        bytes = segment.into_bytes();
    }
    if let Some((end, true)) = before {
        (reader.visit)(Event::Hole { from: end, to: None });
    }
    Ok(reader.done)
}

/// One that is being written is read again until what cannot be read is where it was before, or at the very end.
fn read_segment(dir: &DataDir, start: u64, bytes: Vec<u8>, is_written: bool) -> Result<Segment, DiskError> {
    let mut segment = Segment::read(dir, start, bytes)?;
    let first_break = |segment: &Segment| {
        segment.pieces().find_map(|piece| match piece {
            Piece::Damage { from, next: Some(_), .. } => Some(from),
            _ => None,
        })
    };
    let mut place = first_break(&segment);
    let mut looks = 1;
    while is_written && place.is_some() && looks < LOOKS_MAX {
        segment = Segment::read(dir, start, segment.into_bytes())?;
        let again = first_break(&segment);
        if again == place {
            break;
        }
        (place, looks) = (again, looks + 1);
    }
    Ok(segment)
}

impl Reader<'_> {
    fn damage(&mut self, damage: Damage) -> usize {
        let index = self.done.damage.len();
        self.open.push(index);
        self.done.damage.push(Damage { before_ms: self.last_ms, ..damage });
        index
    }

    /// Does the segment begin where the one before ended?
    fn join(&mut self, segment: &Segment, needed_from: u64, before: Option<(u64, bool)>) {
        let start = segment.start;
        let path = segment.path.clone();
        let (before_ms, after_ms) = (None, None);
        match before {
            None if start <= needed_from => {}
            None => {
                let positions = Some((needed_from, Some(start)));
                let what = "nothing holds what came before this segment".into();
                self.damage(Damage { path, bytes: None, positions, before_ms, after_ms, what });
                (self.visit)(Event::Hole { from: needed_from, to: Some(start) });
            }
            Some((end, _)) if end > start => {
                let what = "this segment begins before the end of the one before it".into();
                self.damage(Damage { path, bytes: None, positions: None, before_ms, after_ms, what });
                (self.visit)(Event::Hole { from: end, to: Some(end) });
            }
            Some((end, true)) => {
                // Told of already; now it is known how far it goes.
                if let Some(last) = self.done.damage.last_mut() {
                    last.positions = Some((end, Some(start)));
                }
                (self.visit)(Event::Hole { from: end, to: Some(start) });
            }
            Some((end, false)) if end < start => {
                let positions = Some((end, Some(start)));
                let what = "no segment holds what came before this one".into();
                self.damage(Damage { path, bytes: None, positions, before_ms, after_ms, what });
                (self.visit)(Event::Hole { from: end, to: Some(start) });
            }
            Some((_, false)) => {}
        }
    }

    /// Reads a segment. Answers where it ends, and whether in damage.
    fn segment(&mut self, segment: &Segment, is_written: bool) -> (u64, bool) {
        let damage_before = self.done.damage.len();
        let path = || segment.path.clone();
        let damage = |bytes: (u64, u64), positions, what: String| Damage {
            path: path(),
            bytes: Some((bytes.0, Some(bytes.1))),
            positions,
            before_ms: None,
            after_ms: None,
            what,
        };
        let mut report = SegmentReport {
            path: path(),
            start: segment.start,
            end: segment.start,
            commits: 0,
            times: None,
            used_bytes: 0,
            len_bytes: segment.len_bytes(),
            is_whole: true,
        };
        match segment.header {
            Header::Good => {}
            Header::Bad => {
                let end = segment.len_bytes().min(FRAMES_AT as u64);
                self.damage(damage((0, end), None, "the header of this segment is damaged".into()));
            }
            Header::Foreign(version) => {
                let what = format!("this segment has format {version}, which this version does not know");
                self.damage(damage((0, segment.len_bytes()), Some((segment.start, None)), what));
                report.is_whole = false;
                self.done.segments.push(report);
                return (segment.start, true);
            }
        }
        let mut ends_in_damage = false;
        let mut pieces = segment.pieces();
        for piece in pieces.by_ref() {
            match piece {
                Piece::Frame { position, now_ms, payload, .. } => {
                    for index in self.open.drain(..) {
                        self.done.damage[index].after_ms = Some(now_ms);
                    }
                    self.last_ms = Some(now_ms);
                    report.commits += 1;
                    report.times = Some((report.times.map_or(now_ms, |(first, _)| first), now_ms));
                    (self.visit)(Event::Frame { position, now_ms, payload });
                }
                // It may be a write that is under way.
                Piece::Damage { next: None, .. } if is_written => {}
                Piece::Damage { from, to, position, next } => {
                    ends_in_damage = next.is_none();
                    let what = match next {
                        Some(_) => "the log is damaged here, and goes on behind it",
                        None => "the log cannot be read from here on",
                    };
                    self.damage(damage((from, to), Some((position, next)), what.into()));
                    if next.is_some() {
                        (self.visit)(Event::Hole { from: position, to: next });
                    }
                }
            }
        }
        report.end = pieces.position();
        report.used_bytes = pieces.offset();
        report.is_whole = self.done.damage.len() == damage_before;
        self.done.segments.push(report);
        (pieces.position(), ends_in_damage)
    }
}
