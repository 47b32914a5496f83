//! A folder with all that a run has seen and concluded, from which the conclusions can be drawn again.
//!
//! ```text
//! manifest.tsv       the terms and the cases, written before anything was asked
//! manifest.sha256    its sum
//! traffic.jsonl      of each request: case, step, command, when, lengths and SHA-256 of it and of the reply
//! traffic/           C03-claim.request, C03-claim.reply … byte for byte
//! effects/           what the handlers left: an effect is a file
//! effects.jsonl      what was there before and after each handler, and at the end
//! work.tsv           what each run of the handler came to: completed, duplicate blocked …
//! ledger.jsonl       a row for each case: expected, observed, decision, reason, evidence, when
//! result.json        the decision for the run, and what else is required of it
//! SHA256SUMS         of all these, as sha256sum writes and checks them
//! ```
//!
//! [`verify`] believes none of it: it compares the sums, compares what was asked with what was meant to be, draws `work.tsv`,
//! `ledger.jsonl` and `result.json` again from the rest, and compares byte for byte.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use impel_core::state::decision::Decision;
use sha2::{Digest, Sha256};

use super::evidence::{
    EFFECTS, Evidence, INDEX, JOURNAL, MANIFEST, MANIFEST_SUM, TRAFFIC, file_of, first_difference, sum,
};
use super::manifest::CASES;
use super::observe::{self, Report};
use crate::audit::Trouble;
use crate::audit::source::hex;

const WORK: &str = "work.tsv";
const LEDGER: &str = "ledger.jsonl";
const RESULT: &str = "result.json";
const SUMS: &str = "SHA256SUMS";

/// What is at the top of each bundle, without the sums.
const FILES: [&str; 7] = [INDEX, JOURNAL, LEDGER, MANIFEST, MANIFEST_SUM, RESULT, WORK];

/// What is drawn from the rest.
fn drawn(evidence: &Evidence, report: &Report) -> [(&'static str, String); 3] {
    let ledger = report.cases.iter().map(|one| format!("{}\n", one.json())).collect();
    [(WORK, observe::work_book(evidence)), (LEDGER, ledger), (RESULT, format!("{}\n", report.json()))]
}

/// Every file below a folder by its path from there; folders within `effects` too, as what is in them belongs to an effect.
/// What is neither is told in `strange`.
fn files(folder: &Path, strange: &mut Vec<String>) -> Result<Vec<String>, Trouble> {
    let mut found = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(prefix) = folders.pop() {
        for entry in fs::read_dir(folder.join(&prefix))? {
            let entry = entry?;
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            // What cannot stand in a line of the sums is in the journal, as every effect is.
            let is_plain = entry.file_name().to_str().is_some_and(|name| !name.contains(char::is_control));
            if !is_plain && name.starts_with(&format!("{EFFECTS}/")) {
                continue;
            }
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(format!("{name}/"));
            } else if kind.is_file() {
                found.push(name);
            } else if !name.starts_with(&format!("{EFFECTS}/")) {
                strange.push(format!("{name}: is no plain file"));
            }
        }
    }
    found.sort();
    Ok(found)
}

fn sum_of(path: &Path) -> Result<String, Trouble> {
    let mut file = File::open(path).map_err(|error| Trouble(format!("{}: {error}", path.display())))?;
    let mut hash = Sha256::new();
    std::io::copy(&mut file, &mut Hashing(&mut hash))?;
    Ok(hex(hash.finalize()))
}

struct Hashing<'a>(&'a mut Sha256);

impl Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Draws the conclusions from a folder with all evidence, adds them and the sums. Answers the conclusions and the sum of the sums.
pub fn seal(folder: &Path) -> Result<(Report, String), Trouble> {
    let mut differences = Vec::new();
    let evidence = Evidence::read(folder, &mut differences);
    let Some(evidence) = evidence.filter(|_| differences.is_empty()) else {
        return Err(Trouble(format!("the evidence was changed while it was made: {}", differences.join("; "))));
    };
    let report = observe::report(&evidence);
    for (name, text) in drawn(&evidence, &report) {
        File::create_new(folder.join(name))?.write_all(text.as_bytes())?;
    }
    let mut text = String::new();
    let all = files(folder, &mut differences)?;
    if let Some(strange) = differences.pop() {
        return Err(Trouble(strange));
    }
    for name in all {
        text += &format!("{}  {name}\n", sum_of(&folder.join(name.as_str()))?);
        File::open(folder.join(&name))?.sync_all()?;
    }
    let mut sums = File::create_new(folder.join(SUMS))?;
    sums.write_all(text.as_bytes())?;
    sums.sync_all()?;
    File::open(folder)?.sync_all()?;
    Ok((report, sum(&text)))
}

