//! Each judgement can fail: a lost, a doubled, a changed thing is found, and nothing is found where all is well.

use std::collections::BTreeMap;

use super::check::{
    Ack, Delivery, GroupLog, GroupView, SharedLog, SharedView, check_pipeline, check_shared, compare_facts,
};
use super::command::{Command, list};
use super::facts::{Fact, Facts};
use super::id::Span;
use super::maker::Maker;
use super::owner::Abilities;
use super::random::Random;
use super::twin::{Twin, allows, same_reply, stream};
use super::work::{Asking, Done, WorkLog, WorkView, check_work};
use crate::resp::{Nil, Value};

const WHEN: Span = Span { from_ms: 100, to_ms: 110 };
const ALL: Abilities = Abilities { references: true, strict: true, newer: true, ours: true };

fn run(twin: &mut Twin, words: &str) -> Value {
    twin.run(&Command::new(list(&words.split(' ').collect::<Vec<_>>())), WHEN, None)
}

/// A stream with four entries, two of them delivered and one of these given back, one passed over, and settings; and a string
/// with a deadline.
fn twin() -> Twin {
    let mut twin = Twin::new();
    for words in [
        "XADD s 1-0 f v",
        "XADD s 2-0 f v",
        "XADD s NOTBEFORE 5000 3-0 f v",
        "XADD s 4-0 f v",
        "XGROUP CREATE s g 0 MAXPENDING 7",
        "XREADGROUP GROUP g c COUNT 2 STREAMS s >",
        "XREADGROUP GROUP g c COUNT 1 NOACK STREAMS s >",
        "XNACK s g FAIL IDS 1 2-0",
        "XCFGSET s MAXLEN 50",
        "SET k 7",
        "EXPIRE k 9",
    ] {
        run(&mut twin, words);
    }
    twin
}

fn facts(twin: &mut Twin) -> (Facts, Facts) {
    twin.facts(&["s".to_owned(), "k".to_owned(), "none".to_owned()], ALL).expect("the model answers")
}

#[test]
fn every_change_of_an_owners_keys_is_found() {
    let (early, late) = facts(&mut twin());
    let wrong = |server: &Facts| compare_facts(&early, &late, server).wrong;
    assert!(wrong(&early).is_empty() && wrong(&late).is_empty());
    for what in early.keys() {
        let mut server = early.clone();
        match server.get_mut(what).expect("it is there") {
            Fact::Text(text) => text.push('!'),
            Fact::Moment(span) => *span = span.shifted(11),
        }
        assert!(matches!(wrong(&server).as_slice(), [one] if one.starts_with(what.as_str())), "{what} changed");
        server.remove(what);
        assert!(matches!(wrong(&server).as_slice(), [one] if one.starts_with(what.as_str())), "{what} lost");
    }
    let mut more = early.clone();
    more.insert("s entry 9-0".to_owned(), Fact::Text("f v".to_owned()));
    assert_eq!(wrong(&more).len(), 1, "something that nobody made");
}

#[test]
fn each_command_of_the_newer_kinds_leaves_a_fact() {
    let changed_by = |words: &str| {
        let (before, _) = facts(&mut twin());
        let mut after = twin();
        let reply = run(&mut after, words);
        assert!(!reply.is_error(), "{words}: {}", reply.text());
        let (after, _) = facts(&mut after);
        before
            .keys()
            .chain(after.keys())
            .filter(|what| before.get(*what) != after.get(*what))
            .cloned()
            .collect::<Vec<_>>()
    };
    for (words, what) in [
        ("XNACK s g SILENT IDS 1 1-0", "s g pending 1-0"),
        ("XNACK s g FAIL IDS 1 1-0 DELAY 1000", "s g GROUPSTATS next-release-ms"),
        ("XNACK s g FATAL IDS 1 4-0 FORCE", "s g nacked-count"),
        ("XADDM s COUNT 2 5-0 1 f v 6-0 1 f v", "s entry 6-0"),
        ("XACK s g RANGE - +", "s g GROUPSTATS acked-total"),
        ("XGROUP DELCONSUMER s g c RELEASE", "s g GROUPSTATS released"),
        ("XGROUP CFGSET s g MAXPENDING-CONSUMER 3", "s g GROUPSTATS max-pending-per-consumer"),
        ("XREADGROUP GROUP new c MKGROUP STREAMS s >", "s new"),
        ("XREADGROUP GROUP g d CLAIM 0 STREAMS s >", "s g consumer d pending 1-0"),
        ("XCFGSET s RETAIN acked DISCARD new", "s XCFGGET discard"),
        ("XCFGSET s IDMP-DURATION 500", "s idmp-duration"),
        ("XADD s IDMP p 1 * f v", "s iids-added"),
        ("XIDMPRECORD s p 1 2-0", "s iids-tracked"),
        ("DEL s", "s XCFGGET maxlen"),
    ] {
        let changed = changed_by(words);
        assert!(changed.iter().any(|of| of == what), "{words}: {changed:?}");
    }
}

