//! Keyspace events: which, in which order, and when they may leave. As Redis 8.2.3 sends them.

use super::World;

/// A world in which everything is told to a listener, and a command's events by `event=key` and `new=key`.
struct Told {
    world: World,
    listener: usize,
}

impl Told {
    fn new(classes: &str) -> Told {
        let mut world = World::with(&[("notify-keyspace-events", classes)]);
        let listener = world.open("10.0.0.2:2000");
        world.send(listener, "psubscribe __key*");
        Told { world, listener }
    }

    /// Events since the last call, e.g. `xadd=s`; those of other databases with the number before.
    fn events(&mut self) -> String {
        let text = self.world.read(self.listener);
        let messages = text.split("*4|$8|pmessage|$6|__key*|").filter(|part| !part.is_empty());
        let events: Vec<String> = messages
            .map(|message| {
                let parts: Vec<&str> = message.split('|').collect();
                let (channel, payload) = (parts[1], parts[3]);
                match channel.strip_prefix("__keyevent@") {
                    Some(rest) => format!("{}={payload}", rest.replacen("__:", ":", 1).trim_start_matches("0:")),
                    None => format!("{channel} {payload}"),
                }
            })
            .collect();
        events.join(" ")
    }

    fn after(&mut self, line: &str) -> String {
        self.world.say(line);
        self.events()
    }

    fn check(&mut self, cases: &[(&str, &str)]) {
        for (line, events) in cases {
            assert_eq!(self.after(line), *events, "{line}");
        }
    }
}

#[test]
fn of_streams() {
    Told::new("EAn").check(&[
        ("xadd s 1-1 a b", "new=s xadd=s"),
        ("xadd s 1-2 a b", "xadd=s"),
        ("xadd s maxlen 1 1-3 a b", "xadd=s xtrim=s"),
        ("xadd s maxlen 9 1-4 a b", "xadd=s"),
        ("xadd none nomkstream 1-1 a b", ""),
        ("xadd s 1-1 a b", ""),
        ("xtrim s maxlen 9", ""),
        ("xtrim s maxlen 1", "xtrim=s"),
        ("xgroup create t g $ mkstream", "new=t xgroup-create=t"),
        ("xgroup create s g 0", "xgroup-create=s"),
        ("xgroup create s g 0", ""),
        ("xgroup setid s g 0", "xgroup-setid=s"),
        ("xgroup createconsumer s g c", "xgroup-createconsumer=s"),
        ("xgroup createconsumer s g c", ""),
        ("xreadgroup group g d streams s t > >", "xgroup-createconsumer=s xgroup-createconsumer=t"),
        ("xreadgroup group g d streams s 0", ""),
        ("xclaim s g e 0 1-4", "xgroup-createconsumer=s"),
        ("xautoclaim s g f 0 0", "xgroup-createconsumer=s"),
        ("xack s g 1-4", ""),
        ("xdel s 1-4 9-9", "xdel=s"),
        ("xdel s 1-4", ""),
        ("xadd s 2-1 a b", "xadd=s"),
        ("xadd s 2-2 a b", "xadd=s"),
        ("xadd s 2-3 a b", "xadd=s"),
        ("xdelex s ids 3 2-1 2-2 2-2", "xdel=s"),
        ("xreadgroup group g f streams s >", ""),
        ("xdel s 2-3", "xdel=s"),
        ("xackdel s g ids 1 2-3", ""),
        ("xadd s 2-4 a b", "xadd=s"),
        ("xreadgroup group g f streams s >", ""),
        ("xackdel s g ids 2 2-4 2-4", "xdel=s"),
        ("xsetid s 9-9", "xsetid=s"),
        ("xgroup delconsumer s g nobody", ""),
        ("xgroup delconsumer s g c", "xgroup-delconsumer=s"),
        ("xgroup destroy s g", "xgroup-destroy=s"),
        ("xgroup destroy s g", ""),
    ]);
}

#[test]
fn of_batches() {
    Told::new("EAn").check(&[
        ("xaddm s count 2 1-1 1 a b 1-2 1 a b", "new=s xadd=s"),
        ("xaddm s count 1 1-1 1 a b", ""),
        ("xaddm s maxlen 2 count 2 1-3 1 a b 1-4 1 a b", "xadd=s xtrim=s"),
        ("xaddm none nomkstream count 1 1-1 1 a b", ""),
        ("multi", ""),
        ("xaddm s maxlen 1 count 1 1-5 1 a b", ""),
        ("xadd s maxlen 1 1-6 a b", ""),
        ("exec", "xadd=s xtrim=s xadd=s xtrim=s"),
    ]);
}

