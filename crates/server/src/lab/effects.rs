//! The book of the effects, which no server has a part in: a folder that handlers write to, and a journal of what was seen in it.
//!
//! An effect is a file (or a folder) directly in the folder, named by its work id or by that, a point and anything. What begins with
//! a point is none. Whatever shows between a handler's start and its end is that handler's; nobody accounts for the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::audit::source::hex;

/// Effects by name, each with the SHA-256 of what it is.
pub type Snapshot = BTreeMap<String, String>;

/// How deep folders in effects may be.
const DEPTH_MAX: usize = 32;

/// What is there now.
pub fn look(folder: &Path) -> io::Result<Snapshot> {
    let mut found = Snapshot::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') {
            let mut hash = Sha256::new();
            add(&entry.path(), &mut hash, 0)?;
            found.insert(name, hex(hash.finalize()));
        }
    }
    Ok(found)
}

/// Puts what a path holds into the sum; of a plain file it is that of its bytes.
fn add(path: &Path, hash: &mut Sha256, depth: usize) -> io::Result<()> {
    let kind = fs::symlink_metadata(path)?.file_type();
    if kind.is_file() {
        let (mut file, mut buffer) = (File::open(path)?, vec![0; 64 << 10]);
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(()),
                n => hash.update(&buffer[..n]),
            }
        }
    }
    if kind.is_dir() && depth < DEPTH_MAX {
        let names: io::Result<BTreeSet<_>> = fs::read_dir(path)?.map(|entry| Ok(entry?.file_name())).collect();
        for name in names? {
            hash.update(name.as_encoded_bytes());
            hash.update([0]);
            add(&path.join(name), hash, depth + 1)?;
            hash.update([0]);
        }
        return Ok(());
    }
    // A link is where it leads to; the rest has no content that could be read to an end.
    let leads = fs::read_link(path).unwrap_or_default();
    hash.update(leads.as_os_str().as_encoded_bytes());
    Ok(())
}

/// Does an effect of this name belong to the work?
pub fn belongs(name: &str, work: &str) -> bool {
    name.strip_prefix(work).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// How a handler ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct End {
    /// Its exit code; none if it was ended, or ended by a signal.
    pub code: Option<i32>,
    /// What it said of that.
    pub said: Option<String>,
    /// What was there then.
    pub effects: Snapshot,
    /// When.
    pub at: String,
}

/// A run of a handler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run {
    /// For which case,
    pub case: String,
    /// which work,
    pub work: String,
    /// and which entry,
    pub entry: String,
    /// as whom,
    pub consumer: String,
    /// and of how many deliveries it is the latest.
    pub delivery: u64,
    /// What was there before.
    pub effects: Snapshot,
    /// When it began.
    pub at: String,
    /// Its end, if it came.
    pub end: Option<End>,
}

impl Run {
    /// The line that is written before it begins.
    pub fn attempt_json(&self, number: usize) -> Value {
        json!({
            "event": "attempt", "run": number, "case": self.case, "work": self.work, "entry": self.entry,
            "consumer": self.consumer, "delivery": self.delivery, "effects": self.effects, "when": self.at,
        })
    }
}

impl End {
    /// The line that is written when it is over.
    pub fn json(&self, number: usize) -> Value {
        json!({
            "event": "end", "run": number, "code": self.code, "said": self.said, "effects": self.effects, "when": self.at,
        })
    }
}

/// The line of what is there when all is over.
pub fn last_json(effects: &Snapshot, at: &str) -> Value {
    json!({"event": "last", "effects": effects, "when": at})
}

/// What was written down of effects.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Journal {
    /// The runs, in order.
    pub runs: Vec<Run>,
    /// What was there when all was over.
    pub last: Option<Snapshot>,
}

fn snapshot(json: &Value) -> Option<Snapshot> {
    json.as_object()?.iter().map(|(name, sum)| Some((name.clone(), sum.as_str()?.to_owned()))).collect()
}

impl Journal {
    /// Reads the lines.
    pub fn read(text: &str) -> Result<Journal, String> {
        let mut journal = Journal::default();
        for (at, line) in text.lines().enumerate() {
            let json: Value = serde_json::from_str(line).map_err(|error| format!("line {}: {error}", at + 1))?;
            journal.add(&json).ok_or_else(|| format!("line {}: is not what stands there", at + 1))?;
        }
        Ok(journal)
    }

