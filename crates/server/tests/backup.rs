//! `impel backup` and `impel restore` as their users run them: beside a server that writes, takes snapshots and lets its log go.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use support::{IMPEL, Server, free_port, info};

/// Exit code and everything that was printed.
fn impel(words: &[&str]) -> (i32, String) {
    let output = Command::new(IMPEL).args(words).output().unwrap();
    let printed = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(printed).unwrap())
}

fn done(words: &[&str]) -> String {
    let (code, printed) = impel(words);
    assert_eq!(code, 0, "{words:?}: {printed}");
    printed
}

fn refused(words: &[&str], code: i32, why: &str) {
    let (found, printed) = impel(words);
    assert!(found == code && printed.contains(why), "{words:?}: {found} {printed}");
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Length of `s` and its greatest number, in a server on a directory.
fn entries(data: &Path) -> (u64, u64) {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--dir", text(data)]);
    let mut client = server.client();
    let len = client.ask(&["XLEN", "s"]).int() as u64;
    let newest = format!("{:?}", client.ask(&["XREVRANGE", "s", "+", "-", "COUNT", "1"]));
    let digits: String = newest.split("n=").last().unwrap().chars().take_while(char::is_ascii_digit).collect();
    server.stop();
    (len, digits.parse().unwrap())
}

#[test]
fn a_copy_made_while_a_server_works_holds_everything_that_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    // A snapshot for each megabyte, so that files come and go while they are copied.
    let options =
        ["--auto-aof-rewrite-min-size", "1mb", "--auto-aof-rewrite-percentage", "1", "--log-segment-bytes", "1mb"];
    let server = Server::start(folder.path(), &options);
    let data = folder.path().join("data");
    let copy = folder.path().join("copy");
    let (acknowledged, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let padding = "x".repeat(10_000);
    let mut client = server.client();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut n = 0;
            while !is_over.load(Ordering::Relaxed) {
                n += 1;
                client.ask(&["XADD", "s", "*", "number", &format!("n={n}"), "padding", &padding]);
                acknowledged.store(n, Ordering::Release);
            }
        });
        // Whatever fails, the writer must be told, or the scope never ends.
        let result = std::panic::catch_unwind(|| {
            for round in 0..6 {
                while acknowledged.load(Ordering::Acquire) < round * 150 {
                    thread::sleep(Duration::from_millis(5));
                }
                let before = acknowledged.load(Ordering::Acquire);
                done(&["backup", text(&data), text(&copy)]);
                let page = done(&["check", text(&copy)]);
                assert!(page.contains(": whole"), "{page}");
                if round % 2 == 1 {
                    let new = folder.path().join(format!("new{round}"));
                    done(&["restore", text(&copy), text(&new)]);
                    let (len, greatest) = entries(&new);
                    assert!(
                        len >= before && len == greatest,
                        "{len} entries up to {greatest}, acknowledged were {before}"
                    );
                }
            }
        });
        is_over.store(true, Ordering::Relaxed);
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    });
    assert!(server.log().matches("written,").count() > 2, "it took snapshots meanwhile: {}", server.log());
    // The server ends without a word, and is copied as it lies there.
    drop(client);
    let end = acknowledged.load(Ordering::Acquire);
    server.stop();
    done(&["backup", text(&data), text(&copy)]);
    assert!(done(&["backup", text(&data), text(&copy)]).contains("copied 0 bytes"), "it has everything");
    let before: Vec<PathBuf> = snapshots(&copy);
    done(&["backup", text(&data), text(&copy), "--retention", "0"]);
    assert!(before.len() > 2 && snapshots(&copy).len() == 2, "{before:?}");
    // The copy is a data directory itself.
    assert_eq!(entries(&copy), (end, end));
    // What has been written to cannot go on as a copy.
    let server = Server::start(folder.path(), &["--dir", text(&copy)]);
    server.client().ask(&["XADD", "s", "*", "number", "n=0"]);
    server.stop();
    refused(&["backup", text(&data), text(&copy)], 2, "not from the server that is copied now");
}

