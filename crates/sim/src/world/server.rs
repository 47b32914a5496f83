//! The turn loop of the server without its sockets and threads: what `run.rs` does with them, done in virtual time. Whoever
//! changes one of the two changes the other.

use std::sync::Arc;

use impel::disk::DataDir;
use impel::node::{Node, SnapshotStep, Turn};
use impel::saver::{Begun, Piece};
use impel::snapshots;
use impel::startup;
use impel::syncer::{Done, Job};
use impel_core::check;
use impel_core::command::table::CommandId;
use impel_core::engine::blocked::ClientIndex;
use impel_core::engine::facts::{Facts, Request};

use super::oracle::End;
use super::peers::Call;
use super::setup::{MEMORY_BYTES, PEERS};
use super::threads::{LogThread, SnapshotThread};
use super::{Result, World};

/// Pieces of what was removed that a turn frees.
const FREED_PER_TURN: usize = 20;

/// How often connections are looked over.
const SWEEP_MS: u64 = 1000;

/// A server that runs.
pub struct Server {
    pub node: Node,
    pub dir: Option<Arc<DataDir>>,
    pub log: Option<LogThread>,
    pub saver: Option<SnapshotThread>,
    /// Which peer a connection of the engine belongs to.
    pub peers: Vec<Option<usize>>,
    again: Vec<ClientIndex>,
    later: Vec<Request>,
    next_sweep_ms: u64,
    /// When the next turn begins, in virtual µs, if nothing happens before.
    pub wake_us: Option<u64>,
    /// Turns in a row that began at once though nothing had happened.
    idle_turns: u32,
    snapshot_position: u64,
}

/// So many turns without an event, and without an end to them, are a loop that spins.
const SPIN_TURNS: u32 = 20_000;

impl Server {
    /// A server that has read back what there was.
    pub fn new(node: Node, dir: Option<Arc<DataDir>>, log: Option<LogThread>, now_us: u64, now_ms: u64) -> Server {
        Server {
            node,
            dir,
            log,
            saver: None,
            peers: Vec::new(),
            again: Vec::new(),
            later: Vec::new(),
            next_sweep_ms: now_ms + SWEEP_MS,
            wake_us: Some(now_us),
            idle_turns: 0,
            snapshot_position: 0,
        }
    }

    /// Something has happened that a turn looks at.
    pub fn wake(&mut self, now_us: u64) {
        self.idle_turns = 0;
        self.wake_us = Some(self.wake_us.map_or(now_us, |wake_us| wake_us.min(now_us)));
    }

    /// When a thread has something to tell next.
    pub fn threads_us(&self) -> Option<u64> {
        let log = self.log.as_ref().and_then(LogThread::next_us);
        let saver = self.saver.as_ref().and_then(SnapshotThread::next_us);
        [log, saver].into_iter().flatten().min()
    }

    /// When something happens by itself next.
    pub fn next_us(&self) -> Option<u64> {
        [self.wake_us, self.threads_us()].into_iter().flatten().min()
    }

    /// Is a thread at work, or the loop itself?
    pub fn is_busy(&self, now_us: u64) -> bool {
        self.threads_us().is_some() || self.wake_us.is_some_and(|wake_us| wake_us <= now_us + 1000)
    }
}

impl World {
    /// The time that the server sees.
    pub fn read_clock(&mut self) -> u64 {
        let wall_us = (self.now_us as i64 + self.wall_offset_us) as u64;
        self.pace.advance(wall_us, self.now_us - self.started_us)
    }

    /// The server that runs.
    pub fn server(&mut self) -> &mut Server {
        self.server.as_mut().expect("asked only while it runs")
    }

