//! Rules by themselves: how they are read, shown and checked. What Redis 8.2.3 shows was compared with the lines here.

use super::*;
use crate::command::args::OwnedArgs;
use crate::command::table;
use crate::engine::acl::selector::{AFTER_ALL_CHANNELS, AFTER_ALL_KEYS, CommandBits, FIRST_ARGUMENT, SYNTAX, UNKNOWN};

fn user(rules: &str) -> User {
    let mut user = User::new(b"u", false);
    let rules: Vec<&str> = rules.split_ascii_whitespace().collect();
    user.apply_all(&rules).unwrap_or_else(|error| panic!("{rules:?}: {error:?}"));
    user
}

fn denial(user: &User, command: &str) -> Option<Denial> {
    let owned = OwnedArgs::new(command.split_ascii_whitespace());
    let spec = table::resolve(owned.args()).unwrap_or_else(|error| panic!("{command}: {error:?}"));
    user.check(spec, owned.args()).err()
}

#[test]
fn there_is_a_bit_for_every_command() {
    for spec in table::all_with_subcommands() {
        assert!((spec.id as usize) < 64 * CommandBits::WORDS, "{}", spec.name);
    }
}

#[test]
fn a_line_shows_what_holds() {
    let cases = [
        ("", "off sanitize-payload resetchannels -@all"),
        ("on nopass ~* &* +@all", "on nopass sanitize-payload ~* &* +@all"),
        ("+get|foo +client|id +client", "off sanitize-payload resetchannels -@all +get|foo +client"),
        ("+client -client|id +client|id", "off sanitize-payload resetchannels -@all +client +client|id"),
        ("+@all -@admin +config|get +@admin", "off sanitize-payload resetchannels +@all +config|get +@admin"),
        ("-@all +@read -@READ", "off sanitize-payload resetchannels -@all -@read"),
        ("~a* ~b* ~a* %R~c %W~d", "off sanitize-payload ~a* ~b* %R~c %W~d resetchannels -@all"),
        ("%R~a %W~a %rw~b", "off sanitize-payload ~a ~b resetchannels -@all"),
        ("&ch* &d &d skip-sanitize-payload", "off skip-sanitize-payload resetchannels &ch* &d -@all"),
        (
            "(+get ~x) (+set %W~y)",
            "off sanitize-payload resetchannels -@all (~x resetchannels -@all +get) (%W~y resetchannels -@all +set)",
        ),
        ("() (+get) clearselectors", "off sanitize-payload resetchannels -@all"),
        ("on >a ~* +@all (+get) reset", "off sanitize-payload resetchannels -@all"),
        (
            ">a >b <b",
            "off sanitize-payload #ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb resetchannels -@all",
        ),
    ];
    for (rules, line) in cases {
        let first = user(rules);
        assert_eq!(String::from_utf8(first.line()).unwrap(), format!("user u {line}"), "{rules}");
        // What is shown makes a user again that is shown so.
        assert_eq!(user(line).line(), first.line(), "{rules}");
    }
}

#[test]
fn rules_that_are_none() {
    let cases: [(&str, &str); 14] = [
        ("foo", SYNTAX),
        ("+nosuch", UNKNOWN),
        ("-get|foo", UNKNOWN),
        ("+client|nosuch", UNKNOWN),
        ("+client|id|x", FIRST_ARGUMENT),
        ("+@nosuch", UNKNOWN),
        ("~* ~a", AFTER_ALL_KEYS),
        ("&* &a", AFTER_ALL_CHANNELS),
        ("%X~a", SYNTAX),
        ("%~a", SYNTAX),
        ("#abc", HASH),
        ("#C3AB8FF13720E8AD9047DD39466B3C8974E592C2FA383D4A3960714CAEF0C4F2", HASH),
        ("<a", NO_SUCH_PASSWORD),
        ("(on)", SYNTAX),
    ];
    for (rules, reason) in cases {
        let rules: Vec<&str> = rules.split_ascii_whitespace().collect();
        let error = User::new(b"u", false).apply_all(&rules).unwrap_err();
        assert_eq!(error, RuleError::Rule(rules.last().unwrap().as_bytes().to_vec(), reason));
    }
    let error = User::new(b"u", false).apply_all(&["(+get", "~x"]).unwrap_err();
    assert_eq!(error, RuleError::Unmatched(b"(+get".to_vec()));
    assert!(User::new(b"u", false).apply_all(&["~a b"]).is_err());
}

