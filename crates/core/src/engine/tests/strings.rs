//! Strings, as Redis 8.2.3 answers.

use super::World;

const NOT_INT: &str = "-ERR value is not an integer or out of range|";
const SYNTAX: &str = "-ERR syntax error|";
const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value|";

#[test]
fn set_and_its_options() {
    let invalid = "-ERR invalid expire time in 'set' command|";
    let mut world = World::new();
    world.talk(&[
        ("set k v ex 0", invalid),
        ("set k v ex -1", invalid),
        ("set k v ex abc", NOT_INT),
        ("set k v ex 9223372036854775807", invalid),
        ("set k v px 9223372036854775807", invalid),
        ("set k v ex 10 px 10", SYNTAX),
        ("set k v nx xx", SYNTAX),
        ("set k v keepttl ex 10", SYNTAX),
        ("set k v ex 10 keepttl", SYNTAX),
        ("set k v persist", SYNTAX),
        ("set k v ex", SYNTAX),
        ("get k", "$-1|"),
        ("set k v xx", "$-1|"),
        ("set k v nx get", "$-1|"),
        ("set k w nx", "$-1|"),
        ("set k w nx get", "$1|v|"),
        ("set k w xx get", "$1|v|"),
        ("get k", "$1|w|"),
        ("set k v ex 5 ex 20", "+OK|"),
        ("ttl k", ":20|"),
        ("set k w keepttl", "+OK|"),
        ("ttl k", ":20|"),
        ("set k w", "+OK|"),
        ("ttl k", ":-1|"),
        ("set k v exat 1700000100", "+OK|"),
        ("ttl k", ":100|"),
        ("set k v pxat 1", "+OK|"),
        ("get k", "$-1|"),
    ]);
}

#[test]
fn other_ways_to_set() {
    let mut world = World::new();
    world.talk(&[
        ("setex k 10 v", "+OK|"),
        ("pttl k", ":10000|"),
        ("setex k 0 v", "-ERR invalid expire time in 'setex' command|"),
        ("psetex k 0 v", "-ERR invalid expire time in 'psetex' command|"),
        ("psetex k a v", NOT_INT),
        ("psetex k 7 v", "+OK|"),
        ("pttl k", ":7|"),
        ("setnx k w", ":0|"),
        ("setnx l w", ":1|"),
        ("getset l x", "$1|w|"),
        ("getset m x", "$-1|"),
        ("getdel m", "$1|x|"),
        ("getdel m", "$-1|"),
        ("mset a 1 b", "-ERR wrong number of arguments for 'mset' command|"),
        ("msetnx a 1 b", "-ERR wrong number of arguments for 'msetnx' command|"),
        ("msetnx a 1 b 2 a 3", ":1|"),
        ("msetnx c 1 b 2", ":0|"),
        ("mset a 4 d 5", "+OK|"),
        ("mget a b c d", "*4|$1|4|$1|2|$-1|$1|5|"),
    ]);
}

#[test]
fn getex_looks_at_the_time_only_when_there_is_a_key() {
    let mut world = World::new();
    world.talk(&[
        ("getex nokey ex abc", "$-1|"),
        ("getex nokey foo", SYNTAX),
        ("set k v", "+OK|"),
        ("getex k ex 0", "-ERR invalid expire time in 'getex' command|"),
        ("getex k ex a", NOT_INT),
        ("getex k persist ex 10", SYNTAX),
        ("getex k keepttl", SYNTAX),
        ("getex k ex 10", "$1|v|"),
        ("ttl k", ":10|"),
        ("getex k", "$1|v|"),
        ("ttl k", ":10|"),
        ("getex k persist", "$1|v|"),
        ("ttl k", ":-1|"),
        ("getex k exat 1", "$1|v|"),
        ("exists k", ":0|"),
    ]);
}

#[test]
fn parts_of_strings() {
    let too_long = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)|";
    let offset = "-ERR offset is out of range|";
    let mut world = World::new();
    world.talk(&[
        ("append a xy", ":2|"),
        ("append a z", ":3|"),
        ("strlen a", ":3|"),
        ("strlen nokey", ":0|"),
        ("setrange a -1 x", offset),
        ("setrange a x x", NOT_INT),
        ("setrange a 536870912 x", too_long),
        ("setrange a 536870911 xy", too_long),
        ("setrange a 9223372036854775807 xy", too_long),
        ("setrange nokey 9 \"\"", ":0|"),
        ("exists nokey", ":0|"),
        ("setrange a 1 \"\"", ":3|"),
        ("setrange a 1 Y", ":3|"),
        ("setrange a 5 !", ":6|"),
        ("get a", "$6|xYz\0\0!|"),
        ("set s hello", "+OK|"),
        ("getrange s 0 -1", "$5|hello|"),
        ("getrange s -3 -2", "$2|ll|"),
        ("getrange s -100 1", "$2|he|"),
        ("getrange s 3 100", "$2|lo|"),
        ("getrange s 3 1", "$0||"),
        ("getrange s -1 -2", "$0||"),
        ("getrange s 9 12", "$0||"),
        ("getrange s -9223372036854775808 9223372036854775807", "$5|hello|"),
        ("getrange nokey 0 -1", "$0||"),
        ("getrange s a 1", NOT_INT),
        ("substr s 1 2", "$2|el|"),
        ("expire s 100", ":1|"),
        ("append s !", ":6|"),
        ("ttl s", ":100|"),
    ]);
}

#[test]
fn counting() {
    let overflow = "-ERR increment or decrement would overflow|";
    let no_float = "-ERR value is not a valid float|";
    let mut world = World::new();
    world.talk(&[
        ("incr n", ":1|"),
        ("decr m", ":-1|"),
        ("incrby n 9223372036854775806", ":9223372036854775807|"),
        ("incr n", overflow),
        ("decrby n -9223372036854775808", "-ERR decrement would overflow|"),
        ("decrby n -1", overflow),
        ("incrby n x", NOT_INT),
        ("decrby n 9223372036854775807", ":0|"),
        ("set n \" 1\"", "+OK|"),
        ("incr n", NOT_INT),
        ("set n 5 ex 50", "+OK|"),
        ("incr n", ":6|"),
        ("incrbyfloat n 0.5", "$3|6.5|"),
        ("ttl n", ":50|"),
        ("incrbyfloat n abc", no_float),
        ("incrbyfloat n nan", no_float),
        ("incrbyfloat n inf", "-ERR increment would produce NaN or Infinity|"),
        ("incrbyfloat f 0.1", "$3|0.1|"),
        ("incrbyfloat f 0.2", "$3|0.3|"),
    ]);
}

#[test]
fn other_types_are_refused_and_left_alone() {
    let mut world = World::new();
    world.say("xadd s 1-1 a b");
    for line in [
        "get s",
        "getset s 1",
        "getdel s",
        "getex s",
        "set s 1 get",
        "set s 1 nx get",
        "incr s",
        "incrby s 1",
        "append s 1",
        "strlen s",
        "setrange s 0 a",
        "setrange s 0 \"\"",
        "getrange s 0 1",
        "incrbyfloat s abc",
    ] {
        assert_eq!(world.say(line), WRONG_TYPE, "{line}");
    }
    world.talk(&[
        ("mget s", "*1|$-1|"),
        ("setnx s 1", ":0|"),
        ("type s", "+stream|"),
        ("set s 1", "+OK|"),
        ("get s", "$1|1|"),
    ]);
}
