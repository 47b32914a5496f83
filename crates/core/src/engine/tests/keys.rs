//! Keys, expiry, databases and SCAN, as Redis 8.2.3 answers.

use std::collections::BTreeSet;

use super::{START_MS, World};

const NOT_INT: &str = "-ERR value is not an integer or out of range|";
const SYNTAX: &str = "-ERR syntax error|";
const DB_RANGE: &str = "-ERR DB index is out of range|";
const INT_RANGE: &str = "-ERR value is out of range, value must between -2147483648 and 2147483647|";
const SAME: &str = "-ERR source and destination objects are the same|";

#[test]
fn names() {
    let no_key = "-ERR no such key|";
    let mut world = World::new();
    world.talk(&[
        ("set k v ex 100", "+OK|"),
        ("exists k k nokey", ":2|"),
        ("touch k nokey", ":1|"),
        ("type k", "+string|"),
        ("type nokey", "+none|"),
        ("rename nokey nokey", no_key),
        ("renamenx nokey k", no_key),
        ("rename k k", "+OK|"),
        ("renamenx k k", ":0|"),
        ("set l w", "+OK|"),
        ("renamenx k l", ":0|"),
        ("rename k l", "+OK|"),
        ("get l", "$1|v|"),
        ("ttl l", ":100|"),
        ("renamenx l k", ":1|"),
        ("del k k nokey", ":1|"),
        ("unlink k", ":0|"),
        ("dbsize", ":0|"),
    ]);
}

#[test]
fn copies_and_moves() {
    let mut world = World::new();
    world.talk(&[
        ("set k v ex 100", "+OK|"),
        ("copy k k", SAME),
        ("copy k c db abc", NOT_INT),
        ("copy k c db 99999999999", INT_RANGE),
        ("copy k c db 16", DB_RANGE),
        ("copy k c db", SYNTAX),
        ("copy k c foo", SYNTAX),
        ("copy nokey c", ":0|"),
        ("copy k c", ":1|"),
        ("copy k c", ":0|"),
        ("copy k c replace", ":1|"),
        ("ttl c", ":100|"),
        ("copy k k db 3", ":1|"),
        ("move k abc", NOT_INT),
        ("move k 16", DB_RANGE),
        ("move k -1", DB_RANGE),
        ("move k 0", SAME),
        ("move nokey 1", ":0|"),
        ("move k 3", ":0|"),
        ("move k 1", ":1|"),
        ("exists k", ":0|"),
        ("select abc", NOT_INT),
        ("select 16", DB_RANGE),
        ("select 99999999999", INT_RANGE),
        ("select 1", "+OK|"),
        ("ttl k", ":100|"),
    ]);
}

#[test]
fn whole_databases() {
    let mut world = World::new();
    world.talk(&[
        ("set a 1", "+OK|"),
        ("swapdb a 0", "-ERR invalid first DB index|"),
        ("swapdb 0 a", "-ERR invalid second DB index|"),
        ("swapdb 99999999999 0", "-ERR invalid first DB index|"),
        ("swapdb 0 16", DB_RANGE),
        ("swapdb 0 0", "+OK|"),
        ("swapdb 0 1", "+OK|"),
        ("dbsize", ":0|"),
        ("set b 1", "+OK|"),
        ("flushdb foo", SYNTAX),
        ("flushall sync async", SYNTAX),
        ("flushdb sync", "+OK|"),
        ("flushdb", "+OK|"),
        ("select 1", "+OK|"),
        ("keys *", "*1|$1|a|"),
        ("flushall async", "+OK|"),
        ("dbsize", ":0|"),
        ("randomkey", "$-1|"),
    ]);
}

#[test]
fn object() {
    let mut world = World::new();
    let short = "a".repeat(44);
    world.say(&format!("set short {short}"));
    world.say(&format!("set long {short}a"));
    world.say("xadd s 1-1 a b");
    let lfu = world.say("object freq short");
    assert!(lfu.starts_with("-ERR An LFU maxmemory policy is not selected"), "{lfu}");
    world.talk(&[
        ("object encoding short", "$6|embstr|"),
        ("object encoding long", "$3|raw|"),
        ("object encoding s", "$6|stream|"),
        ("set n -12", "+OK|"),
        ("object encoding n", "$3|int|"),
        ("set n 012", "+OK|"),
        ("object encoding n", "$6|embstr|"),
        ("set n 9223372036854775808", "+OK|"),
        ("object encoding n", "$6|embstr|"),
        ("object refcount n", ":1|"),
        ("object idletime n", ":0|"),
        ("object freq nokey", "$-1|"),
        ("object encoding nokey", "$-1|"),
    ]);
}

