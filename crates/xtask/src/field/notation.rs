//! The notation of replies in field cases: what a script line wants, whether a reply fits, and a reply spelled in it.
//!
//! The head of `tests/field/cases.md` explains the notation to readers; the two must say the same.

use crate::resp::{Nil, Value, printable};

/// An expected reply, as written and as understood.
#[derive(Debug)]
pub struct Want {
    /// As the script spells it.
    pub text: String,
    tree: Tree,
}

#[derive(Debug, PartialEq)]
enum Tree {
    Any,
    Nil,
    Error(String),
    Bulk(String),
    Status(String),
    Int(i64),
    Range(Bound, i64),
    Array(Vec<Tree>),
    Map(Vec<(Tree, Tree)>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Bound {
    Below,
    AtMost,
    Above,
    AtLeast,
}

impl Want {
    /// Reads the notation.
    ///
    /// # Errors
    /// A sentence naming what is not understood.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let tree = match text.strip_prefix('!') {
            Some("") => return Err("an error without a code".into()),
            Some(error) => Tree::Error(error.to_owned()),
            None => {
                let mut rest = text;
                let tree = parse_tree(&mut rest)?;
                if !rest.trim().is_empty() {
                    return Err(format!("not understood: {rest}"));
                }
                tree
            }
        };
        Ok(Want { text: text.to_owned(), tree })
    }

    /// Whether the reply fits on a connection that speaks RESP `version`.
    pub fn fits(&self, got: &Value, version: u8) -> bool {
        fits(&self.tree, got, version)
    }
}

/// Takes `sign` from the front of `rest`, past white space.
fn take(rest: &mut &str, sign: char) -> bool {
    match rest.trim_start().strip_prefix(sign) {
        Some(after) => {
            *rest = after;
            true
        }
        None => false,
    }
}

fn parse_tree(rest: &mut &str) -> Result<Tree, String> {
    if take(rest, '*') {
        return Ok(Tree::Any);
    }
    if take(rest, '[') {
        return Ok(Tree::Array(parse_items(rest, ']', parse_tree)?));
    }
    if take(rest, '{') {
        return Ok(Tree::Map(parse_items(rest, '}', |rest| {
            let key = parse_tree(rest)?;
            if !take(rest, ':') {
                return Err("a map key without a value".into());
            }
            Ok((key, parse_tree(rest)?))
        })?));
    }
    *rest = rest.trim_start();
    if rest.starts_with('"') {
        return take_string(rest).map(Tree::Bulk);
    }
    for (sign, bound) in [("<=", Bound::AtMost), (">=", Bound::AtLeast), ("<", Bound::Below), (">", Bound::Above)] {
        if let Some(after) = rest.strip_prefix(sign) {
            *rest = after;
            return Ok(Tree::Range(bound, take_integer(rest)?));
        }
    }
    if rest.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
        return take_integer(rest).map(Tree::Int);
    }
    let end = rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-'))).unwrap_or(rest.len());
    if !rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Err(format!("not understood: {rest}"));
    }
    let (word, after) = rest.split_at(end);
    *rest = after;
    Ok(if word == "nil" { Tree::Nil } else { Tree::Status(word.to_owned()) })
}

/// The items up to `close`, separated by commas.
fn parse_items<T>(
    rest: &mut &str,
    close: char,
    item: impl Fn(&mut &str) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let mut items = Vec::new();
    if take(rest, close) {
        return Ok(items);
    }
    loop {
        items.push(item(rest)?);
        if take(rest, close) {
            return Ok(items);
        }
        if !take(rest, ',') {
            return Err(format!("{close} is missing"));
        }
    }
}

fn take_integer(rest: &mut &str) -> Result<i64, String> {
    let digits = rest.strip_prefix('-').unwrap_or(rest);
    let length = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len()) + rest.len() - digits.len();
    let (number, after) = rest.split_at(length);
    *rest = after;
    number.parse().map_err(|_| format!("not a number: {number:?}"))
}

/// Takes a string in double quotes, with the escapes of JSON.
///
/// # Errors
/// When it never ends, or an escape is unknown.
pub fn take_string(rest: &mut &str) -> Result<String, String> {
    let mut escaped = false;
    let end = rest.char_indices().skip(1).find(|(_, c)| {
        let ends = *c == '"' && !escaped;
        escaped = *c == '\\' && !escaped;
        ends
    });
    let (end, _) = end.ok_or_else(|| format!("a string that never ends: {rest}"))?;
    let (string, after) = rest.split_at(end + 1);
    *rest = after;
    serde_json::from_str(string).map_err(|e| format!("{string}: {e}"))
}

fn fits(tree: &Tree, got: &Value, version: u8) -> bool {
    match (tree, got) {
        (Tree::Any, _) => true,
        (Tree::Nil, Value::Nil(nil)) => (*nil == Nil::Null) == (version == 3),
        (Tree::Error(want), Value::Error(got)) => {
            let got = printable(got);
            let code = |text: &str| text.split(' ').next().unwrap_or_default().to_owned();
            // The generic code says nothing by itself: an unknown command has it too.
            if code(want) == "ERR" { got == *want } else { code(&got) == code(want) }
        }
        (Tree::Bulk(want), Value::Bulk(got)) | (Tree::Status(want), Value::Simple(got)) => printable(got) == *want,
        (Tree::Int(want), Value::Int(got)) => got == want,
        (Tree::Range(bound, limit), Value::Int(got)) => match bound {
            Bound::Below => got < limit,
            Bound::AtMost => got <= limit,
            Bound::Above => got > limit,
            Bound::AtLeast => got >= limit,
        },
        (Tree::Array(want), Value::Array(got)) => {
            want.len() == got.len() && want.iter().zip(got).all(|(w, g)| fits(w, g, version))
        }
        (Tree::Map(want), Value::Map(got)) => {
            want.len() == got.len()
                && want.iter().zip(got).all(|((wk, wv), (gk, gv))| fits(wk, gk, version) && fits(wv, gv, version))
        }
        _ => false,
    }
}

