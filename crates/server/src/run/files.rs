//! The loop's side of the disk: commits that are done, snapshots, reading everything back, and the end of the process.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use impel_core::command::table::CommandId;
use impel_core::engine::facts::Facts;

use super::Server;
use crate::clock::Clock;
use crate::disk::DataDir;
use crate::node::{SnapshotStep, Turn};
use crate::saver::{Begun, Saved, Saver};
use crate::snapshots::{self, SnapshotError};
use crate::startup;
use crate::syncer::{Done, Syncer};

impl Server {
    /// Takes what the other threads have finished.
    pub(super) fn take_done(&mut self) {
        while let Some(done) = self.syncer.as_ref().and_then(Syncer::try_done) {
            self.committed(done);
        }
        self.observed.log_bytes.set(self.syncer.as_ref().map_or(0, Syncer::len_bytes));
        let Some(saver) = &self.saver else { return };
        let (written, ended) = (saver.written(), saver.try_ended());
        self.node.on_snapshot_written(written);
        if let Some(result) = ended {
            self.snapshot_ended(result);
        }
    }

    fn committed(&mut self, done: Done) {
        let Done { bytes, end, synced, result } = done;
        match result {
            Ok(()) => {
                self.node.on_committed(end, synced, bytes);
                self.observed.log_position.set(end);
            }
            Err(error) => {
                self.node.on_commit_failed();
                self.observed.log_ok.set(false);
                ::log::error!(
                    "the log could not be written: {error}. Nothing that was not acknowledged is claimed to be stored; the \
                     server ends here. Once the cause is removed, start it again: it goes on from what is on disk"
                );
                self.exit = Some(false);
            }
        }
    }

    /// Does what the node wants done for a snapshot.
    pub(super) fn snapshot_step(&mut self, step: SnapshotStep, now_ms: u64) {
        match step {
            SnapshotStep::Begin { position, now_ms: newest_ms } => {
                let begun = Begun {
                    position,
                    now_ms: newest_ms,
                    with_log: self.syncer.is_some(),
                    history_ms: self.node.settings().log_retention_ms(),
                };
                let saver = self.dir_to_save_in().and_then(|dir| Ok(Saver::start(dir, begun, self.waker.clone())?));
                match saver {
                    Ok(saver) => {
                        ::log::info!("snapshot at position {position} begun");
                        self.saver = Some(saver);
                    }
                    Err(error) => {
                        ::log::error!("no snapshot can be written: {error}");
                        self.node.on_snapshot_ended(None, now_ms);
                    }
                }
            }
            SnapshotStep::Keys(keys) => {
                if let Some(saver) = &self.saver {
                    saver.keys(keys);
                }
            }
            SnapshotStep::Finish => match &self.saver {
                Some(saver) => saver.finish(),
                None => self.node.on_snapshot_ended(None, now_ms),
            },
        }
    }

    /// The directory; taken now if nothing was kept so far.
    fn dir_to_save_in(&mut self) -> Result<Arc<DataDir>, Box<dyn std::error::Error>> {
        if let Some(dir) = &self.dir {
            return Ok(dir.clone());
        }
        let path = Path::new(&self.node.settings().dir);
        let dir = DataDir::open(self.disk.clone(), path)?;
        if !snapshots::list(&dir)?.is_empty() {
            // Not there at our start, or it would have been read.
            return Err(format!("{} holds what another server has saved since this one started", path.display()).into());
        }
        self.dir = Some(dir.clone());
        Ok(dir)
    }

    fn snapshot_ended(&mut self, result: Result<Saved, SnapshotError>) {
        self.saver = None;
        let now_ms = self.clock.last_us() / 1000;
        match result {
            Ok(saved) => {
                let (position, len_bytes) = (saved.info.position, saved.info.len_bytes);
                ::log::info!("snapshot at position {position} written, {len_bytes} bytes");
                if let Some(syncer) = &self.syncer {
                    syncer.trim(saved.log_from);
                }
                self.node.on_snapshot_ended(Some(len_bytes), now_ms);
            }
            Err(error) => {
                ::log::error!("the snapshot could not be written: {error}");
                self.node.on_snapshot_ended(None, now_ms);
            }
        }
    }

