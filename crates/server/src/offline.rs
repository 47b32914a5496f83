//! States without a server: what `impel check` and `impel restore` make of what is on disk, written out as a data directory of
//! its own that a server can start with.
//!
//! It must never write into a directory that holds anything.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use impel_core::engine::Engine;
use impel_core::settings::Settings;

use crate::disk::{DataDir, Disk, DiskError, RealDisk};
use crate::image::Encoder;
use crate::snapshots::{self, SnapshotError, SnapshotInfo};

/// Keys handed to the snapshot at once.
const KEYS_AT_ONCE: usize = 64;

/// An engine to load a state into. Nothing of it depends on settings but the layout of blocks, which no digest shows.
pub fn empty_engine() -> Engine {
    Engine::new(Settings::default(), 0)
}

/// Makes a data directory that was not there, or empty: `write` fills one with another name, which takes its own when everything
/// is in it. So nobody can start a server with half of it.
pub fn make<T>(
    target: &Path,
    write: impl FnOnce(&Arc<DataDir>) -> Result<T, Box<dyn Error>>,
) -> Result<T, Box<dyn Error>> {
    // Without a slash at its end.
    let target = &target.components().collect::<PathBuf>();
    let mut unfinished = target.as_os_str().to_owned();
    unfinished.push(".unfinished");
    let unfinished = PathBuf::from(unfinished);
    let failed = |action, path: &Path| {
        let path = path.to_owned();
        move |error| DiskError::at(action, &path)(error)
    };
    // What an attempt that was killed has left; not one that is under way.
    if unfinished.exists() {
        drop(DataDir::open(Arc::new(RealDisk), &unfinished)?);
        fs::remove_dir_all(&unfinished).map_err(failed("remove", &unfinished))?;
    }
    let made = DataDir::open(Arc::new(RealDisk), &unfinished)?;
    let written = write(&made);
    drop(made);
    match written {
        Ok(written) => {
            fs::rename(&unfinished, target).map_err(failed("rename", &unfinished))?;
            let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            RealDisk.sync_dir(parent).map_err(failed("sync directory", parent))?;
            Ok(written)
        }
        Err(error) => {
            // Nothing depends on its going.
            let _ = fs::remove_dir_all(&unfinished);
            Err(error)
        }
    }
}

/// Writes the state as a snapshot into `target`, a new directory. A log begins anew behind `position`.
pub fn write(engine: &mut Engine, position: u64, target: &Arc<DataDir>) -> Result<SnapshotInfo, SnapshotError> {
    // As if no log had been kept: none belongs to it.
    let mut writer = snapshots::create(target, position, engine.state().last_ms, false)?;
    let mut encoder = Encoder::default();
    engine.snapshot_begin();
    loop {
        let (keys, is_complete) = engine.snapshot_continue(KEYS_AT_ONCE);
        for key in keys {
            encoder.key(&key, |chunk| writer.write_chunk(chunk))?;
        }
        if is_complete {
            break;
        }
    }
    encoder.flush(|chunk| writer.write_chunk(chunk))?;
    writer.finish()
}