fn snapshots(data: &Path) -> Vec<PathBuf> {
    fs::read_dir(data.join("snapshots")).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn any_moment_that_the_log_reaches_back_to_can_be_restored() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["--log-retention", "3600", "--log-segment-bytes", "1mb"];
    let server = Server::start(folder.path(), &options);
    let data = folder.path().join("data");
    let copy = folder.path().join("copy");
    let mut client = server.client();
    let mut moments = Vec::new();
    for round in 1..=6 {
        for n in 0..20 {
            client.ask(&["XADD", "s", "*", "number", &format!("n={}", round * 20 - 19 + n)]);
        }
        // The commit may be stamped as late as the moment at which the reply leaves.
        thread::sleep(Duration::from_millis(5));
        let time = client.ask(&["TIME"]);
        let time = format!("{}.{:0>6}", time.array()[0].text(), time.array()[1].text());
        moments.push((time, info(&mut client, "log_position"), round * 20));
        thread::sleep(Duration::from_millis(5));
        if round % 2 == 0 {
            client.ask(&["SAVE"]);
        }
    }
    done(&["backup", text(&data), text(&copy)]);
    server.stop();
    assert_eq!(snapshots(&data).len(), 3, "of the first hour all that are a quarter of it apart, and the newest two");
    for (index, (time, position, len)) in moments.iter().enumerate() {
        let from = if index % 2 == 0 { &data } else { &copy };
        for (option, value) in [("--at", time), ("--position", position)] {
            let new = folder.path().join(format!("{index}{option}"));
            let printed = done(&["restore", text(from), text(&new), option, value]);
            assert!(printed.contains("restored from"), "{printed}");
            assert_eq!(entries(&new), (*len, *len), "{option} {value}: {printed}");
            assert!(done(&["check", text(&new)]).contains(": whole"));
        }
    }
    let new = folder.path().join("new");
    let printed = done(&["restore", text(&data), text(&new), "--at", "2099-01-01"]);
    assert!(printed.contains("the end of what is there"), "{printed}");
    refused(&["restore", text(&data), text(&new)], 64, "is not empty");
    refused(&["restore", text(&data), text(&data.join("new"))], 64, "is inside");
    let other = folder.path().join("other");
    for (words, why) in [
        (vec!["--at", "yesterday"], "--at wants a time in UTC"),
        (vec!["--position", "-1"], "--position wants a number"),
        (vec!["--position", "1", "--at", "1"], "one moment at a time"),
        (vec!["--when", "1"], "there is no option --when"),
        (vec!["third"], "two directories are wanted"),
    ] {
        refused(&[&["restore", text(&data), text(&other)], &words[..]].concat(), 64, why);
    }
    assert!(!other.exists());
    // Once the beginning of the log is gone, the past begins with the oldest snapshot.
    fs::remove_file(fs::read_dir(copy.join("log")).unwrap().map(|entry| entry.unwrap().path()).min().unwrap()).unwrap();
    refused(&["restore", text(&copy), text(&other), "--at", "2001-01-01"], 2, "it begins with the snapshot of 20");
    assert!(!other.exists(), "nothing is made of nothing");
    refused(&["backup", text(&folder.path().join("nowhere")), text(&other)], 64, "is no data directory");
    refused(&["backup", text(&data), text(&data.join("copy"))], 64, "is inside");
    refused(&["backup", text(&data)], 64, "two directories are wanted");
    refused(&["backup", text(&data), text(&other), "--retention", "long"], 64, "--retention wants a number of seconds");
}

/// What the server has let go between two copies is missing in the second, which says so and is whole otherwise.
#[test]
fn a_gap_between_copies_is_told_and_harms_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--log-segment-bytes", "1mb"]);
    let (data, copy) = (folder.path().join("data"), folder.path().join("copy"));
    let mut client = server.client();
    let padding = "x".repeat(100_000);
    let mut add = |from: u64| {
        for n in from..from + 25 {
            client.ask(&["XADD", "s", "*", "number", &format!("n={n}"), "padding", &padding]);
        }
    };
    add(1);
    done(&["backup", text(&data), text(&copy)]);
    for from in [26, 51, 76] {
        add(from);
        server.client().ask(&["SAVE"]);
    }
    let printed = done(&["backup", text(&data), text(&copy)]);
    assert!(printed.contains("the server had let go of log positions"), "{printed}");
    let page = done(&["check", text(&copy)]);
    assert!(page.contains(": whole") && page.contains("were never here"), "{page}");
    server.stop();
    assert_eq!(entries(&copy), (100, 100));
    let new = folder.path().join("new");
    let early = info_position(&copy);
    done(&["restore", text(&copy), text(&new), "--position", &early.to_string()]);
    assert_eq!(entries(&new).0, 25, "before the gap");
    let in_the_gap = (early + 100_000).to_string();
    refused(
        &["restore", text(&copy), text(&folder.path().join("other")), "--position", &in_the_gap],
        2,
        "the server had let go of the log before `impel backup` copied it",
    );
}

