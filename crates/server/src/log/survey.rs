//! Looks at a data directory and says what is there, as the facts that `recovery.rs` decides on, with what is needed
//! to act on them and to tell the operator.
//!
//! It reads and changes nothing. One segment at a time is in memory; segments that a snapshot has made superfluous are
//! not read. An error of the disk is an error, never taken for damage: it may pass, and damage may be cut.

use std::path::{Path, PathBuf};

use super::frame::{self, Beyond, HeaderFault, Walk};
use super::recovery::{BodyFact, Facts, OpenError, Place, ReachFact, SegmentFact, SnapshotFact, TailFact};
use crate::disk::{DataDir, DiskError, DiskFile, Kind, position_in_name, positioned_name, read_whole};
use crate::snapshots::{self, SnapshotError, SnapshotInfo};

/// Extension of a segment's name.
const SEGMENT: &str = "log";

/// Reads the whole file of a segment.
pub(super) fn read_file(file: &dyn DiskFile, path: &Path, bytes: &mut Vec<u8>) -> Result<(), DiskError> {
    const SEGMENT: Kind = Kind { name: "a segment of the log", max_bytes: frame::SEGMENT_MAX_BYTES };
    read_whole(file, path, SEGMENT, bytes)
}

/// The file of the segment that begins at `start`.
pub(super) fn segment_path(dir: &DataDir, start: u64) -> PathBuf {
    dir.log().join(positioned_name(start, SEGMENT))
}

/// Positions at which segments begin, in order.
pub fn starts(dir: &DataDir) -> Result<Vec<u64>, DiskError> {
    let names = dir.disk().list(dir.log()).map_err(DiskError::at("list", dir.log()))?;
    Ok(names.iter().filter_map(|name| position_in_name(name, SEGMENT)).collect())
}

/// The last segment, open.
pub(super) struct Tail {
    pub file: Box<dyn DiskFile>,
    pub start: u64,
    /// The whole file.
    pub bytes: Vec<u8>,
    pub walk: Walk,
}

/// What is there.
pub(super) struct Survey {
    pub facts: Facts,
    /// The snapshot to use.
    pub snapshot: Option<SnapshotInfo>,
    /// Positions of damaged snapshots that are newer than that, each with what is wrong.
    pub damaged_snapshots: Vec<(u64, String)>,
    /// Where replay begins.
    pub base: u64,
    /// `(start, length in use)` of every segment but the last, oldest first; of those not read, the file's length.
    pub closed: Vec<(u64, u64)>,
    /// The last segment; `None` if there is none or something before it already forbids to start.
    pub tail: Option<Tail>,
    /// Whole frames in the segments that were read.
    pub frames: u64,
    /// The place of what decided, if it is one place.
    pub place: Option<Place>,
    /// What decided, in words.
    pub detail: String,
}

impl Survey {
    /// Looks.
    pub fn of(dir: &DataDir) -> Result<Survey, OpenError> {
        let facts = Facts {
            snapshots: SnapshotFact::None,
            segments: SegmentFact::Empty,
            body: BodyFact::Whole,
            tail: TailFact::Clean,
            reach: ReachFact::Enough,
        };
        let mut survey = Survey {
            facts,
            snapshot: None,
            damaged_snapshots: Vec::new(),
            base: 0,
            closed: Vec::new(),
            tail: None,
            frames: 0,
            place: None,
            detail: String::new(),
        };
        let newest = survey.look_at_snapshots(dir)?;
        if survey.facts.snapshots != SnapshotFact::Foreign {
            survey.look_at_segments(dir, newest)?;
        }
        Ok(survey)
    }

    /// Returns the position of the newest snapshot, good or not.
    fn look_at_snapshots(&mut self, dir: &DataDir) -> Result<Option<u64>, OpenError> {
        let positions = snapshots::list(dir)?;
        for &position in positions.iter().rev() {
            match snapshots::check(dir, position) {
                Ok(info) => {
                    self.facts.snapshots = match (self.damaged_snapshots.is_empty(), info.with_log) {
                        (true, true) => SnapshotFact::Newest,
                        (true, false) => SnapshotFact::NewestAlone,
                        (false, _) => SnapshotFact::Older,
                    };
                    self.base = info.position;
                    self.snapshot = Some(info);
                    break;
                }
                Err(SnapshotError::Damaged { path, offset, what }) => {
                    self.facts.snapshots = SnapshotFact::Damaged;
                    if self.detail.is_empty() {
                        self.detail = format!("the newest snapshot is damaged ({what})");
                    }
                    self.damaged_snapshots.push((position, format!("{what} at byte {offset} of {}", path.display())));
                    self.place.get_or_insert(Place { path, offset, position });
                }
                Err(SnapshotError::Foreign { path, version }) => {
                    self.facts.snapshots = SnapshotFact::Foreign;
                    self.detail = format!("a snapshot of format {version}, which this version does not know");
                    self.place = Some(Place { path, offset: 0, position });
                    break;
                }
                Err(SnapshotError::Disk(error)) => return Err(error.into()),
            }
        }
        Ok(positions.last().copied())
    }

