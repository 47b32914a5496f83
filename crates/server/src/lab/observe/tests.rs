//! What is concluded from a server that did something else than it must, from replies that are missing or none, and from one that does
//! all it must.

use super::*;
use crate::lab::effects::{End, Journal, Snapshot};
use crate::lab::evidence::Exchange;
use crate::lab::manifest::Terms;
use crate::lab::plan::{Step, info, steps};

fn bulk(text: &str) -> Reply {
    Reply::Bulk(text.into())
}

fn array(items: &[Reply]) -> Reply {
    Reply::Array(items.to_vec())
}

fn entry(stream: &Stream) -> Reply {
    array(&[bulk(stream.entry), array(&[bulk("job_id"), bulk(stream.work)])])
}

fn pending(stream: &Stream, owner: &str, idle_ms: i64) -> Reply {
    array(&[array(&[bulk(stream.entry), bulk(owner), Reply::Int(idle_ms), Reply::Int(2)])])
}

fn claim(entries: &[Reply], deleted: &[Reply]) -> Reply {
    array(&[bulk("0-0"), array(entries), array(deleted)])
}

fn server(run_id: &str) -> Reply {
    bulk(&format!("redis_version:7.0.15\r\nrun_id:{run_id}\r\n"))
}

/// What a server answers that does what it must.
fn answer(case: &str, step: &str, stream: Option<&Stream>) -> Reply {
    let Some(stream) = stream else { return server("a") };
    let of = |owner: &str| pending(stream, owner, 1000);
    match (case, step) {
        (_, "add") => bulk(stream.entry),
        (_, "group") => Reply::Simple("OK".into()),
        (_, "delete" | "ack") | ("end", _) => Reply::Int(1),
        (_, "read") => array(&[array(&[bulk("key"), array(&[entry(stream)])])]),
        (_, "history") => array(&[array(&[bulk("key"), array(&[])])]),
        (_, "ledger") => Reply::Error("ERR unknown command".into()),
        ("C01" | "C02", "pending") => pending(stream, "c1", 3),
        ("C02", "claim") => claim(&[], &[]),
        ("C06", "claim") => claim(&[], &[bulk(stream.entry)]),
        (_, "claim" | "claim-2") => claim(&[entry(stream)], &[]),
        (_, "before") => of("c1"),
        ("C06", "pending") | (_, "after") | ("C08", "repeat" | "deleted" | "positive") => array(&[]),
        (_, "pending-2") => of("c3"),
        _ => of("c2"),
    }
}

fn run(case: &str, stream: &Stream, consumer: &str, before: &[&str], after: &[&str]) -> Run {
    let snapshot = |names: &[&str]| -> Snapshot { names.iter().map(|name| ((*name).into(), "sum".into())).collect() };
    Run {
        case: case.into(),
        work: stream.work.into(),
        entry: stream.entry.into(),
        consumer: consumer.into(),
        delivery: 2,
        effects: snapshot(before),
        at: "t".into(),
        end: Some(End { code: Some(0), said: None, effects: snapshot(after), at: "t".into() }),
    }
}

/// A run in which `alter` changes replies, by case and step.
fn observed(alter: impl Fn(&str, &str) -> Option<Result<Reply, String>>) -> Report {
    let terms = Terms {
        tool: String::new(),
        url: String::new(),
        prefix: "p:".into(),
        idle_ms: 1000,
        handler_ms: 1,
        handler: None,
        version: None,
        keep: false,
        made: String::new(),
    };
    let asks = steps(&terms).into_iter().filter_map(|step| if let Step::Ask(ask) = step { Some(ask) } else { None });
    let exchanges = [info()].into_iter().chain(asks).map(|ask| Exchange {
        answer: alter(ask.case, &ask.name).unwrap_or_else(|| Ok(answer(ask.case, &ask.name, ask.stream))),
        case: ask.case.into(),
        step: ask.name,
        command: ask.words,
        at: "t".into(),
    });
    let runs = vec![
        run("C07", &POSITIVE, "c2", &[], &["job-D"]),
        run("C05", &REPEAT, "c2", &["job-D"], &["job-B", "job-D"]),
        run("C05", &REPEAT, "c3", &["job-B", "job-D"], &["job-B", "job-D"]),
    ];
    let last = runs[2].end.as_ref().map(|end| end.effects.clone());
    report(&Evidence { exchanges: exchanges.collect(), journal: Journal { runs, last }, terms })
}

