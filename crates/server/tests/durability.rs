//! What was acknowledged is there after whatever happens to the process, and a server that cannot write says nothing.

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use support::{Client, IMPEL, Reply, Server, command, free_port, info};

/// Everything that the tests below look at, as text.
fn contents(client: &mut Client) -> String {
    [
        &["XRANGE", "s", "-", "+"][..],
        &["XPENDING", "s", "g"],
        &["XPENDING", "s", "g", "-", "+", "100"],
        &["XINFO", "GROUPS", "s"],
        &["XLEN", "big"],
    ]
    .map(|words| {
        let reply = client.ask(words);
        assert!(!matches!(reply, Reply::Error(_)), "{words:?}: {reply:?}");
        // How long an entry has been idle changes by itself.
        match (words[0], &reply) {
            ("XPENDING", Reply::Array(rows)) if words.len() > 3 => {
                rows.iter().map(|row| format!("{:?} {:?}", row.array()[0], row.array()[3])).collect::<String>()
            }
            _ => format!("{reply:?}"),
        }
    })
    .join("\n")
}

/// Adds, reads for a group, acknowledges.
fn work(client: &mut Client, from: usize) {
    for n in from..from + 10 {
        client.ask(&["XADD", "s", &format!("{n}-1"), "n", &n.to_string()]);
    }
    client.ask(&["XGROUP", "CREATE", "s", "g", "0"]);
    let read = client.ask(&["XREADGROUP", "GROUP", "g", "c", "COUNT", "100", "STREAMS", "s", ">"]);
    assert_eq!(read.array()[0].array()[1].array().len(), 10, "{read:?}");
    assert_eq!(client.ask(&["XACK", "s", "g", &format!("{from}-1"), &format!("{}-1", from + 2)]).int(), 2);
    for n in from..from + 500 {
        client.send(&command(&["XADD", "big", &format!("{n}-5"), "value", &"x".repeat(100)]));
    }
    (0..500).for_each(|_| assert!(matches!(client.reply(), Reply::Bulk(_))));
}

#[test]
fn kill_9_loses_nothing_that_was_acknowledged() {
    for fsync in ["always", "everysec", "no"] {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(folder.path(), &["--appendfsync", fsync]);
        work(&mut server.client(), 1);
        let before = contents(&mut server.client());
        server.kill();
        let server = Server::start(folder.path(), &["--appendfsync", fsync]);
        assert_eq!(contents(&mut server.client()), before, "appendfsync {fsync}");
        // And once more with what is added behind.
        work(&mut server.client(), 1000);
        let before = contents(&mut server.client());
        server.kill();
        let server = Server::start(folder.path(), &[]);
        assert_eq!(contents(&mut server.client()), before, "appendfsync {fsync}");
        server.stop();
    }
}

/// The IDs that a reader of the group gets.
fn given(client: &mut Client, block_ms: &str) -> Vec<String> {
    let read = ["XREADGROUP", "GROUP", "g", "c", "BLOCK", block_ms, "STREAMS", "s", ">"];
    match client.ask(&read) {
        Reply::Null => Vec::new(),
        reply => {
            let entries = reply.array()[0].array()[1].array().iter();
            entries.map(|entry| entry.array()[0].text().to_owned()).collect()
        }
    }
}

/// Delayed entries and such as wait behind their keys, some in a snapshot and all in the log.
#[test]
fn kill_9_loses_nothing_that_a_group_holds() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let mut client = server.client();
    client.ask(&["XGROUP", "CREATE", "s", "g", "0", "MKSTREAM", "KEYFIELD", "k"]);
    client.ask(&["XADD", "s", "NOTBEFORE", "9000000000000", "1-1", "k", "far"]);
    client.ask(&["XADD", "s", "2-1", "k", "a"]);
    client.ask(&["XADD", "s", "3-1", "k", "a"]);
    assert_eq!(given(&mut client, "1"), ["2-1"]);
    assert_eq!(client.ask(&["SAVE"]), Reply::Simple("OK".into()));
    client.ask(&["XADD", "s", "DELAY", "1500", "4-1", "k", "b"]);
    client.ask(&["XADD", "s", "5-1", "k", "a"]);
    client.ask(&["XADD", "s", "6-1", "k", "b"]);
    assert_eq!(given(&mut client, "1"), ["6-1"]);
    client.ask(&["XDEL", "s", "2-1"]);
    let before = contents(&mut client);
    server.kill();
    let server = Server::start(folder.path(), &[]);
    let mut client = server.client();
    assert_eq!(contents(&mut client), before);
    assert_eq!(client.ask(&["XACK", "s", "g", "6-1"]), Reply::Int(1));
    assert_eq!(given(&mut client, "60000"), ["4-1"]);
    assert_eq!(client.ask(&["XACK", "s", "g", "2-1"]), Reply::Int(1));
    assert_eq!(given(&mut client, "1"), ["3-1"]);
    assert_eq!(client.ask(&["XACK", "s", "g", "3-1"]), Reply::Int(1));
    server.kill();
    let server = Server::start(folder.path(), &[]);
    let mut client = server.client();
    assert_eq!(given(&mut client, "1"), ["5-1"]);
    assert!(given(&mut client, "1").is_empty());
    server.stop();
}

