//! Each row of the recovery table, built on a disk: what is found, what is done, what comes back, and that a refusal
//! leaves everything as it was.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::frame::{FRAME_HEADER_BYTES, FRAMES_AT, segment_header};
use super::{FileLog, Log, OpenError, Options, Recovery, Refusal, Row};
use crate::disk::fake::{FakeDisk, Fault, Survival};
use crate::disk::{DataDir, Disk};
use crate::snapshots;

const OPTIONS: Options = Options { segment_bytes: 16 * 1024, payload_max_bytes: u32::MAX };
/// Payload bytes of every frame here.
const PAYLOAD_BYTES: usize = 1000;
const FRAME_BYTES: usize = FRAME_HEADER_BYTES + PAYLOAD_BYTES;
/// Frames that fit into a segment, and the positions where segments begin.
const FRAMES_IN_SEGMENT: usize = (16 * 1024 - FRAMES_AT) / FRAME_BYTES;
const SEGMENT: u64 = (FRAMES_IN_SEGMENT * PAYLOAD_BYTES) as u64;

struct Bench {
    disk: FakeDisk,
}

impl Bench {
    /// A log of so many frames, each of which is full of its number.
    fn with_frames(frames: usize, sync: bool) -> Bench {
        let bench = Bench { disk: FakeDisk::new() };
        let (mut log, recovery) = bench.open().unwrap();
        assert_eq!(recovery.row, Row::A);
        bench.append(&mut log, frames, sync);
        bench
    }

    fn append(&self, log: &mut FileLog, frames: usize, sync: bool) {
        for _ in 0..frames {
            let number = log.end() / PAYLOAD_BYTES as u64;
            log.commit(&[number as u8; PAYLOAD_BYTES], 1000 + number, sync).unwrap();
        }
    }

    fn dir(&self) -> Arc<DataDir> {
        DataDir::open(Arc::new(self.disk.clone()), Path::new("/data")).unwrap()
    }

    fn open(&self) -> Result<(FileLog, Recovery), OpenError> {
        super::open(&self.dir(), OPTIONS)
    }

    fn snapshot(&self, position: u64) {
        self.snapshot_as(position, true);
    }

    /// A snapshot with the log on or off.
    fn snapshot_as(&self, position: u64, with_log: bool) {
        let mut writer = snapshots::create(&self.dir(), position, 7, with_log).unwrap();
        writer.write_chunk(b"state").unwrap();
        writer.finish().unwrap();
    }

    fn segment(&self, start: u64) -> PathBuf {
        PathBuf::from(format!("/data/log/{start:020}.log"))
    }

    fn snap(&self, position: u64) -> PathBuf {
        PathBuf::from(format!("/data/snapshots/{position:020}.snap"))
    }

    fn write(&self, path: &Path, offset: usize, bytes: &[u8]) {
        let mut file = self.disk.open(path).unwrap();
        file.write_at(offset as u64, bytes).unwrap();
        file.sync_all().unwrap();
    }

    fn remove(&self, path: &Path) {
        self.disk.remove(path).unwrap();
    }

    fn content(&self) -> BTreeMap<String, Vec<u8>> {
        let mut content = BTreeMap::new();
        for folder in ["/data/log", "/data/snapshots"] {
            for name in self.disk.list(Path::new(folder)).unwrap() {
                let file = self.disk.open(&Path::new(folder).join(&name)).unwrap();
                let mut bytes = vec![0; file.len_bytes().unwrap() as usize];
                file.read_at(0, &mut bytes).unwrap();
                content.insert(name, bytes);
            }
        }
        content
    }

    fn refused(&self, row: Row) -> Refusal {
        let before = self.content();
        let Err(OpenError::Refused(refusal)) = self.open().map(|(_, recovery)| recovery) else {
            panic!("this should have been refused")
        };
        assert_eq!(refusal.row, row, "{refusal}");
        assert!(self.content() == before, "a refusal changes nothing");
        refusal
    }

    /// Opens, checks that the log replays as the frames with these numbers, that it can be appended to, and that the
    /// next start is an uneventful one.
    fn recovers(&self, row: Row, from_frame: usize, end_frame: usize) -> Recovery {
        let (mut log, recovery) = self.open().unwrap();
        assert_eq!(recovery.row, row);
        assert_eq!(recovery.replay_from, (from_frame * PAYLOAD_BYTES) as u64);
        assert_eq!(recovery.end, (end_frame * PAYLOAD_BYTES) as u64);
        check_frames(&log, from_frame, end_frame);
        // Frames of the same lengths as those that were there, so that a leftover would fit in seamlessly.
        self.append(&mut log, 1, true);
        drop(log);
        let (log, again) = self.open().unwrap();
        assert!(matches!(again.row, Row::B | Row::G), "{again:?}");
        assert_eq!((again.cut_bytes, again.end), (0, recovery.end + PAYLOAD_BYTES as u64));
        check_frames(&log, from_frame, end_frame + 1);
        recovery
    }
}

