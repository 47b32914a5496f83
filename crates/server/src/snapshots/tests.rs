//! Snapshots: what is written comes back, every damage is noticed, an unfinished one is none.

use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::disk::fake::{FakeDisk, Fault, SURVIVALS, Survival};
use crate::disk::{Disk, RealDisk};

fn fake() -> (FakeDisk, Arc<DataDir>) {
    let disk = FakeDisk::new();
    let dir = DataDir::open(Arc::new(disk.clone()), Path::new("/data")).unwrap();
    (disk, dir)
}

fn write(dir: &Arc<DataDir>, position: u64, chunks: &[&[u8]]) -> Result<SnapshotInfo, SnapshotError> {
    let mut writer = create(dir, position, 99, true)?;
    for chunk in chunks {
        writer.write_chunk(chunk)?;
    }
    writer.finish()
}

fn chunks(dir: &DataDir, position: u64) -> Vec<Vec<u8>> {
    let mut reader = read(dir, position).unwrap();
    let mut chunks = Vec::new();
    while let Some(chunk) = reader.next_chunk().unwrap() {
        chunks.push(chunk.to_vec());
    }
    assert_eq!(reader.next_chunk().unwrap(), None, "the end stays the end");
    chunks
}

#[test]
fn what_is_written_comes_back_on_either_disk() {
    let folder = tempfile::tempdir().unwrap();
    let real = DataDir::open(Arc::new(RealDisk), &folder.path().join("data")).unwrap();
    for dir in [real, fake().1] {
        let large = vec![3; BUFFER_BYTES * 3];
        let almost = vec![4; BUFFER_BYTES - 100];
        let info = write(&dir, 1234, &[b"one", b"", &large, &almost, b"two", &almost]).unwrap();
        assert_eq!((info.position, info.now_ms, info.chunks), (1234, 99, 5));
        assert_eq!(check(&dir, 1234).unwrap(), info);
        assert_eq!(chunks(&dir, 1234), [b"one".to_vec(), large, almost.clone(), b"two".to_vec(), almost]);
        assert_eq!(write(&dir, 1300, &[]).unwrap().chunks, 0);
        assert_eq!(chunks(&dir, 1300), Vec::<Vec<u8>>::new());
        // The same position again replaces what was there.
        write(&dir, 1234, &[b"other"]).unwrap();
        assert_eq!(chunks(&dir, 1234), [b"other"]);
        assert_eq!(list(&dir).unwrap(), [1234, 1300]);
    }
}

#[test]
fn the_bytes_are_those_of_the_format_document() {
    let (disk, dir) = fake();
    write(&dir, 5, &[b"abc"]).unwrap();
    let file = disk.open(&snapshot_path(&dir, 5)).unwrap();
    assert_eq!(file.len_bytes().unwrap(), 40 + 8 + 3 + 28);
    let mut bytes = [0; 79];
    file.read_at(0, &mut bytes).unwrap();
    assert_eq!(&bytes[..12], b"IMPELSNP\x01\0\0\0");
    assert_eq!(&bytes[16..32], b"\x05\0\0\0\0\0\0\0\x63\0\0\0\0\0\0\0");
    assert_eq!(&bytes[32..40], b"\x01\0\0\0\0\0\0\0");
    assert_eq!(&bytes[40..44], b"\x03\0\0\0");
    assert_eq!(&bytes[48..55], b"abc\0\0\0\0");
    assert_eq!(&bytes[59..75], b"\x01\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0");
    assert_eq!(u32_at(&bytes, 75), crc32c::crc32c(b"abc"));
}