    fn look_at_segments(&mut self, dir: &DataDir, newest_snapshot: Option<u64>) -> Result<(), OpenError> {
        let starts = starts(dir)?;
        let Some(&first) = starts.first() else { return Ok(()) };
        let Some(first_needed) = starts.iter().rposition(|&start| start <= self.base) else {
            self.facts.segments = SegmentFact::Late;
            self.place = Some(Place { path: segment_path(dir, first), offset: 0, position: first });
            self.detail = match &self.snapshot {
                Some(info) => format!("the first segment begins after the snapshot at position {}", info.position),
                None => "the log does not begin at position 0, and no snapshot holds what came before".into(),
            };
            return Ok(());
        };
        self.facts.segments = SegmentFact::Reach;
        let mut spare = Vec::new();
        for (index, &start) in starts.iter().enumerate() {
            let path = segment_path(dir, start);
            let file = dir.disk().open(&path).map_err(DiskError::at("open", &path))?;
            if index < first_needed {
                self.closed.push((start, file.len_bytes().map_err(DiskError::at("read", &path))?));
                continue;
            }
            let mut bytes = std::mem::take(&mut spare);
            read_file(&*file, &path, &mut bytes)?;
            if let Err(fault) = frame::check_segment_header(&bytes, start) {
                (self.facts.segments, self.detail) = match fault {
                    HeaderFault::Bad => (SegmentFact::BadHeader, "the header of this segment is damaged".into()),
                    HeaderFault::Foreign(version) => (
                        SegmentFact::Foreign,
                        format!("a segment of format {version}, which this version does not know"),
                    ),
                };
                self.place = Some(Place { path, offset: 0, position: start });
                return Ok(());
            }
            let walk = frame::walk(&bytes, start);
            self.frames += walk.frames;
            let place = Place { path, offset: walk.offset as u64, position: walk.position };
            match starts.get(index + 1) {
                // Whatever stands after the place where the next one takes over is not needed.
                Some(&next) if next == walk.position => {
                    self.closed.push((start, walk.offset as u64));
                    spare = bytes;
                }
                Some(&next) => {
                    self.look_at_a_break(&walk, place, next);
                    return Ok(());
                }
                None => {
                    let end = place.clone();
                    self.look_at_the_end(&bytes, start, &walk, place);
                    if newest_snapshot.is_some_and(|newest| walk.position < newest) {
                        self.facts.reach = ReachFact::Short;
                        if !self.damaged_snapshots.is_empty() && self.facts.tail.may_be_cut() {
                            self.detail += &format!(", and the log ends before it, at position {}", walk.position);
                        } else if self.facts.snapshots == SnapshotFact::Newest && self.facts.tail.may_be_cut() {
                            self.detail = format!(
                                "the log ends here, but it was durable up to position {base} when the snapshot there \
                                 was taken: {} bytes of it are missing, and whatever came after them",
                                self.base - walk.position,
                                base = self.base
                            );
                            self.place = Some(end);
                        }
                    }
                    self.tail = Some(Tail { file, start, bytes, walk });
                }
            }
        }
        Ok(())
    }

    fn look_at_a_break(&mut self, walk: &Walk, place: Place, next: u64) {
        if walk.stray_bytes > 0 && walk.position < next {
            self.facts.body = BodyFact::Damaged;
            self.detail = format!("the log is damaged here, and goes on in the segment that begins at position {next}");
        } else {
            self.facts.body = BodyFact::Gap;
            self.detail = format!("this segment ends here, but the next one begins at position {next}");
        }
        self.place = Some(place);
    }

    fn look_at_the_end(&mut self, bytes: &[u8], start: u64, walk: &Walk, place: Place) {
        if walk.stray_bytes == 0 {
            return;
        }
        let detail;
        (self.facts.tail, detail) = match frame::look_beyond(bytes, start, walk) {
            Beyond::Nothing => (TailFact::Torn, None),
            Beyond::NeverSynced => (TailFact::NeverSynced, None),
            Beyond::Durable { position, synced } => (
                TailFact::Durable,
                Some(format!(
                    "the log is damaged here, and the frame at position {position} knew everything before position \
                     {synced} to be durable"
                )),
            ),
            Beyond::Undecided => (
                TailFact::Undecided,
                Some("the log is damaged here, and whether durable data follows cannot be told".into()),
            ),
        };
        if let Some(detail) = detail {
            self.detail = detail;
            self.place = Some(place);
        }
    }
}