fn told(report: &Report, case: &str) -> String {
    let one = report.cases.iter().find(|one| one.case.name == case).unwrap();
    format!("{} {}", one.row.decision.name(), one.row.reason)
}

#[test]
fn a_server_that_does_what_it_must_is_accepted() {
    let report = observed(|_, _| None);
    for one in &report.cases {
        assert_eq!(
            told(&report, one.case.name),
            "ACCEPT as-expected",
            "{}: {} {:?}",
            one.case.name,
            one.state,
            one.missing
        );
    }
    assert_eq!(report.decision, Decision::Accept);
}

#[test]
fn a_server_that_does_something_else_is_held() {
    let cases: [(&str, &str, Reply); 7] = [
        ("C01", "pending", array(&[])),
        ("C02", "claim", claim(&[entry(&CONTROL)], &[])),
        ("C03", "claim", claim(&[], &[])),
        ("C04", "history", array(&[array(&[bulk("key"), array(&[entry(&CONTROL)])])])),
        // As it was before Redis 7.0.
        ("C06", "claim", array(&[bulk("0-0"), array(&[Reply::Nil])])),
        ("C06", "pending", pending(&DELETED, "c2", 0)),
        ("C08", "deleted", pending(&DELETED, "c2", 0)),
    ];
    for (case, step, reply) in cases {
        let report = observed(|of, name| ((of, name) == (case, step)).then(|| Ok(reply.clone())));
        assert_eq!(told(&report, case), "HOLD server-differs", "{case} {step}");
        assert_eq!(report.decision, Decision::Hold, "{case} {step}");
    }
}

#[test]
fn what_was_too_early_is_no_mistake_of_the_server() {
    for (case, step, owner) in [("C03", "before", "c1"), ("C05", "before-2", "c2"), ("C07", "before", "c1")] {
        let stream = if case == "C03" { &CONTROL } else { &REPEAT };
        let report = observed(|of, name| ((of, name) == (case, step)).then(|| Ok(pending(stream, owner, 999))));
        assert_eq!(told(&report, case), "RERUN condition-not-reached", "{case} {step}");
    }
}

#[test]
fn a_reply_that_says_nothing_is_missing_evidence() {
    let strange = [
        Err("gone".to_owned()),
        Ok(Reply::Error("NOPERM".into())),
        Ok(Reply::Simple("OK".into())),
        Ok(array(&[bulk("x")])),
    ];
    for (case, step) in [
        ("C01", "pending"),
        ("C02", "claim"),
        ("C03", "pending"),
        ("C05", "claim-2"),
        ("C06", "claim"),
        ("C08", "repeat"),
    ] {
        for answer in &strange {
            let report = observed(|of, name| ((of, name) == (case, step)).then(|| answer.clone()));
            assert_eq!(told(&report, case), "RERUN evidence-missing", "{case} {step} {answer:?}");
            let missing = report.cases.iter().find(|one| one.case.name == case).and_then(|one| one.missing.clone());
            assert!(missing.is_some_and(|what| what.starts_with(&format!("{case} {step}"))), "{case} {step}");
        }
    }
    let report = observed(|of, name| ((of, name) == ("C04", "history")).then_some(Ok(Reply::Int(1))));
    assert_eq!(told(&report, "C04"), "RERUN evidence-missing");
}

#[test]
fn a_server_that_is_another_at_the_end_makes_a_run_to_be_repeated() {
    let report = observed(|of, name| ((of, name) == ("C08", "info")).then(|| Ok(server("b"))));
    assert_eq!((told(&report, "C08").as_str(), report.decision), ("ACCEPT as-expected", Decision::Rerun));
    assert!(report.checks[0].reason.starts_with("server-changed"), "{}", report.checks[0].reason);
}

#[test]
fn the_negative_control_must_be_there_to_the_end() {
    let report = observed(|of, name| ((of, name) == ("C08", "control")).then(|| Ok(array(&[]))));
    let control = &report.checks[2];
    assert_eq!(
        (control.name, control.decision, &control.reason[..]),
        ("negative-control", Decision::Rerun, "not-kept")
    );
}
