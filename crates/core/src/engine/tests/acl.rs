//! Users and connections, as Redis 8.2.3 answers.

use super::World;

const KEY: &str = "-NOPERM No permissions to access a key|";
const CHANNEL: &str = "-NOPERM No permissions to access a channel|";
const WRONG_PASS: &str = "-WRONGPASS invalid username-password pair or user is disabled.|";
const NO_AUTH: &str = "-NOAUTH Authentication required.|";

#[test]
fn a_user_may_do_what_its_rules_say() {
    let mut world = World::new();
    let other = world.open("10.0.0.2:2000");
    world.talk(&[
        ("acl setuser bob on >pw +@all -flushall ~a* &c*", "+OK|"),
        ("acl setuser bob ~b foo", "-ERR Error in ACL SETUSER modifier 'foo': Syntax error|"),
        ("acl setuser \"a b\" on", "-ERR Usernames can't contain spaces or null characters|"),
        ("acl setuser carl foo", "-ERR Error in ACL SETUSER modifier 'foo': Syntax error|"),
        ("acl users", "*2|$3|bob|$7|default|"),
    ]);
    for (line, reply) in [
        ("auth bob wrong", WRONG_PASS),
        ("acl whoami", "$7|default|"),
        ("auth bob pw", "+OK|"),
        ("acl whoami", "$3|bob|"),
        ("set a 1", "+OK|"),
        ("set b 1", KEY),
        ("flushall", "-NOPERM User bob has no permissions to run the 'flushall' command|"),
        ("subscribe c d", CHANNEL),
        ("publish d m", CHANNEL),
        ("multi", "+OK|"),
        ("get b", KEY),
        ("exec", "-EXECABORT Transaction discarded because of previous errors.|"),
        ("reset", "+RESET|"),
        ("acl whoami", "$7|default|"),
        ("set b 1", "+OK|"),
    ] {
        assert_eq!(world.send(other, line), reply, "{line}");
    }
}

#[test]
fn rights_are_looked_at_again_by_exec() {
    let mut world = World::new();
    let other = world.open("10.0.0.2:2000");
    world.say("acl setuser bob on nopass +@all ~* &*");
    for line in ["auth bob x", "multi", "get a", "set a 1", "publish c m", "echo a"] {
        world.send(other, line);
    }
    world.say("acl setuser bob -get resetchannels resetkeys");
    let begin = "-NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no longer allowed for the following reason: no permission to";
    assert_eq!(
        world.send(other, "exec"),
        format!(
            "*4|{begin} execute the command or subcommand|{begin} touch the specified keys|{begin} access one of the channels used as arguments|$1|a|"
        )
    );
    assert_eq!(world.say("get a"), "$-1|");
}

#[test]
fn a_waiting_reader_loses_its_rights() {
    let mut world = World::new();
    let other = world.open("10.0.0.2:2000");
    world.say("acl setuser bob on nopass +@all ~*");
    world.say("xgroup create s g 0 mkstream");
    world.send(other, "auth bob x");
    assert_eq!(world.send(other, "xreadgroup group g c block 0 streams s >"), "");
    world.say("acl setuser bob resetkeys");
    world.say("xadd s 1-1 f v");
    assert_eq!(world.read(other), KEY);
    assert_eq!(world.say("xpending s g"), "*4|:0|$-1|$-1|*-1|");
    assert_eq!(world.send(other, "ping"), "+PONG|");
}

#[test]
fn connections_of_a_deleted_user_are_closed() {
    let mut world = World::new();
    let other = world.open("10.0.0.2:2000");
    world.say("acl setuser bob on nopass +@all ~*");
    world.send(other, "auth bob x");
    world.talk(&[
        ("acl deluser default", "-ERR The 'default' user cannot be removed|"),
        ("acl deluser bob default", "-ERR The 'default' user cannot be removed|"),
        ("acl deluser bob nosuch", ":1|"),
    ]);
    assert!(world.engine.client(other).unwrap().killed && !world.engine.client(world.me).unwrap().killed);

    // Its own connection has the answer first, and no rights of another user.
    let third = world.open("10.0.0.3:3000");
    world.say("acl setuser eve on nopass +@all -get ~*");
    world.send(third, "auth eve x");
    world.send(third, "multi");
    world.send(third, "acl deluser eve");
    world.send(third, "ping");
    assert_eq!(world.send(third, "exec"), "*2|:1|+PONG|");
    let client = world.engine.client(third).unwrap();
    assert!(client.closing && !client.authenticated && client.restricted);
}