fn check_frames(log: &FileLog, from_frame: usize, end_frame: usize) {
    let mut number = from_frame;
    log.replay((from_frame * PAYLOAD_BYTES) as u64, |position, now_ms, payload| {
        assert_eq!((position, now_ms), ((number * PAYLOAD_BYTES) as u64, 1000 + number as u64));
        assert!(payload.len() == PAYLOAD_BYTES && payload.iter().all(|&byte| byte == number as u8));
        number += 1;
        Ok(())
    })
    .unwrap();
    assert_eq!(number, end_frame);
}

/// The offset of a frame in its segment.
fn at(frame: usize) -> usize {
    FRAMES_AT + frame % FRAMES_IN_SEGMENT * FRAME_BYTES
}

#[test]
fn a_nothing_at_all() {
    let bench = Bench { disk: FakeDisk::new() };
    bench.recovers(Row::A, 0, 0);
}

#[test]
fn b_a_clean_end() {
    for frames in [1, FRAMES_IN_SEGMENT - 1, FRAMES_IN_SEGMENT, FRAMES_IN_SEGMENT + 1, 3 * FRAMES_IN_SEGMENT] {
        let bench = Bench::with_frames(frames, true);
        let recovery = bench.recovers(Row::B, 0, frames);
        assert_eq!((recovery.frames, &recovery.notes[..]), (frames as u64, &[][..]));
    }
}

#[test]
fn b_a_clean_end_after_a_snapshot_in_the_middle() {
    let bench = Bench::with_frames(3 * FRAMES_IN_SEGMENT, true);
    bench.snapshot(2 * SEGMENT + 1000);
    // What the snapshot has made superfluous is not even read.
    bench.write(&bench.segment(0), 0, &[0xee; 5000]);
    let recovery = bench.recovers(Row::B, 2 * FRAMES_IN_SEGMENT + 1, 3 * FRAMES_IN_SEGMENT);
    assert_eq!(recovery.snapshot.unwrap().chunks, 1);
}

#[test]
fn c_a_torn_end_is_cut() {
    // The last frame at each stage of being written, by its first bytes, and with a byte changed in the middle.
    for kept_bytes in [1, 4, 11, 28, 500, FRAME_BYTES - 1] {
        let bench = Bench::with_frames(5, true);
        bench.write(&bench.segment(0), at(4) + kept_bytes, &vec![0; FRAME_BYTES - kept_bytes]);
        let recovery = bench.recovers(Row::C, 0, 4);
        // The header's own zeros at the end do not count.
        let cut_bytes = recovery.cut_bytes as usize;
        assert!(cut_bytes == kept_bytes || (cut_bytes < kept_bytes && kept_bytes <= FRAME_HEADER_BYTES));
        assert_eq!(recovery.notes.len(), 1);
    }
    let bench = Bench::with_frames(5, true);
    bench.write(&bench.segment(0), at(4) + 300, b"?");
    assert_eq!(bench.recovers(Row::C, 0, 4).cut_bytes as usize, FRAME_BYTES);
    // A write that left its later sectors and not the first.
    let bench = Bench::with_frames(5, true);
    bench.write(&bench.segment(0), at(4), &[0; 512]);
    bench.recovers(Row::C, 0, 4);
}

#[test]
fn d_damage_that_a_later_frame_proves_to_have_been_durable() {
    for (offset, bytes) in [(at(2) + 100, 1), (at(2), 4), (at(2), FRAME_BYTES), (at(2), 3 * FRAME_BYTES)] {
        for fill in [0, 0xee] {
            let bench = Bench::with_frames(8, true);
            bench.write(&bench.segment(0), offset, &vec![fill; bytes]);
            let refusal = bench.refused(Row::D);
            let place = refusal.place.unwrap();
            assert_eq!((place.path, place.offset, place.position), (bench.segment(0), at(2) as u64, 2000));
        }
    }
}

