//! Which of several mistakes in a stream command is told, as Redis 8.2.3 does.

use super::World;

const SYNTAX: &str = "-ERR syntax error|";
const INVALID_ID: &str = "-ERR Invalid stream ID specified as stream command argument|";
const LIMIT_ALONE: &str = "-ERR syntax error, LIMIT cannot be used without specifying a trimming strategy|";

#[test]
fn xadd_tells_a_bad_id_first_and_missing_fields_last() {
    World::new().talk(&[
        ("XADD s LIMIT 5 bad f v", INVALID_ID),
        ("XADD s LIMIT 5 1-1 f v", LIMIT_ALONE),
        ("XADD s LIMIT 5 1-1 f", LIMIT_ALONE),
        ("XADD s LIMIT 5 NOMKSTREAM NOMKSTREAM", LIMIT_ALONE),
        ("XADD s NOMKSTREAM NOMKSTREAM NOMKSTREAM", "-ERR wrong number of arguments for 'xadd' command|"),
    ]);
}

#[test]
fn limit_zero_is_almost_none() {
    let without = "-ERR syntax error, XTRIM must be called with a trimming strategy|";
    let exact = "-ERR syntax error, LIMIT cannot be used without the special ~ option|";
    World::new().talk(&[
        ("XTRIM s LIMIT 0", without),
        ("XTRIM s LIMIT 5 LIMIT 0", without),
        ("XTRIM s LIMIT 5", LIMIT_ALONE),
        ("XTRIM s MAXLEN 5 LIMIT 0", exact),
        ("XADD s LIMIT 0 1-1 f v", exact),
    ]);
}

#[test]
fn xpending_has_nine_words_at_most() {
    World::new().talk(&[
        ("XGROUP CREATE s g 0 MKSTREAM", "+OK|"),
        ("XPENDING s g - + 1 c IDLE x", "*0|"),
        ("XPENDING s g - + 1 c IDLE x y", SYNTAX),
        ("XPENDING s g x + 1 c IDLE x y", SYNTAX),
    ]);
}

#[test]
fn options_of_xgroup_may_repeat_within_its_length() {
    let misused =
        |name| format!("-ERR unknown subcommand or wrong number of arguments for '{name}'. Try XGROUP HELP.|");
    let (create, setid) = (misused("CREATE"), misused("SETID"));
    World::new().talk(&[
        ("XADD s 1-1 f v", "$3|1-1|"),
        ("XGROUP CREATE s g 0 ENTRIESREAD 1 ENTRIESREAD x", "-ERR value is not an integer or out of range|"),
        ("XGROUP CREATE s g bad ENTRIESREAD 1 ENTRIESREAD 1", &create),
        ("XGROUP CREATE s g bad MKSTREAM MKSTREAM ENTRIESREAD 1", &create),
        ("XGROUP CREATE s g 0 MKSTREAM MKSTREAM", "+OK|"),
        ("XGROUP SETID s g bad ENTRIESREAD 1 ENTRIESREAD 1", &setid),
        ("XGROUP SETID s h bad ENTRIESREAD 1 ENTRIESREAD 1", "-NOGROUP No such consumer group 'h' for key name 's'|"),
    ]);
}
