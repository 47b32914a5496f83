//! The evidence of a run as it lies in its folder: the manifest, each request and reply in a file of its own with an index, and
//! the journal of the effects. What is concluded is drawn from here alone, by the run itself as by whoever verifies it.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::effects::{self, Journal, Snapshot};
use super::manifest::Terms;
use super::plan::{self, Ask, Step};
use crate::audit::source::hex;
use crate::audit::{Trouble, write_line};
use crate::client::{Reply, encode, reply};

/// The manifest.
pub const MANIFEST: &str = "manifest.tsv";
/// Its sum.
pub const MANIFEST_SUM: &str = "manifest.sha256";
/// Each request and reply: case, step, command, when, lengths and sums.
pub const INDEX: &str = "traffic.jsonl";
/// The folder with their bytes.
pub const TRAFFIC: &str = "traffic";
/// The folder that handlers write to.
pub const EFFECTS: &str = "effects";
/// What was seen in it.
pub const JOURNAL: &str = "effects.jsonl";

/// Longest reply that is read back, in bytes.
const REPLY_MAX_BYTES: u64 = 1 << 30;

/// The sum of bytes.
pub fn sum(bytes: impl AsRef<[u8]>) -> String {
    hex(Sha256::digest(bytes))
}

/// The file of a request or a reply, within the folder.
pub fn file_of(case: &str, step: &str, what: &str) -> String {
    format!("{TRAFFIC}/{case}-{step}.{what}")
}

/// Writes evidence, each piece when it is known.
pub struct Recorder {
    folder: PathBuf,
    index: File,
    journal: File,
    number: u64,
}

impl Recorder {
    /// Makes the folder and freezes the manifest in it; answers its sum.
    pub fn begin(folder: &Path, terms: &Terms) -> Result<(Recorder, String), Trouble> {
        fs::create_dir(folder).map_err(|error| Trouble(format!("{}: {error}", folder.display())))?;
        let manifest = terms.manifest();
        let sum = sum(&manifest);
        for (name, text) in [(MANIFEST, manifest), (MANIFEST_SUM, format!("{sum}  {MANIFEST}\n"))] {
            let mut file = File::create_new(folder.join(name))?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
        }
        File::open(folder)?.sync_all()?;
        fs::create_dir(folder.join(TRAFFIC))?;
        fs::create_dir(folder.join(EFFECTS))?;
        let file = |name: &str| File::create_new(folder.join(name));
        Ok((Recorder { index: file(INDEX)?, journal: file(JOURNAL)?, folder: folder.into(), number: 0 }, sum))
    }

    /// The folder that handlers write to.
    pub fn effects(&self) -> PathBuf {
        self.folder.join(EFFECTS)
    }

    /// Keeps a request before it is sent.
    pub fn request(&mut self, ask: &Ask) -> Result<(), Trouble> {
        let mut bytes = Vec::new();
        encode(&ask.words, &mut bytes);
        let mut file = File::create_new(self.folder.join(file_of(ask.case, &ask.name, "request")))?;
        Ok(file.write_all(&bytes)?)
    }

    /// Keeps what came: the bytes, and why they are not a whole reply if they are not.
    pub fn reply(&mut self, ask: &Ask, at: &str, raw: &[u8], failure: Option<&str>) -> Result<(), Trouble> {
        let mut file = File::create_new(self.folder.join(file_of(ask.case, &ask.name, "reply")))?;
        file.write_all(raw)?;
        self.number += 1;
        let mut request = Vec::new();
        encode(&ask.words, &mut request);
        let line = json!({
            "number": self.number, "case": ask.case, "step": ask.name, "command": ask.words, "when": at,
            "request_bytes": request.len(), "request_sha256": sum(&request),
            "reply_bytes": raw.len(), "reply_sha256": sum(raw), "failure": failure,
        });
        write_line(&mut self.index, &line)
    }

    /// Writes a line of the journal. It is on the disk before a handler begins.
    pub fn journal(&mut self, line: &Value) -> Result<(), Trouble> {
        write_line(&mut self.journal, line)?;
        Ok(self.journal.sync_data()?)
    }
}

