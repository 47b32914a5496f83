//! Input that no client library sends: at every bound of the protocol, at the ends of every range, and what is no protocol at
//! all. The error texts are those of Redis 8.2.3 where it has one. `docs/limits.md` lists the bounds.

mod support;

use support::watch::{MIB, Watch, until};
use support::{Client, Reply, Server, command};

fn server(options: &[&str]) -> (tempfile::TempDir, Server) {
    let folder = tempfile::tempdir().unwrap();
    let all: Vec<&str> = ["--appendonly", "no"].iter().chain(options).copied().collect();
    let server = Server::start(folder.path(), &all);
    (folder, server)
}

fn error(text: &str) -> Reply {
    Reply::Error(text.into())
}

/// What is sent, what is answered before the connection is closed.
fn breaks(server: &Server, input: &[u8], answer: &str) {
    let mut client = server.client();
    // The server may have closed before all of it was sent.
    let _ = client.try_send(input);
    let shown = &input[..input.len().min(60)];
    let got = client.try_reply().unwrap_or_else(|e| panic!("{}: {e}", shown.escape_ascii()));
    assert_eq!(got, error(answer), "{}", shown.escape_ascii());
    assert!(client.is_closed(), "{}", shown.escape_ascii());
}

#[test]
fn what_breaks_the_protocol_is_said_and_ends_the_connection() {
    let (_folder, server) = server(&[]);
    let watch = Watch::begin("broken protocol", &server);
    let long = |begin: &str| [begin.as_bytes(), &vec![b'1'; 70_000]].concat();
    let cases: [(&[u8], &str); 19] = [
        (b"*2147483648\r\n", "ERR Protocol error: invalid multibulk length"),
        (b"*9223372036854775807\r\n", "ERR Protocol error: invalid multibulk length"),
        (b"*9223372036854775808\r\n", "ERR Protocol error: invalid multibulk length"),
        (b"*x\r\n", "ERR Protocol error: invalid multibulk length"),
        (b"*+1\r\n", "ERR Protocol error: invalid multibulk length"),
        (b"*\r\n", "ERR Protocol error: invalid multibulk length"),
        (b"*1\r\n$-1\r\n", "ERR Protocol error: invalid bulk length"),
        (b"*1\r\n$536870913\r\n", "ERR Protocol error: invalid bulk length"),
        (b"*1\r\n$18446744073709551615\r\n", "ERR Protocol error: invalid bulk length"),
        (b"*1\r\n$01\r\n", "ERR Protocol error: invalid bulk length"),
        (b"*1\r\n$\r\n", "ERR Protocol error: invalid bulk length"),
        (b"*1\r\n:1\r\n", "ERR Protocol error: expected '$', got ':'"),
        (b"*1\r\n%1\r\n", "ERR Protocol error: expected '$', got '%'"),
        (b"*1\r\n*1\r\n$4\r\nPING\r\n", "ERR Protocol error: expected '$', got '*'"),
        (b"set k \"open\r\n", "ERR Protocol error: unbalanced quotes in request"),
        (b"set k \"a\"b\r\n", "ERR Protocol error: unbalanced quotes in request"),
        (&long(""), "ERR Protocol error: too big inline request"),
        (&long("*"), "ERR Protocol error: too big mbulk count string"),
        (&long("*1\r\n$"), "ERR Protocol error: too big bulk count string"),
    ];
    for (input, answer) in cases {
        breaks(&server, input, answer);
    }
    watch.end(16 * MIB);
}

#[test]
fn who_has_not_said_the_password_is_held_short() {
    let (_folder, server) = server(&["--requirepass", "secret"]);
    breaks(&server, b"*11\r\n", "ERR Protocol error: unauthenticated multibulk length");
    breaks(&server, b"*2\r\n$4\r\nAUTH\r\n$16385\r\n", "ERR Protocol error: unauthenticated bulk length");
    let mut client = server.client();
    let noauth = error("NOAUTH Authentication required.");
    assert_eq!(client.ask(&["GET", &"k".repeat(16_384)]), noauth);
    assert_eq!(client.ask(&["PING"]), noauth);
    assert_eq!(client.ask(&["AUTH", "secret"]), Reply::Simple("OK".into()));
    assert_eq!(client.ask(&["GET", &"k".repeat(16_385)]), Reply::Null);
}

