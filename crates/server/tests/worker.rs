//! `impel work`, `impel add` and `impel tail` against this server, which has XWORK, and against Redis 8.2.3, which has not
//! (where the test environment has it).

mod support;

use std::fs;
use std::process::{Command, Output, Stdio};

use support::tools::World;
use support::watch::until;
use support::{IMPEL, Reply, Server};

#[test]
fn each_entry_is_given_to_a_command_and_acknowledged() {
    World::each(|world| {
        world.fill(5);
        let script = "cat >> input; echo \"$IMPEL_ID $IMPEL_FIELD_job $IMPEL_DELIVERY $IMPEL_WORK\" >> seen; echo paid-$IMPEL_ID";
        let said = world.work("--until-empty --receipt --consumer c --work-field job --concurrency 2", script);
        assert!(said.contains("5 done, 0 failed"), "{said}");
        assert_eq!(world.pending(), []);
        let mut seen: Vec<String> =
            fs::read_to_string(world.file("seen")).unwrap().lines().map(str::to_owned).collect();
        seen.sort();
        assert_eq!(seen[4], "5-0 job-5 1 job-5");
        let input = fs::read_to_string(world.file("input")).unwrap();
        let line = input.lines().find(|line| line.contains("\"3-0\"")).unwrap();
        let json: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(
            json,
            serde_json::json!({
                "stream": "s", "group": "g", "consumer": "c", "delivery": 1, "work": "job-3", "id": "3-0",
                "fields": {"job": "job-3", "n": "3"},
            })
        );
        if world.has_ledger() {
            let found = world.ask("XWORK GET s g job-3");
            let texts: Vec<&Reply> = found.array().iter().collect();
            assert!(texts.contains(&&Reply::Bulk("paid-3-0".into())), "{found:?}");
            assert_eq!(world.ask("XWORK AUDIT s g SUMMARY").array()[3], Reply::Int(5), "all are accepted");
        }
    });
}

#[test]
fn a_command_that_fails_gives_its_entry_back_with_the_reason() {
    World::each(|world| {
        world.fill(1);
        // Twice in vain, then well.
        let script = "echo x >> runs; echo what went wrong >&2; test $(wc -l < runs) -ge 3 || exit 3";
        let worker = world.start("--lease 300 --retry-in 100", script);
        until("the third run is acknowledged", || world.lines("runs") == 3 && world.pending().is_empty());
        worker.signal("TERM");
        let (code, said) = worker.end();
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("1-0: exit code 3: what went wrong") && said.contains("1 done, 2 failed"), "{said}");
        if world.has_ledger() {
            let failed = "1-0 failed exit code 3: what went wrong";
            assert_eq!(world.ledger(), ["1-0 begun", failed, "1-0 begun", failed, "1-0 begun", "1-0 completed"]);
        }
    });
}

#[test]
fn exit_code_75_asks_for_a_later_time() {
    World::each(|world| {
        world.fill(1);
        let said = world.work("--until-empty --lease 600000 --retry-in 500000", "echo busy >&2; exit 75");
        assert!(said.contains("1-0: exit code 75: busy"), "{said}");
        assert_eq!(world.pending().len(), 1);
        // Not before its time, also for another.
        let said = world.work("--until-empty --lease 600000", "echo x >> runs");
        assert!(said.contains("0 done"), "{said}");
        assert_eq!(world.lines("runs"), 0);
    });
}

#[test]
fn a_command_that_is_not_there_ends_the_worker() {
    World::each(|world| {
        world.fill(2);
        let output = world.tool("work --stream s --group g --until-empty -- /no/such/command").output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains("/no/such/command cannot be run"));
        assert_eq!(world.ask("XACK s g 1-0"), Reply::Int(1), "nothing is acknowledged");
    });
}

