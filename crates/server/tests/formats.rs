//! Data of earlier versions stay readable for ever: each directory in `fixtures/` holds some, and what is in it.
//!
//! A directory is named `format-N`, N being the version in the headers of segments and snapshots; a letter behind it tells of
//! one made later, when records had been added to the same format. What is in `fixtures/` is never changed.

#[path = "support/fixture.rs"]
mod fixture;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use impel::check::{Verdict, examine};
use impel::disk::{DataDir, RealDisk};
use impel::headless::Headless;
use impel::log::inspect::{self, Piece, Segment};
use impel_core::record::{Record, TAGS};
use impel_core::settings::Settings;
use impel_core::state::codec::Reader;

/// How a new one is made.
const MAKE: &str = "cargo run -p impel --example make_fixture -- crates/server/tests/fixtures/format-";

fn fixtures() -> Vec<PathBuf> {
    let found = fixture::files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures"));
    assert!(!found.is_empty());
    found
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for path in fixture::files(from) {
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

fn look(data: &Path) -> Arc<DataDir> {
    DataDir::look(Arc::new(RealDisk), data).unwrap().0
}

/// Tags of all records in a log.
fn tags(data: &Path) -> BTreeSet<u8> {
    let dir = look(data);
    let mut found = BTreeSet::new();
    for start in inspect::starts(&dir).unwrap() {
        for piece in Segment::read(&dir, start, Vec::new()).unwrap().pieces() {
            let Piece::Frame { payload, .. } = piece else { panic!("{} is damaged", data.display()) };
            let mut reader = Reader::new(payload);
            while let Some(&tag) = reader.rest.first() {
                found.insert(tag);
                Record::decode(&mut reader).unwrap();
            }
        }
    }
    found
}

fn missing(tags: &BTreeSet<u8>) -> Vec<&'static str> {
    TAGS.iter().filter(|(tag, _)| !tags.contains(tag)).map(|(_, name)| *name).collect()
}

fn check_holds(data: &Path, expected: &str) {
    let (dir, holder) = DataDir::look(Arc::new(RealDisk), data).unwrap();
    let report = examine(&dir, holder, "", &mut |_| {}).unwrap();
    assert_eq!(report.verdict(), Verdict::Whole, "{report:?}");
    assert!(report.older.is_some(), "the whole log is there, too");
    assert_eq!(expected.lines().nth(1).unwrap(), format!("digest {}", report.state.digest));
}

#[test]
fn a_start_and_a_check_read_what_earlier_versions_wrote() {
    for path in fixtures() {
        let expected = fs::read_to_string(path.join("expected.txt")).unwrap();
        check_holds(&path.join("data"), &expected);
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        copy(&path.join("data"), &data);
        for log in [false, true] {
            let mut settings = Settings::default();
            settings.appendonly = log;
            let server = Headless::start(Arc::new(RealDisk), &data, settings, 0).unwrap();
            let position = expected.lines().next().unwrap().strip_prefix("position ").unwrap().parse().unwrap();
            let found = fixture::expected(server.node().engine().state(), position);
            assert_eq!(found, expected, "{}, log {log}", path.display());
        }
        // The binary as it is shipped, without writing to what it reads.
        let output = Command::new(env!("CARGO_BIN_EXE_impel")).arg("check").arg(path.join("data")).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
        assert_eq!(fixture::files(&path.join("data")).len(), 2);
    }
}

#[test]
fn the_format_that_is_written_has_a_fixture() {
    for format in [impel::log::FORMAT, impel::snapshots::FORMAT] {
        let name = format!("format-{format}");
        let is_there = fixtures().iter().any(|path| path.file_name().unwrap().to_string_lossy() == name);
        assert!(is_there, "format {format} is written and no fixture holds it: {MAKE}{format}");
    }
    for path in fixtures() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let version =
            name.strip_prefix("format-").unwrap_or("").trim_end_matches(|letter: char| letter.is_ascii_lowercase());
        assert!(version.parse::<u32>().is_ok(), "{name}");
    }
}

#[test]
fn every_kind_of_record_is_in_a_fixture() {
    let all = fixtures().iter().flat_map(|path| tags(&path.join("data"))).collect();
    let none: Vec<&str> = Vec::new();
    assert_eq!(
        missing(&all),
        none,
        "no fixture holds these: add them to tests/support/fixture.rs and make one: {MAKE}N"
    );
}

/// What makes them works, and knows every record.
#[test]
fn a_new_fixture_can_be_made() {
    let folder = tempfile::tempdir().unwrap();
    fixture::make(folder.path());
    let none: Vec<&str> = Vec::new();
    assert_eq!(missing(&tags(&folder.path().join("data"))), none, "add these to tests/support/fixture.rs");
    check_holds(&folder.path().join("data"), &fs::read_to_string(folder.path().join("expected.txt")).unwrap());
    let bytes: u64 = ["log", "snapshots"]
        .iter()
        .flat_map(|name| fixture::files(&folder.path().join("data").join(name)))
        .map(|path| path.metadata().unwrap().len())
        .sum();
    assert!(bytes < 100_000, "{bytes} bytes: they are kept for ever");
}
