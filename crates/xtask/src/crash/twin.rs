//! What an owner believes the server to hold: the simulation's model, played twice with the same commands, once at the
//! earliest and once at the latest moment at which the server may have carried each out.
//!
//! What does not depend on time is the same in both, and must be so at the server; a time lies between theirs. The load
//! must hold no command whose effect depends on time in any other way.

use impel_sim::model::group::Holder;
use impel_sim::model::stream::Stream;
use impel_sim::model::value::Value as Answer;
use impel_sim::model::{Content, Lag, Model};

use super::command::Command;
use super::facts::{Fact, Facts, read_facts};
use super::id::{Span, parse_id};
use super::owner::Abilities;
use crate::resp::{Nil, Value};

/// `stream-node-max-entries`; the load trims exactly, so that it does not matter.
const NODE_MAX: usize = 100;

/// Both models.
#[derive(Clone, Debug)]
pub struct Twin {
    early: Model,
    late: Model,
}

/// Carries a command out on one model; answers its reply.
pub fn run_on(model: &mut Model, command: &Command) -> Value {
    let mut reply = Value::Nil(Nil::Array);
    for words in &command.parts {
        let words: Vec<Vec<u8>> = words.iter().map(|word| word.clone().into_bytes()).collect();
        let answers = model.command(0, &words);
        reply = answers.into_iter().next().map_or(Value::Nil(Nil::Array), |(_, answer)| value(answer));
    }
    reply
}

impl Twin {
    /// An empty server.
    pub fn new() -> Self {
        let model = Model::new(0, NODE_MAX, Lag::Exact);
        Twin { early: model.clone(), late: model }
    }

    /// Carries a command out and answers the reply; `when` is the span in which the server did, and `id` the last id that it is known to have
    /// made, if it made one of its clock.
    pub fn run(&mut self, command: &Command, when: Span, id: Option<&str>) -> Value {
        let made = id.filter(|_| command.server_id.is_some()).and_then(parse_id);
        let when = match made {
            Some((ms, _)) => Span::exact((ms as i64).clamp(when.from_ms, when.to_ms)),
            None => when,
        };
        (self.early.now, self.late.now) = (when.from_ms as u64, when.to_ms as u64);
        run_on(&mut self.late, command);
        run_on(&mut self.early, command)
    }

    /// A copy to try commands on.
    pub fn scratch(&self) -> Model {
        self.early.clone()
    }

    /// The model of the earliest moment, to look at.
    pub fn model(&self) -> &Model {
        &self.early
    }

    /// What both tell of these keys.
    ///
    /// # Errors
    /// When they tell something of another shape than expected.
    pub fn facts(&mut self, names: &[String], abilities: Abilities) -> Result<(Facts, Facts), String> {
        let facts = |model: &mut Model| {
            let now = Span::exact(model.now as i64);
            let mut ask = |words: &[&str]| {
                let command = Command::new(words.iter().map(|word| (*word).to_owned()).collect());
                Ok((run_on(model, &command), now))
            };
            read_facts(&mut ask, names, abilities)
        };
        Ok((facts(&mut self.early)?, facts(&mut self.late)?))
    }

    /// From now on the times are what the server said: they must stay so through the next crash.
    pub fn adopt(&mut self, server: &Facts) {
        let moment = |what: String| match server.get(&what) {
            Some(Fact::Moment(span)) => Some(*span),
            _ => None,
        };
        for (model, is_early) in [(&mut self.early, true), (&mut self.late, false)] {
            // Where scans began may be lost with the connections.
            model.disconnect_all();
            for (name, key) in &mut model.keys {
                let name = String::from_utf8_lossy(name);
                if let (Some(end), Some(seen)) = (&mut key.expires, moment(format!("{name} deadline"))) {
                    *end = if is_early { (*end).max(seen.from_ms as u64) } else { (*end).min(seen.to_ms as u64) };
                }
                let Content::Stream(stream) = &mut key.content else { continue };
                for (group_name, group) in &mut stream.groups {
                    let of = format!("{name} {}", String::from_utf8_lossy(group_name));
                    for (id, pending) in &mut group.pel {
                        let seen = moment(format!("{of} pending {} delivered", id.text()));
                        if let (Holder::Consumer(_), Some(seen)) = (&pending.holder, seen) {
                            pending.time = seen.from_ms as u64;
                        }
                    }
                }
            }
        }
    }
}

