//! Damage of every kind: what a check says of it, that it agrees with a start, and what a repair keeps.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use impel_core::check as invariants;
use impel_core::settings::Settings;
use impel_core::state::keyspace::Value;

use super::repair::{RepairError, Repaired, repair};
use super::*;
use crate::disk::Disk;
use crate::disk::fake::{FakeDisk, SplitMix64};
use crate::headless::Headless;
use crate::log::Row;

type Files = BTreeMap<PathBuf, Vec<u8>>;

const DATA: &str = "/data";

fn settings() -> Settings {
    let mut settings = Settings::default();
    // As small as a segment can be.
    settings.log_segment_bytes = 1;
    settings
}

/// A directory with two snapshots and segments before, between and behind them.
struct Sample {
    files: Files,
    /// The log positions before and after each entry's commit, by number.
    entries: Vec<(u64, u64)>,
    digest: String,
    /// Positions of the snapshots.
    snapshots: [u64; 2],
    end: u64,
}

const STREAMS: u64 = 3;

fn disk_of(files: &Files) -> FakeDisk {
    let disk = FakeDisk::new();
    for folder in [DATA, "/data/log", "/data/snapshots"].map(Path::new) {
        disk.create_dir(folder).unwrap();
    }
    for (path, bytes) in files {
        let mut file = disk.create(path).unwrap();
        file.write_at(0, bytes).unwrap();
        file.sync_all().unwrap();
        disk.sync_dir(path.parent().unwrap()).unwrap();
    }
    disk
}

/// Made once: every test begins with a copy.
fn sample() -> &'static Sample {
    static SAMPLE: OnceLock<Sample> = OnceLock::new();
    SAMPLE.get_or_init(|| make(true))
}

/// `snapshots`: take two.
fn make(snapshots: bool) -> Sample {
    let disk = FakeDisk::new();
    let mut server = Headless::start(Arc::new(disk.clone()), Path::new(DATA), settings(), 1_700_000_000_000).unwrap();
    let mut entries = Vec::new();
    let mut taken = [0; 2];
    let position = |server: &Headless| server.node().engine().log.position();
    (0..STREAMS).for_each(|n| drop(server.line(&format!("XGROUP CREATE s{n} g 0 MKSTREAM"))));
    for n in 0..150 {
        let before = position(&server);
        server.line(&format!("XADD s{} {}-0 n {} text {}", n % STREAMS, n + 1, n, "x".repeat(100 + n as usize)));
        entries.push((before, position(&server)));
        server.pass(10);
        match n % 10 {
            3 => drop(server.line("XREADGROUP GROUP g c COUNT 2 STREAMS s0 s1 s2 > > >")),
            5 => drop(server.line(&format!("XACK s{} g {}-0", n % STREAMS, n.saturating_sub(20)))),
            7 => drop(server.line(&format!("SET counter {n}"))),
            8 => drop(server.line("APPEND counter 0")),
            // What is said of the work at what was delivered.
            6 => {
                let (key, id) = (format!("s{}", n % STREAMS), format!("{}-0", n.saturating_sub(29)));
                drop(server.line(&format!("XWORK BEGIN {key} g c {id} WORK job{}", n / 20)));
                drop(server.line(&format!("XWORK DONE {key} g c {id} WORK job{} EMIT out * n {n}", n / 20)));
                drop(server.line(&format!("XWORK HOLD {key} g IDS 1 {}-0", n.saturating_sub(26))));
            }
            _ => {}
        }
        if snapshots && (n == 50 || n == 100) {
            taken[usize::from(n == 100)] = position(&server);
            assert_eq!(server.line("SAVE"), b"+OK\r\n");
        }
    }
    assert_ne!(server.line("XLEN out"), b":0\r\n", "some work was completed");
    server.settle();
    let state = server.node().engine().state();
    invariants::check(state).unwrap();
    let (digest, end) = (invariants::digest(state).hex(), position(&server));
    drop(server);
    Sample { files: disk.contents(Path::new("/data")), entries, digest, snapshots: taken, end }
}

impl Sample {
    fn segments(&self) -> Vec<PathBuf> {
        self.files.keys().filter(|path| path.starts_with("/data/log")).cloned().collect()
    }

    fn snapshot(&self, index: usize) -> PathBuf {
        PathBuf::from(format!("/data/snapshots/{:020}.snap", self.snapshots[index]))
    }

