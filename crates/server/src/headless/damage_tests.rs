//! The last segment and a snapshot cut at every byte, torn by sectors, and with every byte changed: a start takes one of the
//! rows that such a place may lead to, and what it keeps is the state after the last commit before the place.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use impel_core::check as invariants;
use impel_core::engine::Engine;

use super::*;
use crate::disk::fake::FakeDisk;
use crate::log::inspect::{FRAMES_AT, outlook};
use crate::log::{OpenError, Row};

/// What a byte is changed by.
const PATTERNS: [u8; 3] = [0x01, 0x80, 0xff];

/// Done before the snapshot: what was said of work is in it, and in the log before it.
const BEFORE: &str = "\
XWORK POLICY s g EVIDENCE record DEADLETTER dead
XREADGROUP GROUP g c COUNT 2 STREAMS s >
XWORK BEGIN s g c 1-0 WORK first
XWORK DONE s g c 1-0 WORK first DIGEST d EMIT out 1-0 of first
XWORK HOLD s g REASON why IDS 1 2-0";

/// And behind it.
const AFTER: &str = "\
XREADGROUP GROUP g c COUNT 3 STREAMS s >
XWORK BEGIN s g c 3-0 WORK second
XWORK DONE s g c 3-0 WORK second RECEIPT r EMIT out 2-0 of second
XWORK FAIL s g c 4-0 REASON broken DEAD
XWORK RELEASE s g IDS 1 2-0
XACK s g 5-0
SET string value
XADD s 6-0 item coffee";

/// A frame of the last segment.
#[derive(Clone, Copy)]
struct Frame {
    offset: usize,
    end: usize,
    position: u64,
}

struct Bench {
    files: BTreeMap<PathBuf, Vec<u8>>,
    segment: PathBuf,
    /// The newest, if there is one.
    snapshot: Option<PathBuf>,
    frames: Vec<Frame>,
    /// Digest after each commit.
    digests: BTreeMap<u64, String>,
    end: u64,
}

fn settings(fsync: &str) -> Settings {
    let mut settings = Settings::default();
    settings.apply(b"appendfsync", &[fsync]).unwrap();
    settings.log_segment_bytes = 1;
    settings
}

impl Bench {
    /// A few commits in one segment, with a snapshot after the fourth or without.
    fn new(fsync: &str, snapshot: bool) -> Bench {
        let disk = FakeDisk::new();
        let mut server = Headless::start(Arc::new(disk.clone()), Path::new("/data"), settings(fsync), 1000).unwrap();
        let mut say = |line: &str| {
            let reply = server.line(line);
            assert!(!reply.is_empty() && reply[0] != b'-', "{line}: {}", reply.escape_ascii());
        };
        say("XGROUP CREATE s g 0 MKSTREAM");
        for n in 1..=5 {
            say(&format!("XADD s {n}-0 item {}", "tea".repeat(n)));
        }
        BEFORE.lines().for_each(&mut say);
        if snapshot {
            say("SAVE");
        }
        AFTER.lines().for_each(say);
        let mut frames = Vec::new();
        let mut offset = FRAMES_AT;
        let mut engine = Engine::new(Settings::default(), 7);
        let digest = |engine: &Engine| invariants::digest(engine.state()).hex();
        let mut digests = BTreeMap::from([(0, digest(&engine))]);
        for (payload, end) in server.commits.iter().filter(|(payload, _)| !payload.is_empty()) {
            let position = end - payload.len() as u64;
            startup::replay(position, 0, payload, &mut engine).unwrap();
            digests.insert(*end, digest(&engine));
            frames.push(Frame { offset, end: offset + 28 + payload.len(), position });
            offset += 28 + payload.len();
        }
        let end = server.node().engine().log.position();
        drop(server);
        let files = disk.contents(Path::new("/data"));
        let mut paths = files.keys().cloned();
        let segment = paths.next().unwrap();
        Bench { segment, snapshot: paths.next(), files, frames, digests, end }
    }