#[test]
fn of_bounds() {
    let mut told = Told::new("EA");
    told.check(&[
        ("xaddm s count 3 1-1 1 a b 1-2 1 a b 1-3 1 a b", "xadd=s"),
        ("xcfgset s maxlen 5", ""),
        ("xcfgset s maxlen 2", "xtrim=s"),
        ("xadd s 1-4 a b", "xadd=s xtrim=s"),
        ("xaddm s count 2 1-5 1 a b 1-6 1 a b", "xadd=s xtrim=s"),
        ("xadd s maxlen 2 1-7 a b", "xadd=s xtrim=s"),
        ("xadd s maxlen 1 1-8 a b", "xadd=s xtrim=s"),
        ("xcfgset s maxlen 0 maxage 1000", "xtrim=s"),
        ("xadd s 1-9 a b", "xadd=s xtrim=s"),
        ("xaddm s count 2 * 1 a b * 1 a b", "xadd=s"),
    ]);
    told.world.pass(999);
    assert_eq!(told.events(), "");
    told.world.pass(1);
    assert_eq!(told.events(), "xtrim=s");
    // Without anyone to tell nothing is kept, and nothing is told later.
    told.check(&[
        ("config set notify-keyspace-events \"\"", ""),
        ("xcfgset s maxage 0 maxlen 1", ""),
        ("xaddm s count 2 * 1 a b * 1 a b", ""),
        ("config set notify-keyspace-events EA", ""),
        ("ping", ""),
    ]);
}

#[test]
fn of_retaining_until_acknowledged() {
    let mut told = Told::new("EA");
    told.check(&[
        ("xgroup create s g 0 mkstream", "xgroup-create=s"),
        ("xcfgset s retain acked", ""),
        ("xaddm s count 6 1-1 1 a b 1-2 1 a b 1-3 1 a b 1-4 1 a b 1-5 1 a b 1-6 1 a b", "xadd=s"),
        ("xreadgroup group g c streams s >", "xgroup-createconsumer=s"),
        ("xack s g 1-1 1-3", "xtrim=s"),
        ("xack s g 1-1", ""),
        ("xackdel s g ids 2 1-2 9-9", "xdel=s"),
        ("xdelex s delref ids 1 1-4", "xdel=s"),
        ("xtrim s delref maxlen 1", "xtrim=s"),
        ("xgroup delconsumer s g c", "xgroup-delconsumer=s xtrim=s"),
        ("xgroup setid s g +", "xgroup-setid=s"),
        ("xadd s 2-1 a b", "xadd=s xtrim=s"),
        ("xaddm s count 2 2-2 1 a b 2-3 1 a b", "xadd=s xtrim=s"),
        ("xgroup setid s g -", "xgroup-setid=s"),
        ("xadd s 2-4 a b", "xadd=s"),
        ("xreadgroup group g c noack streams s >", "xgroup-createconsumer=s xtrim=s"),
    ]);
    // What goes on by turns tells for each.
    for n in 1..=1200 {
        told.world.say(&format!("xadd s 3-{n} a b"));
    }
    told.events();
    told.check(&[("xgroup create s h 0", "xgroup-create=s")]);
    told.world.say("xreadgroup group h c count 1 streams s >");
    told.world.say("xreadgroup group h c noack streams s >");
    told.world.say("xreadgroup group g c streams s >");
    told.events();
    told.check(&[("xgroup destroy s g", "xgroup-destroy=s xtrim=s")]);
    for events in ["xtrim=s", "xtrim=s", ""] {
        told.world.pass(1);
        assert_eq!(told.events(), events);
    }
}