    /// Numbers of the entries whose commits touch what is lost, and that no snapshot at `base` holds.
    fn lost(&self, repaired: &Repaired) -> Vec<usize> {
        let base = repaired.base.unwrap_or(0);
        let is_lost = |&(from, to): &(u64, u64)| {
            to > base
                && repaired
                    .lost
                    .iter()
                    .filter_map(|damage| damage.positions)
                    .any(|(lost_from, lost_to)| from < lost_to.unwrap_or(u64::MAX) && to > lost_from)
        };
        (0..self.entries.len()).filter(|&n| is_lost(&self.entries[n])).collect()
    }
}

fn look(files: &Files) -> Report {
    let (dir, holder) = DataDir::look(Arc::new(disk_of(files)), Path::new(DATA)).unwrap();
    examine(&dir, holder, DATA, &mut |_| {}).unwrap()
}

/// What a start makes of it: the digest, or that it refuses.
fn start(files: &Files) -> Result<String, String> {
    let disk = Arc::new(disk_of(files));
    let server = Headless::start(disk, Path::new(DATA), settings(), 0).map_err(|error| error.to_string())?;
    Ok(invariants::digest(server.node().engine().state()).hex())
}

/// Repairs, and looks at what was made: it is whole, and starts.
fn mend(files: &Files) -> Result<(Repaired, Files), RepairError> {
    let (dir, holder) = DataDir::look(Arc::new(disk_of(files)), Path::new(DATA)).unwrap();
    let report = examine(&dir, holder, DATA, &mut |_| {}).unwrap();
    let made = FakeDisk::new();
    let target = DataDir::open(Arc::new(made.clone()), Path::new(DATA)).unwrap();
    let repaired = repair(&dir, &target, &report, &mut |_| {})?;
    drop(target);
    let made = made.contents(Path::new("/data"));
    let again = look(&made);
    assert_eq!(again.verdict(), Verdict::Whole, "{}", page::page(&again));
    assert_eq!((&again.state.digest, again.state.position), (&repaired.digest, repaired.position));
    assert_eq!(start(&made).unwrap(), repaired.digest);
    Ok((repaired, made))
}

/// Numbers of the entries that are there.
fn entries(files: &Files) -> Vec<usize> {
    let server = Headless::start(Arc::new(disk_of(files)), Path::new(DATA), settings(), 0).unwrap();
    let mut found = Vec::new();
    for (_, slot) in server.node().engine().state().db(0).iter() {
        let Value::Stream(stream) = &slot.value else { continue };
        found.extend(
            stream
                .entries
                .range(impel_core::id::StreamId::MIN, impel_core::id::StreamId::MAX)
                .map(|entry| entry.id.ms as usize - 1),
        );
    }
    found.sort_unstable();
    found
}

/// Check and start agree; what a repair loses is what it says is lost, and it loses something only if so expected.
fn expect(files: &Files, row: Row, verdict: Verdict, is_complete: bool) -> (Report, Repaired) {
    let sample = sample();
    let report = look(files);
    let shown = page::page(&report);
    assert_eq!((report.start.row, report.verdict()), (row, verdict), "{shown}");
    match start(files) {
        Ok(digest) => {
            assert_ne!(verdict, Verdict::Refused, "{shown}");
            assert_eq!(digest, report.state.digest, "{shown}");
        }
        Err(error) => assert_eq!(Some(&error), report.start.refusal.as_ref()),
    }
    assert!(shown.contains(&format!("takes recovery row {row:?}")), "{shown}");
    let (repaired, made) = mend(files).unwrap();
    assert_eq!(repaired.is_complete(), is_complete, "{repaired:?}");
    let lost = sample.lost(&repaired);
    let kept: Vec<usize> = (0..sample.entries.len()).filter(|n| !lost.contains(n)).collect();
    let found = entries(&made);
    assert!(kept.iter().all(|n| found.contains(n)), "{repaired:?}");
    assert_eq!(lost.is_empty() && is_complete, is_complete);
    if is_complete {
        assert_eq!(repaired.digest, sample.digest);
    }
    (report, repaired)
}

fn with(change: impl FnOnce(&mut Files, &[PathBuf])) -> Files {
    let mut files = sample().files.clone();
    change(&mut files, &sample().segments());
    files
}

/// The position that a segment begins at.
fn start_of(path: &Path) -> u64 {
    path.file_stem().unwrap().to_str().unwrap().parse().unwrap()
}

