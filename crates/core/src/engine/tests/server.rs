//! The server itself: settings, INFO, saving, DEBUG, memory, the slow log.

use super::{START_MS, World};
use crate::engine::facts::{Request, Saving};

const SYNTAX: &str = "-ERR syntax error|";
const NOT_INT: &str = "-ERR value is not an integer or out of range|";

#[test]
fn settings() {
    let mut world = World::new();
    world.talk(&[
        ("config get maxmemory", "*2|$9|maxmemory|$1|0|"),
        ("config set maxmemory 5gb slowlog-max-len 4", "+OK|"),
        ("config get maxmemory", "*2|$9|maxmemory|$10|5368709120|"),
        ("config set foo bar", "-ERR Unknown option or number of arguments for CONFIG SET - 'foo'|"),
        ("config resetstat", "+OK|"),
    ]);
    assert_eq!(world.engine.statistics.commands, 0);
    let names: Vec<_> =
        ["maxmemory", "slowlog-max-len"].map(|name| Request::SettingChanged { name: name.into() }).into();
    assert_eq!(world.requests(), names);
}

#[test]
fn info_sections() {
    let mut world = World::new();
    world.process.saving =
        Saving { running: true, last_success_s: 5, last_ok: true, changes_since: 3, ..Saving::default() };
    world.talk(&[
        ("set k v ex 10", "+OK|"),
        ("foo", "-ERR unknown command 'foo', with args beginning with: |"),
        ("info keyspace", "$56|# Keyspace|db0:keys=1,expires=1,avg_ttl=0,subexpiry=0||"),
        ("info errorstats CLUSTER", "$69|# Errorstats|errorstat_ERR:count=1||# Cluster|cluster_enabled:0||"),
        ("info foo", "$0||"),
        ("info cpu", "$22|# CPU|told_of_cpu:1||"),
    ]);
    let counts = world.say("info commandstats");
    assert!(
        counts.contains("|cmdstat_set:calls=1,usec=0,usec_per_call=0.00,rejected_calls=0,failed_calls=0|"),
        "{counts}"
    );
    assert!(!counts.contains("foo"), "{counts}");
    world.talk(&[("mget k l k m", "*4|$1|v|$-1|$1|v|$-1|"), ("get l", "$-1|")]);
    let all = world.say("info");
    for part in [
        "# Server|redis_version:8.2.3|",
        "|told_of_server:1||# Clients|connected_clients:1|",
        "|blocked_clients:0|",
        "|used_memory:1300000|used_memory_human:1.24M|used_memory_lua:0|",
        "|used_memory_scripts_human:0B|maxmemory:0|maxmemory_human:0B|",
        "|rdb_changes_since_last_save:3|rdb_bgsave_in_progress:1|rdb_last_save_time:5|rdb_last_bgsave_status:ok|",
        "|total_error_replies:1|",
        "|keyspace_hits:2|keyspace_misses:3|",
        "|role:master|connected_slaves:0|",
    ] {
        assert!(all.contains(part), "{part} in {all}");
    }
    assert!(!all.contains("# Commandstats"));
    assert!(world.say("info everything").contains("||# Errorstats|"));
    assert!(!world.say("info all").contains("# Modules"));
    world.say("hello 3");
    assert!(world.say("info cluster").starts_with("=34|txt:# Cluster|"));
}

#[test]
fn sizes_of_values() {
    let mut world = World::new();
    world.talk(&[
        ("info keysizes", "$12|# Keysizes||"),
        ("set k v ex 10", "+OK|"),
        ("xadd s 1-1 a b", "$3|1-1|"),
        ("info keysizes", "$74|# Keysizes|db0_distrib_strings_sizes:1=1|db0_distrib_streams_items:1=1||"),
        ("xadd s 1-2 a b", "$3|1-2|"),
        ("xadd s 1-3 a b", "$3|1-3|"),
        ("append k 1234", ":5|"),
        ("select 1", "+OK|"),
        ("set e \"\"", "+OK|"),
        (
            "info keysizes",
            "$105|# Keysizes|db0_distrib_strings_sizes:4=1|db0_distrib_streams_items:2=1|db1_distrib_strings_sizes:0=1||",
        ),
        ("flushdb", "+OK|"),
        ("select 0", "+OK|"),
        ("xtrim s maxlen 0", ":3|"),
        ("copy s t", ":1|"),
        ("info keysizes", "$74|# Keysizes|db0_distrib_strings_sizes:4=1|db0_distrib_streams_items:0=2||"),
        ("del s t", ":2|"),
    ]);
}