#[test]
fn a_time_is_right_between_the_earliest_and_the_latest() {
    let (early, late) = facts(&mut twin());
    let what = "s g pending 1-0 delivered";
    for (ms, right) in [(99, false), (100, true), (105, true), (110, true), (111, false)] {
        let mut server = early.clone();
        server.insert(what.to_owned(), Fact::Moment(Span::exact(ms)));
        assert_eq!(compare_facts(&early, &late, &server).wrong.is_empty(), right, "{ms}");
    }
    // What the server said once must stay so.
    let (mut twin, mut server) = (twin(), early);
    server.insert(what.to_owned(), Fact::Moment(Span::exact(105)));
    twin.adopt(&server);
    let (early, late) = facts(&mut twin);
    server.insert(what.to_owned(), Fact::Moment(Span::exact(106)));
    assert!(compare_facts(&early, &late, &server).wrong.iter().any(|wrong| wrong.starts_with(what)));
}

#[test]
fn an_id_that_the_server_made_is_the_models() {
    let mut twin = twin();
    let words = list(&["XADD", "s", "IDMP", "p", "1", "*", "f", "v"]);
    let command = Command { server_id: Some("s".to_owned()), ..Command::new(words) };
    let wanted = twin.run(&command, WHEN, Some("107-0"));
    assert_eq!(wanted, Value::Bulk(b"107-0".to_vec()));
    let (early, late) = facts(&mut twin);
    assert!(early.contains_key("s entry 107-0") && late.contains_key("s entry 107-0"));
}

#[test]
fn what_may_change_without_showing_changes_the_same_when_done_again() {
    let parts = ["XNACK s g FAIL IDS 1 2-0", "XADD s 9-0 f v", "XGROUP CFGSET s g KEYFIELD f", "XGROUP DESTROY s h"];
    let commands = parts.map(|words| Command::new(list(&words.split(' ').collect::<Vec<_>>())));
    let hidden: Vec<String> = Command::transaction(commands.into()).hidden().iter().map(Command::to_string).collect();
    assert_eq!(hidden, [parts[0], parts[2]]);
    let (mut once, mut twice) = (twin(), twin());
    for words in hidden {
        assert_eq!(run(&mut once, &words), run(&mut twice, &words));
        run(&mut twice, &words);
    }
    assert_eq!(facts(&mut once), facts(&mut twice));
    let read = "XREADGROUP GROUP g d CLAIM 1000000 STREAMS s >";
    assert_eq!(run(&mut once, read), run(&mut twice, read));
}

#[test]
fn a_wrong_reply_is_found() {
    let reply = run(&mut twin(), "XDEL s 1-0 7-0");
    assert!(same_reply(&reply, &Value::Int(1)) && !same_reply(&reply, &Value::Int(2)));
    let wanted = Value::Array(vec![Value::Error(b"NOGROUP it is not there".to_vec())]);
    assert!(same_reply(&wanted, &Value::Array(vec![Value::Error(b"NOGROUP No such".to_vec())])));
    assert!(!same_reply(&wanted, &Value::Array(vec![Value::Error(b"ERR No such".to_vec())])));
    let bulk = |text: &str| Value::Bulk(text.into());
    let entry = |id: &str, idle_ms: i64, count: i64| {
        Value::Array(vec![bulk(id), Value::Array(vec![bulk("f"), bulk("v")]), Value::Int(idle_ms), Value::Int(count)])
    };
    assert!(same_reply(&entry("1-0", 5, 1), &entry("1-0", 9, 1)), "how long it was idle");
    assert!(!same_reply(&entry("1-0", 5, 1), &entry("1-0", -1, 1)), "nobody had it");
    assert!(!same_reply(&entry("1-0", 5, 1), &entry("1-0", 5, 2)), "how often it was delivered");
    let read = |entries: Vec<Value>| Value::Array(vec![Value::Array(vec![bulk("s"), Value::Array(entries)])]);
    let (one, other) = (vec![entry("1-0", 0, 1), entry("2-0", 0, 1)], vec![entry("2-0", 0, 1), entry("1-0", 0, 1)]);
    let ordered = Command::new(Vec::new());
    let any_order = Command { any_order: true, ..ordered.clone() };
    assert!(allows(&any_order, &read(one.clone()), &read(other.clone())));
    assert!(!allows(&any_order, &read(one.clone()), &read(vec![other[0].clone()])));
    assert!(!allows(&ordered, &read(one), &read(other)));
}

