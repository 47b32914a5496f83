//! Publish and subscribe, as Redis 8.2.3 answers; where its order is that of a hash table, ours is that of bytes.

use super::World;
use crate::engine::pubsub::TopicKind;

fn refused(command: &str) -> String {
    format!(
        "-ERR Can't execute '{command}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context|"
    )
}

#[test]
fn a_subscriber_in_resp2() {
    let mut world = World::new();
    world.talk(&[
        ("unsubscribe", "*3|$11|unsubscribe|$-1|:0|"),
        ("unsubscribe x y", "*3|$11|unsubscribe|$1|x|:0|*3|$11|unsubscribe|$1|y|:0|"),
        ("subscribe a b a", "*3|$9|subscribe|$1|a|:1|*3|$9|subscribe|$1|b|:2|*3|$9|subscribe|$1|a|:2|"),
        ("ping", "*2|$4|pong|$0||"),
        ("ping x", "*2|$4|pong|$1|x|"),
        ("psubscribe p* q*", "*3|$10|psubscribe|$2|p*|:3|*3|$10|psubscribe|$2|q*|:4|"),
        ("ssubscribe s1", "*3|$10|ssubscribe|$2|s1|:1|"),
        ("get k", &refused("get")),
        ("HELLO 3", &refused("hello")),
        ("client list", &refused("client|list")),
        ("publish a x", &refused("publish")),
        ("multi", &refused("multi")),
        ("exec", &refused("exec").replacen("-ERR", "-EXECABORT Transaction discarded because of:", 1)),
        ("foo", "-ERR unknown command 'foo', with args beginning with: |"),
        ("subscribe", "-ERR wrong number of arguments for 'subscribe' command|"),
        ("unsubscribe", "*3|$11|unsubscribe|$1|a|:3|*3|$11|unsubscribe|$1|b|:2|"),
        ("punsubscribe q* p*", "*3|$12|punsubscribe|$2|q*|:1|*3|$12|punsubscribe|$2|p*|:0|"),
        ("ping", "*2|$4|pong|$0||"),
        ("sunsubscribe", "*3|$12|sunsubscribe|$2|s1|:0|"),
        ("ping", "+PONG|"),
        ("get k", "$-1|"),
    ]);
    assert!(world.engine.pubsub.is_empty());
}

#[test]
fn messages_go_to_channels_patterns_and_shards() {
    let mut world = World::new();
    let (two, three) = (world.open("10.0.0.2:2000"), world.open("10.0.0.3:3000"));
    world.send(two, "subscribe news other");
    world.send(two, "psubscribe n*");
    world.send(three, "hello 3");
    world.send(three, "psubscribe n[e-f]* n*");
    world.send(three, "ssubscribe news");
    world.read(two);
    world.talk(&[
        ("publish news hi", ":4|"),
        ("publish nobody x", ":2|"),
        ("publish else x", ":0|"),
        ("spublish news shard", ":1|"),
        ("spublish other x", ":0|"),
        ("publish news", "-ERR wrong number of arguments for 'publish' command|"),
    ]);
    assert_eq!(
        world.read(two),
        "*3|$7|message|$4|news|$2|hi|*4|$8|pmessage|$2|n*|$4|news|$2|hi|*4|$8|pmessage|$2|n*|$6|nobody|$1|x|"
    );
    assert_eq!(
        world.read(three),
        ">4|$8|pmessage|$2|n*|$4|news|$2|hi|>4|$8|pmessage|$7|n[e-f]*|$4|news|$2|hi|\
         >4|$8|pmessage|$2|n*|$6|nobody|$1|x|>3|$8|smessage|$4|news|$5|shard|"
    );
    world.talk(&[
        ("pubsub channels", "*2|$4|news|$5|other|"),
        ("pubsub channels n*", "*1|$4|news|"),
        (
            "pubsub channels a b",
            "-ERR unknown subcommand or wrong number of arguments for 'channels'. Try PUBSUB HELP.|",
        ),
        ("pubsub numsub", "*0|"),
        ("pubsub numsub news x news", "*6|$4|news|:1|$1|x|:0|$4|news|:1|"),
        ("pubsub numpat", ":2|"),
        ("pubsub shardchannels", "*1|$4|news|"),
        ("pubsub shardchannels x*", "*0|"),
        ("pubsub shardnumsub news x", "*4|$4|news|:1|$1|x|:0|"),
        ("pubsub foo", "-ERR unknown subcommand 'foo'. Try PUBSUB HELP.|"),
    ]);
    let info = world.say("info");
    for part in ["|pubsub_clients:2|", "|pubsub_channels:2|pubsub_patterns:2|pubsubshard_channels:1|"] {
        assert!(info.contains(part), "{part} in {info}");
    }
    let list = world.say("client list type pubsub");
    assert!(list.contains(" flags=P db=0 sub=2 psub=1 ssub=0 "), "{list}");
    assert!(list.contains(" flags=P db=0 sub=0 psub=2 ssub=1 "), "{list}");
    let normal = world.say("client list type normal");
    assert!(normal.contains("id=1 ") && !normal.contains("id=2 "), "{normal}");
    // Whoever is gone is gone from all of it.
    world.talk(&[("client kill type pubsub", ":2|"), ("publish news hi", ":0|"), ("pubsub numpat", ":0|")]);
    assert!(world.engine.client(two).unwrap().killed);
}

