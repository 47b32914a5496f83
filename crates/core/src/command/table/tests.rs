//! The table by itself: names, look-up, arity, and the refusals as Redis 8.2.3 words them.

use super::*;
use crate::command::args::OwnedArgs;

fn refusal(arguments: &[&str]) -> String {
    let owned = OwnedArgs::new(arguments);
    let refusal = resolve(owned.args()).expect_err("no row fits");
    String::from_utf8(refusal.text(owned.args())).unwrap()
}

#[test]
fn every_name_is_found_in_any_case() {
    for spec in all() {
        assert!(std::ptr::eq(lookup(spec.name.as_bytes()).unwrap(), spec));
        assert!(std::ptr::eq(lookup(spec.name.to_ascii_uppercase().as_bytes()).unwrap(), spec));
        assert!(!spec.name.contains('|'));
        for sub in spec.subcommands {
            assert_eq!(sub.name.split_once('|').unwrap(), (spec.name, sub.leaf()));
            assert!(std::ptr::eq(subcommand(spec, sub.leaf().to_ascii_uppercase().as_bytes()).unwrap(), sub));
            assert!(std::ptr::eq(lookup_full(sub.name.as_bytes()).unwrap(), sub));
        }
    }
}

#[test]
fn other_names_are_not() {
    for name in [
        "",
        "x",
        "xaddx",
        "xad",
        "\0",
        "xadd\0",
        "xlen\0\0\0\0\0\0\0\0\0\0\0\0\0",
        "get|x",
        "bgrewriteaofbgrew",
        "xgroup|create",
    ] {
        assert!(lookup(name.as_bytes()).is_none(), "{name:?}");
    }
    // Bytes that differ from letters in the bit of case alone must not pass for them.
    assert!(lookup(b"x\x21dd").is_none() && lookup(b"client").is_some());
    assert!(lookup_full(b"xgroup|create|x").is_none() && lookup_full(b"|").is_none());
}

#[test]
fn ids_belong_to_one_row() {
    let mut seen = std::collections::BTreeMap::new();
    for spec in all_with_subcommands() {
        if spec.id == CommandId::Container {
            assert!(!spec.subcommands.is_empty(), "{}", spec.name);
        } else if let Some(other) = seen.insert(spec.id as u16, spec.name) {
            panic!("{} and {other} share an id", spec.name);
        }
    }
}

#[test]
fn rows_are_complete() {
    for spec in all_with_subcommands() {
        assert!(spec.summary.ends_with('.') && !spec.summary.contains('\n'), "{}", spec.name);
        assert!(!spec.complexity.is_empty() && !spec.group.is_empty(), "{}", spec.name);
        assert_eq!(spec.since.split('.').count(), 3, "{}", spec.name);
        assert_eq!(spec.name, spec.name.to_ascii_lowercase());
        assert!(spec.arity != 0);
        assert!(!(spec.flags.has(Flags::WRITE) && spec.flags.has(Flags::READONLY)), "{}", spec.name);
        assert_ne!(spec.categories.has(Categories::FAST), spec.categories.has(Categories::SLOW), "{}", spec.name);
    }
}

#[test]
fn resolving() {
    let find = |arguments: &[&str]| resolve(OwnedArgs::new(arguments).args()).map(|spec| spec.id);
    assert_eq!(find(&["XADD", "s", "*", "f", "v"]).unwrap(), CommandId::XAdd);
    assert_eq!(find(&["xGroup", "Create", "s", "g", "$"]).unwrap(), CommandId::XGroupCreate);
    assert_eq!(find(&["COMMAND"]).unwrap(), CommandId::Command);
    assert_eq!(find(&["CLIENT", "NO-EVICT", "on"]).unwrap(), CommandId::ClientNoEvict);
}

#[test]
fn refusals() {
    assert_eq!(refusal(&["XADD", "s"]), "ERR wrong number of arguments for 'xadd' command");
    assert_eq!(refusal(&["XLEN", "s", "t"]), "ERR wrong number of arguments for 'xlen' command");
    assert_eq!(refusal(&["XGROUP"]), "ERR wrong number of arguments for 'xgroup' command");
    assert_eq!(refusal(&["XGROUP", "Create", "s"]), "ERR wrong number of arguments for 'xgroup|create' command");
    assert_eq!(refusal(&["xgroup", "No", "a"]), "ERR unknown subcommand 'No'. Try XGROUP HELP.");
    assert_eq!(refusal(&["NoSuch"]), "ERR unknown command 'NoSuch', with args beginning with: ");
    assert_eq!(refusal(&["get|x", "a", ""]), "ERR unknown command 'get|x', with args beginning with: 'a' '' ");
}

#[test]
fn long_names_and_arguments_are_cut() {
    let (n, x, y) = ("n".repeat(200), "x".repeat(100), "y".repeat(100));
    assert_eq!(
        refusal(&[&n, &x, &y, "z"]),
        format!("ERR unknown command '{}', with args beginning with: '{x}' '{}' ", &n[..128], &y[..25])
    );
    assert_eq!(
        refusal(&["no", &"x".repeat(123), "yyyy", "z"]),
        format!("ERR unknown command 'no', with args beginning with: '{}' 'yy' ", "x".repeat(123))
    );
    assert_eq!(refusal(&["XGROUP", &n]), format!("ERR unknown subcommand '{}'. Try XGROUP HELP.", &n[..128]));
    assert_eq!(refusal(&["a\0b", "c\0d"]), "ERR unknown command 'a', with args beginning with: 'c' ");
}

#[test]
fn sets_of_bits() {
    let flags = Flags::of(&[Flags::WRITE, Flags::FAST]);
    assert_eq!((flags.len(), flags.names().collect::<Vec<_>>()), (2, vec!["write", "fast"]));
    assert!(flags.has(Flags::FAST) && !flags.has(Flags::ADMIN) && flags.without(flags).is_empty());
    assert_eq!(Categories::by_name(b"STREAM"), Some(Categories::STREAM));
    assert_eq!(Categories::by_name(b"@stream"), None);
}