#[test]
fn a_pipeline_is_a_prefix_of_what_was_sent() {
    let acknowledged = [((1, 0), 0), ((2, 0), 1)];
    let wrong = |seen: &[((u64, u64), u64)]| !check_pipeline(&acknowledged, 4, seen).wrong.is_empty();
    let (first, second, third, fourth) = (((1, 0), 0), ((2, 0), 1), ((3, 0), 2), ((4, 0), 3));
    assert!(!wrong(&[first, second]));
    assert!(!wrong(&[first, second, third]));
    assert!(!wrong(&[first, second, third, fourth]));
    assert!(wrong(&[first]), "an acknowledged entry is lost");
    assert!(wrong(&[second, first]), "the order is lost");
    assert!(wrong(&[first, ((2, 1), 1)]), "another id than acknowledged");
    assert!(wrong(&[first, second, fourth]), "one of the unanswered is passed over");
    assert!(wrong(&[first, second, third, fourth, ((5, 0), 4)]), "never sent");
    assert!(wrong(&[first, second, second]), "doubled");
}

/// Three acknowledged entries and one on its way; the first acknowledged by the group, the second pending.
fn shared() -> (SharedLog, SharedView) {
    let delivery = |ack| Delivery { consumer: "c".to_owned(), ack };
    let delivered = [((1, 0), delivery(Ack::Done)), ((2, 0), delivery(Ack::None))].into();
    let group = GroupLog { delivered, reading: ["d".to_owned()].into() };
    let log = SharedLog {
        added: [((1, 0), (0, 0)), ((2, 0), (0, 1)), ((3, 0), (1, 0))].into(),
        adding: [(1, 1)].into(),
        groups: [("g".to_owned(), group)].into(),
    };
    let view = SharedView {
        entries: vec![((1, 0), (0, 0)), ((2, 0), (0, 1)), ((3, 0), (1, 0))],
        groups: [("g".to_owned(), GroupView { position: (2, 0), pending: [((2, 0), ("c".to_owned(), 1))].into() })]
            .into(),
    };
    (log, view)
}

