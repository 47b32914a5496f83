//! The views against what Redis 8.2.3 answered (`recorded.txt`), in both protocols, and against the cases where we differ.
//!
//! A line of the file: protocol, command, ` => `, the reply in a canonical form that [`canonical`] also gives to ours. Where
//! order has no meaning it is sorted; wording (summary, complexity, notes, history, replaced_by) is left out, it is our own.

use super::*;
use crate::command::args::OwnedArgs;
use crate::resp::encode::Protocol;

const RECORDED: &str = include_str!("recorded.txt");
/// Commands that came after Redis 8.2, and those of ours: nothing was recorded of them.
const NEWER: [&str; 7] = ["xaddm", "xcfgget", "xcfgset", "xgroup|cfgset", "xidmprecord", "xinfo|groupstats", "xnack"];
/// Commands that have got options since: what was recorded of their arguments is older than the rows.
const WITH_NEWER_OPTIONS: [&str; 6] = ["xack", "xadd", "xgroup", "xinfo", "xread", "xreadgroup"];
/// Containers that have got subcommands since.
const WITH_NEWER_SUBCOMMANDS: [&str; 2] = ["xgroup", "xinfo"];
const WORDING: [&str; 5] = ["'summary'", "'complexity'", "'history'", "'replaced_by'", "'notes'"];

fn line<'a>(bytes: &mut &'a [u8]) -> &'a str {
    let end = bytes.windows(2).position(|w| w == b"\r\n").expect("a line ends");
    let line = std::str::from_utf8(&bytes[..end]).expect("text");
    *bytes = &bytes[end + 2..];
    line
}

/// Reads one reply and writes it down in the canonical form.
fn canonical(bytes: &mut &[u8]) -> String {
    let head = line(bytes);
    let (mark, rest) = head.split_at(1);
    let mut elements = |n: usize| (0..n).map(|_| canonical(bytes)).collect::<Vec<_>>();
    match mark {
        "+" => format!("+{rest}"),
        "-" => format!("-{rest}"),
        ":" => rest.to_owned(),
        "_" => "_".to_owned(),
        "$" if rest == "-1" => "_".to_owned(),
        "$" => {
            let text = line(bytes);
            assert_eq!(text.len(), rest.parse::<usize>().unwrap());
            format!("'{text}'")
        }
        "*" => {
            let mut list = elements(rest.parse().unwrap());
            if list.first().is_some_and(|first| first == "'notes'") {
                list.drain(..2);
            }
            if list.iter().all(|e| e.starts_with('+')) || list.iter().all(|e| e.starts_with('[')) {
                list.sort();
            }
            format!("[{}]", list.join(" "))
        }
        "~" => {
            let mut list = elements(rest.parse().unwrap());
            list.sort();
            format!("~{{{}}}", list.join(" "))
        }
        "%" => {
            let flat = elements(2 * rest.parse::<usize>().unwrap());
            let mut pairs: Vec<String> = flat
                .chunks(2)
                .filter(|pair| !WORDING.contains(&pair[0].as_str()))
                .map(|pair| format!("{}: {}", pair[0], pair[1]))
                .collect();
            if pairs.iter().all(|pair| pair.split(':').next().unwrap().contains('|')) {
                pairs.sort();
            }
            format!("%{{{}}}", pairs.join(", "))
        }
        other => panic!("unexpected reply type {other}"),
    }
}

fn run(protocol: Protocol, command_line: &str) -> Vec<u8> {
    let owned = OwnedArgs::new(command_line.split_ascii_whitespace());
    let args = owned.args();
    let mut out = Vec::new();
    let mut reply = Reply { out: &mut out, protocol };
    match table::resolve(args).expect("the row exists").id {
        CommandId::Command => command(&mut reply),
        CommandId::CommandCount => command_count(&mut reply),
        CommandId::CommandInfo => command_info(args.from(2), &mut reply),
        CommandId::CommandDocs => command_docs(args.from(2), &mut reply),
        CommandId::CommandList => command_list(args.from(2), &mut reply),
        CommandId::CommandGetKeys => command_getkeys(args.from(2), &mut reply),
        CommandId::CommandGetKeysAndFlags => command_getkeysandflags(args.from(2), &mut reply),
        other => panic!("no view of {other:?}"),
    }
    out
}

fn answer(protocol: Protocol, command_line: &str) -> String {
    let out = run(protocol, command_line);
    let mut rest = out.as_slice();
    let text = canonical(&mut rest);
    assert!(rest.is_empty(), "{command_line}: more than one reply");
    text
}