/// What a verification found.
pub struct Verified {
    /// What is not as it was, each with the file and the place; nothing if all is.
    pub differences: Vec<String>,
    /// The decision, where it could be drawn.
    pub decision: Option<Decision>,
    /// The sum of the sums.
    pub sum: String,
}

/// Examines a bundle.
pub fn verify(folder: &Path) -> Result<Verified, Trouble> {
    fs::read_dir(folder)?;
    let mut differences = Vec::new();
    let sums = fs::read_to_string(folder.join(SUMS)).unwrap_or_else(|error| {
        differences
            .push(format!("{SUMS}: {error}; a run that did not come to its end has none and is to be run again"));
        String::new()
    });
    compare_sums(folder, &sums, &mut differences)?;
    let before = differences.len();
    let evidence = Evidence::read(folder, &mut differences);
    let report = evidence.as_ref().map(observe::report);
    if let (Some(evidence), Some(report)) = (&evidence, &report) {
        for (name, text) in drawn(evidence, report) {
            let Ok(found) = fs::read_to_string(folder.join(name)) else { continue };
            if let Some(line) = first_difference(&found, &text) {
                let case = CASES.get(line - 1).filter(|_| name == LEDGER).map_or("", |case| case.name);
                let place = format!("{name}: line {line} {case}");
                differences.push(format!("{} is not what follows from the evidence", place.trim_end()));
            }
        }
    }
    let sound = differences.len() == before;
    Ok(Verified { differences, decision: report.filter(|_| sound).map(|report| report.decision), sum: sum(&sums) })
}

fn compare_sums(folder: &Path, sums: &str, differences: &mut Vec<String>) -> Result<(), Trouble> {
    let mut told = BTreeMap::new();
    for (at, line) in sums.lines().enumerate() {
        let row = line.split_once("  ").filter(|(_, name)| !told.contains_key(*name));
        match row {
            Some((sum, name)) => {
                told.insert(name, sum);
            }
            None => differences.push(format!("{SUMS}: line {} is none of a sum, or one too many", at + 1)),
        }
    }
    let found = files(folder, differences)?;
    for name in &found {
        match told.remove(&name[..]) {
            _ if name == SUMS => {}
            None if sums.is_empty() => {}
            None => differences.push(format!("{name}: does not belong to the bundle")),
            Some(told) if sum_of(&folder.join(name))? != told => {
                differences.push(format!("{name}: is not that of the sum in {SUMS}"));
            }
            Some(_) => {}
        }
    }
    differences.extend(told.keys().map(|name| format!("{name}: is missing")));
    for name in FILES.iter().filter(|&&name| !found.iter().any(|one| one == name) && !told.contains_key(name)) {
        differences.push(format!("{name}: is missing"));
    }
    let known = fs::read_to_string(folder.join(INDEX)).unwrap_or_default();
    let known: Vec<String> = known
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter_map(|line| Some((line["case"].as_str()?.to_owned(), line["step"].as_str()?.to_owned())))
        .flat_map(|(case, step)| ["request", "reply"].map(|what| file_of(&case, &step, what)))
        .collect();
    for name in &found {
        let is_known = match name.split_once('/') {
            None => name == SUMS || FILES.contains(&&name[..]),
            Some((TRAFFIC, _)) => known.contains(name),
            Some((EFFECTS, _)) => true,
            Some(_) => false,
        };
        let text = format!("{name}: does not belong to the bundle");
        if !is_known && !differences.contains(&text) {
            differences.push(text);
        }
    }
    Ok(())
}
