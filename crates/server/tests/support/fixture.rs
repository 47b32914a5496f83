//! Makes a data directory whose log holds every kind of record and whose snapshot every part a value can have, the same on
//! every machine: what later versions must be able to read. Beside it stands what is in it, as text.
//!
//! A directory that was made once is never made anew: a later version may write other bytes, and those of today stay
//! out there. When there is a new kind of record, it goes into `BEFORE` or `AFTER`, and a new directory is made.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use impel::disk::RealDisk;
use impel::headless::Headless;
use impel_core::check;
use impel_core::id::StreamId;
use impel_core::settings::Settings;
use impel_core::state::keyspace::{State, Value};

/// When it all happens (Unix ms).
const BEGIN_MS: u64 = 1_760_000_000_000;

/// What is done before the snapshot: words between spaces; `+ms` lets time pass.
const BEFORE: &str = "\
SET string value
SET going away EX 100000
APPEND string -more
EXPIRE string 9000000
COPY string copied
RENAME copied renamed
MOVE renamed 1
SELECT 2
SET swapped two
SELECT 3
SET flushed three
FLUSHDB
SWAPDB 2 3
SELECT 0
SET gone soon
DEL gone
XGROUP CREATE made g $ MKSTREAM
XADD s 1-1 item tea amount 1
XADD s 1-2 item coffee amount 2
XADD s 2-0 item tea amount 3
XADD s 3-7 other fields here too
XADD s 4-0 item milk amount 4
XADD s 5-0 item milk amount 5
XADD s 6-0 item rye amount 6
XADD s 7-0 item rye amount 7
XDEL s 3-7
XTRIM s MAXLEN 6
XGROUP CREATE s g 0
XGROUP CREATE s other 2-0 ENTRIESREAD 2
XGROUP CREATE s doomed 0
XGROUP DESTROY s doomed
XGROUP SETID s other 1-2
XGROUP CREATECONSUMER s g idle
XGROUP CREATECONSUMER s g going
XGROUP DELCONSUMER s g going
XREADGROUP GROUP g one COUNT 4 STREAMS s >
+5
XREADGROUP GROUP g two COUNT 9 STREAMS s >
+5
XREADGROUP GROUP g two COUNT 9 STREAMS s >
XCLAIM s g three 0 2-0
XACK s g 1-2
XNACK s g FAIL IDS 1 4-0
XGROUP CFGSET s g MAXPENDING 1000 MAXPENDING-CONSUMER 100
XSETID s 20-0
XADD remembers IDMP producer message * a b
XADD remembers IDMP producer message * a b
XADD kept 1-0 a b
XCFGSET kept MAXLEN 100
XCFGSET kept MAXLEN 5 MAXBYTES 10000
XADD holes 1-0 a b
XADD holes 2-0 a b
XADD holes 3-0 a b
XGROUP CREATE holes g 0
XREADGROUP GROUP g c COUNT 3 STREAMS holes >
XACK holes g 2-0
XTRIM holes MAXLEN 2 ACKED
XADD later NOTBEFORE 1900000000000 1-0 k far
XADD later 2-0 k near
XGROUP CREATE later g 0
XREADGROUP GROUP g c STREAMS later >
XGROUP CREATE lanes g 0 MKSTREAM KEYFIELD k
XADD lanes 1-0 k a
XADD lanes 2-0 k a
XADD lanes 3-0 k b
XREADGROUP GROUP g c COUNT 9 STREAMS lanes >
XGROUP CREATE work g 0 MKSTREAM
XWORK POLICY work g EVIDENCE record WORKFIELD job MAXDELIVERIES 3 DEADLETTER dead LEDGERLEN 4
XADD work 1-0 job a
XADD work 2-0 job b
XADD work 3-0 job c
XADD work 4-0 job d
XADD work 5-0 job e
XREADGROUP GROUP g c COUNT 9 STREAMS work >
XWORK BEGIN work g c 1-0
XWORK DONE work g c 1-0 DIGEST d RECEIPT r
XWORK BEGIN work g c 2-0
XWORK HOLD work g REASON looked IDS 1 3-0
XWORK FAIL work g c 4-0 REASON broken DEAD
XWORK FAIL work g c 5-0 REASON broken DEAD
XWORK REDRIVE dead COUNT 2 PERSEC 1
";

/// What is done behind it.
const AFTER: &str = "\
SET string another
SETRANGE string 2 XX
PERSIST string
XADD s 21-0 item tea amount 8
XADD s 22-0 item tea amount 9
XADD s 23-0 item tea amount 10
XREADGROUP GROUP g four COUNT 3 STREAMS s >
XACK s g RANGE 5-0 6-0
XGROUP DELCONSUMER s g four RELEASE
XDEL s 22-0
XCLAIM s g one 0 22-0
XADD trimmed 1-0 a b
XADD trimmed 2-0 a b
XADD trimmed 3-0 a b
XGROUP CREATE trimmed g 0
XREADGROUP GROUP g c COUNT 3 STREAMS trimmed >
XACK trimmed g 2-0
XTRIM trimmed MAXLEN 2 ACKED
XTRIM trimmed MAXLEN 1 DELREF
XADD scan 1-0 a b
XADD scan 2-0 a b
XADD scan 3-0 a b
XADD scan 4-0 a b
XADD scan 5-0 a b
XADD scan 6-0 a b
XADD scan 7-0 a b
XADD scan 8-0 a b
XADD scan 9-0 a b
XADD scan 10-0 a b
XADD scan 11-0 a b
XADD scan 12-0 a b
XGROUP CREATE scan g 0
XREADGROUP GROUP g c COUNT 12 STREAMS scan >
XAUTOCLAIM scan g d 1000 0-0 COUNT 1
XADD due DELAY 10 1-0 a b
XADD due 2-0 a b
XGROUP CREATE due g 0
XREADGROUP GROUP g c STREAMS due >
+20
XREADGROUP GROUP g c STREAMS due >
XADD due DELAY 10 3-0 a b
+20
XNACK s g FAIL IDS 1 2-0 DELAY 900000000
XADD forgets IDMP p m * a b
XCFGSET forgets IDMP-DURATION 2
XADD forgets IDMP p m * a b
+5000
XADD forgets IDMP p n * a b
+2000
XACK lanes g 1-0
XREADGROUP GROUP g c COUNT 9 STREAMS lanes >
XWORK DONE work g c 2-0 WORK b DIGEST d RECEIPT r EMIT done * job b
XWORK RELEASE work g IDS 1 3-0
XWORK REDRIVE dead COUNT 1 PERSEC 1
XWORK FAIL work g c 4-0 REASON again DEAD
XWORK REDRIVE dead COUNT 9 PERSEC 1
+3000
XWORK POLICY work g LEDGERAGE 1000
+5000
+5000
DEL going
";

