//! The log in files: segments in the directory `log/`, each named by the position of its first byte.
//!
//! Invariants:
//! - Only the last segment is appended to. Before a segment is begun, the one before it is cut to its length and synced,
//!   so damage in a segment that another one follows is damage to what had been durable.
//! - A segment gets its name only when its header is durable, so a crash never leaves one without.
//! - `synced <= end`, and everything before `synced` survives a crash.
//! - Before anything is appended after a cut, the cut is durable: a leftover frame behind it would be taken for good
//!   again as soon as new frames of the same lengths led up to it.
//!
//! What a file holds after a failed sync is unknown even if it can be read, because the page cache may have forgotten
//! that it owes the disk these pages. So opening writes the frames that no later frame proves durable once more, and
//! syncs them, before it builds on them.
//!
//! It must never truncate what may have been acknowledged, nor go on after an error.

use std::collections::VecDeque;
use std::error::Error;
use std::io;
use std::sync::Arc;

use super::frame::{self, FRAME_HEADER_BYTES, FRAMES_AT};
use super::recovery::{self, Action, OpenError, Recovery, Refusal, Row, SegmentFact};
use super::survey::{Survey, Tail, segment_path};
use super::{Log, LogError};
use crate::disk::{DataDir, DiskError, DiskFile, remove_unfinished};
use crate::snapshots;

/// Largest frame that is put together in memory to be written in one call; of a larger one the payload is written from
/// where it is. Copying this much takes microseconds, a sync takes hundreds.
const ONE_WRITE_MAX_BYTES: usize = 256 * 1024;

/// How far zeros are written ahead of a small frame that is the first to come this far, in the same write. Space that is
/// only reserved has to be turned into written space, which makes the sync of every commit wait for the file system's
/// journal as well; so it is turned in larger pieces, and the syncs in between write data alone. On ext4 this halves the
/// median time of a commit of 4 to 64 KiB.
const ZEROS_AHEAD_BYTES: u64 = 1 << 20;

/// What is done when space for a segment is taken, as an error says it.
const RESERVE: &str = "reserve the space of a segment (log-segment-bytes) for";

/// How a file log is laid out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Size at which a segment is full, and to which it is reserved. 8 KiB to 1 GiB; a value outside is moved inside.
    pub segment_bytes: u64,
    /// Largest payload of a frame. At most `u32::MAX`, which is what the format can hold.
    pub payload_max_bytes: u32,
}

impl Default for Options {
    fn default() -> Self {
        Options { segment_bytes: 64 << 20, payload_max_bytes: u32::MAX }
    }
}

/// A segment that is not appended to any more.
#[derive(Clone, Copy, Debug)]
struct Closed {
    start: u64,
    len_bytes: u64,
}

/// The segment that is appended to.
struct Active {
    file: Box<dyn DiskFile>,
    start: u64,
    /// Where the next frame goes.
    offset: u64,
    /// The file's length.
    reserved_bytes: u64,
    /// Up to here the file has been written to, if only with zeros.
    touched_bytes: u64,
}

/// A log in files. Made by `open`.
pub struct FileLog {
    dir: Arc<DataDir>,
    options: Options,
    closed: VecDeque<Closed>,
    active: Active,
    end: u64,
    synced: u64,
    poison: Option<String>,
    scratch: Vec<u8>,
}

/// What a log holds, to be read.
pub struct Stored {
    dir: Arc<DataDir>,
    segments: Vec<Closed>,
    end: u64,
}

impl Stored {
    /// Hands every frame with a byte at or after `from` to `apply`, oldest first: position of the payload's first byte,
    /// the time stored with it, the payload. Of a frame that `from` is in the middle of, only what is at or after it.
    pub fn replay(
        &self,
        from: u64,
        mut apply: impl FnMut(u64, u64, &[u8]) -> Result<(), Box<dyn Error + Send + Sync>>,
    ) -> Result<(), LogError> {
        let first = self.segments.first().map_or(self.end, |segment| segment.start);
        if from < first || from > self.end {
            return Err(LogError::OutOfReach { from, first, end: self.end });
        }
        let mut bytes = Vec::new();
        for (index, segment) in self.segments.iter().enumerate() {
            let start = segment.start;
            let next = self.segments.get(index + 1).map(|next| next.start);
            if next.is_some_and(|next| next <= from) {
                continue;
            }
            let path = segment_path(&self.dir, start);
            let len_bytes = self.read_segment(segment, &mut bytes).map_err(DiskError::at("read", &path))?;
            let bytes = &bytes[..len_bytes];
            let end = next.unwrap_or(self.end);
            let (mut offset, mut position) = (FRAMES_AT, start);
            while position < end {
                let Some(frame) = frame::frame_at(bytes, offset, start, position) else {
                    return Err(LogError::Damaged { path, offset: offset as u64, position });
                };
                let after = position + frame.payload.len() as u64;
                if after > from {
                    let at = position.max(from);
                    apply(at, frame.now_ms, &frame.payload[(at - position) as usize..])
                        .map_err(|source| LogError::Apply { position: at, source })?;
                }
                position = after;
                offset += frame.len_bytes();
            }
        }
        Ok(())
    }

