//! A whole server (engine, log, snapshots, start) on a disk that stops or fails at every single operation.
//!
//! What must hold, whatever survives: the start succeeds; what it reads back is the state after one of the commits, exactly,
//! and not before the last one that a client was told of; it goes on from there. After an error of the disk no reply leaves
//! for what may not be there. The first pass counts operations and notes the state after each commit, the second breaks each
//! operation.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use impel_core::check as invariants;
use impel_core::engine::Engine;

use super::*;
use crate::disk::fake::{FakeDisk, Fault, SURVIVALS, Survival};

const BEGIN_MS: u64 = 1_700_000_000_000;

/// Adds, reads, acknowledges, trims, gives back, holds, keeps a ledger, snapshots; segments roll over and the log is trimmed. A line that is a
/// number lets time pass.
const WORK: &str = "\
XGROUP CREATE s g 0 MKSTREAM
XADD s 1-0 n 1 text @
XADD s 2-0 n 2 text @
XADD s 3-0 n 3 text @
XREADGROUP GROUP g c COUNT 2 STREAMS s >
XACK s g 1-0
XGROUP CREATE empty g 0 MKSTREAM
XREADGROUP GROUP g c COUNT 2 STREAMS empty s > >
XADDM s COUNT 2 4-0 2 n 4 text @ 5-0 2 n 5 text @
SET string value
SAVE
XADD s 6-0 n 6 text @
XADD s 7-0 n 7 text @
XREADGROUP GROUP g d COUNT 3 STREAMS s >
XTRIM s MAXLEN 4
XNACK s g FAIL IDS 1 4-0
XADDM w COUNT 3 1-0 1 n 1 2-0 1 n 2 3-0 1 n 3
XGROUP CREATE w g 0
XWORK POLICY w g LEASE 50 MAXDELIVERIES 2 DEADLETTER dead
XREADGROUP GROUP g c COUNT 3 STREAMS w >
XWORK BEGIN w g c 1-0 WORK job
XWORK DONE w g c 1-0 WORK job EMIT out 1-0 of job
XWORK BEGIN w g c 2-0
XADD delayed NOTBEFORE 1700000000050 1-0 k v
XGROUP CREATE delayed g 0
XADD s 8-0 n 8 text @
SAVE
100
XREADGROUP GROUP g c STREAMS delayed >
XREADGROUP GROUP g d COUNT 3 STREAMS w >
XWORK FAIL w g d 3-0 DEAD
XWORK DONE w g d 2-0 WORK job
XCLAIM s g c 0 5-0
XGROUP DELCONSUMER s g d RELEASE
XADD s 9-0 n 9 text @
APPEND string -more
XREADGROUP GROUP g c COUNT 9 STREAMS s >
XADD s 10-0 n 10 text @
SAVE
XACK s g 9-0
XADD s 11-0 n 11 text @
DEL string
XADD s 12-0 n 12 text @
";

fn settings(fsync: &str) -> Settings {
    let mut settings = Settings::default();
    settings.apply(b"appendfsync", &[fsync]).unwrap();
    // As small as a segment can be.
    settings.log_segment_bytes = 1;
    settings
}

fn start(disk: &FakeDisk, fsync: &str) -> Result<Headless, StartupError> {
    Headless::start(Arc::new(disk.clone()), Path::new("/data"), settings(fsync), BEGIN_MS)
}

/// What a run left: how far a client was told.
struct Run {
    disk: FakeDisk,
    acknowledged: u64,
    server: Option<Headless>,
}

/// Plays the work up to its end, or until the disk breaks.
fn run(fsync: &str, fault: Option<(u64, Fault)>) -> Run {
    let disk = FakeDisk::new();
    if let Some((at, fault)) = fault {
        disk.break_at(at, fault);
    }
    let Ok(mut server) = start(&disk, fsync) else { return Run { disk, acknowledged: 0, server: None } };
    let mut acknowledged = 0;
    let text = "x".repeat(700);
    for line in WORK.lines() {
        if let Ok(ms) = line.parse() {
            server.pass(ms);
            continue;
        }
        let reply = server.line(&line.replace('@', &text));
        if server.is_dead() {
            assert!(reply.is_empty(), "{line}: no reply leaves after a commit has failed");
            break;
        }
        assert!(!reply.is_empty(), "{line}");
        // A snapshot may fail without anything else.
        assert!(reply[0] != b'-' || (line == "SAVE" && fault.is_some()), "{line}: {}", reply.escape_ascii());
        acknowledged = match fsync {
            "always" => server.node().engine().log.position(),
            // What was synced for a snapshot is sure, and nothing else.
            _ => server.node().synced_position(),
        };
        if disk.is_down() {
            break;
        }
    }
    Run { disk, acknowledged, server: Some(server) }
}

/// The digest after each commit of a run without faults, by position.
struct Reference {
    digests: BTreeMap<u64, String>,
    operations: u64,
}

