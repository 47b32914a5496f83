//! MULTI, EXEC and WATCH.

use super::World;

#[test]
fn a_watched_key_that_was_there_meanwhile_stops_the_transaction() {
    let mut world = World::new();
    let other = world.open("127.0.0.1:9");
    for (meanwhile, runs) in [
        (&["set k v"][..], false),
        (&["del k", "set k v", "del k"], false),
        (&["set k v", "flushdb"], false),
        (&["set l v", "del l"], true),
        (&["flushall"], true),
    ] {
        world.talk(&[("flushall", "+OK|"), ("watch k", "+OK|"), ("multi", "+OK|"), ("ping", "+QUEUED|")]);
        for line in meanwhile {
            world.send(other, line);
        }
        assert_eq!(world.say("exec"), if runs { "*1|+PONG|" } else { "*-1|" }, "{meanwhile:?}");
    }
    // A key that was there and is made anew is another key.
    world.talk(&[("flushall", "+OK|"), ("set k v", "+OK|"), ("watch k", "+OK|"), ("multi", "+OK|")]);
    world.send(other, "del k");
    world.send(other, "set k v");
    world.talk(&[("exec", "*-1|")]);
}

#[test]
fn watching_leaves_nothing_behind() {
    let mut world = World::new();
    for end in ["exec", "discard", "unwatch", "reset"] {
        world.say("watch a b");
        if matches!(end, "exec" | "discard") {
            world.say("multi");
        }
        world.say(end);
        assert!(!world.engine.state().is_missing_watched(), "{end}");
    }
    world.say("watch a");
    let me = world.me;
    world.engine.close(me);
    assert!(!world.engine.state().is_missing_watched());
}

#[test]
fn a_transaction_wakes_readers_once_and_at_its_end() {
    let mut world = World::new();
    let reader = world.open("127.0.0.1:9");
    assert_eq!(world.send(reader, "xread block 0 streams s $"), "");
    world.talk(&[
        ("multi", "+OK|"),
        ("xadd s 1-0 f v", "+QUEUED|"),
        ("xadd s 2-0 f v", "+QUEUED|"),
        ("xdel s 1-0", "+QUEUED|"),
    ]);
    world.talk(&[("exec", "*3|$3|1-0|$3|2-0|:1|")]);
    assert_eq!(world.read(reader), "*1|*2|$1|s|*1|*2|$3|2-0|*2|$1|f|$1|v|");
}

#[test]
fn what_was_refused_while_queueing_refuses_all() {
    let mut world = World::new();
    world.talk(&[
        ("multi", "+OK|"),
        ("nosuch", "-ERR unknown command 'nosuch', with args beginning with: |"),
        ("set k v", "+QUEUED|"),
        ("exec", "-EXECABORT Transaction discarded because of previous errors.|"),
        ("exists k", ":0|"),
        ("exec", "-ERR EXEC without MULTI|"),
    ]);
}

/// As Redis answers, also outside of a transaction.
#[test]
fn an_exec_that_is_refused_ends_the_transaction() {
    let mut world = World::new();
    let refused = "-EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command|";
    world.talk(&[
        ("watch k", "+OK|"),
        ("multi", "+OK|"),
        ("set k v", "+QUEUED|"),
        ("exec now", refused),
        ("ping", "+PONG|"),
        ("exec", "-ERR EXEC without MULTI|"),
        ("exec now", refused),
    ]);
    assert!(!world.engine.state().is_missing_watched());
    world.talk(&[
        ("multi", "+OK|"),
        ("set k v", "+QUEUED|"),
        ("config set maxmemory 1", "+QUEUED|"),
        ("exec", "*2|+OK|+OK|"),
    ]);
    world.talk(&[("multi", "+OK|"), ("get k", "+QUEUED|"), ("exec", "*1|$1|v|")]);
    world.talk(&[("multi", "+OK|"), ("config set maxmemory 0", "+QUEUED|"), ("exec", "*1|+OK|")]);
    world.talk(&[("multi", "+OK|"), ("set k v", "+QUEUED|")]);
    let other = world.open("127.0.0.1:9");
    assert_eq!(world.send(other, "config set maxmemory 1"), "+OK|");
    world.talk(&[(
        "exec",
        "-EXECABORT Transaction discarded because of: OOM command not allowed when used memory > 'maxmemory'.|",
    )]);
    world.talk(&[("exec", "-ERR EXEC without MULTI|")]);
}

#[test]
fn a_command_that_cannot_be_queued_spoils_the_transaction_and_counts_as_rejected() {
    let mut world = World::new();
    world.talk(&[
        ("multi", "+OK|"),
        ("save", "-ERR Command not allowed inside a transaction|"),
        ("exec", "-EXECABORT Transaction discarded because of previous errors.|"),
    ]);
    let stats = world.say("info commandstats");
    assert!(stats.contains("cmdstat_save:calls=0,usec=0,usec_per_call=0.00,rejected_calls=1,"), "{stats}");
}

/// What was over before WATCH is missing; that its record comes later changes nothing.
#[test]
fn a_watched_key_whose_time_is_over_is_missing() {
    let mut world = World::new();
    world.talk(&[("XADD s 1-0 f v", "$3|1-0|"), ("PEXPIRE s 5", ":1|")]);
    // No tick comes between.
    world.now_ms += 10;
    world.talk(&[("WATCH s", "+OK|"), ("XSETID s 8-2", "-ERR no such key|"), ("MULTI", "+OK|"), ("EXEC", "*0|")]);
}
