//! Clients that take what they can: connections, memory, time. What each may take is bounded, and another client's PING is
//! answered throughout; how long that took is printed, not asserted. `docs/limits.md` lists the bounds.

mod support;

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use support::watch::{MIB, Watch, info, rss_bytes, until};
use support::{Client, IMPEL, Reply, Server, command, free_port, in_memory as server, pong};

/// A connection that only ever sends.
fn dumb(server: &Server) -> TcpStream {
    TcpStream::connect(("127.0.0.1", server.port)).unwrap()
}

/// As many open files as the system lets this process have.
fn raise_own_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.unwrap_or(65_536);
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum }).unwrap();
    wanted
}

#[test]
fn a_million_commands_in_one_go() {
    let (_folder, server) = server(&[]);
    let watch = Watch::begin("a million commands in one go", &server);
    const COUNT: usize = 1_000_000;
    let mut client = server.client();
    // All of them before the first reply is read.
    client.send(&command(&["PING"]).repeat(COUNT));
    for _ in 0..COUNT {
        assert_eq!(client.reply(), pong());
    }
    // The replies, and what one recv brings.
    watch.end(16 * MIB);
}

#[test]
fn a_client_that_never_reads_is_held_at_a_bound_of_our_own() {
    // Redis's default for ordinary clients, no limit, is ours; so it is not closed, and goes no further.
    let (_folder, server) = server(&[]);
    let mut client = server.client();
    client.ask(&["SET", "k", &"v".repeat(1 << 20)]);
    let watch = Watch::begin("a client that never reads", &server);
    let mut deaf = dumb(&server);
    let bytes = command(&["GET", "k"]).repeat(100_000);
    deaf.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    // 100 GB of replies are asked for. At some point no more of that is taken.
    let _ = deaf.write_all(&bytes);
    until("it is not held", || info(&server, "used_memory") > 200 * MIB);
    thread::sleep(Duration::from_millis(300));
    // UNREAD_MAX_BYTES, and a chunk that grows.
    watch.end(256 * MIB + 64 * MIB);
    drop(deaf);
    until("its memory does not come back", || info(&server, "used_memory") < 20 * MIB);
}

#[test]
fn a_subscriber_of_every_event_that_never_reads_is_closed() {
    let (_folder, server) = server(&["--notify-keyspace-events", "KEA"]);
    let mut deaf = server.client();
    deaf.ask(&["PSUBSCRIBE", "*"]);
    let watch = Watch::begin("a subscriber of every event that never reads", &server);
    let mut busy = server.client();
    let key = "k".repeat(50_000);
    // Redis's default limits of subscribers: 32 MB, or 8 MB for a minute.
    for _ in 0..2000 {
        assert_eq!(busy.ask(&["SET", &key, "v"]), Reply::Simple("OK".into()));
        if server.log().contains("of messages that it does not read, over client-output-buffer-limit") {
            break;
        }
    }
    assert!(server.log().contains("of messages that it does not read"), "{}", server.log());
    assert_eq!(info(&server, "client_output_buffer_limit_disconnections"), 1);
    // Twice while the buffer grows.
    watch.end(160 * MIB);
}

#[test]
fn slow_writers() {
    let (_folder, server) = server(&[]);
    let watch = Watch::begin("300 writers of a byte at a time", &server);
    let bytes = [command(&["SET", "key", &"v".repeat(60)]), b"PING\r\n".to_vec()].concat();
    let mut writers: Vec<Client> = (0..300).map(|_| server.client()).collect();
    for byte in &bytes {
        writers.iter_mut().for_each(|client| client.send(&[*byte]));
    }
    for client in &mut writers {
        assert_eq!(client.reply(), Reply::Simple("OK".into()));
        assert_eq!(client.reply(), pong());
    }
    watch.end(16 * MIB);
}