fn flip(files: &mut Files, path: &Path, at: usize) {
    files.get_mut(path).unwrap()[at] ^= 0x40;
}

#[test]
fn what_is_whole_is_called_whole_and_reached_in_two_ways() {
    let sample = sample();
    let report = look(&sample.files);
    let text = page::page(&report);
    assert_eq!((report.verdict(), report.start.row), (Verdict::Whole, Row::B), "{text}");
    assert_eq!((&report.state.digest, report.state.position), (&sample.digest, sample.end));
    assert_eq!(report.snapshots.iter().map(|one| one.position).collect::<Vec<_>>(), sample.snapshots);
    let older = report.older.as_ref().unwrap();
    assert_eq!((older.base, older.digest.as_ref()), (sample.snapshots[0], Ok(&sample.digest)));
    let total = report.state.total();
    assert!(total.entries > 150, "and what was emitted: {total:?}");
    assert_eq!(total, Counts { keys: 5, streams: 4, groups: 3, ..total });
    assert!(report.segments.len() > 5 && report.segments.windows(2).all(|two| two[0].end == two[1].start));
    assert!(text.contains("the same from position") && text.contains("2023-11-14T22:13:"), "{text}");
    let (repaired, made) = mend(&sample.files).unwrap();
    assert!(repaired.is_complete());
    assert_eq!(made.len(), 1, "a snapshot and nothing else");
    assert_eq!(repaired.digest, sample.digest);
    // The log alone, from its beginning.
    let alone = make(false);
    assert_eq!(look(&alone.files).verdict(), Verdict::Whole);
    assert_eq!(look(&alone.files).state.digest, sample.digest);
}

#[test]
fn nothing_and_what_a_crash_leaves() {
    let report = look(&Files::new());
    assert_eq!((report.verdict(), report.start.row), (Verdict::Whole, Row::A));
    assert_eq!(mend(&Files::new()).unwrap().0.counts, Counts::default());
    let torn = with(|files, segments| {
        let last = files.get_mut(segments.last().unwrap()).unwrap();
        let end = last.iter().rposition(|&byte| byte != 0).unwrap();
        last[end] ^= 1;
        files.insert("/data/log/00000000000000009999.log.tmp".into(), vec![1]);
    });
    let (report, _) = expect(&torn, Row::C, Verdict::Damaged, false);
    assert!(report.start.cut_bytes > 0 && report.leftovers.len() == 1);
    assert_eq!(report.damage.len(), 1);
    assert!(report.damage[0].before_ms.is_some() && report.damage[0].after_ms.is_none());
}

#[test]
fn damaged_headers_cost_nothing() {
    for index in [0, 1, sample().segments().len() - 1] {
        let files = with(|files, segments| flip(files, &segments[index], 9));
        // Segments that end before the snapshot are not looked at by a start.
        let is_needed = look(&files).start.refusal.is_some();
        let (row, verdict) = if is_needed { (Row::K, Verdict::Refused) } else { (Row::B, Verdict::Damaged) };
        let (report, repaired) = expect(&files, row, verdict, true);
        assert_eq!(report.damage[0].positions, None);
        assert_eq!(repaired.lost.len(), 0);
    }
    assert!(look(&with(|files, segments| flip(files, segments.last().unwrap(), 9))).start.refusal.is_some());
}

#[test]
fn a_damaged_frame_costs_that_frame() {
    let sample = sample();
    let segments = sample.segments();
    // A closed segment behind the newest snapshot.
    let middle = segments[segments.len() - 2].clone();
    let files = with(|files, _| flip(files, &middle, 4096 + 28 + 3));
    let (report, repaired) = expect(&files, Row::M, Verdict::Refused, false);
    let (from, to) = repaired.lost[0].positions.unwrap();
    assert_eq!((report.damage.len(), repaired.lost.len()), (1, 1));
    assert!(to.unwrap() - from < 400 && repaired.commits_behind > 10, "{repaired:?}");
    assert!(repaired.lost[0].before_ms <= repaired.lost[0].after_ms && repaired.lost[0].before_ms.is_some());
    // Several, reads among them: what goes on from those does not fit.
    let early = segments.iter().find(|path| start_of(path) > sample.snapshots[1]).unwrap();
    let files = with(|files, _| files.get_mut(early).unwrap()[5000..7000].fill(0));
    let (report, repaired) = expect(&files, Row::M, Verdict::Refused, false);
    assert!(repaired.left_out > 0 && repaired.named.len() as u64 == repaired.left_out, "{repaired:?}");
    let text = page::page(&report) + &page::repaired(&repaired, "new");
    assert!(text.contains("are lost") && text.contains("written between") && text.contains("do not fit"), "{text}");
    // The last segment.
    let last = segments.last().unwrap();
    let files = with(|files, _| flip(files, last, 4096 + 28 + 3));
    expect(&files, Row::D, Verdict::Refused, false);
    // One that only an older snapshot needs.
    let files = with(|files, segments| flip(files, &segments[1], 4096 + 28 + 3));
    let (report, _) = expect(&files, Row::B, Verdict::Damaged, true);
    assert!(report.older.is_none(), "the other way is broken");
}

