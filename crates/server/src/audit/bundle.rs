//! A bundle of evidence: a folder with all that an audit has seen and concluded, from which the conclusions can be drawn again.
//!
//! ```text
//! question.json      what was asked, of which server, with which completions
//! replies.bin        every reply, byte for byte, one after the other
//! replies.jsonl      of each: the command, the length, the SHA-256
//! group.jsonl        the group's book: each entry that it was given
//! ledger.jsonl       the server's ledger, row by row
//! completions.jsonl  the completions of the other system, where there is one
//! decisions.jsonl    a decision for each entry
//! result.json        the counts
//! SHA256SUMS         of all these, as sha256sum writes and checks them
//! ```
//!
//! [`verify`] believes none of it: it compares the sums, then draws every book and every decision again from `question.json`, the
//! replies and the completions, and compares byte for byte; and XWORK LOG and XWORK AUDIT must tell the same story. Whoever alters a conclusion and its sum is found by that. Whoever makes up
//! replies is not; the sum of `SHA256SUMS` itself, kept elsewhere, is against that.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::lines::{LINE_MAX_BYTES, next_line};
use super::source::{INDEX, Kept, REPLIES, hex};
use super::{Decided, Question, Sink, Totals, Trouble, completions, write_line};
use crate::disk::read_text_file;

/// Version of the form of bundles.
const FORMAT: u64 = 2;

const QUESTION: &str = "question.json";
const GROUP: &str = "group.jsonl";
const LEDGER: &str = "ledger.jsonl";
const COMPLETIONS: &str = "completions.jsonl";
const DECISIONS: &str = "decisions.jsonl";
const RESULT: &str = "result.json";
const SUMS: &str = "SHA256SUMS";

/// All files but the sums.
const FILES: [&str; 8] = [COMPLETIONS, DECISIONS, GROUP, LEDGER, QUESTION, REPLIES, INDEX, RESULT];

/// What is drawn again.
const DRAWN: [&str; 4] = [GROUP, LEDGER, DECISIONS, RESULT];

/// Books in files.
pub struct Writer {
    folder: PathBuf,
    given: BufWriter<File>,
    rows: BufWriter<File>,
    completions: BufWriter<File>,
    decided: BufWriter<File>,
}

impl Writer {
    /// Makes the files in a folder that is there.
    pub fn new(folder: &Path) -> Result<Writer, Trouble> {
        let file = |name: &str| File::create_new(folder.join(name)).map(BufWriter::new);
        Ok(Writer {
            given: file(GROUP)?,
            rows: file(LEDGER)?,
            completions: file(COMPLETIONS)?,
            decided: file(DECISIONS)?,
            folder: folder.into(),
        })
    }

    /// Writes the counts; all is in the files then.
    pub fn finish(mut self, totals: &Totals) -> Result<(), Trouble> {
        for file in [&mut self.given, &mut self.rows, &mut self.completions, &mut self.decided] {
            file.flush()?;
        }
        Ok(fs::write(self.folder.join(RESULT), format!("{}\n", totals.json()))?)
    }
}

impl Sink for Writer {
    fn given(&mut self, line: &Value) -> Result<(), Trouble> {
        write_line(&mut self.given, line)
    }

    fn row(&mut self, line: &Value) -> Result<(), Trouble> {
        write_line(&mut self.rows, line)
    }

    fn completion(&mut self, line: &Value) -> Result<(), Trouble> {
        write_line(&mut self.completions, line)
    }

    fn decided(&mut self, decided: &Decided) -> Result<(), Trouble> {
        write_line(&mut self.decided, &decided.json)
    }
}

/// Writes the question.
pub fn write_question(
    folder: &Path,
    question: &Question,
    server: &str,
    completions: Option<&str>,
) -> Result<(), Trouble> {
    let json = json!({
        "format": FORMAT, "tool": concat!("impel ", env!("CARGO_PKG_VERSION")), "question": question.json(),
        "server": server, "completions": completions,
    });
    Ok(fs::write(folder.join(QUESTION), format!("{json}\n"))?)
}

fn sum(path: &Path) -> Result<String, Trouble> {
    let mut file = File::open(path).map_err(|error| Trouble(format!("{}: {error}", path.display())))?;
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 256 << 10]);
    loop {
        match file.read(&mut buffer).map_err(|error| Trouble(format!("{}: {error}", path.display())))? {
            0 => return Ok(hex(hash.finalize())),
            n => hash.update(&buffer[..n]),
        }
    }
}

