//! Plays one golden case on one server in one protocol.
//!
//! Every case starts on fresh connections with an emptied server. A mismatch does not end the case, so that one run
//! shows all that is wrong; a missing reply or a lost connection does, since what follows would mean nothing.

use std::collections::HashMap;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use super::case::{Argument, Case, Outcome, Sent, Step};
use super::expect::{Protocol, Saved};
use crate::resp::{Address, Client, ClientError, Nil, Value};

/// How long a blocked connection must stay silent.
const QUIET: Duration = Duration::from_millis(80);
/// After closing a connection: time for the server to notice.
const CLOSE_PAUSE: Duration = Duration::from_millis(20);

/// One thing that was not as expected.
#[derive(Debug)]
pub struct Mismatch {
    /// The command, with its connection.
    pub command: String,
    /// How sure we were, where the step says so.
    pub mark: Option<String>,
    /// What should have come.
    pub want: String,
    /// What came.
    pub got: String,
}

/// Plays the case; an empty list means that it passed.
pub fn play(address: &Address, case: &Case, protocol: Protocol, timeout: Duration) -> Vec<Mismatch> {
    let mut run = Run { address, protocol, timeout, clients: HashMap::new(), saved: Saved::new(), bad: Vec::new() };
    if let Err(error) = run.go(case) {
        let (want, got) = match error {
            ClientError::NoReply => ("a reply", "no reply in time".to_owned()),
            other => ("an open connection", other.to_string()),
        };
        run.note("(connection)", None, want, got);
    }
    run.bad
}

struct Run<'a> {
    address: &'a Address,
    protocol: Protocol,
    timeout: Duration,
    clients: HashMap<String, Client>,
    saved: Saved,
    bad: Vec<Mismatch>,
}