fn snapshots(folder: &Path) -> usize {
    fs::read_dir(folder.join("data/snapshots")).unwrap().count()
}

#[test]
fn a_restart_from_a_snapshot_and_the_log_behind_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), &["--save", "1 1", "--log-segment-bytes", "1mb"]);
    work(&mut server.client(), 1);
    server.wait_log("snapshot at position");
    let log = server.log();
    assert!(log.contains("begun"), "{log}");
    server.wait_log("written");
    work(&mut server.client(), 1000);
    let before = contents(&mut server.client());
    server.kill();
    assert!(snapshots(folder.path()) > 0);
    let server = Server::start(folder.path(), &["--save", ""]);
    assert!(server.log().contains("keys from the snapshot"), "{}", server.log());
    assert_eq!(contents(&mut server.client()), before);
    server.stop();
}

/// However much is written to a state that stays small, the log does not grow and a restart reads little.
#[test]
fn the_log_stays_as_long_as_the_settings_say() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["--auto-aof-rewrite-min-size", "1mb", "--log-segment-bytes", "1mb", "--save", ""];
    let mut server = Server::start(folder.path(), &options);
    let mut client = server.client();
    let payload = "x".repeat(100_000);
    for round in 0..20 {
        for _ in 0..10 {
            client.ask(&["XADD", "flood", "MAXLEN", "10", "*", "f", &payload]);
        }
        if round == 0 {
            work(&mut client, 1);
        }
    }
    server.wait_log("written");
    // 20 MB were written. Kept are the log since the last snapshot but one, and what came in while they were taken.
    let log_bytes = |folder: &Path| -> u64 {
        fs::read_dir(folder.join("data/log")).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum()
    };
    let mut waited = 0;
    while log_bytes(folder.path()) > 8 << 20 {
        assert!(waited < 100, "{} bytes of log", log_bytes(folder.path()));
        waited += 1;
        client.ask(&["XADD", "flood", "MAXLEN", "10", "*", "f", &payload]);
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_ne!(info(&mut client, "aof_base_size"), "0");
    let before = contents(&mut client);
    server.kill();
    let server = Server::start(folder.path(), &options);
    assert!(server.log().contains("keys from the snapshot"), "{}", server.log());
    assert_eq!(contents(&mut server.client()), before);
    server.stop();
}

#[test]
fn without_a_log_the_end_is_saved_when_there_are_save_rules() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["--appendonly", "no", "--save", "3600 1"];
    let server = Server::start(folder.path(), &options);
    work(&mut server.client(), 1);
    let before = contents(&mut server.client());
    server.stop();
    assert_eq!(snapshots(folder.path()), 1);
    let server = Server::start(folder.path(), &options);
    assert_eq!(contents(&mut server.client()), before);
    work(&mut server.client(), 1000);
    let before = contents(&mut server.client());
    server.stop();
    // The log goes on from where the snapshots ended.
    let server = Server::start(folder.path(), &["--appendonly", "yes", "--save", ""]);
    assert_eq!(contents(&mut server.client()), before);
    work(&mut server.client(), 2000);
    let before = contents(&mut server.client());
    server.kill();
    let server = Server::start(folder.path(), &[]);
    assert_eq!(contents(&mut server.client()), before);
}

#[test]
fn records_that_nobody_waits_for_are_there_after_a_stop() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let mut client = server.client();
    work(&mut client, 1);
    // Nothing to read: only the time at which the consumer was seen changes.
    assert_eq!(client.ask(&["XREADGROUP", "GROUP", "g", "c", "COUNT", "9", "STREAMS", "s", ">"]), Reply::Null);
    let before = contents(&mut client);
    server.stop();
    let server = Server::start(folder.path(), &[]);
    assert_eq!(contents(&mut server.client()), before);
}