#[test]
fn time_and_saving() {
    let mut world = World::new();
    world.process.saving.last_success_s = 77;
    world.talk(&[
        ("time", "*2|$10|1700000000|$2|42|"),
        ("lastsave", ":77|"),
        ("bgsave foo", SYNTAX),
        ("bgsave", "+Background saving started|"),
        ("bgrewriteaof", "+Background append only file rewriting started|"),
        ("shutdown foo", SYNTAX),
        ("shutdown abort", "-ERR No shutdown in progress.|"),
        ("shutdown save nosave", SYNTAX),
        ("shutdown nosave abort", SYNTAX),
    ]);
    assert_eq!(world.requests(), [Request::SaveInBackground, Request::SaveInBackground]);
    assert_eq!(world.say("shutdown nosave now"), "");
    assert_eq!(world.requests(), [Request::Shutdown { client: 1, save: Some(false) }]);
    // As the process does when it cannot end.
    let me = world.me;
    world.engine.end_wait(me, |reply| reply.ok());
    assert_eq!(world.read(me), "+OK|");
    let other = world.open("10.0.0.2:2000");
    assert_eq!(world.send(other, "save"), "");
    assert_eq!(world.requests(), [Request::Save { client: 2 }]);
    world.talk(&[("client unblock 2", ":0|")]);
    world.engine.end_wait(other, |reply| reply.ok());
    assert_eq!(world.read(other), "+OK|");
    world.process.saving.running = true;
    world.talk(&[
        ("save", "-ERR Background save already in progress|"),
        ("bgsave schedule", "-ERR Background save already in progress|"),
    ]);
}

#[test]
fn waiting_for_replicas_that_are_not_there() {
    let mut world = World::new();
    world.talk(&[
        ("wait 0 100", ":0|"),
        ("wait -1 100", ":0|"),
        ("wait a 1", NOT_INT),
        ("wait 1 a", "-ERR timeout is not an integer or out of range|"),
        ("wait 1 -1", "-ERR timeout is negative|"),
        ("wait 1 50", ""),
    ]);
    world.pass(49);
    assert_eq!(world.read(world.me), "");
    world.pass(1);
    assert_eq!(world.read(world.me), ":0|");
    world.talk(&[("multi", "+OK|"), ("wait 1 0", "+QUEUED|"), ("exec", "*1|:0|")]);
}

#[test]
fn waiting_for_the_log() {
    let mut world = World::new();
    world.talk(&[
        ("waitaof 0 0 10", "*2|:0|:0|"),
        ("waitaof 1 0 10", "-ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.|"),
        ("waitaof 2 0 10", "-ERR value is out of range, value must between 0 and 1|"),
        ("waitaof 0 -1 10", "-ERR value is out of range, must be positive|"),
        ("waitaof 0 0 -1", "-ERR timeout is negative|"),
    ]);
    world.engine.log.enable(100);
    world.say("set k v");
    let position = world.engine.log.position();
    world.talk(&[("waitaof 1 0 10", "")]);
    assert_eq!(world.requests(), [Request::WaitDurable { client: 1, position, deadline_ms: START_MS + 10 }]);
    world.talk(&[("ping", "")]);
    world.engine.end_wait(world.me, |reply| reply.ok());
    world.pass(0);
    assert_eq!(world.read(world.me), "+OK|+PONG|");
    world.talk(&[("waitaof 0 1 10", "")]);
    // Written is not synced.
    world.engine.on_durable(position);
    world.pass(10);
    assert_eq!(world.read(world.me), "*2|:0|:0|");
    world.engine.synced = position;
    world.talk(&[("waitaof 0 1 10", "")]);
    world.pass(10);
    assert_eq!(world.read(world.me), "*2|:1|:0|");
    world.talk(&[
        ("waitaof 0 0 0", "*2|:1|:0|"),
        ("multi", "+OK|"),
        ("waitaof 1 0 0", "+QUEUED|"),
        ("exec", "*1|*2|:1|:0|"),
    ]);
}