/// What a server did while it kept no log is in its snapshots alone.
#[test]
fn a_time_without_a_log_is_told_from_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let run = |appendonly: &str, from: u64| {
        let server =
            Server::start(folder.path(), &["--appendonly", appendonly, "--save", "", "--log-retention", "3600"]);
        write(&server, from, from + 9);
        let mut client = server.client();
        thread::sleep(Duration::from_millis(5));
        let time = client.ask(&["TIME"]);
        let time = format!("{}.{:0>6}", time.array()[0].text(), time.array()[1].text());
        thread::sleep(Duration::from_millis(5));
        client.ask(&["SAVE"]);
        server.stop();
        time
    };
    let times = [run("yes", 1), run("no", 11), run("no", 21), run("yes", 31)];
    let restore = |name: &str, time: &str| {
        let new = folder.path().join(name);
        (impel(&["restore", text(&data), text(&new), "--at", time]), new)
    };
    for at in [1, 2] {
        let ((code, printed), _) = restore("gap", &times[at]);
        assert!(code == 2 && printed.contains("nothing was logged (the server ran with appendonly no)"), "{printed}");
        // What is named can be had.
        let nearest = printed.rsplit("or then ").next().unwrap().split(' ').next().unwrap();
        let ((code, printed), new) = restore(&format!("named{at}"), nearest);
        assert_eq!((code, entries(&new).0), (0, at as u64 * 10 + 10), "{nearest}: {printed}");
    }
    let ((code, _), new) = restore("logged", &times[3]);
    assert_eq!((code, entries(&new).0), (0, 40));
}

/// Files that are no files of a data directory by their length alone, and what is said to it.
#[test]
fn a_huge_file_is_named_and_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    write(&server, 1, 10);
    let data = folder.path().join("data");
    server.stop();
    let segment = fs::read_dir(data.join("log")).unwrap().next().unwrap().unwrap().path();
    let (copy, new) = (folder.path().join("copy"), folder.path().join("new"));
    let file = fs::OpenOptions::new().write(true).open(&segment).unwrap();
    let len_bytes = file.metadata().unwrap().len();
    file.set_len(2 << 40).unwrap();
    let why = format!("{}: it is 2199023255552 bytes long", segment.display());
    refused(&["check", text(&data)], 2, &why);
    refused(&["backup", text(&data), text(&copy)], 2, &why);
    refused(&["restore", text(&data), text(&new)], 2, &why);
    refused(&["--dir", text(&data), "--bind", "127.0.0.1", "--port", &free_port().to_string()], 1, &why);
    file.set_len(len_bytes).unwrap();
    assert_eq!(entries(&data), (10, 10));
    let identity = fs::OpenOptions::new().write(true).open(data.join("identity")).unwrap();
    identity.set_len(2 << 40).unwrap();
    refused(&["backup", text(&data), text(&copy)], 2, "identity: it is 2199023255552 bytes long");
    let config = folder.path().join("huge.conf");
    fs::File::create(&config).unwrap().set_len(2 << 40).unwrap();
    refused(&[text(&config)], 1, "huge.conf: it is longer than 67108864 bytes");
    refused(&["--aclfile", text(&config)], 1, "cannot read the file of users (aclfile)");
}

#[test]
fn words_that_are_no_command_line() {
    refused(&["chekc", "x"], 64, "there is no command chekc, and no configuration file of that name; is check meant?");
    refused(&["check", ""], 64, "an empty path was given for DIR");
    refused(&["check", "x", "--repair", ""], 64, "an empty path was given for NEWDIR");
    refused(&["backup", "", "x"], 64, "an empty path was given for DIR");
    refused(&["restore", "x", ""], 64, "an empty path was given for NEWDIR");
    refused(&[""], 64, "an empty word");
}