#[test]
fn lengths_at_their_bounds_are_taken() {
    let (_folder, server) = server(&["--proto-max-bulk-len", "1mb"]);
    let mut client = server.client();
    // An inline command just short of too long.
    client.send(format!("ECHO {}\r\n", "e".repeat(65_000)).as_bytes());
    assert_eq!(client.reply().text().len(), 65_000);
    let value = "v".repeat(1 << 20);
    assert_eq!(client.ask(&["SET", "k", &value]), Reply::Simple("OK".into()));
    assert_eq!(client.ask(&["GET", "k"]).text().len(), 1 << 20);
    assert_eq!(
        client.ask(&["APPEND", "k", "x"]),
        error("ERR string exceeds maximum allowed size (proto-max-bulk-len)")
    );
    assert_eq!(
        client.ask(&["SETRANGE", "k", "1048576", "x"]),
        error("ERR string exceeds maximum allowed size (proto-max-bulk-len)")
    );
    assert_eq!(client.ask(&["SETRANGE", "k", "9223372036854775807", "x"]).text()[..4], *"ERR ");
    breaks(&server, b"*1\r\n$1048577\r\n", "ERR Protocol error: invalid bulk length");
}

#[test]
fn many_arguments() {
    let (_folder, server) = server(&[]);
    let watch = Watch::begin("a million arguments", &server);
    let mut client = server.client();
    let keys: Vec<String> = (0..1_000_000).map(|n| format!("key:{n}")).collect();
    let words: Vec<&str> = std::iter::once("DEL").chain(keys.iter().map(String::as_str)).collect();
    assert_eq!(client.ask(&words), Reply::Int(0));
    let words: Vec<&str> = ["XADD", "s", "1-1"].into_iter().chain(keys.iter().map(String::as_str)).collect();
    assert_eq!(client.ask(&words), Reply::Bulk("1-1".into()));
    assert_eq!(client.ask(&["XLEN", "s"]), Reply::Int(1));
    // 17 MB of input, its places, and the entry twice while it is packed.
    watch.end(200 * MIB);
}

#[test]
fn input_beyond_its_limit_ends_the_connection_and_is_logged() {
    let (_folder, server) = server(&["--client-query-buffer-limit", "1mb"]);
    let watch = Watch::begin("input beyond client-query-buffer-limit", &server);
    let mut client = server.client();
    let mut bytes = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000000\r\n".to_vec();
    bytes.extend(vec![b'x'; 4 << 20]);
    let _ = client.try_send(&bytes);
    assert!(client.is_closed());
    until("no line in the log", || server.log().contains("over client-query-buffer-limit"));
    // What waits behind a blocked reader counts as well.
    let mut waiting = server.client();
    waiting.send(&command(&["XREAD", "BLOCK", "0", "STREAMS", "s", "$"]));
    let ping = command(&["PING"]).repeat(200_000);
    let _ = waiting.try_send(&ping);
    assert!(waiting.is_closed());
    // So does a transaction; its client stays.
    let mut queueing = server.client();
    queueing.ask(&["MULTI"]);
    let value = "x".repeat(500_000);
    assert_eq!(queueing.ask(&["SET", "k", &value]), Reply::Simple("QUEUED".into()));
    assert_eq!(queueing.ask(&["SET", "k", &value]), Reply::Simple("QUEUED".into()));
    assert_eq!(queueing.ask(&["SET", "k", &value]), error("ERR transaction is larger than client-query-buffer-limit"));
    assert_eq!(queueing.ask(&["EXEC"]), error("EXECABORT Transaction discarded because of previous errors."));
    assert_eq!(queueing.ask(&["PING"]), Reply::Simple("PONG".into()));
    watch.end(40 * MIB);
}