#[test]
fn what_a_killed_worker_had_is_taken_over_when_its_lease_is_over() {
    World::each(|world| {
        world.fill(2);
        if world.has_ledger() {
            world.ask("XWORK POLICY s g LEASE 700 IDEMPOTENT yes");
        }
        let first = world.start("--lease 700 --consumer first", "echo x >> begun; exec sleep 20");
        until("the first begins", || world.lines("begun") == 1);
        first.signal("KILL");
        first.end();
        let second = world.start("--lease 700 --consumer second", "echo $IMPEL_ID >> done");
        until("the second has done both", || world.lines("done") == 2 && world.pending().is_empty());
        second.signal("TERM");
        assert_eq!(second.end().0, Some(0));
    });
}

#[test]
fn what_a_killed_worker_had_is_on_hold_where_it_may_not_be_done_twice() {
    let world = World::impel();
    world.fill(1);
    world.ask("XWORK POLICY s g LEASE 300");
    let first = world.start("--consumer first", "echo x >> begun; exec sleep 20");
    until("the first begins", || world.lines("begun") == 1);
    first.signal("KILL");
    first.end();
    let second = world.start("--consumer second", "echo x >> done");
    until("it is on hold", || world.ledger().iter().any(|row| row == "1-0 held outcome-unknown"));
    second.signal("TERM");
    assert!(second.end().1.contains("on hold: outcome-unknown"));
    assert_eq!(world.lines("done"), 0);
}

#[test]
fn a_worker_goes_on_with_what_it_had_under_its_name() {
    World::each(|world| {
        world.fill(3);
        world.ask("XREADGROUP GROUP g me COUNT 2 STREAMS s >");
        let said = world.work("--until-empty --consumer me", "echo $IMPEL_ID >> done");
        assert!(said.contains("3 done"), "{said}");
        assert_eq!(fs::read_to_string(world.file("done")).unwrap(), "1-0\n2-0\n3-0\n");
    });
}

#[test]
fn a_slow_command_keeps_its_entry_past_its_lease_and_is_counted_once() {
    World::each(|world| {
        world.fill(1);
        if world.has_ledger() {
            world.ask("XWORK POLICY s g LEASE 900");
        }
        let slow = world.start("--lease 900 --consumer slow", "echo x >> runs; sleep 4; echo x >> over");
        until("it begins", || world.lines("runs") == 1);
        let other = world.start("--lease 900 --consumer other", "echo x >> runs");
        until("it is over", || world.lines("over") == 1 && world.pending().is_empty());
        assert_eq!(world.lines("runs"), 1, "nobody else got it");
        for worker in [slow, other] {
            worker.signal("TERM");
            assert_eq!(worker.end().0, Some(0));
        }
        if world.has_ledger() {
            assert_eq!(world.ledger(), ["1-0 begun", "1-0 completed"]);
        }
    });
}

#[test]
fn a_worker_that_lost_its_entry_does_not_acknowledge_it() {
    World::each(|world| {
        world.fill(1);
        let worker = world.start("--consumer loser --lease 600000", "echo x >> begun; sleep 1; echo x >> over");
        until("it begins", || world.lines("begun") == 1);
        world.ask("XCLAIM s g thief 0 1-0");
        until("it is over", || world.lines("over") == 1);
        worker.signal("TERM");
        let (code, said) = worker.end();
        assert_eq!((code, said.contains("1 lost")), (Some(0), true), "{said}");
        assert_eq!(world.pending(), [("1-0".to_owned(), "thief".to_owned(), 2)]);
    });
}

#[test]
fn kill_9_leaves_no_command_running_nor_what_it_started() {
    World::each(|world| {
        world.fill(3);
        // One that starts others, one of them with a group of its own; one that hears no SIGTERM; and one that is never begun.
        let script = "case $IMPEL_ID in 1-0) sleep 60 & echo $! >> pids; echo $$ >> pids; \
            setsid sh -c 'echo $$ >> pids; exec sleep 60' & wait;; \
            2-0) trap '' TERM; echo $$ >> pids; while :; do sleep 0.1; done;; *) echo x >> over;; esac";
        let worker = world.start("--consumer c --concurrency 2 --lease 600000", script);
        until("two run", || world.lines("pids") == 4);
        worker.signal("KILL");
        let (code, _) = worker.end();
        assert_eq!(code, None);
        let pids = fs::read_to_string(world.file("pids")).unwrap();
        let runs = |pid: &str| fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "));
        until("nothing runs", || !pids.lines().any(runs));
        assert_eq!((world.lines("over"), world.pending().len()), (0, 2), "and nothing is acknowledged");
    });
}