#[test]
fn e_damage_before_frames_that_were_never_known_durable_is_cut() {
    // Written without a sync and left out of order by a crash.
    for (offset, bytes) in [(at(2) + 100, 1), (at(2), FRAME_BYTES), (at(2), 3 * FRAME_BYTES)] {
        let bench = Bench::with_frames(8, false);
        bench.write(&bench.segment(0), offset, &vec![0; bytes]);
        let recovery = bench.recovers(Row::E, 0, 2);
        assert_eq!(recovery.cut_bytes as usize, 6 * FRAME_BYTES, "to the last byte that is not zero");
    }
    // One sync in between: damage after it is cut, damage before it is not.
    for (frame, row) in [(5, Row::E), (1, Row::D)] {
        let bench = Bench::with_frames(0, false);
        let (mut log, _) = bench.open().unwrap();
        bench.append(&mut log, 3, false);
        log.sync().unwrap();
        bench.append(&mut log, 5, false);
        drop(log);
        bench.write(&bench.segment(0), at(frame) + 40, b"?");
        match row {
            Row::E => drop(bench.recovers(row, 0, frame)),
            _ => drop(bench.refused(row)),
        }
    }
}

#[test]
fn f_a_missing_segment() {
    let bench = Bench::with_frames(4 * FRAMES_IN_SEGMENT, true);
    let missing = bench.segment(SEGMENT);
    bench.remove(&missing);
    let refusal = bench.refused(Row::F);
    assert_eq!(refusal.place.as_ref().unwrap().position, SEGMENT);
    assert!(refusal.detail.contains(&(2 * SEGMENT).to_string()), "{refusal}");
    // A snapshot after the gap makes it harmless.
    bench.snapshot(2 * SEGMENT);
    bench.recovers(Row::B, 2 * FRAMES_IN_SEGMENT, 4 * FRAMES_IN_SEGMENT);
}

#[test]
fn f_segments_that_overlap() {
    let bench = Bench::with_frames(FRAMES_IN_SEGMENT, true);
    let mut file = bench.disk.create(&bench.segment(SEGMENT - 1)).unwrap();
    file.write_at(0, &segment_header(SEGMENT - 1)).unwrap();
    bench.refused(Row::F);
}

#[test]
fn g_the_log_ends_before_a_snapshot_that_was_taken_without_it() {
    let bench = Bench::with_frames(5, true);
    bench.snapshot_as(9000, false);
    let recovery = bench.recovers(Row::G, 9, 9);
    assert_eq!(recovery.notes, [""; 0], "nothing is wrong");
    assert_eq!(bench.content().keys().filter(|name| name.ends_with(".log")).count(), 2);
    // With a torn end.
    let bench = Bench::with_frames(5, true);
    bench.snapshot_as(9000, false);
    bench.write(&bench.segment(0), at(4) + 50, b"?");
    bench.recovers(Row::G, 9, 9);
}

#[test]
fn g_no_log_at_all() {
    for with_log in [false, true] {
        let bench = Bench::with_frames(9, true);
        bench.snapshot_as(9000, with_log);
        bench.remove(&bench.segment(0));
        assert_eq!(bench.recovers(Row::G, 9, 9).notes.len(), usize::from(with_log), "what is missing is said");
    }
}

#[test]
fn g_a_snapshot_whose_name_was_never_synced_is_made_durable_before_the_log_begins_at_it() {
    let bench = Bench::with_frames(5, true);
    let mut writer = snapshots::create(&bench.dir(), 9000, 7, false).unwrap();
    writer.write_chunk(b"state").unwrap();
    // Still to come: write, sync, rename, and the sync of the directory, which fails.
    bench.disk.break_at(bench.disk.operations() + 3, Fault::Error(ErrorKind::Other));
    writer.finish().unwrap_err();
    assert_eq!(snapshots::list(&bench.dir()).unwrap(), [9000], "the running machine knows the name");
    bench.disk.restart();
    assert_eq!(bench.open().unwrap().1.row, Row::G);
    bench.disk.crash(Survival::Nothing, 0);
    bench.recovers(Row::B, 9, 9);
}

#[test]
fn h_an_older_snapshot_and_the_log_replace_a_damaged_one() {
    let bench = Bench::with_frames(8, true);
    bench.snapshot(3000);
    bench.snapshot(6000);
    bench.write(&bench.snap(6000), 40, b"?");
    let recovery = bench.recovers(Row::H, 3, 8);
    assert_eq!(recovery.snapshot.unwrap().position, 3000);
    assert!(recovery.notes[0].contains("damaged"), "{:?}", recovery.notes);
    assert!(bench.content().contains_key("00000000000000006000.snap.damaged"));
    assert_eq!(snapshots::list(&bench.dir()).unwrap(), [3000]);
}