#[test]
fn a_shared_stream_may_lose_and_double_nothing() {
    let judge = |change: &dyn Fn(&mut SharedLog, &mut SharedView, &mut GroupView)| {
        let (mut log, mut view) = shared();
        let mut group = view.groups["g"].clone();
        change(&mut log, &mut view, &mut group);
        view.groups.insert("g".to_owned(), group);
        check_shared(&log, &view).wrong
    };
    let fine = Vec::<String>::new();
    assert_eq!(judge(&|_, _, _| {}), fine);
    assert_eq!(judge(&|_, view, _| view.entries.push(((4, 0), (1, 1)))), fine, "the one on its way arrived");
    let unanswered_read = judge(&|_, _, group| {
        group.position = (3, 0);
        group.pending.insert((3, 0), ("d".to_owned(), 1));
    });
    assert_eq!(unanswered_read, fine);
    let ack = |log: &mut SharedLog, ack| {
        log.groups.get_mut("g").expect("g").delivered.get_mut(&(2, 0)).expect("delivered").ack = ack;
    };
    assert_eq!(judge(&|log, _, _| ack(log, Ack::Sent)), fine, "an unanswered XACK that was not carried out");
    assert_eq!(
        judge(&|log, _, group| {
            ack(log, Ack::Sent);
            group.pending.clear();
        }),
        fine,
        "and one that was"
    );

    let found = |what: &str, change: &dyn Fn(&mut SharedLog, &mut SharedView, &mut GroupView)| {
        assert_ne!(judge(change), fine, "{what}");
    };
    found("a lost entry", &|_, view, _| view.entries.truncate(2));
    found("a doubled entry", &|_, view, _| view.entries.push(((5, 0), (1, 0))));
    found("an entry that nobody sent", &|_, view, _| view.entries.push(((5, 0), (2, 7))));
    found("a lost delivery", &|_, _, group| group.pending.clear());
    found("a lost acknowledgement", &|_, _, group| drop(group.pending.insert((1, 0), ("c".to_owned(), 1))));
    found("an acknowledged one that is pending", &|log, _, _| ack(log, Ack::Done));
    found("another owner", &|_, _, group| drop(group.pending.insert((2, 0), ("d".to_owned(), 1))));
    found("a wrong count", &|_, _, group| drop(group.pending.insert((2, 0), ("c".to_owned(), 2))));
    found("a position set back: it would be delivered again", &|_, _, group| group.position = (1, 0));
    found("an entry passed over", &|_, _, group| group.position = (3, 0));
    found("pending for somebody who did not read", &|_, _, group| {
        group.position = (3, 0);
        group.pending.insert((3, 0), ("c".to_owned(), 1));
    });
}

/// How often each kind of command did something in a load of many, by its name and the options that matter.
fn effective_kinds(abilities: Abilities) -> BTreeMap<String, usize> {
    let (mut twin, mut random) = (Twin::new(), Random::new(1));
    let mut kinds = BTreeMap::new();
    for number in 0..6000 {
        let key = "s".to_owned();
        let stream = stream(twin.model(), &key);
        let command = Maker { random: &mut random, abilities, key, stream, exact: false }.make();
        let reply = twin.run(&command, Span::exact(1_000_000 + number), None);
        let words = &command.parts[0];
        // What removes a consumer that has nothing answers 0.
        let zero = reply == Value::Int(0) && !words.iter().any(|word| word == "IFEMPTY");
        let nothing = reply.is_error() || zero || reply == Value::Nil(Nil::Array);
        let names = [&words[0], &words[1]].into_iter().filter(|name| *name != "s").chain(&words[2..]);
        for name in names.filter(|name| name.starts_with(|first: char| first.is_ascii_uppercase())) {
            *kinds.entry(format!("{} {name}", words[0])).or_default() += usize::from(!nothing);
        }
    }
    kinds
}

#[test]
fn the_load_holds_every_kind_of_command_that_the_server_knows() {
    let kinds = effective_kinds(ALL);
    for kind in [
        "XNACK SILENT",
        "XNACK FAIL",
        "XNACK FATAL",
        "XNACK RETRYCOUNT",
        "XNACK FORCE",
        "XNACK DELAY",
        "XADD NOTBEFORE",
        "XADD DELAY",
        "XADD IDMP",
        "XADD IDMPAUTO",
        "XADDM COUNT",
        "XADDM NOTBEFORE",
        "XIDMPRECORD XIDMPRECORD",
        "XACK RANGE",
        "XACK XACK",
        "XGROUP IFEMPTY",
        "XGROUP RELEASE",
        "XGROUP MAXPENDING",
        "XGROUP MAXPENDING-CONSUMER",
        "XGROUP KEYFIELD",
        "XGROUP DESTROY",
        "XREADGROUP CLAIM",
        "XREADGROUP MKGROUP",
        "XREADGROUP NOACK",
        "XCFGSET MAXLEN",
        "XCFGSET MAXBYTES",
        "XCFGSET RETAIN",
        "XCFGSET DISCARD",
        "XCFGSET FORCE",
        "XTRIM ACKED",
        "XDELEX DELREF",
        "XCLAIM LASTID",
        "XAUTOCLAIM XAUTOCLAIM",
    ] {
        assert!(kinds.get(kind).is_some_and(|count| *count >= 2), "{kind}: {:?} of {kinds:?}", kinds.get(kind));
    }
    let old = effective_kinds(Abilities { newer: false, ours: false, ..ALL });
    let newer = [
        "XNACK",
        "XADDM",
        "XIDMP",
        "XCFG",
        "IDMP",
        "XREADGROUP CLAIM",
        "MKGROUP",
        "RANGE",
        "NOTBEFORE",
        "KEYFIELD",
        "RELEASE",
    ];
    assert!(!old.keys().any(|kind| newer.iter().any(|word| format!("{kind} ").contains(word))), "{old:?}");
}

