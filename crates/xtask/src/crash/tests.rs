//! Each judgement can fail: a lost, a doubled, a changed thing is found, and nothing is found where all is well.

use super::check::{
    Ack, Delivery, GroupLog, GroupView, SharedLog, SharedView, check_pipeline, check_shared, compare_keys,
};
use super::command::Command;
use super::effect::same_reply;
use super::model::{Data, Keys, Span, Stream, ZERO};
use crate::resp::Value;

const WHEN: Span = Span { from_ms: 100, to_ms: 110 };

/// A stream with three entries, two of them delivered, and a string with a deadline.
fn model() -> Keys {
    let (key, group, consumer) = ("s".to_owned(), "g".to_owned(), "c".to_owned());
    let mut keys = Keys::new();
    for n in 1..=3 {
        let add = Command::Add { key: key.clone(), id: (n, 0), fields: vec!["f".into(), "v".into()], trim: None };
        add.run(&mut keys, WHEN);
    }
    let create =
        Command::GroupCreate { key: key.clone(), group: group.clone(), position: Some(ZERO), entries_read: None };
    create.run(&mut keys, WHEN);
    Command::Read { key, group, consumer, count: 2, no_ack: false }.run(&mut keys, WHEN);
    Command::Set { key: "k".into(), value: "7".into() }.run(&mut keys, WHEN);
    Command::Expire { key: "k".into(), seconds: 9 }.run(&mut keys, WHEN);
    keys
}

fn stream(keys: &mut Keys) -> &mut Stream {
    match &mut keys.get_mut("s").expect("the stream").data {
        Data::Stream(stream) => stream,
        Data::Text(_) => unreachable!("it is a stream"),
    }
}

#[test]
fn every_change_of_an_owners_keys_is_found() {
    assert_eq!(compare_keys(&model(), &model()).wrong, Vec::<String>::new());
    let pending = |keys: &mut Keys, change: fn(&mut super::model::Pending)| {
        change(stream(keys).groups.get_mut("g").expect("g").pending.get_mut(&(1, 0)).expect("pending"));
    };
    type Change<'a> = (&'a str, Box<dyn Fn(&mut Keys) + 'a>);
    let changes: Vec<Change<'_>> = vec![
        ("entry", Box::new(|keys| drop(stream(keys).entries.remove(&(2, 0))))),
        ("entry", Box::new(|keys| drop(stream(keys).entries.insert((9, 0), vec![])))),
        ("entry", Box::new(|keys| drop(stream(keys).entries.insert((2, 0), vec!["f".into(), "w".into()])))),
        ("last-generated-id", Box::new(|keys| stream(keys).last = (2, 0))),
        ("max-deleted-entry-id", Box::new(|keys| stream(keys).max_deleted = (1, 0))),
        ("entries-added", Box::new(|keys| stream(keys).added += 1)),
        ("groups", Box::new(|keys| drop(stream(keys).groups.remove("g")))),
        ("last-delivered-id", Box::new(|keys| stream(keys).groups.get_mut("g").expect("g").position = (1, 0))),
        ("entries-read", Box::new(|keys| stream(keys).groups.get_mut("g").expect("g").entries_read = None)),
        ("consumers", Box::new(|keys| stream(keys).groups.get_mut("g").expect("g").consumers.clear())),
        ("pending", Box::new(|keys| drop(stream(keys).groups.get_mut("g").expect("g").pending.remove(&(1, 0))))),
        ("pending", Box::new(|keys| pending(keys, |pending| pending.count += 1))),
        ("pending", Box::new(|keys| pending(keys, |pending| pending.consumer = "d".into()))),
        ("pending", Box::new(|keys| pending(keys, |pending| pending.delivered = Span::exact(111)))),
        ("k", Box::new(|keys| keys.get_mut("k").expect("k").data = Data::Text("8".into()))),
        ("k deadline", Box::new(|keys| keys.get_mut("k").expect("k").deadline = None)),
        ("k deadline", Box::new(|keys| keys.get_mut("k").expect("k").deadline = Some(Span::exact(0)))),
        ("k", Box::new(|keys| drop(keys.remove("k")))),
        ("l", Box::new(|keys| drop(keys.insert("l".into(), keys["k"].clone())))),
    ];
    for (what, change) in changes {
        let mut server = model();
        change(&mut server);
        let wrong = compare_keys(&model(), &server).wrong;
        assert!(wrong.len() == 1 && wrong[0].contains(what), "{what}: {wrong:?}");
    }
}

#[test]
fn a_wrong_reply_is_found() {
    let reply = Command::Delete { key: "s".into(), ids: vec![(1, 0), (7, 0)] }.run(&mut model(), WHEN);
    assert!(same_reply(&reply, &Value::Int(1)) && !same_reply(&reply, &Value::Int(2)));
    let wanted = Value::Array(vec![Value::Error(b"NOGROUP".to_vec())]);
    assert!(same_reply(&wanted, &Value::Array(vec![Value::Error(b"NOGROUP No such".to_vec())])));
    assert!(!same_reply(&wanted, &Value::Array(vec![Value::Error(b"ERR No such".to_vec())])));
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
