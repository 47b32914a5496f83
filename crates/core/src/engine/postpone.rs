//! Commands that have had their share of a turn before they are done. They are carried out again in the next one, from
//! the beginning, and find there what they have done so far; their client waits meanwhile, and nobody else does.
//!
//! Only what a reply does not promise at one moment is divided so: looking for entries that may go, passing over entries
//! that may not be given yet. In a transaction or a script nothing is divided.
//!
//! All commands of a turn share what it has time for, counted in *steps*: while someone goes on, or when the steps of the
//! turn are used up, a command that begins does only very few and then stands in line. Those that go on are served in turn,
//! each once, as long as the turn has time, and the next turn begins with whoever is behind the last of them. Of the
//! readers of one group of one stream only the first is: those behind it would find before it what it has been looking for.
//!
//! Everything that goes on stands still during CLIENT PAUSE: nearly all of it writes.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};

use super::{Cx, Engine};
use crate::command::args::{Args, OwnedArgs};
use crate::command::table::Flags;
use crate::engine::blocked::{ClientIndex, Place};
use crate::engine::facts::Facts;
use crate::id::StreamId;
use crate::session::{Progress, Wait};

/// Microseconds after which a turn begins no further postponed command.
const TURN_US: u64 = 500;

/// Steps that the commands that begin in one turn do together: each is an entry that is passed over or let go of.
const TURN_STEPS: usize = 1000;

/// Steps that a command may do however busy the turn is: who has so little to do is never postponed.
const STEPS_LEAST: usize = 8;

/// What a trim that goes on carries over: what it found when it began is what it does, whatever is added meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Carried {
    /// Entries it has removed.
    pub removed: u64,
    /// The value it works on, see [`Slot::born`](crate::state::keyspace::Slot::born): another one under its key is none of
    /// its business.
    pub born: u64,
    /// It removes nothing behind this ID,
    pub end: StreamId,
    /// and no more than so many further entries.
    pub most: u64,
}

impl Cx<'_> {
    /// May the command be left for the next turn before it is done? Not inside a transaction or a script.
    #[inline]
    pub fn may_postpone(&self) -> bool {
        self.may_block
    }

    /// How many steps, at most `most` and at least one, this turn has time for. What was done of them is to be told to
    /// [`Cx::take_steps`].
    pub fn steps(&self, most: usize) -> usize {
        let left = match self.goes_on {
            true => most,
            false if self.engine.postponed.is_empty() => TURN_STEPS.saturating_sub(self.engine.steps.get()),
            false => 0,
        };
        left.clamp(STEPS_LEAST.min(most), most)
    }

    /// So many steps were done.
    pub fn take_steps(&self, steps: usize) {
        self.engine.steps.set(self.engine.steps.get() + steps);
    }

    /// Leaves the command for the next turn, which gets `carried` back as [`Cx::carried`]. It has answered nothing. Of a
    /// reader of a group, `keys` are the streams.
    pub fn postpone(&mut self, args: Args<'_>, keys: Vec<Box<[u8]>>, carried: Option<Carried>) {
        debug_assert!(self.spec.flags.has(Flags::WRITE), "a pause holds back all that goes on");
        self.leave(args, keys, carried, None);
    }

    /// Leaves a command that looks through something, and changes nothing that a pause is to hold back, for the next turn,
    /// which gets back how far it has come as [`Cx::progress`].
    pub fn postpone_with(&mut self, args: Args<'_>, progress: Box<Progress>) {
        self.leave(args, Vec::new(), None, Some(progress));
    }

    fn leave(
        &mut self,
        args: Args<'_>,
        keys: Vec<Box<[u8]>>,
        carried: Option<Carried>,
        progress: Option<Box<Progress>>,
    ) {
        let mut wait = Engine::wait_for(self.spec.id, OwnedArgs::new(args.iter()), self.db, keys, None);
        (wait.goes_on, wait.is_asked_for, wait.carried, wait.progress) = (true, false, carried, progress);
        self.wait = Some(wait);
    }
}