#[test]
fn missing_segments_cost_what_was_in_them() {
    let segments = sample().segments();
    let files = with(|files, _| drop(files.remove(&segments[segments.len() - 2])));
    let (report, repaired) = expect(&files, Row::F, Verdict::Refused, false);
    assert_eq!((report.damage[0].bytes, repaired.lost.len()), (None, 1));
    assert!(repaired.commits_behind > 0);
    // The first one is not needed.
    let files = with(|files, _| drop(files.remove(&segments[0])));
    expect(&files, Row::B, Verdict::Whole, true);
    // All of them.
    let files = with(|files, _| files.retain(|path, _| !path.starts_with("/data/log")));
    let (report, _) = expect(&files, Row::G, Verdict::Damaged, false);
    assert!(report.start.log_is_missing);
    // The last one: the log ends earlier, but cleanly.
    let files = with(|files, _| drop(files.remove(segments.last().unwrap())));
    let report = look(&files);
    assert_eq!(report.verdict(), Verdict::Whole, "nothing tells that there was more");
}

#[test]
fn damaged_snapshots() {
    let sample = sample();
    let newest = |files: &mut Files, _: &[PathBuf]| flip(files, &sample.snapshot(1), 200);
    let (report, repaired) = expect(&with(newest), Row::H, Verdict::Damaged, true);
    assert_eq!((report.start.snapshot, repaired.base), (Some(sample.snapshots[0]), Some(sample.snapshots[0])));
    expect(&with(|files, _| flip(files, &sample.snapshot(0), 200)), Row::B, Verdict::Damaged, true);
    // All of them: what the log holds is left, from where it begins.
    let all = with(|files, _| (0..2).for_each(|index| flip(files, &sample.snapshot(index), 200)));
    let (_, repaired) = expect(&all, Row::I, Verdict::Refused, false);
    assert_eq!((repaired.base, repaired.lost[0].positions.unwrap().0), (None, 0));
}

#[test]
fn the_whole_chunks_of_a_damaged_snapshot_fill_a_hole() {
    let disk = FakeDisk::new();
    let mut settings = settings();
    settings.log_segment_bytes = 1 << 20;
    let mut server = Headless::start(Arc::new(disk.clone()), Path::new(DATA), settings, 1).unwrap();
    // Each too large to share a chunk with another.
    let large = "x".repeat(70_000);
    for key in ["a", "b", "c"] {
        server.ask(&[b"SET", key.as_bytes(), large.as_bytes()]);
    }
    assert_eq!(server.line("SAVE"), b"+OK\r\n");
    server.line("SET later 1");
    server.settle();
    drop(server);
    let mut files = disk.contents(Path::new("/data"));
    let snapshot = files.keys().find(|path| path.starts_with("/data/snapshots")).unwrap().clone();
    flip(&mut files, &snapshot, 100_000);
    // The log holds everything as well.
    let report = look(&files);
    assert_eq!(report.start.row, Row::H);
    assert!(mend(&files).unwrap().0.is_complete());
    // Without it, two of three keys are left.
    let mut without = files.clone();
    without.retain(|path, _| !path.starts_with("/data/log"));
    let (repaired, _) = mend(&without).unwrap();
    assert_eq!((repaired.counts.keys, repaired.salvaged.len()), (2, 1));
    assert_eq!(
        (repaired.salvaged[0].keys, repaired.salvaged[0].chunks_lost, repaired.salvaged[0].is_all),
        (2, 1, true)
    );
    assert!(!repaired.is_complete());
    // Without the beginning of the log, too: each of the two has what the other lacks.
    let segment = files.keys().find(|path| path.starts_with("/data/log")).unwrap().clone();
    let mut late = files.clone();
    flip(&mut late, &segment, 5000);
    let (repaired, _) = mend(&late).unwrap();
    assert_eq!((repaired.counts.keys, repaired.salvaged[0].keys, repaired.lost.len()), (4, 2, 1), "{repaired:?}");
    // A length that is damaged: what stands behind it is out of reach.
    let mut cut = without.clone();
    cut.get_mut(&snapshot).unwrap()[43] = 0x7f;
    let (repaired, _) = mend(&cut).unwrap();
    assert_eq!((repaired.counts.keys, repaired.salvaged[0].is_all), (0, false));
}

