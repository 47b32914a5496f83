//! The log and its snapshots against a disk that stops or fails at every single operation.
//!
//! What must hold, whatever survives: after the restart the state is a beginning of what was committed, cut between
//! frames, and holds at least everything whose commit with `sync` had returned `Ok`; the log can be appended to, and
//! what is appended then holds as well. A refusal to start would be a failure, since no crash may look like damage.
//!
//! The first pass counts operations, the second breaks each.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use super::{FileLog, Log, Options};
use crate::disk::DataDir;
use crate::disk::fake::{FakeDisk, Fault, SURVIVALS, SplitMix64, Survival};
use crate::snapshots;

const OPTIONS: Options = Options { segment_bytes: 8 * 1024, payload_max_bytes: u32::MAX };

/// When commits sync.
#[derive(Clone, Copy, Debug)]
enum Syncs {
    Always,
    Never,
    Mixed,
}

/// All payload bytes that were ever committed, where frames end, and how far it was acknowledged as durable.
#[derive(Default)]
struct History {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    acknowledged: usize,
    poisoned: bool,
}

struct Server {
    dir: Arc<DataDir>,
    log: FileLog,
}

fn start(disk: &FakeDisk) -> Result<Server, Box<dyn std::error::Error>> {
    let dir = DataDir::open(Arc::new(disk.clone()), Path::new("/data"))?;
    let (log, _) = super::open(&dir, OPTIONS)?;
    Ok(Server { dir, log })
}

/// The payload bytes that a start gives back: the snapshot's, which here are the bytes themselves, and the log's.
fn state(server: &Server, history: &History, context: &str) -> Vec<u8> {
    let newest = snapshots::list(&server.dir).unwrap().last().copied();
    let mut bytes = Vec::new();
    if let Some(position) = newest {
        let mut reader = snapshots::read(&server.dir, position).unwrap();
        while let Some(chunk) = reader.next_chunk().unwrap() {
            bytes.extend_from_slice(chunk);
        }
        assert_eq!(bytes.len() as u64, position);
    }
    server
        .log
        .replay(bytes.len() as u64, |position, _, payload| {
            assert_eq!(position, bytes.len() as u64, "{context}");
            bytes.extend_from_slice(payload);
            Ok(())
        })
        .unwrap();
    assert_eq!(bytes.len() as u64, server.log.end(), "{context}");
    assert!(history.bytes.starts_with(&bytes), "{context}: not a beginning of what was committed");
    assert!(bytes.is_empty() || history.ends.contains(&bytes.len()), "{context}: cut within a frame");
    let (len, acknowledged) = (bytes.len(), history.acknowledged);
    assert!(len >= acknowledged, "{context}: {acknowledged} bytes were acknowledged, {len} are left");
    bytes
}

/// Commits, and now and then a snapshot with what follows from it, until an error.
fn work(server: &mut Server, history: &mut History, syncs: Syncs, random: &mut SplitMix64, commits: usize) -> bool {
    for number in 0..commits {
        let len = match random.below(12) {
            0 => 3000 + random.below(3000),
            1 => 1,
            _ => 1 + random.below(700),
        };
        let payload: Vec<u8> = (0..len).map(|_| random.next_u64() as u8).collect();
        let sync = match syncs {
            Syncs::Always => true,
            Syncs::Never => false,
            Syncs::Mixed => random.below(4) == 0,
        };
        // Known before the attempt: a commit that fails may be there after the crash or not.
        history.bytes.extend_from_slice(&payload);
        history.ends.push(history.bytes.len());
        if server.log.commit(&payload, number as u64, sync).is_err() {
            history.poisoned = true;
            return false;
        }
        if sync {
            history.acknowledged = history.bytes.len();
        }
        if number % 9 == 8 && snapshot(server, history).is_err() {
            return false;
        }
    }
    true
}

fn snapshot(server: &mut Server, history: &mut History) -> Result<(), Box<dyn std::error::Error>> {
    let mut writer = snapshots::create(&server.dir, history.bytes.len() as u64, 0, true)?;
    for chunk in history.bytes.chunks(2000) {
        writer.write_chunk(chunk)?;
    }
    if let Err(error) = server.log.sync() {
        history.poisoned = true;
        return Err(error.into());
    }
    history.acknowledged = history.bytes.len();
    writer.finish()?;
    let log_from = snapshots::prune(&server.dir, &snapshots::Keep { older: 1, ..Default::default() })?;
    server.log.trim(log_from)?;
    Ok(())
}

/// Forgets what did not come back: the server goes on from what did.
fn accept(history: &mut History, bytes: &[u8]) {
    history.bytes.truncate(bytes.len());
    history.ends.retain(|&end| end <= bytes.len());
    // What a start gives back has been made durable by it.
    history.acknowledged = bytes.len();
}

/// Starts, checks, works on (with an even seed; else nothing but the start itself makes what it found durable), crashes
/// once more, checks. Returns the operations that the first start took.
fn check_and_go_on(disk: &FakeDisk, history: &mut History, seed: u64, context: &str) -> u64 {
    let begun = disk.operations();
    let mut server = start(disk).unwrap_or_else(|error| panic!("{context}: {error}"));
    let operations = disk.operations() - begun;
    let bytes = state(&server, history, context);
    accept(history, &bytes);
    if seed.is_multiple_of(2) {
        assert!(work(&mut server, history, Syncs::Always, &mut SplitMix64(seed), 3));
    }
    drop(server);
    disk.crash(Survival::Nothing, seed);
    let server = start(disk).unwrap_or_else(|error| panic!("{context}, second crash: {error}"));
    let bytes = state(&server, history, context);
    assert_eq!(bytes.len(), history.bytes.len(), "{context}");
    operations
}