/// One that goes on in the next turn.
#[derive(Debug)]
struct GoingOn {
    client: ClientIndex,
    /// Where it reads for a group.
    places: Vec<Place>,
}

/// Who goes on in the next turn.
#[derive(Debug, Default)]
pub(super) struct Postponed {
    /// All of them, by ticket.
    all: BTreeMap<u64, GoingOn>,
    /// The readers of each group, by ticket.
    lines: BTreeMap<Place, BTreeSet<u64>>,
    /// Those that stand behind nobody in a line.
    first: BTreeSet<u64>,
    /// Who was served last.
    served: u64,
}

impl Postponed {
    /// Nobody?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// A client with a ticket goes on in the next turn.
    pub fn add(&mut self, client: ClientIndex, wait: &Wait) {
        let ticket = wait.ticket;
        let group = wait.group.as_ref().map(|reader| &reader.group);
        let place = |group: &[u8], key: &[u8]| Place { db: wait.db, key: key.into(), group: group.into() };
        let places: Vec<Place> =
            group.into_iter().flat_map(|group| wait.keys.iter().map(move |key| place(group, key))).collect();
        for place in &places {
            let line = self.lines.entry(place.clone()).or_default();
            line.insert(ticket);
            if line.first() == Some(&ticket)
                && let Some(second) = line.iter().nth(1)
            {
                self.first.remove(second);
            }
        }
        self.all.insert(ticket, GoingOn { client, places });
        self.note_first(ticket);
    }

    /// The client with that ticket does not go on any more.
    pub fn remove(&mut self, ticket: u64) {
        let Some(GoingOn { places, .. }) = self.all.remove(&ticket) else { return };
        self.first.remove(&ticket);
        for place in places {
            let Some(line) = self.lines.get_mut(&place) else { continue };
            line.remove(&ticket);
            match line.first().copied() {
                Some(next) => self.note_first(next),
                None => {
                    self.lines.remove(&place);
                }
            }
        }
    }

    /// Notes it if that one stands behind nobody.
    fn note_first(&mut self, ticket: u64) {
        let Some(GoingOn { places, .. }) = self.all.get(&ticket) else { return };
        let is_first = |place: &Place| self.lines.get(place).and_then(BTreeSet::first) == Some(&ticket);
        if places.iter().all(is_first) {
            self.first.insert(ticket);
        }
    }

    /// The ticket and the client of the next one to be served behind `ticket`.
    fn next_behind(&self, ticket: u64) -> Option<(u64, ClientIndex)> {
        let next = *self.first.range((Excluded(ticket), Unbounded)).next()?;
        Some((next, self.all.get(&next)?.client))
    }

    /// Does the reader with a ticket go on, or one of the same group that stands before it at the key? Until that is done,
    /// what it looks for is not another's.
    pub fn is_looked_through(&self, place: &Place, ticket: u64) -> bool {
        self.lines.get(place).and_then(BTreeSet::first).is_some_and(|&first| first <= ticket)
    }
}

impl Engine {
    /// Is there a command that goes on in the next turn? Not while a pause holds it back.
    pub(super) fn has_postponed(&self) -> bool {
        !self.postponed.is_empty() && self.pause.is_none()
    }

    /// Goes on with what was left of the last turn.
    pub(super) fn serve_postponed(&mut self, facts: &Facts<'_>) {
        if !self.has_postponed() {
            return;
        }
        let (begun_us, last) = ((facts.elapsed_us)(), self.postponed.served);
        let mut from_the_front = false;
        loop {
            let next = self.postponed.next_behind(self.postponed.served);
            let Some((ticket, index)) = next.filter(|&(ticket, _)| !from_the_front || ticket <= last) else {
                if from_the_front {
                    return;
                }
                (from_the_front, self.postponed.served) = (true, 0);
                continue;
            };
            self.postponed.served = ticket;
            self.serve(index, facts);
            self.serve_ready(facts);
            if (facts.elapsed_us)().saturating_sub(begun_us) >= TURN_US {
                return;
            }
        }
    }
}
