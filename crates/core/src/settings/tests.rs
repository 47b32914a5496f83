//! Settings: what CONFIG GET and SET answer, as observed on Redis 8.2.3 unless a test says otherwise; files; command lines.

use super::text::{parse_command_line, parse_file};
use super::*;
use crate::command::args::OwnedArgs;
use crate::resp::encode::Protocol;

fn set(settings: &mut Settings, words: &[&str]) -> String {
    let owned = OwnedArgs::new(words);
    match settings.config_set(owned.args()) {
        Ok(_) => "OK".into(),
        Err(text) => String::from_utf8(text).unwrap(),
    }
}

fn get(settings: &Settings, patterns: &[&str]) -> Vec<(String, String)> {
    let owned = OwnedArgs::new(patterns);
    let mut out = Vec::new();
    settings.config_get(owned.args(), &mut Reply { out: &mut out, protocol: Protocol::Resp2 });
    let text = String::from_utf8(out).unwrap();
    let values: Vec<&str> = text.split("\r\n").skip(2).step_by(2).collect();
    values.chunks_exact(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned())).collect()
}

fn one(settings: &Settings, name: &str) -> String {
    let found = get(settings, &[name]);
    assert_eq!(found.len(), 1, "{name}");
    found[0].1.clone()
}

#[test]
fn values_are_taken_and_shown() {
    let cases = [
        ("maxmemory", "1gb", "1073741824"),
        ("maxmemory", "1GB", "1073741824"),
        ("maxmemory", "1g", "1000000000"),
        ("maxmemory", "1k", "1000"),
        ("maxmemory", "10b", "10"),
        ("appendfsync", "EVERYSEC", "everysec"),
        ("appendfsync", "no", "no"),
        ("save", "900 1 300 10", "900 1 300 10"),
        ("save", "900 0", "900 0"),
        ("save", "", ""),
        ("maxclients", "100", "100"),
        ("loglevel", "Warning", "warning"),
        ("requirepass", "x y", "x y"),
        ("proto-max-bulk-len", "1mb", "1048576"),
        ("client-output-buffer-limit", "pubsub 1mb 2 3", "normal 0 0 0 slave 268435456 67108864 60 pubsub 1048576 2 3"),
        ("client-output-buffer-limit", "", "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60"),
        ("client-output-buffer-limit", "replica 1 2 3", "normal 0 0 0 slave 1 2 3 pubsub 33554432 8388608 60"),
        ("stream-node-max-bytes", "4kb", "4096"),
        ("slowlog-log-slower-than", "-1", "-1"),
        ("notify-keyspace-events", "KEA", "AKE"),
        ("notify-keyspace-events", "Kg$", "g$K"),
        ("notify-keyspace-events", "KEAmn", "AKEm"),
        ("notify-keyspace-events", "gEx", "gxE"),
        ("notify-keyspace-events", "", ""),
        ("stream-lag", "compat", "compat"),
        ("stream-idmp-duration", "55", "55"),
        ("maxmemory-policy", "noeviction", "noeviction"),
        ("lua-time-limit", "7", "7"),
        // Without a meaning here.
        ("hz", "99", "99"),
        ("lazyfree-lazy-eviction", "YES", "yes"),
        ("repl-backlog-size", "1mb", "1048576"),
        ("maxmemory-clients", "5%", "5%"),
        ("shutdown-on-sigterm", "nosave force", "nosave force"),
    ];
    for (name, value, shown) in cases {
        let mut settings = Settings::default();
        assert_eq!(set(&mut settings, &[name, value]), "OK", "{name} {value}");
        assert_eq!(one(&settings, name), shown, "{name} {value}");
    }
}

