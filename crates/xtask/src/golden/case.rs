//! The golden case files, read and checked as a whole before anything runs.
//!
//! Format: `tests/golden/README.md`. A key or form that is not known here is an error, never passed over: a misspelt
//! expectation would otherwise pass for ever.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value as Json};

use super::expect::{Expectation, Protocol, repeated, unhex};
use super::glob;

/// Where the expected replies come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A real server said so.
    Recorded,
    /// Written by hand after documentation.
    Spec,
}

/// One case file.
#[derive(Debug)]
pub struct File {
    /// Its name within the folder, with `.json`.
    pub name: String,
    /// Where its replies come from.
    pub source: Source,
    /// In the order of the file.
    pub cases: Vec<Case>,
}

/// One case: steps on fresh connections against an empty server.
#[derive(Debug)]
pub struct Case {
    /// Unique over all files.
    pub name: String,
    /// What it is after.
    pub about: String,
    /// Facilities beyond the core (`needs`) and `tags`, the words that leave it out on request.
    pub words: Vec<String>,
    /// How sure we are of a hand-written case.
    pub mark: Option<String>,
    /// The protocols in which it is played.
    pub protocols: Vec<Protocol>,
    /// In order.
    pub steps: Vec<Step>,
}

/// One argument of a command.
#[derive(Debug)]
pub enum Argument {
    /// These bytes.
    Bytes(Vec<u8>),
    /// Text with `${name}` references to saved replies.
    Template(String),
}

/// What a step sends, if anything.
#[derive(Debug)]
pub enum Sent {
    /// Nothing: the step looks at what an earlier one brought about.
    Nothing,
    /// A command.
    Command(Vec<Argument>),
    /// Bytes as they are.
    Raw(Vec<u8>),
}

/// What a step then waits for.
#[derive(Debug)]
pub enum Outcome {
    /// A reply: in RESP2 and in RESP3.
    Reply {
        /// Which expectation holds in RESP2, and how it was written.
        two: Option<(Expectation, Json)>,
        /// The same for RESP3; `None` where one holds in both.
        three: Option<(Expectation, Json)>,
        /// When the reply may come, after the command was sent.
        took_ms: Option<(u64, u64)>,
        /// The name under which to keep it.
        save: Option<String>,
        /// Compare as this protocol whatever the connection began with.
        compare_as: Option<Protocol>,
    },
    /// No reply for a while.
    Silence,
    /// The server hangs up.
    Closed,
    /// Do not look.
    Nothing,
}

/// One step.
#[derive(Debug)]
pub enum Step {
    /// Wait.
    Sleep(Duration),
    /// Close the connection of that name ourselves.
    Close(String),
    /// Send and look.
    Talk {
        /// The connection's name.
        connection: String,
        /// What goes out.
        sent: Sent,
        /// What must happen.
        outcome: Box<Outcome>,
        /// The mark of this step alone.
        mark: Option<String>,
        /// The step as it is shown in messages.
        shown: String,
    },
}

impl Step {
    /// The expectation for a protocol, with its JSON for messages.
    pub fn want(outcome: &Outcome, protocol: Protocol) -> Option<&(Expectation, Json)> {
        match (outcome, protocol) {
            (Outcome::Reply { two, .. }, Protocol::Two) => two.as_ref(),
            (Outcome::Reply { two, three, .. }, Protocol::Three) => three.as_ref().or(two.as_ref()),
            _ => None,
        }
    }
}

/// Reads every `*.json` of a folder that fits one of the patterns (all, if there are none), in order of name.
///
/// # Errors
/// A sentence with file, case and step for the first thing that is not understood, or when nothing is chosen.
pub fn load(folder: &Path, patterns: &[String]) -> Result<Vec<File>, String> {
    let listing = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut names: Vec<String> = listing
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".json"))
        .filter(|name| patterns.is_empty() || patterns.iter().any(|p| is_chosen(p, name)))
        .collect();
    names.sort();
    if names.is_empty() {
        return Err("no case file matches".into());
    }
    names.iter().map(|name| load_file(&folder.join(name), name).map_err(|e| format!("{name}: {e}"))).collect()
}

fn is_chosen(pattern: &str, name: &str) -> bool {
    let base = Path::new(pattern).file_name().is_some_and(|base| base == name);
    base || glob::fits(pattern, name) || glob::fits(&format!("{pattern}.json"), name)
}

fn load_file(path: &Path, name: &str) -> Result<File, String> {
    let text = fs::read_to_string(path).map_err(|e| e.to_string())?;
    let json: Json = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    parse_file(&json, name)
}

