//! Snapshots in the making: when one begins, which keys it is given in which turn, when it may be finished, and who is
//! told. The keys are cheap copies; encoding and writing them is the writer's, off the loop.

use impel_core::command::table::CommandId;
use impel_core::engine::Engine;
use impel_core::engine::facts::Saving as Facts;
use impel_core::state::keyspace::Captured;

use super::{Node, Turn};

/// Keys taken in one turn, beside those that are about to change.
const KEYS_PER_TURN: usize = 64;

/// Keys that the writer may be behind before no more are taken: a copy held is a block that must be copied when it
/// changes.
const BEHIND_MAX: u64 = 512;

/// After a snapshot that failed none begins by itself for so long. Redis: 5 s.
const RETRY_MS: u64 = 5000;

/// For the writer of snapshots.
#[derive(Debug)]
pub enum SnapshotStep {
    /// A snapshot begins.
    Begin {
        /// The log position it stands for.
        position: u64,
        /// The newest time in the state.
        now_ms: u64,
    },
    /// Keys of it. [`Node::on_snapshot_written`] says that the writer is done with so many.
    Keys(Vec<Captured>),
    /// It has all keys, and the log is synced up to its position. [`Node::on_snapshot_ended`] answers.
    Finish,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Stage {
    #[default]
    Idle,
    /// Keys are being taken.
    Taking,
    /// All keys are with the writer; the log is not synced far enough yet.
    Waiting,
    /// The writer finishes.
    Finishing,
}

/// The newest snapshot that is on disk; nothing but zeros if there is none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Newest {
    /// The log position it stands for.
    pub position: u64,
    /// Its size.
    pub len_bytes: u64,
}

#[derive(Debug, Default)]
pub(super) struct Saving {
    pub(super) stage: Stage,
    /// A snapshot was asked for.
    asked: bool,
    /// Clients that wait for the end of the next one to begin, and of the one that runs.
    next_waiters: Vec<u64>,
    waiters: Vec<u64>,
    position: u64,
    /// Keys handed to the writer, and those it is done with.
    handed: u64,
    written: u64,
    changes_at_begin: u64,
    changes_at_success: u64,
    last_success_ms: u64,
    last_failed: bool,
    retry_ms: u64,
    newest: Newest,
    /// What positions count from when there is no log.
    base: u64,
    base_changes: u64,
}

impl Saving {
    pub(super) fn restored(&mut self, position: u64, newest: Newest, changes: u64, now_ms: u64) {
        (self.base, self.base_changes) = (position, changes);
        self.newest = newest;
        self.changes_at_success = changes;
        self.last_success_ms = now_ms;
    }

    pub(super) fn ask(&mut self, client: Option<u64>) {
        self.asked = true;
        self.next_waiters.extend(client);
    }

    pub(super) fn facts(&self, changes: u64) -> Facts {
        Facts {
            running: self.stage != Stage::Idle,
            last_success_s: self.last_success_ms / 1000,
            last_ok: !self.last_failed,
            changes_since: changes.saturating_sub(self.changes_at_success),
            snapshot_position: self.newest.position,
            snapshot_bytes: self.newest.len_bytes,
        }
    }

    /// When a snapshot is to begin by itself, as things stand: by the rules of `save`, or because the log has become long.
    fn due_ms(&self, engine: &Engine) -> Option<u64> {
        let changed = engine.state().changes.saturating_sub(self.changes_at_success);
        let rules = &engine.settings.save;
        let by_rule = rules
            .iter()
            .filter(|rule| changed > 0 && changed >= u64::from(rule.changes))
            .map(|rule| self.last_success_ms + u64::from(rule.seconds) * 1000)
            .min();
        let by_length = self.is_log_long(engine).then_some(0);
        let due_ms = [by_rule, by_length].into_iter().flatten().min()?;
        Some(due_ms.max(self.retry_ms))
    }