#[test]
fn values_are_refused_as_in_redis() {
    let cases = [
        ("maxmemory", "x", "argument must be a memory value"),
        ("maxmemory", "-1", "argument must be a memory value"),
        ("maxmemory", "1 kb", "argument must be a memory value"),
        ("maxmemory", "1.5gb", "argument must be a memory value"),
        ("maxmemory", "99999999999999999999", "argument must be greater or equal to 0"),
        ("databases", "3", "can't set immutable config"),
        ("unixsocket", "/x", "can't set immutable config"),
        ("enable-debug-command", "foo", "can't set immutable config"),
        ("appenddirname", "x", "can't set immutable config"),
        ("dir", "/tmp", "can't set protected config"),
        ("dbfilename", "x.rdb", "can't set protected config"),
        ("appendfsync", "foo", "argument(s) must be one of the following: everysec, always, no"),
        ("loglevel", "foo", "argument(s) must be one of the following: debug, verbose, notice, warning, nothing"),
        (
            "maxmemory-policy",
            "foo",
            "argument(s) must be one of the following: volatile-lru, volatile-lfu, volatile-random, volatile-ttl, \
             allkeys-lru, allkeys-lfu, allkeys-random, noeviction",
        ),
        ("protected-mode", "foo", "argument must be 'yes' or 'no'"),
        ("save", "foo", "Invalid save parameters"),
        ("save", "900", "Invalid save parameters"),
        ("save", "900 1 300", "Invalid save parameters"),
        ("save", "0 1", "Invalid save parameters"),
        ("save", "900 -1", "Invalid save parameters"),
        ("timeout", "-1", "argument must be between 0 and 2147483647 inclusive"),
        ("timeout", "x", "argument couldn't be parsed into an integer"),
        ("timeout", "007", "argument couldn't be parsed into an integer"),
        ("timeout", "+7", "argument couldn't be parsed into an integer"),
        ("timeout", " 7", "argument couldn't be parsed into an integer"),
        ("timeout", "99999999999", "argument must be between 0 and 2147483647 inclusive"),
        ("maxclients", "0", "argument must be between 1 and 4294967295 inclusive"),
        ("proto-max-bulk-len", "1", "argument must be between 1048576 and 9223372036854775807 inclusive"),
        ("client-query-buffer-limit", "1", "argument must be between 1048576 and 9223372036854775807 inclusive"),
        ("client-output-buffer-limit", "foo", "Wrong number of arguments in buffer limit configuration."),
        ("client-output-buffer-limit", "pubsub 1 2", "Wrong number of arguments in buffer limit configuration."),
        ("client-output-buffer-limit", "foo 1 2 3", "Invalid client class specified in buffer limit configuration."),
        (
            "client-output-buffer-limit",
            "pubsub 1mb 2 x",
            "Error in hard, soft or soft_seconds setting in buffer limit configuration.",
        ),
        ("stream-node-max-entries", "-1", "argument must be between 0 and 9223372036854775807 inclusive"),
        ("stream-node-max-bytes", "-1", "argument must be a memory value"),
        ("slowlog-log-slower-than", "-2", "argument must be between -1 and 9223372036854775807 inclusive"),
        ("notify-keyspace-events", "q", "Invalid event class character. Use 'Ag$lshzxeKEtmdn'."),
        ("busy-reply-threshold", "x", "argument couldn't be parsed into an integer"),
        // From 8.6 on.
        ("stream-idmp-maxsize", "10001", "argument must be between 1 and 10000 inclusive"),
        // Ours: Redis takes these.
        ("maxmemory", "", "argument must be a memory value"),
        ("maxmemory-policy", "allkeys-lru", "only noeviction is supported: data is never dropped to make room"),
        ("port", "7000", "can't set immutable config"),
        ("tls-port", "7000", "TLS is not supported"),
        ("stream-lag", "maybe", "argument(s) must be one of the following: exact, compat"),
    ];
    for (name, value, reason) in cases {
        let mut settings = Settings::default();
        let want = format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}");
        assert_eq!(set(&mut settings, &[name, value]), want);
        assert_eq!(settings, Settings::default());
    }
}

