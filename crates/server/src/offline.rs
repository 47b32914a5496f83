//! States without a server: what `impel check` and `impel restore` make of what is on disk, written out as a data directory of
//! its own that a server can start with.
//!
//! It must never write into a directory that holds anything.

use std::sync::Arc;

use impel_core::engine::Engine;
use impel_core::settings::Settings;

use crate::disk::DataDir;
use crate::image::Encoder;
use crate::snapshots::{self, SnapshotError, SnapshotInfo};

/// Keys handed to the snapshot at once.
const KEYS_AT_ONCE: usize = 64;

/// An engine to load a state into. Nothing of it depends on settings but the layout of blocks, which no digest shows.
pub fn empty_engine() -> Engine {
    Engine::new(Settings::default(), 0)
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