#[test]
fn what_is_pushed_to_oneself_comes_behind_the_reply() {
    let mut world = World::new();
    world.say("hello 3");
    world.talk(&[
        ("subscribe a", ">3|$9|subscribe|$1|a|:1|"),
        ("get k", "_|"),
        ("ping", "+PONG|"),
        ("publish a 1", ":1|>3|$7|message|$1|a|$1|1|"),
        ("multi", "+OK|"),
        ("publish a 2", "+QUEUED|"),
        ("subscribe b", "+QUEUED|"),
        ("get k", "+QUEUED|"),
        ("exec", "*3|:1|>3|$9|subscribe|$1|b|:2|_|>3|$7|message|$1|a|$1|2|"),
        // Replies are held back, pushes are not.
        ("client reply off", ""),
        ("subscribe c", ">3|$9|subscribe|$1|c|:3|"),
        ("publish c x", ">3|$7|message|$1|c|$1|x|"),
        ("client reply on", "+OK|"),
        ("client reply skip", ""),
        ("unsubscribe c", ">3|$11|unsubscribe|$1|c|:2|"),
        ("ping", "+PONG|"),
        ("unsubscribe", ">3|$11|unsubscribe|$1|a|:1|>3|$11|unsubscribe|$1|b|:0|"),
        ("unsubscribe", ">3|$11|unsubscribe|_|:0|"),
    ]);
}

#[test]
fn transactions_of_a_resp2_client() {
    let mut world = World::new();
    world.talk(&[
        ("multi", "+OK|"),
        ("subscribe x", "+QUEUED|"),
        ("get k", "+QUEUED|"),
        ("ping", "+QUEUED|"),
        ("exec", "*3|*3|$9|subscribe|$1|x|:1|$-1|*2|$4|pong|$0||"),
        ("get k", &refused("get")),
    ]);
}

#[test]
fn subscriptions_end_with_reset_quit_and_the_connection() {
    let mut world = World::new();
    let all: Vec<_> = (2..5).map(|n| world.open(&format!("10.0.0.{n}:{n}000"))).collect();
    for &client in &all {
        world.send(client, "subscribe a");
        world.send(client, "psubscribe a*");
        world.send(client, "ssubscribe a");
    }
    world.talk(&[("pubsub numsub a", "*2|$1|a|:3|")]);
    assert_eq!(world.send(all[0], "reset"), "+RESET|");
    assert_eq!(world.send(all[0], "get k"), "$-1|");
    assert_eq!(world.send(all[1], "quit"), "+OK|");
    world.engine.close(all[2]);
    world.talk(&[
        ("publish a x", ":0|"),
        ("pubsub numpat", ":0|"),
        ("pubsub channels", "*0|"),
        ("pubsub shardchannels", "*0|"),
    ]);
    assert_eq!(world.read(all[1]), "");
    assert!(world.engine.pubsub.is_empty());
    assert_eq!(world.engine.pubsub.topic_count(TopicKind::Channel), 0);
}

#[test]
fn a_message_does_not_overtake_what_its_client_did() {
    let mut world = World::new();
    world.engine.log.enable(0);
    let other = world.open("10.0.0.2:2000");
    let ready = |world: &mut World, client, durable: u64| {
        let output = &mut world.engine.client_mut(client).unwrap().output;
        let bytes = output.ready(durable).to_vec();
        world.engine.on_sent(client, bytes.len());
        String::from_utf8(bytes).unwrap().replace("\r\n", "|")
    };
    world.send(other, "subscribe a b c");
    let me = world.me;
    let feed = |world: &mut World, line: &str| {
        let line = format!("{line}\r\n");
        world.turn(|engine, facts| engine.feed(me, line.as_bytes(), facts));
    };
    feed(&mut world, "publish a 1");
    assert_eq!(ready(&mut world, other, 0), "*3|$7|message|$1|a|$1|1|", "it waits for nothing");
    feed(&mut world, "xadd s 1-1 f v");
    let added = world.engine.log.position();
    feed(&mut world, "publish b 2");
    assert_eq!(ready(&mut world, other, added - 1), "");
    assert_eq!(ready(&mut world, other, added), "*3|$7|message|$1|b|$1|2|");
    world.read(me);
    for line in ["multi", "set k v", "publish c 3", "exec"] {
        feed(&mut world, line);
    }
    let set = world.engine.log.position();
    assert_eq!(ready(&mut world, other, set - 1), "");
    assert_eq!(ready(&mut world, other, set), "*3|$7|message|$1|c|$1|3|");
}