#[test]
fn commands() {
    let reader = user("~* +@stream -@write +ping +select|0 -xlen");
    for allowed in ["xrange s - +", "ping", "SELECT 0", "auth a", "hello", "quit", "reset", "xinfo stream s"] {
        assert_eq!(denial(&reader, allowed), None, "{allowed}");
    }
    for refused in ["xadd s * f v", "select 1", "xlen s", "get s", "xgroup create s g 0", "acl whoami"] {
        assert_eq!(denial(&reader, refused), Some(Denial::Command), "{refused}");
    }
    // A rule about a container holds for what it contains, and one about its contents for these alone.
    let keeper = user("~* +config -config|set");
    assert_eq!(denial(&keeper, "config get x"), None);
    assert_eq!(denial(&keeper, "config set x y"), Some(Denial::Command));
    assert_eq!(denial(&user("~* +select|0 -select"), "select 0"), Some(Denial::Command));
}

#[test]
fn keys_by_what_is_done_to_them() {
    let writer = user("+@all %W~a %R~b ~c");
    for allowed in
        ["copy b a", "append a 1", "exists a b c", "set a 1", "xadd a * f v", "xlen a", "set c 1 get", "mget b c"]
    {
        assert_eq!(denial(&writer, allowed), None, "{allowed}");
    }
    let refused = [
        ("rename a b", 1),
        ("copy a b", 1),
        ("incr a", 1),
        ("del a b", 2),
        ("mset c 1 d 2", 3),
        ("watch a x", 2),
        ("set a 1 get", 1),
        ("xrange a - +", 1),
        ("xreadgroup group b STREAMS streams b a > >", 6),
        ("memory usage x", 2),
    ];
    for (command, at) in refused {
        assert_eq!(denial(&writer, command), Some(Denial::Key(at)), "{command}");
    }
    // Commands without keys, and those that will be refused for another reason, touch none.
    assert_eq!(denial(&writer, "keys *"), None);
    assert_eq!(denial(&writer, "xread streams x 0 y"), None);
}

#[test]
fn channels() {
    let listener = user("+@all ~* &c* &x?");
    for allowed in
        ["publish c m", "subscribe c1 c2", "ssubscribe c", "psubscribe c* x?", "unsubscribe z", "pubsub channels"]
    {
        assert_eq!(denial(&listener, allowed), None, "{allowed}");
    }
    assert_eq!(denial(&listener, "publish d m"), Some(Denial::Channel(1)));
    assert_eq!(denial(&listener, "spublish d m"), Some(Denial::Channel(1)));
    assert_eq!(denial(&listener, "subscribe c d"), Some(Denial::Channel(2)));
    assert_eq!(denial(&listener, "psubscribe cc*"), Some(Denial::Channel(1)));
    // A shard channel is no key.
    assert_eq!(denial(&user("+@all &c"), "spublish c m"), None);
}

#[test]
fn one_selector_must_allow_all() {
    let user = user("+mget ~m* (+get ~g*) (+set ~s*)");
    assert_eq!(denial(&user, "get g1"), None);
    assert_eq!(denial(&user, "set s1 v"), None);
    assert_eq!(denial(&user, "set g1 v"), Some(Denial::Key(1)));
    assert_eq!(denial(&user, "mget m g"), Some(Denial::Key(2)));
    assert_eq!(denial(&user, "del m"), Some(Denial::Command));
    assert!(!user.may_do_everything());
    assert!(self::user("(+@all ~* &*)").may_do_everything());
}

#[test]
fn passwords() {
    let mut user = user("on >one >two");
    assert!(user.lets_in(&hash(b"one")) && user.lets_in(&hash(b"two")) && !user.lets_in(&hash(b"three")));
    user.apply_all(&["off"]).unwrap();
    assert!(!user.lets_in(&hash(b"one")));
    user.apply_all(&["on", "nopass"]).unwrap();
    assert!(user.lets_in(&hash(b"anything")));
    user.apply_all(&["resetpass"]).unwrap();
    assert!(!user.lets_in(&hash(b"one")) && !user.lets_in(&hash(b"")));
    assert_eq!(hex(&hash(b"foo")), "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae");
    assert_eq!(parse_hash(hex(&hash(b"foo")).as_bytes()), Some(hash(b"foo")));
}

/// Words of a file may be quoted, and hold what a line of users cannot show.
#[test]
fn a_first_argument_is_one_word() {
    for argument in ["a b", "a\0b", "a\tb", "a\x0bb"] {
        let words = ["x".to_owned(), format!("+get|{argument}")];
        assert!(crate::engine::acl::user_of_line(&words, true).is_err(), "{argument:?}");
    }
    assert!(crate::engine::acl::user_of_line(&["x", "+get|a"], true).is_ok());
}
