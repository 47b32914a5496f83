//! Makes a new data directory of everything that is whole in a damaged one: a snapshot, and nothing else.
//!
//! What is kept, exactly:
//! - The base is the newest snapshot that is whole; without one the beginning of the log, or nothing.
//! - Every whole frame behind the base is followed, record by record, in the order of the log.
//! - Behind a hole, records that presuppose what may have been lost are left out, counted and named
//!   (`impel_core::engine::fit`). The others are applied: an entry that was added later is worth having although some before
//!   it are gone. A transaction behind a hole may so be there in part.
//! - Where the log has a hole before a damaged snapshot, the keys in that snapshot's whole chunks take the place of what the
//!   log has led to: they are as new as the snapshot.
//! - If what came out broke an invariant, the whole frames behind the first hole would be given up (`beyond_holes`).
//!
//! Nothing of the old directory is changed. A format or a record that this version does not know is no damage: then nothing
//! is made, as the version that wrote it can read everything.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use impel_core::check as invariants;
use impel_core::engine::Engine;
use impel_core::engine::fit::{Known, fits};
use impel_core::record::{Record, TAGS};
use impel_core::state::codec::{Corrupt, Reader};

use super::reading::{Event, read_log};
use super::{Counts, Damage, Report, SnapshotFault, counts, missing_end, total};
use crate::disk::{DataDir, DiskError};
use crate::image::Decoder;
use crate::offline;
use crate::snapshots::{self, SnapshotError};
use crate::startup::{self, StartupError};

/// Records left out that are named one by one; the rest is counted.
const NAMED_MAX: usize = 100;

/// Why nothing could be made.
#[derive(Debug)]
pub enum RepairError {
    /// Written by a version that can read more than this one.
    Foreign(String),
    /// A file operation failed.
    Disk(DiskError),
    /// A snapshot could not be read or written.
    Snapshot(SnapshotError),
    /// What is left does not hold together, not even before the first hole.
    Broken(String),
}

impl fmt::Display for RepairError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RepairError::Foreign(what) => write!(f, "{what}: nothing is repaired, start the version that wrote it"),
            RepairError::Disk(error) => error.fmt(f),
            RepairError::Snapshot(error) => error.fmt(f),
            RepairError::Broken(what) => write!(f, "what is left does not hold together: {what}"),
        }
    }
}

impl Error for RepairError {}

impl From<DiskError> for RepairError {
    fn from(error: DiskError) -> Self {
        RepairError::Disk(error)
    }
}

impl From<SnapshotError> for RepairError {
    fn from(error: SnapshotError) -> Self {
        RepairError::Snapshot(error)
    }
}

/// A record that was left out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeftOut {
    /// Its log position.
    pub position: u64,
    /// The time of its commit (Unix ms).
    pub now_ms: u64,
    /// What kind of record it is.
    pub kind: &'static str,
    /// The key, if it is about one.
    pub key: Option<(usize, Vec<u8>)>,
    /// Why it does not fit.
    pub why: &'static str,
}

/// Keys taken from a damaged snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Salvaged {
    /// The snapshot's position.
    pub position: u64,
    /// Keys that were whole.
    pub keys: u64,
    /// Chunks that were not.
    pub chunks_lost: u64,
    /// Those are all; else there may have been more behind them.
    pub is_all: bool,
}

/// What was made.
#[derive(Clone, Debug)]
pub struct Repaired {
    /// Position of the new snapshot.
    pub position: u64,
    /// The snapshot that it began with; `None`: the beginning of the log, or nothing.
    pub base: Option<u64>,
    /// Commits of the log that were followed, and those of them that stand behind a hole.
    pub commits: u64,
    /// See `commits`.
    pub commits_behind: u64,
    /// Records behind holes that were left out.
    pub left_out: u64,
    /// The first of them.
    pub named: Vec<LeftOut>,
    /// Damaged snapshots of which keys were taken.
    pub salvaged: Vec<Salvaged>,
    /// What is lost: the holes in the log behind the base.
    pub lost: Vec<Damage>,
    /// Commits behind the first hole were given up, as what they led to did not hold together: why not.
    pub given_up: Option<String>,
    /// How much there is.
    pub counts: Counts,
    /// Its digest.
    pub digest: String,
}

impl Repaired {
    /// Is everything there that ever was?
    pub fn is_complete(&self) -> bool {
        self.lost.is_empty() && self.left_out == 0 && self.given_up.is_none()
    }
}