#[test]
fn h_the_whole_log_replaces_every_snapshot_and_its_end_is_cut_as_ever() {
    let bench = Bench::with_frames(8, true);
    bench.snapshot(3000);
    bench.write(&bench.snap(3000), 0, b"?");
    bench.write(&bench.segment(0), at(7) + 50, b"?");
    let recovery = bench.recovers(Row::H, 0, 7);
    assert_eq!((recovery.snapshot, recovery.cut_bytes as usize), (None, FRAME_BYTES));
}

#[test]
fn i_nothing_holds_the_beginning() {
    let bench = Bench::with_frames(3 * FRAMES_IN_SEGMENT, true);
    bench.remove(&bench.segment(0));
    assert_eq!(bench.refused(Row::I).place.unwrap().path, bench.segment(SEGMENT));
    bench.snapshot(2 * SEGMENT);
    bench.write(&bench.snap(2 * SEGMENT), 40, b"?");
    bench.refused(Row::I);
    // Only a damaged snapshot.
    let bench = Bench { disk: FakeDisk::new() };
    bench.snapshot(500);
    bench.write(&bench.snap(500), 40, b"?");
    assert_eq!(bench.refused(Row::I).place.unwrap().path, bench.snap(500));
}

/// Writes a format number into a header, with the checksum that belongs to it.
fn make_foreign(bench: &Bench, path: &Path, header_bytes: usize) {
    let file = bench.disk.open(path).unwrap();
    let mut header = vec![0; header_bytes];
    file.read_at(0, &mut header).unwrap();
    header[8] = 99;
    let crc = crc32c::crc32c_append(crc32c::crc32c(&header[..12]), &header[16..]);
    header[12..16].copy_from_slice(&crc.to_le_bytes());
    bench.write(path, 0, &header);
}

#[test]
fn j_a_later_format() {
    let bench = Bench::with_frames(3, true);
    make_foreign(&bench, &bench.segment(0), 24);
    assert!(bench.refused(Row::J).detail.contains("format 99"));
    let bench = Bench::with_frames(3, true);
    bench.snapshot(1000);
    bench.snapshot(2000);
    make_foreign(&bench, &bench.snap(2000), 40);
    assert!(bench.refused(Row::J).detail.contains("format 99"));
}

#[test]
fn k_a_bad_segment_header() {
    for segment in [0, SEGMENT, 2 * SEGMENT] {
        let bench = Bench::with_frames(3 * FRAMES_IN_SEGMENT, true);
        bench.write(&bench.segment(segment), 3, b"?");
        assert_eq!(bench.refused(Row::K).place.unwrap().position, segment);
    }
    // Shorter than a header.
    let bench = Bench::with_frames(3, true);
    bench.disk.open(&bench.segment(0)).unwrap().truncate(100).unwrap();
    bench.refused(Row::K);
}

#[test]
fn l_the_log_begins_after_the_snapshot() {
    let bench = Bench::with_frames(3 * FRAMES_IN_SEGMENT, true);
    bench.snapshot(1000);
    bench.remove(&bench.segment(0));
    let refusal = bench.refused(Row::L);
    assert!(refusal.detail.contains("1000"), "{refusal}");
    // The same when the newest one, which the log does reach back to, is damaged.
    bench.snapshot(SEGMENT + 1000);
    bench.write(&bench.snap(SEGMENT + 1000), 40, b"?");
    bench.refused(Row::L);
}

#[test]
fn m_damage_in_a_segment_that_another_one_follows() {
    // Never synced but by closing the segment.
    let bench = Bench::with_frames(2 * FRAMES_IN_SEGMENT, false);
    bench.write(&bench.segment(0), at(4) + 50, b"?");
    let place = bench.refused(Row::M).place.unwrap();
    assert_eq!((place.path, place.offset, place.position), (bench.segment(0), at(4) as u64, 4000));
    // The way out that the message names: without the segments from there on, what a snapshot held remains.
    bench.snapshot(4000);
    for start in [0, SEGMENT] {
        bench.remove(&bench.segment(start));
    }
    bench.recovers(Row::G, 4, 4);
}

#[test]
fn n_too_much_that_looks_like_a_frame() {
    // The forgery is that of frame.rs's test: here, that such a log is refused rather than cut.
    let bench = Bench::with_frames(1, true);
    let mut forged = vec![0; 12_000];
    for offset in (FRAME_HEADER_BYTES * 2..9000).step_by(FRAME_HEADER_BYTES) {
        let mark = (1000 + offset as u32 - FRAME_HEADER_BYTES as u32) ^ 0x49b1_6d7c;
        forged[offset..offset + 4].copy_from_slice(&mark.to_le_bytes());
        forged[offset + 4..offset + 8].copy_from_slice(&2000u32.to_le_bytes());
    }
    bench.write(&bench.segment(0), at(1), &forged[..16 * 1024 - at(1)]);
    bench.refused(Row::N);
}

