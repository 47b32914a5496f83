//! Clients as they are: many, slow, broken, silent, or with everything at once.

mod support;

use std::thread;
use std::time::{Duration, Instant};

use support::{Client, Reply, Server, command, in_memory as server, pong};

#[test]
fn one_client_too_many_is_told_so() {
    let (_folder, server) = server(&["--maxclients", "3"]);
    let mut clients: Vec<Client> = (0..3).map(|_| server.client()).collect();
    clients.iter_mut().for_each(|client| assert_eq!(client.ask(&["PING"]), pong()));
    let mut late = server.client();
    assert_eq!(late.reply(), Reply::Error("ERR max number of clients reached".into()));
    assert!(late.is_closed());
    drop(clients.pop());
    // The server may notice a little later that there is room.
    let begun = Instant::now();
    loop {
        let mut client = server.client();
        if client.try_send(b"PING\r\n").is_ok() && client.try_reply().is_ok_and(|reply| reply == pong()) {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
}

#[test]
fn a_large_pipeline_is_answered_in_order() {
    let folder = tempfile::tempdir().unwrap();
    // With a log, so that replies are held on their way.
    let server = Server::start(folder.path(), &[]);
    let mut client = server.client();
    let mut bytes = Vec::new();
    const COUNT: usize = 50_000;
    for n in 1..=COUNT {
        bytes.extend_from_slice(&command(&["XADD", "s", &format!("{n}-0"), "field", "value"]));
        bytes.extend_from_slice(b"PING\r\n");
    }
    // All of it before the first reply is read.
    client.send(&bytes);
    for n in 1..=COUNT {
        assert_eq!(client.reply(), Reply::Bulk(format!("{n}-0")));
        assert_eq!(client.reply(), pong());
    }
    assert_eq!(client.ask(&["XLEN", "s"]), Reply::Int(COUNT as i64));
}

#[test]
fn input_may_come_in_any_pieces() {
    let (_folder, server) = server(&[]);
    let bytes = [command(&["XADD", "s", "*", "f", "value"]), command(&["PING"]), b"XLEN s\r\n".to_vec()].concat();
    let mut client = server.client();
    for length in [1, 2, 3, 7, bytes.len()] {
        for piece in bytes.chunks(length) {
            client.send(piece);
            if length < 4 {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
        assert!(matches!(client.reply(), Reply::Bulk(_)));
        assert_eq!(client.reply(), pong());
        assert!(client.reply().int() > 0);
    }
}

#[test]
fn a_large_value_comes_and_goes() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let mut client = server.client();
    let value = "x".repeat(20 << 20);
    assert_eq!(client.ask(&["XADD", "s", "1-1", "f", &value]).text(), "1-1");
    let entries = client.ask(&["XRANGE", "s", "-", "+"]);
    assert_eq!(entries.array()[0].array()[1].array()[1].text().len(), value.len());
}

#[test]
fn a_protocol_error_is_said_and_ends_the_connection() {
    let (_folder, server) = server(&[]);
    let mut client = server.client();
    client.send(b"PING\r\n*1\r\n:5\r\nPING\r\n");
    assert_eq!(client.reply(), pong());
    assert!(client.reply().text().starts_with("ERR Protocol error"));
    assert!(client.is_closed());
}

#[test]
fn whoever_stops_sending_gets_what_is_owed() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let mut client = server.client();
    client.send(&command(&["XADD", "s", "1-1", "a", "b"]));
    client.end_sending();
    assert_eq!(client.reply().text(), "1-1");
    assert!(client.is_closed());
}

#[test]
fn a_client_that_does_not_read_is_closed_at_its_limit() {
    let (_folder, server) = server(&["--client-output-buffer-limit", "normal", "1mb", "0", "0"]);
    let mut client = server.client();
    client.ask(&["XADD", "s", "1-1", "f", &"x".repeat(100_000)]);
    // 100 MB of replies: more than the sockets' buffers and the limit take.
    for _ in 0..1000 {
        if client.try_send(&command(&["XRANGE", "s", "-", "+"])).is_err() {
            break;
        }
    }
    // Reading begins only when it is closed: a client that reads as fast as the server writes is never over the limit.
    let deadline = Instant::now() + Duration::from_secs(20);
    while !server.log().contains("over client-output-buffer-limit") {
        assert!(Instant::now() < deadline, "{}", server.log());
        thread::sleep(Duration::from_millis(10));
    }
    let got = client.drain();
    assert!(got < 90_000_000, "{got} bytes");
    assert_eq!(server.client().ask(&["PING"]), pong());
}

#[test]
fn a_client_over_its_soft_limit_has_a_while_to_catch_up() {
    let (_folder, server) = server(&["--client-output-buffer-limit", "normal", "0", "100kb", "1"]);
    let mut slow = server.client();
    slow.ask(&["XADD", "s", "1-1", "f", &"x".repeat(100_000)]);
    for _ in 0..300 {
        slow.send(&command(&["XRANGE", "s", "-", "+"]));
    }
    // It reads in time: nothing is lost.
    for _ in 0..300 {
        assert_eq!(slow.reply().array().len(), 1);
    }
    for _ in 0..300 {
        slow.send(&command(&["XRANGE", "s", "-", "+"]));
    }
    let begun = Instant::now();
    while !server.log().contains("over client-output-buffer-limit") {
        assert!(begun.elapsed() < Duration::from_secs(10), "it is not closed");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(slow.drain() < 300 * 100_000);
}

#[test]
fn a_subscriber_that_does_not_read_is_closed_at_its_own_limits() {
    let limits = ["--client-output-buffer-limit", "normal", "0", "0", "0", "pubsub", "1mb", "0", "0"];
    let (_folder, server) = server(&limits);
    let mut deaf = server.client();
    let mut listening = server.client();
    deaf.ask(&["SUBSCRIBE", "news"]);
    listening.ask(&["SUBSCRIBE", "news"]);
    let mut publisher = server.client();
    let message = "x".repeat(100_000);
    let mut published = 0;
    // Until the sockets' buffers and the limit are full.
    while publisher.ask(&["PUBLISH", "news", &message]).int() == 2 {
        published += 1;
        assert!(published < 1000, "it is not closed");
        assert_eq!(listening.reply().array()[2].text().len(), 100_000);
    }
    assert!(server.log().contains("of messages that it does not read"), "{}", server.log());
    assert!(deaf.drain() < 100_000_000);
    let info = publisher.ask(&["INFO"]);
    assert!(info.text().contains("client_output_buffer_limit_disconnections:1\r\n"));
    assert!(info.text().contains("pubsub_clients:1\r\n"));

    assert_eq!(
        publisher.ask(&["CONFIG", "SET", "client-output-buffer-limit", "pubsub 0 100kb 1"]),
        Reply::Simple("OK".into())
    );
    let begun = Instant::now();
    // Now it is the other one that has stopped reading; it is given its second.
    while publisher.ask(&["PUBLISH", "news", &message]).int() == 1 && begun.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(begun.elapsed() > Duration::from_secs(1) && begun.elapsed() < Duration::from_secs(20));
}

#[test]
fn who_waits_for_messages_is_not_idle() {
    let (_folder, server) = server(&["--timeout", "1"]);
    let mut subscriber = server.client();
    subscriber.ask(&["SUBSCRIBE", "news"]);
    assert!(server.client().is_closed());
    assert_eq!(server.client().ask(&["PUBLISH", "news", "x"]).int(), 1);
    assert_eq!(subscriber.reply().array()[2].text(), "x");
}

#[test]
fn who_is_silent_for_too_long_is_closed_and_a_waiting_reader_is_not() {
    let (_folder, server) = server(&["--timeout", "1"]);
    let mut silent = server.client();
    let mut waiting = server.client();
    assert_eq!(silent.ask(&["PING"]), pong());
    waiting.send(&command(&["XREAD", "BLOCK", "0", "STREAMS", "s", "$"]));
    assert!(silent.is_closed());
    server.client().ask(&["XADD", "s", "1-1", "a", "b"]);
    assert_eq!(waiting.reply().array().len(), 1);
}

#[test]
fn a_blocked_reader_is_answered_by_time() {
    let (_folder, server) = server(&[]);
    let mut client = server.client();
    let begun = Instant::now();
    assert_eq!(client.ask(&["XREAD", "BLOCK", "150", "STREAMS", "s", "$"]), Reply::Null);
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(149) && took < Duration::from_secs(5), "{took:?}");
}

#[test]
fn many_clients_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let mut clients: Vec<Client> = (0..200).map(|_| server.client()).collect();
    for round in 0..5 {
        for client in &mut clients {
            client.send(&command(&["XADD", "s", "*", "round", &round.to_string()]));
        }
        for client in &mut clients {
            assert!(matches!(client.reply(), Reply::Bulk(_)));
        }
    }
    assert_eq!(clients[0].ask(&["XLEN", "s"]), Reply::Int(1000));
}

#[test]
fn over_maxmemory_additions_are_refused_and_removals_are_not() {
    let (_folder, server) = server(&["--maxmemory", "20mb"]);
    let mut client = server.client();
    let value = "x".repeat(100_000);
    let mut added = 0;
    let refusal = loop {
        match client.ask(&["XADD", "s", "*", "f", &value]) {
            Reply::Bulk(_) => added += 1,
            other => break other,
        }
        assert!(added < 1000, "20 MB are not noticed");
    };
    assert!(refusal.text().starts_with("OOM "), "{refusal:?}");
    assert!(added > 50, "{added} entries of 100 kB are less than 20 MB");
    assert_eq!(client.ask(&["XLEN", "s"]), Reply::Int(added));
    assert_eq!(client.ask(&["XTRIM", "s", "MAXLEN", "1"]), Reply::Int(added - 1));
    // What was removed is freed between turns.
    let begun = Instant::now();
    while !matches!(client.ask(&["XADD", "s", "*", "f", "small"]), Reply::Bulk(_)) {
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
}

#[test]
fn replies_that_are_read_late_are_made_late_and_all_arrive() {
    let (_folder, server) = server(&["--client-output-buffer-limit", "normal 0 1mb 60"]);
    let mut client = server.client();
    let value = "v".repeat(100_000);
    client.ask(&["SET", "k", &value]);
    const COUNT: usize = 300;
    let mut bytes = command(&["GET", "k"]).repeat(COUNT);
    bytes.extend_from_slice(&command(&["ECHO", "end"]));
    client.send(&bytes);
    client.end_sending();
    // What waits for the client stays near the soft limit; without one it would be 30 MB.
    let mut other = server.client();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(300) {
        let list = other.ask(&["CLIENT", "LIST", "TYPE", "normal"]);
        let longest = list.text().split(' ').filter_map(|word| word.strip_prefix("obl=")?.parse::<usize>().ok()).max();
        assert!(longest.unwrap() < 3 << 20, "{}", list.text());
    }
    for _ in 0..COUNT {
        assert_eq!(client.reply(), Reply::Bulk(value.clone()));
    }
    assert_eq!(client.reply(), Reply::Bulk("end".into()));
    assert!(client.is_closed());
}