#[test]
fn a_log_that_ends_before_a_snapshot() {
    let sample = sample();
    let files = with(|files, segments| {
        segments.iter().filter(|path| start_of(path) > sample.snapshots[0]).for_each(|path| drop(files.remove(path)));
    });
    let (report, repaired) = expect(&files, Row::P, Verdict::Refused, false);
    assert!(report.damage[0].what.contains("the log ends here"), "{report:?}");
    assert_eq!(repaired.position, sample.snapshots[1]);
    let files = {
        let mut files = files;
        flip(&mut files, &sample.snapshot(1), 200);
        files
    };
    expect(&files, Row::O, Verdict::Refused, false);
}

#[test]
fn what_a_later_version_wrote_is_no_damage() {
    let sample = sample();
    let foreign = |bytes: &mut Vec<u8>, end: usize| {
        bytes[8] = 99;
        let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[..12]), &bytes[16..end]);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
    };
    let segment = with(|files, segments| foreign(files.get_mut(segments.last().unwrap()).unwrap(), 24));
    let snapshot = with(|files, _| foreign(files.get_mut(&sample.snapshot(1)).unwrap(), 40));
    for files in [segment, snapshot] {
        let report = look(&files);
        assert_eq!((report.start.row, report.verdict()), (Row::J, Verdict::Refused));
        assert!(page::page(&report).contains("format 99"));
        assert!(matches!(mend(&files), Err(RepairError::Foreign(_))));
    }
}

/// Whole frames of a log whose records nobody knows.
#[test]
fn a_record_that_nobody_knows_is_told_of() {
    use crate::log::{Log, Options};
    let disk = FakeDisk::new();
    let dir = DataDir::open(Arc::new(disk.clone()), Path::new(DATA)).unwrap();
    let (mut log, _) = crate::log::open(&dir, Options::default()).unwrap();
    log.commit(&[200, 1, 2], 5, true).unwrap();
    drop((log, dir));
    let files = disk.contents(Path::new("/data"));
    let report = look(&files);
    assert_eq!((report.start.row, report.verdict()), (Row::B, Verdict::Refused));
    assert_eq!(report.unknown_commits, [0]);
    assert_eq!(Some(start(&files).unwrap_err().starts_with("the log frame at position 0")), Some(true));
    assert!(matches!(mend(&files), Err(RepairError::Foreign(_))));
}

#[test]
fn a_server_at_work_is_looked_at_up_to_its_last_whole_commit() {
    let torn = with(|files, segments| {
        let last = files.get_mut(segments.last().unwrap()).unwrap();
        let end = last.iter().rposition(|&byte| byte != 0).unwrap();
        last[end] ^= 1;
    });
    let disk = disk_of(&torn);
    let _lock = disk.lock(&Path::new(DATA).join("lock")).unwrap().unwrap();
    let (dir, holder) = DataDir::look(Arc::new(disk.clone()), Path::new(DATA)).unwrap();
    assert_eq!(holder, Holder::Server);
    let report = examine(&dir, holder, DATA, &mut |_| {}).unwrap();
    assert_eq!(report.verdict(), Verdict::Whole, "{report:?}");
    assert!(page::page(&report).contains("A SERVER WORKS IN IT"));
    assert!(report.older.is_some_and(|older| older.digest == Ok(report.state.digest)));
}

