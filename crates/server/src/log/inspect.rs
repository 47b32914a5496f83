//! A log, to look at: what a start would decide, and every whole frame there is, also behind damage. For `impel check`;
//! a start reads with `file.rs`.
//!
//! Nothing here changes anything. One segment at a time is in memory.

use std::path::PathBuf;

use super::frame::{self, FRAME_HEADER_BYTES, Found, HeaderFault, Search};
use super::recovery::{self, Action, OpenError, Refusal, Row};
pub use super::survey::starts;
use super::survey::{Survey, read_file, segment_path};
use crate::disk::{DataDir, DiskError};
use crate::snapshots::SnapshotInfo;

/// Where the first frame of a segment begins.
pub const FRAMES_AT: usize = frame::FRAMES_AT;

/// What a start would decide.
#[derive(Clone, Debug)]
pub struct Outlook {
    /// The row of the table in `recovery.rs`.
    pub row: Row,
    /// If the row refuses, what would be said.
    pub refusal: Option<Refusal>,
    /// The snapshot that would be loaded.
    pub snapshot: Option<SnapshotInfo>,
    /// From where the log would be replayed.
    pub base: u64,
    /// Bytes at the end that would be cut off.
    pub cut_bytes: u64,
    /// There is no segment, though a log was kept when the snapshot was taken.
    pub log_is_missing: bool,
}

/// Looks at a directory as a start does.
pub fn outlook(dir: &DataDir) -> Result<Outlook, OpenError> {
    let survey = Survey::of(dir)?;
    let row = recovery::classify(&survey.facts);
    let refuses = row.action() == Action::Refuse;
    let cut_bytes = match (row.action(), &survey.tail) {
        (Action::Continue, Some(tail)) => tail.walk.stray_bytes as u64,
        _ => 0,
    };
    let is_empty = survey.facts.segments == recovery::SegmentFact::Empty;
    Ok(Outlook {
        row,
        log_is_missing: is_empty && survey.snapshot.as_ref().is_some_and(|info| info.with_log),
        refusal: refuses.then_some(Refusal { row, place: survey.place, detail: survey.detail }),
        snapshot: survey.snapshot,
        base: survey.base,
        cut_bytes,
    })
}

/// How the header of a segment is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Header {
    /// As it should be.
    Good,
    /// Damaged. Frames vouch for themselves, and the file's name says where they begin.
    Bad,
    /// Of a format that this version does not know: so are the frames.
    Foreign(u32),
}

/// A segment in memory.
#[derive(Debug)]
pub struct Segment {
    /// Position of its first byte, by its name.
    pub start: u64,
    /// The file.
    pub path: PathBuf,
    /// Its header.
    pub header: Header,
    bytes: Vec<u8>,
}

impl Segment {
    /// Reads one. `bytes` is memory to use again.
    pub fn read(dir: &DataDir, start: u64, mut bytes: Vec<u8>) -> Result<Segment, DiskError> {
        let path = segment_path(dir, start);
        let file = dir.disk().open(&path).map_err(DiskError::at("open", &path))?;
        read_file(&*file, &path, &mut bytes)?;
        let header = match frame::check_segment_header(&bytes, start) {
            Ok(()) => Header::Good,
            Err(HeaderFault::Bad) => Header::Bad,
            Err(HeaderFault::Foreign(version)) => Header::Foreign(version),
        };
        Ok(Segment { start, path, header, bytes })
    }

    /// Gives the memory back.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Length of the file.
    pub fn len_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// What is in it, from front to back.
    pub fn pieces(&self) -> Pieces<'_> {
        let search = Search::new(&self.bytes, self.start);
        let (offset, position) = (FRAMES_AT.min(self.bytes.len()), self.start);
        Pieces { bytes: &self.bytes, start: self.start, search, offset, position, is_over: false }
    }
}

/// A part of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Piece<'a> {
    /// A whole frame.
    Frame {
        /// Where it begins in the file.
        offset: u64,
        /// Position of its payload.
        position: u64,
        /// The time stored with it.
        now_ms: u64,
        /// Its payload.
        payload: &'a [u8],
    },
    /// Bytes that are no frames.
    Damage {
        /// From this byte of the file …
        from: u64,
        /// … to the one before this.
        to: u64,
        /// Position of the first of the lost payload bytes.
        position: u64,
        /// Position of the whole frame behind it, if there is one.
        next: Option<u64>,
    },
}

