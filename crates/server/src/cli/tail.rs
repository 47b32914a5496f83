//! `impel tail STREAM`: shows the entries of a stream as they come.

use std::io::{self, Write};
use std::process::ExitCode;

use serde_json::Value;

use super::options::{Word, Words, connect, read};
use super::{FAILED, understood};
use crate::client::entry::{Entry, of_read};
use crate::client::{Connection, Reply, address};

const NAME: &str = "tail";

const HELP: &str = "\
Usage: impel tail STREAM [options]

Prints the entries of a stream, one a line: its ID, then field=value of each field. Waits for new ones until it is ended.

  --from ID            begin behind this ID; 0 is the beginning, $ (default) what comes from now on
  --group G            show instead how far the group is: whose each pending entry is, then the group's position, and end
  --count N            end after so many entries
  --no-wait            end at the end of the stream
  --json               one object of JSON a line
";

/// Entries asked for at once.
const PAGE: &str = "500";

/// How long one question waits, in milliseconds.
const BLOCK_MS: u64 = 5000;

struct Arguments {
    stream: String,
    from: String,
    group: Option<String>,
    count: Option<u64>,
    waits: bool,
    json: bool,
}

/// Runs it.
pub fn run(words: &[Vec<u8>]) -> ExitCode {
    let help = &format!("{HELP}{}\nExit codes: 0 ended; 2 the server; 64 the command line is wrong.\n", address::HELP);
    let (arguments, words) = match understood(NAME, help, read(words, parse)) {
        Ok(understood) => understood,
        Err(code) => return code,
    };
    let (address, timeout) = (words.address.clone(), words.timeout);
    let done = connect(&address, timeout).and_then(|mut connection| match &arguments.group {
        Some(group) => show_group(&mut connection, &arguments, group),
        None => follow(&mut connection, &arguments).map_err(|what| format!("{address}: {what}")),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("impel tail: {what}");
            ExitCode::from(FAILED)
        }
    }
}

fn parse(words: &mut Words<'_>) -> Result<Option<Arguments>, String> {
    let mut arguments =
        Arguments { stream: String::new(), from: "$".into(), group: None, count: None, waits: true, json: false };
    while let Some(word) = words.next()? {
        match word {
            Word::Plain(word) if arguments.stream.is_empty() => {
                arguments.stream = String::from_utf8(word.to_vec()).map_err(|_| "a stream whose name is not UTF-8")?;
            }
            Word::Plain(word) => return Err(format!("{} is one word too many", word.escape_ascii())),
            Word::Option(name) => match &name[..] {
                "--help" | "-h" => return Ok(None),
                "--from" => arguments.from = words.value(&name)?,
                "--group" => arguments.group = Some(words.value(&name)?),
                "--count" => arguments.count = Some(words.number(&name)?),
                "--no-wait" => arguments.waits = false,
                "--json" => arguments.json = true,
                _ => return Err(format!("there is no option {name}")),
            },
        }
    }
    if arguments.stream.is_empty() {
        return Err("a stream is wanted".into());
    }
    Ok(Some(arguments))
}

/// Prints a line; `false` when nobody reads it any more.
fn show(line: &str) -> bool {
    let mut out = io::stdout().lock();
    out.write_all(line.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()).is_ok()
}

fn line(entry: &Entry, json: bool) -> String {
    if json {
        return Value::Object(entry.json()).to_string();
    }
    let mut line = entry.id.clone();
    for (name, value) in entry.fields.iter().flatten() {
        line.push_str(&format!(" {}={}", name.escape_ascii(), printable(value)));
    }
    line
}

/// Text as it is, what would disturb a line as escapes.
fn printable(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(char::is_control) => text.to_owned(),
        _ => bytes.escape_ascii().to_string(),
    }
}

fn follow(connection: &mut Connection, arguments: &Arguments) -> Result<(), String> {
    let mut from = arguments.from.clone();
    let mut left = arguments.count.unwrap_or(u64::MAX);
    if from == "$" {
        // As an ID, so that nothing is missed between two questions.
        let last =
            connection.ask(&["XREVRANGE", &arguments.stream, "+", "-", "COUNT", "1"]).map_err(|f| f.to_string())?;
        if let Some(text) = last.error() {
            return Err(text);
        }
        from = last.items().first().and_then(Entry::read).map_or("0-0".into(), |entry| entry.id);
    }
    while left > 0 {
        let block = BLOCK_MS.to_string();
        let mut words = vec!["XREAD", "COUNT", PAGE];
        if arguments.waits {
            words.extend(["BLOCK", &block]);
        }
        words.extend(["STREAMS", &arguments.stream, &from]);
        let reply = connection.ask_waiting(&words, BLOCK_MS).map_err(|failure| failure.to_string())?;
        if let Some(text) = reply.error() {
            return Err(text);
        }
        let entries = of_read(&reply);
        if entries.is_empty() && !arguments.waits {
            return Ok(());
        }
        for entry in &entries {
            if left == 0 || !show(&line(entry, arguments.json)) {
                return Ok(());
            }
            left -= 1;
        }
        if let Some(last) = entries.last() {
            from = last.id.clone();
        }
    }
    Ok(())
}

fn show_group(connection: &mut Connection, arguments: &Arguments, group: &str) -> Result<(), String> {
    let mut from = "-".to_owned();
    let mut left = arguments.count.unwrap_or(u64::MAX);
    loop {
        let words = ["XPENDING", &arguments.stream, group, &from, "+", PAGE];
        let reply = connection.ask(&words).map_err(|failure| failure.to_string())?;
        if let Some(text) = reply.error() {
            return Err(text);
        }
        for row in reply.items() {
            let [id, owner, idle_ms, deliveries] = row.items() else {
                return Err("a strange reply of XPENDING".into());
            };
            if left == 0 {
                return Ok(());
            }
            left -= 1;
            from = format!("({}", id.text());
            let shown = match arguments.json {
                true => serde_json::json!({
                    "id": id.text(), "owner": owner.text(), "idle_ms": idle_ms.int(), "deliveries": deliveries.int(),
                })
                .to_string(),
                false => format!(
                    "{} owner={} idle_ms={} deliveries={}",
                    id.text(),
                    printable(owner.bytes().unwrap_or_default()),
                    idle_ms.text(),
                    deliveries.text()
                ),
            };
            if !show(&shown) {
                return Ok(());
            }
        }
        if reply.items().is_empty() {
            break;
        }
    }
    let groups = connection.ask(&["XINFO", "GROUPS", &arguments.stream]).map_err(|failure| failure.to_string())?;
    let found = groups.items().iter().find(|one| one.get("name").map(Reply::text).as_deref() == Some(group));
    let found = found.ok_or("there is no such group")?;
    let of = |name: &str| found.get(name).map_or_else(String::new, Reply::text);
    if !arguments.json {
        show(&format!("group {group} at {} pending={} lag={}", of("last-delivered-id"), of("pending"), of("lag")));
    }
    Ok(())
}