    /// Reads a segment into the front of `bytes`; returns its length in use.
    fn read_segment(&self, segment: &Closed, bytes: &mut Vec<u8>) -> io::Result<usize> {
        let file = self.dir.disk().open(&segment_path(&self.dir, segment.start))?;
        let len_bytes = usize::try_from(segment.len_bytes).map_err(io::Error::other)?;
        if bytes.len() < len_bytes {
            bytes.resize(len_bytes, 0);
        }
        file.read_at(0, &mut bytes[..len_bytes])?;
        Ok(len_bytes)
    }
}

/// What is there, if the table lets a start go on with it.
fn examine(dir: &DataDir) -> Result<(Survey, Row), OpenError> {
    let survey = Survey::of(dir)?;
    let row = recovery::classify(&survey.facts);
    if row.action() == Action::Refuse {
        return Err(OpenError::Refused(Refusal { row, place: survey.place, detail: survey.detail }));
    }
    Ok((survey, row))
}

/// Sees to what does not belong among the snapshots; answers what the operator should know of them.
fn tidy_snapshots(dir: &DataDir, survey: &Survey) -> Result<Vec<String>, OpenError> {
    let mut notes = Vec::new();
    snapshots::remove_unfinished(dir)?;
    for (position, what) in &survey.damaged_snapshots {
        // Out of the way under another name, or it would count as one of those to keep when snapshots are pruned.
        let kept_as = snapshots::set_aside(dir, *position)?;
        notes.push(format!("damaged snapshot passed over and kept as {}: {what}", kept_as.display()));
    }
    if survey.facts.segments == SegmentFact::Empty
        && let Some(info) = survey.snapshot.as_ref().filter(|info| info.with_log)
    {
        notes.push(format!(
            "there is no log, though one was kept when the snapshot at position {} was taken: what came after it is \
             not here",
            info.position
        ));
    }
    Ok(notes)
}

/// As [`open`], for a server that keeps no log: what there is of one is judged the same and read, and stays as it is.
pub fn open_to_read(dir: &Arc<DataDir>) -> Result<(Stored, Recovery), OpenError> {
    let (survey, row) = examine(dir)?;
    let mut notes = tidy_snapshots(dir, &survey)?;
    // The name of the snapshot that is used may be in the page cache only, if whoever gave it was killed before its sync.
    dir.disk().sync_dir(dir.snapshots()).map_err(DiskError::at("sync directory", dir.snapshots()))?;
    let mut segments: Vec<Closed> =
        survey.closed.iter().map(|&(start, len_bytes)| Closed { start, len_bytes }).collect();
    let mut end = survey.base;
    match (row.action(), &survey.tail) {
        (Action::Continue, Some(tail)) => {
            end = tail.walk.position;
            segments.push(Closed { start: tail.start, len_bytes: tail.walk.offset as u64 });
            if tail.walk.stray_bytes > 0 {
                notes.push(format!(
                    "{} bytes at the end of {} that were never known to be durable are not read: the log ends at \
                     position {end}",
                    tail.walk.stray_bytes,
                    segment_path(dir, tail.start).display(),
                ));
            }
        }
        // All of it is in the snapshot.
        _ => segments.clear(),
    }
    let recovery = Recovery {
        row,
        snapshot: survey.snapshot,
        replay_from: survey.base,
        end,
        frames: survey.frames,
        cut_bytes: 0,
        notes,
    };
    Ok((Stored { dir: dir.clone(), segments, end }, recovery))
}

