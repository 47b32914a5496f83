//! The load that looks at order and speed: one connection adds to a stream of its own in pipelines, with a running
//! number as the value of each entry.

use std::sync::atomic::AtomicBool;

use super::check::{Findings, check_pipeline};
use super::id::{Id, id_text};
use super::owner::REPLY_WAIT;
use super::random::Random;
use super::view::{ask, field, id, int, read_entries, trouble};
use crate::resp::{Address, Client, ClientError, encode_command};

/// A stream that has become longer is deleted, and a new one begun: each check reads all of it.
const MAX_LENGTH: usize = 20_000;

/// One such connection and its stream.
#[derive(Debug)]
pub struct Pipeline {
    name: String,
    generation: u64,
    random: Random,
    acknowledged: Vec<(Id, u64)>,
    /// The first number that was not sent.
    sent: u64,
    /// A stream deleted with a reply: it may not come back.
    deleted: Option<String>,
    trouble: Vec<String>,
    /// Commands answered.
    pub answers: usize,
}

impl Pipeline {
    /// Number `number`, whose load belongs to `seed`.
    pub fn new(seed: u64, number: u64) -> Self {
        Pipeline {
            name: format!("pipeline{number}"),
            generation: 0,
            random: Random::part(seed, number),
            acknowledged: Vec::new(),
            sent: 0,
            deleted: None,
            trouble: Vec::new(),
            answers: 0,
        }
    }

    fn key(&self) -> String {
        format!("{}:{}", self.name, self.generation)
    }

    /// Sends pipelines until the connection ends, which it may not before `killed` is set.
    pub fn drive(&mut self, address: &Address, killed: &AtomicBool) {
        let outcome = Client::connect(address, REPLY_WAIT).and_then(|mut client| {
            while self.trouble.is_empty() {
                self.batch(&mut client)?;
            }
            Ok(None)
        });
        self.trouble.extend(trouble(outcome, killed));
    }

    fn batch(&mut self, client: &mut Client) -> Result<(), ClientError> {
        let (key, count) = (self.key(), self.random.between(16, 64));
        let numbers = self.sent..self.sent + count;
        let commands =
            numbers.clone().map(|number| encode_command(&["XADD", key.as_str(), "*", "n", &number.to_string()]));
        let bytes = commands.collect::<Vec<_>>().concat();
        self.sent += count;
        client.send_raw(&bytes)?;
        for number in numbers {
            let reply = client.receive()?;
            match id(&reply) {
                Ok(id) => self.acknowledged.push((id, number)),
                Err(error) => {
                    self.trouble.push(format!("XADD of {number}: {error}"));
                    return Ok(());
                }
            }
            self.answers += 1;
        }
        Ok(())
    }

    /// Looks at the whole stream. Answers the number of facts compared.
    ///
    /// # Errors
    /// What is not as it should be.
    pub fn check(&mut self, client: &mut Client) -> Result<usize, String> {
        let outcome = self.judge(client);
        let key = self.key();
        if outcome.is_err() || self.acknowledged.len() > MAX_LENGTH {
            self.begin_anew();
            if outcome.is_ok() {
                ask(client, &["DEL", &key])?;
                self.deleted = Some(key.clone());
            }
        }
        outcome.map_err(|what| format!("{key}: {what}"))
    }

    fn begin_anew(&mut self) {
        self.generation += 1;
        self.acknowledged.clear();
        self.sent = 0;
    }

    fn judge(&mut self, client: &mut Client) -> Result<usize, String> {
        if !self.trouble.is_empty() {
            return Err(std::mem::take(&mut self.trouble).join("\n"));
        }
        if let Some(deleted) = &self.deleted
            && int(&ask(client, &["EXISTS", deleted])?)? != 0
        {
            return Err(format!("{deleted} was deleted and is there again"));
        }
        let key = self.key();
        let entries = read_entries(client, &key)?.into_iter();
        let seen = entries.map(|(id, fields)| Ok((id, number(&fields)?))).collect::<Result<Vec<_>, String>>()?;
        let Findings { checks, wrong } = check_pipeline(&self.acknowledged, self.sent, &seen);
        if !wrong.is_empty() {
            return Err(wrong[..wrong.len().min(20)].join("\n  "));
        }
        if let Some((last, _)) = seen.last() {
            let info = ask(client, &["XINFO", "STREAM", &key])?;
            let (shown, added) = (id(field(&info, "last-generated-id")?)?, int(field(&info, "entries-added")?)?);
            if shown != *last || added != seen.len() as i64 {
                return Err(format!(
                    "{} entries up to {}, but last-generated-id {} and entries-added {added}",
                    seen.len(),
                    id_text(*last),
                    id_text(shown)
                ));
            }
        }
        self.sent = seen.len() as u64;
        self.acknowledged = seen;
        Ok(checks)
    }
}

fn number(fields: &[String]) -> Result<u64, String> {
    match fields {
        [name, value] if name == "n" => value.parse().map_err(|_| format!("an entry holds {value:?}")),
        other => Err(format!("an entry holds {other:?}")),
    }
}