/// Writes into `target`, a new directory, what is whole in `dir`, of which `report` is the examination.
pub fn repair(
    dir: &Arc<DataDir>,
    target: &Arc<DataDir>,
    report: &Report,
    tell: &mut dyn FnMut(&str),
) -> Result<Repaired, RepairError> {
    refuse_what_is_foreign(report)?;
    let mut salvage = Salvage::read(dir, report, true, tell)?;
    if let Some(broken) = salvage.fault() {
        salvage = Salvage::read(dir, report, false, tell)?;
        if let Some(broken) = salvage.fault() {
            return Err(RepairError::Broken(broken));
        }
        salvage.done.given_up = Some(broken);
    }
    tell("writing the new directory");
    salvage.write(target)
}

/// Is there anything that another version wrote?
pub fn refuse_what_is_foreign(report: &Report) -> Result<(), RepairError> {
    let foreign = |what: String| Err(RepairError::Foreign(what));
    if report.start.row == crate::log::Row::J {
        return foreign("this directory holds a format that this version does not know".into());
    }
    for snapshot in &report.snapshots {
        match snapshot.contents {
            // An older one that nothing is needed of does not matter.
            Err(SnapshotFault::Foreign(_)) | Ok(_) | Err(SnapshotFault::Damaged { .. }) => {}
            Err(SnapshotFault::Unknown(what)) => {
                return foreign(format!("the snapshot at position {} holds an unknown {what}", snapshot.position));
            }
        }
    }
    match report.unknown_commits.first() {
        Some(position) => foreign(format!("the frame at position {position} holds what this version does not know")),
        None => Ok(()),
    }
}

/// Makes a state of what is whole.
struct Salvage<'d> {
    dir: &'d DataDir,
    engine: Engine,
    base: u64,
    /// The position that the state stands for.
    position: u64,
    beyond_holes: bool,
    has_hole: bool,
    known: Known,
    /// Damaged snapshots that are still ahead, newest first.
    ahead: Vec<u64>,
    error: Option<RepairError>,
    done: Repaired,
}

