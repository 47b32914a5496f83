//! Moments that are not there: what is said of them, and of those on either side.

use std::path::Path;

use impel_core::record::{At, Record};

use super::*;
use crate::disk::Disk;
use crate::disk::fake::FakeDisk;
use crate::log::{FileLog, Log, Options};
use crate::offline;

struct World {
    disk: FakeDisk,
    dir: Arc<DataDir>,
}

impl World {
    fn new() -> World {
        let disk = FakeDisk::new();
        let dir = DataDir::open(Arc::new(disk.clone()), Path::new("/data")).unwrap();
        World { disk, dir }
    }

    fn log(&self) -> FileLog {
        crate::log::open(&self.dir, Options { segment_bytes: 8192, ..Options::default() }).unwrap().0
    }

    /// A state of no keys.
    fn snapshot(&self, position: u64, now_ms: u64, with_log: bool) {
        snapshots::create(&self.dir, position, now_ms, with_log).unwrap().finish().unwrap();
    }

    fn read(&self, moment: Moment) -> Result<Restored, String> {
        read(&self.dir, moment, &mut offline::empty_engine()).map_err(|error| error.to_string())
    }

    fn position_at(&self, now_ms: u64) -> u64 {
        self.read(Moment::Time(now_ms)).unwrap().position
    }
}

/// A commit, at least so long; answers where the log ends.
fn commit(log: &mut FileLog, now_ms: u64, len_bytes: usize) -> u64 {
    let mut bytes = Vec::new();
    let value = vec![b'x'; len_bytes];
    Record::SetString { at: At { db: 0, key: b"k" }, expire_ms: 0, value: &value }.encode(&mut bytes);
    log.commit(&bytes, now_ms, true).unwrap();
    log.end()
}

#[test]
fn while_no_log_was_kept_nothing_can_be_restored_but_its_snapshots() {
    let world = World::new();
    let mut log = world.log();
    commit(&mut log, 1000, 10);
    let end = commit(&mut log, 2000, 10);
    drop(log);
    // Two snapshots without a log, then one that goes on behind the second.
    world.snapshot(end + 50, 5000, false);
    world.snapshot(end + 90, 7000, false);
    let told = |at_ms| world.read(Moment::Time(at_ms)).unwrap_err();
    let shown = |now_ms, position| Edge { position, now_ms: Some(now_ms) }.to_string();
    let (first, second) = (shown(5000, end + 50), shown(7000, end + 90));
    let gap = |at_ms, from: &str, to: &str| {
        format!(
            "{} lies in a gap: from {from} to {to} nothing was logged (the server ran with appendonly no). The nearest moment \
             that can be restored is {from}, or then {to}",
            timestamp(at_ms)
        )
    };
    for again in [false, true] {
        assert_eq!(world.position_at(2000 - 1), end / 2);
        assert_eq!(told(2500), gap(2500, &shown(2000, end), &first));
        assert_eq!(told(6999), gap(6999, &first, &second), "with a log behind it: {again}");
        assert_eq!((world.position_at(2000), world.position_at(5000)), (end, end + 50), "the moments that are named");
        if again {
            assert_eq!(world.position_at(7500), end + 90);
            assert!(world.position_at(8000) > end + 90);
        } else {
            let newest = world.read(Moment::Time(9000)).unwrap();
            assert_eq!((newest.position, newest.is_end), (end + 90, true));
            commit(&mut world.log(), 8000, 10);
        }
        let by_position = world.read(Moment::Position(end + 10)).unwrap_err();
        assert!(by_position.starts_with(&format!("position {} lies in a gap", end + 10)), "{by_position}");
        assert_eq!(world.read(Moment::Position(end)).unwrap().position, end);
        assert_eq!(world.read(Moment::Position(end + 50)).unwrap().position, end + 50);
    }
}

#[test]
fn a_gap_says_why_it_is_there() {
    for is_known in [true, false] {
        let world = World::new();
        let mut log = world.log();
        let mut ends = vec![0];
        for n in 1..=6 {
            // Each fills a segment.
            ends.push(commit(&mut log, 1000 * n, 4000));
            if n == 1 || n == 5 {
                world.snapshot(ends[n as usize], 1000 * n + 500, true);
            }
        }
        drop(log);
        for start in &ends[2..4] {
            world.disk.remove(&world.dir.log().join(crate::disk::positioned_name(*start, "log"))).unwrap();
        }
        if is_known {
            gaps::add(&world.dir, (ends[2], ends[4])).unwrap();
        }
        let why = match is_known {
            true => "the server had let go of the log before `impel backup` copied it",
            false => "the log, which was there once, is missing",
        };
        let told = world.read(Moment::Time(3500)).unwrap_err();
        let from = Edge { position: ends[2], now_ms: Some(2000) };
        let to = Edge { position: ends[4], now_ms: Some(5000) };
        let resumed = Edge { position: ends[5], now_ms: Some(5500) };
        assert!(told.contains(&format!("lies in a gap: from {from} to {to} {why}")), "{told}");
        assert!(told.ends_with(&format!("that can be restored is {from}, or then {resumed}")), "{told}");
        assert_eq!(world.position_at(2000), ends[2]);
        assert_eq!(world.position_at(5500), ends[5]);
        assert_eq!(world.position_at(6000), ends[6]);
    }
}

#[test]
fn a_gap_right_behind_a_snapshot_is_not_the_end() {
    let world = World::new();
    let mut log = world.log();
    let first = commit(&mut log, 1000, 4000);
    world.snapshot(first, 1500, true);
    let second = commit(&mut log, 2000, 4000);
    let third = commit(&mut log, 3000, 4000);
    world.snapshot(third, 3500, true);
    drop(log);
    for start in [0, first] {
        world.disk.remove(&world.dir.log().join(crate::disk::positioned_name(start, "log"))).unwrap();
    }
    let told = world.read(Moment::Time(2500)).unwrap_err();
    let edge = |position, now_ms| Edge { position, now_ms: Some(now_ms) };
    let expected = format!("lies in a gap: from {} to {}", edge(first, 1500), edge(second, 3000));
    assert!(told.contains(&expected), "{told}");
    assert_eq!(world.position_at(3500), third);
}