#[test]
fn every_changed_bit_every_cut_and_every_addition_is_noticed() {
    let (disk, dir) = fake();
    let info = write(&dir, 5, &[b"first chunk", b"second"]).unwrap();
    let len_bytes = info.len_bytes as usize;
    let mut good = vec![0; len_bytes];
    disk.open(&info.path).unwrap().read_at(0, &mut good).unwrap();
    let put = |bytes: &[u8]| {
        let mut file = disk.create(&info.path).unwrap();
        file.write_at(0, bytes).unwrap();
        check(&dir, 5)
    };
    put(&good).unwrap();
    for bit in 0..len_bytes * 8 {
        let mut damaged = good.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(matches!(put(&damaged), Err(SnapshotError::Damaged { .. })), "bit {bit}");
    }
    for cut in 0..len_bytes {
        assert!(matches!(put(&good[..cut]), Err(SnapshotError::Damaged { .. })), "cut at {cut}");
    }
    assert!(matches!(put(&[&good[..], b"\0"].concat()), Err(SnapshotError::Damaged { .. })));
    // A whole snapshot, but of another position.
    put(&good).unwrap();
    disk.rename(&info.path, &snapshot_path(&dir, 6)).unwrap();
    assert!(matches!(check(&dir, 6), Err(SnapshotError::Damaged { offset: 0, .. })));
}

#[test]
fn an_absurd_length_takes_no_memory() {
    let (disk, dir) = fake();
    let info = write(&dir, 5, &[b"first chunk"]).unwrap();
    disk.open(&info.path).unwrap().write_at(HEADER_BYTES as u64, &u32::MAX.to_le_bytes()).unwrap();
    let mut reader = read(&dir, 5).unwrap();
    assert!(matches!(reader.next_chunk(), Err(SnapshotError::Damaged { offset: 40, .. })));
    assert_eq!(reader.chunk.capacity(), 0);
}

#[test]
fn an_unfinished_snapshot_is_none_and_leaves_nothing() {
    let (disk, dir) = fake();
    let mut writer = create(&dir, 5, 0, false).unwrap();
    writer.write_chunk(&vec![1; BUFFER_BYTES * 2]).unwrap();
    assert_eq!(writer.len_bytes(), (HEADER_BYTES + 8 + BUFFER_BYTES * 2) as u64);
    assert_eq!(list(&dir).unwrap(), [0u64; 0]);
    drop(writer);
    assert_eq!(disk.list(dir.snapshots()).unwrap(), Vec::<String>::new());
}

#[test]
fn pruning_keeps_the_newest_and_says_from_where_the_log_is_needed() {
    let (_, dir) = fake();
    let older = |older| Keep { older, ..Keep::default() };
    assert_eq!(prune(&dir, &older(1)).unwrap(), 0);
    for position in [10, 20, 30, 40] {
        write(&dir, position, &[b"x"]).unwrap();
    }
    assert_eq!(prune(&dir, &older(1)).unwrap(), 30);
    assert_eq!(list(&dir).unwrap(), [30, 40]);
    assert_eq!(prune(&dir, &older(5)).unwrap(), 0, "the log from its beginning is what is older than these");
    assert_eq!(prune(&dir, &older(0)).unwrap(), 40);
    assert_eq!(list(&dir).unwrap(), [40]);
    assert_eq!(prune(&dir, &older(1)).unwrap(), 0, "should the only one be damaged, the log replaces it");
}

#[test]
fn pruning_keeps_what_restores_any_moment_of_the_past_that_is_asked_for() {
    let (disk, dir) = fake();
    let take = |position: u64, now_ms: u64| {
        let mut writer = create(&dir, position, now_ms, true).unwrap();
        writer.write_chunk(b"x").unwrap();
        writer.finish().unwrap();
    };
    let keep = |since_ms| Keep { older: 1, since_ms: Some(since_ms), apart_ms: 250 };
    for (position, now_ms) in [(10, 1000), (20, 1100), (30, 1200), (40, 1300), (50, 1400), (60, 1500), (70, 1600)] {
        take(position, now_ms);
    }
    assert_eq!(prune(&dir, &keep(500)).unwrap(), 0, "before the first there is only the log");
    assert_eq!(list(&dir).unwrap(), [10, 40, 60, 70], "at least 250 ms apart, and the two newest");
    assert_eq!(prune(&dir, &keep(1299)).unwrap(), 10, "40 is too new for that moment");
    assert_eq!(prune(&dir, &keep(1300)).unwrap(), 40);
    assert_eq!(list(&dir).unwrap(), [40, 60, 70]);
    // A header that cannot be read is no base, and says no time.
    disk.open(&snapshot_path(&dir, 40)).unwrap().write_at(0, b"damaged").unwrap();
    take(80, 1700);
    assert_eq!(prune(&dir, &keep(1550)).unwrap(), 60);
    assert_eq!(list(&dir).unwrap(), [60, 70, 80]);
    assert_eq!(prune(&dir, &keep(9999)).unwrap(), 70);
    assert_eq!(list(&dir).unwrap(), [70, 80]);
}