fn parse_file(json: &Json, name: &str) -> Result<File, String> {
    let object = keys(json, &["area", "title", "source", "since", "cases"])?;
    let source = match text_of(object, "source")?.as_deref() {
        Some("spec") => Source::Spec,
        Some(_) => Source::Recorded,
        None => return Err("no source".into()),
    };
    let cases = object.get("cases").and_then(Json::as_array).ok_or("no cases")?;
    let cases = cases.iter().map(parse_case).collect::<Result<_, _>>()?;
    Ok(File { name: name.to_owned(), source, cases })
}

fn parse_case(json: &Json) -> Result<Case, String> {
    let object = keys(json, &["name", "about", "needs", "tags", "protos", "mark", "since", "steps", "differs"])?;
    let name = text_of(object, "name")?.ok_or("a case without a name")?;
    let inside = |e: String| format!("{name}: {e}");
    let mut words = texts_of(object, "needs").map_err(inside)?;
    words.extend(texts_of(object, "tags").map_err(inside)?);
    let protocols = match object.get("protos") {
        None => vec![Protocol::Two, Protocol::Three],
        Some(list) => list
            .as_array()
            .and_then(|list| list.iter().map(|p| Protocol::from_number(p.as_u64()?)).collect())
            .ok_or_else(|| inside(format!("bad protos {list}")))?,
    };
    let steps = object.get("steps").and_then(Json::as_array).filter(|s| !s.is_empty());
    let mut parsed = Vec::new();
    for (index, step) in steps.ok_or_else(|| inside("no steps".into()))?.iter().enumerate() {
        parsed.push(parse_step(step, &protocols).map_err(|e| inside(format!("step {index}: {e}")))?);
    }
    Ok(Case {
        about: text_of(object, "about").map_err(inside)?.unwrap_or_default(),
        mark: text_of(object, "mark").map_err(inside)?,
        words,
        protocols,
        steps: parsed,
        name,
    })
}

const STEP_KEYS: [&str; 15] = [
    "c", "raw", "conn", "r", "r2", "r3", "blocks", "silent", "async", "took_ms", "closed", "close", "sleep_ms", "save",
    "as",
];

fn parse_step(json: &Json, protocols: &[Protocol]) -> Result<Step, String> {
    let mut allowed = STEP_KEYS.to_vec();
    allowed.push("mark");
    let object = keys(json, &allowed)?;
    if let Some(ms) = object.get("sleep_ms") {
        return Ok(Step::Sleep(Duration::from_millis(ms.as_u64().ok_or("bad sleep_ms")?)));
    }
    let connection = text_of(object, "conn")?.unwrap_or_else(|| "main".into());
    if object.contains_key("close") {
        return Ok(Step::Close(connection));
    }
    let sent = match (object.get("c"), object.get("raw")) {
        (None, None) => Sent::Nothing,
        (Some(command), None) => {
            let arguments = command.as_array().filter(|c| !c.is_empty()).ok_or("an empty command")?;
            Sent::Command(arguments.iter().map(parse_argument).collect::<Result<_, _>>()?)
        }
        (None, Some(raw)) => {
            let raw = raw.as_str().ok_or("raw must be text")?;
            Sent::Raw(
                raw.chars().map(|c| u8::try_from(u32::from(c))).collect::<Result<_, _>>().map_err(|e| e.to_string())?,
            )
        }
        (Some(_), Some(_)) => return Err("c and raw exclude each other".into()),
    };
    let flag = |key: &str| object.get(key).is_some_and(|v| v.as_bool() != Some(false));
    let outcome = if flag("blocks") || flag("silent") {
        Outcome::Silence
    } else if flag("closed") {
        Outcome::Closed
    } else if flag("async") {
        Outcome::Nothing
    } else {
        parse_reply(object, protocols)?
    };
    let shown = format!("{connection}> {}", shown_command(object));
    Ok(Step::Talk { connection, sent, outcome: Box::new(outcome), mark: text_of(object, "mark")?, shown })
}

fn parse_reply(object: &Map<String, Json>, protocols: &[Protocol]) -> Result<Outcome, String> {
    let compiled = |key: &str| match object.get(key) {
        None => Ok(None),
        Some(json) => Expectation::parse(json).map(|e| Some((e, json.clone()))),
    };
    let (two, three) = match compiled("r")? {
        Some(both) => {
            let three = compiled("r3")?;
            (compiled("r2")?.or(Some(both)), three)
        }
        None => (compiled("r2")?, compiled("r3")?),
    };
    let compare_as = match object.get("as") {
        None => None,
        Some(number) => Some(number.as_u64().and_then(Protocol::from_number).ok_or("bad as")?),
    };
    let covers = |p: &Protocol| {
        two.is_some() && (*p == Protocol::Two || object.contains_key("r")) || three.is_some() && *p == Protocol::Three
    };
    if !protocols.iter().all(covers) {
        return Err("no expected reply for one of the protocols".into());
    }
    let took_ms = match object.get("took_ms").map(|t| t.as_array().map(Vec::as_slice)) {
        None => None,
        Some(Some([from, to])) => Some((from.as_u64().ok_or("bad took_ms")?, to.as_u64().ok_or("bad took_ms")?)),
        Some(_) => return Err("bad took_ms".into()),
    };
    Ok(Outcome::Reply { two, three, took_ms, save: text_of(object, "save")?, compare_as })
}