/// Walks over a segment. Afterwards [`Pieces::position`] is that behind the last whole frame.
pub struct Pieces<'a> {
    bytes: &'a [u8],
    start: u64,
    search: Search<'a>,
    offset: usize,
    position: u64,
    is_over: bool,
}

impl Pieces<'_> {
    /// The position after the last whole frame so far.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Where in the file that is.
    pub fn offset(&self) -> u64 {
        self.offset as u64
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        if self.is_over {
            return None;
        }
        let (offset, position) = (self.offset, self.position);
        if let Some(frame) = frame::frame_at(self.bytes, offset, self.start, position) {
            self.offset += frame.len_bytes();
            self.position += frame.payload.len() as u64;
            let (now_ms, payload) = (frame.now_ms, frame.payload);
            return Some(Piece::Frame { offset: offset as u64, position, now_ms, payload });
        }
        let end = offset + frame::len_without_zeros(&self.bytes[offset..]);
        let from = offset as u64;
        if end == offset {
            self.is_over = true;
            return None;
        }
        match self.search.next(offset, position, offset + FRAME_HEADER_BYTES + 1, end) {
            Found::Frame { offset, position: next, .. } => {
                (self.offset, self.position) = (offset, next);
                Some(Piece::Damage { from, to: offset as u64, position, next: Some(next) })
            }
            Found::Nothing | Found::TooMuch => {
                self.is_over = true;
                Some(Piece::Damage { from, to: end as u64, position, next: None })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::disk::Disk;
    use crate::disk::fake::FakeDisk;
    use crate::log::{Log, Options};

    /// Frames of 100 bytes of payload, and what was damaged of the file.
    fn segment(frames: u64, damage: &[(usize, usize)]) -> Segment {
        let disk = FakeDisk::new();
        let dir = DataDir::open(Arc::new(disk.clone()), Path::new("/data")).unwrap();
        let (mut log, _) = crate::log::open(&dir, Options::default()).unwrap();
        (0..frames).for_each(|n| log.commit(&[n as u8; 100], n, true).unwrap());
        let path = segment_path(&dir, 0);
        let mut file = disk.open(&path).unwrap();
        damage.iter().for_each(|&(from, to)| file.write_at(from as u64, &vec![0xee; to - from]).unwrap());
        file.truncate(64 * 1024).unwrap();
        Segment::read(&dir, 0, Vec::new()).unwrap()
    }

    fn show(segment: &Segment) -> Vec<String> {
        segment
            .pieces()
            .map(|piece| match piece {
                Piece::Frame { position, .. } => position.to_string(),
                Piece::Damage { from, to, position, next } => format!("{from}-{to} {position}-{next:?}"),
            })
            .collect()
    }

    #[test]
    fn whole_frames_behind_any_damage_are_found() {
        let at = |frame: usize| FRAMES_AT + frame * 128;
        assert_eq!(show(&segment(3, &[])), ["0", "100", "200"]);
        assert_eq!(show(&segment(0, &[])), [""; 0]);
        let damaged = segment(5, &[(at(1) + 30, at(1) + 31), (at(3), at(3) + 1)]);
        let damage =
            |from: usize, to: usize, position| format!("{}-{} {position}-Some({})", at(from), at(to), position + 100);
        assert_eq!(show(&damaged), ["0", &damage(1, 2, 100), "200", &damage(3, 4, 300), "400"]);
        assert_eq!(damaged.header, Header::Good);
        // At the very front, over several frames, and at the end.
        assert_eq!(
            show(&segment(4, &[(at(0), at(2) + 5)])),
            [format!("{}-{} 0-Some(300)", at(0), at(3)), "300".into()]
        );
        assert_eq!(show(&segment(2, &[(at(1) + 3, at(1) + 9)])), ["0".into(), format!("{}-{} 100-None", at(1), at(2))]);
        // Without its header the frames are what they were.
        let headless = segment(2, &[(0, 100)]);
        assert_eq!((headless.header, show(&headless)), (Header::Bad, vec!["0".into(), "100".into()]));
    }
}
