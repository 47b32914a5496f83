//! Connections, as Redis 8.2.3 answers.

use super::{START_MS, World};

const SYNTAX: &str = "-ERR syntax error|";
const NAME: &str = "-ERR Client names cannot contain spaces, newlines or special characters.|";
const NO_AUTH: &str = "-NOAUTH Authentication required.|";
const WRONG_PASS: &str = "-WRONGPASS invalid username-password pair or user is disabled.|";
const HELLO: &str = "*14|$6|server|$5|redis|$7|version|$5|8.2.3|$5|proto|:2|$2|id|:1|$4|mode|$10|standalone|$4|role|$6|master|$7|modules|*0|";

#[test]
fn greetings() {
    let mut world = World::new();
    world.talk(&[
        ("ping", "+PONG|"),
        ("ping a", "$1|a|"),
        ("ping a b", "-ERR wrong number of arguments for 'ping' command|"),
        ("echo a", "$1|a|"),
        ("hello", HELLO),
        ("hello abc", "-ERR Protocol version is not an integer or out of range|"),
        ("hello 4", "-NOPROTO unsupported protocol version|"),
        ("hello 3 foo", "-ERR Syntax error in HELLO option 'foo'|"),
        ("hello 3 setname", "-ERR Syntax error in HELLO option 'setname'|"),
        ("hello 3 setname \"a b\"", NAME),
        ("hello 3 auth bob x", WRONG_PASS),
        ("get nokey", "$-1|"),
        ("hello 2 auth default any setname me", HELLO),
        ("client getname", "$2|me|"),
        (
            "hello 3",
            "%7|$6|server|$5|redis|$7|version|$5|8.2.3|$5|proto|:3|$2|id|:1|$4|mode|$10|standalone|$4|role|$6|master|$7|modules|*0|",
        ),
        ("get nokey", "_|"),
        ("select 3", "+OK|"),
        ("reset", "+RESET|"),
        ("get nokey", "$-1|"),
        ("client getname", "$-1|"),
    ]);
    assert_eq!(world.engine.client(world.me).unwrap().db, 0);
    world.talk(&[("quit", "+OK|")]);
    assert!(world.engine.client(world.me).unwrap().closing);
}

/// What is on its way is lent while a command runs: the command may ask about it all the same.
#[test]
fn a_client_asks_about_itself_with_half_of_everything_on_its_way() {
    let mut world = World::new();
    let me = world.me;
    let feed = |world: &mut World, lines: &str| world.turn(|engine, facts| engine.feed(me, lines.as_bytes(), facts));
    // Some of its replies have been sent …
    feed(&mut world, "echo hello\r\n");
    assert_eq!(world.engine.client_mut(me).unwrap().output.ready(0), b"$5\r\nhello\r\n");
    world.engine.on_sent(me, 3);
    feed(&mut world, "client list\r\ninfo clients\r\n");
    let replies = world.read(me);
    assert!(replies.contains(" obl=0 ") && replies.contains("client_recent_max_output_buffer:"), "{replies}");
    // … and some of its input has been carried out, before a read that waits.
    let many = "ping\r\n".repeat(40);
    feed(&mut world, "xread block 0 streams s $\r\n");
    feed(&mut world, &format!("echo a\r\nxread block 0 streams s $\r\nclient list\r\ninfo clients\r\n{many}"));
    let other = world.open("10.0.0.1:1001");
    world.send(other, "xadd s * a b");
    assert!(world.engine.client(me).is_some_and(|client| client.input_at > 0), "it waits in the middle");
    world.read(me);
    world.send(other, "xadd s * a b");
    let replies = world.read(me);
    assert!(replies.contains(" qbuf=0 ") && replies.ends_with("+PONG|"), "{replies}");
}

#[test]
fn passwords() {
    let mut world = World::with(&[("requirepass", "secret")]);
    world.talk(&[
        ("ping", NO_AUTH),
        (
            "hello 3",
            "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time|",
        ),
        ("hello 2 auth default wrong", WRONG_PASS),
        ("auth secre", WRONG_PASS),
        ("auth secrex", WRONG_PASS),
        ("auth bob secret", WRONG_PASS),
        ("auth a b c", SYNTAX),
        ("auth secret", "+OK|"),
        ("auth wrong", WRONG_PASS),
        ("ping", "+PONG|"),
        ("reset", "+RESET|"),
        ("ping", NO_AUTH),
        ("hello 2 auth default secret", HELLO),
        ("config set requirepass \"\"", "+OK|"),
        (
            "auth foo",
            "-ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?|",
        ),
        ("auth default foo", "+OK|"),
    ]);
}

