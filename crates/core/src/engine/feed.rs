//! Bytes of a connection become commands. Stops where the connection must wait (a blocking read, a pause, a close, its
//! share of the turn, replies it does not take) and goes on from there later; what has not been carried out stays in the
//! connection's input.

use super::{Engine, Pause};
use crate::command::table::{self, CommandId, Flags};
use crate::engine::blocked::ClientIndex;
use crate::engine::facts::{Facts, Request};
use crate::limits::{COMMAND_MAX_BYTES, LOG_AHEAD_MAX_BYTES, UNREAD_MAX_BYTES};
use crate::resp::decode::{Caps, Step};
use crate::resp::encode::Reply;
use crate::session::Transaction;
use crate::settings::ClientClass;

// One connection's share of a turn: whatever a client sends at once, others are served in between. When one of these
// is reached, the rest of its input is left for the next turn. A single command is never divided.

/// Bytes of commands: what one recv brings.
const TURN_INPUT_BYTES: usize = 64 * 1024;

/// Bytes of replies.
const TURN_REPLY_BYTES: usize = 1 << 20;

/// Microseconds of commands that may take long.
const TURN_US: u64 = 1000;

impl Engine {
    /// Takes bytes that arrived.
    pub fn feed(&mut self, index: ClientIndex, bytes: &[u8], facts: &Facts<'_>) {
        let limit = self.command_max_bytes();
        let Some(client) = self.client_mut(index) else { return };
        client.received_bytes += bytes.len() as u64;
        if client.closing || client.killed {
            return;
        }
        if client.input.is_empty() && client.wait.is_none() && !client.held_back && !client.stuffed {
            // The usual case: whole commands, carried out from where they arrived.
            let done = self.carry_out(index, bytes, facts);
            if let Some(client) = self.client_mut(index) {
                client.input.extend_from_slice(&bytes[done..]);
            }
            return;
        }
        client.input.extend_from_slice(bytes);
        if client.input_len() > limit {
            let (id, addr, input_bytes) = (client.id, client.addr.clone(), client.input_len());
            self.requests.push(Request::NoteQueryBuffer { client: id, addr, input_bytes });
            self.statistics.query_buffer_disconnections += 1;
            client_kill(self, index);
            return;
        }
        self.go_on(index, facts);
    }

    /// Carries out what a connection has left, if it may.
    pub(super) fn go_on(&mut self, index: ClientIndex, facts: &Facts<'_>) {
        let Some(client) = self.client_mut(index) else { return };
        let waits = client.wait.is_some() || client.held_back || client.stuffed || client.later_listed;
        if waits || client.killed || client.input.is_empty() {
            return;
        }
        // Both: one of the commands may ask how much there is.
        let (mut input, at) = (std::mem::take(&mut client.input), std::mem::take(&mut client.input_at));
        let end = at + self.carry_out(index, &input[at..], facts);
        let Some(client) = self.client_mut(index) else { return };
        if end == input.len() {
            input.clear();
            if input.capacity() > 64 * 1024 {
                input = Vec::new();
            }
        } else if end * 2 >= input.len() {
            // Moved at most once for every byte.
            input.drain(..end);
        } else {
            client.input_at = end;
        }
        // A large value is coming: take memory for it in steps, never for what was only announced.
        let wanted = client.decoder.wanted((input.len() - client.input_at).max(64 * 1024)) + client.input_at;
        if wanted > input.capacity() {
            input.reserve(wanted - input.len());
        }
        client.input = input;
    }

    /// Is there a connection that stopped waiting and has not gone on yet?
    pub fn can_resume(&self) -> bool {
        !self.resume.is_empty()
    }

    /// Has that connection stopped waiting, and not gone on yet though it has sent more meanwhile?
    pub fn resumes(&self, index: ClientIndex) -> bool {
        self.resume.contains(&index) && self.client(index).is_some_and(|client| client.input_len() > 0)
    }

    /// Goes on with every connection that has stopped waiting, as far as the log can follow.
    pub fn resume(&mut self, facts: &Facts<'_>) {
        while self.log.len() < LOG_AHEAD_MAX_BYTES
            && let Some(index) = self.resume.pop_front()
        {
            self.go_on(index, facts);
        }
    }

    /// Largest command, and largest transaction.
    pub(super) fn command_max_bytes(&self) -> usize {
        (self.settings.query_buffer_max_bytes as usize).min(COMMAND_MAX_BYTES)
    }

    /// Goes on with those that have had their share of the last turn, as far as the log can follow.
    pub fn go_on_later(&mut self, facts: &Facts<'_>) {
        let mut list = std::mem::take(&mut self.later).into_iter();
        while self.log.len() < LOG_AHEAD_MAX_BYTES
            && let Some(index) = list.next()
        {
            // Its place may have been given to another since.
            if let Some(client) = self.client_mut(index)
                && std::mem::take(&mut client.later_listed)
            {
                self.go_on(index, facts);
            }
        }
        self.later.extend(list);
    }