#[test]
fn expiry() {
    let invalid = |command: &str| format!("-ERR invalid expire time in '{command}' command|");
    let mut world = World::new();
    world.talk(&[
        ("set k v", "+OK|"),
        ("expire k abc", NOT_INT),
        ("expire k abc foo", "-ERR Unsupported option foo|"),
        ("expire k 10 nx xx", "-ERR NX and XX, GT or LT options at the same time are not compatible|"),
        ("expire k 10 gt lt", "-ERR GT and LT options at the same time are not compatible|"),
        ("expire k 9223372036854775807", &invalid("expire")),
        ("expire k -9223372036854775808", &invalid("expire")),
        ("pexpire k 9223372036854775807", &invalid("pexpire")),
        ("expireat k 9223372036854776", &invalid("expireat")),
        ("expire nokey 9223372036854775807", &invalid("expire")),
        ("expire nokey 10", ":0|"),
        ("expire k 10 gt", ":0|"),
        ("expire k 10 xx", ":0|"),
        ("expire k 10 lt", ":1|"),
        ("expire k 20 gt", ":1|"),
        ("expire k 20 gt", ":0|"),
        ("expire k 20 lt", ":0|"),
        ("expire k 30 nx", ":0|"),
        ("expire k 5 xx", ":1|"),
        ("expire k 9 xx gt", ":1|"),
        ("expiretime k", ":1700000009|"),
        ("pexpiretime k", ":1700000009000|"),
        ("persist k", ":1|"),
        ("persist k", ":0|"),
        ("ttl k", ":-1|"),
        ("expiretime k", ":-1|"),
        ("expiretime nokey", ":-2|"),
        ("pttl nokey", ":-2|"),
        ("pexpireat k 9223372036854775807", ":1|"),
        ("expiretime k", ":9223372036854776|"),
        ("expire k -1 lt", ":1|"),
        ("exists k", ":0|"),
    ]);
}

#[test]
fn time_passes() {
    let mut world = World::new();
    world.talk(&[("set k v px 1500", "+OK|"), ("set l w px 3000", "+OK|"), ("ttl k", ":2|")]);
    world.now_ms += 1001;
    world.talk(&[("ttl k", ":0|"), ("pttl k", ":499|")]);
    // Over, and nothing has removed it yet.
    world.now_ms += 499;
    world.talk(&[
        ("get k", "$-1|"),
        ("ttl k", ":-2|"),
        ("keys *", "*1|$1|l|"),
        ("scan 0", "*2|$1|0|*1|$1|l|"),
        ("randomkey", "$1|l|"),
        ("dbsize", ":2|"),
        ("rename k x", "-ERR no such key|"),
        ("dbsize", ":1|"),
        ("setnx k new", ":1|"),
        ("ttl k", ":-1|"),
    ]);
    assert_eq!(world.engine.statistics.expired_keys, 1);
    world.pass(2000);
    world.talk(&[("dbsize", ":1|"), ("pexpireat k 1", ":1|"), ("dbsize", ":0|")]);
    assert!(world.now_ms > START_MS);
}

#[test]
fn scan_arguments() {
    let mut world = World::new();
    world.talk(&[
        ("set k v", "+OK|"),
        ("xadd s 1-1 a b", "$3|1-1|"),
        ("scan abc", "-ERR invalid cursor|"),
        ("scan -1", "-ERR invalid cursor|"),
        ("scan 99999999999999999999", "-ERR invalid cursor|"),
        ("scan 0 count 0", SYNTAX),
        ("scan 0 count abc", NOT_INT),
        ("scan 0 match", SYNTAX),
        ("scan 0 foo bar", SYNTAX),
        ("scan 0 type STREAM", "*2|$1|0|*1|$1|s|"),
        ("scan 0 type foo", "*2|$1|0|*0|"),
        ("scan 0 match [a-k] count 100", "*2|$1|0|*1|$1|k|"),
        ("scan 0 count 1", "*2|$1|1|*1|$1|s|"),
        ("scan 1 count 1", "*2|$1|0|*1|$1|k|"),
        ("scan 01", "*2|$1|0|*1|$1|k|"),
        ("scan 999 match *", "*2|$1|0|*2|$1|s|$1|k|"),
        ("keys [^k]", "*1|$1|s|"),
    ]);
}

/// Keys come and go during the scan; those that stay are all seen.
#[test]
fn scan_misses_nothing_that_stays() {
    let mut world = World::new();
    for n in 0..300 {
        world.say(&format!("set stays{n} 1"));
        world.say(&format!("set goes{n} 1"));
    }
    let (mut seen, mut cursor, mut round) = (BTreeSet::new(), "0".to_owned(), 0);
    loop {
        let reply = world.say(&format!("scan {cursor} count 7"));
        let parts: Vec<&str> = reply.split('|').collect();
        cursor = parts[2].to_owned();
        seen.extend(parts[4..].iter().filter(|part| part.starts_with("stays")).map(|part| part.to_string()));
        if cursor == "0" {
            break;
        }
        for n in 0..5 {
            world.say(&format!("del goes{}", (round * 37 + n * 61) % 300));
            world.say(&format!("set new{} 1", round * 5 + n));
        }
        world.say(&format!("rename new{round} newer{round}"));
        round += 1;
    }
    assert!(round > 20);
    assert_eq!(seen.len(), 300);
}

#[test]
fn randomkey_finds_them_all() {
    let mut world = World::new();
    for key in ["a", "b", "c", "d"] {
        world.say(&format!("set {key} 1"));
    }
    let found: BTreeSet<String> = (0..200).map(|_| world.say("randomkey")).collect();
    assert_eq!(found.len(), 4);
}
