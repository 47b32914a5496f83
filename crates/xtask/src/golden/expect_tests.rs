//! Every form of expectation: a reply that it takes and near misses that it must refuse.

use serde_json::{Value as Json, json};

use super::{Expectation, Protocol, Saved};
use crate::resp::decode;

fn fits(want: &Json, got: &str, protocol: Protocol) -> bool {
    let want = Expectation::parse(want).expect("an expectation");
    let (got, length) = decode(got.as_bytes()).expect("RESP").expect("whole");
    assert!(length > 0);
    want.fits(&got, protocol, &Saved::from([("one".to_owned(), "1-0".to_owned())]))
}

/// `takes` and `refuses` are wire bytes.
fn check(want: Json, protocol: Protocol, takes: &[&str], refuses: &[&str]) {
    for got in takes {
        assert!(fits(&want, got, protocol), "{want} takes {got:?} in {protocol:?}");
    }
    for got in refuses {
        assert!(!fits(&want, got, protocol), "{want} refuses {got:?} in {protocol:?}");
    }
}

const BOTH: [Protocol; 2] = [Protocol::Two, Protocol::Three];

#[test]
fn scalars() {
    for protocol in BOTH {
        check(json!(7), protocol, &[":7\r\n"], &[":8\r\n", "$1\r\n7\r\n", "+7\r\n"]);
        check(json!("ab"), protocol, &["$2\r\nab\r\n"], &["+ab\r\n", "$2\r\naB\r\n", "-ab\r\n", "=2\r\nab\r\n"]);
        check(json!({"hex": "6162"}), protocol, &["$2\r\nab\r\n"], &["$2\r\nac\r\n", "+ab\r\n"]);
        check(json!({"repeat": ["ab", 2]}), protocol, &["$4\r\nabab\r\n"], &["$2\r\nab\r\n"]);
        check(json!({"s": "OK"}), protocol, &["+OK\r\n"], &["$2\r\nOK\r\n", "+ok\r\n"]);
        check(json!({"e": "ERR x"}), protocol, &["-ERR x\r\n"], &["-ERR xy\r\n", "+ERR x\r\n"]);
        check(json!({"e_re": "^ERR .*x"}), protocol, &["-ERR a x b\r\n"], &["-WRONG x\r\n", "+ERR x\r\n"]);
        check(json!({"re": "a|b"}), protocol, &["$1\r\nb\r\n"], &["$2\r\nab\r\n", "$2\r\nb\n\r\n", "+a\r\n"]);
        check(
            json!({"id": true}),
            protocol,
            &["$4\r\n12-0\r\n"],
            &["$3\r\n12-\r\n", "$2\r\n12\r\n", "$5\r\n1-2-3\r\n", "+1-0\r\n"],
        );
        check(json!({"int_ge": 3}), protocol, &[":3\r\n", ":4\r\n"], &[":2\r\n", "$1\r\n3\r\n"]);
        check(json!({"int_between": [1, 2]}), protocol, &[":1\r\n", ":2\r\n"], &[":0\r\n", ":3\r\n"]);
        check(json!({"ref": "one"}), protocol, &["$3\r\n1-0\r\n"], &["$3\r\n1-1\r\n"]);
        check(json!({"ref": "two"}), protocol, &[], &["$3\r\n1-0\r\n", "$0\r\n\r\n", "*0\r\n"]);
        check(json!({"any": true}), protocol, &["-ERR\r\n", "*-1\r\n"], &[]);
        check(json!({"one_of": [1, "a"]}), protocol, &[":1\r\n", "$1\r\na\r\n"], &[":2\r\n"]);
        check(json!({"all": [{"int_ge": 1}, {"int_between": [0, 2]}]}), protocol, &[":1\r\n"], &[":0\r\n", ":3\r\n"]);
    }
}

#[test]
fn a_null_is_spelled_as_the_protocol_says() {
    check(json!({"nil": "bulk"}), Protocol::Two, &["$-1\r\n"], &["*-1\r\n", "_\r\n", "$0\r\n\r\n"]);
    check(json!({"nil": "array"}), Protocol::Two, &["*-1\r\n"], &["$-1\r\n", "_\r\n", "*0\r\n"]);
    for kind in ["bulk", "array"] {
        check(json!({"nil": kind}), Protocol::Three, &["_\r\n"], &["$-1\r\n", "*-1\r\n"]);
    }
}

