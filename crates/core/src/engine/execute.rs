//! Carrying out a command: its function is called, and around it what every command needs. Its expired keys go before,
//! its reply gets a gate after, and it is counted and measured (`timing`).
//!
//! A command that answers an error has changed nothing (asserted of each turn: what a postponed one has trimmed in
//! earlier turns stays trimmed), and one that waits has answered nothing.

use std::cell::{Cell, RefCell};

use super::blocked::ClientIndex;
use super::events::EventClass;
use super::facts::Facts;
use super::{Cx, Engine, decide};
use crate::command::args::Args;
use crate::command::table::{CommandSpec, Flags};
use crate::command::views;
use crate::record::{At, Record};
use crate::resp::encode::Reply;
use crate::session::ReplyMode;

impl Engine {
    /// Carries out one command of a client and everything that it wakes.
    pub(super) fn execute(&mut self, index: ClientIndex, args: Args<'_>, facts: &Facts<'_>) {
        self.statistics.commands += 1;
        let Some(client) = self.client_mut(index) else { return };
        client.active_ms = facts.now_ms;
        client.commands += 1;
        let mut out = self.take_output(index);
        let start = out.len();
        self.own_pushes.running = Some(index);
        let gate = self.judge(index, args, facts, &mut out);
        self.finish_command(index, out, start, gate);
        self.serve_ready(facts);
    }

    /// Puts the reply of a command into the client's output, as CLIENT REPLY wants it, and behind it what was pushed to
    /// the client meanwhile.
    pub(super) fn finish_command(&mut self, index: ClientIndex, mut out: Vec<u8>, start: usize, gate: u64) {
        let Some(client) = self.client_mut(index) else { return };
        // A command that waits is answered later: until then it is still the one that CLIENT REPLY SKIP meant.
        if client.reply_mode != ReplyMode::On && client.wait.is_none() {
            match client.reply_mode {
                ReplyMode::Off | ReplyMode::Skip => out.truncate(start),
                ReplyMode::On | ReplyMode::SkipNext => {}
            }
            client.reply_mode = match client.reply_mode {
                ReplyMode::SkipNext => ReplyMode::Skip,
                ReplyMode::Skip => ReplyMode::On,
                other => other,
            };
        }
        let pushes_gate = self.take_own_pushes(index, &mut out);
        self.finish_reply(index, out, gate.max(pushes_gate));
    }

    /// Runs a command whose turn it is. Answers the position that the reply depends on, and whether the client waits.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn run(
        &mut self,
        index: ClientIndex,
        spec: &'static CommandSpec,
        args: Args<'_>,
        facts: &Facts<'_>,
        out: &mut Vec<u8>,
        may_block: bool,
        again: bool,
    ) -> (u64, bool) {
        let (db, protocol) = {
            let client = self.client(index).expect("a command comes from a client");
            (client.db, client.protocol)
        };
        if spec.flags.has(Flags::WRITE) {
            self.purge_expired(db, spec, args, facts.now_ms);
        }
        let start = out.len();
        let measured = self.begin_measuring(spec, facts);
        let (going_on, progress) = (self.going_on.take(), self.progress.take());
        let mut cx = Cx {
            engine: self,
            client: index,
            db,
            facts,
            spec,
            again,
            goes_on: going_on.is_some(),
            carried: going_on.flatten(),
            progress,
            may_block,
            wait: None,
            gate: Cell::new(0),
            lookups: Cell::default(),
            missed: RefCell::default(),
            emitted: false,
        };
        let mut reply = Reply { out, protocol };
        let result = decide::dispatch(&mut cx, args, &mut reply);
        let (mut gate, emitted, wait) = (cx.gate.get(), cx.emitted, cx.wait.take());
        let missed = cx.missed.take();
        let (hits, misses) = cx.lookups.get();
        self.statistics.keyspace_hits += hits;
        self.statistics.keyspace_misses += misses;
        self.tell_trims();
        for (db, key) in missed {
            self.notify(EventClass::Miss, "keymiss", db, &key);
        }
        // A reply that depends on what memory alone keeps depends on nothing.
        if !self.log.is_enabled() {
            gate = 0;
        }
        if let Err(fault) = result {
            assert!(!emitted, "{} answers an error after it has changed something", spec.name);
            out.truncate(start);
            Reply { out, protocol }.error(&fault.0);
            self.statistics.note_error(&fault.0);
            self.statistics.of(spec).failed += 1;
        }
        if wait.is_none() {
            self.statistics.of(spec).calls += 1;
        }
        if let Some(took_us) = self.end_measuring(measured, spec, facts) {
            self.spent_us += took_us;
            self.note_duration(index, spec, args, facts, took_us);
        }
        match wait {
            Some(wait) => {
                debug_assert_eq!(out.len(), start, "a command that waits has answered nothing");
                if again {
                    // It stands where it stood: `wake` sees to that.
                    self.clients[index].as_deref_mut().expect("it is still there").wait = Some(wait);
                } else {
                    self.start_waiting(index, wait, facts);
                }
                (gate, true)
            }
            None => (gate, false),
        }
    }

    /// Removes the command's keys whose time is over, by record, so that writing starts from what readers see.
    fn purge_expired(&mut self, db: usize, spec: &CommandSpec, args: Args<'_>, now_ms: u64) {
        if self.state.db(db).expiring() == 0 {
            return;
        }
        for at in views::keys_of(spec, args) {
            let key = args.get(at);
            let over =
                self.state.db(db).get_any(key).is_some_and(|slot| slot.expire_ms != 0 && slot.expire_ms <= now_ms);
            if over {
                self.expire_key(db, key);
            }
        }
    }

    pub(super) fn expire_key(&mut self, db: usize, key: &[u8]) {
        self.statistics.expired_keys += 1;
        self.emit(&Record::Delete { at: At { db, key } });
        self.notify(EventClass::Expired, "expired", db, key);
    }

    fn note_duration(
        &mut self,
        index: ClientIndex,
        spec: &CommandSpec,
        args: Args<'_>,
        facts: &Facts<'_>,
        took_us: u64,
    ) {
        let threshold = self.settings.slowlog_log_slower_than_us;
        if threshold >= 0 && took_us >= threshold as u64 && !spec.flags.has(Flags::SKIP_SLOWLOG) {
            let client = self.clients[index].as_deref();
            let (addr, name) = client.map_or((String::new(), Vec::new()), |c| (c.addr.clone(), c.name.clone()));
            self.slow_log.note(args, facts.now_ms / 1000, took_us, addr, name, self.settings.slowlog_max_len as usize);
        }
    }
}