/// A file may not grow beyond a limit: as a full disk, but without a disk to fill.
#[test]
fn a_log_that_cannot_be_written_ends_the_server_without_a_reply() {
    let folder = tempfile::tempdir().unwrap();
    let mut limited = Command::new("sh");
    // 4096 blocks of 512 or 1024 bytes. The signal that comes with the error would end the process before it can speak.
    limited.args(["-c", "trap '' XFSZ; ulimit -f 4096; exec \"$0\" \"$@\"", IMPEL]);
    let mut server = Server::spawn(folder.path(), free_port(), limited, &["--log-segment-bytes", "1mb"]);
    server.wait_ready();
    let mut client = server.client();
    assert_eq!(client.ask(&["XADD", "s", "1-1", "a", "b"]).text(), "1-1");
    let mut other = server.client();
    // Nobody reads this reply, but the entry before it was acknowledged.
    client.send(&command(&["XADD", "s", "2-1", "a", &"x".repeat(8 << 20)]));
    assert!(client.is_closed(), "no reply to what is not stored");
    assert!(other.is_closed());
    assert_eq!(server.wait_end().code(), Some(1));
    assert!(server.log().contains("the log could not be written"), "{}", server.log());
    drop(server);
    let server = Server::start(folder.path(), &[]);
    assert_eq!(server.client().ask(&["XLEN", "s"]), Reply::Int(1));
}

#[test]
fn save_and_bgsave_write_snapshots_and_trim_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--log-segment-bytes", "1mb"]);
    let mut client = server.client();
    let segments = || fs::read_dir(folder.path().join("data/log")).unwrap().count();
    let value = "x".repeat(200_000);
    for round in 0..3 {
        for n in 0..20 {
            // One by one: each is a commit of its own.
            client.ask(&["XADD", "large", &format!("{round}-{}", n + 1), "f", &value]);
        }
        assert!(segments() > 3);
        assert_eq!(client.ask(&["SAVE"]), Reply::Simple("OK".into()));
        assert_eq!(info(&mut client, "rdb_changes_since_last_save"), "0");
    }
    assert_eq!(snapshots(folder.path()), 2, "the newest and one before");
    work(&mut client, 1);
    assert_eq!(client.ask(&["BGSAVE"]).text(), "Background saving started");
    let begun = std::time::Instant::now();
    while info(&mut client, "rdb_bgsave_in_progress") == "1" || snapshots(folder.path()) > 2 {
        assert!(begun.elapsed().as_secs() < 10);
    }
    let before = contents(&mut client);
    let digest = client.ask(&["XLEN", "large"]);
    server.kill();
    let server = Server::start(folder.path(), &[]);
    assert_eq!(contents(&mut server.client()), before);
    assert_eq!(server.client().ask(&["XLEN", "large"]), digest);
    assert!(segments() < 10, "{} segments", segments());
}

#[test]
fn debug_reload_reads_back_the_same() {
    for log in ["yes", "no"] {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(folder.path(), &["--appendonly", log, "--enable-debug-command", "yes"]);
        let mut client = server.client();
        let mut waiting = server.client();
        waiting.send(&command(&["XREAD", "BLOCK", "0", "STREAMS", "later", "$"]));
        for round in 0..3 {
            work(&mut client, 1 + round * 1000);
            let before = (contents(&mut client), client.ask(&["DEBUG", "DIGEST"]));
            assert_eq!(client.ask(&["DEBUG", "RELOAD"]), Reply::Simple("OK".into()));
            assert_eq!((contents(&mut client), client.ask(&["DEBUG", "DIGEST"])), before, "appendonly {log}");
        }
        client.ask(&["XADD", "later", "1-1", "a", "b"]);
        assert_eq!(waiting.reply().array().len(), 1, "who waits goes on waiting");
        let before = contents(&mut client);
        if log == "yes" {
            server.kill();
        } else {
            client.send(&command(&["SHUTDOWN", "SAVE"]));
            assert!(client.is_closed());
            let mut server = server;
            assert_eq!(server.wait_end().code(), Some(0));
        }
        let server = Server::start(folder.path(), &["--appendonly", log]);
        assert_eq!(contents(&mut server.client()), before, "appendonly {log}");
    }
}