#[test]
fn a_worker_that_was_stopped_for_a_while_goes_on() {
    World::each(|world| {
        world.fill(1);
        let worker = world.start("--consumer c", "echo x >> runs");
        until("it waits for more", || world.lines("runs") == 1 && world.pending().is_empty());
        worker.signal("STOP");
        std::thread::sleep(std::time::Duration::from_millis(100));
        worker.signal("CONT");
        world.ask("XADD s 2-0 job b");
        until("the second is done", || world.lines("runs") == 2 && world.pending().is_empty());
        worker.signal("TERM");
        let (code, said) = worker.end();
        assert_eq!((code, said.lines().count()), (Some(0), 1), "{said}");
    });
}

#[test]
fn what_a_command_says_last_is_receipt_digest_and_the_entry_that_follows() {
    let world = World::impel();
    world.fill(2);
    let options = "--until-empty --consumer c --receipt --digest --emit out --work-field job";
    let said = world.work(options, "echo first; echo '{\"to\": \"b\", \"n\": 7}'");
    assert!(said.contains("2 done"), "{said}");
    let entry = [Reply::Bulk("n".into()), Reply::Bulk("7".into()), Reply::Bulk("to".into()), Reply::Bulk("b".into())];
    let out = world.ask("XRANGE out - +");
    assert_eq!(out.array().len(), 2);
    assert_eq!(out.array()[0].array()[1].array(), entry);
    let found = world.ask("XWORK GET s g job-1");
    let has = |text: &str| found.array().contains(&Reply::Bulk(text.into()));
    assert!(has("{\"to\": \"b\", \"n\": 7}"), "{found:?}");
    // sha256sum of that line, without its end.
    assert!(has("161d1f35a705135d3d43485effa38ac9fcd7109b6e7034eb27f6b3df73fb2e17"), "{found:?}");
    // The same work again, with another outcome: not emitted.
    world.ask("XADD s 3-0 job job-1");
    world.work(options, "echo x >> runs");
    assert_eq!((world.lines("runs"), world.ask("XLEN out")), (0, Reply::Int(2)), "it is known to be done");
}

#[test]
fn a_command_that_says_nothing_to_emit_has_failed() {
    let world = World::impel();
    world.fill(1);
    let said = world.work("--until-empty --consumer c --emit out --retry-in 600000", "echo x >> runs; echo 5");
    assert!(said.contains("1-0: the last line of output, which is to be emitted: no object of JSON"), "{said}");
    assert_eq!(world.ask("EXISTS out"), Reply::Int(0));
    assert!(world.pending().len() == 1);
    assert_eq!(world.output("work --stream s --group g --plain --emit out -- true").status.code(), Some(64));
    if let Some(redis) = World::redis() {
        redis.fill(1);
        let output = redis.worker("--emit out", "true").output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains("--emit wants a server with XWORK"));
    }
}

#[test]
fn an_entry_that_no_command_can_be_given_does_not_keep_others_from_being_done() {
    World::each(|world| {
        world.fill(0);
        let mut client = world.client();
        client.ask(&["XADD", "s", "1-0", "job", &"x".repeat(5000)]);
        client.ask(&["XADD", "s", "2-0", "job", "a\0b"]);
        client.ask(&["XADD", "s", "3-0", "job", ""]);
        let names: Vec<String> = (0..4000).map(|n| format!("f{n}")).collect();
        let mut words = vec!["XADD", "s", "4-0", "job", "b"];
        let long = "x".repeat(2000);
        words.extend(names.iter().flat_map(|name| [name, &*long]));
        client.ask(&words);
        client.ask(&["XADD", "s", "5-0", "job", "c"]);
        let options = "--until-empty --consumer c --lease 600000 --retry-in 500000";
        let script = "cat > input-$IMPEL_ID; echo \"$IMPEL_ID $IMPEL_WORK $IMPEL_FIELD_f0\" | cut -c1-9 >> runs";
        let said = world.work(&format!("{options} --work-field job"), script);
        assert!(said.contains("3 done, 2 failed"), "{said}");
        assert!(said.contains("1-0: the work id in job is not text of at most 4096 bytes"), "{said}");
        assert_eq!(fs::read_to_string(world.file("runs")).unwrap(), "3-0 3-0 \n4-0 b xxx\n5-0 c \n");
        assert!(fs::metadata(world.file("input-4-0")).unwrap().len() > 8_000_000, "all of it");
        if world.has_ledger() {
            // The server finds the same wrong with what its policy names.
            world.ask("XWORK POLICY s g WORKFIELD job");
            client.ask(&["XADD", "s", "6-0", "job", &"x".repeat(5000)]);
            let said = world.work(options, "true");
            assert!(said.contains("0 done, 1 failed"), "{said}");
        }
    });
}