/// A reply in the notation; a null of the other protocol shows how it was spelled.
pub fn show(reply: &Value, version: u8) -> String {
    let list = |items: &[Value]| items.iter().map(|item| show(item, version)).collect::<Vec<_>>().join(", ");
    match reply {
        Value::Error(text) => format!("!{}", printable(text)),
        Value::Nil(nil) if (*nil == Nil::Null) == (version == 3) => "nil".into(),
        Value::Nil(Nil::Bulk) => "nil ($-1)".into(),
        Value::Nil(Nil::Array) => "nil (*-1)".into(),
        Value::Nil(Nil::Null) => "nil (_)".into(),
        Value::Simple(text) => printable(text),
        Value::Bulk(text) => serde_json::Value::String(printable(text)).to_string(),
        Value::Int(n) => n.to_string(),
        Value::Array(items) => format!("[{}]", list(items)),
        Value::Map(pairs) => {
            let pairs = pairs.iter().map(|(k, v)| format!("{}: {}", show(k, version), show(v, version)));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
        }
        Value::Set(items) => format!("~[{}]", list(items)),
        Value::Push(items) => format!(">[{}]", list(items)),
        Value::Double(text) => format!(",{}", printable(text)),
        Value::Big(text) => format!("({}", printable(text)),
        Value::Verbatim(text) => printable(text),
        Value::Bool(yes) => if *yes { "#t" } else { "#f" }.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::decode;

    fn check(want: &str, version: u8, takes: &[&str], refuses: &[&str]) {
        let want = Want::parse(want).expect("an expectation");
        let reply = |bytes: &&str| decode(bytes.as_bytes()).expect("RESP").expect("whole").0;
        for got in takes {
            assert!(want.fits(&reply(got), version), "{} takes {got:?} in RESP{version}", want.text);
        }
        for got in refuses {
            assert!(!want.fits(&reply(got), version), "{} refuses {got:?} in RESP{version}", want.text);
        }
    }

    #[test]
    fn what_fits_and_what_does_not() {
        check("*", 2, &[":1\r\n", "-ERR\r\n"], &[]);
        check("\"a\\n\"", 2, &["$2\r\na\n\r\n"], &["$1\r\na\r\n", "+a\n\r\n"]);
        check("OK", 2, &["+OK\r\n"], &["$2\r\nOK\r\n", "+QUEUED\r\n"]);
        check("-3", 2, &[":-3\r\n"], &[":3\r\n", "$2\r\n-3\r\n"]);
        check("<3", 2, &[":2\r\n"], &[":3\r\n", "$1\r\n2\r\n"]);
        check("<=3", 2, &[":3\r\n"], &[":4\r\n"]);
        check(">3", 2, &[":4\r\n"], &[":3\r\n"]);
        check(">=-3", 2, &[":-3\r\n"], &[":-4\r\n"]);
        check("nil", 2, &["$-1\r\n", "*-1\r\n"], &["_\r\n", "*0\r\n", "$0\r\n\r\n"]);
        check("nil", 3, &["_\r\n"], &["$-1\r\n", "*-1\r\n"]);
        check("!NOGROUP whatever", 2, &["-NOGROUP no\r\n"], &["-NOGROUPS no\r\n", "+NOGROUP no\r\n"]);
        check("!ERR exactly this", 2, &["-ERR exactly this\r\n"], &["-ERR exactly that\r\n", "-ERR\r\n"]);
        check(
            "[1, [\"a\", nil]]",
            2,
            &["*2\r\n:1\r\n*2\r\n$1\r\na\r\n$-1\r\n"],
            &["*1\r\n:1\r\n", "~2\r\n:1\r\n:1\r\n"],
        );
        check("[]", 2, &["*0\r\n"], &["*-1\r\n", "*1\r\n:1\r\n"]);
        check(
            "{\"a\": 1, \"b\": *}",
            3,
            &["%2\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n:9\r\n"],
            &["%2\r\n$1\r\nb\r\n:9\r\n$1\r\na\r\n:1\r\n", "%1\r\n$1\r\na\r\n:1\r\n"],
        );
    }

    #[test]
    fn mistakes_are_errors() {
        for text in ["!", "", "[1", "[1 2]", "{1}", "{1: 2", "\"a", "OK OK", "<x", "?", "[1,]"] {
            assert!(Want::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shown_as_scripts_spell_it() {
        for (bytes, version, shown) in [
            ("*3\r\n:1\r\n$2\r\na\"\r\n$-1\r\n", 2, "[1, \"a\\\"\", nil]"),
            ("%1\r\n$1\r\na\r\n_\r\n", 3, "{\"a\": nil}"),
            ("*-1\r\n", 3, "nil (*-1)"),
            ("_\r\n", 2, "nil (_)"),
            ("-ERR x\r\n", 2, "!ERR x"),
            ("+OK\r\n", 2, "OK"),
        ] {
            let reply = decode(bytes.as_bytes()).expect("RESP").expect("whole").0;
            assert_eq!(show(&reply, version), shown);
        }
    }
}