impl<'d> Salvage<'d> {
    fn read(
        dir: &'d DataDir,
        report: &Report,
        beyond_holes: bool,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Salvage<'d>, RepairError> {
        let base = report.snapshots.iter().rev().find(|snapshot| snapshot.contents.is_ok()).map(|found| found.position);
        let is_ahead = |position: u64| base.is_none_or(|base| position > base);
        let damaged = report.snapshots.iter().rev().filter(|snapshot| snapshot.contents.is_err());
        let ahead = damaged.map(|snapshot| snapshot.position).filter(|&position| is_ahead(position)).collect();
        let done = Repaired {
            position: 0,
            base,
            commits: 0,
            commits_behind: 0,
            left_out: 0,
            named: Vec::new(),
            salvaged: Vec::new(),
            lost: Vec::new(),
            given_up: None,
            counts: Counts::default(),
            digest: String::new(),
        };
        let mut salvage = Salvage {
            dir,
            engine: offline::empty_engine(),
            base: base.unwrap_or(0),
            position: base.unwrap_or(0),
            beyond_holes,
            has_hole: false,
            known: Known::default(),
            ahead,
            error: None,
            done,
        };
        if let Some(base) = base {
            match startup::restore(dir, base, &mut salvage.engine) {
                Ok(()) => {}
                Err(StartupError::Snapshot(error)) => return Err(error.into()),
                Err(error) => return Err(RepairError::Foreign(error.to_string())),
            }
        }
        let base = salvage.base;
        let log = read_log(dir, base, false, crate::disk::Holder::Nobody, &mut |event| salvage.event(event), tell)?;
        salvage.take_ahead(u64::MAX);
        if let Some(error) = salvage.error.take() {
            return Err(error);
        }
        let is_lost = |damage: &Damage| match damage.positions {
            Some((_, to)) => to.is_none_or(|to| to > base),
            None => false,
        };
        salvage.done.lost = log.damage.into_iter().filter(is_lost).collect();
        salvage.done.lost.extend(missing_end(&report.snapshots, &log.segments, &salvage.done.lost));
        Ok(salvage)
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Hole { to, from } => {
                if to.is_none_or(|to| to > self.base || to == from) {
                    self.has_hole = true;
                    // What was known of keys before may have been changed in it.
                    self.known = Known::default();
                }
            }
            Event::Frame { position, now_ms, payload } => self.frame(position, now_ms, payload),
        }
    }

    fn frame(&mut self, position: u64, now_ms: u64, payload: &[u8]) {
        let end = position + payload.len() as u64;
        // What overlapping segments tell twice is followed once.
        if self.error.is_some() || end <= self.position || (self.has_hole && !self.beyond_holes) {
            return;
        }
        if let Err(corrupt) = self.records(position, now_ms, payload) {
            self.error = Some(RepairError::Foreign(format!("the frame at position {position}: {corrupt}")));
            return;
        }
        self.done.commits += 1;
        self.done.commits_behind += u64::from(self.has_hole);
        self.position = self.position.max(end);
        self.engine.note_time(now_ms);
        while self.engine.free_one() {}
    }

    fn records(&mut self, position: u64, now_ms: u64, payload: &[u8]) -> Result<(), Corrupt> {
        let end = position + payload.len() as u64;
        let mut reader = Reader::new(payload);
        while !reader.is_empty() {
            let at = end - reader.rest.len() as u64;
            let record = Record::decode(&mut reader)?;
            self.take_ahead(at);
            if at < self.position {
                continue;
            }
            let mut behind = reader;
            let next = if behind.is_empty() { None } else { Some(Record::decode(&mut behind)?) };
            if self.has_hole
                && let Err(why) = fits(self.engine.state(), &record, next.as_ref(), &self.known)
            {
                self.leave_out(at, now_ms, &record, payload[(at - position) as usize], why);
                continue;
            }
            self.engine.replay(&record, end - reader.rest.len() as u64);
            if self.has_hole {
                self.known.note(&record);
            }
        }
        Ok(())
    }

    fn leave_out(&mut self, position: u64, now_ms: u64, record: &Record<'_>, tag: u8, why: &'static str) {
        self.done.left_out += 1;
        if self.done.named.len() < NAMED_MAX {
            let kind = TAGS.iter().find(|(known, _)| *known == tag).map_or("record", |(_, name)| name);
            let key = record.at().map(|at| (at.db, at.key.to_vec()));
            self.done.named.push(LeftOut { position, now_ms, kind, key, why });
        }
    }

    /// Damaged snapshots up to a position of the log, if there was a hole before them: what is whole of them is newer than
    /// what the log has led to.
    fn take_ahead(&mut self, up_to: u64) {
        while let Some(position) = self.ahead.pop_if(|position| *position <= up_to) {
            // Beyond the end of the log nobody knows what is missing.
            let is_beyond = up_to == u64::MAX && position > self.position;
            if (self.has_hole || is_beyond) && position >= self.position && self.error.is_none() {
                self.salvage(position);
            }
        }
    }

    fn salvage(&mut self, position: u64) {
        let (mut decoder, mut keys, mut corrupt) = (Decoder::default(), 0, None);
        let engine = &mut self.engine;
        let result = snapshots::salvage(self.dir, position, |chunk| match chunk {
            Ok(chunk) => {
                let decoded = decoder.chunk(chunk, |key| {
                    engine.restore(key, position);
                    keys += 1;
                });
                corrupt = corrupt.or(decoded.err());
            }
            Err(len_bytes) => {
                decoder.lost(len_bytes);
            }
        });
        match (result, corrupt) {
            (Err(error), _) => self.error = Some(error.into()),
            (_, Some(corrupt)) => {
                self.error = Some(RepairError::Foreign(format!("the snapshot at position {position}: {corrupt}")));
            }
            (Ok(found), None) => {
                if found.whole > 0 {
                    self.position = position;
                }
                let (chunks_lost, is_all) = (found.damaged, found.is_all);
                self.done.salvaged.push(Salvaged { position, keys, chunks_lost, is_all });
            }
        }
    }

    fn fault(&self) -> Option<String> {
        invariants::check(self.engine.state()).err()
    }

    fn write(mut self, target: &Arc<DataDir>) -> Result<Repaired, RepairError> {
        let state = self.engine.state();
        let position = self.position;
        self.done.digest = invariants::digest(state).hex();
        self.done.counts = total(&counts(state));
        self.done.position = position;
        offline::write(&mut self.engine, position, target)?;
        Ok(self.done)
    }
}