#[test]
fn a_command_is_told_the_work_id_that_the_server_goes_by() {
    let world = World::impel();
    world.fill(1);
    world.ask("XWORK POLICY s g WORKFIELD job EVIDENCE require");
    world.ask("XADD s 2-0 job job-1");
    let said = world.work("--until-empty --consumer c", "echo $IMPEL_WORK >> works");
    assert!(said.contains("1 done, 0 failed, 1 passed over"), "{said}");
    assert_eq!(fs::read_to_string(world.file("works")).unwrap(), "job-1\n");
    // And of what it need not do it says which work that was.
    world.client().ask(&["XWORK", "POLICY", "s", "g", "WORKFIELD", ""]);
    world.ask("XADD s 3-0 id w");
    world.ask("XADD s 4-0 id w");
    let said = world.work("--until-empty --consumer c --work-field id", "true");
    assert!(said.contains("1 done, 0 failed, 1 passed over"), "{said}");
    assert_eq!(world.pending(), []);
    assert_eq!(world.ask("XWORK AUDIT s g SUMMARY").array()[3], Reply::Int(4), "all are accepted");
}

#[test]
fn what_is_done_waits_until_there_is_room_for_what_follows() {
    let world = World::impel();
    world.fill(1);
    world.ask("XADD out 1-0 f v");
    world.ask("XCFGSET out MAXLEN 1 DISCARD new");
    let worker = world.start("--consumer c --emit out", "echo x >> runs; echo '{\"a\": 1}'");
    until("it is done", || world.lines("runs") == 1);
    until("it is known to be begun", || world.ledger() == ["1-0 begun"]);
    std::thread::sleep(std::time::Duration::from_millis(500));
    world.ask("XDEL out 1-0");
    until("it is acknowledged", || world.pending().is_empty());
    worker.signal("TERM");
    let (code, said) = worker.end();
    assert!(code == Some(0) && said.contains("stream is full") && said.contains("1 done, 0 failed"), "{said}");
    assert_eq!((world.lines("runs"), world.ask("XLEN out")), (1, Reply::Int(1)));
}

#[test]
fn plain_work_leaves_no_evidence() {
    let world = World::impel();
    world.fill(2);
    let said = world.work("--until-empty --consumer c --plain", "true");
    assert!(said.contains("2 done"), "{said}");
    assert_eq!((world.pending(), world.ledger()), (vec![], vec![]));
}

#[test]
fn sigterm_lets_commands_end_and_begins_no_more() {
    World::each(|world| {
        world.fill(3);
        let worker = world.start("--consumer c", "echo x >> begun; sleep 1; echo x >> over");
        until("it begins", || world.lines("begun") == 1);
        worker.signal("TERM");
        let (code, said) = worker.end();
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("1 done, 0 failed"), "{said}");
        assert_eq!((world.lines("begun"), world.lines("over")), (1, 1));
        // Whatever else it had fetched is another's at once.
        let said = world.work("--until-empty --consumer d", "echo x >> over");
        assert!(said.contains("2 done"), "{said}");
        assert_eq!(world.pending(), []);
    });
}

