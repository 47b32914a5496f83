//! Commands that have had their share of a turn before they are done. They are carried out again in the next one, from
//! the beginning, and find there what they have done so far; their client waits meanwhile, and nobody else does.
//!
//! Only what a reply does not promise at one moment is divided so: looking for entries that may go, passing over entries
//! that may not be given yet. In a transaction or a script nothing is divided.

use super::{Cx, Engine};
use crate::command::args::{Args, OwnedArgs};
use crate::engine::blocked::{ClientIndex, Place};
use crate::engine::facts::Facts;
use crate::session::Progress;

/// Microseconds after which a turn begins no further postponed command.
const TURN_US: u64 = 500;

impl Cx<'_> {
    /// May the command be left for the next turn before it is done? Not inside a transaction or a script.
    #[inline]
    pub fn may_postpone(&self) -> bool {
        self.may_block
    }

    /// Leaves the command for the next turn, which gets `carried` back as [`Cx::carried`]. It has answered nothing.
    pub fn postpone(&mut self, args: Args<'_>, carried: u64) {
        let mut wait = Engine::wait_for(self.spec.id, OwnedArgs::new(args.iter()), self.db, Vec::new(), None);
        (wait.goes_on, wait.carried) = (true, carried);
        self.wait = Some(wait);
    }
}

impl Cx<'_> {
    /// Leaves the command for the next turn, which gets back how far it has come as [`Cx::progress`].
    pub fn postpone_with(&mut self, args: Args<'_>, progress: Box<Progress>) {
        self.postpone(args, 0);
        if let Some(wait) = &mut self.wait {
            wait.progress = Some(progress);
        }
    }
}

impl Engine {
    /// A client has a command that goes on in the next turn.
    pub(super) fn list_postponed(&mut self, index: ClientIndex) {
        if !self.postponed.contains(&index) {
            self.postponed.push_back(index);
        }
    }

    /// Is there a command that goes on in the next turn?
    pub(super) fn has_postponed(&self) -> bool {
        !self.postponed.is_empty()
    }

    /// Goes on with what was left of the last turn, first come first.
    pub(super) fn serve_postponed(&mut self, facts: &Facts<'_>) {
        let begun_us = (facts.elapsed_us)();
        // Groups whose first reader looks on: those behind it would find before it what it has been looking for.
        let mut looking: Vec<(usize, Box<[u8]>)> = Vec::new();
        for _ in 0..self.postponed.len() {
            let Some(index) = self.postponed.pop_front() else { return };
            // The client may be gone, and its place another's.
            let wait = self.client(index).and_then(|client| client.wait.as_deref());
            let Some(wait) = wait.filter(|wait| wait.goes_on) else { continue };
            let group = wait.group.as_ref().map(|reader| (wait.db, reader.group.clone()));
            if group.as_ref().is_some_and(|group| looking.contains(group)) {
                self.postponed.push_back(index);
                continue;
            }
            self.serve(index, facts);
            if self.goes_on(index) {
                looking.extend(group);
            }
            self.serve_ready(facts);
            if (facts.elapsed_us)().saturating_sub(begun_us) >= TURN_US {
                return;
            }
        }
    }

    /// Is someone who goes on in the next turn the reader with a ticket, or one of the same group that stands before it at the
    /// key? Until then what it looks for is not another's.
    pub(super) fn is_looked_through(&self, place: &Place, ticket: u64) -> bool {
        self.postponed.iter().any(|&index| {
            let wait = self.client(index).and_then(|client| client.wait.as_deref());
            wait.is_some_and(|wait| {
                wait.goes_on
                    && wait.ticket <= ticket
                    && wait.db == place.db
                    && wait.group.as_ref().is_some_and(|reader| reader.group == place.group)
                    && wait.keys.contains(&place.key)
            })
        })
    }

    fn goes_on(&self, index: ClientIndex) -> bool {
        self.client(index).and_then(|client| client.wait.as_deref()).is_some_and(|wait| wait.goes_on)
    }
}