#[test]
fn several_at_once() {
    let mut settings = Settings::default();
    let unknown = |name| format!("ERR Unknown option or number of arguments for CONFIG SET - '{name}'");
    let failed = |name, reason| format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}");
    assert_eq!(set(&mut settings, &["nosuch", "1"]), unknown("nosuch"));
    assert_eq!(set(&mut settings, &["maxmemory", "x", "nosuch", "2"]), unknown("nosuch"));
    assert_eq!(set(&mut settings, &["include", "x"]), unknown("include"));
    assert_eq!(set(&mut settings, &["user", "x"]), unknown("user"));
    let immutable = failed("databases", "can't set immutable config");
    assert_eq!(set(&mut settings, &["databases", "3", "nosuch", "1"]), immutable);
    assert_eq!(set(&mut settings, &["maxmemory", "1", "MAXMEMORY", "2"]), failed("MAXMEMORY", "duplicate parameter"));
    assert_eq!(set(&mut settings, &["maxmemory", "1", "timeout"]), "ERR syntax error");
    let wrong = failed("appendfsync", "argument(s) must be one of the following: everysec, always, no");
    assert_eq!(set(&mut settings, &["timeout", "5", "appendfsync", "foo", "hz", "99"]), wrong);
    assert_eq!(settings, Settings::default(), "all or nothing");
    let owned = OwnedArgs::new(["Timeout", "5", "hz", "99"]);
    let applied = settings.config_set(owned.args()).unwrap();
    assert_eq!(applied, [Applied::Honoured("timeout"), Applied::Known("hz")]);
    assert_eq!((settings.timeout_seconds, one(&settings, "hz").as_str()), (5, "99"));
}

#[test]
fn config_get_takes_names_and_patterns() {
    let settings = Settings::default();
    let names = |patterns: &[&str]| get(&settings, patterns).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(names(&["nosuch"]), [""; 0]);
    assert_eq!(names(&["PORT", "timeout"]), ["PORT", "timeout"]);
    assert_eq!(names(&["MAX*ORY", "maxmemory"]), ["maxmemory"]);
    assert_eq!(names(&["slave-p*", "*-ziplist-value"]).len(), 3);
    assert_eq!(names(&["lua-time-limit", "slaveof"]), ["lua-time-limit", "slaveof"]);
    let all = names(&["*"]);
    assert!(all.len() > 200 && all.is_sorted(), "{}", all.len());
    let mut out = Vec::new();
    let owned = OwnedArgs::new(["save"]);
    settings.config_get(owned.args(), &mut Reply { out: &mut out, protocol: Protocol::Resp3 });
    assert_eq!(out, b"%1\r\n$4\r\nsave\r\n$0\r\n\r\n");
}

#[test]
fn defaults() {
    let settings = Settings::default();
    for setting in SETTINGS {
        let shown = settings.value(setting.name).unwrap();
        let mut again = Settings::default();
        let words: &[&[u8]] = &[&shown];
        setting.kind.set(&mut again, words, Origin::Runtime).unwrap();
        assert_eq!(again, settings, "{} does not read what it shows", setting.name);
        assert!(!setting.doc.ends_with('.') && setting.doc.len() < 90, "{}", setting.name);
    }
    assert_eq!((settings.port, settings.appendfsync, settings.appendonly), (6379, AppendFsync::Always, true));
    assert_eq!((settings.dir.as_str(), settings.databases, settings.save.len()), ("./impel-data", 16, 0));
    assert_eq!((settings.stream_node_max_entries, settings.stream_node_max_bytes), (100, 4096));
    assert_eq!(settings.output_limits[ClientClass::PubSub as usize].hard_bytes, 32 << 20);
}