#[test]
fn nothing_nests_too_deeply() {
    let (_folder, server) = server(&[]);
    let watch = Watch::begin("nesting", &server);
    let mut client = server.client();
    client.ask(&["MULTI"]);
    assert_eq!(client.ask(&["MULTI"]), error("ERR MULTI calls can not be nested"));
    assert_eq!(client.ask(&["WATCH", "k"]), error("ERR WATCH inside MULTI is not allowed"));
    client.ask(&["DISCARD"]);
    let mut fails = |script: &str, text: &str| {
        let reply = client.ask(&["EVAL", script, "0"]);
        assert!(matches!(&reply, Reply::Error(got) if got.contains(text)), "{script}: {reply:?}");
        assert_eq!(client.ask(&["PING"]), Reply::Simple("PONG".into()));
    };
    let deep = "local t = {} for i = 1, 100000 do t = {t} end ";
    fails(&format!("{deep} return cjson.encode(t)"), "nest");
    fails("return cjson.decode(string.rep('[', 1000000))", "nest");
    fails("return cjson.decode(string.rep('{\"a\":', 100000))", "nest");
    fails("local t = {} t.t = t return cjson.encode(t)", "nest");
    fails("local function f() return f() + 1 end return f()", "stack overflow");
    fails("return string.rep('(', 10000):find(string.rep('(', 10000))", "");
    fails("return loadstring('return ' .. string.rep('(', 100000) .. '1' .. string.rep(')', 100000))()", "");
    fails(&format!("return {}1{}", "(".repeat(50_000), ")".repeat(50_000)), "");
    fails("return redis.call('EVAL', 'return 1', 0)", "not allowed from script");
    // Here Redis ends at the size of Lua's stack, and says so at the bottom of what it could return.
    for script in [&format!("{deep} return t"), "local t = {} t[1] = t return t"] {
        let mut reply = &client.ask(&["EVAL", script, "0"]);
        let mut depth = 0;
        while let Reply::Array(items) = reply {
            assert_eq!(items.len(), 1);
            (reply, depth) = (&items[0], depth + 1);
        }
        assert_eq!((depth, reply), (1001, &error("ERR reached lua stack limit")));
    }
    watch.end(300 * MIB);
}

#[test]
fn hello_with_anything() {
    let (_folder, server) = server(&[]);
    let mut client = server.client();
    let noproto = error("NOPROTO unsupported protocol version");
    for (words, reply) in [
        (&["HELLO", "4"][..], noproto.clone()),
        (&["HELLO", "1"], noproto.clone()),
        (&["HELLO", "-1"], noproto.clone()),
        (&["HELLO", "9223372036854775807"], noproto),
        (&["HELLO", "x"], error("ERR Protocol version is not an integer or out of range")),
        (&["HELLO", "18446744073709551619"], error("ERR Protocol version is not an integer or out of range")),
        (&["HELLO", "3", "AUTH"], error("ERR Syntax error in HELLO option 'AUTH'")),
        (&["HELLO", "3", "AUTH", "a"], error("ERR Syntax error in HELLO option 'AUTH'")),
        (&["HELLO", "3", "\r\n"], error("ERR Syntax error in HELLO option '  '")),
        (
            &["HELLO", "3", "SETNAME", "a b"],
            error("ERR Client names cannot contain spaces, newlines or special characters."),
        ),
        (
            &["HELLO", "3", "AUTH", "nobody", "x"],
            error("WRONGPASS invalid username-password pair or user is disabled."),
        ),
        (
            &["CLIENT", "SETNAME", "\u{1}"],
            error("ERR Client names cannot contain spaces, newlines or special characters."),
        ),
    ] {
        assert_eq!(client.ask(words), reply, "{words:?}");
    }
    // Still RESP2.
    assert_eq!(client.ask(&["GET", "k"]), Reply::Null);
    // Types of RESP3 are no requests: they are words of a line.
    for line in ["%1", "~1", "#t", ",1.5", "(1", ">1", "=3", "!2"] {
        client.send(format!("{line}\r\n").as_bytes());
        assert!(client.reply().text().starts_with("ERR unknown command"), "{line}");
    }
}

