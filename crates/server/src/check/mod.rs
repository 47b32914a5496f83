//! Examines a data directory without a server and without changing anything: every header, frame, record, chunk and footer
//! is read and verified, the state is put together as a start would, and every invariant of it is asked. `impel check`
//! shows what comes out; `repair.rs` makes a new directory of what is whole.
//!
//! Invariants: what a start would decide is asked of the code that decides it (`log/survey.rs`, `log/recovery.rs`), never
//! judged a second time; beside the state one segment and one chunk are in memory.
//!
//! A directory in which a server works can be looked at, too: up to the last whole frame, as what stands behind it may be
//! a write that is under way.
//!
//! It must never write, and never call whole what a start would refuse.

pub mod json;
pub mod page;
mod reading;
pub mod repair;

#[cfg(test)]
mod tests;

use std::error::Error;
use std::fmt;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

use impel_core::check as invariants;
use impel_core::engine::Engine;
use impel_core::record::Record;
use impel_core::state::codec::{Corrupt, Reader};
use impel_core::state::keyspace::{State, Value};

use crate::disk::{DataDir, DiskError, Holder};
use crate::image::Decoder;
use crate::log::inspect::{self, Outlook};
use crate::log::{OpenError, Row};
use crate::offline;
use crate::snapshots::{self, SnapshotError};
use crate::startup::{self, StartupError};

pub use reading::{Damage, SegmentReport};
use reading::{Event, read_log};

/// How often a directory is looked at anew when a server changes it meanwhile.
const LOOKS_MAX: usize = 5;

/// Why a directory could not be examined. That something in it is damaged is no reason.
#[derive(Debug)]
pub enum CheckError {
    /// A file operation failed.
    Disk(DiskError),
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckError::Disk(error) => error.fmt(f),
        }
    }
}

impl Error for CheckError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            CheckError::Disk(error) => Some(&error.source),
        }
    }
}

impl From<DiskError> for CheckError {
    fn from(error: DiskError) -> Self {
        CheckError::Disk(error)
    }
}

/// How much there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Keys, also those whose time is over.
    pub keys: u64,
    /// Streams among them.
    pub streams: u64,
    /// Entries in them.
    pub entries: u64,
    /// Groups.
    pub groups: u64,
    /// Entries pending in groups.
    pub pending: u64,
}

impl Counts {
    fn add(&mut self, value: &Value) {
        self.keys += 1;
        if let Value::Stream(stream) = value {
            self.streams += 1;
            self.entries += stream.entries.len();
            self.groups += stream.groups.len() as u64;
            self.pending += stream.groups.values().map(|group| group.pel().len()).sum::<u64>();
        }
    }

    fn plus(mut self, other: Counts) -> Counts {
        self.keys += other.keys;
        self.streams += other.streams;
        self.entries += other.entries;
        self.groups += other.groups;
        self.pending += other.pending;
        self
    }
}

/// A snapshot that is there.
#[derive(Clone, Debug)]
pub struct SnapshotReport {
    /// The file.
    pub path: std::path::PathBuf,
    /// The log position it stands for.
    pub position: u64,
    /// What is in it, if it is whole.
    pub contents: Result<SnapshotContents, SnapshotFault>,
}

/// What is in a whole snapshot.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotContents {
    /// When it was begun (Unix ms).
    pub now_ms: u64,
    /// A log was kept then.
    pub with_log: bool,
    /// Length of the file.
    pub len_bytes: u64,
    /// How much it holds.
    pub counts: Counts,
}

/// Why a snapshot cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SnapshotFault {
    /// Damaged from this byte on.
    Damaged {
        /// The byte.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// Of a format that this version does not know.
    Foreign(u32),
    /// Whole, and this version does not know what it holds.
    Unknown(Corrupt),
}

/// What a start would do.
#[derive(Clone, Debug)]
pub struct StartReport {
    /// The row of the table in `log/recovery.rs`.
    pub row: Row,
    /// Why it would refuse, if it would.
    pub refusal: Option<String>,
    /// Bytes at the end of the log that it would cut off.
    pub cut_bytes: u64,
    /// There is no log, though one was kept when the snapshot was taken.
    pub log_is_missing: bool,
    /// Position of the snapshot that it would load.
    pub snapshot: Option<u64>,
}