#[test]
fn lists() {
    let (ab, ba) = ("*2\r\n+a\r\n+b\r\n", "*2\r\n+b\r\n+a\r\n");
    let want = json!([{"s": "a"}, {"s": "b"}]);
    for protocol in BOTH {
        check(want.clone(), protocol, &[ab], &[ba, "*1\r\n+a\r\n", "*3\r\n+a\r\n+b\r\n+c\r\n", "~2\r\n+a\r\n+b\r\n"]);
        check(
            json!({"unordered": want}),
            protocol,
            &[ab, ba, "~2\r\n+b\r\n+a\r\n"],
            &["*2\r\n+a\r\n+a\r\n", "*3\r\n+a\r\n+b\r\n+c\r\n"],
        );
        check(
            json!({"contains": want}),
            protocol,
            &[ab, "*3\r\n+c\r\n+b\r\n+a\r\n"],
            &["*1\r\n+a\r\n", "*2\r\n+a\r\n+a\r\n"],
        );
        check(json!({"len": 2}), protocol, &[ab], &["*1\r\n+a\r\n", "~2\r\n+a\r\n+b\r\n"]);
    }
    check(json!({"set": want}), Protocol::Two, &[ab, ba], &["~2\r\n+a\r\n+b\r\n"]);
    check(json!({"set": want}), Protocol::Three, &["~2\r\n+b\r\n+a\r\n"], &[ab, "~1\r\n+a\r\n"]);
    check(json!({"push": want}), Protocol::Two, &[ab], &[ba]);
    check(json!({"push": want}), Protocol::Three, &[">2\r\n+a\r\n+b\r\n"], &[ab, ">2\r\n+b\r\n+a\r\n"]);
}

#[test]
fn maps() {
    let flat = "*4\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n:2\r\n";
    let swapped = "*4\r\n$1\r\nb\r\n:2\r\n$1\r\na\r\n:1\r\n";
    let rows = "*2\r\n*2\r\n$1\r\na\r\n:1\r\n*2\r\n$1\r\nb\r\n:2\r\n";
    let map = "%2\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n:2\r\n";
    let longer = "%3\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n:2\r\n$12\r\nnacked-count\r\n:0\r\n";
    let want = json!([["a", 1], ["b", 2]]);
    check(json!({"map": want}), Protocol::Two, &[flat], &[swapped, rows, map]);
    check(json!({"map": want}), Protocol::Three, &[map], &[flat, rows, longer]);
    check(json!({"pairs": want}), Protocol::Two, &[rows], &[flat, map, "*1\r\n*2\r\n$1\r\na\r\n:1\r\n"]);
    check(json!({"pairs": want}), Protocol::Three, &[map], &[rows, longer]);
    check(json!({"fields": want}), Protocol::Three, &[map, longer], &[flat, "%1\r\n$1\r\na\r\n:1\r\n"]);
    check(json!({"fields": want}), Protocol::Two, &[flat], &[swapped, map, "*3\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n"]);
    check(json!({"has": [["b", 2]]}), Protocol::Two, &[flat, swapped], &[map, "*2\r\n$1\r\nb\r\n:1\r\n"]);
    check(json!({"has": [["b", 2]]}), Protocol::Three, &[map, longer], &[flat, "%1\r\n$1\r\na\r\n:2\r\n"]);
    check(
        json!({"lacks": ["c"]}),
        Protocol::Three,
        &[map, flat],
        &["%1\r\n$1\r\nc\r\n:1\r\n", "*2\r\n$1\r\nc\r\n:1\r\n", ":1\r\n"],
    );
}

#[test]
fn resp3_scalars() {
    check(json!({"double": "1.5"}), Protocol::Three, &[",1.5\r\n"], &[",1.50\r\n", "$3\r\n1.5\r\n"]);
    check(json!({"big": "12"}), Protocol::Three, &["(12\r\n"], &[":12\r\n"]);
    check(json!({"bool": true}), Protocol::Three, &["#t\r\n"], &["#f\r\n", ":1\r\n"]);
    check(json!({"verbatim": "txt:a"}), Protocol::Three, &["=5\r\ntxt:a\r\n"], &["$5\r\ntxt:a\r\n"]);
}

#[test]
fn a_mistaken_expectation_is_found_at_load() {
    for json in [
        json!(true),
        json!(null),
        json!(1.5),
        json!({}),
        json!({"s": "a", "e": "b"}),
        json!({"nosuch": 1}),
        json!({"hex": "f"}),
        json!({"hex": "zz"}),
        json!({"e_re": "("}),
        json!({"nil": "none"}),
        json!({"map": [["a"]]}),
        json!({"int_between": [1]}),
    ] {
        assert!(Expectation::parse(&json).is_err(), "{json}");
    }
}