    /// A call of the node: what was carried out in it is noted.
    pub fn act<T>(&mut self, what: impl FnOnce(&mut Node, &Facts<'_>) -> T) -> T {
        let now_us = self.clock_us;
        let process = &self.process;
        let server = self.server.as_mut().expect("asked only while it runs");
        process.saving.set(server.node.saving());
        let elapsed_us = || process.look();
        let facts = Facts {
            now_ms: now_us / 1000,
            now_us,
            used_memory: self.used_memory,
            elapsed_us: &elapsed_us,
            host: process,
        };
        let from = server.node.engine().log.position();
        let waited: [bool; PEERS] = std::array::from_fn(|at| waits(&server.node, self.peers[at].index));
        let result = what(&mut server.node, &facts);
        let to = server.node.engine().log.position();
        let count = |index: Option<ClientIndex>| {
            index.and_then(|index| server.node.client(index)).map_or(0, |client| client.commands)
        };
        let commands: [u64; PEERS] =
            std::array::from_fn(|at| count(self.peers[at].index).saturating_sub(self.peers[at].carried_out));
        let all: u64 = commands.iter().sum();
        self.report.commands += all;
        let call = Call { from, to, alone: all == 1 };
        for (at, peer) in self.peers.iter_mut().enumerate() {
            let waits = waits(&server.node, peer.index);
            if waited[at] && (!waits || commands[at] > 0) {
                peer.note_woken(call);
            }
            if commands[at] > 0 {
                peer.note_carried_out(commands[at], call, waits);
            }
        }
        result
    }

    /// One turn.
    pub fn turn(&mut self) -> Result {
        self.report.turns += 1;
        self.server().wake_us = None;
        self.clock_us = self.read_clock();
        let now_ms = self.clock_us / 1000;
        self.take_done()?;
        if self.server.is_none() {
            return Ok(());
        }
        if self.setup.short_memory {
            self.used_memory = if self.random.chance(10) { 2 * MEMORY_BYTES } else { 0 };
        }
        self.act(|node, facts| node.on_tick(facts));
        if let Some(follower) = &mut self.follower {
            follower.tick(now_ms);
        }
        let again = std::mem::take(&mut self.server().again);
        for peer in 0..self.peers.len() {
            if std::mem::take(&mut self.peers[peer].edge) {
                self.on_edge(peer)?;
            }
        }
        for index in again {
            if let Some(peer) = self.server().peers.get(index).copied().flatten() {
                self.peers[peer].again_listed = false;
                self.read(peer)?;
            }
        }
        self.accept(now_ms);
        let Turn { commit, snapshot, requests, deadline_ms, again } = self.act(|node, facts| node.end_turn(facts));
        if let Some(follower) = &mut self.follower {
            follower.resume();
        }
        self.hand_over(commit)?;
        for step in snapshot {
            self.snapshot_step(step, now_ms)?;
        }
        if self.down() {
            return Ok(());
        }
        let mut shutdown = None;
        let later = std::mem::take(&mut self.server().later);
        for request in later.into_iter().chain(requests) {
            match request {
                Request::Shutdown { save, .. } => shutdown = Some(save),
                Request::Sleep { us } => self.now_us += us,
                Request::Reload { client } => {
                    self.reload(client)?;
                    if self.down() {
                        return Ok(());
                    }
                }
                Request::NoteQueryBuffer { .. } | Request::NoteHttp { .. } | Request::SettingChanged { .. } => {}
                Request::Save { .. } | Request::SaveInBackground | Request::WaitDurable { .. } => {
                    return Err("the node sees to saving and waiting".into());
                }
            }
        }
        self.flush_all(now_ms)?;
        self.sweep(now_ms);
        if let Some(save) = shutdown {
            return self.shut_down(save);
        }
        let garbage = self.free_garbage();
        let turn_us = 1 + self.random.below(30);
        let now_us = self.now_us;
        let server = self.server();
        let pressed = server.node.is_pressed();
        let at_once = again
            || garbage
            || !server.later.is_empty()
            || server.node.can_go_on()
            || (!server.again.is_empty() && !pressed);
        let sweep_ms = server.node.settings().timeout_seconds > 0;
        let deadline_ms = [deadline_ms, sweep_ms.then_some(server.next_sweep_ms)].into_iter().flatten().min();
        let due_now = at_once || deadline_ms.is_some_and(|at_ms| at_ms <= now_ms);
        let next_us = match deadline_ms {
            _ if due_now => Some(now_us + turn_us),
            Some(at_ms) => Some(now_us.saturating_add((at_ms - now_ms).saturating_mul(1000))),
            None => None,
        };
        // What had come before its connection was let in is an event already.
        server.wake_us = [next_us, server.wake_us].into_iter().flatten().min();
        server.idle_turns = if due_now { server.idle_turns + 1 } else { 0 };
        if server.idle_turns > SPIN_TURNS {
            return Err("the loop spins: turn after turn begins at once, and nothing comes of it".into());
        }
        self.look_now_and_then()
    }

    /// Every invariant, in some turns.
    fn look_now_and_then(&mut self) -> Result {
        if self.random.chance(2) {
            check::check(self.server().node.engine().state())?;
        }
        if let Some(follower) = &self.follower
            && let Some(peer) = follower.model.overlooked()
        {
            return Err(format!("peer {peer} waits, though it could be served"));
        }
        Ok(())
    }

    fn free_garbage(&mut self) -> bool {
        let server = self.server();
        server.node.has_garbage() && (0..FREED_PER_TURN).all(|_| server.node.free_one())
    }

    /// Hands a commit to the log, and to the oracle.
    fn hand_over(&mut self, commit: Option<impel::node::Commit>) -> Result {
        let safe = self.oracle.synced;
        let server = self.server.as_mut().expect("asked only while it runs");
        let Some(commit) = commit else { return Ok(()) };
        let always = server.node.settings().appendfsync == impel_core::settings::AppendFsync::Always;
        if always && !commit.sync {
            return Err("a commit without a sync under appendfsync always".into());
        }
        let looks = self.random.chance(10);
        let digest = looks.then(|| check::digest(server.node.engine().state()));
        self.oracle.frame(&commit.bytes, commit.end, digest)?;
        if let Some(follower) = &mut self.follower {
            follower.mark(commit.end, safe);
        }
        self.trace(commit.end);
        self.note(|| {
            format!("the log gets what ends at {}{}", commit.end, if commit.sync { ", to be synced" } else { "" })
        });
        let log = self.server.as_mut().and_then(|server| server.log.as_mut()).ok_or("a commit without a log")?;
        log.push(Job::Commit(commit), self.now_us, &mut self.random);
        self.look_at_the_disk();
        Ok(())
    }

    /// Takes what the threads have finished.
    pub fn take_done(&mut self) -> Result {
        loop {
            let now_us = self.now_us;
            let random = &mut self.random;
            let log = self.server.as_mut().and_then(|server| server.log.as_mut());
            let Some(done) = log.and_then(|log| log.take_done(now_us, random)) else { break };
            if self.look_at_the_disk() {
                return Ok(());
            }
            let Done { bytes, end, synced, result } = done;
            match result {
                Ok(()) => {
                    self.note(|| format!("the log has what ends at {end}{}", if synced { ", synced" } else { "" }));
                    self.oracle.acknowledged(end, synced)?;
                    self.server().node.on_committed(end, synced, bytes);
                }
                Err(error) => {
                    self.note(|| format!("the log failed: {error}"));
                    self.server().node.on_commit_failed();
                    self.report.failed_commits += 1;
                    self.silence()?;
                    return if self.end_snapshot() { Ok(()) } else { self.die(End::Process) };
                }
            }
        }
        if self.look_at_the_disk() {
            return Ok(());
        }
        let (now_us, random) = (self.now_us, &mut self.random);
        let Some(server) = &mut self.server else { return Ok(()) };
        let Some(saver) = &mut server.saver else { return Ok(()) };
        let (written, ended) = saver.advance(now_us, random);
        server.node.on_snapshot_written(written);
        if self.look_at_the_disk() {
            return Ok(());
        }
        let Some(result) = ended else { return Ok(()) };
        let now_ms = self.clock_us / 1000;
        self.server().saver = None;
        match result {
            Ok(saved) => {
                self.report.snapshots += 1;
                self.note(|| format!("the snapshot at position {} is written", saved.info.position));
                self.oracle.snapshot_finished(saved.info.position);
                let (now_us, random) = (self.now_us, &mut self.random);
                let server = self.server.as_mut().expect("it runs");
                if let Some(log) = &mut server.log {
                    log.push(Job::Trim(saved.log_from), now_us, random);
                }
                server.node.on_snapshot_ended(Some(saved.info.len_bytes), now_ms);
            }
            Err(error) => {
                self.note(|| format!("a snapshot failed: {error}"));
                self.report.failed_snapshots += 1;
                self.server().node.on_snapshot_ended(None, now_ms);
            }
        }
        self.look_at_the_disk();
        Ok(())
    }

    /// The process waits for the snapshot thread before it ends. Answers whether a fault has ended it meanwhile.
    fn end_snapshot(&mut self) -> bool {
        if let Some(saver) = self.server().saver.take() {
            saver.stop();
        }
        self.look_at_the_disk()
    }

    /// After a failed commit nobody is shown anything.
    fn silence(&mut self) -> Result {
        for peer in 0..self.peers.len() {
            if let Some(index) = self.peers[peer].index
                && !self.server().node.output(index).is_empty()
            {
                return Err("a reply would leave after the log has failed".into());
            }
        }
        Ok(())
    }

    fn snapshot_step(&mut self, step: SnapshotStep, now_ms: u64) -> Result {
        if self.down() {
            return Ok(());
        }
        let now_us = self.now_us;
        match step {
            SnapshotStep::Begin { position, now_ms: newest_ms } => {
                self.note(|| format!("a snapshot begins at position {position}"));
                let server = self.server.as_mut().expect("it runs");
                if server.log.is_none() {
                    self.oracle.snapshot_begun(position, check::digest(server.node.engine().state()));
                    if let Some(follower) = &mut self.follower {
                        follower.mark(position, 0);
                    }
                }
                let with_log = server.log.is_some();
                let history_ms = server.node.settings().log_retention_ms();
                server.snapshot_position = position;
                match self.dir_to_save_in() {
                    Ok(dir) => {
                        let begun = Begun { position, now_ms: newest_ms, with_log, history_ms };
                        let saver = SnapshotThread::new(&dir, begun, self.setup.snapshot_us, now_us);
                        self.server().saver = Some(saver);
                        self.look_at_the_disk();
                    }
                    Err(_) => self.server().node.on_snapshot_ended(None, now_ms),
                }
            }
            SnapshotStep::Keys(keys) => self.give_piece(Piece::Keys(keys)),
            SnapshotStep::Finish => {
                if self.server().saver.is_none() {
                    self.server().node.on_snapshot_ended(None, now_ms);
                } else if self.server().log.is_some() && self.oracle.synced < self.server().snapshot_position {
                    return Err("a snapshot is finished before the log is synced up to it".into());
                }
                self.give_piece(Piece::Finish);
            }
        }
        Ok(())
    }

    fn give_piece(&mut self, piece: Piece) {
        let (now_us, random) = (self.now_us, &mut self.random);
        if let Some(saver) = self.server.as_mut().and_then(|server| server.saver.as_mut()) {
            saver.push(piece, now_us, random);
        }
    }

    fn dir_to_save_in(&mut self) -> std::result::Result<Arc<DataDir>, Box<dyn std::error::Error>> {
        if let Some(dir) = &self.server().dir {
            return Ok(dir.clone());
        }
        let dir = self.open_dir()?;
        if !snapshots::list(&dir)?.is_empty() {
            return Err("it holds what another server has saved".into());
        }
        self.server().dir = Some(dir.clone());
        Ok(dir)
    }

    /// Performs turns without clients until `over`. Answers whether it came to that.
    fn work_until(&mut self, over: impl Fn(&Server) -> bool) -> std::result::Result<bool, String> {
        for _ in 0..100_000 {
            self.clock_us = self.read_clock();
            self.take_done()?;
            if self.down() {
                return Ok(false);
            }
            let now_ms = self.clock_us / 1000;
            let Turn { commit, snapshot, requests, .. } = self.act(|node, facts| node.end_turn(facts));
            if let Some(follower) = &mut self.follower {
                follower.resume();
            }
            self.server().later.extend(requests);
            self.hand_over(commit)?;
            for step in snapshot {
                self.snapshot_step(step, now_ms)?;
            }
            if self.down() {
                return Ok(false);
            }
            if over(self.server()) {
                return Ok(true);
            }
            let now_us = self.now_us;
            let next_us =
                self.server().threads_us().map_or(200, |next_us| next_us.saturating_sub(now_us).clamp(1, 200));
            self.now_us += next_us;
        }
        Err("the server does not come to an end".into())
    }

    fn save_now(&mut self) -> std::result::Result<bool, String> {
        if !self.work_until(|server| !server.node.is_saving())? {
            return Ok(false);
        }
        self.server().node.ask_for_snapshot();
        Ok(self.work_until(|server| !server.node.is_saving())? && self.server().node.saving().last_ok)
    }

    /// Writes everything out, forgets it, and reads it back as at a start. Clients stay.
    fn reload(&mut self, client: u64) -> Result {
        let saved = self.save_now()?;
        if self.down() {
            return Ok(());
        }
        self.server().node.sync_everything();
        let settled = saved && self.work_until(|server| server.node.is_settled())?;
        if self.down() {
            return Ok(());
        }
        if !settled {
            self.server().node.answer(client, CommandId::Debug, |reply| {
                reply.error(b"ERR Error trying to load the data, check server logs");
            });
            return Ok(());
        }
        if let Some(log) = self.server().log.take() {
            log.stop();
        }
        if self.look_at_the_disk() {
            return Ok(());
        }
        let (seed, dir) = (self.random.number(), self.server().dir.clone());
        let engine = self.server().node.engine_mut();
        engine.forget(seed);
        let opened = match startup::load(dir, engine) {
            Ok(opened) => opened,
            Err(error) => {
                self.note(|| format!("what was written out cannot be read back: {error}"));
                // What it has in memory now is nothing that anyone could be told of.
                self.server = None;
                return if self.armed_has_ended() { Ok(()) } else { self.die(End::Process) };
            }
        };
        if self.look_at_the_disk() {
            return Ok(());
        }
        self.note(|| format!("everything is read back at position {}", opened.position));
        let server = self.server.as_mut().expect("it runs");
        self.oracle.restarted(server.node.engine(), opened.position, End::Orderly)?;
        let now_ms = self.clock_us / 1000;
        server.node.restored(opened.position, opened.newest(), opened.log.is_some(), now_ms);
        server.log = opened.log.map(|log| LogThread::new(log, self.setup.log_us));
        self.report.reloads += 1;
        self.server().node.answer(client, CommandId::Debug, |reply| reply.ok());
        Ok(())
    }

    /// Ends the process as asked.
    pub fn shut_down(&mut self, save: Option<bool>) -> Result {
        let server = self.server();
        let has_rules = !server.node.settings().save.is_empty();
        let save = save.unwrap_or(has_rules && server.log.is_none());
        server.node.sync_everything();
        if !self.work_until(|server| server.node.is_settled())? {
            return Ok(());
        }
        if save && !self.save_now()? && !self.down() && self.server().log.is_none() {
            // Not ended: what is in memory would be lost.
            let now_us = self.now_us;
            self.server().wake(now_us);
            return Ok(());
        }
        if self.down() {
            return Ok(());
        }
        self.flush_all(self.clock_us / 1000)?;
        if let Some(log) = self.server().log.take() {
            log.stop();
        }
        if self.look_at_the_disk() || self.end_snapshot() {
            return Ok(());
        }
        self.report.shutdowns += 1;
        self.die(End::Orderly)
    }

    /// Adds to the list of those that have more to be read.
    pub fn list_again(&mut self, peer: usize) {
        let Some(index) = self.peers[peer].index else { return };
        if !self.peers[peer].again_listed {
            self.peers[peer].again_listed = true;
            self.server().again.push(index);
        }
    }

    fn sweep(&mut self, now_ms: u64) {
        let Some(server) = &mut self.server else { return };
        if now_ms >= server.next_sweep_ms {
            server.next_sweep_ms = now_ms + SWEEP_MS;
        }
    }
}

fn waits(node: &Node, index: Option<ClientIndex>) -> bool {
    index.and_then(|index| node.client(index)).is_some_and(|client| client.wait.is_some())
}
