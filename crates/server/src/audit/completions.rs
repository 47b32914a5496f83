//! The completions of the system where the effects landed: a file of JSON lines or of comma-separated values, or a table (see
//! `audit/postgres.rs`), with the columns `work_id`, `digest`, `receipt` and `completed_at`. Only `work_id` must be there.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::Trouble;
use super::lines::Lines;
use super::postgres::Table;

/// Longest value that is taken, in bytes: a quote that is never closed must not swallow a whole file.
const VALUE_MAX_BYTES: usize = 1 << 20;

/// Most values of a line that are taken.
const VALUES_MAX: usize = 4096;

/// What is looked at.
const NAMES: [&str; 4] = ["work_id", "digest", "receipt", "completed_at"];

/// What some programs write before the first line of a file.
const MARK: char = '\u{feff}';

/// Where they are.
#[derive(Clone, Debug)]
pub enum Place {
    /// `jsonl:FILE`
    Jsonl(PathBuf),
    /// `csv:FILE`, with a line of names first.
    Csv(PathBuf),
    /// `postgres:URL#table`
    Postgres(Box<Table>),
}

/// An effect that exists.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Completion {
    /// Of which work.
    pub work_id: String,
    /// Fingerprint of the effect.
    pub digest: Option<String>,
    /// Proof of it.
    pub receipt: Option<String>,
    /// When.
    pub completed_at: Option<String>,
}

impl Place {
    /// Reads `jsonl:FILE`, `csv:FILE` or `postgres:URL#table`.
    pub fn parse(text: &str) -> Result<Place, String> {
        match text.split_once(':') {
            Some(("jsonl", path)) if !path.is_empty() => Ok(Place::Jsonl(path.into())),
            Some(("csv", path)) if !path.is_empty() => Ok(Place::Csv(path.into())),
            Some(("postgres", rest)) => Table::parse(rest).map(|table| Place::Postgres(Box::new(table))),
            _ => Err("--ledger wants jsonl:FILE, csv:FILE or postgres:URL#table".into()),
        }
    }

    /// As it may be shown, without passwords.
    pub fn shown(&self) -> String {
        match self {
            Place::Jsonl(path) => format!("jsonl:{}", path.display()),
            Place::Csv(path) => format!("csv:{}", path.display()),
            Place::Postgres(table) => table.shown(),
        }
    }

    /// Opens it.
    pub fn open(&self) -> Result<Box<dyn Iterator<Item = Result<Completion, Trouble>>>, Trouble> {
        let file = |path: &Path| match File::open(path) {
            Ok(file) => Ok(BufReader::with_capacity(256 << 10, file)),
            Err(error) => Err(Trouble(format!("{}: {error}", path.display()))),
        };
        Ok(match self {
            Place::Jsonl(path) => Box::new(jsonl(file(path)?, path.display().to_string())),
            Place::Csv(path) => Box::new(Csv::begin(file(path)?, path.display().to_string())?),
            Place::Postgres(table) => Box::new(table.open()?),
        })
    }
}

impl Completion {
    /// As JSON.
    pub fn json(&self) -> Value {
        json!({
            "work_id": self.work_id, "digest": self.digest, "receipt": self.receipt, "completed_at": self.completed_at,
        })
    }

    fn put(&mut self, name: &str, value: String) {
        match name {
            "work_id" => self.work_id = value,
            "digest" => self.digest = Some(value),
            "receipt" => self.receipt = Some(value),
            "completed_at" => self.completed_at = Some(value),
            // A file may have more than we look at.
            _ => {}
        }
    }
}

fn jsonl(file: impl BufRead, name: String) -> impl Iterator<Item = Result<Completion, Trouble>> {
    Lines::of(file).enumerate().filter_map(move |(number, line)| {
        let at = |what: String| Trouble(format!("{name} line {}: {what}", number + 1));
        let line = match line {
            Ok(line) if line.trim().is_empty() => return None,
            Ok(line) => line,
            Err(error) => return Some(Err(at(error.to_string()))),
        };
        let line = if number == 0 { line.trim_start_matches(MARK) } else { &line };
        let object: serde_json::Map<String, Value> = match serde_json::from_str(line) {
            Ok(object) => object,
            Err(error) => return Some(Err(at(error.to_string()))),
        };
        let mut completion = Completion::default();
        for (name, value) in object {
            match value {
                Value::Null => {}
                Value::String(text) => completion.put(&name, text),
                other => completion.put(&name, other.to_string()),
            }
        }
        Some(if completion.work_id.is_empty() { Err(at("no work_id".into())) } else { Ok(completion) })
    })
}

/// Comma-separated values as in RFC 4180: quoted ones may hold commas, line ends and doubled quotes.
struct Csv<R> {
    bytes: std::io::Bytes<R>,
    name: String,
    columns: Vec<String>,
    line: u64,
    failed: bool,
}