/// The state that a start would serve; if it would refuse, what is whole before the damage.
#[derive(Clone, Debug)]
pub struct StateReport {
    /// The log position it stands for.
    pub position: u64,
    /// Commits and records of the log that are in it.
    pub commits: u64,
    /// Records of the log that are in it.
    pub records: u64,
    /// By database; those without keys are left out.
    pub databases: Vec<(usize, Counts)>,
    /// What DEBUG DIGEST of the server would show.
    pub digest: String,
    /// What is wrong with it, if anything is.
    pub fault: Option<String>,
}

impl StateReport {
    /// All databases together.
    pub fn total(&self) -> Counts {
        total(&self.databases)
    }
}

/// The state reached another way: from an older snapshot, or from the beginning of the log.
#[derive(Clone, Debug)]
pub struct OlderReport {
    /// Where the replay began; 0 may be the beginning of the log.
    pub base: u64,
    /// The digest, or why there is none.
    pub digest: Result<String, String>,
}

/// How it all is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Whole.
    Whole = 0,
    /// Damaged, and a start would go on.
    Damaged = 1,
    /// A start would refuse.
    Refused = 2,
}

/// Everything that was found.
#[derive(Clone, Debug)]
pub struct Report {
    /// The directory.
    pub folder: String,
    /// Who has its lock.
    pub holder: Holder,
    /// Snapshots, oldest first.
    pub snapshots: Vec<SnapshotReport>,
    /// Segments, oldest first.
    pub segments: Vec<SegmentReport>,
    /// Unfinished files, and damaged snapshots that a start has put aside.
    pub leftovers: Vec<String>,
    /// What a start would do.
    pub start: StartReport,
    /// What it would serve.
    pub state: StateReport,
    /// The same state, reached another way, where there is one.
    pub older: Option<OlderReport>,
    /// What is damaged or missing.
    pub damage: Vec<Damage>,
    /// Missing segments of a past that no start needs, not even with the newest snapshot lost: between two backups that were
    /// further apart than the server kept its log. Moments in there cannot be restored.
    pub gaps: Vec<Damage>,
    /// Commits that are whole and hold something this version does not know: their positions.
    pub unknown_commits: Vec<u64>,
}

impl Report {
    /// How it all is.
    pub fn verdict(&self) -> Verdict {
        let differs = self.older.as_ref().is_some_and(|older| older.digest.as_ref() != Ok(&self.state.digest));
        if self.start.refusal.is_some() {
            Verdict::Refused
        } else if !self.damage.is_empty()
            || !self.unknown_commits.is_empty()
            || self.start.log_is_missing
            || (self.start.cut_bytes > 0 && self.holder != Holder::Server)
            || self.state.fault.is_some()
            || self.snapshots.iter().any(|snapshot| snapshot.contents.is_err())
            || differs
        {
            Verdict::Damaged
        } else {
            Verdict::Whole
        }
    }
}

/// Examines a directory. `tell` hears now and then how far it has come.
pub fn examine(
    dir: &Arc<DataDir>,
    holder: Holder,
    folder: &str,
    tell: &mut dyn FnMut(&str),
) -> Result<Report, CheckError> {
    for _ in 1..LOOKS_MAX {
        let result = examine_once(dir, holder, folder, tell);
        if holder != Holder::Server || !has_moved(&result) {
            return result;
        }
    }
    examine_once(dir, holder, folder, tell)
}

/// May what was found come from a server that removed snapshots and segments, or closed some, while they were read?
fn has_moved(result: &Result<Report, CheckError>) -> bool {
    match result {
        Ok(report) => report.damage.iter().any(|damage| damage.bytes.is_none()),
        Err(CheckError::Disk(error)) => {
            matches!(error.source.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::UnexpectedEof)
        }
    }
}

