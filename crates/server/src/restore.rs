//! Makes of a data directory, or of a backup of one, the state at a moment of the past: the newest snapshot before it and
//! the log from there, commit by commit, up to it.
//!
//! It must never change the directory that it reads, nor pass over anything damaged: what it says is the state at that
//! moment is that.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use impel_core::engine::Engine;

use crate::calendar::timestamp;
use crate::disk::{DataDir, DiskError};
use crate::log::gaps;
use crate::log::inspect::{self, Header, Piece, Segment};
use crate::log::{OpenError, Refusal};
use crate::snapshots::{self, SnapshotError, SnapshotInfo};
use crate::startup::{self, StartupError};

/// A moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    /// The newest there is.
    Newest,
    /// Unix ms: every commit of that time or before is in.
    Time(u64),
    /// Every commit that ends at this log position or before is in.
    Position(u64),
}

impl Moment {
    /// Is what ends at `position` and was written at `now_ms` of the moment or before?
    fn includes(self, position: u64, now_ms: u64) -> bool {
        match self {
            Moment::Newest => true,
            Moment::Time(at_ms) => now_ms <= at_ms,
            Moment::Position(at) => position <= at,
        }
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Moment::Newest => write!(f, "the end"),
            Moment::Time(at_ms) => write!(f, "{}", timestamp(*at_ms)),
            Moment::Position(at) => write!(f, "position {at}"),
        }
    }
}

/// Why nothing was restored.
#[derive(Debug)]
pub enum RestoreError {
    /// What is there does not reach back so far.
    TooEarly {
        /// What was asked for.
        moment: Moment,
        /// The earliest moment that can be restored, if there is one.
        earliest: Option<Earliest>,
    },
    /// The moment lies in a part of the past that is not there.
    Gap(Gap),
    /// The log is damaged before the moment is reached.
    Damaged {
        /// The segment.
        path: PathBuf,
        /// Where in it.
        offset: u64,
        /// The log position that could not be read.
        position: u64,
    },
    /// A start would refuse what is there.
    Refused(Refusal),
    /// A file operation failed.
    Disk(DiskError),
    /// What is there could not be read.
    Read(StartupError),
}

/// The earliest state that there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Earliest {
    /// Its log position.
    pub position: u64,
    /// Its time in Unix ms; `None`: the log reaches back to where there was nothing.
    pub now_ms: Option<u64>,
}

/// A part of the past that is not there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gap {
    /// What was asked for.
    pub moment: Moment,
    /// Why it is not there.
    pub why: Lack,
    /// The last state before it.
    pub from: Edge,
    /// The first one behind it that is known of.
    pub to: Edge,
    /// The first one behind it that can be restored.
    pub resumed: Option<Edge>,
}

/// Why a part of the past is not there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lack {
    /// The server kept no log.
    NoLog,
    /// The server had let it go before it was copied.
    LetGo,
    /// It was there once.
    Missing,
}

/// An end of a gap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edge {
    /// Its log position.
    pub position: u64,
    /// Its time in Unix ms, where it is known.
    pub now_ms: Option<u64>,
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.now_ms {
            Some(now_ms) => write!(f, "{} (position {})", timestamp(now_ms), self.position),
            None => write!(f, "position {}", self.position),
        }
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Gap { moment, why, from, to, resumed } = self;
        write!(f, "{moment} lies in a gap: from {from} to {to} ")?;
        match why {
            Lack::NoLog => write!(f, "nothing was logged (the server ran with appendonly no)")?,
            Lack::LetGo => write!(
                f,
                "the server had let go of the log before `impel backup` copied it (see its setting log-retention)"
            )?,
            Lack::Missing => {
                write!(f, "the log, which was there once, is missing: bring it back, or see what `impel check` says")?
            }
        }
        write!(f, ". The nearest moment that can be restored is {from}")?;
        match resumed {
            Some(edge) => write!(f, ", or then {edge}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RestoreError::TooEarly { moment, earliest } => {
                write!(f, "what is there does not reach back to {moment}")?;
                match earliest {
                    Some(Earliest { position, now_ms: Some(now_ms) }) => {
                        write!(f, ": it begins with the snapshot of {} (position {position})", timestamp(*now_ms))
                    }
                    _ => write!(f, ", and holds no whole snapshot"),
                }
            }
            RestoreError::Gap(gap) => gap.fmt(f),
            RestoreError::Damaged { path, offset, position } => write!(
                f,
                "{} cannot be read on at byte {offset} (log position {position}), before that moment is reached: ask for an \
                 earlier one, or have `impel check --repair` make a directory of what is whole",
                path.display()
            ),
            RestoreError::Refused(refusal) => refusal.fmt(f),
            RestoreError::Disk(error) => error.fmt(f),
            RestoreError::Read(error) => error.fmt(f),
        }
    }
}