#[test]
fn as_redis_answers() {
    let mut compared = 0;
    for recorded in RECORDED.lines() {
        let (protocol, rest) = recorded.split_once(' ').unwrap();
        let (command_line, want) = rest.split_once(" => ").unwrap();
        let protocol = if protocol == "3" { Protocol::Resp3 } else { Protocol::Resp2 };
        let mut got = answer(protocol, command_line);
        let newer_docs = command_line.strip_prefix("COMMAND DOCS ").is_some_and(|n| WITH_NEWER_OPTIONS.contains(&n));
        let newer_rows =
            command_line.strip_prefix("COMMAND INFO ").is_some_and(|n| WITH_NEWER_SUBCOMMANDS.contains(&n));
        if newer_docs || newer_rows {
            assert!(got != want, "{command_line}: as recorded, so not newer");
            continue;
        }
        if command_line.starts_with("COMMAND LIST") && got.starts_with('[') {
            let mut names: Vec<&str> = got[1..got.len() - 1].split(' ').collect();
            names.sort_unstable();
            got = format!("[{}]", names.join(" "));
        }
        if matches!(command_line, "COMMAND INFO xread" | "COMMAND INFO xreadgroup") {
            // Deliberately as Redis 8.10: see the rows.
            assert!(got.contains(" +incomplete"), "{got}");
            got = got.replace(" +incomplete", "");
        }
        assert_eq!(got, want, "{command_line} in {protocol:?}");
        compared += 1;
    }
    assert!(compared > 350, "{compared}");
}

#[test]
fn every_row_was_compared() {
    for spec in table::all_with_subcommands() {
        let recorded = RECORDED.contains(&format!("3 COMMAND INFO {} =>", spec.name));
        let newer = NEWER.contains(&spec.name) || spec.name.starts_with("xwork");
        assert_ne!(recorded, newer, "{}", spec.name);
    }
}

#[test]
fn all_of_the_table() {
    let rows = answer(Protocol::Resp3, "COMMAND");
    assert_eq!(rows, answer(Protocol::Resp3, "COMMAND INFO"));
    assert!(rows.contains("'xgroup|create' -5"));
    assert_eq!(answer(Protocol::Resp2, "COMMAND COUNT"), table::COMMANDS.to_string());
    let list = answer(Protocol::Resp2, "COMMAND LIST");
    assert_eq!(list.split(' ').count(), table::all_with_subcommands().count());
    assert!(run(Protocol::Resp3, "COMMAND DOCS").starts_with(format!("%{}\r\n", table::COMMANDS).as_bytes()));
    let docs = answer(Protocol::Resp3, "COMMAND DOCS");
    assert_eq!(docs.matches("'group':").count(), table::all_with_subcommands().count());
}

/// Redis 8.2 answers these two otherwise, since it looks for the first STREAMS; 8.10 answers as we do.
#[test]
fn keys_as_the_parser_finds_them() {
    let cases = [
        ("XREADGROUP GROUP STREAMS STREAMS COUNT 1 STREAMS q z > >", "['q' 'z']"),
        ("XREADGROUP GROUP STREAMS a COUNT 1 STREAMS b >", "['b']"),
        ("XREADGROUP count 1 maxcount 2 MAXSIZE 3 CLAIM 5 block 0 noack group g c streams STREAMS >", "['STREAMS']"),
        ("XREAD COUNT STREAMS STREAMS a 0", "['a']"),
        ("XREAD STREAMS a 0 b", "-ERR Invalid arguments specified for command"),
        ("XREADGROUP FOO g c STREAMS q >", "-ERR Invalid arguments specified for command"),
        ("XREADGROUP GROUP STREAMS STREAMS COUNT 1 BLOCK", "-ERR Invalid arguments specified for command"),
    ];
    for (command_line, want) in cases {
        assert_eq!(answer(Protocol::Resp2, &format!("COMMAND GETKEYS {command_line}")), want, "{command_line}");
    }
}

#[test]
fn positions_never_leave_the_arguments() {
    for spec in table::all_with_subcommands() {
        for len in 1..12 {
            let owned = OwnedArgs::new(std::iter::repeat_n("streams", len));
            let keys = keys_of(spec, owned.args());
            assert!(keys.iter().all(|&key| (1..len).contains(&key)), "{} {len}: {keys:?}", spec.name);
        }
    }
}

#[test]
fn help_lists_the_subcommands() {
    let mut out = Vec::new();
    help(table::lookup(b"slowlog").unwrap(), &mut Reply { out: &mut out, protocol: Protocol::Resp2 });
    let text = String::from_utf8(out).unwrap();
    let lines: Vec<&str> = text.split("\r\n").collect();
    assert_eq!(lines[0], "*9");
    assert_eq!(lines[1], "+SLOWLOG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
    assert_eq!(lines[2], "+GET [<count>]");
    assert_eq!(&lines[8..], ["+HELP", "+    Shows the subcommands.", ""]);

    // Those of the stream commands are recorded: the golden cases hold them.
    let mut out = Vec::new();
    help(table::lookup(b"xgroup").unwrap(), &mut Reply { out: &mut out, protocol: Protocol::Resp2 });
    assert!(out.starts_with(b"*17\r\n+XGROUP <subcommand>"));

    let mut out = Vec::new();
    help(table::lookup(b"command").unwrap(), &mut Reply { out: &mut out, protocol: Protocol::Resp3 });
    assert!(String::from_utf8(out).unwrap().contains("are:\r\n+(no subcommand)\r\n+    Describes"));
}

#[test]
fn syntax_as_in_manuals() {
    let set = table::lookup(b"set").unwrap();
    let text = set.arguments.iter().map(syntax).collect::<Vec<_>>().join(" ");
    assert_eq!(
        text,
        "<key> <value> [NX | XX] [GET] [EX <seconds> | PX <milliseconds> | EXAT <unix-time-seconds> | \
         PXAT <unix-time-milliseconds> | KEEPTTL]"
    );
}