    /// Performs turns without clients, waiting for the disk, until `over`. Answers whether it came to that.
    fn work_until(&mut self, over: impl Fn(&Self) -> bool) -> bool {
        loop {
            self.take_done();
            if self.exit == Some(false) {
                return false;
            }
            let worked = self.with_facts(Self::work);
            if over(self) {
                return true;
            }
            if !worked {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
    }

    /// What a turn does for the disk; answers whether there was anything to do.
    fn work(&mut self, facts: &Facts<'_>) -> bool {
        let Turn { commit, snapshot, requests, .. } = self.node.end_turn(facts);
        self.later.extend(requests);
        let has_work = commit.is_some() || !snapshot.is_empty();
        if let (Some(commit), Some(syncer)) = (commit, &self.syncer) {
            syncer.commit(commit);
        }
        for step in snapshot {
            self.snapshot_step(step, facts.now_ms);
        }
        has_work
    }

    /// Writes a snapshot and waits for it. Answers whether it was written.
    fn save_now(&mut self) -> bool {
        // One that runs holds what was then, not what is now.
        let ended = self.work_until(|server| !server.node.is_saving());
        self.node.ask_for_snapshot();
        ended && self.work_until(|server| !server.node.is_saving()) && self.node.saving().last_ok
    }

    /// Everything to the log, and that to the disk.
    fn settle(&mut self) -> bool {
        self.node.sync_everything();
        self.work_until(|server| server.node.is_settled())
    }

    /// Ends the process, if it may.
    pub(super) fn shut_down(&mut self, save: Option<bool>) {
        let has_rules = !self.node.settings().save.is_empty();
        let save = save.unwrap_or(has_rules && self.syncer.is_none());
        if !self.settle() {
            // Said already; the process ends as after any failed commit.
            return;
        }
        if save && !self.save_now() {
            if self.syncer.is_none() {
                ::log::error!(
                    "not ended: the snapshot that was to be written failed, and what is in memory would be lost"
                );
                return;
            }
            ::log::error!("the last snapshot failed; the log holds everything");
        }
        self.listeners.clear();
        self.flush_all(self.clock.last_us() / 1000);
        self.connections.clear();
        if let Some(syncer) = self.syncer.take() {
            syncer.stop();
        }
        ::log::info!("ended as asked");
        self.exit = Some(true);
    }

    /// Writes everything out, forgets it, and reads it back as at a start. Clients stay.
    pub(super) fn reload(&mut self, client: u64) {
        // In this order: a commit that is in flight when the log is closed would never be answered, and what the engine
        // has not handed over would be forgotten.
        let saved = self.save_now() && self.settle();
        if !saved {
            self.node.answer(client, CommandId::Debug, |reply| {
                reply.error(b"ERR Error trying to load the data, check server logs")
            });
            return;
        }
        // The log is opened again, so it must be closed before.
        self.syncer = None;
        let seed = self.seed;
        let engine = self.node.engine_mut();
        engine.forget(seed);
        let opened = match startup::load(self.dir.clone(), engine) {
            Ok(opened) => opened,
            Err(error) => {
                ::log::error!("what was written out cannot be read back: {error}");
                self.exit = Some(false);
                return;
            }
        };
        let now_ms = self.clock.last_us() / 1000;
        self.node.restored(opened.position, opened.newest(), opened.log.is_some(), now_ms);
        self.clock = Clock::new(self.node.engine().state().last_ms.max(now_ms));
        match opened.log.map(|log| Syncer::start(log, self.waker.clone())).transpose() {
            Ok(syncer) => self.syncer = syncer,
            Err(error) => {
                ::log::error!("the log thread could not be started: {error}");
                self.exit = Some(false);
                return;
            }
        }
        self.node.answer(client, CommandId::Debug, |reply| reply.ok());
    }
}