impl Run<'_> {
    fn go(&mut self, case: &Case) -> Result<(), ClientError> {
        let main = self.client("main")?;
        // A server that counts lag exactly by default is asked for the recorded one's rules; others refuse the name.
        main.call(&["CONFIG", "SET", "stream-lag", "compat"])?;
        if main.call(&["FLUSHALL"])?.is_error() {
            main.call(&["FLUSHDB"])?;
        }
        case.steps.iter().try_for_each(|step| self.step(step))
    }

    fn client(&mut self, name: &str) -> Result<&mut Client, ClientError> {
        if !self.clients.contains_key(name) {
            let mut client = Client::connect(self.address, self.timeout)?;
            if self.protocol == Protocol::Three {
                let hello = client.call(&["HELLO", "3"])?;
                if !matches!(hello, Value::Map(_)) {
                    return Err(ClientError::Closed(format!(
                        "HELLO 3 was not answered with a map: {}",
                        to_json(&hello)
                    )));
                }
            }
            self.clients.insert(name.to_owned(), client);
        }
        Ok(self.clients.get_mut(name).expect("it was put there just now"))
    }

    fn note(&mut self, command: &str, mark: Option<&String>, want: impl ToString, got: impl ToString) {
        let (want, got) = (want.to_string(), got.to_string());
        self.bad.push(Mismatch { command: command.to_owned(), mark: mark.cloned(), want, got });
    }

    fn step(&mut self, step: &Step) -> Result<(), ClientError> {
        match step {
            Step::Sleep(time) => {
                thread::sleep(*time);
                Ok(())
            }
            Step::Close(name) => {
                if self.clients.remove(name).is_some() {
                    thread::sleep(CLOSE_PAUSE);
                }
                Ok(())
            }
            Step::Talk { connection, sent, outcome, mark, shown } => {
                self.send(connection, sent)?;
                self.look(connection, outcome, mark.as_ref(), shown)
            }
        }
    }

    fn send(&mut self, connection: &str, sent: &Sent) -> Result<(), ClientError> {
        match sent {
            Sent::Nothing => self.client(connection).map(|_| ()),
            Sent::Raw(bytes) => self.client(connection)?.send_raw(bytes),
            Sent::Command(arguments) => {
                let arguments: Vec<Vec<u8>> = arguments.iter().map(|a| self.fill_in(a)).collect();
                self.client(connection)?.send(&arguments)
            }
        }
    }

    fn fill_in(&self, argument: &Argument) -> Vec<u8> {
        match argument {
            Argument::Bytes(bytes) => bytes.clone(),
            Argument::Template(text) => {
                let replace =
                    |text: String, (name, value): (&String, &String)| text.replace(&format!("${{{name}}}"), value);
                self.saved.iter().fold(text.clone(), replace).into_bytes()
            }
        }
    }

    fn look(
        &mut self,
        connection: &str,
        outcome: &Outcome,
        mark: Option<&String>,
        shown: &str,
    ) -> Result<(), ClientError> {
        let protocol = self.protocol;
        let client = self.client(connection)?;
        match outcome {
            Outcome::Nothing => {}
            Outcome::Silence => {
                if !client.is_silent(QUIET)? {
                    let got = client.receive()?;
                    self.note(shown, mark, "(no reply yet)", to_json(&got));
                }
            }
            Outcome::Closed => match client.receive() {
                Err(ClientError::Closed(_)) => {}
                Err(error) => return Err(error),
                Ok(got) => self.note(shown, mark, "(connection closed)", to_json(&got)),
            },
            Outcome::Reply { took_ms, save, compare_as, .. } => {
                let (want, source) = Step::want(outcome, protocol).expect("checked when the case was read");
                let got = match client.receive() {
                    Ok(got) => got,
                    Err(ClientError::NoReply) => {
                        self.note(shown, mark, source, "(no reply)");
                        return Err(ClientError::Closed("gave up after a missing reply".into()));
                    }
                    Err(error) => return Err(error),
                };
                let took = Instant::now() - client.sent_at();
                if !want.fits(&got, compare_as.unwrap_or(protocol), &self.saved) {
                    self.note(shown, mark, source, to_json(&got));
                } else if let Some((from, to)) = took_ms
                    && !(u128::from(*from)..=u128::from(*to)).contains(&took.as_millis())
                {
                    self.note(
                        shown,
                        mark,
                        format!("a reply after {from}..{to} ms"),
                        format!("{} ms", took.as_millis()),
                    );
                }
                if let Some(name) = save {
                    self.saved.insert(name.clone(), got.text());
                }
            }
        }
        Ok(())
    }
}

/// A reply in the JSON forms of the case files, for messages.
pub fn to_json(value: &Value) -> Json {
    let text = |bytes: &[u8]| match std::str::from_utf8(bytes) {
        Ok(text) => json!(text),
        Err(_) => json!({"hex": bytes.iter().map(|b| format!("{b:02x}")).collect::<String>()}),
    };
    let list = |items: &[Value]| Json::Array(items.iter().map(to_json).collect());
    match value {
        Value::Simple(b) => json!({"s": text(b)}),
        Value::Error(b) => json!({"e": text(b)}),
        Value::Int(n) => json!(n),
        Value::Bulk(b) => text(b),
        Value::Array(items) => list(items),
        Value::Nil(Nil::Bulk) => json!({"nil": "bulk"}),
        Value::Nil(Nil::Array) => json!({"nil": "array"}),
        Value::Nil(Nil::Null) => json!({"nil": "null"}),
        Value::Map(pairs) => {
            json!({"map": pairs.iter().map(|(k, v)| json!([to_json(k), to_json(v)])).collect::<Vec<_>>()})
        }
        Value::Set(items) => json!({"set": list(items)}),
        Value::Push(items) => json!({"push": list(items)}),
        Value::Double(b) => json!({"double": text(b)}),
        Value::Bool(b) => json!({"bool": b}),
        Value::Big(b) => json!({"big": text(b)}),
        Value::Verbatim(b) => json!({"verbatim": text(b)}),
    }
}