/// Work that is done (w1 by 1-0), being worked at (2-0), dead (3-0) and, perhaps, done (w4 by 4-0, not answered).
fn work() -> (WorkLog, WorkView) {
    let done = Done { entry: (1, 0), digest: "d".into(), emitted: (10, 0) };
    let policy = BTreeMap::from([("lease".to_owned(), "5".to_owned())]);
    let log = WorkLog {
        given: [(1, 0), (2, 0), (3, 0), (4, 0)].into(),
        done: [("w1".to_owned(), done)].into(),
        settled: [(1, 0)].into(),
        dead: [((3, 0), (20, 0))].into(),
        policy: policy.clone(),
        asking: Asking::Completing("w4".into(), (4, 0)),
    };
    let view = WorkView {
        pending: [(2, 0), (4, 0)].into(),
        emitted: vec![((10, 0), "w1".into(), (1, 0))],
        completed: vec![("w1".into(), (1, 0), "d".into())],
        letters: vec![((20, 0), (3, 0))],
        policy,
    };
    (log, view)
}

#[test]
fn books_that_agree_are_right_whether_the_last_command_was_carried_out_or_not() {
    let (log, mut view) = work();
    assert_eq!(check_work(&log, &view).wrong, [""; 0]);
    view.pending.remove(&(4, 0));
    view.emitted.push(((11, 0), "w4".into(), (4, 0)));
    view.completed.push(("w4".into(), (4, 0), "d".into()));
    assert_eq!(check_work(&log, &view).wrong, [""; 0]);
    assert!(check_work(&log, &view).checks > 15);
}

#[test]
fn every_disagreement_between_the_books_is_found() {
    type Harm = fn(&mut WorkView);
    let harms: [(&str, Harm); 14] = [
        ("a completion is lost", |view| view.completed.clear()),
        ("it is of another entry", |view| view.completed[0].1 = (2, 0)),
        ("another digest", |view| view.completed[0].2.push('!')),
        ("nothing was emitted", |view| view.emitted.clear()),
        ("emitted twice", |view| view.emitted.push(((11, 0), "w1".into(), (1, 0)))),
        ("emitted under another ID", |view| view.emitted[0].0 = (11, 0)),
        ("completed twice", |view| view.completed.push(view.completed[0].clone())),
        ("emitted without a completion", |view| view.emitted.push(((11, 0), "w2".into(), (2, 0)))),
        ("a completion that nobody said", |view| {
            view.emitted.push(((11, 0), "w2".into(), (2, 0)));
            view.completed.push(("w2".into(), (2, 0), "d".into()));
            view.pending.remove(&(2, 0));
        }),
        ("completed and pending", |view| {
            view.emitted.push(((11, 0), "w4".into(), (4, 0)));
            view.completed.push(("w4".into(), (4, 0), "d".into()));
        }),
        ("acknowledged and pending", |view| {
            view.pending.insert((1, 0));
        }),
        ("an entry between the books", |view| {
            view.pending.remove(&(2, 0));
        }),
        ("two letters of one entry", |view| view.letters.push(((21, 0), (3, 0)))),
        ("another policy", |view| {
            view.policy.insert("lease".into(), "6".into());
        }),
    ];
    for (what, harm) in harms {
        let (log, mut view) = work();
        harm(&mut view);
        assert!(!check_work(&log, &view).wrong.is_empty(), "{what}");
    }
    let (log, mut view) = work();
    view.letters.clear();
    assert_eq!(check_work(&log, &view).wrong.len(), 2, "a letter that was acknowledged, and its entry");
    view = work().1;
    view.pending.insert((3, 0));
    assert_eq!(check_work(&log, &view).wrong.len(), 1, "dead and pending");
    let (mut log, mut view) = work();
    view.policy.insert("lease".into(), "6".into());
    log.asking = Asking::Ruling(view.policy.clone());
    assert_eq!(check_work(&log, &view).wrong, [""; 0], "the policy that was asked for and not answered");
}