impl<R: BufRead> Csv<R> {
    fn begin(file: R, name: String) -> Result<Csv<R>, Trouble> {
        let mut csv = Csv { bytes: file.bytes(), name, columns: Vec::new(), line: 0, failed: false };
        let columns = csv.row()?.unwrap_or_default();
        csv.columns = columns.iter().map(|name| name.trim().trim_start_matches(MARK).to_owned()).collect();
        let named = |wanted: &str| csv.columns.iter().filter(|name| *name == wanted).count();
        if let Some(twice) = NAMES.into_iter().find(|name| named(name) > 1) {
            return Err(Trouble(format!("{}: its first line names {twice} twice", csv.name)));
        }
        match named("work_id") {
            1 => Ok(csv),
            _ => Err(Trouble(format!("{}: its first line names no column work_id", csv.name))),
        }
    }

    fn trouble(&self, what: &str) -> Trouble {
        Trouble(format!("{} line {}: {what}", self.name, self.line))
    }

    /// The values of the next line.
    fn row(&mut self) -> Result<Option<Vec<String>>, Trouble> {
        let (mut row, mut value) = (Vec::new(), Vec::new());
        let (mut quoted, mut was_quoted, mut is_begun) = (false, false, false);
        self.line += 1;
        loop {
            let byte = self.bytes.next().transpose().map_err(|error| self.trouble(&error.to_string()))?;
            if row.len() > VALUES_MAX {
                return Err(self.trouble(&format!("more than {VALUES_MAX} values; is it comma-separated?")));
            }
            if value.len() > VALUE_MAX_BYTES {
                return Err(self.trouble("a value of more than 1 MiB; is a quote missing?"));
            }
            match byte {
                None if quoted => return Err(self.trouble("a quote that is not closed")),
                None if !is_begun => return Ok(None),
                Some(b'"') if !quoted && value.is_empty() && !was_quoted => {
                    (quoted, was_quoted, is_begun) = (true, true, true)
                }
                // The second of two is one of the value.
                Some(b'"') if !quoted && was_quoted => {
                    value.push(b'"');
                    quoted = true;
                }
                Some(b'"') if quoted => quoted = false,
                Some(byte) if quoted => value.push(byte),
                Some(b'\r') => {}
                None | Some(b'\n' | b',') => {
                    let text = String::from_utf8(std::mem::take(&mut value)).map_err(|_| self.trouble("not UTF-8"))?;
                    row.push(text);
                    was_quoted = false;
                    is_begun = true;
                    if byte != Some(b',') {
                        return Ok(Some(row));
                    }
                }
                Some(byte) => {
                    value.push(byte);
                    is_begun = true;
                }
            }
        }
    }

    fn completion(&mut self) -> Result<Option<Completion>, Trouble> {
        loop {
            let Some(row) = self.row()? else { return Ok(None) };
            if row.len() == 1 && row[0].is_empty() {
                continue;
            }
            if row.len() != self.columns.len() {
                return Err(self.trouble(&format!("{} values for {} columns", row.len(), self.columns.len())));
            }
            let mut completion = Completion::default();
            for (name, value) in self.columns.iter().zip(row).filter(|(_, value)| !value.is_empty()) {
                completion.put(name, value);
            }
            return match completion.work_id.is_empty() {
                true => Err(self.trouble("no work_id")),
                false => Ok(Some(completion)),
            };
        }
    }
}

impl<R: BufRead> Iterator for Csv<R> {
    type Item = Result<Completion, Trouble>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let next = self.completion().transpose();
        self.failed = matches!(next, Some(Err(_)));
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn csv(text: &'static str) -> Result<Vec<Completion>, String> {
        Csv::begin(text.as_bytes(), "f".into()).and_then(Iterator::collect).map_err(|trouble| trouble.0)
    }

    fn completion(work_id: &str, digest: Option<&str>) -> Completion {
        Completion { work_id: work_id.into(), digest: digest.map(str::to_owned), ..Completion::default() }
    }

    #[test]
    fn lines_of_json() {
        let read =
            |text: &'static str| jsonl(text.as_bytes(), "f".into()).collect::<Result<Vec<_>, _>>().map_err(|t| t.0);
        let found = read("{\"work_id\":\"a\",\"digest\":\"d\",\"more\":1}\n\n{\"work_id\":7,\"digest\":null}\n");
        assert_eq!(found, Ok(vec![completion("a", Some("d")), completion("7", None)]));
        assert_eq!(read("{\"work_id\":\"a\"}\n{}\n"), Err("f line 2: no work_id".into()));
        assert!(read("[1]\n").is_err());
        assert_eq!(read("\u{feff}{\"work_id\":\"a\"}\n"), Ok(vec![completion("a", None)]));
    }

    #[test]
    fn comma_separated_values() {
        let found = csv("digest,work_id,x\r\nd,a,\r\n,\"b, \"\"c\"\"\nd\",1\n\n\"\",e,");
        assert_eq!(found, Ok(vec![completion("a", Some("d")), completion("b, \"c\"\nd", None), completion("e", None)]));
        for (wrong, why) in [
            ("a,b\n", "f: its first line names no column work_id"),
            ("", "f: its first line names no column work_id"),
            ("work_id,digest,work_id\na,d,b\n", "f: its first line names work_id twice"),
            ("work_id,digest\na\n", "f line 2: 1 values for 2 columns"),
            ("work_id\n\"a\n", "f line 2: a quote that is not closed"),
            ("work_id,digest\n,d\n", "f line 2: no work_id"),
        ] {
            assert_eq!(csv(wrong), Err(why.into()));
        }
    }
}
