//! What may lie in a data directory: whole segments and snapshots, or such with bytes changed, cut off, missing and renamed, or
//! anything at all. Recovery falls into a row of its table, never panics, changes nothing when it refuses, and what it goes on
//! with is there again at the next start.

use std::path::Path;
use std::sync::Arc;

use arbitrary::Unstructured;
use impel::disk::fake::FakeDisk;
use impel::disk::{DataDir, Disk};
use impel::log::{self, Log, OpenError, Options, Row};
use impel::{snapshots, startup};
use impel_core::check::{self, Digest};
use impel_core::record::{At, Fields, Record};

use super::look;

/// The smallest segment there is.
const SEGMENT_BYTES: u64 = 8192;
const FOLDERS: [&str; 2] = ["/data/log", "/data/snapshots"];
/// Changes made to one directory.
const CHANGES_MAX: usize = 12;
/// Longest run of bytes that one change writes.
const RUN_MAX: usize = 6000;

/// Builds a directory, changes it, starts on it.
pub fn run(data: &[u8]) {
    let mut input = Unstructured::new(data);
    let disk = FakeDisk::new();
    build(&disk, &mut input);
    for _ in 0..CHANGES_MAX {
        if input.is_empty() || change(&disk, &mut input).is_none() {
            break;
        }
    }
    let before = content(&disk);
    // On a copy: damaged snapshots get another name by it.
    let read = row_of(log::open_to_read(&dir(&copy(&before))).map(|(_, recovery)| recovery.row));
    let (row, digest) = start(&disk);
    assert_eq!(read, row, "with and without the log the directory is judged alike");
    let Some(digest) = digest else {
        if row.action() == log::recovery::Action::Refuse {
            assert!(content(&disk) == before, "a refusal changes nothing");
        }
        return;
    };
    let (row, again) = start(&disk);
    assert!(matches!(row, Row::A | Row::B | Row::G), "the next start is an uneventful one, not {row:?}");
    assert!(again == Some(digest), "the next start finds the same");
}

fn dir(disk: &FakeDisk) -> Arc<DataDir> {
    DataDir::open(Arc::new(disk.clone()), Path::new("/data")).expect("nobody holds it")
}

/// Nothing fails on this disk: a start ends in a row.
fn row_of(opened: Result<Row, OpenError>) -> Row {
    match opened {
        Ok(row) => row,
        Err(OpenError::Refused(refusal)) => {
            assert!(!refusal.to_string().is_empty());
            refusal.row
        }
        Err(OpenError::Disk(error)) => panic!("the disk is in order: {error}"),
    }
}

/// Opens the directory as a server does, and reads it into an engine. What cannot be used is an error; else the digest.
fn start(disk: &FakeDisk) -> (Row, Option<Digest>) {
    let dir = dir(disk);
    let options = Options { segment_bytes: SEGMENT_BYTES, ..Options::default() };
    let row = row_of(log::open(&dir, options).map(|(_, recovery)| recovery.row));
    let mut engine = look::new_engine();
    engine.settings.log_segment_bytes = SEGMENT_BYTES;
    let Ok(opened) = startup::load(Some(dir), &mut engine) else { return (row, None) };
    drop(opened);
    while engine.free_one() {}
    look::check_state(&mut engine);
    (row, Some(check::digest(engine.state())))
}

/// A log of a few commits, with a snapshot or two.
fn build(disk: &FakeDisk, input: &mut Unstructured<'_>) {
    let (commits, wanted): (u8, u8) = (input.arbitrary().unwrap_or(0), input.arbitrary().unwrap_or(0));
    let options = Options { segment_bytes: SEGMENT_BYTES, ..Options::default() };
    let dir = dir(disk);
    let (mut log, _) = log::open(&dir, options).expect("an empty directory");
    let mut engine = look::new_engine();
    for number in 0..u64::from(commits & 15) {
        let mut payload = Vec::new();
        let at = At { db: 0, key: b"s" };
        let text = vec![b'v'; 50 + 97 * number as usize];
        let (bytes, spans) = ([b"f", &text[..]].concat(), [(0, 1), (1, 1 + text.len())]);
        let fields = Fields::Args(impel_core::command::args::Args::new(&bytes, &spans));
        let record = Record::Add { at, id: impel_core::id::StreamId { ms: number + 1, seq: 0 }, fields };
        record.encode(&mut payload);
        // Now and then something that the fuzzer has thought of, in a frame that is whole.
        if wanted & 4 != 0 && number % 3 == 2 {
            payload = input.bytes(20.min(input.len())).unwrap_or(b"?").to_vec();
            if payload.is_empty() {
                payload.push(0);
            }
        } else {
            engine.replay(&record, log.end() + payload.len() as u64);
        }
        log.commit(&payload, 1000 + number, wanted & 8 != 0 || number % 2 == 0).expect("the disk is in order");
        if (wanted & 1 != 0 && number == 4) || (wanted & 2 != 0 && number == 9) {
            let mut writer = snapshots::create(&dir, log.end(), 7, wanted & 16 == 0).expect("the disk is in order");
            engine.snapshot_begin();
            let (keys, _) = engine.snapshot_continue(100);
            let mut encoder = impel::image::Encoder::default();
            for key in &keys {
                encoder.key(key, |chunk| writer.write_chunk(chunk)).expect("the disk is in order");
            }
            encoder.flush(|chunk| writer.write_chunk(chunk)).expect("the disk is in order");
            log.sync().expect("the disk is in order");
            writer.finish().expect("the disk is in order");
            engine.snapshot_abort();
            if wanted & 32 != 0 {
                log.trim(log.end()).expect("the disk is in order");
            }
        }
    }
}