#[test]
fn thinning_leaves_what_was_taken_while_no_log_was_kept() {
    let (_, dir) = fake();
    let take = |position: u64, now_ms: u64, with_log: bool| {
        let mut writer = create(&dir, position, now_ms, with_log).unwrap();
        writer.write_chunk(b"x").unwrap();
        writer.finish().unwrap();
    };
    let logged = [true, true, false, false, true, true, true, true];
    logged.iter().enumerate().for_each(|(at, &with)| take(10 + 10 * at as u64, 1000 + 10 * at as u64, with));
    let keep = |since_ms| Keep { older: 1, since_ms: Some(since_ms), apart_ms: 250 };
    assert_eq!(prune(&dir, &keep(1005)).unwrap(), 10);
    assert_eq!(list(&dir).unwrap(), [10, 30, 40, 70, 80], "no log leads to 30 and 40");
    assert_eq!(prune(&dir, &keep(1025)).unwrap(), 30, "and beyond the time they go like others");
    assert_eq!(list(&dir).unwrap(), [30, 40, 70, 80]);
}

#[test]
fn a_chunk_that_says_to_be_longer_than_any_takes_no_memory() {
    let (disk, dir) = fake();
    write(&dir, 10, &[b"x"]).unwrap();
    let path = snapshot_path(&dir, 10);
    let mut file = disk.open(&path).unwrap();
    file.truncate(HEADER_BYTES as u64).unwrap();
    file.allocate(CHUNK_MAX_BYTES as u64 * 2).unwrap();
    file.write_at(HEADER_BYTES as u64, &(CHUNK_MAX_BYTES as u32 + 1).to_le_bytes()).unwrap();
    let error = check(&dir, 10).unwrap_err().to_string();
    assert!(error.contains("a chunk is longer than any that is written"), "{error}");
    assert_eq!(salvage(&dir, 10, |_| panic!("none is whole")).unwrap(), Salvage::default());
}

#[test]
fn a_crash_at_any_operation_leaves_a_whole_snapshot_or_the_one_before() {
    let run = |crash_at: Option<u64>, survival: Survival, seed: u64| {
        let (disk, dir) = fake();
        write(&dir, 10, &[&[1; 3000]]).unwrap();
        let begun = disk.operations();
        if let Some(at) = crash_at {
            disk.break_at(begun + at, Fault::Crash);
        }
        let result = write(&dir, 20, &[&vec![2; BUFFER_BYTES], &[3; 3000]]);
        let operations = disk.operations() - begun;
        drop(dir);
        disk.crash(survival, seed);
        let dir = DataDir::open(Arc::new(disk.clone()), Path::new("/data")).unwrap();
        check(&dir, 10).unwrap();
        let found = list(&dir).unwrap();
        if result.is_ok() || found.contains(&20) {
            assert_eq!(check(&dir, 20).unwrap().chunks, 2, "crash at {crash_at:?}, {survival:?}, seed {seed}");
        }
        operations
    };
    let operations = run(None, Survival::Nothing, 0);
    assert!(operations >= 6, "create, writes, sync, rename, sync of the directory");
    for at in 0..operations {
        for survival in SURVIVALS {
            for seed in 0..8 {
                run(Some(at), survival, seed);
            }
        }
    }
}
