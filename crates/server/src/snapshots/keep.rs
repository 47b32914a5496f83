//! Which snapshots stay, and from where on the log is needed with them.
//!
//! It must never remove the newest snapshots, whatever it finds out about them.

use super::{list, read, snapshot_path};
use crate::disk::{DataDir, DiskError};

/// Which snapshots are kept beside the newest one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Keep {
    /// So many before it, in case it turns out to be damaged.
    pub older: usize,
    /// And what it takes to restore the state of any moment from here on, in ms since 1970. `None`: of none.
    pub since_ms: Option<u64>,
    /// Of those that only serve `since_ms`, two are at least so far apart: the log between them does as well. Those taken while no
    /// log was kept all stay.
    pub apart_ms: u64,
}

/// Removes the snapshots that need not be kept. Returns the position from which on the log is needed: it may be trimmed
/// before it, and not before any later position, or the older snapshots would be of no use.
pub fn prune(dir: &DataDir, keep: &Keep) -> Result<u64, DiskError> {
    let positions = list(dir)?;
    // Where there is no snapshot that is old enough, the whole log stands in for it.
    let (kept, log_from) = match positions.len().checked_sub(keep.older + 1) {
        None => (positions.clone(), 0),
        Some(first_certain) => {
            let certain = &positions[first_certain..];
            match keep.since_ms {
                None => (certain.to_vec(), certain[0]),
                Some(since_ms) => {
                    let (mut kept, log_from) = history(dir, &positions[..=first_certain], since_ms, keep.apart_ms);
                    kept.extend_from_slice(&certain[1..]);
                    (kept, log_from)
                }
            }
        }
    };
    let mut removed = false;
    for &position in positions.iter().filter(|position| !kept.contains(position)) {
        let path = snapshot_path(dir, position);
        dir.disk().remove(&path).map_err(DiskError::at("remove", &path))?;
        removed = true;
    }
    if removed {
        dir.disk().sync_dir(dir.snapshots()).map_err(DiskError::at("sync directory", dir.snapshots()))?;
    }
    Ok(log_from)
}

/// Of these positions, oldest first, those that are kept to restore any moment since `since_ms`; the last one always is.
/// Beside them the position from which on the log is needed.
fn history(dir: &DataDir, positions: &[u64], since_ms: u64, apart_ms: u64) -> (Vec<u64>, u64) {
    let (&last, before) = positions.split_last().expect("the caller keeps one of them in any case");
    // One whose header cannot be read serves nobody. To one that was taken while no log was kept no log leads: it stands in for
    // itself.
    let told = |&position: &u64| read(dir, position).ok().map(|it| (position, it.now_ms(), !it.with_log()));
    let timed: Vec<(u64, u64, bool)> = before.iter().filter_map(told).collect();
    let last_ms = read(dir, last).map_or(u64::MAX, |reader| reader.now_ms());
    if last_ms <= since_ms {
        return (vec![last], last);
    }
    let base = timed.iter().rposition(|&(_, at_ms, _)| at_ms <= since_ms);
    let mut kept: Vec<u64> = Vec::new();
    let mut next_ms = 0;
    for &(position, at_ms, is_alone) in &timed[base.unwrap_or(0)..] {
        if is_alone || at_ms >= next_ms {
            kept.push(position);
            next_ms = at_ms.saturating_add(apart_ms);
        }
    }
    kept.push(last);
    (kept.clone(), base.map_or(0, |_| kept[0]))
}