#[test]
fn debug() {
    let mut world = World::new();
    let refused = world.say("debug sleep 0");
    assert!(refused.starts_with("-ERR DEBUG command not allowed. If the enable-debug-command option"), "{refused}");
    let mut local = World::with(&[("enable-debug-command", "local")]);
    let here = local.open("127.0.0.1:5");
    assert!(local.say("debug digest").starts_with("-ERR DEBUG command not allowed"));
    assert!(local.send(here, "debug digest").starts_with("+0000"));

    let mut world = World::with(&[("enable-debug-command", "yes")]);
    let zeros = "0".repeat(40);
    world.talk(&[
        ("debug foo", "-ERR unknown subcommand or wrong number of arguments for 'foo'. Try DEBUG HELP.|"),
        ("debug sleep", "-ERR unknown subcommand or wrong number of arguments for 'sleep'. Try DEBUG HELP.|"),
        ("debug set-active-expire 1", "+OK|"),
        ("debug error \"FOO bar\"", "-FOO bar|"),
        ("debug object nokey", "-ERR no such key|"),
        ("debug digest", &format!("+{zeros}|")),
        ("debug digest-value nokey", &format!("*1|+{zeros}|")),
        ("debug sleep 0.5", "+OK|"),
        ("debug sleep x", "+OK|"),
    ]);
    assert_eq!(world.requests(), [Request::Sleep { us: 500_000 }, Request::Sleep { us: 0 }]);
    world.say("xadd s 1-1 a b");
    let first = world.say("debug digest");
    world.talk(&[("set k v", "+OK|")]);
    assert_ne!(world.say("debug digest"), first);
    world.talk(&[("del k", ":1|"), ("debug digest", &first), ("debug reload", "")]);
    assert_eq!(world.requests(), [Request::Reload { client: 1 }]);
}

#[test]
fn memory() {
    let mut world = World::new();
    world.say("xgroup create s g 0 mkstream");
    let bytes = |world: &mut World| -> u64 {
        let reply = world.say("memory usage s");
        reply.trim_matches([':', '|']).parse().unwrap()
    };
    let empty = bytes(&mut world);
    for _ in 0..2000 {
        world.say("xadd s * field aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    }
    let full = bytes(&mut world);
    assert!((50 * 2000..200 * 2000).contains(&(full - empty)), "{empty} {full}");
    world.say("xreadgroup group g c count 2000 streams s >");
    assert!(bytes(&mut world) > full + 2000);
    world.talk(&[
        ("memory usage nokey", "$-1|"),
        ("memory usage s samples", SYNTAX),
        ("memory usage s samples -1", SYNTAX),
        ("memory usage s samples a", NOT_INT),
        ("memory usage s foo 1", SYNTAX),
        ("memory purge", "+OK|"),
    ]);
    assert!(world.say("memory usage s samples 0").starts_with(':'));
    assert!(world.say("memory stats").starts_with("*18|$15|total.allocated|:1300000|"));
    assert!(world.say("memory doctor").starts_with('$'));
}

#[test]
fn slow_log_and_latency() {
    let mut world = World::new();
    world.talk(&[
        ("config set slowlog-log-slower-than 0", "+OK|"),
        ("client setname me", "+OK|"),
        ("mset a 1", "+OK|"),
        ("slowlog len", ":3|"),
        ("slowlog get 1", "*1|*6|:3|:1700000000|:0|*2|$7|slowlog|$3|len|$13|10.0.0.1:1000|$2|me|"),
        ("slowlog get -2", "-ERR count should be greater than or equal to -1|"),
        ("slowlog get a", "-ERR count should be greater than or equal to -1|"),
        ("slowlog get 1 2", "-ERR unknown subcommand or wrong number of arguments for 'get'. Try SLOWLOG HELP.|"),
        ("config set slowlog-log-slower-than -1", "+OK|"),
        ("slowlog reset", "+OK|"),
        ("slowlog get", "*0|"),
        ("slowlog get -1", "*0|"),
        ("latency latest", "*0|"),
        ("latency history foo", "*0|"),
        ("latency reset a b", ":0|"),
        ("latency histogram foo", "*0|"),
        ("latency graph foo", "-ERR No samples available for event 'foo'|"),
        ("role", "*3|$6|master|:0|*0|"),
        ("replicaof no one", "+OK|"),
        ("replicaof 127.0.0.1 abc", "-ERR Invalid master port|"),
        ("replicaof 127.0.0.1 6379", "-ERR this server cannot follow another one: replication is not supported|"),
    ]);
}
