//! The gaps that a copy of a data directory is known to have: what the server had let go before it was copied. A file `gaps` in
//! the copy names them, a line each: the positions from and to. So a hole in the log that nobody knows of is told from one
//! that was told of.
//!
//! It must never be asked whether a server may start: a gap lies before a snapshot, or the start refuses anyway.

use std::collections::BTreeSet;

use crate::disk::{DataDir, DiskError, read_note, write_note};

const GAPS: &str = "gaps";

/// Those that are known: from and to.
pub fn known(dir: &DataDir) -> Result<BTreeSet<(u64, u64)>, DiskError> {
    let text = read_note(dir.disk(), &dir.path().join(GAPS))?.unwrap_or_default();
    let gap = |line: &str| {
        let (from, to) = line.split_once(' ')?;
        Some((from.parse().ok()?, to.parse().ok()?))
    };
    Ok(text.lines().filter_map(gap).collect())
}

/// Notes one.
pub fn add(dir: &DataDir, gap: (u64, u64)) -> Result<(), DiskError> {
    let mut all = known(dir)?;
    all.insert(gap);
    let text: String = all.iter().map(|(from, to)| format!("{from} {to}\n")).collect();
    write_note(dir.disk(), &dir.path().join(GAPS), &text)
}
