//! What is asked of any command before it runs: is there such a command, with so many arguments, may this client, is
//! there memory, is it to be queued by MULTI? What is refused here has done nothing.

use std::borrow::Cow;

use super::blocked::ClientIndex;
use super::facts::{Facts, Request};
use super::fault::Fault;
use super::{Engine, pubsub, txn};
use crate::command::args::Args;
use crate::command::table::{self, CommandId, CommandSpec, Flags};
use crate::resp::encode::{Protocol, Reply};

impl Engine {
    /// What is asked of any command before it runs. Answers the position that the reply depends on.
    pub(super) fn judge(&mut self, index: ClientIndex, args: Args<'_>, facts: &Facts<'_>, out: &mut Vec<u8>) -> u64 {
        let client = self.clients[index].as_deref_mut().expect("a command comes from a client");
        let protocol = client.protocol;
        let spec = match table::resolve(args) {
            Ok(spec) => spec,
            Err(_) if speaks_http(args) => {
                // A browser was made to send commands in the body of a request: none of them may run.
                client.killed = true;
                let addr = client.addr.clone();
                self.requests.push(Request::NoteHttp { addr });
                self.list_for_flush(index);
                return 0;
            }
            Err(refusal) => {
                let spec = if let table::Refusal::Arity(spec) = refusal { Some(spec) } else { None };
                self.refuse(index, spec, &refusal.text(args), out);
                return 0;
            }
        };
        client.last_command = spec.name;
        if (client.restricted || !client.authenticated)
            && let Some(fault) = self.refuse_access(index, spec, args, facts)
        {
            self.refuse(index, Some(spec), &fault.0, out);
            return 0;
        }
        let (memory_short, limit_bytes) = (self.is_memory_short(facts), self.command_max_bytes());
        let client = self.clients[index].as_deref_mut().expect("it is still there");
        let refusal = if memory_short && (spec.flags.has(Flags::DENYOOM) || txn::needs_memory(client, spec.id)) {
            Some(Fault::OUT_OF_MEMORY)
        } else if client.subscriptions.is_some() && protocol == Protocol::Resp2 && !pubsub::is_for_subscribers(spec.id)
        {
            Some(Fault::subscriber(spec))
        } else {
            None
        };
        if let Some(fault) = refusal {
            self.refuse(index, Some(spec), &fault.0, out);
            return 0;
        }
        if client.transaction.is_some() && !txn::runs_inside(spec.id) {
            match txn::queue(client, spec, args, limit_bytes) {
                Ok(()) => Reply { out, protocol }.simple("QUEUED"),
                Err(fault) => self.refuse(index, Some(spec), &fault.0, out),
            }
            return 0;
        }
        self.run(index, spec, args, facts, out, true, false).0
    }

    /// Is more memory in use than `maxmemory` allows? The one place that compares the two.
    pub(super) fn is_memory_short(&self, facts: &Facts<'_>) -> bool {
        let limit_bytes = self.settings.maxmemory_bytes;
        limit_bytes > 0 && facts.used_memory > limit_bytes
    }

    /// Answers a command that is not run, nor queued, with an error. A transaction in the making is spoilt; an EXEC that
    /// is refused ends it.
    pub(super) fn refuse(
        &mut self,
        index: ClientIndex,
        spec: Option<&'static CommandSpec>,
        text: &[u8],
        out: &mut Vec<u8>,
    ) {
        let Some(client) = self.clients[index].as_deref_mut() else { return };
        let protocol = client.protocol;
        let mut reason = Cow::Borrowed(text);
        if spec.is_some_and(|spec| spec.id == CommandId::Exec) {
            client.transaction = None;
            self.forget_watches(index);
            let text = text.strip_prefix(b"ERR ").unwrap_or(text);
            reason = [b"EXECABORT Transaction discarded because of: ", text].concat().into();
        } else if let Some(transaction) = &mut client.transaction {
            transaction.refused = true;
        }
        Reply { out, protocol }.error(&reason);
        self.statistics.note_error(&reason);
        // Containers share one number, under which nothing is counted.
        if let Some(spec) = spec.filter(|spec| spec.id != CommandId::Container) {
            self.statistics.of(spec).rejected += 1;
        }
    }
}

/// Is this a line of an HTTP request?
fn speaks_http(args: Args<'_>) -> bool {
    let name = args.get(0);
    name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:")
}