/// A request and what came of it.
#[derive(Debug)]
pub struct Exchange {
    /// Of which case,
    pub case: String,
    /// and which step of it.
    pub step: String,
    /// The command.
    pub command: Vec<String>,
    /// When it was sent.
    pub at: String,
    /// The reply, or why there is none.
    pub answer: Result<Reply, String>,
}

/// All of it.
#[derive(Debug)]
pub struct Evidence {
    /// What was to be done.
    pub terms: Terms,
    /// What was asked, in order.
    pub exchanges: Vec<Exchange>,
    /// What was seen of effects.
    pub journal: Journal,
}

impl Evidence {
    /// Reads a folder. What is not as it must be is added to `differences`; without terms there is nothing.
    pub fn read(folder: &Path, differences: &mut Vec<String>) -> Option<Evidence> {
        let text = |name: &str, differences: &mut Vec<String>| match fs::read_to_string(folder.join(name)) {
            Ok(text) => Some(text),
            Err(error) => {
                differences.push(format!("{name}: {error}"));
                None
            }
        };
        let manifest = text(MANIFEST, differences)?;
        if text(MANIFEST_SUM, differences).is_some_and(|line| line != format!("{}  {MANIFEST}\n", sum(&manifest))) {
            differences.push(format!("{MANIFEST}: is not that of the sum in {MANIFEST_SUM}"));
        }
        let terms = match Terms::read(&manifest) {
            Ok(terms) => terms,
            Err(what) => {
                differences.push(format!("{MANIFEST}: {what}"));
                return None;
            }
        };
        let made = terms.manifest();
        if let Some(line) = first_difference(&manifest, &made) {
            differences.push(format!("{MANIFEST}: line {line} is not what the cases are"));
        }
        let mut exchanges = Vec::new();
        for (at, line) in text(INDEX, differences).unwrap_or_default().lines().enumerate() {
            match read_exchange(folder, at + 1, line) {
                Ok(exchange) => exchanges.push(exchange),
                Err(what) => differences.push(what),
            }
        }
        let journal = match Journal::read(&text(JOURNAL, differences).unwrap_or_default()) {
            Ok(journal) => journal,
            Err(what) => {
                differences.push(format!("{JOURNAL}: {what}"));
                Journal::default()
            }
        };
        let evidence = Evidence { terms, exchanges, journal };
        if let Err(what) = evidence.follows_plan() {
            differences.push(what);
        }
        match effects::look(&folder.join(EFFECTS)) {
            Ok(now) => evidence.compare_effects(&now, differences),
            Err(error) => differences.push(format!("{EFFECTS}: {error}")),
        }
        Some(evidence)
    }

    fn compare_effects(&self, now: &Snapshot, differences: &mut Vec<String>) {
        let Some(last) = &self.journal.last else {
            differences.push(format!("{JOURNAL}: does not say what was there at the end"));
            return;
        };
        for (name, sum) in last {
            if now.get(name) != Some(sum) {
                differences.push(format!("{EFFECTS}/{name}: is not what {JOURNAL} says"));
            }
        }
        for name in now.keys().filter(|&name| !last.contains_key(name)) {
            differences.push(format!("{EFFECTS}/{name}: {JOURNAL} knows nothing of it"));
        }
    }

    /// Was asked and run what was meant, in this order? Steps may be missing, that is for the decisions; none may be added.
    fn follows_plan(&self) -> Result<(), String> {
        let steps = plan::steps(&self.terms);
        let mut asks = steps.iter().filter_map(|step| if let Step::Ask(ask) = step { Some(ask) } else { None });
        let mut cursor = "0".to_owned();
        let mut pages = 0;
        for (at, exchange) in self.exchanges.iter().enumerate() {
            let strange = || format!("{INDEX}: line {} is not what is asked there", at + 1);
            let scan;
            let ask = if at == 0 {
                &plan::info()
            } else if exchange.case == "begin" {
                pages += 1;
                scan = plan::scan(&self.terms, pages, &cursor);
                &scan
            } else {
                asks.find(|ask| ask.case == exchange.case && ask.name == exchange.step).ok_or_else(strange)?
            };
            if (ask.case, &ask.name, &ask.words) != (&exchange.case[..], &exchange.step, &exchange.command) {
                return Err(strange());
            }
            if let Ok(reply) = &exchange.answer
                && ask.name.starts_with("scan")
            {
                cursor = reply.items().first().map(Reply::text).unwrap_or_default();
            }
        }
        let mut handles =
            steps.iter().filter_map(|step| if let Step::Handle(handle) = step { Some(handle) } else { None });
        for (at, run) in self.journal.runs.iter().enumerate() {
            let meant = handles.find(|handle| (handle.case, handle.consumer) == (&run.case, &run.consumer));
            if meant.is_none_or(|handle| (handle.stream.work, handle.stream.entry) != (&run.work, &run.entry)) {
                return Err(format!("{JOURNAL}: run {} is not one that was meant", at + 1));
            }
        }
        Ok(())
    }

