//! `impel check` as its users run it: exit codes, what it prints, what it leaves alone.

mod support;

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use support::{IMPEL, Reply, Server};

/// Exit code, standard output and standard error.
fn check(words: &[&Path]) -> (i32, String, String) {
    let output = Command::new(IMPEL).arg("check").args(words).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Every file below a folder with its bytes.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            found.push((path.clone(), fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

fn fill(server: &Server) {
    let mut client = server.client();
    client.ask(&["XGROUP", "CREATE", "s", "g", "0", "MKSTREAM"]);
    for n in 1..=200 {
        client.ask(&["XADD", "s", &format!("{n}-1"), "value", &"x".repeat(100)]);
        if n == 100 {
            assert_eq!(client.ask(&["SAVE"]), Reply::Simple("OK".into()));
        }
    }
    client.ask(&["XREADGROUP", "GROUP", "g", "c", "COUNT", "50", "STREAMS", "s", ">"]);
}

/// The last of the words behind `digest` in a page.
fn digest(page: &str) -> &str {
    page.lines().filter_map(|line| line.trim().strip_prefix("digest ")).next_back().unwrap()
}

#[test]
fn what_a_server_left_is_whole_and_has_the_digest_that_it_shows() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = Server::start(folder.path(), &["--enable-debug-command", "yes"]);
    fill(&server);
    let shown = server.client().ask(&["DEBUG", "DIGEST"]);
    // While it works.
    let (code, page, _) = check(&[&data]);
    assert!(code == 0 && page.contains("A SERVER WORKS IN IT") && page.contains("200 entries"), "{code} {page}");
    let (code, _, error) = check(&[&data, Path::new("--repair"), &folder.path().join("new")]);
    assert!(code == 2 && error.contains("a server works in this directory"), "{code} {error}");
    assert!(!folder.path().join("new").exists());
    server.stop();
    let before = contents(&data);
    let (code, page, error) = check(&[&data]);
    assert_eq!((code, error.as_str()), (0, ""), "{page}");
    for part in [
        ": whole",
        "no server works",
        "50 pending",
        "recovery row B",
        "every invariant holds",
        "the same from position 0",
    ] {
        assert!(page.contains(part), "{part:?} in {page}");
    }
    assert_eq!(Reply::Simple(digest(&page).into()), shown);
    assert!(page.lines().count() < 40);
    let (code, json, _) = check(&[&data, Path::new("--json")]);
    assert!(code == 0 && json.contains("\"verdict\":\"whole\"") && json.contains(digest(&page)), "{json}");
    assert!(contents(&data) == before, "a check changes nothing");
}

#[test]
fn a_repaired_directory_is_whole_and_serves() {
    let folder = tempfile::tempdir().unwrap();
    let (data, new) = (folder.path().join("data"), folder.path().join("new/data"));
    let server = Server::start(folder.path(), &[]);
    fill(&server);
    server.stop();
    let segment = fs::read_dir(data.join("log")).unwrap().next().unwrap().unwrap().path();
    let bytes = fs::read(&segment).unwrap();
    let last = bytes.iter().rposition(|&byte| byte != 0).unwrap();
    // In the middle of what came after the snapshot.
    let at = (last - 6000) as u64;
    fs::File::options().write(true).open(&segment).unwrap().write_all_at(b"damage", at).unwrap();
    let before = contents(&data);
    let (code, page, _) = check(&[&data]);
    assert_eq!(code, 2);
    for part in ["WOULD REFUSE", "recovery row D", "are lost", "written between", "impel check DIR --repair NEWDIR"] {
        assert!(page.contains(part), "{part:?} in {page}");
    }
    let (code, page, error) = check(&[&data, Path::new("--repair"), &new]);
    assert_eq!((code, error.as_str()), (1, ""), "{page}");
    assert!(page.contains("something is LOST") && page.contains("lost: "), "{page}");
    assert!(contents(&data) == before, "a repair changes nothing in the old directory");
    let (code, again, _) = check(&[&new]);
    assert_eq!((code, digest(&again)), (0, digest(&page)), "{again}");
    let server = Server::start(&folder.path().join("new"), &[]);
    let len = server.client().ask(&["XLEN", "s"]).int();
    assert!((197..200).contains(&len), "{len} of 200 entries");
    assert!(!server.client().ask(&["XADD", "s", "*", "a", "b"]).text().is_empty());
    server.stop();
    assert_eq!(check(&[&new]).0, 0);
    // Nothing is ever written over.
    let (code, _, error) = check(&[&data, Path::new("--repair"), &new]);
    assert!(code == 64 && error.contains("is not empty"), "{error}");
}

#[test]
fn a_torn_end_is_damage_that_a_start_goes_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = Server::start(folder.path(), &[]);
    fill(&server);
    server.stop();
    let segment = fs::read_dir(data.join("log")).unwrap().next().unwrap().unwrap().path();
    let last = fs::read(&segment).unwrap().iter().rposition(|&byte| byte != 0).unwrap() as u64;
    fs::File::options().write(true).open(&segment).unwrap().write_all_at(&[0xee; 5], last - 4).unwrap();
    let (code, page, _) = check(&[&data]);
    assert!(code == 1 && page.contains("recovery row C") && page.contains("cuts off"), "{code} {page}");
    let server = Server::start(folder.path(), &[]);
    server.stop();
    assert_eq!(check(&[&data]).0, 0);
}

#[test]
fn a_command_line_that_is_wrong_is_code_64() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fs::create_dir_all(data.join("log")).unwrap();
    let inside = data.join("log/new");
    let repair = Path::new("--repair");
    let cases: [&[&Path]; 7] = [
        &[],
        &[Path::new("--no-such-option")],
        &[folder.path()],
        &[&data, &data],
        &[&data, repair],
        &[&data, repair, &inside],
        &[&data, repair, &data],
    ];
    for words in cases {
        let (code, page, error) = check(words);
        assert_eq!((code, page.as_str(), error.lines().count()), (64, "", 1), "{words:?}: {error}");
    }
    let (code, help, _) = check(&[Path::new("--help")]);
    assert!(code == 0 && help.contains("--repair NEWDIR") && help.contains("Exit codes"), "{help}");
    let output = Command::new(IMPEL).arg("--help").output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("impel check --help"));
    // A configuration file of that name can still be given.
    fs::write(folder.path().join("check"), "no-such-setting 1\n").unwrap();
    let output = Command::new(IMPEL).arg("./check").current_dir(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("./check:1"));
}

#[test]
fn a_server_under_load_is_never_called_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = Server::start(folder.path(), &["--log-segment-bytes", "1mb"]);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = server.client();
            let mut n = 0;
            while !is_over.load(Ordering::SeqCst) {
                n += 1;
                client.ask(&["XADD", "s", "MAXLEN", "100", &format!("{n}-1"), "value", &"x".repeat(n * 37 % 20_000)]);
                if n % 300 == 0 {
                    client.ask(&["SAVE"]);
                }
            }
        });
        for round in 0..15 {
            let (code, page, error) = check(&[&data]);
            is_over.fetch_or(code != 0 || round == 14, Ordering::SeqCst);
            assert_eq!(code, 0, "round {round}: {page}{error}");
        }
    });
    server.stop();
    assert_eq!(check(&[&data]).0, 0);
}