/// Makes it in a directory that is empty or not there: `data/` and `expected.txt`.
pub fn make(folder: &Path) {
    let data = folder.join("data");
    assert!(!data.exists(), "{} is there: a fixture is never made anew", data.display());
    let mut settings = Settings::default();
    // One segment, so that the snapshot lets nothing of the log go.
    settings.log_segment_bytes = 64 * 1024;
    let mut server = Headless::start(Arc::new(RealDisk), &data, settings, BEGIN_MS).unwrap();
    play(&mut server, BEFORE);
    assert_eq!(server.line("SAVE"), b"+OK\r\n");
    play(&mut server, AFTER);
    server.settle();
    let expected = expected(server.node().engine().state(), server.node().engine().log.position());
    drop(server);
    fs::write(folder.join("expected.txt"), expected).unwrap();
    fs::remove_file(data.join("lock")).unwrap();
    // Of the last segment only what is in use.
    let last = files(&data.join("log")).pop().unwrap();
    let used = fs::read(&last).unwrap().iter().rposition(|&byte| byte != 0).unwrap() + 1;
    fs::File::options().write(true).open(&last).unwrap().set_len(used as u64).unwrap();
}

fn play(server: &mut Headless, script: &str) {
    for line in script.lines() {
        match line.strip_prefix('+') {
            Some(ms) => server.pass(ms.parse().unwrap()),
            None => {
                let reply = server.line(line);
                assert!(!reply.is_empty() && reply[0] != b'-', "{line}: {}", reply.escape_ascii());
            }
        }
    }
}

/// The files of a folder by name.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// What `expected.txt` says of a state.
pub fn expected(state: &State, position: u64) -> String {
    let mut text = format!("position {position}\ndigest {}\n", check::digest(state).hex());
    for (number, db) in state.databases().iter().enumerate() {
        let mut keys: Vec<_> = db.iter().collect();
        keys.sort_by_key(|(key, _)| *key);
        for (key, slot) in keys {
            let _ = writeln!(text, "\ndatabase {number} key {} expires {}", key.escape_ascii(), slot.expire_ms);
            match &slot.value {
                Value::String(bytes) => drop(writeln!(text, "  string {}", bytes.escape_ascii())),
                Value::Stream(stream) => dump(&mut text, stream),
            }
        }
    }
    text
}

fn dump(text: &mut String, stream: &impel_core::state::stream::Stream) {
    let (last, deleted, added) = (stream.last_id, stream.max_deleted, stream.entries_added);
    let mut retention = Vec::new();
    stream.retention.encode(&mut retention);
    let retention = retention.escape_ascii();
    let _ = writeln!(text, "  stream last {last} deleted {deleted} added {added} retention {retention}");
    for entry in stream.entries.range(StreamId::MIN, StreamId::MAX) {
        let fields = entry.fields().map(|(name, value)| format!(" {}={}", name.escape_ascii(), value.escape_ascii()));
        let _ = writeln!(text, "  entry {}{}", entry.id, fields.collect::<String>());
    }
    for (id, due_ms) in stream.delays().into_iter().flat_map(|delays| delays.range(StreamId::MIN)) {
        let _ = writeln!(text, "  delayed {id} until {due_ms}");
    }
    for (name, group) in &stream.groups {
        let (position, read) = (group.last_delivered, group.entries_read);
        let _ = writeln!(text, "  group {} at {position} read {read:?}", name.escape_ascii());
        for (_, consumer) in group.consumers() {
            let (seen_ms, active_ms, pending) = (consumer.seen_ms, consumer.active_ms, consumer.pending);
            let name = consumer.name.escape_ascii();
            let _ = writeln!(text, "    consumer {name} seen {seen_ms} active {active_ms:?} pending {pending}");
        }
        for pending in group.pel().range(StreamId::MIN) {
            let holder = match pending.is_released() || pending.is_deferred() {
                true => "nobody".to_string(),
                false => group.consumer(pending.consumer).name.escape_ascii().to_string(),
            };
            let (id, at_ms, deliveries) = (pending.id, pending.delivered_ms, pending.deliveries);
            let _ = writeln!(text, "    pending {id} of {holder} at {at_ms} delivered {deliveries}");
        }
        for id in group.held().iter() {
            let _ = writeln!(text, "    held {id}");
        }
    }
}