    /// What was asked in a step of a case.
    pub fn find(&self, case: &str, step: &str) -> Option<&Exchange> {
        self.exchanges.iter().find(|exchange| exchange.case == case && exchange.step == step)
    }

    /// The reply to it, or why there is none that says anything.
    pub fn reply(&self, case: &str, step: &str) -> Result<&Reply, String> {
        let found = self.find(case, step).ok_or_else(|| format!("{case} {step} was not asked"))?;
        match &found.answer {
            Ok(Reply::Error(text)) => Err(format!("{case} {step}: {}", String::from_utf8_lossy(text))),
            Ok(reply) => Ok(reply),
            Err(failure) => Err(format!("{case} {step}: {failure}")),
        }
    }
}

fn read_exchange(folder: &Path, number: usize, line: &str) -> Result<Exchange, String> {
    let bad = |what: &str| format!("{INDEX}: line {number} {what}");
    let json: Value = serde_json::from_str(line).map_err(|error| bad(&error.to_string()))?;
    let text = |name: &str| json[name].as_str().map(str::to_owned).ok_or_else(|| bad(&format!("has no {name}")));
    let (case, step) = (text("case")?, text("step")?);
    let command: Option<Vec<String>> = json["command"]
        .as_array()
        .and_then(|words| words.iter().map(|word| word.as_str().map(str::to_owned)).collect());
    let command = command.ok_or_else(|| bad("has no command"))?;
    if json["number"] != json!(number) {
        return Err(bad("is not of that number"));
    }
    let bytes = |what: &str| {
        let name = file_of(&case, &step, what);
        let is_plain = !name.contains("..") && name.matches('/').count() == 1;
        if !is_plain {
            return Err(bad("is of no file"));
        }
        let path = folder.join(&name);
        let len = fs::metadata(&path).map_err(|error| format!("{name}: {error}"))?.len();
        if len > REPLY_MAX_BYTES {
            return Err(format!("{name}: is too long"));
        }
        let bytes = fs::read(path).map_err(|error| format!("{name}: {error}"))?;
        let told = (&json[format!("{what}_bytes")], &json[format!("{what}_sha256")]);
        match told == (&json!(bytes.len()), &json!(sum(&bytes))) {
            true => Ok(bytes),
            false => Err(format!("{name}: is not that of the sum in {INDEX}, line {number}")),
        }
    };
    let mut request = Vec::new();
    encode(&command, &mut request);
    if bytes("request")? != request {
        return Err(format!("{}: is not the command in {INDEX}", file_of(&case, &step, "request")));
    }
    let raw = bytes("reply")?;
    let answer = match json["failure"].as_str() {
        Some(failure) => Err(failure.to_owned()),
        None => match reply::decode(&raw) {
            Ok(Some((reply, used))) if used == raw.len() => Ok(reply),
            _ => return Err(format!("{}: is no reply", file_of(&case, &step, "reply"))),
        },
    };
    Ok(Exchange { at: text("when")?, case, step, command, answer })
}

/// The line where two texts differ first.
pub fn first_difference(one: &str, other: &str) -> Option<usize> {
    if one == other {
        return None;
    }
    let (one, other): (Vec<&str>, Vec<&str>) = (one.split('\n').collect(), other.split('\n').collect());
    let at = one.iter().zip(&other).position(|(a, b)| a != b);
    Some(at.unwrap_or(one.len().min(other.len())) + 1)
}