    fn position_of_snapshot(&self) -> u64 {
        let name = self.snapshot.as_ref().map(|path| path.file_stem().unwrap().to_str().unwrap().parse().unwrap());
        name.unwrap_or(0)
    }

    /// Starts with one file changed. Answers the row, and if it goes on, the position and digest of what was read.
    fn start(&self, path: &Path, bytes: &[u8]) -> (Row, Option<(u64, String)>) {
        let disk = FakeDisk::new();
        for folder in ["/data", "/data/log", "/data/snapshots"] {
            disk.create_dir(Path::new(folder)).unwrap();
        }
        for (name, content) in &self.files {
            let mut file = disk.create(name).unwrap();
            file.write_at(0, if name == path { bytes } else { content }).unwrap();
        }
        let row = {
            let (dir, _) = DataDir::look(Arc::new(disk.clone()), Path::new("/data")).unwrap();
            outlook(&dir).unwrap().row
        };
        match Headless::start(Arc::new(disk), Path::new("/data"), settings("always"), 0) {
            Ok(server) => {
                let engine = server.node().engine();
                invariants::check(engine.state()).unwrap();
                (row, Some((engine.log.position(), invariants::digest(engine.state()).hex())))
            }
            Err(StartupError::Open(OpenError::Refused(refusal))) => {
                assert_eq!(refusal.row, row, "one row, whoever asks");
                (row, None)
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// `rows`: the one that goes on is expected to keep everything before `position`, and nothing else.
    fn expect(&self, path: &Path, bytes: &[u8], row: Row, position: u64, context: &str) {
        let (found, kept) = self.start(path, bytes);
        assert_eq!(found, row, "{context}");
        match kept {
            Some((end, digest)) => {
                assert_eq!(end, position, "{context}");
                assert_eq!(digest, self.digests[&end], "{context}");
            }
            None => assert_eq!(row.action(), crate::log::recovery::Action::Refuse, "{context}"),
        }
    }

    /// Where a place in the segment belongs: the frame, or none behind the last.
    fn frame(&self, offset: usize) -> Option<(usize, Frame)> {
        self.frames.iter().copied().enumerate().find(|(_, frame)| offset < frame.end)
    }
}

/// What stands at an offset of the segment's header page or a frame.
fn region(bench: &Bench, offset: usize) -> &'static str {
    match bench.frame(offset) {
        _ if offset < 24 => "header",
        _ if offset < FRAMES_AT => "rest of the header's page",
        None => "reserved",
        Some((_, frame)) => match offset - frame.offset {
            0..4 => "mark",
            4..8 => "length",
            8..12 => "checksum",
            12..20 => "time",
            20..28 => "synced",
            _ => "payload",
        },
    }
}

fn flip_every_byte(fsync: &str, snapshot: bool) {
    let bench = Bench::new(fsync, snapshot);
    let whole = &bench.files[&bench.segment];
    let base = bench.position_of_snapshot();
    let used = bench.frames.last().unwrap().end;
    let frames = bench.frames.len();
    let mut seen: BTreeMap<&str, Vec<Row>> = BTreeMap::new();
    let sparse = (24..FRAMES_AT).step_by(127).chain((used..whole.len()).step_by(97));
    for offset in (0..24).chain(FRAMES_AT..used).chain(sparse) {
        for pattern in PATTERNS {
            let mut bytes = whole.clone();
            bytes[offset] ^= pattern;
            let place = region(&bench, offset);
            let (row, position) = match (place, bench.frame(offset)) {
                ("header", _) => (Row::K, 0),
                // Zeros that nothing reads.
                ("rest of the header's page", _) => (Row::B, bench.end),
                ("reserved", _) | (_, None) => (Row::C, bench.end),
                // The last frame: no other tells that it had been durable.
                (_, Some((number, frame))) if number + 1 == frames => (Row::C, frame.position),
                (_, Some(_)) if fsync == "always" => (Row::D, 0),
                // It ends before the snapshot, which had been durable.
                (_, Some((_, frame))) if frame.position < base => (Row::D, 0),
                (_, Some((_, frame))) => (Row::E, frame.position),
            };
            seen.entry(place).or_default().push(row);
            let context = format!("appendfsync {fsync}, snapshot {snapshot}, {place}, byte {offset}, {pattern:#x}");
            bench.expect(&bench.segment, &bytes, row, position, &context);
        }
    }
    // Every region was met.
    assert_eq!(seen.len(), 9, "{:?}", seen.keys());
}

#[test]
fn every_byte_of_the_last_segment_changed() {
    flip_every_byte("always", false);
    flip_every_byte("always", true);
}

#[test]
fn every_byte_of_the_last_segment_changed_when_nothing_was_synced() {
    flip_every_byte("no", false);
}

#[test]
fn the_last_segment_cut_at_every_byte_and_torn_by_sectors() {
    for snapshot in [false, true] {
        let bench = Bench::new("always", snapshot);
        let whole = &bench.files[&bench.segment];
        let base = bench.position_of_snapshot();
        let used = bench.frames.last().unwrap().end;
        let last_before = |offset: usize| {
            let frames = bench.frames.iter();
            frames.take_while(|frame| frame.end <= offset).last().map_or(0, |frame| frame.position)
        };
        for cut in (0..FRAMES_AT).step_by(61).chain(FRAMES_AT..=used) {
            let context = format!("snapshot {snapshot}, cut at {cut}");
            // The last commit of which nothing is missing.
            let kept = bench.frames.iter().filter(|frame| frame.end <= cut).count();
            let end = bench.frames.get(kept).map_or(bench.end, |frame| frame.position);
            let is_clean = bench.frames.get(kept).is_none_or(|frame| frame.offset == cut);
            let row = match () {
                () if cut < FRAMES_AT => Row::K,
                () if end < base => Row::P,
                () if is_clean => Row::B,
                () => Row::C,
            };
            bench.expect(&bench.segment, &whole[..cut], row, end, &context);
        }
        // The end of the file is there, and does not hold what was written: any number of its last sectors, or one of them.
        for sector in FRAMES_AT / 512..used.div_ceil(512) {
            for only in [false, true] {
                let (from, to) = (sector * 512, if only { (sector + 1) * 512 } else { whole.len() });
                let mut bytes = whole.clone();
                bytes[from..to].fill(0);
                let context = format!("snapshot {snapshot}, sector {sector} torn, alone: {only}");
                let (row, kept) = bench.start(&bench.segment, &bytes);
                let damaged = bench.frame(from).map_or(bench.end, |(_, frame)| frame.position);
                let has_more = only && to < bench.frames.last().unwrap().offset;
                match row {
                    Row::D => assert!(has_more, "{context}"),
                    Row::P => assert!(damaged < base && !has_more, "{context}"),
                    Row::B | Row::C => {
                        let (end, digest) = kept.unwrap();
                        assert_eq!((end, &digest), (damaged, &bench.digests[&damaged]), "{context}");
                        assert!(end >= last_before(from), "{context}");
                    }
                    other => panic!("{context}: row {other:?}"),
                }
            }
        }
    }
}

#[test]
fn every_byte_of_a_snapshot_changed_and_the_snapshot_cut() {
    let bench = Bench::new("always", true);
    let path = bench.snapshot.clone().unwrap();
    let whole = &bench.files[&path];
    for offset in 0..whole.len() {
        for pattern in PATTERNS {
            let mut bytes = whole.clone();
            bytes[offset] ^= pattern;
            bench.expect(&path, &bytes, Row::H, bench.end, &format!("byte {offset}, {pattern:#x}"));
        }
        bench.expect(&path, &whole[..offset], Row::H, bench.end, &format!("cut at {offset}"));
    }
    // Where the log does not reach back to the beginning, it is all that there is.
    let mut alone = Bench::new("always", true);
    alone.files.remove(&alone.segment);
    for offset in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[offset] ^= 0x10;
        alone.expect(&path, &bytes, Row::I, 0, &format!("alone, byte {offset}"));
    }
}