/// What a start would decide. Of a directory in which a server works, what is found twice: a commit that is being written
/// looks like damage for a moment.
fn outlook(dir: &DataDir, holder: Holder) -> Result<Outlook, CheckError> {
    let look = || match inspect::outlook(dir) {
        Ok(outlook) => Ok(outlook),
        Err(OpenError::Disk(error)) => Err(CheckError::Disk(error)),
        Err(OpenError::Refused(_)) => unreachable!("a look decides and does not refuse"),
    };
    let mut outlook = look()?;
    for _ in 1..LOOKS_MAX {
        let Some(refusal) = outlook.refusal.as_ref().filter(|_| holder == Holder::Server) else { break };
        let again = look()?;
        let is_same = again.refusal.as_ref().is_some_and(|again| again.place == refusal.place);
        outlook = again;
        if is_same {
            break;
        }
    }
    Ok(outlook)
}

fn examine_once(
    dir: &Arc<DataDir>,
    holder: Holder,
    folder: &str,
    tell: &mut dyn FnMut(&str),
) -> Result<Report, CheckError> {
    tell("looking at it as a start does");
    let outlook = outlook(dir, holder)?;
    let base = outlook.base;
    let mut follow = Follow::from(base);
    let mut refusal = outlook.refusal.as_ref().map(ToString::to_string);
    let mut loaded = None;
    if let Some(info) = &outlook.snapshot {
        tell("loading the newest good snapshot");
        let contents = startup::restore(dir, info.position, &mut follow.engine).map(|()| SnapshotContents {
            now_ms: info.now_ms,
            with_log: info.with_log,
            len_bytes: info.len_bytes,
            counts: total(&counts(follow.engine.state())),
        });
        if let Err(error) = &contents {
            refusal.get_or_insert_with(|| format!("not starting: {error}"));
            follow.is_stopped = true;
        }
        loaded = Some(contents);
    }
    let mut damage = Vec::new();
    let snapshots = examine_snapshots(dir, loaded, base, &mut damage, tell)?;
    let log = read_log(dir, base, true, holder, &mut |event| follow.event(event), tell)?;
    if let (None, Some((position, error))) = (&refusal, follow.unusable) {
        refusal = Some(format!(
            "not starting: the log frame at position {position} cannot be applied, start the version that wrote it: {error}"
        ));
    }
    let (gaps, found) = log.damage.into_iter().partition(|one| is_gap(one, &snapshots));
    damage.extend::<Vec<Damage>>(found);
    if holder != Holder::Server {
        damage.extend(missing_end(&snapshots, &log.segments, &damage));
    }
    tell("asking every invariant");
    let state = follow.report();
    let is_whole_from = |from: u64| !follow.holes.iter().any(|&(_, to)| to.is_none_or(|to| to > from));
    let older = older_base(&snapshots, &log.segments, base).filter(|&older| is_whole_from(older));
    let unknown_commits = std::mem::take(&mut follow.unknown_commits);
    // The memory of one state is enough.
    drop(follow);
    let older = match older {
        Some(older) if refusal.is_none() => Some(examine_older(dir, older, state.position, holder, tell)?),
        _ => None,
    };
    let start = StartReport {
        row: outlook.row,
        refusal,
        cut_bytes: outlook.cut_bytes,
        log_is_missing: outlook.log_is_missing,
        snapshot: outlook.snapshot.map(|info| info.position),
    };
    let segments = log.segments;
    let (folder, leftovers) = (folder.to_owned(), leftovers(dir)?);
    Ok(Report { folder, holder, snapshots, segments, leftovers, start, state, older, damage, gaps, unknown_commits })
}

/// See [`Report::gaps`].
fn is_gap(damage: &Damage, snapshots: &[SnapshotReport]) -> bool {
    let mut whole = snapshots.iter().rev().filter(|snapshot| snapshot.contents.is_ok());
    match (damage.bytes, damage.positions, whole.nth(1)) {
        (None, Some((_, Some(to))), Some(last_but_one)) => to <= last_but_one.position,
        _ => false,
    }
}

