//! The load that several connections make on one stream: producers, and consumers of two groups that block, read,
//! and acknowledge most of what they get.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use super::check::{Ack, Delivery, Findings, GroupLog, GroupView, Mark, SharedLog, SharedView, check_shared};
use super::id::{Id, id_text};
use super::owner::REPLY_WAIT;
use super::random::Random;
use super::view::{ask, entry, id, int, items, read_entries, read_pending, read_position, trouble};
use crate::resp::{Address, Client, ClientError, Value};

/// Producers of the stream.
const PRODUCERS: u64 = 3;
/// Its groups.
const GROUPS: &[&str] = &["east", "west"];
/// The consumers of each group.
const CONSUMERS: &[&str] = &["one", "two"];
/// A stream that has become longer is deleted, and a new one begun: each check reads all of it.
const MAX_LENGTH: usize = 20_000;

/// The stream and all that is known of it.
#[derive(Debug)]
pub struct Shared {
    generation: u64,
    seed: u64,
    round: u64,
    log: SharedLog,
    /// The next number of each producer.
    next: BTreeMap<u64, u64>,
    deleted: Option<String>,
    trouble: Vec<String>,
    /// Commands answered.
    pub answers: usize,
}

/// What one producer did in a round.
#[derive(Debug, Default)]
struct Produced {
    added: Vec<(Id, Mark)>,
    adding: Option<Mark>,
}

/// What one consumer did in a round.
#[derive(Debug, Default)]
struct Consumed {
    delivered: Vec<(Id, Mark)>,
    acks_sent: Vec<Id>,
    acks_done: Vec<Id>,
    reading: bool,
    answers: usize,
}

impl Shared {
    /// The stream whose load belongs to `seed`; [`Shared::prepare`] makes it.
    pub fn new(seed: u64) -> Self {
        Shared {
            generation: 0,
            seed,
            round: 0,
            log: SharedLog::default(),
            next: BTreeMap::new(),
            deleted: None,
            trouble: Vec::new(),
            answers: 0,
        }
    }

    fn key(&self) -> String {
        format!("shared:{}", self.generation)
    }

    /// Makes the groups.
    ///
    /// # Errors
    /// When the server does not.
    pub fn prepare(&mut self, client: &mut Client) -> Result<(), String> {
        self.log = SharedLog::default();
        for group in GROUPS {
            ask(client, &["XGROUP", "CREATE", &self.key(), group, "0", "MKSTREAM"])?;
            self.log.groups.insert((*group).to_owned(), GroupLog::default());
        }
        Ok(())
    }

    /// All connections at work until they end, which they may not before `killed` is set.
    pub fn drive(&mut self, address: &Address, killed: &AtomicBool) {
        self.round += 1;
        let (key, seed, next) = (&self.key(), self.seed ^ self.round, &self.next);
        let (produced, consumed) = std::thread::scope(|scope| {
            let producers: Vec<_> = (0..PRODUCERS)
                .map(|producer| {
                    let first = next.get(&producer).copied().unwrap_or(0);
                    scope.spawn(move || {
                        let mut log = Produced::default();
                        let outcome = produce(address, key, producer, first, &mut log);
                        (log, trouble(outcome, killed))
                    })
                })
                .collect();
            let pairs = GROUPS.iter().flat_map(|group| CONSUMERS.iter().map(move |consumer| (*group, *consumer)));
            let consumers: Vec<_> = (100..)
                .zip(pairs)
                .map(|(number, (group, consumer))| {
                    scope.spawn(move || {
                        let (mut log, random) = (Consumed::default(), Random::part(seed, number));
                        let outcome = consume(address, key, group, consumer, random, &mut log);
                        (group, consumer, log, trouble(outcome, killed))
                    })
                })
                .collect();
            (
                producers.into_iter().map(|thread| thread.join().expect("a producer")).collect::<Vec<_>>(),
                consumers.into_iter().map(|thread| thread.join().expect("a consumer")).collect::<Vec<_>>(),
            )
        });
        for (log, trouble) in produced {
            self.trouble.extend(trouble);
            self.answers += log.added.len();
            self.log.added.extend(log.added);
            self.log.adding.extend(log.adding);
        }
        for (group, consumer, log, trouble) in consumed {
            self.trouble.extend(trouble);
            self.answers += log.answers;
            self.merge(group, consumer, log);
        }
        // What was delivered before the reply to its XADD came is known only now.
        self.next = (0..PRODUCERS).map(|producer| (producer, self.numbers_of(producer))).collect();
    }

    /// The first number that a producer has not used, whether it was answered or not.
    fn numbers_of(&self, producer: u64) -> u64 {
        let marks = self.log.added.values().chain(&self.log.adding);
        marks.filter(|mark| mark.0 == producer).map(|mark| mark.1 + 1).max().unwrap_or(0)
    }

    fn merge(&mut self, group: &str, consumer: &str, log: Consumed) {
        let known = self.log.groups.get_mut(group).expect("prepared");
        if log.reading {
            known.reading.insert(consumer.to_owned());
        }
        for (id, mark) in log.delivered {
            let delivery = Delivery { consumer: consumer.to_owned(), ack: Ack::None };
            if let Some(before) = known.delivered.insert(id, delivery) {
                let id = id_text(id);
                self.trouble.push(format!("{group} {id}: delivered to {consumer}, before that {before:?}"));
            }
            let right = match self.log.added.get(&id) {
                Some(added) => *added == mark,
                None => self.log.adding.contains(&mark),
            };
            if !right {
                self.trouble.push(format!("{group} {}: delivered as {mark:?}, which was not sent", id_text(id)));
            }
        }
        for (ids, ack) in [(log.acks_sent, Ack::Sent), (log.acks_done, Ack::Done)] {
            for id in ids {
                known.delivered.get_mut(&id).expect("only what was delivered is acknowledged").ack = ack;
            }
        }
    }