#[test]
fn who_hears_too_much_is_closed() {
    let mut world = World::new();
    let (one, two) = (world.open("10.0.0.2:2000"), world.open("10.0.0.3:3000"));
    world.say("acl setuser bob on nopass +@all allchannels");
    for client in [one, two] {
        world.send(client, "auth bob x");
    }
    world.send(one, "subscribe c d");
    world.send(two, "psubscribe c*");
    world.say("acl setuser bob resetchannels &c* &d");
    assert!(!world.engine.client(one).unwrap().killed);
    world.say("acl setuser bob resetchannels &c*");
    assert!(world.engine.client(one).unwrap().killed && !world.engine.client(two).unwrap().killed);
}

#[test]
fn the_default_user_and_requirepass() {
    let mut world = World::new();
    let stranger = |world: &mut World| world.open("10.0.0.2:2000");
    world.talk(&[
        ("config set requirepass foo", "+OK|"),
        (
            "acl list",
            "*1|$110|user default on sanitize-payload #2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae ~* &* +@all|",
        ),
    ]);
    let one = stranger(&mut world);
    assert_eq!(world.send(one, "ping"), NO_AUTH);
    // Nobody needs to say who it is any more: not even who came before.
    world.say("config set requirepass \"\"");
    assert_eq!(world.send(one, "ping"), "+PONG|");
    world.say("acl setuser default off");
    assert_eq!(world.say("ping"), "+PONG|");
    let two = stranger(&mut world);
    assert_eq!(world.send(two, "ping"), NO_AUTH);
    assert_eq!(world.send(two, "auth default x"), WRONG_PASS);
    world.say("acl setuser default on -get");
    assert_eq!(world.send(two, "get a"), "-NOPERM User default has no permissions to run the 'get' command|");
    assert_eq!(world.say("get a"), "-NOPERM User default has no permissions to run the 'get' command|");
}

#[test]
fn the_log_counts_what_is_alike() {
    let mut world = World::new();
    let other = world.open("10.0.0.2:2000");
    world.say("acl setuser bob on nopass +@all ~a");
    for line in ["auth bob x", "get b", "get b", "get c", "auth eve x"] {
        world.send(other, line);
    }
    let about = |text: &str| -> Vec<String> {
        let fields = ["count", "reason", "context", "object", "username", "age-seconds", "entry-id"];
        let parts: Vec<&str> = text.split('|').filter(|part| !part.starts_with(['$', '*'])).collect();
        parts.windows(2).filter(|pair| fields.contains(&pair[0])).map(|pair| pair[1].to_owned()).collect()
    };
    world.now_ms += 1500;
    assert_eq!(
        about(&world.say("acl log")),
        [
            [":1", "auth", "toplevel", "auth", "eve", "1.5", ":2"],
            [":1", "key", "toplevel", "c", "bob", "1.5", ":1"],
            [":2", "key", "toplevel", "b", "bob", "1.5", ":0"],
        ]
        .concat()
    );
    assert!(world.say("acl log 1").contains(" user=bob "));
    world.now_ms += 60_000;
    world.send(other, "get b");
    assert_eq!(about(&world.say("acl log 1")), [":1", "key", "toplevel", "b", "bob", "0", ":3"]);
    let stats = world.say("info stats");
    assert!(stats.contains("acl_access_denied_auth:1|") && stats.contains("acl_access_denied_key:4|"), "{stats}");
    world.talk(&[
        ("config set acllog-max-len 1", "+OK|"),
        ("acl log 0", "*0|"),
        ("acl log x", "-ERR value is not an integer or out of range|"),
    ]);
    world.send(other, "get d");
    assert!(world.say("acl log").starts_with("*1|"));
    world.talk(&[("acl log reset", "+OK|"), ("acl log", "*0|")]);
}