impl Error for RestoreError {}

impl From<DiskError> for RestoreError {
    fn from(error: DiskError) -> Self {
        RestoreError::Disk(error)
    }
}

impl From<StartupError> for RestoreError {
    fn from(error: StartupError) -> Self {
        RestoreError::Read(error)
    }
}

/// What was restored.
#[derive(Clone, Debug)]
pub struct Restored {
    /// The snapshot that it began with; `None`: the beginning of the log.
    pub base: Option<SnapshotInfo>,
    /// Commits of the log that were followed.
    pub commits: u64,
    /// The log position of the state.
    pub position: u64,
    /// When its last commit, or else its snapshot, was written (Unix ms); `None`: there was nothing yet.
    pub now_ms: Option<u64>,
    /// There is nothing newer: the moment lies behind the end.
    pub is_end: bool,
}

/// Reads the state at a moment into `engine`, whose state must be empty.
pub fn read(dir: &Arc<DataDir>, moment: Moment, engine: &mut Engine) -> Result<Restored, RestoreError> {
    // Of the past nobody asks whether a start would go on with what came later.
    if moment == Moment::Newest
        && let Some(refusal) = refusal(dir)?
    {
        return Err(RestoreError::Refused(refusal));
    }
    // Snapshots first: the log that is there afterwards reaches each of them.
    let positions = snapshots::list(dir)?;
    let base = base(dir, &positions, moment)?;
    let starts = inspect::starts(dir)?;
    let from = base.as_ref().map_or(0, |info| info.position);
    if base.is_none() && starts.first() != Some(&0) {
        return Err(RestoreError::TooEarly { moment, earliest: earliest(dir, &positions)? });
    }
    if let Some(info) = &base {
        startup::restore(dir, info.position, engine)?;
    }
    let now_ms = base.as_ref().map(|info| info.now_ms);
    let mut restored = Restored { base, commits: 0, position: from, now_ms, is_end: true };
    let first = starts.iter().rposition(|&start| start <= from).unwrap_or(starts.len());
    let mut bytes = Vec::new();
    for (index, &start) in starts.iter().enumerate().skip(first) {
        if moment == Moment::Position(restored.position) {
            restored.is_end = false;
            break;
        }
        if start > restored.position {
            break;
        }
        let segment = Segment::read(dir, start, bytes)?;
        let is_last = index + 1 == starts.len();
        if !follow(dir, &segment, is_last, moment, engine, &mut restored)? {
            restored.is_end = false;
            break;
        }
        bytes = segment.into_bytes();
    }
    if restored.is_end
        && moment != Moment::Position(restored.position)
        && restored.now_ms.is_none_or(|now_ms| moment != Moment::Time(now_ms))
        && let Some(gap) = gap(dir, &positions, &starts, moment, &restored)?
    {
        return Err(RestoreError::Gap(gap));
    }
    Ok(restored)
}

