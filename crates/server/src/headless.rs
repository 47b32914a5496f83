//! A partition without sockets, threads and clock: commands in, replies out, the log written and snapshots taken at once, on
//! whatever disk it is given. It drives the same [`Node`] as the process does; for tests and tools that need a whole server
//! and want each run to be the same.
//!
//! Invariants: a reply is given to the caller only when the node lets it leave; after a failed commit nothing is.
//!
//! It must never do for the node what the process would not.

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod damage_tests;

use std::path::Path;
use std::sync::Arc;

use impel_core::engine::blocked::ClientIndex;
use impel_core::engine::facts::{Facts, Host, Saving};
use impel_core::settings::Settings;

use crate::disk::{DataDir, Disk};
use crate::log::Log;
use crate::node::{Node, SnapshotStep, Turn};
use crate::saver::{Begun, Piece, SnapshotJob};
use crate::startup::{self, StartupError};

/// Turns after which a command that is not answered never will be.
const TURNS_MAX: usize = 10_000;

/// The outside of a partition that has none.
struct Nowhere(Saving);

impl Host for Nowhere {
    fn info(&self, _section: &str, _out: &mut Vec<u8>) {}

    fn saving(&self) -> Saving {
        self.0
    }

    fn random(&self, bytes: &mut [u8]) {
        bytes.fill(0);
    }

    fn read_acl_file(&self, _: &str) -> Result<Vec<u8>, String> {
        Err("there are no files here".into())
    }

    fn write_acl_file(&self, _: &str, _: &[u8]) -> Result<(), String> {
        Err("there are no files here".into())
    }
}

/// See the module.
pub struct Headless {
    node: Node,
    dir: Arc<DataDir>,
    log: Option<Box<dyn Log>>,
    job: Option<SnapshotJob>,
    client: ClientIndex,
    now_ms: u64,
    is_dead: bool,
    /// Every commit that was tried: its payload and the position after it.
    #[cfg(test)]
    commits: Vec<(Vec<u8>, u64)>,
}

impl Headless {
    /// Starts in a directory of a disk, at a time (Unix ms).
    pub fn start(disk: Arc<dyn Disk>, path: &Path, settings: Settings, now_ms: u64) -> Result<Headless, StartupError> {
        let dir = DataDir::open(disk, path)?;
        let mut node = Node::new(settings, 1);
        let opened = startup::load(Some(dir.clone()), node.engine_mut())?;
        let now_ms = now_ms.max(node.engine().state().last_ms);
        node.restored(opened.position, opened.newest(), opened.log.is_some(), now_ms);
        let client = node.on_open("127.0.0.1:1".into(), "127.0.0.1:2".into(), now_ms);
        Ok(Headless {
            node,
            dir,
            log: opened.log,
            job: None,
            client,
            now_ms,
            is_dead: false,
            #[cfg(test)]
            commits: Vec::new(),
        })
    }

    /// The node, to look at.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Has a commit failed? Then nothing is answered any more.
    pub fn is_dead(&self) -> bool {
        self.is_dead
    }

    /// The time.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// Lets time pass, and happen what is due by it.
    pub fn pass(&mut self, ms: u64) {
        self.now_ms += ms;
        self.turn();
    }

    /// Carries out a command. Answers what left as the reply: nothing if the partition died before.
    pub fn ask(&mut self, words: &[&[u8]]) -> Vec<u8> {
        let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            bytes.extend_from_slice(word);
            bytes.extend_from_slice(b"\r\n");
        }
        let client = self.client;
        self.with_facts(|node, facts| node.on_bytes(client, &bytes, facts));
        let mut reply = Vec::new();
        for _ in 0..TURNS_MAX {
            self.turn();
            let left = self.node.output(client);
            let len_bytes = left.len();
            reply.extend_from_slice(left);
            self.node.sent(client, len_bytes);
            if self.is_dead || !reply.is_empty() {
                break;
            }
        }
        reply
    }

    /// As [`Headless::ask`] with words between spaces.
    pub fn line(&mut self, line: &str) -> Vec<u8> {
        self.ask(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>())
    }

    /// Hands over and syncs what nobody waits for, too, as at the end of the process.
    pub fn settle(&mut self) {
        self.node.sync_everything();
        for _ in 0..TURNS_MAX {
            if self.is_dead || self.node.is_settled() {
                break;
            }
            self.turn();
        }
    }

    fn with_facts<T>(&mut self, act: impl FnOnce(&mut Node, &Facts<'_>) -> T) -> T {
        let host = Nowhere(self.node.saving());
        let now_ms = self.now_ms;
        let facts = Facts { now_ms, now_us: now_ms * 1000, used_memory: 0, elapsed_us: &|| 0, host: &host };
        act(&mut self.node, &facts)
    }

    /// One turn, with all that it asks for.
    pub fn turn(&mut self) {
        if self.is_dead {
            return;
        }
        let Turn { commit, snapshot, .. } = self.with_facts(|node, facts| {
            node.on_tick(facts);
            node.end_turn(facts)
        });
        if let (Some(commit), Some(log)) = (commit, &mut self.log) {
            #[cfg(test)]
            self.commits.push((commit.bytes.clone(), commit.end));
            match log.commit(&commit.bytes, commit.now_ms, commit.sync) {
                Ok(()) => self.node.on_committed(commit.end, commit.sync, commit.bytes),
                Err(_) => {
                    self.node.on_commit_failed();
                    self.is_dead = true;
                    return;
                }
            }
        }
        for step in snapshot {
            self.snapshot_step(step);
        }
        while self.node.free_one() {}
    }

    fn snapshot_step(&mut self, step: SnapshotStep) {
        let ended = match step {
            SnapshotStep::Begin { position, now_ms } => {
                let with_log = self.log.is_some();
                let history_ms = self.node.settings().log_retention_ms();
                match SnapshotJob::begin(&self.dir, Begun { position, now_ms, with_log, history_ms }) {
                    Ok(job) => {
                        self.job = Some(job);
                        None
                    }
                    Err(error) => Some(Err(error)),
                }
            }
            SnapshotStep::Keys(keys) => self.job.as_mut().and_then(|job| job.take(Piece::Keys(keys))),
            SnapshotStep::Finish => self.job.as_mut().and_then(|job| job.take(Piece::Finish)),
        };
        let Some(ended) = ended else { return };
        self.job = None;
        let saved = ended.ok();
        if let (Some(saved), Some(log)) = (&saved, &mut self.log) {
            // What could not be removed is tried again next time.
            let _ = log.trim(saved.log_from);
        }
        self.node.on_snapshot_ended(saved.map(|saved| saved.info.len_bytes), self.now_ms);
    }
}