/// What is missing if the log ends before the newest snapshot, which it had reached. `damage`: what is known already.
fn missing_end(snapshots: &[SnapshotReport], segments: &[SegmentReport], damage: &[Damage]) -> Option<Damage> {
    let newest = snapshots.last()?;
    let last = segments.last();
    let end = last.map(|last| last.end);
    let is_told = damage.iter().any(|one| matches!(one.positions, Some((_, None))));
    let had_log = newest.contents.as_ref().map_or(true, |contents| contents.with_log);
    if !had_log || is_told || end.is_some_and(|end| end >= newest.position) {
        return None;
    }
    let what = match end {
        Some(_) => {
            format!("the log ends here, before the snapshot at position {}, which it had reached", newest.position)
        }
        None => "there is no log, though one was kept when this snapshot was taken".into(),
    };
    Some(Damage {
        path: last.map_or_else(|| newest.path.clone(), |last| last.path.clone()),
        bytes: None,
        positions: Some((end.unwrap_or(newest.position), None)),
        before_ms: last.and_then(|last| last.times).map(|(_, last_ms)| last_ms),
        after_ms: None,
        what,
    })
}

fn leftovers(dir: &DataDir) -> Result<Vec<String>, DiskError> {
    let mut found = Vec::new();
    for folder in [dir.log(), dir.snapshots()] {
        let names = dir.disk().list(folder).map_err(DiskError::at("list", folder))?;
        found.extend(names.into_iter().filter(|name| name.ends_with(".tmp") || name.ends_with(".damaged")));
    }
    Ok(found)
}

fn examine_snapshots(
    dir: &DataDir,
    mut base: Option<Result<SnapshotContents, StartupError>>,
    base_position: u64,
    damage: &mut Vec<Damage>,
    tell: &mut dyn FnMut(&str),
) -> Result<Vec<SnapshotReport>, DiskError> {
    let mut found = Vec::new();
    for position in snapshots::list(dir)? {
        tell(&format!("reading the snapshot at position {position}"));
        let path = snapshots::snapshot_path(dir, position);
        // That one has been read.
        let known = if position == base_position { base.take() } else { None };
        let contents = match known.unwrap_or_else(|| examine_snapshot(dir, position)) {
            Ok(contents) => Ok(contents),
            Err(StartupError::Snapshot(SnapshotError::Disk(error))) => return Err(error),
            Err(StartupError::Snapshot(SnapshotError::Damaged { offset, what, .. })) => {
                damage.push(Damage {
                    path: path.clone(),
                    bytes: Some((offset, None)),
                    positions: None,
                    before_ms: None,
                    after_ms: None,
                    what: format!("this snapshot is damaged: {what}"),
                });
                Err(SnapshotFault::Damaged { offset, what })
            }
            Err(StartupError::Snapshot(SnapshotError::Foreign { version, .. })) => Err(SnapshotFault::Foreign(version)),
            Err(StartupError::Content(corrupt)) => Err(SnapshotFault::Unknown(corrupt)),
            Err(error) => unreachable!("reading a snapshot fails in no other way: {error}"),
        };
        found.push(SnapshotReport { path, position, contents });
    }
    Ok(found)
}

fn examine_snapshot(dir: &DataDir, position: u64) -> Result<SnapshotContents, StartupError> {
    let mut reader = snapshots::read(dir, position)?;
    let (mut decoder, mut counts) = (Decoder::default(), Counts::default());
    while let Some(chunk) = reader.next_chunk()? {
        decoder.chunk(chunk, |key| counts.add(&key.value))?;
    }
    decoder.finish()?;
    let (now_ms, with_log, len_bytes) = (reader.now_ms(), reader.with_log(), reader.len_bytes());
    Ok(SnapshotContents { now_ms, with_log, len_bytes, counts })
}

/// From where else the log leads to the same state: the oldest whole snapshot before `base` that it reaches back to, or its
/// own beginning.
fn older_base(snapshots: &[SnapshotReport], segments: &[SegmentReport], base: u64) -> Option<u64> {
    let first = segments.first()?.start;
    if first == 0 && base > 0 {
        return Some(0);
    }
    let whole = snapshots.iter().filter(|snapshot| snapshot.contents.is_ok());
    whole.map(|snapshot| snapshot.position).find(|&position| first <= position && position < base)
}

