//! When what the engine appended goes to the log, and what of it is synced.
//!
//! `appendfsync always`: a commit is a write and a sync. `everysec`: a write, and once a second a sync. `no`: a write.
//! In any case a reply leaves when the commit with its records is done. What nobody waits for goes with the next
//! commit, or by itself after a while.

use impel_core::engine::Engine;
use impel_core::limits::LOG_AHEAD_MAX_BYTES;
use impel_core::settings::AppendFsync;

/// Records that nobody waits for are handed over when so many bytes of them have come together …
const LAZY_BYTES: usize = 64 * 1024;

/// … or after so long.
const LAZY_MS: u64 = 1000;

/// How long a write may stay without a sync under `appendfsync everysec`.
const SYNC_EVERY_MS: u64 = 1000;

/// A sync costs the same for one record as for fifty, so that a commit waits while more records come in from turn to
/// turn: but not beyond so many turns …
const HOLD_TURNS: u32 = 4;

/// … and not with more bytes than this, which are worth a sync.
const WORTH_BYTES: usize = 16 * 1024;

/// Bytes for the log.
#[derive(Debug)]
pub struct Commit {
    /// The records; may be empty when only a sync is wanted. Given back with [`super::Node::on_committed`].
    pub bytes: Vec<u8>,
    /// The position after them.
    pub end: u64,
    /// Make everything so far survive a crash.
    pub sync: bool,
    /// Stored with them.
    pub now_ms: u64,
}

/// A client that waits for a position to be synced (WAITAOF).
#[derive(Debug)]
struct DurableWait {
    client: u64,
    position: u64,
    deadline_ms: u64,
}

/// The state of the hand-over.
#[derive(Debug, Default)]
pub(super) struct Commits {
    in_flight: bool,
    poisoned: bool,
    /// Everything before this survives a crash.
    synced: u64,
    /// A sync up to here is wanted whatever `appendfsync` says.
    sync_wanted: u64,
    /// The same for everything there is, and what comes until that is so.
    settling: bool,
    /// When the next sync of `everysec` is due.
    sync_due_ms: Option<u64>,
    /// When records that nobody waits for go by themselves.
    lazy_due_ms: Option<u64>,
    /// Turns for which the next commit has been held back.
    held_turns: u32,
    /// Position at the end of the last turn.
    last_position: u64,
    waits: Vec<DurableWait>,
    /// Buffers to use again.
    spare: Vec<Vec<u8>>,
}

/// A recycled buffer keeps no more memory than this.
const SPARE_MAX_BYTES: usize = 1 << 20;

impl Commits {
    pub(super) fn restored(&mut self, position: u64) {
        (self.synced, self.sync_wanted, self.last_position) = (position, position, position);
        (self.sync_due_ms, self.lazy_due_ms) = (None, None);
        self.settling = false;
    }

    pub(super) fn synced(&self) -> u64 {
        self.synced
    }

    pub(super) fn is_poisoned(&self) -> bool {
        self.poisoned
    }

    pub(super) fn poison(&mut self) {
        self.poisoned = true;
        self.in_flight = false;
    }

    pub(super) fn want_sync(&mut self, position: u64) {
        self.sync_wanted = self.sync_wanted.max(position);
    }

    pub(super) fn settle(&mut self) {
        self.settling = true;
    }

    pub(super) fn is_settled(&self, position: u64) -> bool {
        !self.in_flight && self.synced >= position
    }

    pub(super) fn is_pressed(&self, engine: &Engine) -> bool {
        engine.log.len() >= LOG_AHEAD_MAX_BYTES
    }

    /// A commit is held back until the next turn, which should begin at once.
    pub(super) fn is_held(&self) -> bool {
        self.held_turns > 0
    }

    pub(super) fn wait_for(&mut self, client: u64, position: u64, deadline_ms: u64) {
        self.want_sync(position);
        self.waits.push(DurableWait { client, position, deadline_ms });
    }

    /// Takes out the waits that are over: whose they were, and whether their position is synced.
    pub(super) fn ended_waits(&mut self, now_ms: u64) -> Vec<(u64, bool)> {
        if self.waits.is_empty() {
            return Vec::new();
        }
        let mut ended = Vec::new();
        let synced = self.synced;
        self.waits.retain(|wait| {
            let is_synced = wait.position <= synced;
            let over = is_synced || (wait.deadline_ms != 0 && wait.deadline_ms <= now_ms);
            if over {
                ended.push((wait.client, is_synced));
            }
            !over
        });
        ended
    }

    /// The next commit, if it is time for one.
    pub(super) fn next(&mut self, engine: &mut Engine, now_ms: u64) -> Option<Commit> {
        let grown = engine.log.position() > self.last_position;
        self.last_position = engine.log.position();
        let held_turns = std::mem::take(&mut self.held_turns);
        if !engine.log.is_enabled() || self.poisoned {
            return None;
        }
        if self.settling {
            self.want_sync(engine.log.position());
            self.settling = !self.is_settled(engine.log.position());
        }
        if self.lazy_due_ms.is_none() && !engine.log.is_empty() {
            self.lazy_due_ms = Some(now_ms + LAZY_MS);
        }
        if self.in_flight {
            return None;
        }
        let due = |at: Option<u64>| at.is_some_and(|at_ms| at_ms <= now_ms);
        let sync_wanted = self.sync_wanted > self.synced;
        let sync_due = due(self.sync_due_ms);
        let wanted = engine.log.is_wanted()
            || engine.log.len() >= LAZY_BYTES
            || (due(self.lazy_due_ms) && !engine.log.is_empty());
        if !wanted && !sync_wanted && !sync_due {
            return None;
        }
        let fsync = engine.settings.appendfsync;
        let worth_holding = grown && held_turns < HOLD_TURNS && engine.log.len() < WORTH_BYTES;
        if worth_holding && !sync_wanted && fsync == AppendFsync::Always {
            self.held_turns = held_turns + 1;
            return None;
        }
        let sync = sync_wanted || sync_due || fsync == AppendFsync::Always;
        let mut bytes = self.spare.pop().unwrap_or_default();
        let end = engine.log.take(&mut bytes);
        if sync {
            self.sync_due_ms = None;
        } else if fsync == AppendFsync::EverySec && self.sync_due_ms.is_none() && !bytes.is_empty() {
            self.sync_due_ms = Some(now_ms + SYNC_EVERY_MS);
        }
        self.lazy_due_ms = None;
        self.in_flight = true;
        Some(Commit { bytes, end, sync, now_ms })
    }

    pub(super) fn done(&mut self, end: u64, synced: bool, mut bytes: Vec<u8>) {
        self.in_flight = false;
        if synced {
            self.synced = self.synced.max(end);
        }
        if bytes.capacity() <= SPARE_MAX_BYTES && self.spare.len() < 2 {
            bytes.clear();
            self.spare.push(bytes);
        }
    }

    pub(super) fn deadline_ms(&self) -> Option<u64> {
        let waits = self.waits.iter().map(|wait| wait.deadline_ms).filter(|&at_ms| at_ms != 0).min();
        // While a commit is in flight its end begins the turn that looks at these again.
        let (sync, lazy) = if self.in_flight { (None, None) } else { (self.sync_due_ms, self.lazy_due_ms) };
        [waits, sync, lazy].into_iter().flatten().min()
    }
}