#[test]
fn waitaof_tells_when_it_is_on_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--appendfsync", "no"]);
    let mut client = server.client();
    client.ask(&["XADD", "s", "1-1", "a", "b"]);
    assert_eq!(client.ask(&["WAITAOF", "1", "0", "0"]), Reply::Array(vec![Reply::Int(1), Reply::Int(0)]));
    assert_eq!(info(&mut client, "aof_last_write_status"), "ok");
}

#[test]
fn shutdown_nosave_keeps_what_the_log_has_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["--appendonly", "no", "--save", "3600 1"];
    let mut server = Server::start(folder.path(), &options);
    let mut client = server.client();
    client.ask(&["XADD", "s", "1-1", "a", "b"]);
    client.send(&command(&["SHUTDOWN", "NOSAVE"]));
    assert!(client.is_closed());
    assert_eq!(server.wait_end().code(), Some(0));
    drop(server);
    let server = Server::start(folder.path(), &options);
    assert_eq!(server.client().ask(&["XLEN", "s"]), Reply::Int(0));
}

fn segments(folder: &Path) -> Vec<std::path::PathBuf> {
    let Ok(entries) = fs::read_dir(folder.join("data/log")) else { return Vec::new() };
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// The log had been durable up to the snapshot: one that ends earlier is no torn end.
#[test]
fn a_log_that_ends_before_the_snapshot_is_not_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let mut client = server.client();
    let add = |client: &mut Client, count: usize| {
        (0..count).for_each(|_| drop(client.ask(&["XADD", "s", "*", "field", &"x".repeat(100)])));
    };
    add(&mut client, 100);
    assert_eq!(client.ask(&["SAVE"]), Reply::Simple("OK".into()));
    add(&mut client, 50);
    server.kill();
    let last = segments(folder.path()).pop().unwrap();
    fs::OpenOptions::new().write(true).open(&last).unwrap().set_len(8192).unwrap();
    for log in ["yes", "no"] {
        let mut server = Server::spawn(folder.path(), free_port(), Command::new(IMPEL), &["--appendonly", log]);
        assert_ne!(server.wait_end().code(), Some(0));
        let text = server.log();
        for part in ["recovery row P", "bytes of it are missing", "move all segments to another directory"] {
            assert!(text.contains(part), "{text}");
        }
    }
    // The way out.
    fs::remove_file(last).unwrap();
    let server = Server::start(folder.path(), &[]);
    assert_eq!(server.client().ask(&["XLEN", "s"]), Reply::Int(100));
    assert!(warnings(&server).contains("there is no log, though one was kept"), "{}", server.log());
}

/// Warnings, but for what the machine's limits cause.
fn warnings(server: &Server) -> String {
    server.log().lines().filter(|line| line.contains(" warning ") && !line.contains("maxclients")).collect()
}

#[test]
fn a_server_without_a_log_makes_no_segments_and_warns_of_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["--appendonly", "no", "--save", "3600 1"];
    for round in 0..3 {
        let server = Server::start(folder.path(), &options);
        work(&mut server.client(), 1 + round * 1000);
        assert!(segments(folder.path()).is_empty());
        assert_eq!(warnings(&server), "");
        server.stop();
    }
    // With the log on, then off: what is there stays, and the snapshot goes beyond it.
    let server = Server::start(folder.path(), &[]);
    work(&mut server.client(), 4000);
    server.stop();
    let before: Vec<_> = segments(folder.path()).iter().map(|path| fs::read(path).unwrap()).collect();
    let server = Server::start(folder.path(), &options);
    work(&mut server.client(), 5000);
    let contents_before = contents(&mut server.client());
    server.stop();
    let after: Vec<_> = segments(folder.path()).iter().map(|path| fs::read(path).unwrap()).collect();
    assert!(!before.is_empty() && after == before);
    for appendonly in ["no", "yes"] {
        let server = Server::start(folder.path(), &["--appendonly", appendonly]);
        assert_eq!(contents(&mut server.client()), contents_before);
        assert_eq!(warnings(&server), "");
        server.kill();
    }
}

#[test]
fn no_room_for_a_segment_names_its_setting() {
    let folder = tempfile::tempdir().unwrap();
    // A limit on the size of files, as a full disk says it: no.
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 1000; exec \"$0\" \"$@\"", IMPEL]);
    let mut server = Server::spawn(folder.path(), free_port(), limited, &[]);
    assert_ne!(server.wait_end().code(), Some(0));
    assert!(server.log().contains("log-segment-bytes"), "{}", server.log());
}