fn reference(fsync: &'static str) -> &'static Reference {
    static ALWAYS: OnceLock<Reference> = OnceLock::new();
    static NO: OnceLock<Reference> = OnceLock::new();
    let place = if fsync == "always" { &ALWAYS } else { &NO };
    place.get_or_init(|| {
        let Run { disk, server, .. } = run(fsync, None);
        let server = server.unwrap();
        let mut engine = Engine::new(Settings::default(), 7);
        let digest = |engine: &Engine| invariants::exact_digest(engine.state()).hex();
        let mut digests = BTreeMap::from([(0, digest(&engine))]);
        for (payload, end) in server.commits.iter().filter(|(payload, _)| !payload.is_empty()) {
            startup::replay(end - payload.len() as u64, 0, payload, &mut engine).unwrap();
            digests.insert(*end, digest(&engine));
        }
        assert_eq!(digest(&engine), digest(server.node().engine()), "a replay leads to what was served");
        let segments = disk.list(Path::new("/data/log")).unwrap();
        assert!(!segments[0].starts_with("00000000000000000000") && segments.len() > 1, "{segments:?}");
        Reference { digests, operations: disk.operations() }
    })
}

/// Starts, and asks what must hold.
fn check(disk: &FakeDisk, fsync: &'static str, acknowledged: u64, context: &str) -> Headless {
    let server = start(disk, fsync).unwrap_or_else(|error| panic!("{context}: {error}"));
    let engine = server.node().engine();
    let position = engine.log.position();
    assert!(position >= acknowledged, "{context}: {acknowledged} was acknowledged, {position} is left");
    invariants::check(engine.state()).unwrap_or_else(|fault| panic!("{context}: {fault}"));
    let digest = invariants::exact_digest(engine.state()).hex();
    assert_eq!(reference(fsync).digests.get(&position), Some(&digest), "{context}, position {position}");
    server
}

/// Starts, checks, does a little, and crashes once more.
fn check_and_go_on(disk: &FakeDisk, fsync: &'static str, acknowledged: u64, context: &str) {
    let mut server = check(disk, fsync, acknowledged, context);
    let before = server.node().engine().log.position();
    assert_eq!(server.line("XADD later * n 1").first(), Some(&b'$'), "{context}");
    assert_eq!(server.line("SAVE"), b"+OK\r\n", "{context}");
    server.settle();
    let digest = invariants::exact_digest(server.node().engine().state()).hex();
    drop(server);
    disk.crash(Survival::Nothing, 0);
    let server = start(disk, fsync).unwrap_or_else(|error| panic!("{context}, second crash: {error}"));
    assert!(server.node().engine().log.position() > before, "{context}");
    assert_eq!(invariants::exact_digest(server.node().engine().state()).hex(), digest, "{context}, second crash");
}

fn crash_everywhere(fsync: &'static str) {
    let operations = reference(fsync).operations;
    assert!(operations > 70, "{operations}");
    for at in 0..operations {
        for survival in SURVIVALS {
            let seeds = if matches!(survival, Survival::Nothing | Survival::Everything) { 1 } else { 6 };
            for seed in 0..seeds {
                let context = format!("appendfsync {fsync}, crash at {at}, {survival:?}, seed {seed}");
                let Run { disk, acknowledged, server } = run(fsync, Some((at, Fault::Crash)));
                assert!(disk.is_down(), "{context}");
                drop(server);
                disk.crash(survival, seed);
                check_and_go_on(&disk, fsync, acknowledged, &context);
            }
        }
    }
}

#[test]
fn a_crash_at_any_operation_costs_nothing_acknowledged() {
    crash_everywhere("always");
}

#[test]
fn a_crash_at_any_operation_leaves_a_beginning_when_nothing_is_synced() {
    crash_everywhere("no");
}

#[test]
fn a_crash_while_starting_after_a_crash() {
    for first in (10..reference("always").operations).step_by(9) {
        let crashed = || {
            let Run { disk, acknowledged, server } = run("always", Some((first, Fault::Crash)));
            drop(server);
            disk.crash(Survival::Garbage, first);
            (disk, acknowledged)
        };
        let (disk, acknowledged) = crashed();
        let begun = disk.operations();
        drop(check(&disk, "always", acknowledged, &format!("crash at {first}")));
        for second in 0..disk.operations() - begun {
            let context = format!("crash at {first}, then at {second} of the start");
            let (disk, acknowledged) = crashed();
            disk.break_at(disk.operations() + second, Fault::Crash);
            assert!(start(&disk, "always").is_err(), "{context}");
            disk.crash(SURVIVALS[second as usize % SURVIVALS.len()], second);
            check_and_go_on(&disk, "always", acknowledged, &context);
        }
    }
}

/// A full disk, or one that fails: the server dies or does without a snapshot, and tells nobody what may not be there.
#[test]
fn an_error_at_any_operation_costs_nothing_acknowledged() {
    let mut without_snapshot = 0;
    for kind in [ErrorKind::StorageFull, ErrorKind::Other] {
        for at in 0..reference("always").operations {
            let context = format!("{kind:?} at {at}");
            let Run { disk, acknowledged, server } = run("always", Some((at, Fault::Error(kind))));
            without_snapshot += u32::from(server.as_ref().is_some_and(|server| !server.is_dead()));
            drop(server);
            if at % 2 == 0 {
                disk.restart();
            } else {
                disk.crash(Survival::Scattered, at);
            }
            check_and_go_on(&disk, "always", acknowledged, &context);
        }
    }
    assert!(without_snapshot > 5, "{without_snapshot} went on without a snapshot");
}