/// The gap between what was followed and the next thing that there is, if there is anything behind it.
fn gap(
    dir: &DataDir,
    positions: &[u64],
    starts: &[u64],
    moment: Moment,
    restored: &Restored,
) -> Result<Option<Gap>, RestoreError> {
    let is_behind = |position: &&u64| **position > restored.position;
    let segment = starts.iter().find(is_behind).copied();
    let snapshot = positions.iter().find(is_behind).copied();
    let Some(position) = segment.into_iter().chain(snapshot).min() else { return Ok(None) };
    let mut to = Edge { position, now_ms: None };
    let mut why = Lack::Missing;
    if snapshot == Some(position) {
        match snapshots::read(dir, position) {
            Ok(reader) => {
                to.now_ms = Some(reader.now_ms());
                if !reader.with_log() {
                    why = Lack::NoLog;
                }
            }
            Err(SnapshotError::Disk(error)) => return Err(error.into()),
            Err(_) => {}
        }
    }
    if to.now_ms.is_none() && segment == Some(position) {
        to.now_ms = Segment::read(dir, position, Vec::new())?.pieces().find_map(|piece| match piece {
            Piece::Frame { now_ms, .. } => Some(now_ms),
            Piece::Damage { .. } => None,
        });
    }
    if gaps::known(dir)?.iter().any(|&(from, to)| from <= restored.position && position <= to) {
        why = Lack::LetGo;
    }
    let behind: Vec<u64> = positions.iter().copied().filter(|&at| at >= position).collect();
    let resumed = earliest(dir, &behind)?.map(|it| Edge { position: it.position, now_ms: it.now_ms });
    let from = Edge { position: restored.position, now_ms: restored.now_ms };
    Ok(Some(Gap { moment, why, from, to, resumed }))
}

/// The newest whole snapshot of the moment or before.
fn base(dir: &DataDir, positions: &[u64], moment: Moment) -> Result<Option<SnapshotInfo>, RestoreError> {
    for &position in positions.iter().rev() {
        // The header first: a snapshot that is too new need not be read.
        match snapshots::read(dir, position) {
            Ok(reader) if !moment.includes(position, reader.now_ms()) => continue,
            Ok(_) => {}
            Err(SnapshotError::Disk(error)) => return Err(error.into()),
            Err(_) => continue,
        }
        match snapshots::check(dir, position) {
            Ok(info) => return Ok(Some(info)),
            Err(SnapshotError::Disk(error)) => return Err(error.into()),
            Err(_) => {}
        }
    }
    Ok(None)
}

/// The first of these snapshots that is whole.
fn earliest(dir: &DataDir, positions: &[u64]) -> Result<Option<Earliest>, RestoreError> {
    for &position in positions {
        match snapshots::check(dir, position) {
            Ok(info) => return Ok(Some(Earliest { position, now_ms: Some(info.now_ms) })),
            Err(SnapshotError::Disk(error)) => return Err(error.into()),
            Err(_) => {}
        }
    }
    Ok(None)
}

/// Follows the commits of a segment; answers whether the moment may lie behind it.
fn follow(
    dir: &Arc<DataDir>,
    segment: &Segment,
    is_last: bool,
    moment: Moment,
    engine: &mut Engine,
    restored: &mut Restored,
) -> Result<bool, RestoreError> {
    let damaged = |offset, position| RestoreError::Damaged { path: segment.path.clone(), offset, position };
    if segment.header != Header::Good {
        return Err(damaged(0, restored.position));
    }
    for piece in segment.pieces() {
        match piece {
            Piece::Frame { position, now_ms, payload, .. } => {
                let end = position + payload.len() as u64;
                if end <= restored.position {
                    continue;
                }
                if !moment.includes(end, now_ms) {
                    return Ok(false);
                }
                // Of a commit that the snapshot holds the beginning of, the rest.
                let skipped = restored.position.saturating_sub(position);
                startup::replay(position + skipped, now_ms, &payload[skipped as usize..], engine)
                    .map_err(|corrupt| RestoreError::Read(corrupt.into()))?;
                restored.commits += 1;
                (restored.position, restored.now_ms) = (end, Some(now_ms));
            }
            // As a start judges it: what was never known to be durable is no part of the log.
            Piece::Damage { from, position, .. } => {
                let is_end = is_last && position >= restored.position;
                return if is_end && refusal(dir)?.is_none() { Ok(true) } else { Err(damaged(from, position)) };
            }
        }
    }
    Ok(true)
}

fn refusal(dir: &DataDir) -> Result<Option<Refusal>, RestoreError> {
    match inspect::outlook(dir) {
        Ok(outlook) => Ok(outlook.refusal),
        Err(OpenError::Refused(refusal)) => Ok(Some(refusal)),
        Err(OpenError::Disk(error)) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests;