    /// Is what a start would have to replay more than the settings allow? So the log stays bounded by the state, and a start
    /// takes no longer than some times reading the snapshot.
    fn is_log_long(&self, engine: &Engine) -> bool {
        let settings = &engine.settings;
        if settings.auto_snapshot_percentage == 0 || !engine.log.is_enabled() {
            return false;
        }
        let share = (self.newest.len_bytes / 100).saturating_mul(u64::from(settings.auto_snapshot_percentage));
        let allowed_bytes = share.max(settings.auto_snapshot_min_bytes).max(1);
        engine.log.position().saturating_sub(self.newest.position) >= allowed_bytes
    }

    pub(super) fn deadline_ms(&self, engine: &Engine) -> Option<u64> {
        match self.stage {
            Stage::Idle => self.due_ms(engine),
            _ => None,
        }
    }
}

impl Node {
    /// Does what is next for the snapshot, if there is to be one.
    pub(super) fn save(&mut self, now_ms: u64, turn: &mut Turn) {
        let changes = self.engine.state().changes;
        if self.saving.stage == Stage::Idle {
            let is_due = self.saving.due_ms(&self.engine).is_some_and(|due_ms| due_ms <= now_ms);
            if !self.saving.asked && !is_due {
                return;
            }
            let saving = &mut self.saving;
            saving.asked = false;
            saving.waiters = std::mem::take(&mut saving.next_waiters);
            saving.stage = Stage::Taking;
            saving.changes_at_begin = changes;
            (saving.handed, saving.written) = (0, 0);
            saving.position = if self.engine.log.is_enabled() {
                self.engine.log.position()
            } else {
                saving.base + (changes - saving.base_changes)
            };
            let position = saving.position;
            self.engine.snapshot_begin();
            let now_ms = self.engine.state().last_ms.max(now_ms);
            self.commits.want_sync(if self.engine.log.is_enabled() { position } else { 0 });
            turn.snapshot.push(SnapshotStep::Begin { position, now_ms });
        }
        if self.saving.stage == Stage::Taking {
            let behind = self.saving.handed - self.saving.written >= BEHIND_MAX;
            let n = if behind { 0 } else { KEYS_PER_TURN };
            let (keys, complete) = self.engine.snapshot_continue(n);
            if !keys.is_empty() {
                self.saving.handed += keys.len() as u64;
                turn.snapshot.push(SnapshotStep::Keys(keys));
            }
            if complete {
                self.saving.stage = Stage::Waiting;
            } else {
                turn.again |= !behind;
            }
        }
        if self.saving.stage == Stage::Waiting {
            let synced = !self.engine.log.is_enabled() || self.commits.synced() >= self.saving.position;
            if synced {
                self.saving.stage = Stage::Finishing;
                turn.snapshot.push(SnapshotStep::Finish);
            }
        }
    }

    /// Asks for a snapshot, as `BGSAVE` does.
    pub fn ask_for_snapshot(&mut self) {
        self.saving.ask(None);
    }

    /// The writer is done with so many keys, counted from the beginning of the snapshot.
    pub fn on_snapshot_written(&mut self, keys: u64) {
        self.saving.written = keys.min(self.saving.handed);
    }

    /// The snapshot is on disk with so many bytes, or (`None`) it is not going to be.
    pub fn on_snapshot_ended(&mut self, len_bytes: Option<u64>, now_ms: u64) {
        if self.saving.stage == Stage::Taking {
            self.engine.snapshot_abort();
        }
        let saving = &mut self.saving;
        saving.stage = Stage::Idle;
        saving.last_failed = len_bytes.is_none();
        if let Some(len_bytes) = len_bytes {
            saving.newest = Newest { position: saving.position, len_bytes };
            saving.changes_at_success = saving.changes_at_begin;
            saving.last_success_ms = now_ms;
            saving.retry_ms = 0;
        } else {
            saving.retry_ms = now_ms + RETRY_MS;
        }
        for client in std::mem::take(&mut self.saving.waiters) {
            self.answer(client, CommandId::Save, |reply| match len_bytes {
                Some(_) => reply.ok(),
                None => reply.error(b"ERR the snapshot could not be written, see the log of the server"),
            });
        }
    }

    /// Is a snapshot being made or asked for?
    pub fn is_saving(&self) -> bool {
        self.saving.stage != Stage::Idle || self.saving.asked
    }
}