/// All files with what is in them.
fn content(disk: &FakeDisk) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for folder in FOLDERS {
        for name in disk.list(Path::new(folder)).unwrap_or_default() {
            let path = format!("{folder}/{name}");
            let file = disk.open(Path::new(&path)).expect("it was listed");
            let mut bytes = vec![0; file.len_bytes().expect("the disk is in order") as usize];
            file.read_at(0, &mut bytes).expect("the disk is in order");
            files.push((path, bytes));
        }
    }
    files
}

fn copy(files: &[(String, Vec<u8>)]) -> FakeDisk {
    let disk = FakeDisk::new();
    drop(dir(&disk));
    for (path, bytes) in files {
        let mut file = disk.create(Path::new(path)).expect("the disk is in order");
        file.write_at(0, bytes).expect("the disk is in order");
        file.sync_all().expect("the disk is in order");
    }
    disk
}

/// Changes something; `None` when the input is used up.
fn change(disk: &FakeDisk, input: &mut Unstructured<'_>) -> Option<()> {
    let files = content(disk);
    let kind: u8 = input.arbitrary().ok()?;
    let place: u16 = input.arbitrary().ok()?;
    let write = |path: &str, offset: u64, bytes: &[u8]| {
        let path = Path::new(path);
        let file =
            if files.iter().any(|(known, _)| Path::new(known) == path) { disk.open(path) } else { disk.create(path) };
        let mut file = file.expect("the disk is in order");
        file.write_at(offset, bytes).expect("the disk is in order");
        file.sync_all().expect("the disk is in order");
    };
    if kind % 8 == 7 || files.is_empty() {
        // A new file, of any name and content.
        let position = match place % 6 {
            0 => u64::MAX,
            1 => u64::MAX - u64::from(place),
            2 => i64::MAX as u64,
            _ => u64::from(place) * 7,
        };
        let name = match kind >> 3 & 3 {
            0 => format!("{}/{position:020}.log", FOLDERS[0]),
            1 => format!("{}/{position:020}.snap", FOLDERS[1]),
            2 => format!("{}/{position:020}.log.tmp", FOLDERS[0]),
            _ => format!("{}/{}.log", FOLDERS[0], place),
        };
        let own: Vec<u8> = match files.get(usize::from(place) % files.len().max(1)) {
            Some((_, bytes)) if kind & 32 != 0 => bytes.clone(),
            _ => input.bytes(input.len().min(200)).ok()?.to_vec(),
        };
        write(&name, 0, &own);
        return Some(());
    }
    let (path, bytes) = &files[usize::from(kind >> 3) % files.len()];
    let offset = usize::from(place) % bytes.len().max(1);
    match kind % 8 {
        0 => disk.remove(Path::new(path)).ok()?,
        1 => disk.open(Path::new(path)).ok()?.truncate(offset as u64).ok()?,
        2 => {
            let run = input.arbitrary::<u16>().ok()? as usize % RUN_MAX;
            write(path, offset as u64, &vec![0; run.min(bytes.len() - offset)]);
        }
        3 => {
            let run = usize::from(input.arbitrary::<u8>().ok()?).min(input.len());
            write(path, offset as u64, input.bytes(run).ok()?);
        }
        4 => {
            let flipped = bytes.get(offset)? ^ input.arbitrary::<u8>().ok()?;
            write(path, offset as u64, &[flipped]);
        }
        5 => {
            // What stands somewhere, also somewhere else: leftovers, shifted.
            let to = usize::from(input.arbitrary::<u16>().ok()?) % bytes.len().max(1);
            let run = input.arbitrary::<u16>().ok()? as usize % RUN_MAX;
            write(path, to as u64, &bytes[offset..(offset + run).min(bytes.len())]);
        }
        _ => {
            let (folder, name) = path.rsplit_once('/')?;
            let (number, end) = name.split_once('.')?;
            let number: u64 = number.parse().ok()?;
            let other = number.wrapping_add(u64::from(place)).wrapping_sub(300);
            disk.rename(Path::new(path), Path::new(&format!("{folder}/{other:020}.{end}"))).ok()?;
        }
    }
    Some(())
}
