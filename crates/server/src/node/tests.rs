//! The node with a log and a snapshot writer that are only imagined: what leaves when, and in which order.

use std::cell::Cell;

use impel_core::engine::facts::Host;
use impel_core::settings::SaveRule;

use super::*;

#[derive(Default)]
struct World {
    now_ms: Cell<u64>,
    saving: Cell<SavingFacts>,
}

impl Host for World {
    fn info(&self, _section: &str, _out: &mut Vec<u8>) {}

    fn saving(&self) -> SavingFacts {
        self.saving.get()
    }

    fn random(&self, _bytes: &mut [u8]) {}

    fn read_acl_file(&self, _: &str) -> Result<Vec<u8>, String> {
        Err("there are no files here".into())
    }

    fn write_acl_file(&self, _: &str, _: &[u8]) -> Result<(), String> {
        Err("there are no files here".into())
    }
}

impl World {
    fn with<T>(&self, act: impl FnOnce(&Facts<'_>) -> T) -> T {
        let now_ms = self.now_ms.get();
        act(&Facts { now_ms, now_us: now_ms * 1000, used_memory: 0, elapsed_us: &|| 0, host: self })
    }
}

fn node(options: &[(&str, &str)], log: bool) -> (Node, World, ClientIndex) {
    let mut settings = Settings::default();
    for (name, value) in options {
        let words: Vec<&str> = value.split(' ').collect();
        settings.apply(name.as_bytes(), &words).unwrap();
    }
    let mut node = Node::new(settings, 1);
    node.restored(100, Newest::default(), log, 1000);
    let world = World::default();
    world.now_ms.set(1000);
    let client = node.on_open("127.0.0.1:1".into(), "127.0.0.1:2".into(), 1000);
    (node, world, client)
}

/// Turns until no more is held back; what they ask for together.
fn end_turn(node: &mut Node, world: &World) -> Turn {
    world.saving.set(node.saving());
    let mut turn = world.with(|facts| node.end_turn(facts));
    if turn.commit.is_none() && turn.again {
        let next = world.with(|facts| node.end_turn(facts));
        turn.snapshot.extend(next.snapshot);
        turn.requests.extend(next.requests);
        (turn.commit, turn.deadline_ms, turn.again) = (next.commit, next.deadline_ms, next.again);
    }
    turn
}

fn send(node: &mut Node, world: &World, client: ClientIndex, bytes: &str) {
    world.with(|facts| node.on_bytes(client, bytes.as_bytes(), facts));
}

fn received(node: &mut Node, client: ClientIndex) -> String {
    let bytes = node.output(client).to_vec();
    node.sent(client, bytes.len());
    String::from_utf8(bytes).unwrap()
}

fn done(node: &mut Node, commit: Commit) {
    node.on_committed(commit.end, commit.sync, commit.bytes);
}

#[test]
fn a_reply_leaves_when_its_record_is_durable_and_one_commit_is_in_flight() {
    let (mut node, world, client) = node(&[], true);
    let other = node.on_open("127.0.0.1:3".into(), "127.0.0.1:2".into(), 1000);
    send(&mut node, &world, client, "XADD s 1-1 a b\r\n");
    send(&mut node, &world, other, "PING\r\n");
    let first = end_turn(&mut node, &world).commit.unwrap();
    assert!(first.sync && first.end == 100 + first.bytes.len() as u64);
    assert_eq!(received(&mut node, client), "");
    assert_eq!(received(&mut node, other), "+PONG\r\n", "who does not depend on it does not wait");
    send(&mut node, &world, client, "XADD s 2-1 a b\r\n");
    send(&mut node, &world, other, "XLEN s\r\n");
    assert!(end_turn(&mut node, &world).commit.is_none(), "one at a time");
    done(&mut node, first);
    let mut flush = Vec::new();
    node.take_flush(&mut flush);
    assert!(flush.contains(&client));
    assert_eq!(received(&mut node, client), "$3\r\n1-1\r\n");
    assert_eq!(received(&mut node, other), "", "it has seen the second entry");
    let second = end_turn(&mut node, &world).commit.unwrap();
    done(&mut node, second);
    assert_eq!(received(&mut node, client), "$3\r\n2-1\r\n");
    assert_eq!(received(&mut node, other), ":2\r\n");
    assert!(node.is_settled());
}

#[test]
fn after_a_failed_commit_no_reply_leaves() {
    let (mut node, world, client) = node(&[], true);
    let other = node.on_open("127.0.0.1:3".into(), "127.0.0.1:2".into(), 1000);
    send(&mut node, &world, client, "XADD s 1-1 a b\r\n");
    assert!(end_turn(&mut node, &world).commit.is_some());
    send(&mut node, &world, other, "PING\r\n");
    node.on_commit_failed();
    send(&mut node, &world, other, "PING\r\n");
    assert!(end_turn(&mut node, &world).commit.is_none());
    assert_eq!((received(&mut node, client), received(&mut node, other)), (String::new(), String::new()));
    assert!(!node.is_settled());
}

#[test]
fn a_commit_waits_while_more_records_come_but_not_for_long() {
    let (mut node, world, client) = node(&[], true);
    let mut turns = 0;
    // One in each turn, without end.
    let commit = loop {
        turns += 1;
        send(&mut node, &world, client, &format!("XADD s {turns}-1 a b\r\n"));
        let turn = world.with(|facts| node.end_turn(facts));
        match turn.commit {
            Some(commit) => break commit,
            None => assert!(turn.again, "nobody is made to wait for an event"),
        }
        assert!(turns < 100);
    };
    assert!(turns > 2 && turns < 10, "{turns} turns");
    done(&mut node, commit);
    assert!(node.is_settled());
    // A turn in which only others do something is no reason to wait.
    send(&mut node, &world, client, "XADD s 1000-1 a b\r\n");
    assert!(world.with(|facts| node.end_turn(facts)).commit.is_none());
    send(&mut node, &world, client, "PING\r\n");
    assert!(world.with(|facts| node.end_turn(facts)).commit.is_some());
    // Nor is there one with enough to write.
    assert!(end_turn(&mut node, &world).commit.is_none());
    node.on_committed(node.engine().log.position(), true, Vec::new());
    send(&mut node, &world, client, &format!("XADD s 2000-1 a {}\r\n", "x".repeat(20_000)));
    assert!(world.with(|facts| node.end_turn(facts)).commit.is_some());
}

#[test]
fn everysec_syncs_a_second_later_and_no_does_not() {
    for (fsync, syncs) in [("everysec", true), ("no", false)] {
        let (mut node, world, client) = node(&[("appendfsync", fsync)], true);
        send(&mut node, &world, client, "XADD s 1-1 a b\r\n");
        let turn = end_turn(&mut node, &world);
        let commit = turn.commit.unwrap();
        assert!(!commit.sync);
        done(&mut node, commit);
        assert_eq!(received(&mut node, client), "$3\r\n1-1\r\n", "when it is written");
        let turn = end_turn(&mut node, &world);
        assert_eq!(turn.deadline_ms, syncs.then_some(2000), "{fsync}");
        world.now_ms.set(2000);
        let commit = end_turn(&mut node, &world).commit;
        assert_eq!(commit.as_ref().map(|commit| (commit.sync, commit.bytes.len())), syncs.then_some((true, 0)));
        if let Some(commit) = commit {
            done(&mut node, commit);
            assert!(node.is_settled());
        }
        // At the end all is synced in any case.
        node.sync_everything();
        if let Some(commit) = end_turn(&mut node, &world).commit {
            assert!(commit.sync);
            done(&mut node, commit);
        }
        assert!(node.is_settled());
    }
}

/// Who goes on in the turns at the end of the process adds to what is to be synced: else the end would never come.
#[test]
fn what_is_done_while_everything_is_synced_is_synced_as_well() {
    let (mut node, world, client) = node(&[("appendfsync", "no")], true);
    let other = node.on_open("127.0.0.1:3".into(), "127.0.0.1:2".into(), 1000);
    send(&mut node, &world, client, "XREAD BLOCK 0 STREAMS s $\r\nXADD t 1-1 a b\r\n");
    send(&mut node, &world, other, "CLIENT UNBLOCK 1\r\n");
    assert_eq!(received(&mut node, other), ":1\r\n");
    assert!(node.is_settled(), "nothing was written yet");
    node.sync_everything();
    let commit = end_turn(&mut node, &world).commit.unwrap();
    assert!(commit.sync && !commit.bytes.is_empty());
    done(&mut node, commit);
    assert!(node.is_settled());
    // Afterwards all is as before.
    assert!(end_turn(&mut node, &world).commit.is_none());
    send(&mut node, &world, other, "XADD t 2-1 a b\r\n");
    assert!(!end_turn(&mut node, &world).commit.unwrap().sync);
}

/// One packet of short commands that ask for long replies takes memory for a few of these at a time.
#[test]
fn long_replies_are_made_when_those_before_were_sent() {
    let (mut node, world, client) = node(&[], false);
    let value = "v".repeat(1 << 20);
    send(&mut node, &world, client, &format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${}\r\n{value}\r\n", value.len()));
    assert_eq!(received(&mut node, client), "+OK\r\n");
    send(&mut node, &world, client, &"GET k\r\n".repeat(100));
    send(&mut node, &world, client, "PING\r\n");
    let mut replies = String::new();
    for turn in 0.. {
        assert!(turn < 200, "it goes on");
        let waiting = node.client(client).unwrap().output.len();
        assert!(waiting < 3 << 20, "{waiting} bytes");
        if waiting == 0 {
            break;
        }
        replies.push_str(&received(&mut node, client));
        world.with(|facts| node.on_tick(facts));
        end_turn(&mut node, &world);
    }
    assert!(!node.can_go_on());
    assert_eq!(replies.matches('$').count(), 100);
    assert!(replies.ends_with("+PONG\r\n"));
}

/// Two commits' worth of replies are held at once; each is told of its own.
#[test]
fn a_reply_about_an_older_record_does_not_wait_for_a_newer_one() {
    let (mut node, world, client) = node(&[], true);
    let other = node.on_open("127.0.0.1:3".into(), "127.0.0.1:2".into(), 1000);
    send(&mut node, &world, client, "XADD old 1-1 a b\r\n");
    let first = end_turn(&mut node, &world).commit.unwrap();
    send(&mut node, &world, client, "XADD new 1-1 a b\r\n");
    send(&mut node, &world, other, "XLEN old\r\n");
    assert!(end_turn(&mut node, &world).commit.is_none());
    let mut flush = Vec::new();
    node.take_flush(&mut flush);
    done(&mut node, first);
    node.take_flush(&mut flush);
    assert!(flush.contains(&other), "nobody else would look at it again before the next commit is done");
    assert_eq!(received(&mut node, other), ":1\r\n");
}

#[test]
fn waitaof_waits_for_the_sync_or_for_its_time() {
    let (mut node, world, client) = node(&[("appendfsync", "no")], true);
    let other = node.on_open("127.0.0.1:3".into(), "127.0.0.1:2".into(), 1000);
    send(&mut node, &world, client, "XADD s 1-1 a b\r\nWAITAOF 1 0 0\r\nPING\r\n");
    send(&mut node, &world, other, "XADD s 2-1 a b\r\nWAITAOF 1 0 50\r\n");
    let commit = end_turn(&mut node, &world).commit.unwrap();
    assert!(commit.sync, "somebody asks for it");
    world.now_ms.set(1050);
    end_turn(&mut node, &world);
    assert_eq!(received(&mut node, client), "");
    done(&mut node, commit);
    end_turn(&mut node, &world);
    end_turn(&mut node, &world);
    assert_eq!(received(&mut node, client), "$3\r\n1-1\r\n*2\r\n:1\r\n:0\r\n+PONG\r\n");
    assert_eq!(received(&mut node, other), "$3\r\n2-1\r\n*2\r\n:0\r\n:0\r\n");
}

#[test]
fn what_nobody_waits_for_goes_by_itself_after_a_second() {
    let (mut node, world, client) = node(&[], true);
    send(&mut node, &world, client, "XADD s 1-1 a b\r\nXGROUP CREATE s g $\r\nXGROUP CREATECONSUMER s g c\r\n");
    let commit = end_turn(&mut node, &world).commit.unwrap();
    done(&mut node, commit);
    received(&mut node, client);
    world.now_ms.set(5000);
    send(&mut node, &world, client, "XREADGROUP GROUP g c STREAMS s >\r\n");
    assert_eq!(received(&mut node, client), "*-1\r\n", "it depends on nothing new");
    let turn = end_turn(&mut node, &world);
    assert_eq!((turn.commit.is_none(), turn.deadline_ms), (true, Some(6000)));
    world.now_ms.set(6000);
    let commit = end_turn(&mut node, &world).commit.unwrap();
    assert!(!commit.bytes.is_empty());
    done(&mut node, commit);
    assert!(node.is_settled());
}

/// Performs turns until a snapshot is complete; its position and keys.
fn snapshot(node: &mut Node, world: &World) -> (u64, Vec<String>) {
    let (mut begun, mut names) = (None, Vec::new());
    for _ in 0..1000 {
        let turn = end_turn(node, world);
        for step in turn.snapshot {
            match step {
                SnapshotStep::Begin { position, .. } => begun = Some(position),
                SnapshotStep::Keys(keys) => {
                    names.extend(keys.iter().map(|key| String::from_utf8_lossy(&key.key).into_owned()));
                    node.on_snapshot_written(names.len() as u64);
                }
                SnapshotStep::Finish => {
                    names.sort();
                    assert!(node.engine().log.position() == 0 || node.synced_position() >= begun.unwrap());
                    return (begun.unwrap(), names);
                }
            }
        }
        if let Some(commit) = turn.commit {
            done(node, commit);
        }
    }
    panic!("no end to the snapshot");
}

#[test]
fn a_snapshot_holds_what_was_when_it_began_and_waits_for_the_log() {
    let (mut node, world, client) = node(&[("appendfsync", "no")], true);
    for n in 0..500 {
        send(&mut node, &world, client, &format!("XADD s{n:03} 1-1 a b\r\n"));
    }
    received(&mut node, client);
    send(&mut node, &world, client, "SAVE\r\nPING\r\n");
    let position = node.engine().log.position();
    let turn = end_turn(&mut node, &world);
    assert!(turn.again && turn.commit.as_ref().is_some_and(|commit| commit.sync));
    let mut handed = 0;
    for step in &turn.snapshot {
        match step {
            SnapshotStep::Begin { position: at, .. } => assert_eq!(*at, position),
            SnapshotStep::Keys(keys) => handed += keys.len(),
            SnapshotStep::Finish => panic!("the log is not synced"),
        }
    }
    assert!(handed > 0 && handed < 500, "a few in each turn");
    let other = node.on_open("127.0.0.1:3".into(), "127.0.0.1:2".into(), 1000);
    send(&mut node, &world, other, "XADD later 1-1 a b\r\nDEL s000\r\n");
    let commit = turn.commit.unwrap();
    done(&mut node, commit);
    received(&mut node, client);
    node.on_snapshot_written(handed as u64);
    let mut names = 0;
    'turns: loop {
        let turn = end_turn(&mut node, &world);
        if let Some(commit) = turn.commit {
            done(&mut node, commit);
        }
        for step in turn.snapshot {
            match step {
                SnapshotStep::Keys(keys) => {
                    assert!(keys.iter().all(|key| &*key.key != b"later"));
                    names += keys.len();
                    node.on_snapshot_written((handed + names) as u64);
                }
                SnapshotStep::Finish => break 'turns,
                SnapshotStep::Begin { .. } => panic!("it has begun"),
            }
        }
    }
    assert_eq!(handed + names, 500);
    assert!(node.saving().running);
    assert_eq!(received(&mut node, client), "", "SAVE waits");
    world.now_ms.set(9000);
    node.on_snapshot_ended(Some(500), 9000);
    end_turn(&mut node, &world);
    assert_eq!(received(&mut node, client), "+OK\r\n+PONG\r\n");
    let saving = node.saving();
    assert_eq!((saving.running, saving.last_success_s, saving.last_ok, saving.changes_since), (false, 9, true, 2));
}

#[test]
fn save_rules_begin_snapshots_and_wait_after_a_failure() {
    let (mut node, world, client) = node(&[], false);
    node.engine_mut().settings.save = vec![SaveRule { seconds: 60, changes: 2 }];
    send(&mut node, &world, client, "XADD s 1-1 a b\r\n");
    world.now_ms.set(100_000);
    assert!(end_turn(&mut node, &world).snapshot.is_empty(), "one change is too few");
    world.now_ms.set(2000);
    send(&mut node, &world, client, "XADD s 2-1 a b\r\n");
    assert_eq!(end_turn(&mut node, &world).deadline_ms, Some(61_000));
    world.now_ms.set(61_000);
    let (position, names) = snapshot(&mut node, &world);
    assert_eq!((position, names), (102, vec!["s".to_owned()]), "two changes behind what was read back");
    node.on_snapshot_ended(None, 61_000);
    assert!(!node.saving().last_ok);
    assert_eq!(end_turn(&mut node, &world).deadline_ms, Some(66_000));
    world.now_ms.set(66_000);
    assert_eq!(snapshot(&mut node, &world).0, 102);
    node.on_snapshot_ended(Some(500), 66_000);
    assert_eq!(end_turn(&mut node, &world).deadline_ms, None);
    assert!(node.saving().last_ok);
}

#[test]
fn a_log_that_has_become_long_begins_a_snapshot() {
    let options = [("auto-aof-rewrite-min-size", "200"), ("auto-aof-rewrite-percentage", "50")];
    let (mut node, world, client) = node(&options, true);
    // Adds so many bytes to the log, and hands them over.
    let grow = |node: &mut Node, len_bytes: u64| {
        let until = node.engine().log.position() + len_bytes;
        while node.engine().log.position() < until {
            send(node, &world, client, "XADD s * f 0123456789\r\n");
        }
        let turn = end_turn(node, &world);
        if let Some(commit) = turn.commit {
            done(node, commit);
        }
        received(node, client);
        turn.snapshot.iter().any(|step| matches!(step, SnapshotStep::Begin { .. }))
    };
    assert!(!grow(&mut node, 50));
    // Position 100 was read back, without a snapshot: what counts is the whole log.
    assert!(grow(&mut node, 50), "200 bytes behind no snapshot");
    let position = node.engine().log.position();
    node.on_snapshot_ended(None, 1000);
    assert!(!grow(&mut node, 1), "one that failed is not tried again at once");
    assert_eq!(end_turn(&mut node, &world).deadline_ms, Some(6000), "but by itself, after a while");
    world.now_ms.set(6000);
    assert!(grow(&mut node, 1));
    while node.saving.stage != saving::Stage::Finishing {
        grow(&mut node, 0);
    }
    node.on_snapshot_ended(Some(1000), 6000);
    assert_eq!((node.saving().snapshot_bytes, node.saving().snapshot_position > position), (1000, true));
    assert!(!grow(&mut node, 400), "half of the snapshot is more than 200 bytes");
    assert!(grow(&mut node, 150));
}

#[test]
fn a_peer_that_stops_sending_is_owed_its_replies_and_a_waiting_one_is_let_go() {
    let (mut node, world, client) = node(&[], true);
    let waiting = node.on_open("127.0.0.1:3".into(), "127.0.0.1:2".into(), 1000);
    send(&mut node, &world, client, "XADD s 1-1 a b\r\n");
    send(&mut node, &world, waiting, "XREAD BLOCK 0 STREAMS other $\r\n");
    assert!(node.on_end_of_input(client) && node.on_end_of_input(waiting));
    assert!(node.client(client).is_some_and(|client| client.closing && !client.killed));
    assert!(node.client(waiting).is_some_and(|client| client.killed));
    let commit = end_turn(&mut node, &world).commit.unwrap();
    done(&mut node, commit);
    assert_eq!(received(&mut node, client), "$3\r\n1-1\r\n");
}

#[test]
fn what_a_peer_has_sent_behind_a_read_that_was_just_served_is_carried_out_though_it_sends_no_more() {
    let (mut node, world, client) = node(&[], true);
    let waiting = node.on_open("127.0.0.1:3".into(), "127.0.0.1:2".into(), 1000);
    send(&mut node, &world, waiting, "XREAD BLOCK 0 STREAMS s $\r\nPING\r\nXADD t 1-1 a b\r\n");
    send(&mut node, &world, client, "XADD s 1-1 a b\r\n");
    assert!(!node.on_end_of_input(waiting), "it has something left to do");
    let commit = end_turn(&mut node, &world).commit.unwrap();
    done(&mut node, commit);
    assert!(node.on_end_of_input(waiting));
    let received = received(&mut node, waiting);
    assert!(received.ends_with("+PONG\r\n$3\r\n1-1\r\n"), "{received}");
}

#[test]
fn what_comes_to_more_than_the_log_can_follow_waits_for_the_next_turn() {
    let (mut node, world, first) = node(&[], true);
    let others: Vec<ClientIndex> =
        (0..3).map(|_| node.on_open("127.0.0.1:3".into(), "127.0.0.1:2".into(), 1000)).collect();
    let set = |key: &str, bytes: usize| {
        [format!("*3\r\n$3\r\nSET\r\n$1\r\n{key}\r\n${bytes}\r\n").as_bytes(), &vec![b'v'; bytes], b"\r\n"].concat()
    };
    // Each of them waits for the first entry, with a large value behind the read.
    for (&other, key) in others.iter().zip(["a", "b", "c"]) {
        world.with(|facts| {
            node.on_bytes(other, b"XREAD BLOCK 0 STREAMS s $\r\n", facts);
            node.on_bytes(other, &set(key, 65 << 20), facts);
        });
    }
    assert!(!node.is_pressed());
    world.with(|facts| node.on_bytes(first, b"XADD s 1-1 f v\r\n", facts));
    let mut commits = Vec::new();
    for _ in 0..8 {
        let turn = end_turn(&mut node, &world);
        let Some(commit) = turn.commit else { break };
        commits.push(commit.bytes.len());
        assert!(!node.is_pressed(), "what has been handed over does not press");
        node.on_committed(commit.end, commit.sync, commit.bytes);
        world.with(|facts| node.on_tick(facts));
    }
    // One at a time: together they would be one frame, and enough of them more than a frame can hold.
    assert_eq!(commits.iter().filter(|&&bytes| bytes > 65 << 20).count(), 3, "{commits:?}");
    assert!(commits.iter().all(|&bytes| bytes < 66 << 20), "{commits:?}");
}