#[test]
fn ten_thousand_idle_connections() {
    let own = raise_own_limit();
    // Where the system allows fewer, as many as it does.
    let count = (own.saturating_sub(200) as usize).min(10_000);
    let maxclients = (count + 20).to_string();
    let (_folder, server) = server(&["--maxclients", &maxclients]);
    let watch = Watch::begin("ten thousand idle connections", &server);
    let (before, used) = (rss_bytes(&server), info(&server, "used_memory"));
    let mut idle: Vec<Client> = (0..count).map(|_| server.client()).collect();
    until("not all are accepted", || info(&server, "connected_clients") >= count as u64);
    let each = |after: u64, before: u64| (after.saturating_sub(before)) / count as u64;
    let (each_rss, each_used) = (each(rss_bytes(&server), before), each(info(&server, "used_memory"), used));
    println!("{count} connections that have sent nothing: {each_rss} bytes of RAM each, {each_used} of them asked for");
    // And having been used, an idle one takes no more: nothing is kept for it.
    for client in &mut idle {
        client.send(b"PING\r\n");
    }
    idle.iter_mut().for_each(|client| assert_eq!(client.reply(), pong()));
    let after = each(rss_bytes(&server), before);
    println!("after a command of each: {after} bytes of RAM each");
    assert!(each_used < 2500 && after < 5000, "{each_used}, {after}");
    drop(idle);
    until("not all are gone", || info(&server, "connected_clients") < 10);
    watch.end(60 * MIB);
}

#[test]
fn too_few_descriptors_lower_maxclients() {
    let folder = tempfile::tempdir().unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -n 100; exec \"$0\" \"$@\"", IMPEL]);
    let mut server = Server::spawn(folder.path(), free_port(), shell, &["--appendonly", "no", "--maxclients", "5000"]);
    server.wait_ready();
    assert!(server.log().contains("maxclients lowered from 5000 to 68"), "{}", server.log());
    let watch = Watch::begin("more connections than descriptors", &server);
    let mut taken: Vec<Client> = (0..67).map(|_| server.client()).collect();
    taken.iter_mut().for_each(|client| assert_eq!(client.ask(&["PING"]), pong()));
    for _ in 0..100 {
        assert_eq!(server.client().reply(), Reply::Error("ERR max number of clients reached".into()));
    }
    watch.end(8 * MIB);
}

#[test]
fn a_flood_of_connections() {
    let (_folder, server) = server(&["--maxclients", "20"]);
    let watch = Watch::begin("a flood of connections over maxclients", &server);
    let mut taken: Vec<Client> = (0..19).map(|_| server.client()).collect();
    taken.iter_mut().for_each(|client| assert_eq!(client.ask(&["PING"]), pong()));
    let flood = |server: &Server| {
        for _ in 0..40 {
            let mut waiting: Vec<Client> = (0..50).map(|_| server.client()).collect();
            for client in &mut waiting {
                assert_eq!(client.reply(), Reply::Error("ERR max number of clients reached".into()));
                assert!(client.is_closed());
            }
        }
    };
    flood(&server);
    assert_eq!(taken[0].ask(&["INFO", "stats"]).text().matches("rejected_connections:2000\r\n").count(), 1);
    drop(taken);
    watch.end(8 * MIB);
}

#[test]
fn connections_that_are_closed_by_half() {
    let (_folder, server) = server(&[]);
    let watch = Watch::begin("half-closed connections", &server);
    // Nothing sent; half of a command; a command; a read that waits.
    let half = command(&["SET", "key", "value"]);
    let waits = command(&["XREAD", "BLOCK", "0", "STREAMS", "s", "$"]);
    let sent: [&[u8]; 4] = [b"", &half[..10], b"PING\r\n", &waits];
    let mut all: Vec<(Client, bool)> = Vec::new();
    for bytes in sent {
        for _ in 0..200 {
            let mut client = server.client();
            client.send(bytes);
            client.end_sending();
            all.push((client, bytes == b"PING\r\n"));
        }
    }
    for (client, is_answered) in &mut all {
        if *is_answered {
            assert_eq!(client.reply(), pong());
        }
        assert!(client.is_closed());
    }
    // The other half: it reads no more.
    for _ in 0..200 {
        let mut stream = dumb(&server);
        stream.shutdown(Shutdown::Read).unwrap();
        stream.write_all(&command(&["GET", "key"])).unwrap();
    }
    until("some are kept", || info(&server, "connected_clients") <= 2);
    watch.end(16 * MIB);
}