    /// Looks at the whole stream and both groups. Answers the number of facts compared.
    ///
    /// # Errors
    /// What is not as it should be.
    pub fn check(&mut self, client: &mut Client) -> Result<usize, String> {
        let key = self.key();
        let outcome = self.judge(client);
        if outcome.is_err() || self.log.added.len() > MAX_LENGTH {
            self.generation += 1;
            self.next.clear();
            self.prepare(client)?;
            if outcome.is_ok() {
                ask(client, &["DEL", &key])?;
                self.deleted = Some(key.clone());
            }
        }
        outcome.map_err(|what| format!("{key}: {what}"))
    }

    fn judge(&mut self, client: &mut Client) -> Result<usize, String> {
        if !self.trouble.is_empty() {
            return Err(std::mem::take(&mut self.trouble).join("\n  "));
        }
        if let Some(deleted) = &self.deleted
            && int(&ask(client, &["EXISTS", deleted])?)? != 0
        {
            return Err(format!("{deleted} was deleted and is there again"));
        }
        let view = read(client, &self.key())?;
        let Findings { checks, wrong } = check_shared(&self.log, &view);
        if !wrong.is_empty() {
            return Err(wrong[..wrong.len().min(20)].join("\n  "));
        }
        adopt(&mut self.log, view);
        Ok(checks)
    }
}

/// What could have gone either way is now known.
fn adopt(log: &mut SharedLog, view: SharedView) {
    log.added.extend(view.entries);
    log.adding.clear();
    for (name, seen) in view.groups {
        let group = log.groups.get_mut(&name).expect("checked");
        group.reading.clear();
        for delivery in group.delivered.iter_mut().filter(|(_, delivery)| delivery.ack == Ack::Sent) {
            delivery.1.ack = if seen.pending.contains_key(delivery.0) { Ack::None } else { Ack::Done };
        }
        for (id, (consumer, _)) in seen.pending {
            group.delivered.entry(id).or_insert(Delivery { consumer, ack: Ack::None });
        }
    }
}

fn read(client: &mut Client, key: &str) -> Result<SharedView, String> {
    let mut view = SharedView::default();
    for (id, fields) in read_entries(client, key)? {
        view.entries.push((id, mark(&fields)?));
    }
    for group in GROUPS {
        let (position, pending) = (read_position(client, key, group)?, read_pending(client, key, group)?);
        view.groups.insert((*group).to_owned(), GroupView { position, pending });
    }
    Ok(view)
}

fn mark(fields: &[String]) -> Result<Mark, String> {
    let number = |text: &String| text.parse().map_err(|_| format!("an entry holds {fields:?}"));
    match fields {
        [p, producer, n, value] if p == "p" && n == "n" => Ok((number(producer)?, number(value)?)),
        other => Err(format!("an entry holds {other:?}")),
    }
}

fn produce(
    address: &Address,
    key: &str,
    producer: u64,
    first: u64,
    log: &mut Produced,
) -> Result<Option<String>, ClientError> {
    let mut client = Client::connect(address, REPLY_WAIT)?;
    for number in first.. {
        log.adding = Some((producer, number));
        let reply = client.call(&["XADD", key, "*", "p", &producer.to_string(), "n", &number.to_string()])?;
        match id(&reply) {
            Ok(id) => log.added.push((id, (producer, number))),
            Err(error) => return Ok(Some(format!("XADD: {error}"))),
        }
        log.adding = None;
    }
    Ok(None)
}

fn consume(
    address: &Address,
    key: &str,
    group: &str,
    consumer: &str,
    mut random: Random,
    log: &mut Consumed,
) -> Result<Option<String>, ClientError> {
    let mut client = Client::connect(address, REPLY_WAIT)?;
    loop {
        let count = random.between(1, 10).to_string();
        let words = ["XREADGROUP", "GROUP", group, consumer, "COUNT", &count, "BLOCK", "50", "STREAMS", key, ">"];
        log.reading = true;
        let reply = client.call(&words)?;
        (log.reading, log.answers) = (false, log.answers + 1);
        let given = match &reply {
            Value::Nil(_) => continue,
            other => match deliveries(other) {
                Ok(given) => given,
                Err(error) => return Ok(Some(format!("{}: {error}", words.join(" ")))),
            },
        };
        log.delivered.extend_from_slice(&given);
        // What is not acknowledged now never will be.
        let ids: Vec<Id> = given.iter().map(|(id, _)| *id).filter(|_| random.chance(85)).collect();
        if ids.is_empty() {
            continue;
        }
        let words: Vec<String> =
            ["XACK", key, group].into_iter().map(str::to_owned).chain(ids.iter().map(|id| id_text(*id))).collect();
        log.acks_sent.extend_from_slice(&ids);
        let reply = client.call(&words)?;
        log.answers += 1;
        if reply != Value::Int(ids.len() as i64) {
            return Ok(Some(format!("{} answers {}", words.join(" "), reply.text())));
        }
        log.acks_done.extend(ids);
    }
}

fn deliveries(reply: &Value) -> Result<Vec<(Id, Mark)>, String> {
    let mut given = Vec::new();
    for stream in items(reply)? {
        let [_, entries] = items(stream)? else { return Err(format!("it answers {}", stream.text())) };
        for shown in items(entries)? {
            let (id, fields) = entry(shown)?;
            given.push((id, mark(&fields)?));
        }
    }
    Ok(given)
}
