//! Where replies come from: a server, with every reply kept or not, or what was kept of one.
//!
//! A kept reply is its bytes in `replies.bin`, and a line in `replies.jsonl` with the command, the length and the SHA-256.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::Trouble;
use super::lines::Lines;
use crate::client::{Connection, Reply, encode, reply};

/// Longest reply that is read back, in bytes.
const REPLY_MAX_BYTES: u64 = 4 << 30;

/// The bytes of replies.
pub const REPLIES: &str = "replies.bin";

/// What each is the reply to.
pub const INDEX: &str = "replies.jsonl";

/// Answers commands.
pub trait Source {
    /// Sends some at once; the reply of each. Error replies are replies.
    fn ask_all(&mut self, commands: &[Vec<String>]) -> Result<Vec<Reply>, Trouble>;
}

/// Asks one, and takes an error reply for what it is.
pub(super) fn ask(source: &mut dyn Source, words: &[&str]) -> Result<Reply, Trouble> {
    let reply = ask_raw(source, words)?;
    match reply.error() {
        Some(text) => Err(Trouble(text)),
        None => Ok(reply),
    }
}

/// Asks one.
pub(super) fn ask_raw(source: &mut dyn Source, words: &[&str]) -> Result<Reply, Trouble> {
    let command: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
    source.ask_all(&[command])?.pop().ok_or_else(|| Trouble("no reply".into()))
}

/// SHA-256 in hexadecimal digits.
pub fn hex(hash: impl AsRef<[u8]>) -> String {
    hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A server.
pub struct Live {
    connection: Connection,
    keep: Option<(BufWriter<File>, BufWriter<File>)>,
    number: u64,
}

impl Live {
    /// Keeps every reply in `folder`, if one is given.
    pub fn new(connection: Connection, folder: Option<&Path>) -> Result<Live, Trouble> {
        let file = |folder: &Path, name: &str| File::create_new(folder.join(name)).map(BufWriter::new);
        let keep = match folder {
            Some(folder) => Some((file(folder, REPLIES)?, file(folder, INDEX)?)),
            None => None,
        };
        Ok(Live { connection, keep, number: 0 })
    }

    /// All is in the files.
    pub fn finish(self) -> Result<(), Trouble> {
        if let Some((mut bytes, mut index)) = self.keep {
            bytes.flush()?;
            index.flush()?;
        }
        Ok(())
    }
}

impl Source for Live {
    fn ask_all(&mut self, commands: &[Vec<String>]) -> Result<Vec<Reply>, Trouble> {
        let lost = |failure: crate::client::Failure| Trouble(failure.to_string());
        let mut bytes = Vec::new();
        commands.iter().for_each(|command| encode(command, &mut bytes));
        self.connection.send(&bytes).map_err(lost)?;
        let mut replies = Vec::new();
        for command in commands {
            let mut raw = Vec::new();
            replies.push(self.connection.receive(Some(&mut raw)).map_err(lost)?);
            self.number += 1;
            if let Some((bytes, index)) = &mut self.keep {
                let line = json!({
                    "number": self.number, "command": command, "len_bytes": raw.len(), "sha256": hex(Sha256::digest(&raw)),
                });
                bytes.write_all(&raw)?;
                super::write_line(index, &line)?;
            }
        }
        Ok(replies)
    }
}

/// Replies that were kept.
pub struct Kept {
    bytes: BufReader<File>,
    index: Lines<BufReader<File>>,
    number: u64,
}

impl Kept {
    /// Opens what [`Live`] kept.
    pub fn open(folder: &Path) -> Result<Kept, Trouble> {
        let file = |name: &str| match File::open(folder.join(name)) {
            Ok(file) => Ok(BufReader::new(file)),
            Err(error) => Err(Trouble(format!("{name}: {error}"))),
        };
        Ok(Kept { bytes: file(REPLIES)?, index: Lines::of(file(INDEX)?), number: 0 })
    }

    /// Is nothing left?
    pub fn finish(&mut self) -> Result<(), Trouble> {
        if self.index.next().is_some() {
            return Err(Trouble(format!("{INDEX} has more than the audit asked: line {}", self.number + 1)));
        }
        match self.bytes.fill_buf()?.is_empty() {
            true => Ok(()),
            false => Err(Trouble(format!("{REPLIES} has more than {INDEX} tells of"))),
        }
    }

    fn next(&mut self, command: &[String]) -> Result<Reply, Trouble> {
        self.number += 1;
        let at = format!("{INDEX} line {}", self.number);
        let line = self.index.next().ok_or_else(|| Trouble(format!("{at}: missing, for {command:?}")))??;
        let line: Value = serde_json::from_str(&line).map_err(|error| Trouble(format!("{at}: {error}")))?;
        if line["number"] != json!(self.number) || line["command"] != json!(command) {
            return Err(Trouble(format!("{at}: is not about {command:?}")));
        }
        let len = line["len_bytes"].as_u64().filter(|&len| len <= REPLY_MAX_BYTES);
        let len = len.ok_or_else(|| Trouble(format!("{at}: no length")))?;
        let mut raw = Vec::new();
        self.bytes.by_ref().take(len).read_to_end(&mut raw)?;
        if line["sha256"] != json!(hex(Sha256::digest(&raw))) {
            return Err(Trouble(format!(
                "{REPLIES}: reply {} is not the one of which {INDEX} has the sum",
                self.number
            )));
        }
        match reply::decode(&raw) {
            Ok(Some((reply, used))) if used == raw.len() => Ok(reply),
            _ => Err(Trouble(format!("{REPLIES}: reply {} is no reply", self.number))),
        }
    }
}

impl Source for Kept {
    fn ask_all(&mut self, commands: &[Vec<String>]) -> Result<Vec<Reply>, Trouble> {
        commands.iter().map(|command| self.next(command)).collect()
    }
}