    fn add(&mut self, json: &Value) -> Option<()> {
        let text = |name: &str| json[name].as_str().map(str::to_owned);
        let number = json["run"].as_u64().and_then(|number| usize::try_from(number).ok());
        let (effects, at) = (snapshot(&json["effects"])?, text("when")?);
        if self.last.is_some() {
            return None;
        }
        match json["event"].as_str()? {
            "attempt" => {
                let run = Run {
                    case: text("case")?,
                    work: text("work")?,
                    entry: text("entry")?,
                    consumer: text("consumer")?,
                    delivery: json["delivery"].as_u64()?,
                    effects,
                    at,
                    end: None,
                };
                self.runs.push(run);
                (number? == self.runs.len()).then_some(())
            }
            "end" => {
                let is_last = number? == self.runs.len();
                let code = json["code"].as_i64().and_then(|code| i32::try_from(code).ok());
                let run = self.runs.last_mut().filter(|run| is_last && run.end.is_none())?;
                run.end = Some(End { code, said: text("said"), effects, at });
                Some(())
            }
            "last" => {
                self.last = Some(effects);
                Some(())
            }
            _ => None,
        }
    }

    /// What it comes to.
    pub fn tale(&self) -> Tale {
        let mut tale =
            Tale { outcomes: Vec::new(), there: BTreeMap::new(), altered: BTreeSet::new(), strange: BTreeSet::new() };
        let nothing = Snapshot::new();
        let mut before = &nothing;
        for run in &self.runs {
            tale.elsewhere(before, &run.effects);
            before = &run.effects;
            let Some(end) = &run.end else {
                tale.outcomes.push(Outcome { what: What::Unknown, new: Vec::new() });
                continue;
            };
            tale.outcomes.push(tale_of(run, end, &mut tale.altered, &mut tale.strange));
            before = &end.effects;
        }
        if let Some(last) = &self.last {
            tale.elsewhere(before, last);
            tale.there = last.clone();
        }
        tale
    }
}

/// What a run left behind.
fn tale_of(run: &Run, end: &End, altered: &mut BTreeSet<String>, strange: &mut BTreeSet<String>) -> Outcome {
    let is_ours = |name: &str| belongs(name, &run.work);
    let changed: Vec<&String> =
        run.effects.iter().filter(|&(name, sum)| end.effects.get(name) != Some(sum)).map(|(name, _)| name).collect();
    let (new, others): (Vec<String>, Vec<String>) =
        end.effects.keys().filter(|&name| !run.effects.contains_key(name)).cloned().partition(|name| is_ours(name));
    let was_done = run.effects.keys().any(|name| is_ours(name));
    altered.extend(changed.iter().map(|&name| name.clone()));
    strange.extend(others);
    let what = match (changed.is_empty(), new.is_empty(), was_done) {
        (false, _, _) => What::Altered,
        (true, false, false) => What::Completed,
        (true, false, true) => What::Repeated,
        (true, true, true) => What::Duplicate,
        (true, true, false) => What::Nothing,
    };
    Outcome { what, new }
}

/// What came of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// The first effect.
    Completed,
    /// One more effect of the same work.
    Repeated,
    /// The effect was there, and it stayed as it was.
    Duplicate,
    /// No effect.
    Nothing,
    /// An effect that was there is another now, or gone.
    Altered,
    /// Nobody saw the end.
    Unknown,
}

impl What {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            What::Completed => "COMPLETED",
            What::Repeated => "REPEATED",
            What::Duplicate => "DUPLICATE_BLOCKED",
            What::Nothing => "NO_EFFECT",
            What::Altered => "ALTERED",
            What::Unknown => "UNKNOWN",
        }
    }
}

/// What came of a run, and the effects that are new.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// What.
    pub what: What,
    /// Names of effects.
    pub new: Vec<String>,
}

/// What the journal comes to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tale {
    /// Of each run.
    pub outcomes: Vec<Outcome>,
    /// What was there at the end.
    pub there: Snapshot,
    /// Effects that were altered or removed.
    pub altered: BTreeSet<String>,
    /// Effects that no run accounts for.
    pub strange: BTreeSet<String>,
}

impl Tale {
    /// What happened while no handler ran.
    fn elsewhere(&mut self, before: &Snapshot, after: &Snapshot) {
        let gone = before.iter().filter(|&(name, sum)| after.get(name) != Some(sum)).map(|(name, _)| name.clone());
        self.altered.extend(gone);
        self.strange.extend(after.keys().filter(|&name| !before.contains_key(name)).cloned());
    }