#[test]
fn list_and_names() {
    let mut world = World::new();
    let other = world.open("10.0.0.2:2000");
    world.now_ms += 3000;
    let line = |id: u64, addr: &str, name: &str, idle: u64, cmd: &str, commands: u64, bytes: u64| {
        format!(
            "id={id} addr={addr} laddr=10.0.0.9:6379 fd=-1 name={name} age=3 idle={idle} flags=N db=0 sub=0 psub=0 ssub=0 multi=-1 watch=0 \
             qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=0 events=r cmd={cmd} user=default redir=-1 \
             resp=2 lib-name= lib-ver= io-thread=0 tot-net-in={bytes} tot-net-out=0 tot-cmds={commands}\n"
        )
    };
    let plain = |text: &str| {
        let words = text.split(' ').map(|word| match word.split_once('=') {
            Some((name @ ("tot-mem" | "rbs" | "qbuf-free"), _)) => format!("{name}=0"),
            _ => word.to_owned(),
        });
        words.collect::<Vec<_>>().join(" ")
    };
    let bulk = |reply: String| reply.split_once('|').unwrap().1.strip_suffix('|').unwrap().to_owned();
    let mine = line(1, "10.0.0.1:1000", "", 0, "client|list", 1, 13);
    let theirs = line(2, "10.0.0.2:2000", "", 3, "NULL", 0, 0);
    assert_eq!(plain(&bulk(world.say("client list"))), format!("{mine}{theirs}"));
    assert_eq!(plain(&bulk(world.say("client list id 9 2"))), theirs);
    world.talk(&[
        ("client list type master", "$0||"),
        ("client list type foo", "-ERR Unknown client type 'foo'|"),
        ("client list id abc", "-ERR Invalid client ID|"),
        ("client list id", SYNTAX),
        ("client list foo", SYNTAX),
        ("client list type normal foo", SYNTAX),
        ("client id", ":1|"),
        ("client setname \"a b\"", NAME),
        ("client setname me", "+OK|"),
        ("client setinfo lib-name lib", "+OK|"),
        ("client setinfo lib-ver 1.0", "+OK|"),
        ("client setinfo foo bar", "-ERR Unrecognized option 'foo'|"),
        ("client setinfo lib-ver \"a b\"", "-ERR lib-ver cannot contain spaces, newlines or special characters.|"),
        ("client no-evict on", "+OK|"),
        ("client no-touch on", "+OK|"),
        ("client no-touch foo", SYNTAX),
        ("watch k", "+OK|"),
        ("select 2", "+OK|"),
        ("multi", "+OK|"),
        ("ping", "+QUEUED|"),
    ]);
    let me = world.send(other, "client list id 1");
    for part in [" name=me ", " flags=xeT ", " db=2 ", " multi=1 ", " watch=1 ", " lib-name=lib ", " lib-ver=1.0 "] {
        assert!(me.contains(part), "{part} in {me}");
    }
    assert!(world.send(other, "client info").contains("id=2 "));
}

#[test]
fn kill() {
    let mut world = World::new();
    let others: Vec<_> = (2..6).map(|n| world.open(&format!("10.0.0.{n}:{n}000"))).collect();
    let killed = |world: &World| -> Vec<bool> {
        others.iter().map(|&index| world.engine.client(index).unwrap().killed).collect()
    };
    world.send(others[0], "xread block 0 streams s $");
    world.now_ms += 10_000;
    let young = world.open("10.0.0.7:7000");
    world.talk(&[
        ("client kill foo", "-ERR No such client|"),
        ("client kill id abc", "-ERR client-id should be greater than 0|"),
        ("client kill id 0", "-ERR client-id should be greater than 0|"),
        ("client kill id 999", ":0|"),
        ("client kill type foo", "-ERR Unknown client type 'foo'|"),
        ("client kill type pubsub", ":0|"),
        ("client kill user bob", "-ERR No such user 'bob'|"),
        ("client kill skipme foo", SYNTAX),
        ("client kill maxage abc", "-ERR maxage is not an integer or out of range|"),
        ("client kill maxage 0", "-ERR maxage should be greater than 0|"),
        ("client kill maxage 11", ":0|"),
        ("client kill id 1 addr", SYNTAX),
        ("client kill id 1", ":0|"),
        ("client kill 10.0.0.3:3000", "+OK|"),
    ]);
    assert_eq!(killed(&world), [false, true, false, false]);
    world.talk(&[("client kill id 2", ":1|"), ("xadd s 1-1 a b", "$3|1-1|")]);
    assert_eq!(world.read(others[0]), "", "what it waited for is not for the killed");
    assert_eq!(world.engine.blocked_count(), 0);
    world.engine.close(others[0]);
    world.engine.close(others[1]);
    world.talk(&[("client kill laddr 10.0.0.9:6379 maxage 10 skipme yes", ":2|")]);
    assert!(!world.engine.client(young).unwrap().killed);
    // Oneself: the answer comes first.
    world.talk(&[("client kill addr 10.0.0.1:1000 skipme no", ":1|")]);
    let me = world.engine.client(world.me).unwrap();
    assert!(me.closing && !me.killed);
}

