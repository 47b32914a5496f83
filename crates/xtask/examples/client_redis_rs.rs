//! The `redis` crate with its defaults: produce, read, acknowledge, claim; blocking reads, pipelines, RESP3.
//!
//! An example and not a test because it needs a server: `client_redis_rs PORT SOCKET`. It ends with
//! "N passed, N failed", and the exit code is 0 only if none failed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use redis::streams::{
    StreamAutoClaimOptions, StreamAutoClaimReply, StreamClaimReply, StreamInfoGroupsReply, StreamPendingReply,
    StreamReadOptions, StreamReadReply,
};
use redis::{Client, Commands, Connection, RedisResult, Value};

/// A named check that panics when something is wrong.
type Check<'a> = (&'a str, Box<dyn Fn() + 'a>);

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [port, socket] = words.as_slice() else {
        eprintln!("usage: client_redis_rs PORT SOCKET");
        return ExitCode::from(2);
    };
    let tcp = || format!("redis://127.0.0.1:{port}/");
    let checks: [Check<'_>; 7] = [
        ("connects with defaults", Box::new(|| defaults(&mut fresh(&tcp())))),
        ("produce, read, acknowledge, claim: the default protocol", Box::new(|| work_round(&mut fresh(&tcp())))),
        (
            "produce, read, acknowledge, claim: RESP3",
            Box::new(|| work_round(&mut fresh(&format!("{}?protocol=resp3", tcp())))),
        ),
        ("the same over a unix socket", Box::new(|| work_round(&mut fresh(&format!("redis+unix://{socket}"))))),
        ("a blocking read ends when an entry comes, with nothing when none does", Box::new(|| blocking(&tcp()))),
        ("a pipeline answers in order", Box::new(|| pipeline(&mut fresh(&tcp())))),
        ("a transaction, and an error", Box::new(|| transaction(&mut fresh(&tcp())))),
    ];
    let mut failed = 0;
    for (name, check) in &checks {
        // The panic's message has been printed by then.
        let passed = catch_unwind(AssertUnwindSafe(check)).is_ok();
        println!("{} {name}", if passed { "ok  " } else { "FAIL" });
        failed += usize::from(!passed);
    }
    println!("{} passed, {failed} failed", checks.len() - failed);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn connect(url: &str) -> Connection {
    Client::open(url).and_then(|client| client.get_connection()).expect("a connection")
}

fn fresh(url: &str) -> Connection {
    let mut connection = connect(url);
    redis::cmd("FLUSHALL").exec(&mut connection).expect("FLUSHALL");
    connection
}

fn defaults(connection: &mut Connection) {
    let pong: String = redis::cmd("PING").query(connection).expect("PING");
    assert_eq!(pong, "PONG");
    let info: redis::InfoDict = redis::cmd("INFO").arg("server").query(connection).expect("INFO");
    assert!(info.get::<String>("redis_version").is_some(), "INFO server names no redis_version");
}

fn work_round(connection: &mut Connection) {
    let id = |n: i32, connection: &mut Connection| -> String { connection.xadd("s", "*", &[("n", n)]).expect("XADD") };
    let ids = [id(0, connection), id(1, connection)];
    let created: String = connection.xgroup_create("s", "g", "0").expect("XGROUP CREATE");
    assert_eq!(created, "OK");
    let options = StreamReadOptions::default().group("g", "c1").count(10);
    let reply: StreamReadReply = connection.xread_options(&["s"], &[">"], &options).expect("XREADGROUP");
    let entries = &reply.keys[0].ids;
    assert_eq!(entries.iter().map(|entry| entry.id.clone()).collect::<Vec<_>>(), ids);
    assert_eq!(entries[1].get::<i32>("n"), Some(1));
    assert_eq!(connection.xack("s", "g", &[&ids[0]]), Ok(1));
    let reply: StreamAutoClaimReply =
        connection.xautoclaim_options("s", "g", "c2", 0, "0-0", StreamAutoClaimOptions::default()).expect("XAUTOCLAIM");
    assert_eq!((reply.next_stream_id.as_str(), reply.claimed.len()), ("0-0", 1));
    assert_eq!(reply.claimed[0].id, ids[1]);
    let reply: StreamClaimReply = connection.xclaim("s", "g", "c3", 0, &[&ids[1]]).expect("XCLAIM");
    assert_eq!(reply.ids[0].get::<i32>("n"), Some(1));
    assert_eq!(connection.xack("s", "g", &[&ids[1]]), Ok(1));
    let pending: StreamPendingReply = connection.xpending("s", "g").expect("XPENDING");
    assert_eq!(pending.count(), 0);
    let groups: StreamInfoGroupsReply = connection.xinfo_groups("s").expect("XINFO GROUPS");
    assert_eq!((groups.groups[0].name.as_str(), groups.groups[0].lag), ("g", Some(0)));
}

fn blocking(url: &str) {
    let mut connection = fresh(url);
    let read = |connection: &mut Connection, block_ms| -> RedisResult<Option<StreamReadReply>> {
        let options = StreamReadOptions::default().group("g", "c").block(block_ms);
        connection.xread_options(&["s"], &[">"], &options)
    };
    let created: String = connection.xgroup_create_mkstream("s", "g", "$").expect("XGROUP CREATE");
    assert_eq!(created, "OK");
    let nothing = read(&mut connection, 50).expect("XREADGROUP");
    assert!(nothing.is_none_or(|reply| reply.keys.is_empty()));
    let writer_url = url.to_owned();
    let writer = thread::spawn(move || {
        thread::sleep(Duration::from_millis(150));
        let id: String = connect(&writer_url).xadd("s", "1-0", &[("a", "b")]).expect("XADD");
        id
    });
    let started = Instant::now();
    let reply = read(&mut connection, 8000).expect("XREADGROUP").expect("a reply");
    assert_eq!(reply.keys[0].ids[0].id, writer.join().expect("the writer"));
    assert!(started.elapsed() < Duration::from_secs(3), "woken after {:?}", started.elapsed());
}

fn pipeline(connection: &mut Connection) {
    let mut pipe = redis::pipe();
    for n in 1..=100 {
        pipe.xadd("s", format!("{n}-0"), &[("n", n)]);
    }
    let ids: Vec<String> = pipe.query(connection).expect("the pipeline");
    assert_eq!(ids, (1..=100).map(|n| format!("{n}-0")).collect::<Vec<_>>());
}

fn transaction(connection: &mut Connection) {
    let replies: (String, usize) =
        redis::pipe().atomic().xadd("s", "1-0", &[("a", "b")]).xlen("s").query(connection).expect("the transaction");
    assert_eq!(replies, ("1-0".into(), 1));
    let again: RedisResult<Value> = connection.xadd("s", "1-0", &[("a", "b")]);
    let error = again.expect_err("an id that goes back");
    assert!(error.to_string().contains("equal or smaller"), "{error}");
}