const COMMITS: usize = 30;

/// Runs the workload with a fault at an operation; returns what is known then, and how many operations there were.
fn run(syncs: Syncs, fault: Option<(u64, Fault)>) -> (FakeDisk, History, u64) {
    let disk = FakeDisk::new();
    if let Some((at, fault)) = fault {
        disk.break_at(at, fault);
    }
    let mut history = History::default();
    if let Ok(mut server) = start(&disk) {
        work(&mut server, &mut history, syncs, &mut SplitMix64(42), COMMITS);
        if history.poisoned {
            // Poisoned for good, though the disk is well again.
            disk.heal();
            server.log.commit(b"x", 0, true).unwrap_err();
            server.log.commit(b"", 0, true).unwrap_err();
            server.log.sync().unwrap_err();
            server.log.trim(0).unwrap_err();
        }
    }
    let operations = disk.operations();
    (disk, history, operations)
}

fn crash_everywhere(syncs: Syncs) {
    let (_, history, operations) = run(syncs, None);
    assert_eq!(history.ends.len(), COMMITS, "the workload runs through when nothing breaks");
    assert!(operations > 60, "{operations}");
    for at in 0..operations {
        for survival in SURVIVALS {
            let seeds = if matches!(survival, Survival::Nothing | Survival::Everything) { 1 } else { 5 };
            for seed in 0..seeds {
                let context = format!("{syncs:?}, crash at {at}, {survival:?}, seed {seed}");
                let (disk, mut history, _) = run(syncs, Some((at, Fault::Crash)));
                assert!(disk.is_down(), "{context}");
                disk.crash(survival, seed);
                check_and_go_on(&disk, &mut history, seed, &context);
            }
        }
    }
}

#[test]
fn a_crash_at_any_operation_when_every_commit_syncs() {
    crash_everywhere(Syncs::Always);
}

#[test]
fn a_crash_at_any_operation_when_no_commit_syncs() {
    crash_everywhere(Syncs::Never);
}

#[test]
fn a_crash_at_any_operation_when_some_commits_sync() {
    crash_everywhere(Syncs::Mixed);
}

#[test]
fn a_crash_at_any_operation_of_the_start_after_a_crash() {
    for first in (3..run(Syncs::Mixed, None).2).step_by(5) {
        let crashed = || {
            let (disk, history, _) = run(Syncs::Mixed, Some((first, Fault::Crash)));
            disk.crash(Survival::Garbage, first);
            (disk, history)
        };
        let (disk, mut history) = crashed();
        let operations = check_and_go_on(&disk, &mut history, 1, &format!("crash at {first}"));
        for second in 0..operations {
            for survival in SURVIVALS {
                let (disk, mut history) = crashed();
                disk.break_at(disk.operations() + second, Fault::Crash);
                let context = format!("crash at {first}, then at {second} of the start, {survival:?}");
                assert!(start(&disk).is_err(), "{context}");
                disk.crash(survival, second);
                check_and_go_on(&disk, &mut history, second, &context);
            }
        }
    }
}

#[test]
fn an_error_at_any_operation_poisons_and_costs_nothing_acknowledged() {
    for kind in [ErrorKind::StorageFull, ErrorKind::Other] {
        for syncs in [Syncs::Always, Syncs::Mixed] {
            for at in 0..run(syncs, None).2 {
                let failed = || run(syncs, Some((at, Fault::Error(kind))));
                // The server is started again on the same machine, which remembers in memory what it failed to write …
                let context = format!("{syncs:?}, {kind:?} at {at}");
                let (disk, mut history, _) = failed();
                disk.restart();
                check_and_go_on(&disk, &mut history, at, &context);
                let (disk, mut history, _) = failed();
                disk.restart();
                check_and_go_on(&disk, &mut history, at + 1, &context);
                // … or the machine goes down with the server.
                let (disk, mut history, _) = failed();
                disk.crash(Survival::Scattered, at);
                check_and_go_on(&disk, &mut history, 4, &context);
            }
        }
    }
}

#[test]
fn the_same_run_leaves_the_same_bytes() {
    let outcome = || {
        let (disk, history, _) = run(Syncs::Mixed, Some((70, Fault::Crash)));
        disk.crash(Survival::Garbage, 9);
        state(&start(&disk).unwrap(), &history, "")
    };
    let first = outcome();
    assert!(!first.is_empty());
    assert_eq!(first, outcome());
}

/// Without a log, too: what a server has started from is there the next time.
#[test]
fn a_snapshot_that_a_start_has_used_survives_though_its_writer_was_killed_before_the_last_sync() {
    let disk = FakeDisk::new();
    let snapshot = |disk: &FakeDisk| {
        let dir = DataDir::open(Arc::new(disk.clone()), Path::new("/data")).unwrap();
        let mut writer = snapshots::create(&dir, 7, 0, false).unwrap();
        writer.write_chunk(b"chunk").unwrap();
        writer.finish()
    };
    let found = |disk: &FakeDisk| {
        let dir = DataDir::open(Arc::new(disk.clone()), Path::new("/data")).unwrap();
        super::open_to_read(&dir).unwrap().1.end
    };
    let tried = FakeDisk::new();
    snapshot(&tried).unwrap();
    // Its last operation is the sync of the directory.
    disk.break_at(tried.operations() - 1, Fault::Crash);
    assert!(snapshot(&disk).is_err());
    disk.restart();
    assert_eq!(found(&disk), 7);
    disk.crash(Survival::Nothing, 1);
    assert_eq!(found(&disk), 7);
}