#[test]
fn names_are_unique() {
    let mut names: Vec<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
    for known in known::KNOWN {
        names.push(known.name);
        names.extend(known.aliases);
        let words: &[&[u8]] = &[known.default.as_bytes()];
        assert_eq!(known.check(words).as_deref(), Ok(known.default), "{}", known.name);
    }
    names.extend(known::OBSOLETE);
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn applying_at_the_start() {
    let mut settings = Settings::default();
    assert_eq!(settings.apply(b"PORT", &["7000"]), Ok(Applied::Honoured("port")));
    assert_eq!(settings.apply(b"unixsocketperm", &["700"]), Ok(Applied::Honoured("unixsocketperm")));
    assert_eq!(settings.apply(b"bind", &["127.0.0.1", " -::1  10.0.0.1 "]), Ok(Applied::Honoured("bind")));
    assert_eq!(settings.bind, ["127.0.0.1", "-::1", "10.0.0.1"], "quoted or not");
    assert_eq!(settings.apply(b"bind", &["127.0.0.1", "::1"]), Ok(Applied::Honoured("bind")));
    assert_eq!(settings.apply(b"hash-max-ziplist-value", &["9"]), Ok(Applied::Known("hash-max-listpack-value")));
    assert_eq!(settings.apply(b"replicaof", &["no", "one"]), Ok(Applied::Known("replicaof")));
    assert_eq!(settings.apply(b"io-threads-do-reads", &["yes"]), Ok(Applied::Known("io-threads-do-reads")));
    assert_eq!((settings.port, settings.unixsocketperm, settings.bind.len()), (7000, 0o700, 2));
    assert_eq!(one(&settings, "unixsocketperm"), "700");

    for rule in [&["900", "1"][..], &["300 10 60 10000"][..]] {
        settings.apply(b"save", rule).unwrap();
    }
    assert_eq!(one(&settings, "save"), "900 1 300 10 60 10000");
    settings.apply(b"save", &[""]).unwrap();
    assert!(settings.save.is_empty());

    let refused =
        |name: &str, words: &[&str]| Settings::default().apply(name.as_bytes(), words).unwrap_err().to_string();
    assert_eq!(refused("nosuch", &["1"]), "unknown setting 'nosuch'");
    assert_eq!(refused("timeout", &["1", "2"]), "setting 'timeout': wrong number of arguments");
    assert_eq!(refused("timeout", &[]), "setting 'timeout': wrong number of arguments");
    assert_eq!(
        refused("unixsocketperm", &["999"]),
        "setting 'unixsocketperm': argument couldn't be parsed as an octal number"
    );
    assert_eq!(refused("save", &["900 1", "300 10"]), "setting 'save': Invalid save parameters");
    assert_eq!(refused("databases", &["17"]), "setting 'databases': argument must be between 1 and 16 inclusive");
    assert!(refused("daemonize", &["yes"]).contains("foreground"));
    assert!(refused("rename-command", &["FLUSHALL", ""]).contains("cannot be renamed"));
    assert!(refused("replicaof", &["host", "6379"]).contains("replication is not supported"));
    assert!(refused("maxmemory-policy", &["allkeys-lru"]).contains("only noeviction"));
}

#[test]
fn command_lines() {
    let apply = |words: &[&str]| {
        let line = parse_command_line(words).unwrap();
        let mut settings = Settings::default();
        for option in &line.options {
            settings.apply(&option.name, &option.words).map_err(|error| error.to_string())?;
        }
        Ok::<_, String>((line.file, settings))
    };
    let words =
        "--port 0 --unixsocket /tmp/s --unixsocketperm 700 --appendonly no --dir d --maxmemory-policy noeviction";
    let mut words: Vec<&str> = words.split(' ').collect();
    words.extend(["--save", ""]);
    let (file, settings) = apply(&words).unwrap();
    assert_eq!((file, settings.port, settings.unixsocket.as_str()), (None, 0, "/tmp/s"));
    assert!(!settings.appendonly && settings.save.is_empty() && settings.dir == "d");

    let (file, settings) = apply(&["my.conf", "--save", "900", "1", "300", "10", "--timeout", "7"]).unwrap();
    assert_eq!((file.as_deref(), settings.save.len(), settings.timeout_seconds), (Some(&b"my.conf"[..]), 2, 7));
    let (_, settings) = apply(&["--client-output-buffer-limit", "pubsub", "1", "2", "3"]).unwrap();
    assert_eq!(settings.output_limits[2], OutputLimit { hard_bytes: 1, soft_bytes: 2, soft_seconds: 3 });
    let (_, settings) = apply(&["--save", "--requirepass", "--foo", "--port", "1"]).unwrap();
    assert_eq!((settings.requirepass.as_slice(), settings.port), (&b"--foo"[..], 1));
    let (_, settings) =
        apply(&["--slowlog-log-slower-than", "-1", "--save", "", "--save", "900", "1", "--save", "300", "2"]).unwrap();
    assert_eq!((settings.slowlog_log_slower_than_us, one(&settings, "save").as_str()), (-1, "900 1 300 2"));

    assert_eq!(apply(&["--nosuch", "1"]).unwrap_err(), "unknown setting 'nosuch'");
    assert_eq!(apply(&["--timeout", "7", "--nosuch", "1"]).unwrap_err(), "unknown setting 'nosuch'");
    assert_eq!(apply(&["--timeout"]).unwrap_err(), "setting 'timeout': wrong number of arguments");
    assert_eq!(parse_command_line(&["a.conf", "port", "1"]).unwrap_err().position, 2);
    assert_eq!(parse_command_line::<&str>(&[]).unwrap(), Default::default());
}

#[test]
fn files() {
    let text = b"# comment\n\nport 7000\r\n  save \"\"  \nrequirepass \"a\\x00b \\\"c\\\"\"\n\tinclude 'other file.conf'\n# end";
    let directives = parse_file(text).unwrap();
    assert_eq!(directives.iter().map(|d| d.position).collect::<Vec<_>>(), [3, 4, 5, 6]);
    assert_eq!((directives[0].name.as_slice(), directives[0].words[0].as_slice()), (&b"port"[..], &b"7000"[..]));
    assert_eq!(directives[1].words, [b""]);
    assert_eq!(directives[2].words, [b"a\0b \"c\""]);
    assert_eq!(directives[3].words, [b"other file.conf"]);
    assert!(directives[3].is_include() && !directives[0].is_include());
    let error = parse_file(b"timeout 5\nsave \"900 1\n").unwrap_err();
    assert_eq!((error.position, error.to_string().as_str()), (2, "unbalanced quotes"));
}

#[test]
fn help_names_every_setting() {
    let text = help_text();
    for setting in SETTINGS {
        assert!(text.contains(&format!("\n  --{} ", setting.name)), "{}", setting.name);
    }
    assert!(text.contains("  --port <0..65535>\n      TCP port to listen on; 0 for none (default 6379)\n"));
    assert!(text.contains("--appendfsync everysec|always|no\n") && text.contains("(default \"\")"));
    assert!(text.contains("--log-segment-bytes <bytes, 1mb..>"));
    assert!(text.lines().all(|line| line.len() <= 120), "{text}");
}

#[test]
fn event_classes() {
    let classes = EventClasses::parse(b"Kt").unwrap();
    assert!(classes.has(b't') && classes.has(b'K') && !classes.has(b'E') && !classes.is_off());
    assert!(EventClasses::parse(b"A").unwrap().is_off() && EventClasses::parse(b"KE").unwrap().is_off());
    assert!(EventClasses::parse(b"KEA").unwrap().has(b'g') && !EventClasses::parse(b"KEA").unwrap().has(b'm'));
    assert_eq!(EventClasses::parse(b"Kq"), None);
}

/// The list for users and the table say the same: nothing is taken without effect and not told.
#[test]
fn settings_without_effect_are_listed() {
    let document = include_str!("../../../../docs/settings.md");
    let (_, list) = document.split_once("\n## ").unwrap();
    let (lists, refused) = list.split_once("## Refused").unwrap();
    let mut told: Vec<&str> = lists.split('`').skip(1).step_by(2).collect();
    let rows = refused.lines().filter(|line| line.starts_with("| `"));
    told.extend(rows.flat_map(|row| row.split('`').skip(1).step_by(2)));
    let known = known::KNOWN.iter().flat_map(|known| std::iter::once(known.name).chain(known.aliases.iter().copied()));
    let mut taken: Vec<&str> = known.chain(known::OBSOLETE.iter().copied()).collect();
    // Older names of lists that hold two rows are told once.
    for names in [&mut told, &mut taken] {
        names.sort_unstable();
        names.dedup();
    }
    assert_eq!(told, taken);
}