#[test]
fn what_is_not_over_when_the_grace_is_is_given_back() {
    World::each(|world| {
        world.fill(1);
        let worker = world.start("--consumer c --grace 100 --retry-in 0", "echo x >> begun; exec sleep 20");
        until("it begins", || world.lines("begun") == 1);
        worker.signal("TERM");
        let (code, said) = worker.end();
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("1-0: the worker was ended"), "{said}");
        let said = world.work("--until-empty --consumer d", "echo x >> done");
        assert!(said.contains("1 done"), "{said}");
        if world.has_ledger() {
            assert_eq!(world.ledger()[1], "1-0 failed the worker was ended");
        }
    });
}

#[test]
fn a_worker_waits_for_a_server_that_is_gone_for_a_while() {
    let mut world = World::impel();
    world.fill(1);
    let worker = world.start("--consumer c", "echo $IMPEL_ID >> done");
    until("the first is done", || world.lines("done") == 1);
    let server = world.impel.take().unwrap();
    let port = server.port;
    server.stop();
    let mut server = Server::spawn(world.folder.path(), port, Command::new(IMPEL), &[]);
    server.wait_ready();
    world.impel = Some(server);
    world.ask("XADD s 2-0 job b");
    until("the second is done", || world.lines("done") == 2 && world.pending().is_empty());
    worker.signal("TERM");
    assert_eq!(worker.end().0, Some(0));
}

#[test]
fn what_was_in_a_reply_that_got_lost_is_done_when_the_connection_is_back() {
    World::each(|world| {
        world.fill(1);
        let worker = world.start("--consumer c --lease 600000", "echo $IMPEL_ID >> done");
        until("the first is done", || world.lines("done") == 1);
        // It is given to the worker's name, and the worker does not hear of it.
        let mut client = world.client();
        for words in ["MULTI", "XADD s 2-0 job b", "XREADGROUP GROUP g c STREAMS s >", "EXEC"] {
            client.ask(&words.split(' ').collect::<Vec<_>>());
        }
        world.ask("CLIENT KILL TYPE normal SKIPME yes");
        until("the second is done", || world.lines("done") == 2 && world.pending().is_empty());
        worker.signal("TERM");
        assert_eq!(worker.end().0, Some(0));
    });
}

#[test]
fn add_and_tail() {
    World::each(|world| {
        let text = |output: Output| String::from_utf8(output.stdout).unwrap();
        assert_eq!(text(world.output("add s --id 1-0 a b c d")), "1-0\n");
        let failed = world.output("add s --id 1-0 a b");
        assert_eq!(failed.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&failed.stderr).contains("equal or smaller"));
        let mut lines = world.tool("add s --json").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut lines.stdin.take().unwrap(), b"{\"n\":1,\"t\":\"x\"}\n\n{\"n\":2}\n").unwrap();
        assert_eq!(text(lines.wait_with_output().unwrap()).lines().count(), 2);
        let tail = text(world.output("tail s --from 0 --no-wait --json"));
        let lines: Vec<&str> = tail.lines().collect();
        assert_eq!(lines[0], r#"{"fields":{"a":"b","c":"d"},"id":"1-0"}"#);
        assert!(lines.len() == 3 && lines[1].contains(r#""fields":{"n":"1","t":"x"}"#), "{tail}");
        assert_eq!(text(world.output("tail s --from 0 --count 1")), "1-0 a=b c=d\n");
        world.ask("XGROUP CREATE s g 0");
        world.ask("XREADGROUP GROUP g c COUNT 1 STREAMS s >");
        let group = text(world.output("tail s --group g"));
        assert!(
            group.starts_with("1-0 owner=c idle_ms=") && group.ends_with("group g at 1-0 pending=1 lag=2\n"),
            "{group}"
        );
        for (wrong, code) in
            [("add s a", 64), ("tail", 64), ("tail s --what", 64), ("work --stream s", 64), ("tail s --group x", 2)]
        {
            assert_eq!(world.output(wrong).status.code(), Some(code), "{wrong}");
        }
        for command in ["add", "tail", "work"] {
            let help = world.output(&format!("{command} --help"));
            assert!(help.status.success() && text(help).contains("Exit codes:"), "{command}");
        }
    });
}