    /// Is there input to be carried out that no event will announce?
    pub fn has_later(&self) -> bool {
        !self.later.is_empty()
    }

    /// Bytes of replies that a client has not taken, beyond which nothing of it is read or carried out.
    pub fn unread_max_bytes(&self) -> usize {
        match self.settings.output_limits[ClientClass::Normal as usize].soft_bytes {
            0 => UNREAD_MAX_BYTES,
            soft_bytes => soft_bytes as usize,
        }
    }

    /// A client has taken some of its replies: it may go on if it was stopped because of them.
    pub(super) fn go_on_if_room(&mut self, index: ClientIndex) {
        let unread_max_bytes = self.unread_max_bytes();
        let Some(client) = self.clients.get_mut(index).and_then(Option::as_deref_mut) else { return };
        if client.stuffed && client.output.len() <= unread_max_bytes {
            client.stuffed = false;
            if !client.later_listed {
                client.later_listed = true;
                self.later.push(index);
            }
        }
    }

    /// Has a connection had its share of the turn, with `done` bytes of input and `replied` bytes of replies?
    fn is_share_used(&self, done: usize, replied: usize) -> bool {
        done >= TURN_INPUT_BYTES || replied >= TURN_REPLY_BYTES || self.spent_us >= TURN_US
    }

    /// Carries out the commands at the front of `input`; answers how many bytes they were.
    fn carry_out(&mut self, index: ClientIndex, input: &[u8], facts: &Facts<'_>) -> usize {
        let unread_max_bytes = self.unread_max_bytes();
        let Some(client) = self.client_mut(index) else { return input.len() };
        let mut decoder = std::mem::take(&mut client.decoder);
        let unread_bytes = client.output.len();
        self.spent_us = 0;
        self.begin_batch(facts);
        let mut done = 0;
        while done < input.len() {
            let open = self.acl.is_open();
            let Some(client) = self.client_mut(index) else { return input.len() };
            let authenticated = client.authenticated || open;
            let caps = Caps { bulk_max: self.settings.bulk_max_bytes as usize, authenticated };
            let rest = &input[done..];
            match decoder.step(rest, caps) {
                Step::Incomplete => break,
                Step::Command(length) => {
                    let args = decoder.args(rest);
                    if !args.is_empty() {
                        if self.pause.is_some() && self.is_held_back(index, args) {
                            // Decoded again when the pause is over.
                            decoder.reset();
                            self.paused.push(index);
                            if let Some(client) = self.client_mut(index) {
                                client.held_back = true;
                            }
                            break;
                        }
                        self.execute(index, args, facts);
                    }
                    done += length;
                    decoder.reset();
                    let Some(client) = self.client(index) else { return input.len() };
                    if client.closing || client.killed {
                        done = input.len();
                        break;
                    }
                    if client.wait.is_some() || done == input.len() {
                        break;
                    }
                    let output_len = client.output.len();
                    if output_len > unread_max_bytes {
                        self.clients[index].as_deref_mut().expect("it was just there").stuffed = true;
                        break;
                    }
                    if self.is_share_used(done, output_len.saturating_sub(unread_bytes)) {
                        self.clients[index].as_deref_mut().expect("it was just there").later_listed = true;
                        self.later.push(index);
                        break;
                    }
                }
                Step::Broken(text) => {
                    self.statistics.note_error(text.as_bytes());
                    let mut out = self.take_output(index);
                    if let Some(client) = self.client_mut(index) {
                        Reply { out: &mut out, protocol: client.protocol }.error(text.as_bytes());
                        client.closing = true;
                    }
                    self.finish_reply(index, out, 0);
                    done = input.len();
                    decoder.reset();
                    break;
                }
            }
        }
        if let Some(client) = self.client_mut(index) {
            client.decoder = decoder;
        }
        done
    }

    fn is_held_back(&self, index: ClientIndex, args: crate::command::args::Args<'_>) -> bool {
        let Ok(spec) = table::resolve(args) else { return false };
        match self.pause {
            None => false,
            // The way out of a pause must stay open.
            Some(_) if matches!(spec.id, CommandId::ClientUnpause | CommandId::ClientPause) => false,
            Some((_, Pause::All)) => true,
            Some((_, Pause::Write)) if spec.id == CommandId::Exec => {
                self.client(index).and_then(|client| client.transaction.as_deref()).is_some_and(Transaction::writes)
            }
            Some((_, Pause::Write)) => {
                spec.flags.has(Flags::WRITE) || matches!(spec.id, CommandId::Eval | CommandId::EvalSha)
            }
        }
    }
}

fn client_kill(engine: &mut Engine, index: ClientIndex) {
    if let Some(client) = engine.client_mut(index) {
        client.killed = true;
    }
    engine.list_for_flush(index);
}