/// `end`: how far the other way led.
fn examine_older(
    dir: &DataDir,
    base: u64,
    end: u64,
    holder: Holder,
    tell: &mut dyn FnMut(&str),
) -> Result<OlderReport, CheckError> {
    tell(&format!("once more from position {base} on"));
    let mut follow = Follow::from(base);
    follow.end = end;
    // At 0 the log begins with nothing.
    if base > 0 {
        match startup::restore(dir, base, &mut follow.engine) {
            Ok(()) => {}
            Err(StartupError::Snapshot(SnapshotError::Disk(error))) => return Err(error.into()),
            Err(error) => return Ok(OlderReport { base, digest: Err(error.to_string()) }),
        }
    }
    read_log(dir, base, false, holder, &mut |event| follow.event(event), tell)?;
    let digest = match follow.unusable {
        Some((position, error)) => Err(format!("the frame at position {position} cannot be applied: {error}")),
        None if follow.position != end => Err(format!("the log leads to position {}", follow.position)),
        None => Ok(invariants::digest(follow.engine.state()).hex()),
    };
    Ok(OlderReport { base, digest })
}

/// Follows the log as a start does, and reads on where a start would stop.
struct Follow {
    engine: Engine,
    base: u64,
    position: u64,
    /// Not beyond this: a server at work goes on writing.
    end: u64,
    commits: u64,
    records: u64,
    is_stopped: bool,
    /// The first commit that should have been applied and could not.
    unusable: Option<(u64, Corrupt)>,
    unknown_commits: Vec<u64>,
    holes: Vec<(u64, Option<u64>)>,
}

impl Follow {
    fn from(base: u64) -> Follow {
        Follow {
            engine: offline::empty_engine(),
            base,
            position: base,
            end: u64::MAX,
            commits: 0,
            records: 0,
            is_stopped: false,
            unusable: None,
            unknown_commits: Vec::new(),
            holes: Vec::new(),
        }
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Hole { from, to } => {
                self.holes.push((from, to));
                self.is_stopped |= to.is_none_or(|to| to > self.base || to == from);
            }
            Event::Frame { position, now_ms, payload } => self.frame(position, now_ms, payload),
        }
    }

    fn frame(&mut self, position: u64, now_ms: u64, payload: &[u8]) {
        let end = position + payload.len() as u64;
        if self.is_stopped || end <= self.base || position >= self.end {
            if decode_all(payload).is_err() {
                self.unknown_commits.push(position);
            }
            return;
        }
        let from = position.max(self.base);
        match startup::replay(from, now_ms, &payload[(from - position) as usize..], &mut self.engine) {
            Ok(records) => {
                (self.commits, self.records) = (self.commits + 1, self.records + records);
                self.position = end;
            }
            Err(error) => {
                self.unusable = Some((position, error));
                self.unknown_commits.push(position);
                self.is_stopped = true;
            }
        }
    }

    fn report(&self) -> StateReport {
        let state = self.engine.state();
        // Both look at every entry: each has a processor to itself where there are two.
        let (digest, fault) = thread::scope(|scope| {
            let digest = scope.spawn(|| invariants::digest(state).hex());
            let fault = invariants::check(state).err();
            (digest.join(), fault)
        });
        StateReport {
            position: self.position,
            commits: self.commits,
            records: self.records,
            databases: counts(state),
            digest: digest.unwrap_or_else(|panic| resume_unwind(panic)),
            fault,
        }
    }
}

fn total(databases: &[(usize, Counts)]) -> Counts {
    databases.iter().fold(Counts::default(), |sum, (_, counts)| sum.plus(*counts))
}

fn counts(state: &State) -> Vec<(usize, Counts)> {
    let mut found = Vec::new();
    for (number, db) in state.databases().iter().enumerate().filter(|(_, db)| !db.is_empty()) {
        let mut counts = Counts::default();
        db.iter().for_each(|(_, slot)| counts.add(&slot.value));
        found.push((number, counts));
    }
    found
}

fn decode_all(payload: &[u8]) -> Result<(), Corrupt> {
    let mut reader = Reader::new(payload);
    while !reader.is_empty() {
        Record::decode(&mut reader)?;
    }
    Ok(())
}