fn parse_argument(json: &Json) -> Result<Argument, String> {
    match json {
        Json::Number(n) => Ok(Argument::Bytes(n.to_string().into_bytes())),
        Json::String(s) if s.contains("${") => Ok(Argument::Template(s.clone())),
        Json::String(s) => Ok(Argument::Bytes(s.as_bytes().to_vec())),
        Json::Object(o) if o.len() == 1 => match o.iter().next() {
            Some((form, Json::String(hex))) if form == "hex" => Ok(Argument::Bytes(unhex(hex)?)),
            Some((form, value)) if form == "repeat" => Ok(Argument::Bytes(repeated(value)?)),
            _ => Err(format!("bad argument {json}")),
        },
        _ => Err(format!("bad argument {json}")),
    }
}

fn shown_command(object: &Map<String, Json>) -> String {
    if let Some(raw) = object.get("raw") {
        return format!("(raw) {raw}");
    }
    let Some(command) = object.get("c").and_then(Json::as_array) else {
        return "(reply of the blocked command)".into();
    };
    let shown = command.iter().map(|argument| match argument {
        Json::String(s) if !s.is_empty() && !s.contains(char::is_whitespace) => s.clone(),
        other => other.to_string(),
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// The object behind a JSON value, which may have no other keys than these.
fn keys<'a>(json: &'a Json, allowed: &[&str]) -> Result<&'a Map<String, Json>, String> {
    let object = json.as_object().ok_or_else(|| format!("{json} is not an object"))?;
    match object.keys().find(|key| !allowed.contains(&key.as_str())) {
        Some(key) => Err(format!("unknown key {key}")),
        None => Ok(object),
    }
}

fn text_of(object: &Map<String, Json>, key: &str) -> Result<Option<String>, String> {
    match object.get(key) {
        None => Ok(None),
        Some(Json::String(s)) => Ok(Some(s.clone())),
        Some(other) => Err(format!("{key} must be text, not {other}")),
    }
}

fn texts_of(object: &Map<String, Json>, key: &str) -> Result<Vec<String>, String> {
    match object.get(key) {
        None => Ok(Vec::new()),
        Some(list) => list
            .as_array()
            .and_then(|list| list.iter().map(|w| w.as_str().map(str::to_owned)).collect())
            .ok_or_else(|| format!("{key} must be a list of words")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn case(steps: Json) -> Result<Case, String> {
        parse_case(&json!({"name": "n", "about": "a", "steps": steps}))
    }

    #[test]
    fn every_case_file_is_understood() {
        let files = load(&super::super::folder(), &[]).expect("the case files");
        let count = |source| files.iter().filter(|f| f.source == source).map(|f| f.cases.len()).sum::<usize>();
        assert_eq!((count(Source::Recorded), count(Source::Spec)), (343, 132), "as tests/golden/README.md says");
        let mut names: Vec<&str> = files.iter().flat_map(|f| &f.cases).map(|c| c.name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names.windows(2).find(|w| w[0] == w[1]), None, "names are unique");
    }

    #[test]
    fn mistakes_are_errors() {
        for steps in [
            json!([]),
            json!([{"c": ["PING"]}]),
            json!([{"c": ["PING"], "r2": 1}]),
            json!([{"c": [], "r": 1}]),
            json!([{"c": ["PING"], "r": 1, "expect": 1}]),
            json!([{"c": ["PING"], "raw": "PING", "r": 1}]),
            json!([{"c": [{"hex": "0"}], "r": 1}]),
            json!([{"c": [true], "r": 1}]),
            json!([{"c": ["PING"], "r": {"nosuch": 1}}]),
            json!([{"c": ["PING"], "r": 1, "took_ms": 5}]),
        ] {
            assert!(case(steps.clone()).is_err(), "{steps}");
        }
        assert!(case(json!([{"c": ["PING", 1, {"repeat": ["a", 2]}], "r": 1}])).is_ok());
    }

    #[test]
    fn files_are_chosen_by_stem_name_or_path() {
        for pattern in ["xadd", "xadd.json", "tests/golden/xadd.json", "x*d"] {
            assert!(is_chosen(pattern, "xadd.json"), "{pattern}");
        }
        assert!(!is_chosen("xack", "xadd.json"));
    }
}
