//! MULTI, EXEC, DISCARD, WATCH, UNWATCH. A transaction's records are emitted one after the other within one turn, and a
//! turn's records are one frame of the log: after a crash they are all there or none is.

use super::{Cx, Engine};
use crate::command::args::{Args, OwnedArgs};
use crate::command::table::{CommandId, CommandSpec, Flags};
use crate::engine::acl::log::Origin;
use crate::engine::blocked::ClientIndex;
use crate::engine::fault::Fault;
use crate::resp::encode::Reply;
use crate::session::{Client, Transaction, Watch};

/// Carried out at once even between MULTI and EXEC.
pub(super) fn runs_inside(command: CommandId) -> bool {
    use CommandId::{Discard, Exec, Multi, Quit, Reset, Watch};
    matches!(command, Multi | Exec | Discard | Watch | Quit | Reset)
}

/// Is this an EXEC of commands that may take memory?
pub(super) fn needs_memory(client: &Client, command: CommandId) -> bool {
    command == CommandId::Exec && client.transaction.as_ref().is_some_and(|transaction| transaction.has(Flags::DENYOOM))
}

/// Queues a command; an error spoils the transaction, which is the caller's to note.
pub(super) fn queue(
    client: &mut Client,
    spec: &'static CommandSpec,
    args: Args<'_>,
    limit_bytes: usize,
) -> Result<(), Fault> {
    let Some(transaction) = &mut client.transaction else { return Ok(()) };
    if spec.flags.has(Flags::NO_MULTI) {
        return Err(Fault::owned("ERR Command not allowed inside a transaction"));
    }
    let owned = OwnedArgs::new(args.iter());
    transaction.len_bytes += owned.len_bytes();
    if transaction.len_bytes > limit_bytes {
        transaction.queue = Vec::new();
        return Err(Fault::owned("ERR transaction is larger than client-query-buffer-limit"));
    }
    transaction.queue.push((spec, owned));
    Ok(())
}

/// MULTI
pub(super) fn multi(cx: &mut Cx<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let client = cx.client();
    if client.transaction.is_some() {
        return Err(Fault::NESTED_MULTI);
    }
    client.transaction = Some(Box::new(Transaction::default()));
    reply.ok();
    Ok(())
}

/// DISCARD
pub(super) fn discard(cx: &mut Cx<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    if cx.client().transaction.take().is_none() {
        return Err(Fault::DISCARD_WITHOUT_MULTI);
    }
    cx.engine.forget_watches(cx.client);
    reply.ok();
    Ok(())
}

/// WATCH key …
pub(super) fn watch(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    if cx.client().transaction.is_some() {
        return Err(Fault::WATCH_IN_MULTI);
    }
    let db = cx.db;
    for key in args.from(1).iter() {
        let place = (db, key.into());
        if cx.client().watches.contains_key(&place) {
            continue;
        }
        let missing = cx.slot(key).is_none();
        if missing && cx.state().db(db).get_any(key).is_some() {
            // Its time is over: that it goes is no change to what is watched from now on.
            cx.engine.expire_key(db, key);
        }
        let version = cx.state().watch_version(db, key, cx.now_ms());
        cx.client().watches.insert(place, Watch { version, missing });
        if missing {
            cx.engine.state.watch_missing(db, key);
        }
    }
    reply.ok();
    Ok(())
}

/// UNWATCH
pub(super) fn unwatch(cx: &mut Cx<'_>, reply: &mut Reply<'_>) {
    cx.engine.forget_watches(cx.client);
    reply.ok();
}

impl Engine {
    /// A client watches nothing any more.
    pub(in crate::engine) fn forget_watches(&mut self, index: ClientIndex) {
        let Some(client) = self.client_mut(index) else { return };
        for ((db, key), watch) in std::mem::take(&mut client.watches) {
            if watch.missing {
                self.state.unwatch_missing(db, &key);
            }
        }
    }

    /// Has anything that the client watches changed? The reply then depends on those keys.
    fn watches_touched(cx: &mut Cx<'_>) -> bool {
        let watches = std::mem::take(&mut cx.client().watches);
        let touched = watches.iter().any(|((db, key), watch)| {
            cx.slot_in(*db, key);
            cx.state().watch_version(*db, key, cx.now_ms()) != watch.version
        });
        cx.client().watches = watches;
        touched
    }
}

/// EXEC
pub(super) fn exec(cx: &mut Cx<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let Some(transaction) = cx.client().transaction.take() else { return Err(Fault::EXEC_WITHOUT_MULTI) };
    let touched = Engine::watches_touched(cx);
    cx.engine.forget_watches(cx.client);
    if transaction.refused {
        return Err(Fault::EXEC_ABORT);
    }
    if touched {
        reply.null_array();
        return Ok(());
    }
    reply.array(transaction.queue.len());
    let (client, facts) = (cx.client, cx.facts);
    for &(spec, ref args) in &transaction.queue {
        let args = args.args();
        let engine: &mut Engine = cx.engine;
        // Rights may have been taken since the command was queued, even by one before it.
        if let Some(denial) = engine.find_denial(client, spec, args, Origin::Transaction, facts) {
            let fault = denial.fault_at_exec();
            reply.error(&fault.0);
            engine.statistics.note_error(&fault.0);
            engine.statistics.of(spec).rejected += 1;
            continue;
        }
        let (gate, _) = engine.run(client, spec, args, facts, reply.out, false, false);
        cx.depends_on(gate);
        // SELECT and HELLO inside a transaction hold for what follows.
        if let Some(client) = cx.engine.client(client) {
            reply.protocol = client.protocol;
        }
    }
    Ok(())
}