#[test]
fn views() {
    let mut world = World::new();
    world.talk(&[
        ("acl setuser bob +@read ~k &c (+set %W~w)", "+OK|"),
        (
            "acl getuser bob",
            "*12|$5|flags|*2|$3|off|$16|sanitize-payload|$9|passwords|*0|$8|commands|$12|-@all +@read|$4|keys|$2|~k|$8|channels|$2|&c|$9|selectors|*1|*6|$8|commands|$10|-@all +set|$4|keys|$4|%W~w|$8|channels|$0||",
        ),
        ("acl getuser nosuch", "$-1|"),
        ("acl cat nosuch", "-ERR Unknown category 'nosuch'|"),
        ("acl cat transaction", "*5|$7|discard|$4|exec|$5|multi|$7|unwatch|$5|watch|"),
        ("acl cat hyperloglog", "*0|"),
        ("acl genpass 5", "$2|11|"),
        ("acl genpass 0", "-ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096|"),
        ("acl dryrun bob get k", "+OK|"),
        ("acl dryrun bob get x", "$49|User bob has no permissions to access the 'x' key|"),
        ("acl dryrun bob del k", "$52|User bob has no permissions to run the 'del' command|"),
        ("acl dryrun nosuch get k", "-ERR User 'nosuch' not found|"),
        ("acl dryrun bob nosuch", "-ERR Command 'nosuch' not found|"),
        ("client kill user nosuch", "-ERR No such user 'nosuch'|"),
        ("client kill user bob", ":0|"),
    ]);
    assert!(world.say("acl cat").starts_with("*21|$8|keyspace|$4|read|$5|write|$3|set|"));
    assert!(world.say("acl genpass").starts_with("$64|"));
    let other = world.open("10.0.0.2:2000");
    world.say("acl setuser bob on nopass");
    world.send(other, "auth bob x");
    world.talk(&[("client kill user bob", ":1|")]);
}

#[test]
fn the_file_is_taken_whole_or_not_at_all() {
    let mut world = World::new();
    assert!(world.say("acl save").starts_with("-ERR This Redis instance is not configured to use an ACL file."));
    let mut world = World::with(&[("aclfile", "users.acl")]);
    let other = world.open("10.0.0.2:2000");
    world.say("acl setuser bob on nopass +@all ~*");
    world.send(other, "auth bob x");
    world.talk(&[("acl load", "-ERR cannot read the ACL file users.acl: it is not there|"), ("acl save", "+OK|")]);
    let bob = "user bob on nopass sanitize-payload ~* resetchannels +@all\n";
    let default = "user default on nopass sanitize-payload ~* &* +@all\n";
    assert_eq!(*world.process.acl_file.borrow(), Some([bob, default].concat().into_bytes()));
    let file = |text: &str| Some(text.as_bytes().to_vec());
    *world.process.acl_file.borrow_mut() = file("# users\n\nuser eve on >x\nuser bob +nosuch\n");
    let end = "WARNING: ACL errors detected, no change to the users was made|";
    let unknown = "in '+nosuch': Unknown command or category name in ACL";
    world.talk(&[("acl load", &format!("-ERR users.acl:4: {unknown}. {end}")), ("acl users", "*2|$3|bob|$7|default|")]);
    *world.process.acl_file.borrow_mut() = file("user eve on >x\n");
    world.talk(&[("acl load", "+OK|"), ("acl users", "*2|$7|default|$3|eve|")]);
    assert!(world.engine.client(other).unwrap().killed);
}

#[test]
fn users_of_the_settings() {
    let mut all = crate::settings::Settings::default();
    all.apply(b"user", &["bob", "on", ">pw", "+get", "~*"]).unwrap();
    let twice = all.apply(b"user", &["bob", "on"]).unwrap_err();
    assert_eq!(twice.to_string(), "setting 'user': the user 'bob' stands there twice");
    let wrong = all.apply(b"user", &["carl", "+nosuch"]).unwrap_err();
    assert_eq!(wrong.to_string(), "setting 'user': in '+nosuch': Unknown command or category name in ACL");
    let mut world = World::new();
    world.engine = super::Engine::new(all, 7);
    let me = world.open("10.0.0.1:1000");
    assert_eq!(world.send(me, "auth bob pw"), "+OK|");
    assert_eq!(world.send(me, "set a 1"), "-NOPERM User bob has no permissions to run the 'set' command|");
}