/// Examines the directory, decides by the table in `recovery.rs`, and opens the log for appending. When it has returned,
/// everything that the log holds is durable.
pub fn open(dir: &Arc<DataDir>, options: Options) -> Result<(FileLog, Recovery), OpenError> {
    let options = Options { segment_bytes: options.segment_bytes.clamp(2 * FRAMES_AT as u64, 1 << 30), ..options };
    let (survey, row) = examine(dir)?;
    // From here on the disk is changed.
    remove_unfinished(dir.disk(), dir.log())?;
    let mut notes = tidy_snapshots(dir, &survey)?;
    // Names that were in the page cache only, after a sync that failed before the restart.
    dir.disk().sync_dir(dir.log()).map_err(DiskError::at("sync directory", dir.log()))?;
    dir.disk().sync_dir(dir.snapshots()).map_err(DiskError::at("sync directory", dir.snapshots()))?;

    let mut closed: VecDeque<Closed> =
        survey.closed.iter().map(|&(start, len_bytes)| Closed { start, len_bytes }).collect();
    let mut cut_bytes = 0;
    let (active, end) = match (row.action(), survey.tail) {
        (Action::Continue, Some(tail)) => {
            let end = tail.walk.position;
            cut_bytes = tail.walk.stray_bytes as u64;
            if cut_bytes > 0 {
                notes.push(format!(
                    "{cut_bytes} bytes at the end of {} that were never known to be durable are cut off: the log ends \
                     at position {end}",
                    segment_path(dir, tail.start).display(),
                ));
            }
            (settle(dir, options, tail)?, end)
        }
        (_, tail) => {
            if let Some(tail) = tail {
                closed.push_back(Closed { start: tail.start, len_bytes: tail.walk.offset as u64 });
            }
            (begin_segment(dir, options, survey.base, 0)?, survey.base)
        }
    };
    let recovery = Recovery {
        row,
        snapshot: survey.snapshot,
        replay_from: survey.base,
        end,
        frames: survey.frames,
        cut_bytes,
        notes,
    };
    let log =
        FileLog { dir: dir.clone(), options, closed, active, end, synced: end, poison: None, scratch: Vec::new() };
    Ok((log, recovery))
}

/// Makes the last segment one that can be appended to: what is in it is durable, nothing stands after its frames.
fn settle(dir: &DataDir, options: Options, tail: Tail) -> Result<Active, DiskError> {
    let Tail { mut file, start, bytes, walk } = tail;
    let path = segment_path(dir, start);
    let unproven = frame::offset_of(&bytes, start, &walk, walk.synced);
    if walk.stray_bytes > 0 {
        file.truncate(walk.offset as u64).map_err(DiskError::at("cut", &path))?;
    }
    // The same bytes in the same place: a crash in the middle of this harms nothing.
    if unproven < walk.offset {
        file.write_at(unproven as u64, &bytes[unproven..walk.offset]).map_err(DiskError::at("write", &path))?;
    }
    file.allocate(options.segment_bytes).map_err(DiskError::at(RESERVE, &path))?;
    let reserved_bytes = file.len_bytes().map_err(DiskError::at("read", &path))?;
    // Appending begins only now, when no crash can bring the leftovers back.
    file.sync_all().map_err(DiskError::at("sync", &path))?;
    Ok(Active { file, start, offset: walk.offset as u64, reserved_bytes, touched_bytes: walk.offset as u64 })
}

/// Makes a new segment, large enough for a frame of `frame_bytes`. It has its name only when its header is durable.
fn begin_segment(dir: &DataDir, options: Options, start: u64, frame_bytes: u64) -> Result<Active, DiskError> {
    let path = segment_path(dir, start);
    let unfinished = path.with_extension("log.tmp");
    let mut file = dir.disk().create(&unfinished).map_err(DiskError::at("create", &unfinished))?;
    let reserved_bytes = options.segment_bytes.max(FRAMES_AT as u64 + frame_bytes);
    file.allocate(reserved_bytes).map_err(DiskError::at(RESERVE, &unfinished))?;
    file.write_at(0, &frame::segment_header(start)).map_err(DiskError::at("write", &unfinished))?;
    file.sync_all().map_err(DiskError::at("sync", &unfinished))?;
    dir.disk().rename(&unfinished, &path).map_err(DiskError::at("rename", &unfinished))?;
    dir.disk().sync_dir(dir.log()).map_err(DiskError::at("sync directory", dir.log()))?;
    Ok(Active { file, start, offset: FRAMES_AT as u64, reserved_bytes, touched_bytes: FRAMES_AT as u64 })
}

impl FileLog {
    /// The first position that the log still holds.
    pub fn first(&self) -> u64 {
        self.closed.front().map_or(self.active.start, |segment| segment.start)
    }

    /// What is in it now.
    pub fn stored(&self) -> Stored {
        let active = Closed { start: self.active.start, len_bytes: self.active.offset };
        let segments = self.closed.iter().copied().chain([active]).collect();
        Stored { dir: self.dir.clone(), segments, end: self.end }
    }

    /// See [`Stored::replay`].
    pub fn replay(
        &self,
        from: u64,
        apply: impl FnMut(u64, u64, &[u8]) -> Result<(), Box<dyn Error + Send + Sync>>,
    ) -> Result<(), LogError> {
        self.stored().replay(from, apply)
    }

    fn check_poison(&self) -> Result<(), LogError> {
        match &self.poison {
            Some(reason) => Err(LogError::Poisoned { reason: reason.clone() }),
            None => Ok(()),
        }
    }

    fn poison(&mut self, result: Result<(), DiskError>) -> Result<(), LogError> {
        result.map_err(|error| {
            self.poison = Some(error.to_string());
            LogError::Disk(error)
        })
    }