#[test]
fn numbers_at_the_ends_of_their_ranges() {
    // Nothing is slow enough for the log of what was.
    let (_folder, server) = server(&["--slowlog-log-slower-than", "-1"]);
    let watch = Watch::begin("numbers at the ends of their ranges", &server);
    let mut client = server.client();
    for n in 1..=5 {
        client.ask(&["XADD", "s", &format!("{n}-0"), "f", "v"]);
    }
    client.ask(&["XGROUP", "CREATE", "s", "g", "0"]);
    let not_integer = error("ERR value is not an integer or out of range");
    const MOST: &str = "9223372036854775807";
    const OVER: &str = "9223372036854775808";
    const UNSIGNED: &str = "18446744073709551615";
    let read = |client: &mut Client, count: &str| client.ask(&["XREAD", "COUNT", count, "STREAMS", "s", "0"]);
    assert_eq!(read(&mut client, MOST).array()[0].array()[1].array().len(), 5);
    for count in [OVER, UNSIGNED, "-9223372036854775809", "1e3", " 1", "0x1", ""] {
        assert_eq!(read(&mut client, count), not_integer, "{count}");
    }
    // Below 1 there is no bound, as in Redis.
    assert_eq!(read(&mut client, "-9223372036854775808").array()[0].array()[1].array().len(), 5);
    for (words, entries) in [
        (&["XRANGE", "s", "-", "+", "COUNT", MOST][..], 5),
        (&["XREVRANGE", "s", "+", "-", "COUNT", MOST], 5),
        (&["XPENDING", "s", "g", "-", "+", MOST], 0),
        (&["XREADGROUP", "GROUP", "g", "c", "COUNT", MOST, "STREAMS", "s", ">"], 1),
        (&["XPENDING", "s", "g", "IDLE", MOST, "-", "+", MOST], 0),
        (&["XCLAIM", "s", "g", "c", MOST, "1-0"], 0),
        (&["SCAN", "0", "COUNT", MOST], 2),
    ] {
        assert_eq!(client.ask(words).array().len(), entries, "{words:?}");
    }
    for (words, reply) in [
        (&["XREAD", "BLOCK", OVER, "STREAMS", "s", "$"][..], error("ERR timeout is not an integer or out of range")),
        (&["XREAD", "BLOCK", MOST, "STREAMS", "s", "$"], error("ERR timeout is out of range")),
        (&["XREAD", "BLOCK", "-1", "STREAMS", "s", "$"], error("ERR timeout is negative")),
        (&["XTRIM", "s", "MAXLEN", OVER], not_integer.clone()),
        (&["XTRIM", "s", "MAXLEN", MOST], Reply::Int(0)),
        (&["XTRIM", "s", "MAXLEN", "-1"], error("ERR The MAXLEN argument must be >= 0.")),
        (&["XAUTOCLAIM", "s", "g", "c", "0", "0", "COUNT", MOST], error("ERR COUNT must be > 0")),
        (&["XAUTOCLAIM", "s", "g", "c", "0", "0", "COUNT", "0"], error("ERR COUNT must be > 0")),
        (&["SELECT", OVER], not_integer.clone()),
        (&["SELECT", "16"], error("ERR DB index is out of range")),
        (&["SELECT", "-1"], error("ERR DB index is out of range")),
        (&["EXPIRE", "s", MOST], error("ERR invalid expire time in 'expire' command")),
        (&["PEXPIREAT", "s", OVER], not_integer.clone()),
        (&["SET", "n", MOST], Reply::Simple("OK".into())),
        (&["INCR", "n"], error("ERR increment or decrement would overflow")),
        (&["SETRANGE", "n", "-1", "x"], error("ERR offset is out of range")),
        (&["GETRANGE", "n", "-9223372036854775808", MOST], Reply::Bulk(MOST.into())),
        (&["CLIENT", "PAUSE", OVER], error("ERR timeout is not an integer or out of range")),
        (&["SLOWLOG", "GET", MOST], Reply::Array(vec![])),
        (&["LATENCY", "HISTORY", MOST], Reply::Array(vec![])),
        (&["XPENDING", "s", "g", "-", "+", OVER], not_integer),
    ] {
        assert_eq!(client.ask(words), reply, "{words:?}");
    }
    watch.end(24 * MIB);
}