/// Sends a value of that many bytes in pieces.
fn send_large(client: &mut Client, head: &[u8], len_bytes: usize) {
    client.send(head);
    let piece = vec![b'v'; 1 << 20];
    for _ in 0..len_bytes >> 20 {
        client.send(&piece);
    }
    client.send(b"\r\n");
}

#[test]
fn values_of_512_mib() {
    let (_folder, server) = server(&[]);
    let watch = Watch::begin("values of 512 MiB", &server);
    let mut client = server.client();
    const LEN: usize = 512 << 20;
    send_large(&mut client, format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${LEN}\r\n").as_bytes(), LEN);
    assert_eq!(client.reply(), Reply::Simple("OK".into()));
    assert_eq!(client.ask(&["STRLEN", "k"]), Reply::Int(LEN as i64));
    let mut late = server.client();
    late.send(format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${}\r\n", LEN + 1).as_bytes());
    assert_eq!(late.reply(), Reply::Error("ERR Protocol error: invalid bulk length".into()));
    assert_eq!(client.ask(&["DEL", "k"]), Reply::Int(1));
    send_large(
        &mut client,
        format!("*5\r\n$4\r\nXADD\r\n$1\r\ns\r\n$3\r\n1-1\r\n$1\r\nf\r\n${LEN}\r\n").as_bytes(),
        LEN,
    );
    assert_eq!(client.reply(), Reply::Bulk("1-1".into()));
    let entries = client.ask(&["XRANGE", "s", "-", "+"]);
    assert_eq!(entries.array()[0].array()[1].array()[1].text().len(), LEN);
    drop(entries);
    assert_eq!(client.ask(&["DEL", "s"]), Reply::Int(1));
    drop(client);
    // What arrived, what is kept, what is being packed or sent, and what was freed and has not gone back yet.
    until("the memory does not come back", || rss_bytes(&server) < 100 * MIB);
    watch.end(4 * LEN as u64 + 64 * MIB);
}

#[test]
fn a_thousand_large_values_that_do_not_come() {
    let (_folder, server) = server(&[]);
    let watch = Watch::begin("a thousand half sent values of 512 MiB", &server);
    let used = info(&server, "used_memory");
    let begin = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\n".to_vec();
    let mut all: Vec<Client> = (0..1000).map(|_| server.client()).collect();
    for client in &mut all {
        client.send(&[&begin[..], &[b'x'; 1000]].concat());
    }
    thread::sleep(Duration::from_millis(300));
    for client in &mut all {
        client.send(&[b'x'; 1000]);
    }
    until("not all has come", || info(&server, "total_net_input_bytes") > 2_000_000);
    let each = (info(&server, "used_memory") - used) / 1000;
    println!("512 MiB announced, 2 kB sent: {each} bytes for each connection");
    assert!(each < 80_000, "{each}");
    // Also where many lengths are announced in one command.
    let mut counting = server.client();
    counting.send(b"*2147483647\r\n$3\r\nDEL\r\n$1\r\nk\r\n");
    assert_eq!(server.client().ask(&["PING"]), pong());
    drop(all);
    until("the memory does not come back", || info(&server, "used_memory") < used + 2 * MIB);
    watch.end(100 * MIB);
}

#[test]
fn clients_that_are_killed_in_the_middle() {
    let (_folder, server) = server(&[]);
    let watch = Watch::begin("clients that are killed in the middle", &server);
    let mut killer = server.client();
    killer.ask(&["SET", "k", &"v".repeat(8 << 20)]);
    let (half, waits, get) = (
        command(&["SET", "key", "value"])[..15].to_vec(),
        command(&["XREAD", "BLOCK", "0", "STREAMS", "s", "$"]),
        command(&["GET", "k"]).repeat(10),
    );
    let multi = [command(&["MULTI"]), command(&["SET", "never", "v"])].concat();
    for round in 0..30 {
        for bytes in [&half, &waits, &get, &multi] {
            let mut client = server.client();
            let id = client.ask(&["CLIENT", "ID"]).int().to_string();
            client.send(bytes);
            if round % 2 == 0 {
                thread::sleep(Duration::from_millis(1));
            }
            assert_eq!(killer.ask(&["CLIENT", "KILL", "ID", &id]), Reply::Int(1));
            client.drain();
        }
    }
    assert_eq!(killer.ask(&["EXISTS", "never", "key"]), Reply::Int(0));
    // Itself: answered, then closed.
    let id = killer.ask(&["CLIENT", "ID"]).int().to_string();
    assert_eq!(killer.ask(&["CLIENT", "KILL", "ID", &id, "SKIPME", "no"]), Reply::Int(1));
    assert!(killer.is_closed());
    until("some are kept", || info(&server, "connected_clients") <= 2);
    watch.end(200 * MIB);
}

#[test]
fn scripts_that_do_not_end() {
    let (_folder, server) = server(&["--busy-reply-threshold", "200"]);
    let watch = Watch::begin("scripts that do not end", &server);
    let mut client = server.client();
    let mut ends = |script: &str, text: &str| {
        let reply = client.ask(&["EVAL", script, "0"]);
        assert!(matches!(&reply, Reply::Error(got) if got.contains(text)), "{script}: {reply:?}");
    };
    ends("while true do end", "busy-reply-threshold");
    ends("while true do redis.call('GET', 'k') end", "busy-reply-threshold");
    ends("while true do pcall(function() while true do end end) end", "busy-reply-threshold");
    ends("local c = coroutine.wrap(function() while true do end end) return c()", "busy-reply-threshold");
    ends("local t = {} while true do t[#t + 1] = string.rep('x', 1000000) .. #t end", "not enough memory");
    ends("local s = 'x' while true do s = s .. s end", "");
    ends("local t = {} for i = 1, 300 do t[i] = string.rep('x', 1000000) end return t", "");
    // One that has written is given ten times as long, and what it has done stays.
    ends("redis.call('SET', 'k', 'v') while true do end", "busy-reply-threshold");
    assert_eq!(client.ask(&["GET", "k"]), Reply::Bulk("v".into()));
    assert_eq!(client.ask(&["SCRIPT", "KILL"]), Reply::Error("NOTBUSY No scripts in execution right now.".into()));
    // The interpreter's own bound and what a reply may have, each with what was freed and has not gone back yet.
    watch.end(1200 * MIB);
}

#[test]
fn floods_of_names_take_what_they_are_and_come_back() {
    let (_folder, server) = server(&["--maxmemory", "100mb"]);
    let watch = Watch::begin("100,000 groups, consumers and channels", &server);
    let mut client = server.client();
    client.ask(&["XADD", "s", "1-1", "f", "v"]);
    client.ask(&["XGROUP", "CREATE", "s", "g", "0"]);
    for kind in ["group", "consumer", "channel"] {
        const COUNT: usize = 100_000;
        let mut bytes = Vec::new();
        for n in 0..COUNT {
            let name = format!("{kind}-{n}");
            bytes.extend(match kind {
                "group" => command(&["XGROUP", "CREATE", "s", &name, "0"]),
                "consumer" => command(&["XGROUP", "CREATECONSUMER", "s", "g", &name]),
                _ => command(&["SUBSCRIBE", &name]),
            });
        }
        let mut flooding = server.client();
        flooding.send(&bytes);
        let fine = (0..COUNT).filter(|_| !matches!(flooding.reply(), Reply::Error(_))).count();
        assert_eq!(fine, COUNT, "{kind}");
    }
    assert_eq!(client.ask(&["DEL", "s"]), Reply::Int(1));
    until("the memory does not come back", || info(&server, "used_memory") < 20 * MIB);
    watch.end(160 * MIB);
}