    /// The effects of a work.
    pub fn effects<'a>(&'a self, work: &'a str) -> impl Iterator<Item = (&'a String, &'a String)> {
        self.there.iter().filter(move |(name, _)| belongs(name, work))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(of: &[(&str, &str)]) -> Snapshot {
        of.iter().map(|&(name, sum)| (name.to_owned(), sum.to_owned())).collect()
    }

    /// A run with what was there before and after.
    fn run(work: &str, before: &[(&str, &str)], after: &[(&str, &str)]) -> Run {
        let end = End { code: Some(0), said: None, effects: snapshot(after), at: "t".into() };
        Run {
            case: "C05".into(),
            work: work.into(),
            entry: "1-0".into(),
            consumer: "c2".into(),
            delivery: 2,
            effects: snapshot(before),
            at: "t".into(),
            end: Some(end),
        }
    }

    fn told(runs: Vec<Run>, last: &[(&str, &str)]) -> (Vec<What>, Vec<String>, Vec<String>) {
        let tale = Journal { runs, last: Some(snapshot(last)) }.tale();
        let what = tale.outcomes.iter().map(|outcome| outcome.what).collect();
        (what, tale.altered.into_iter().collect(), tale.strange.into_iter().collect())
    }

    #[test]
    fn what_came_of_runs() {
        let none = || Vec::<String>::new();
        let of = |name: &str| vec![name.to_owned()];
        let (a, b) = (&[("w", "1")][..], &[("w", "1"), ("w.2", "1")][..]);
        assert_eq!(
            told(vec![run("w", &[], a), run("w", a, a)], a),
            (vec![What::Completed, What::Duplicate], none(), none())
        );
        assert_eq!(
            told(vec![run("w", &[], a), run("w", a, b)], b),
            (vec![What::Completed, What::Repeated], none(), none())
        );
        assert_eq!(told(vec![run("w", &[], &[])], &[]), (vec![What::Nothing], none(), none()));
        assert_eq!(told(vec![run("w", a, &[("w", "2")])], &[("w", "2")]).0, [What::Altered]);
        assert_eq!(told(vec![run("w", &[], a), run("w", a, &[])], &[]).1, of("w"));
        // Another work's, and what came while nobody ran.
        assert_eq!(told(vec![run("v", &[], a)], a), (vec![What::Nothing], none(), of("w")));
        assert_eq!(told(vec![run("w", &[], a)], b), (vec![What::Completed], none(), of("w.2")));
        assert_eq!(told(vec![run("w", &[], a), run("w", b, b)], b).2, of("w.2"));
        let mut without_end = run("w", &[], &[]);
        without_end.end = None;
        assert_eq!(told(vec![without_end], &[]).0, [What::Unknown]);
    }

    #[test]
    fn names_belong_to_the_whole_work_id_alone() {
        assert!(belongs("job-B", "job-B") && belongs("job-B.2", "job-B"));
        assert!(!belongs("job-Bx", "job-B") && !belongs("job", "job-B") && !belongs(".job-B", "job-B"));
    }

    #[test]
    fn a_journal_is_read_as_it_was_written_and_no_other_way() {
        let run = run("w", &[], &[("w", "1")]);
        let lines = [
            run.attempt_json(1).to_string(),
            run.end.as_ref().unwrap().json(1).to_string(),
            last_json(&snapshot(&[("w", "1")]), "t").to_string(),
        ];
        let journal = Journal { runs: vec![run], last: Some(snapshot(&[("w", "1")])) };
        assert_eq!(Journal::read(&lines.join("\n")), Ok(journal));
        for order in [&[1][..], &[0, 1, 1], &[2, 0], &[0, 0]] {
            let text: Vec<&str> = order.iter().map(|&at| &lines[at][..]).collect();
            assert!(Journal::read(&text.join("\n")).is_err(), "{order:?}");
        }
    }

    #[test]
    fn effects_are_files_and_folders_with_all_that_is_in_them() {
        let folder = tempfile::TempDir::new().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "x").unwrap();
        fs::write(at(".hidden"), "x").unwrap();
        fs::create_dir(at("dir")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", at("link")).unwrap();
        let first = look(folder.path()).unwrap();
        assert_eq!(first.keys().collect::<Vec<_>>(), ["dir", "file", "link"]);
        assert_eq!(first["file"], hex(Sha256::digest("x")));
        fs::write(at("dir").join("y"), "z").unwrap();
        let second = look(folder.path()).unwrap();
        assert_ne!(first["dir"], second["dir"]);
        assert_eq!(first["file"], second["file"]);
    }
}
