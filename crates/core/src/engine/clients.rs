//! What commands and the process do to connections of others: closing them, ending their waits, describing them.

use std::io::Write;

use super::Engine;
use crate::command::args::{Args, OwnedArgs};
use crate::command::table::CommandId;
use crate::engine::Cx;
use crate::engine::blocked::ClientIndex;
use crate::engine::fault::Fault;
use crate::engine::pubsub::TopicKind;
use crate::resp::encode::Protocol;
use crate::session::Client;

impl Engine {
    /// Closes a connection at once. What it waited for does not happen any more.
    pub(crate) fn kill(&mut self, index: ClientIndex) {
        self.stop_waiting(index);
        self.unsubscribe_all(index);
        if let Some(client) = self.client_mut(index) {
            client.killed = true;
        }
        self.list_for_flush(index);
    }

    /// Ends a client's wait as its timeout does.
    pub(crate) fn time_out(&mut self, index: ClientIndex) -> bool {
        let Some(wait) = self.client(index).and_then(|client| client.wait.as_deref()) else { return false };
        let command = wait.command;
        let synced = self.is_synced();
        self.end_wait(index, |reply| match command {
            CommandId::Wait => reply.int(0),
            CommandId::WaitAof => {
                reply.array(2);
                reply.int(synced.into());
                reply.int(0);
            }
            _ => reply.null_array(),
        })
    }

    /// Does everything so far survive a crash?
    pub(crate) fn is_synced(&self) -> bool {
        self.log.is_enabled() && self.synced >= self.log.position()
    }

    /// CLIENT UNBLOCK: ends a wait that is the client's own wish, not one for the process to finish something.
    pub(crate) fn unblock(&mut self, index: ClientIndex, as_error: bool) -> bool {
        use CommandId::{Wait, WaitAof, XRead, XReadGroup};
        let wait = self.client(index).and_then(|client| client.wait.as_deref());
        // A read that only goes on in the next turn is no wait.
        let wait = wait.filter(|wait| !wait.only_goes_on());
        if !wait.is_some_and(|wait| matches!(wait.command, XRead | XReadGroup | Wait | WaitAof)) {
            return false;
        }
        if as_error {
            self.statistics.note_error(&Fault::UNBLOCKED.0);
            self.end_wait(index, |reply| reply.error(&Fault::UNBLOCKED.0))
        } else {
            self.time_out(index)
        }
    }

    /// Appends the line about a connection that CLIENT LIST shows, without the end of line.
    pub(crate) fn describe(client: &Client, now_ms: u64, out: &mut Vec<u8>) {
        let age_s = now_ms.saturating_sub(client.created_ms) / 1000;
        let idle_s = now_ms.saturating_sub(client.active_ms) / 1000;
        let multi = client.transaction.as_ref().map_or(-1, |transaction| transaction.queue.len() as i64);
        let multi_bytes = client.transaction.as_ref().map_or(0, |transaction| transaction.len_bytes);
        let (input, capacity) = (client.input_len(), client.input.capacity());
        let memory = size_of::<Client>() + capacity + client.output.capacity() + multi_bytes;
        let topics = |kind| client.subscriptions.as_deref().map_or(0, |all| all.len(kind));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let events = if client.output.is_empty() { "r" } else { "rw" };
        let protocol = if client.protocol == Protocol::Resp3 { 3 } else { 2 };
        write!(
            out,
            "id={} addr={} laddr={} fd={} name={} age={age_s} idle={idle_s} flags={} db={} sub={} psub={} ssub={} \
             multi={multi} watch={} qbuf={input} qbuf-free={} argv-mem=0 multi-mem={multi_bytes} rbs={} rbp=0 obl={} \
             oll=0 omem=0 tot-mem={memory} events={events} cmd={} user={} redir=-1 resp={protocol} lib-name={} \
             lib-ver={} io-thread=0 tot-net-in={} tot-net-out={} tot-cmds={}",
            client.id,
            client.addr,
            client.local_addr,
            client.fd,
            text(&client.name),
            flags(client),
            client.db,
            topics(TopicKind::Channel),
            topics(TopicKind::Pattern),
            topics(TopicKind::Shard),
            client.watches.len(),
            capacity - input,
            client.output.capacity(),
            client.output.len(),
            client.last_command,
            text(&client.user.name),
            text(&client.lib_name),
            text(&client.lib_ver),
            client.received_bytes,
            client.sent_bytes,
            client.commands,
        )
        .expect("a vector takes all that is written");
    }
}

/// The letters of CLIENT LIST.
fn flags(client: &Client) -> String {
    let all = [
        (client.subscriptions.is_some(), 'P'),
        (client.transaction.is_some(), 'x'),
        (client.wait.is_some(), 'b'),
        (client.closing, 'c'),
        (client.killed, 'A'),
        (client.unix, 'U'),
        (client.no_evict, 'e'),
        (client.no_touch, 'T'),
    ];
    let set: String = all.iter().filter(|(is_set, _)| *is_set).map(|(_, letter)| *letter).collect();
    if set.is_empty() { "N".into() } else { set }
}

impl Cx<'_> {
    /// Lets the client wait without a key to wait for: until `deadline_ms`, or until the process ends it.
    pub(crate) fn wait_without_keys(&mut self, args: Args<'_>, deadline_ms: Option<u64>) {
        let owned = OwnedArgs::new(args.iter());
        self.wait = Some(Engine::wait_for(self.spec.id, owned, self.db, Vec::new(), deadline_ms));
    }

    /// The deadline of a timeout in ms; 0 waits for ever.
    pub(crate) fn deadline(&self, timeout_ms: u64) -> Option<u64> {
        (timeout_ms > 0).then(|| self.now_ms().saturating_add(timeout_ms))
    }
}