/// Writes the sums, the last of all; answers the sum of the sums.
pub fn seal(folder: &Path) -> Result<String, Trouble> {
    let mut text = String::new();
    for name in FILES {
        text += &format!("{}  {name}\n", sum(&folder.join(name))?);
    }
    fs::write(folder.join(SUMS), &text)?;
    for name in FILES.iter().chain(&[SUMS]) {
        File::open(folder.join(name))?.sync_all()?;
    }
    Ok(hex(Sha256::digest(&text)))
}

/// What a verification found.
#[derive(Debug)]
pub struct Verified {
    /// What is not as it was, each with the file and the place; nothing if all is.
    pub differences: Vec<String>,
    /// The counts, where they could be drawn.
    pub totals: Option<Totals>,
    /// The sum of the sums.
    pub sum: String,
}

/// Examines a bundle. `temporary` is an empty folder.
pub fn verify(folder: &Path, temporary: &Path) -> Result<Verified, Trouble> {
    fs::read_dir(folder)?;
    let (sums, why) = match read_text_file(&folder.join(SUMS)) {
        Ok(sums) => (sums, None),
        Err(error) => {
            let why =
                format!("{SUMS}: {error}; an audit that did not come to its end has none and is to be made again");
            (Vec::new(), Some(why))
        }
    };
    let mut verified =
        Verified { differences: why.into_iter().collect(), totals: None, sum: hex(Sha256::digest(&sums)) };
    let differences = &mut verified.differences;
    let sums = String::from_utf8_lossy(&sums);
    let told: BTreeMap<&str, &str> =
        sums.lines().filter_map(|line| line.split_once("  ")).map(|(sum, name)| (name, sum)).collect();
    for name in FILES {
        match (sum(&folder.join(name)), told.get(name)) {
            (Err(trouble), _) => differences.push(trouble.0),
            (Ok(_), None) => differences.push(format!("{SUMS}: has no sum of {name}")),
            (Ok(found), Some(told)) if found != **told => {
                differences.push(format!("{name}: is not that of the sum in {SUMS}"))
            }
            _ => {}
        }
    }
    if sums.lines().count() != FILES.len() {
        differences.push(format!("{SUMS}: has {} lines and not {}", sums.lines().count(), FILES.len()));
    }
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name != SUMS && !FILES.contains(&&name[..]) {
            differences.push(format!("{name}: does not belong to the bundle"));
        }
    }
    match draw(folder, temporary) {
        Ok(totals) => {
            for name in DRAWN {
                match first_difference(&folder.join(name), &temporary.join(name)) {
                    Ok(None) => {}
                    Ok(Some(place)) => {
                        differences.push(format!("{name}: {place} is not what follows from the replies"));
                    }
                    Err(trouble) => differences.push(format!("{name}: {trouble}")),
                }
            }
            verified.totals = Some(totals);
        }
        Err(trouble) => differences.push(trouble.0),
    }
    Ok(verified)
}

/// A small file.
fn text(path: &Path) -> io::Result<String> {
    String::from_utf8(read_text_file(path)?).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

/// Draws all conclusions again.
fn draw(folder: &Path, temporary: &Path) -> Result<Totals, Trouble> {
    let bad = |what: &str| Trouble(format!("{QUESTION}: {what}"));
    let json = text(&folder.join(QUESTION)).map_err(|error| bad(&error.to_string()))?;
    let json: Value = serde_json::from_str(&json).map_err(|error| bad(&error.to_string()))?;
    if json["format"] != json!(FORMAT) {
        return Err(bad("of a format that is not known"));
    }
    let question = Question::read(&json["question"]).ok_or_else(|| bad("no question"))?;
    let mut kept = Kept::open(folder)?;
    let mut writer = Writer::new(temporary)?;
    let place = completions::Place::Jsonl(folder.join(COMPLETIONS));
    let mut found = if json["completions"].is_null() { None } else { Some(place.open()?) };
    let completions = found.as_mut().map(|found| &mut **found as &mut dyn Iterator<Item = _>);
    let totals = super::run(&mut kept, &question, completions, &mut writer, temporary)?;
    kept.finish()?;
    writer.finish(&totals)?;
    Ok(totals)
}

/// Where two files differ first.
fn first_difference(one: &Path, other: &Path) -> Result<Option<String>, Trouble> {
    let open = |path: &Path| File::open(path).map(BufReader::new);
    let (Ok(mut one), mut other) = (open(one), open(other)?) else { return Ok(None) };
    let line = |file: &mut BufReader<File>| next_line(file, LINE_MAX_BYTES);
    for number in 1_u64.. {
        let (a, b) = (line(&mut one)?, line(&mut other)?);
        if a != b {
            return Ok(Some(format!("line {number}")));
        }
        if a.is_empty() {
            break;
        }
    }
    Ok(None)
}