    fn append(&mut self, payload: &[u8], now_ms: u64, sync: bool) -> Result<(), DiskError> {
        let frame_bytes = (FRAME_HEADER_BYTES + payload.len()) as u64;
        self.make_room(frame_bytes)?;
        let header = frame::frame_header(self.end, now_ms, self.synced, payload);
        let active = &mut self.active;
        let written = if payload.len() <= ONE_WRITE_MAX_BYTES {
            self.scratch.clear();
            self.scratch.extend_from_slice(&header);
            self.scratch.extend_from_slice(payload);
            let after = active.offset + frame_bytes;
            if after > active.touched_bytes {
                active.touched_bytes = (after + ZEROS_AHEAD_BYTES).min(active.reserved_bytes);
                self.scratch.resize((active.touched_bytes - active.offset) as usize, 0);
            }
            active.file.write_at(active.offset, &self.scratch)
        } else {
            let payload_at = active.offset + FRAME_HEADER_BYTES as u64;
            active.file.write_at(active.offset, &header).and_then(|()| active.file.write_at(payload_at, payload))
        };
        written.map_err(|error| DiskError::at("write", &segment_path(&self.dir, active.start))(error))?;
        active.offset += frame_bytes;
        self.end += payload.len() as u64;
        if sync { self.sync_active() } else { Ok(()) }
    }

    /// Sees to it that the active segment has room for a frame: reserves more, or closes it and begins the next.
    fn make_room(&mut self, frame_bytes: u64) -> Result<(), DiskError> {
        let active = &mut self.active;
        let needed_bytes = active.offset + frame_bytes;
        if needed_bytes <= active.reserved_bytes {
            return Ok(());
        }
        let path = segment_path(&self.dir, active.start);
        if active.offset == FRAMES_AT as u64 {
            // An empty segment is never closed: the next would have its name.
            active.file.allocate(needed_bytes).map_err(DiskError::at(RESERVE, &path))?;
            active.reserved_bytes = needed_bytes;
            return Ok(());
        }
        active.file.truncate(active.offset).map_err(DiskError::at("cut", &path))?;
        active.file.sync_all().map_err(DiskError::at("sync", &path))?;
        let closed = Closed { start: active.start, len_bytes: active.offset };
        self.synced = self.end;
        self.active = begin_segment(&self.dir, self.options, self.end, frame_bytes)?;
        self.closed.push_back(closed);
        Ok(())
    }

    fn sync_active(&mut self) -> Result<(), DiskError> {
        let active = &mut self.active;
        let synced = active.file.sync_data();
        // A file that somebody has removed is written and synced without an error, and never found again.
        let is_there = synced.and_then(|()| match active.file.is_removed()? {
            true => Err(io::Error::new(io::ErrorKind::NotFound, "it has been removed")),
            false => Ok(()),
        });
        is_there.map_err(|error| DiskError::at("sync", &segment_path(&self.dir, active.start))(error))?;
        self.synced = self.end;
        Ok(())
    }
}

impl Log for FileLog {
    fn commit(&mut self, payload: &[u8], now_ms: u64, sync: bool) -> Result<(), LogError> {
        self.check_poison()?;
        if payload.is_empty() {
            return if sync { self.sync() } else { Ok(()) };
        }
        if payload.len() as u64 > u64::from(self.options.payload_max_bytes) {
            let max_bytes = u64::from(self.options.payload_max_bytes);
            return Err(LogError::TooLarge { len_bytes: payload.len() as u64, max_bytes });
        }
        let result = self.append(payload, now_ms, sync);
        self.poison(result)
    }

    fn sync(&mut self) -> Result<(), LogError> {
        self.check_poison()?;
        if self.synced == self.end {
            return Ok(());
        }
        let result = self.sync_active();
        self.poison(result)
    }

    fn end(&self) -> u64 {
        self.end
    }

    fn trim(&mut self, before: u64) -> Result<(), LogError> {
        self.check_poison()?;
        let mut removed = false;
        while let Some(segment) = self.closed.front() {
            let next = self.closed.get(1).map_or(self.active.start, |next| next.start);
            if next > before {
                break;
            }
            // Oldest first: what a crash leaves still joins.
            let path = segment_path(&self.dir, segment.start);
            self.dir.disk().remove(&path).map_err(DiskError::at("remove", &path))?;
            self.closed.pop_front();
            removed = true;
        }
        if removed {
            self.dir.disk().sync_dir(self.dir.log()).map_err(DiskError::at("sync directory", self.dir.log()))?;
        }
        Ok(())
    }

    fn len_bytes(&self) -> u64 {
        self.closed.iter().map(|segment| segment.len_bytes).sum::<u64>() + self.active.offset
    }
}