#[test]
fn of_keys_and_strings() {
    let mut told = Told::new("EAn");
    told.check(&[
        ("set a 1", "new=a set=a"),
        ("set a 1 ex 100", "set=a expire=a"),
        ("set a 1 nx", ""),
        ("setex b 9 x", "new=b set=b expire=b"),
        ("setnx b x", ""),
        ("getset b y", "set=b"),
        ("getdel b", "del=b"),
        ("getex a persist", "persist=a"),
        ("getex a ex 5", "expire=a"),
        ("mset a 1 m 2", "set=a new=m set=m"),
        ("append a x", "append=a"),
        ("append b x", "new=b append=b"),
        ("setrange a 0 z", "setrange=a"),
        ("setrange c 0 z", "new=c setrange=c"),
        ("incr i", "new=i incrby=i"),
        ("decrby i 2", "incrby=i"),
        ("incrbyfloat i 1.5", "incrbyfloat=i"),
        ("expire a 100", "expire=a"),
        ("persist a", "persist=a"),
        ("persist a", ""),
        ("expire a -1", "del=a"),
        ("rename b c", "new=c rename_from=b rename_to=c"),
        ("rename c c", ""),
        ("renamenx c d", "new=d rename_from=c rename_to=d"),
        ("copy d e", "new=e copy_to=e"),
        ("copy d e", ""),
        ("copy d e db 3", "3:new=e 3:copy_to=e"),
        ("move d 4", "4:new=d move_from=d 4:move_to=d"),
        ("del e none i m", "del=e del=i del=m"),
        ("flushall", ""),
        ("get none", ""),
        ("set t 1 px 10", "new=t set=t expire=t"),
    ]);
    told.world.pass(10);
    assert_eq!(told.events(), "expired=t");
    told.check(&[("set t 1 px 10", "new=t set=t expire=t")]);
    told.world.now_ms += 10;
    told.check(&[("append t x", "expired=t new=t append=t")]);
}

#[test]
fn of_keys_that_are_not_there() {
    Told::new("Em").check(&[
        ("get a", "keymiss=a"),
        ("mget a b a", "keymiss=a keymiss=b keymiss=a"),
        ("exists a", "keymiss=a"),
        ("object encoding a", ""),
        ("set a 1", ""),
        ("set b 1 get", "keymiss=b"),
        ("set c 1 xx", ""),
        ("getset d 1", "keymiss=d"),
        ("getdel none", "keymiss=none"),
        ("copy none x", "keymiss=none"),
        ("xread streams none none2 0 0", "keymiss=none keymiss=none2"),
        ("xreadgroup group g c streams none >", "keymiss=none"),
        ("xack none g 1-1", "keymiss=none"),
        ("xdel none 1-1", ""),
        ("del none", ""),
        ("xadd s 1-1 a b", ""),
    ]);
}

#[test]
fn transactions_tell_after_each_command_and_classes_choose() {
    let mut told = Told::new("EA");
    told.check(&[
        ("multi", ""),
        ("set a 1", ""),
        ("xadd s 1-1 a b", ""),
        ("del a", ""),
        ("exec", "set=a xadd=s del=a"),
        ("config set notify-keyspace-events Kt", ""),
        ("set a 1", ""),
        ("xadd s 1-2 a b", "__keyspace@0__:s xadd"),
        ("config set notify-keyspace-events KEt", ""),
        ("xadd s 1-3 a b", "__keyspace@0__:s xadd xadd=s"),
        ("config set notify-keyspace-events t", ""),
        ("xadd s 1-4 a b", ""),
        ("config set notify-keyspace-events \"\"", ""),
        ("xadd s 1-5 a b", ""),
    ]);
}

#[test]
fn an_event_waits_for_its_record_as_a_reply_does() {
    let mut told = Told::new("EA");
    told.world.engine.log.enable(0);
    told.world.turn(|engine, facts| engine.feed(0, b"set a 1\r\n", facts));
    let position = told.world.engine.log.position();
    let output = &mut told.world.engine.client_mut(told.listener).unwrap().output;
    assert!(position > 0 && output.ready(position - 1).is_empty());
    assert!(output.ready(position).ends_with(b"$18\r\n__keyevent@0__:set\r\n$1\r\na\r\n"));
    // The clock alone, too.
    told.events();
    told.world.turn(|engine, facts| engine.feed(0, b"pexpire a 5\r\n", facts));
    told.events();
    let before = told.world.engine.log.position();
    told.world.pass(5);
    let output = &mut told.world.engine.client_mut(told.listener).unwrap().output;
    assert!(output.ready(before).is_empty());
    assert_eq!(told.events(), "expired=a");
}
