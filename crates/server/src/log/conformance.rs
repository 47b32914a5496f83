//! What every log provider must do, put as one suite to each: files on the real disk, files on the fake one, memory.
//! Each promise of the module documentation of `log` has a test here; what needs a log that keeps something is asked
//! only of those that do.

use std::path::PathBuf;
use std::sync::Arc;

use super::{FileLog, Log, LogError, MemoryLog, Options};
use crate::disk::fake::{FakeDisk, Survival};
use crate::disk::{DataDir, Disk, RealDisk};
use crate::snapshots;

const OPTIONS: Options = Options { segment_bytes: 16 * 1024, payload_max_bytes: 100_000 };

/// A frame as replay gives it.
type Seen = (u64, u64, Vec<u8>);

fn frames_from(log: &FileLog, from: u64) -> Vec<Seen> {
    let mut seen = Vec::new();
    log.replay(from, |position, now_ms, payload| {
        seen.push((position, now_ms, payload.to_vec()));
        Ok(())
    })
    .unwrap();
    seen
}

/// A place where a file log can be opened again and again.
trait Place {
    fn disk(&self) -> Arc<dyn Disk>;
    fn path(&self) -> PathBuf;
    /// The machine stops; only for a place that can model it.
    fn crash(&self) {}

    fn dir(&self) -> Arc<DataDir> {
        DataDir::open(self.disk(), &self.path()).unwrap()
    }

    fn open(&self) -> FileLog {
        super::open(&self.dir(), OPTIONS).unwrap().0
    }
}

struct OnRealDisk(tempfile::TempDir);

impl Place for OnRealDisk {
    fn disk(&self) -> Arc<dyn Disk> {
        Arc::new(RealDisk)
    }
    fn path(&self) -> PathBuf {
        self.0.path().join("data")
    }
}

struct OnFakeDisk(FakeDisk);

impl Place for OnFakeDisk {
    fn disk(&self) -> Arc<dyn Disk> {
        Arc::new(self.0.clone())
    }
    fn path(&self) -> PathBuf {
        "/data".into()
    }
    fn crash(&self) {
        self.0.crash(Survival::Nothing, 0);
    }
}

fn real() -> OnRealDisk {
    OnRealDisk(tempfile::tempdir().unwrap())
}

fn fake() -> OnFakeDisk {
    OnFakeDisk(FakeDisk::new())
}

fn on_every_provider(check: impl Fn(&mut dyn Log)) {
    check(&mut MemoryLog::starting_at(0));
    check(&mut real().open());
    check(&mut fake().open());
}

fn on_every_place(check: impl Fn(&dyn Place)) {
    check(&real());
    check(&fake());
}

#[test]
fn positions_count_payload_bytes_and_nothing_else() {
    on_every_provider(|log| {
        assert_eq!(log.end(), 0);
        log.commit(b"12345", 1, true).unwrap();
        assert_eq!(log.end(), 5);
        log.commit(b"", 2, true).unwrap();
        log.commit(b"", 2, false).unwrap();
        assert_eq!(log.end(), 5);
        log.commit(&[7; 60_000], 3, false).unwrap();
        log.sync().unwrap();
        log.sync().unwrap();
        assert_eq!(log.end(), 60_005);
    });
}

#[test]
fn trimming_changes_no_position() {
    on_every_provider(|log| {
        for n in 0..40u8 {
            log.commit(&[n; 1000], 0, true).unwrap();
        }
        let before_bytes = log.len_bytes();
        log.trim(40_000).unwrap();
        assert_eq!(log.end(), 40_000);
        assert!(log.len_bytes() <= before_bytes);
        log.commit(b"more", 0, true).unwrap();
        assert_eq!(log.end(), 40_004);
    });
}

#[test]
fn what_was_committed_comes_back_as_it_was() {
    on_every_place(|place| {
        let mut log = place.open();
        let mut expected = Vec::new();
        for n in 0..60u64 {
            let payload = vec![n as u8; 1 + (n as usize * 37) % 900];
            expected.push((log.end(), 1000 + n, payload.clone()));
            // Every third is made durable later, by the next.
            log.commit(&payload, 1000 + n, n % 3 != 0).unwrap();
        }
        let (end, len_bytes) = (log.end(), log.len_bytes());
        assert_eq!(frames_from(&log, 0), expected);
        drop(log);
        place.crash();
        let log = place.open();
        assert_eq!((log.end(), log.len_bytes()), (end, len_bytes));
        assert_eq!(frames_from(&log, 0), expected);
        // From every frame on, and from the middle of one.
        for n in [1, 2, 17, 40, 59] {
            assert_eq!(frames_from(&log, expected[n].0), expected[n..]);
        }
        let (position, now_ms, payload) = &expected[30];
        let mut rest = expected[30..].to_vec();
        rest[0] = (position + 5, *now_ms, payload[5..].to_vec());
        assert_eq!(frames_from(&log, position + 5), rest);
        assert_eq!(frames_from(&log, end), []);
        assert!(matches!(log.replay(end + 1, |_, _, _| Ok(())), Err(LogError::OutOfReach { .. })));
    });
}