/// The stream under a key of a model.
pub fn stream<'m>(model: &'m Model, key: &str) -> Option<&'m Stream> {
    model.stream(key.as_bytes()).ok().flatten()
}

/// The model's reply as it comes in RESP2.
fn value(answer: Answer) -> Value {
    let pair = |(name, of): (Answer, Answer)| [value(name), value(of)];
    match answer {
        Answer::Status(text) => Value::Simple(text.into()),
        Answer::Error(text) => Value::Error(text),
        Answer::Int(number) => Value::Int(number),
        Answer::Bulk(bytes) => Value::Bulk(bytes),
        Answer::Null => Value::Nil(Nil::Bulk),
        Answer::NullArray => Value::Nil(Nil::Array),
        Answer::Array(items) => Value::Array(items.into_iter().map(value).collect()),
        Answer::Map(pairs) => Value::Array(pairs.into_iter().flat_map(pair).collect()),
        Answer::Raw(_) => unreachable!("only the model of work answers so, which is not asked here"),
        Answer::Streams(pairs) => Value::Array(pairs.into_iter().map(|of| Value::Array(pair(of).into())).collect()),
    }
}

/// A reply on one line, for people.
pub fn shown(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(" ")),
        Value::Nil(_) => "nil".to_owned(),
        scalar => scalar.text(),
    }
}

/// Whether the reply of a command is the wanted one.
pub fn allows(command: &Command, wanted: &Value, got: &Value) -> bool {
    if command.any_order { same_reply(&sorted(wanted), &sorted(got)) } else { same_reply(wanted, got) }
}

/// Whether a reply is the wanted one. Of errors only the code counts, also inside a transaction; of an entry with its idle
/// time, only whether somebody has it.
pub fn same_reply(wanted: &Value, got: &Value) -> bool {
    let code = |text: &[u8]| text.split(|byte| *byte == b' ').next().map(<[u8]>::to_vec);
    match (wanted, got) {
        (Value::Error(wanted), Value::Error(got)) => code(wanted) == code(got),
        (Value::Array(wanted), Value::Array(got)) => match (wanted.as_slice(), got.as_slice()) {
            (
                [id, fields @ Value::Array(_), Value::Int(idle_ms), Value::Int(count)],
                [got_id, got_fields, Value::Int(got_idle_ms), Value::Int(got_count)],
            ) => {
                let same_holder = (*idle_ms < 0) == (*got_idle_ms < 0);
                id == got_id && fields == got_fields && same_holder && count == got_count
            }
            _ => wanted.len() == got.len() && wanted.iter().zip(got).all(|(wanted, got)| same_reply(wanted, got)),
        },
        _ => wanted == got,
    }
}

/// The reply of a read with its entries in the order of their ids.
fn sorted(reply: &Value) -> Value {
    let id = |entry: &Value| match entry {
        Value::Array(parts) => parts.first().and_then(|id| parse_id(&id.text())),
        _ => None,
    };
    let Value::Array(streams) = reply else { return reply.clone() };
    let sort = |stream: &Value| match stream {
        Value::Array(parts) => match parts.as_slice() {
            [key, Value::Array(entries)] => {
                let mut entries = entries.clone();
                entries.sort_by_key(id);
                Value::Array(vec![key.clone(), Value::Array(entries)])
            }
            _ => stream.clone(),
        },
        _ => stream.clone(),
    };
    Value::Array(streams.iter().map(sort).collect())
}
