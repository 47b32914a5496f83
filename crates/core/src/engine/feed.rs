//! Bytes of a connection become commands. Stops where the connection must wait (a blocking read, a pause, a close) and
//! goes on from there later; what has not been carried out stays in the connection's input.

use super::{Engine, Pause};
use crate::command::table::{self, CommandId, Flags};
use crate::engine::blocked::ClientIndex;
use crate::engine::facts::Facts;
use crate::limits::OUTPUT_AHEAD_MAX_BYTES;
use crate::resp::decode::{Caps, Step};
use crate::resp::encode::Reply;

impl Engine {
    /// Takes bytes that arrived.
    pub fn feed(&mut self, index: ClientIndex, bytes: &[u8], facts: &Facts<'_>) {
        let limit = self.settings.query_buffer_max_bytes as usize;
        let Some(client) = self.client_mut(index) else { return };
        client.received_bytes += bytes.len() as u64;
        if client.closing || client.killed {
            return;
        }
        if client.input.is_empty() && client.wait.is_none() && !client.held_back {
            // The usual case: whole commands, carried out from where they arrived.
            let done = self.carry_out(index, bytes, facts);
            if let Some(client) = self.client_mut(index) {
                client.input.extend_from_slice(&bytes[done..]);
            }
            return;
        }
        client.input.extend_from_slice(bytes);
        if client.input.len() > limit {
            self.statistics.query_buffer_disconnections += 1;
            client_kill(self, index);
            return;
        }
        self.go_on(index, facts);
    }

    /// Carries out what a connection has left, if it may.
    pub(super) fn go_on(&mut self, index: ClientIndex, facts: &Facts<'_>) {
        let Some(client) = self.client_mut(index) else { return };
        if client.wait.is_some() || client.held_back || client.input.is_empty() {
            return;
        }
        let mut input = std::mem::take(&mut client.input);
        let done = self.carry_out(index, &input, facts);
        let Some(client) = self.client_mut(index) else { return };
        if done == input.len() && input.capacity() > 64 * 1024 {
            input = Vec::new();
        } else {
            input.drain(..done);
        }
        // A large value is coming: take memory for it in steps, never for what was only announced.
        let wanted = client.decoder.wanted(input.len().max(64 * 1024));
        if wanted > input.capacity() {
            input.reserve(wanted - input.len());
        }
        client.input = input;
    }

    /// Output of a connection was sent: it may go on at the next [`Engine::resume`].
    pub fn output_taken(&mut self, index: ClientIndex) {
        if let Some(client) = self.client_mut(index)
            && client.output_full
            && client.output.len() <= OUTPUT_AHEAD_MAX_BYTES
        {
            client.output_full = false;
            self.resume.push_back(index);
        }
    }

    /// Is there a connection that may go on?
    pub fn can_resume(&self) -> bool {
        !self.resume.is_empty()
    }

    /// Goes on with every connection that may.
    pub fn resume(&mut self, facts: &Facts<'_>) {
        while let Some(index) = self.resume.pop_front() {
            self.go_on(index, facts);
        }
    }

    /// Carries out the commands at the front of `input`; answers how many bytes they were.
    fn carry_out(&mut self, index: ClientIndex, input: &[u8], facts: &Facts<'_>) -> usize {
        let Some(client) = self.client_mut(index) else { return input.len() };
        let mut decoder = std::mem::take(&mut client.decoder);
        let mut done = 0;
        while done < input.len() {
            let Some(client) = self.client_mut(index) else { return input.len() };
            if client.output.len() > OUTPUT_AHEAD_MAX_BYTES {
                client.output_full = true;
                break;
            }
            let authenticated = client.authenticated;
            let caps = Caps { bulk_max: self.settings.bulk_max_bytes as usize, authenticated };
            let rest = &input[done..];
            match decoder.step(rest, caps) {
                Step::Incomplete => break,
                Step::Command(length) => {
                    let args = decoder.args(rest);
                    if !args.is_empty() {
                        if self.pause.is_some() && self.is_held_back(args) {
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
                    match self.client(index) {
                        Some(client) if client.closing || client.killed => {
                            done = input.len();
                            break;
                        }
                        Some(client) if client.wait.is_some() => break,
                        Some(_) => {}
                        None => return input.len(),
                    }
                }
                Step::Broken(text) => {
                    self.statistics.note_error(text.as_bytes());
                    if let Some(client) = self.client_mut(index) {
                        let protocol = client.protocol;
                        let mut out = client.output.take();
                        Reply { out: &mut out, protocol }.error(text.as_bytes());
                        client.closing = true;
                        self.finish_reply(index, out, 0);
                    }
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

    fn is_held_back(&self, args: crate::command::args::Args<'_>) -> bool {
        let Ok(spec) = table::resolve(args) else { return false };
        match self.pause {
            None => false,
            // The way out of a pause must stay open.
            Some(_) if matches!(spec.id, CommandId::ClientUnpause | CommandId::ClientPause) => false,
            Some((_, Pause::All)) => true,
            Some((_, Pause::Write)) => {
                use CommandId::{Eval, EvalSha, Exec};
                spec.flags.has(Flags::WRITE) || matches!(spec.id, Exec | Eval | EvalSha)
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