#[test]
fn a_log_goes_on_where_it_ended() {
    on_every_place(|place| {
        let mut expected = Vec::new();
        for round in 0..8u64 {
            let mut log = place.open();
            assert_eq!(frames_from(&log, 0), expected);
            for n in 0..round * 3 {
                expected.push((log.end(), round, vec![n as u8; 700]));
                log.commit(&[n as u8; 700], round, true).unwrap();
            }
        }
    });
}

#[test]
fn a_frame_larger_than_a_segment_has_one_of_its_own() {
    on_every_place(|place| {
        let mut log = place.open();
        let large = vec![9; 50_000];
        log.commit(&large, 1, true).unwrap();
        log.commit(b"small", 2, true).unwrap();
        log.commit(&large, 3, true).unwrap();
        log.commit(&large, 4, true).unwrap();
        drop(log);
        place.crash();
        let seen = frames_from(&place.open(), 0);
        let lens: Vec<_> = seen.iter().map(|(position, now_ms, payload)| (*position, *now_ms, payload.len())).collect();
        assert_eq!(lens, [(0, 1, 50_000), (50_000, 2, 5), (50_005, 3, 50_000), (100_005, 4, 50_000)]);
        assert_eq!(place.disk().list(&place.path().join("log")).unwrap().len(), 4);
    });
}

#[test]
fn a_payload_that_is_too_large_is_refused_and_the_log_goes_on() {
    on_every_place(|place| {
        let mut log = place.open();
        log.commit(b"before", 0, true).unwrap();
        let len_bytes = log.len_bytes();
        let error = log.commit(&[0; 100_001], 0, true).unwrap_err();
        assert!(matches!(error, LogError::TooLarge { len_bytes: 100_001, max_bytes: 100_000 }), "{error}");
        assert_eq!((log.end(), log.len_bytes()), (6, len_bytes));
        log.commit(b"after", 0, true).unwrap();
        drop(log);
        assert_eq!(frames_from(&place.open(), 0).len(), 2);
    });
}

#[test]
fn trimming_removes_whole_segments_before_the_position_and_no_others() {
    on_every_place(|place| {
        let dir = place.dir();
        let mut log = super::open(&dir, OPTIONS).unwrap().0;
        for n in 0..60u8 {
            log.commit(&[n; 1000], 0, true).unwrap();
        }
        let names = || place.disk().list(&place.path().join("log")).unwrap();
        let starts: Vec<u64> = names().iter().map(|name| name[..20].parse().unwrap()).collect();
        assert!(starts.len() > 4, "{starts:?}");
        log.trim(starts[2] - 1).unwrap();
        assert_eq!((log.first(), names().len()), (starts[1], starts.len() - 1));
        log.trim(starts[2]).unwrap();
        assert_eq!((log.first(), names().len()), (starts[2], starts.len() - 2));
        assert!(matches!(log.replay(starts[2] - 1, |_, _, _| Ok(())), Err(LogError::OutOfReach { .. })));
        // The segment that is appended to stays, wherever the position is.
        log.trim(u64::MAX).unwrap();
        assert_eq!(names().len(), 1);
        snapshots::create(&dir, log.end(), 5, true).unwrap().finish().unwrap();
        drop((log, dir));
        place.crash();
        let (log, recovery) = super::open(&place.dir(), OPTIONS).unwrap();
        assert_eq!((recovery.replay_from, log.end()), (60_000, 60_000));
    });
}

#[test]
fn an_error_of_whoever_applies_comes_back_with_its_position() {
    on_every_place(|place| {
        let mut log = place.open();
        log.commit(b"good", 0, true).unwrap();
        log.commit(b"bad", 0, true).unwrap();
        let error =
            log.replay(0, |_, _, payload| if payload == b"bad" { Err("no such record".into()) } else { Ok(()) });
        let error = error.unwrap_err();
        assert!(matches!(error, LogError::Apply { position: 4, .. }), "{error}");
        assert!(error.to_string().contains("no such record"));
    });
}

#[test]
fn the_lock_is_held_as_long_as_the_log_is() {
    on_every_place(|place| {
        let log = place.open();
        DataDir::open(place.disk(), &place.path()).unwrap_err();
        drop(log);
        DataDir::open(place.disk(), &place.path()).unwrap();
    });
}

#[test]
fn a_directory_keeps_the_same_bytes_whatever_the_disk() {
    let (real, fake) = (real(), fake());
    let places: [&dyn Place; 2] = [&real, &fake];
    let contents = places.map(|place| {
        let mut log = place.open();
        for n in 0..30u8 {
            log.commit(&[n; 900], u64::from(n), n % 2 == 0).unwrap();
        }
        drop(log);
        let folder = place.path().join("log");
        let names = place.disk().list(&folder).unwrap();
        let files = names.into_iter().map(|name| {
            let file = place.disk().open(&folder.join(&name)).unwrap();
            let mut bytes = vec![0; file.len_bytes().unwrap() as usize];
            file.read_at(0, &mut bytes).unwrap();
            (name, bytes)
        });
        files.collect::<Vec<_>>()
    });
    assert_eq!(contents[0].len(), 3);
    assert!(contents[0] == contents[1]);
}