fn damage(files: &mut Files, random: &mut SplitMix64) {
    let paths: Vec<PathBuf> = files.keys().cloned().collect();
    let path = &paths[random.below(paths.len() as u64) as usize];
    let bytes = files.get_mut(path).unwrap();
    let at = |random: &mut SplitMix64, len: usize| random.below(len.max(1) as u64) as usize;
    match random.below(8) {
        0..=2 if !bytes.is_empty() => {
            let at = at(random, bytes.len());
            bytes[at] ^= 1 << random.below(8);
        }
        3 => {
            let (from, len) = (at(random, bytes.len()), at(random, 3000));
            bytes.iter_mut().skip(from).take(len).for_each(|byte| *byte = 0);
        }
        4 => {
            let (from, len) = (at(random, bytes.len()), at(random, 600));
            bytes.iter_mut().skip(from).take(len).for_each(|byte| *byte = random.next_u64() as u8);
        }
        5 => bytes.truncate(at(random, bytes.len())),
        6 => drop(files.remove(path)),
        _ => {
            // What stood in another file.
            let other = files[&paths[random.below(paths.len() as u64) as usize]].clone();
            files.insert(path.clone(), other);
        }
    }
}

/// Never a panic; never "whole" of what a start would refuse or lose; the same state as a start; a repair loses what it says
/// and no more.
#[test]
fn any_damage_is_told_as_a_start_takes_it_and_repaired_but_for_itself() {
    let sample = sample();
    let (mut refused, mut complete) = (0, 0);
    for seed in 0..600 {
        let mut random = SplitMix64(seed);
        let mut files = sample.files.clone();
        (0..1 + random.below(3)).for_each(|_| damage(&mut files, &mut random));
        let report = look(&files);
        let shown = page::page(&report);
        match start(&files) {
            Ok(digest) => {
                assert_ne!(report.verdict(), Verdict::Refused, "seed {seed}: {shown}");
                assert_eq!(digest, report.state.digest, "seed {seed}: {shown}");
            }
            Err(error) => {
                refused += 1;
                assert_eq!(report.start.refusal.as_ref(), Some(&error), "seed {seed}: {shown}");
            }
        }
        let (repaired, made) = mend(&files).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let (lost, found) = (sample.lost(&repaired), entries(&made));
        for n in (0..sample.entries.len()).filter(|n| !lost.contains(n)) {
            // The end of the log may be gone without a trace.
            let is_traceless = sample.entries[n].1 > repaired.position;
            assert!(found.contains(&n) || is_traceless, "seed {seed}: entry {n} is gone\n{shown}\n{repaired:?}");
        }
        complete += u32::from(repaired.digest == sample.digest);
        json::repaired(&repaired, "new");
        json::report(&report);
    }
    assert!(refused > 100 && complete > 50, "{refused} refused, {complete} complete");
}

/// A directory that an earlier version wrote, with every kind of record.
fn fixture() -> Files {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/format-1/data");
    let mut files = Files::new();
    for folder in ["log", "snapshots"] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let entry = entry.unwrap();
            let path = Path::new(DATA).join(folder).join(entry.file_name());
            files.insert(path, std::fs::read(entry.path()).unwrap());
        }
    }
    files
}

/// Every commit of it is lost once, alone and with some of those behind it, with a snapshot before it and without: what a
/// repair makes of the rest is whole.
#[test]
fn whatever_kind_of_record_is_lost_the_rest_is_put_together_again() {
    let whole = fixture();
    let segment = whole.keys().find(|path| path.starts_with("/data/log")).unwrap().clone();
    let (dir, _) = DataDir::look(Arc::new(disk_of(&whole)), Path::new(DATA)).unwrap();
    let pieces = inspect::Segment::read(&dir, 0, Vec::new()).unwrap();
    let offsets: Vec<usize> = pieces
        .pieces()
        .map(|piece| match piece {
            inspect::Piece::Frame { offset, .. } => offset as usize,
            inspect::Piece::Damage { .. } => panic!("a fixture is whole"),
        })
        .collect();
    for with_snapshot in [true, false] {
        let mut files = whole.clone();
        files.retain(|path, _| with_snapshot || *path == segment);
        let mut left_out = 0;
        for first in 0..offsets.len() {
            // Alone; every second one from there; every third; every seventh.
            for step in [offsets.len(), 2, 3, 7] {
                let mut damaged = files.clone();
                let bytes = damaged.get_mut(&segment).unwrap();
                offsets[first..].iter().step_by(step).for_each(|&offset| bytes[offset + 28] ^= 0x55);
                let (repaired, _) = mend(&damaged).unwrap();
                assert_eq!(repaired.given_up, None, "commit {first} and every {step}. behind it: {repaired:?}");
                left_out += repaired.left_out;
            }
        }
        assert!(left_out > 100, "{left_out}");
    }
}