/// Where the log before the gap ends, as `impel check` tells.
fn info_position(copy: &Path) -> u64 {
    let page = done(&["check", text(copy)]);
    let line = page.lines().find(|line| line.contains("were never here")).unwrap();
    line.trim().split(' ').nth(1).unwrap().parse().unwrap()
}

fn write(server: &Server, from: u64, to: u64) {
    let mut client = server.client();
    for n in from..=to {
        client.ask(&["XADD", "s", "*", "number", &format!("n={n}")]);
    }
}

/// A copy is of one history: not of two servers, nor of what a restored one has done instead.
#[test]
fn the_copy_of_one_server_takes_nothing_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let of = |name: &str| folder.path().join(name);
    let on = |data: &Path| Server::start(folder.path(), &["--dir", text(data), "--log-segment-bytes", "1mb"]);
    let (first, new, copy) = (of("first"), of("new"), of("copy"));
    let server = on(&first);
    write(&server, 1, 100);
    let position = info(&mut server.client(), "log_position");
    write(&server, 101, 200);
    done(&["backup", text(&first), text(&copy)]);
    server.stop();
    done(&["restore", text(&first), text(&new), "--position", &position]);
    assert!(!of("new.unfinished").exists());
    let server = on(&new);
    write(&server, 101, 400);
    refused(&["backup", text(&new), text(&copy)], 2, "not from the server that is copied now");
    server.stop();
    // The same where nothing tells the directories apart but what is in them.
    for data in [&first, &new] {
        fs::remove_file(data.join("identity")).unwrap();
    }
    fs::remove_file(copy.join("backup-of")).unwrap();
    refused(&["backup", text(&new), text(&copy)], 2, "not from the server that is copied now");
    assert_eq!(entries(&copy), (200, 200));
    let other = of("other");
    let server = on(&other);
    write(&server, 1, 10);
    server.stop();
    refused(&["backup", text(&other), text(&copy)], 2, "not from the server that is copied now");
}

/// What a start would refuse is not made into something that it takes.
#[test]
fn damage_is_not_copied() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--log-segment-bytes", "1mb"]);
    let (data, copy) = (folder.path().join("data"), folder.path().join("copy"));
    write(&server, 1, 100);
    server.stop();
    let segment = data.join("log/00000000000000000000.log");
    let mut bytes = fs::read(&segment).unwrap();
    bytes[5500] ^= 1;
    fs::write(&segment, &bytes).unwrap();
    let (code, _) = impel(&["check", text(&data)]);
    assert_eq!(code, 2);
    refused(&["backup", text(&data), text(&copy)], 2, "is damaged at byte");
    bytes[5500] ^= 1;
    fs::write(&segment, &bytes).unwrap();
    done(&["backup", text(&data), text(&copy)]);
    // A file that a start does not read misleads nobody.
    let server = Server::start(folder.path(), &["--log-segment-bytes", "1mb"]);
    let padding = "x".repeat(100_000);
    for _ in 0..30 {
        server.client().ask(&["XADD", "s", "*", "padding", &padding]);
    }
    server.client().ask(&["SAVE"]);
    server.stop();
    let state = |page: String| page.lines().find(|line| line.starts_with("State at")).unwrap().to_owned();
    let before = state(done(&["check", text(&data)]));
    fs::write(data.join("log/00000000000000000007.log"), b"ten bytes.").unwrap();
    let (code, page) = impel(&["check", text(&data)]);
    assert_eq!((code, state(page)), (1, before));
}

/// While no log is kept positions go on all the same: nothing is missing there.
#[test]
fn a_time_without_a_log_is_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut written = 0;
    for appendonly in ["yes", "no", "yes"] {
        let server = Server::start(folder.path(), &["--appendonly", appendonly]);
        write(&server, written + 1, written + 10);
        written += 10;
        if appendonly == "no" {
            server.client().ask(&["SAVE"]);
            server.client().ask(&["SAVE"]);
        }
        server.stop();
        let page = done(&["check", text(&data)]);
        assert!(page.contains(": whole"), "{page}");
    }
    assert_eq!(entries(&data), (30, 30));
}