#[test]
fn replies_on_and_off() {
    let mut world = World::new();
    world.talk(&[
        ("client reply foo", SYNTAX),
        ("client reply skip", ""),
        ("ping", ""),
        ("ping", "+PONG|"),
        ("client reply off", ""),
        ("ping", ""),
        ("client reply skip", ""),
        ("ping", ""),
        ("foo", ""),
        ("client reply on", "+OK|"),
        ("ping", "+PONG|"),
    ]);
}

#[test]
fn unblock_and_pause() {
    let mut world = World::new();
    let other = world.open("10.0.0.2:2000");
    world.talk(&[
        ("client unblock abc", "-ERR value is not an integer or out of range|"),
        ("client unblock 2 foo", "-ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR|"),
        ("client unblock 2", ":0|"),
        (
            "client unblock 2 error x",
            "-ERR unknown subcommand or wrong number of arguments for 'unblock'. Try CLIENT HELP.|",
        ),
    ]);
    assert_eq!(world.send(other, "xread block 0 streams s $"), "");
    world.talk(&[("client unblock 2", ":1|"), ("client unblock 2", ":0|")]);
    assert_eq!(world.read(other), "*-1|");
    assert_eq!(world.send(other, "xread block 0 streams s $"), "");
    world.talk(&[("client unblock 2 error", ":1|")]);
    assert_eq!(world.read(other), "-UNBLOCKED client unblocked via CLIENT UNBLOCK|");

    world.talk(&[
        ("client pause abc", "-ERR timeout is not an integer or out of range|"),
        ("client pause -1", "-ERR timeout is negative|"),
        ("client pause 9223372036854775807", "-ERR timeout is out of range|"),
        ("client pause 10 foo", "-ERR CLIENT PAUSE mode must be WRITE or ALL|"),
        ("client pause 100 write", "+OK|"),
    ]);
    assert_eq!(world.send(other, "get k"), "$-1|");
    assert_eq!(world.send(other, "set k v"), "");
    world.pass(99);
    assert_eq!(world.read(other), "");
    world.pass(1);
    assert_eq!(world.read(other), "+OK|");
    world.talk(&[("client pause 1000", "+OK|")]);
    assert_eq!(world.send(other, "get k"), "");
    world.talk(&[("client unpause", "+OK|")]);
    world.pass(0);
    assert_eq!(world.read(other), "$1|v|");
    assert_eq!(world.now_ms, START_MS + 100);
}

#[test]
fn a_reply_that_is_not_wanted_is_not_sent_when_a_wait_ends() {
    let mut world = World::new();
    let other = world.open("10.0.0.2:2000");
    assert_eq!(world.send(other, "client reply skip"), "");
    assert_eq!(world.send(other, "xread block 50 streams s $"), "");
    world.pass(100);
    assert_eq!(world.read(other), "");
    assert_eq!(world.send(other, "ping"), "+PONG|");
}

#[test]
fn who_was_held_back_goes_on_in_the_order_of_asking() {
    let mut world = World::new();
    let clients = [world.open("10.0.0.2:1"), world.open("10.0.0.2:2"), world.open("10.0.0.2:3")];
    world.talk(&[("client pause 1000 write", "+OK|")]);
    for client in [0, 2, 1, 0, 2] {
        assert_eq!(world.send(clients[client], &format!("append k {client}")), "");
    }
    world.talk(&[("client unpause", "+OK|"), ("get k", "$5|00221|")]);
    assert_eq!(world.read(clients[0]), ":1|:2|");
}

#[test]
fn a_command_that_goes_on_in_the_next_turn_is_no_client_that_waits() {
    let mut world = World::new();
    let (me, other) = (world.me, world.open("10.0.0.2:1"));
    world.say("xgroup create s g 0 mkstream");
    (1..=1800).for_each(|id| drop(world.say(&format!("xadd s delay 100000 {id}-0 f v"))));
    assert_eq!(world.say("xreadgroup group g a streams s >"), "");
    assert!(world.send(other, "info clients").contains("|blocked_clients:0|"));
    while world.read(me).is_empty() {
        world.pass(0);
    }
    assert!(world.send(other, "info clients").contains("|blocked_clients:0|"));
    // With BLOCK it does wait, also while it looks.
    world.say("xgroup destroy s g");
    world.say("xgroup create s g 0");
    assert_eq!(world.say("xreadgroup group g a block 0 streams s >"), "");
    assert!(world.send(other, "info clients").contains("|blocked_clients:1|"));
}