#[test]
fn ids_at_the_ends_of_their_range() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let mut client = server.client();
    const LAST: &str = "18446744073709551615-18446744073709551615";
    let smaller = error("ERR The ID specified in XADD is equal or smaller than the target stream top item");
    let invalid = error("ERR Invalid stream ID specified as stream command argument");
    let exhausted = error("ERR The stream has exhausted the last possible ID, unable to add more items");
    let add = |client: &mut Client, key: &str, id: &str| client.ask(&["XADD", key, id, "f", "v"]);
    assert_eq!(add(&mut client, "s", "0-0"), error("ERR The ID specified in XADD must be greater than 0-0"));
    assert_eq!(add(&mut client, "s", "0-*"), Reply::Bulk("0-1".into()));
    assert_eq!(add(&mut client, "s", "0-18446744073709551615"), Reply::Bulk("0-18446744073709551615".into()));
    assert_eq!(add(&mut client, "s", "0-*"), smaller);
    assert_eq!(add(&mut client, "s", "1-0"), Reply::Bulk("1-0".into()));
    assert_eq!(add(&mut client, "s", "18446744073709551615-0"), Reply::Bulk("18446744073709551615-0".into()));
    assert_eq!(add(&mut client, "s", "*"), Reply::Bulk("18446744073709551615-1".into()));
    assert_eq!(add(&mut client, "s", LAST), Reply::Bulk(LAST.into()));
    for id in ["*", LAST, "1-1", "18446744073709551615-*"] {
        assert_eq!(add(&mut client, "s", id), exhausted, "{id}");
    }
    for id in ["18446744073709551616-0", "1-18446744073709551616", "1-", "-1", "1-1-1", "", "(1-1", "+", "x"] {
        assert_eq!(add(&mut client, "s", id), invalid, "{id}");
    }
    assert_eq!(client.ask(&["XRANGE", "s", LAST, LAST]).array().len(), 1);
    assert_eq!(client.ask(&["XRANGE", "s", "0-0", "0-0"]).array().len(), 0);
    let from = |client: &mut Client, start: &str, end: &str| client.ask(&["XRANGE", "s", start, end]);
    assert_eq!(from(&mut client, &format!("({LAST}"), "+"), error("ERR invalid start ID for the interval"));
    assert_eq!(from(&mut client, "-", "(0-0"), error("ERR invalid end ID for the interval"));
    assert_eq!(client.ask(&["XREAD", "STREAMS", "s", LAST]), Reply::Null);
    client.ask(&["XGROUP", "CREATE", "s", "g", "0"]);
    let given = client.ask(&["XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">"]);
    assert_eq!(given.array()[0].array()[1].array().len(), 6);
    assert_eq!(client.ask(&["XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">"]), Reply::Null);
    assert_eq!(client.ask(&["XAUTOCLAIM", "s", "g", "d", "0", LAST]).array()[0], Reply::Bulk("0-0".into()));
    assert_eq!(client.ask(&["XACK", "s", "g", LAST, "0-1"]), Reply::Int(2));
    assert_eq!(client.ask(&["XSETID", "s", "0-0"]).text()[..4], *"ERR ");
    assert_eq!(client.ask(&["XTRIM", "s", "MINID", LAST]), Reply::Int(5));
    assert_eq!(client.ask(&["XDEL", "s", LAST]), Reply::Int(1));
    assert_eq!(add(&mut client, "s", "*"), exhausted);
    server.kill();
    let server = Server::start(folder.path(), &[]);
    assert_eq!(add(&mut server.client(), "s", "*"), exhausted);
    assert_eq!(server.client().ask(&["XPENDING", "s", "g"]).array()[0], Reply::Int(4));
}

/// Names that make trouble where bytes are taken for text.
fn names() -> Vec<Vec<u8>> {
    vec![
        (0..=255).collect(),
        vec![],
        vec![0],
        b"a\0b".to_vec(),
        b"\r\n".to_vec(),
        b"$3\r\nabc\r\n".to_vec(),
        b"\xff\xfe\xc3\x28".to_vec(),
        b" ".to_vec(),
        vec![b'k'; 1 << 20],
    ]
}

#[test]
fn keys_groups_consumers_fields_and_values_may_be_any_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), &[]);
    let watch = Watch::begin("names of any bytes", &server);
    let mut client = server.client();
    let mut say = |words: &[&[u8]], wanted: &[u8]| {
        client.send(&command(words));
        let got = client.bytes_until(wanted);
        assert_eq!(got.escape_ascii().to_string(), wanted.escape_ascii().to_string());
    };
    let bulk = |bytes: &[u8]| [format!("${}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
    for name in &names() {
        let name = &name[..];
        say(&[b"SET", name, name], b"+OK\r\n");
        say(&[b"DEL", name], b":1\r\n");
        say(&[b"XADD", name, b"1-1", name, name], b"$3\r\n1-1\r\n");
        say(&[b"XGROUP", b"CREATE", name, name, b"0"], b"+OK\r\n");
        say(&[b"XGROUP", b"CREATECONSUMER", name, name, name], b":1\r\n");
    }
    drop(watch);
    for round in 0..2 {
        for name in &names() {
            let name = &name[..];
            let entry = [b"*2\r\n$3\r\n1-1\r\n*2\r\n", &bulk(name)[..], &bulk(name)].concat();
            let mut client = server.client();
            let words: [&[u8]; 4] = [b"XRANGE", name, b"-", b"+"];
            client.send(&command(&words));
            let wanted = [b"*1\r\n", &entry[..]].concat();
            assert!(client.bytes_until(&wanted) == wanted, "{}", name[..name.len().min(20)].escape_ascii());
            if round == 0 {
                let words: [&[u8]; 7] = [b"XREADGROUP", b"GROUP", name, name, b"STREAMS", name, b">"];
                client.send(&command(&words));
                let wanted = [b"*1\r\n*2\r\n", &bulk(name)[..], b"*1\r\n", &entry].concat();
                assert!(client.bytes_until(&wanted) == wanted);
            }
            let words: [&[u8]; 3] = [b"XPENDING", name, name];
            client.send(&command(&words));
            let wanted = [b":1\r\n$3\r\n1-1\r\n$3\r\n1-1\r\n*1\r\n*2\r\n", &bulk(name)[..], b"$1\r\n1\r\n"].concat();
            assert!(client.bytes_until(&wanted).ends_with(&wanted));
        }
        if round == 0 {
            let mut client = server.client();
            client.ask(&["SAVE"]);
            server.kill();
            server = Server::start(folder.path(), &[]);
            assert_eq!(server.client().ask(&["DBSIZE"]), Reply::Int(names().len() as i64));
        }
    }
}

#[test]
fn what_is_no_client_at_all() {
    let (_folder, server) = server(&[]);
    let watch = Watch::begin("garbage, TLS and HTTP", &server);
    // What an HTTP client or a web page sends ends the connection, and is logged.
    for request in ["POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"] {
        let mut client = server.client();
        client.send(request.as_bytes());
        let said = client.drain();
        assert!(said < 200, "{said} bytes");
    }
    until("no line in the log", || server.log().contains("sent POST or Host: and was closed"));
    // A TLS hello is neither a request nor an end of line: it waits for more, or breaks the protocol, and takes nothing.
    let hello = [&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3][..], &[0xa5; 500]].concat();
    let mut tls: Vec<Client> = (0..100).map(|_| server.client()).collect();
    tls.iter_mut().for_each(|client| client.send(&hello));
    // Bytes at random, all that 200 connections have to say.
    let mut state = 7u64;
    for _ in 0..200 {
        let bytes: Vec<u8> = (0..5000)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) as u8
            })
            .collect();
        let mut client = server.client();
        let _ = client.try_send(&bytes);
        client.end_sending();
        client.drain();
    }
    drop(tls);
    assert_eq!(server.client().ask(&["DBSIZE"]), Reply::Int(0));
    watch.end(24 * MIB);
}