#[test]
fn o_a_damaged_snapshot_that_the_log_does_not_reach() {
    let bench = Bench::with_frames(5, true);
    bench.snapshot(3000);
    bench.snapshot(9000);
    bench.write(&bench.snap(9000), 40, b"?");
    let refusal = bench.refused(Row::O);
    assert!(refusal.detail.contains("position 5000"), "{refusal}");
    bench.remove(&bench.segment(0));
    bench.refused(Row::O);
    // The way out that the message names.
    let bench = Bench::with_frames(5, true);
    bench.snapshot(9000);
    bench.write(&bench.snap(9000), 40, b"?");
    bench.refused(Row::O);
    bench.remove(&bench.snap(9000));
    bench.recovers(Row::B, 0, 5);
}

#[test]
fn p_the_log_ends_before_a_snapshot_that_it_had_reached() {
    for torn in [false, true] {
        let bench = Bench::with_frames(9, true);
        bench.snapshot(7000);
        bench.write(&bench.segment(0), at(5) + if torn { 40 } else { 0 }, &vec![0; 4 * FRAME_BYTES - 40]);
        let refusal = bench.refused(Row::P);
        let place = refusal.place.clone().unwrap();
        assert_eq!((place.path, place.offset, place.position), (bench.segment(0), at(5) as u64, 5000));
        assert!(refusal.detail.contains("2000 bytes of it are missing"), "{refusal}");
        let reading = super::open_to_read(&bench.dir()).map(|(_, recovery)| recovery);
        assert!(matches!(&reading, Err(OpenError::Refused(refusal)) if refusal.row == Row::P), "{reading:?}");
        // The way out that the message names.
        bench.remove(&bench.segment(0));
        bench.recovers(Row::G, 7, 7);
    }
    // Up to the snapshot it is there: what is missing behind it cannot be told from a torn end.
    let bench = Bench::with_frames(9, true);
    bench.snapshot(5000);
    bench.write(&bench.segment(0), at(5), &vec![0; 4 * FRAME_BYTES]);
    bench.recovers(Row::B, 5, 5);
}

#[test]
fn reading_without_going_on_leaves_the_log_as_it_is() {
    // Nothing; a log with a torn end; one that ends before the snapshot.
    for (frames, snapshot, replayed) in [(0, None, 0..0), (5, Some(2000), 2..4), (5, Some(9000), 9..9)] {
        let bench = Bench { disk: FakeDisk::new() };
        if frames > 0 {
            bench.append(&mut bench.open().unwrap().0, frames, true);
            bench.write(&bench.segment(0), at(4) + 50, b"?");
        }
        if let Some(position) = snapshot {
            bench.snapshot_as(position, false);
        }
        drop(bench.dir());
        let before = bench.content();
        let (stored, recovery) = super::open_to_read(&bench.dir()).unwrap();
        assert!(bench.content() == before);
        assert_eq!((recovery.end, recovery.replay_from), (replayed.end as u64 * 1000, replayed.start as u64 * 1000));
        let mut number = replayed.start;
        stored
            .replay(recovery.replay_from, |position, _, payload| {
                assert_eq!((position, payload[0] as usize), (number as u64 * 1000, number));
                number += 1;
                Ok(())
            })
            .unwrap();
        assert_eq!(number, replayed.end);
        assert_eq!(recovery.notes.len(), usize::from(replayed.len() == 2), "{:?}", recovery.notes);
    }
}

#[test]
fn a_leftover_frame_behind_a_cut_is_never_taken_for_good_again() {
    let bench = Bench::with_frames(4, false);
    bench.write(&bench.segment(0), at(1) + 50, b"?");
    let (mut log, recovery) = bench.open().unwrap();
    assert_eq!((recovery.row, recovery.end), (Row::E, 1000));
    log.commit(&[0xaa; PAYLOAD_BYTES], 5, true).unwrap();
    drop(log);
    let (log, recovery) = bench.open().unwrap();
    assert_eq!((recovery.row, log.end()), (Row::B, 2000));
}

#[test]
fn unfinished_files_are_removed() {
    let bench = Bench::with_frames(3, true);
    for path in ["/data/log/00000000000000003000.log.tmp", "/data/snapshots/00000000000000001000.snap.tmp"] {
        bench.disk.create(Path::new(path)).unwrap();
    }
    bench.recovers(Row::B, 0, 3);
    assert!(bench.content().keys().all(|name| !name.ends_with(".tmp")));
}
