//! What a connection may do to others: its share of a turn, replies nobody takes, pauses, peers that are no clients.

use super::World;
use crate::engine::facts::Request;

#[test]
fn a_reply_to_be_skipped_is_skipped_also_after_waiting() {
    let mut world = World::new();
    assert_eq!(world.say("client reply skip"), "");
    assert_eq!(world.say("xread block 10 streams s $"), "");
    world.pass(20);
    let me = world.me;
    assert_eq!(world.read(me), "");
    assert_eq!(world.say("ping"), "+PONG|");
}

#[test]
fn a_pause_of_writes_lets_transactions_of_reads_through() {
    let mut world = World::new();
    world.talk(&[
        ("client pause 1000 write", "+OK|"),
        ("multi", "+OK|"),
        ("get k", "+QUEUED|"),
        ("exec", "*1|$-1|"),
        ("multi", "+OK|"),
        ("set k v", ""),
    ]);
}

#[test]
fn who_speaks_http_is_closed_before_its_commands_run() {
    for line in ["POST / HTTP/1.1", "host: here"] {
        let mut world = World::new();
        assert_eq!(world.say(&format!("{line}\r\nset k v")), "", "{line}");
        assert!(world.engine.client(world.me).unwrap().killed);
        assert_eq!(world.requests(), [Request::NoteHttp { addr: "10.0.0.1:1000".into() }]);
        let other = world.open("127.0.0.1:9");
        assert_eq!(world.send(other, "exists k"), ":0|");
    }
}

#[test]
fn a_turn_carries_out_so_much_of_one_connection_and_the_next_the_rest() {
    let mut world = World::new();
    world.say(&format!("set k {}", "v".repeat(10_000)));
    let me = world.me;
    // Replies.
    assert!(world.say(&["get k"; 1000].join("\r\n")).len() < 1_100_000);
    assert!(world.engine.has_later());
    let mut turns = 0;
    let mut len = 0;
    while world.engine.has_later() {
        world.turn(|engine, facts| engine.go_on_later(facts));
        len += world.read(me).len();
        turns += 1;
    }
    assert!(turns >= 8 && len > 8_900_000, "{turns} turns, {len} bytes");
    // Input that came while the client waited.
    world.say("xread block 0 streams s $");
    world.turn(|engine, facts| engine.feed(me, "ping\r\n".repeat(30_000).as_bytes(), facts));
    let other = world.open("127.0.0.1:9");
    world.send(other, "xadd s 1-1 a b");
    let first = world.read(me);
    assert!(first.matches("PONG").count() < 11_000 && world.engine.has_later());
    let mut pongs = first.matches("PONG").count();
    // What comes meanwhile has to wait for its turn.
    world.turn(|engine, facts| engine.feed(me, b"echo end\r\n", facts));
    assert_eq!(world.read(me), "");
    let mut last = String::new();
    while world.engine.has_later() {
        world.turn(|engine, facts| engine.go_on_later(facts));
        last = world.read(me);
        pongs += last.matches("PONG").count();
    }
    assert_eq!(pongs, 30_000);
    assert!(last.ends_with("+PONG|$3|end|"));
    assert_eq!(world.engine.client(me).unwrap().input_len(), 0);
}

#[test]
fn who_takes_no_replies_gets_no_more_of_them() {
    let mut world = World::with(&[("client-output-buffer-limit", "normal 0 100000 60")]);
    world.say(&format!("set k {}", "v".repeat(10_000)));
    let me = world.me;
    world.turn(|engine, facts| engine.feed(me, "get k\r\n".repeat(50).as_bytes(), facts));
    for _ in 0..10 {
        world.turn(|engine, facts| engine.go_on_later(facts));
    }
    let client = world.engine.client(me).unwrap();
    assert!((100_000..=120_000).contains(&client.output.len()) && client.stuffed);
    assert!(!world.engine.has_later(), "nothing to do until it reads");
    let mut replies = 0;
    for _ in 0..100 {
        replies += world.read(me).matches("$10000").count();
        world.turn(|engine, facts| engine.go_on_later(facts));
    }
    assert_eq!(replies, 50);
}

#[test]
fn a_reader_of_many_keys_is_carried_out_once_for_all_of_them() {
    let mut world = World::new();
    let reader = world.open("127.0.0.1:9");
    for n in 0..100 {
        world.say(&format!("xadd s{n} 1-1 a b"));
    }
    let keys = (0..100).map(|n| format!("s{n}")).collect::<Vec<_>>().join(" ");
    world.send(reader, &format!("xread block 0 streams {keys} {}", ["1-1"; 100].join(" ")));
    let before = world.engine.client(reader).unwrap().wait.as_ref().unwrap().ticket;
    world.talk(&[("swapdb 0 1", "+OK|"), ("swapdb 0 1", "+OK|")]);
    let after = world.engine.client(reader).unwrap().wait.as_ref().unwrap().ticket;
    assert_eq!(after, before + 1, "there are streams again only after the second");
    world.say("xadd s7 2-1 a b");
    assert_eq!(world.read(reader), "*1|*2|$2|s7|*1|*2|$3|2-1|*2|$1|a|$1|b|");
}

#[test]
fn who_sends_more_than_may_wait_is_closed_with_a_note() {
    let mut world = World::with(&[("client-query-buffer-limit", "1mb")]);
    let me = world.me;
    world.say("xread block 0 streams s $");
    let id = world.engine.client(me).unwrap().id;
    let bytes = "ping\r\n".repeat(100_000);
    world.turn(|engine, facts| engine.feed(me, bytes.as_bytes(), facts));
    assert!(!world.engine.client(me).unwrap().killed && world.requests().is_empty());
    world.turn(|engine, facts| engine.feed(me, bytes.as_bytes(), facts));
    assert!(world.engine.client(me).unwrap().killed);
    let (addr, input_bytes) = ("10.0.0.1:1000".into(), 1_200_000);
    assert_eq!(world.requests(), [Request::NoteQueryBuffer { client: id, addr, input_bytes }]);
}
