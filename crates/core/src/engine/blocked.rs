//! Readers that wait. Each holds one ticket; in every queue it stands by that ticket, so who asked first is served
//! first. A reader that waits at a stream to which something was added, and gets nothing, takes a new ticket, which puts it
//! at the back of all its queues; in all other cases it keeps its place.
//!
//! At a key the readers of a group stand together, by what can serve them: something new, something to claim once it has
//! been idle for so long (CLAIM, or the group's lease: both are meant by CLAIM here), or (they have as much as they may have) nothing before they have room. So who can gain from what
//! happened is found without asking the others. Each group has one time at which its readers with CLAIM look again.

use std::collections::{BTreeMap, BTreeSet};

use crate::limits::DATABASES;
use crate::session::{GroupReader, Wait};

/// Index of a client in the engine's table.
pub type ClientIndex = usize;

/// What happened at a key, by whose wait it may end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// The key, a group or both may be others than before, or lost: everyone's.
    Any,
    /// An entry was added: everyone's.
    New,
    /// Something became pending: of readers with CLAIM.
    Pending,
    /// Something can be claimed: of readers with CLAIM.
    Claimable,
    /// There is room for more in flight: of readers of groups that lacked it.
    Room,
    /// An entry that a group did not get before may be given now: of readers of groups.
    Held,
    /// Something has been idle for long enough: of readers with CLAIM. Time alone says so.
    Idle,
    /// A group may have another lease: of its readers, who take up what they claim by it.
    Lease,
}

impl Signal {
    fn bit(self) -> u8 {
        1 << self as u8
    }

    /// Can it concern readers with CLAIM alone?
    pub fn is_for_claims(self) -> bool {
        matches!(self, Signal::Pending | Signal::Claimable | Signal::Idle | Signal::Lease)
    }
}

/// By ticket.
type Line = BTreeMap<u64, ClientIndex>;

/// Which readers of a group can gain.
#[derive(Clone, Copy, Default, Debug)]
pub struct Gain {
    /// Each of them.
    pub everyone: bool,
    /// Those that wait for other keys as well.
    pub several: bool,
    /// Those that have room for something new.
    pub open: bool,
    /// Those that need no room.
    pub no_ack: bool,
    /// Those with CLAIM that have room, if they ask for no more idle ms than this.
    pub claims_up_to_ms: Option<u64>,
}

/// Readers of one group that wait for a key.
#[derive(Debug, Default)]
struct GroupQueue {
    /// Those that need room for what is new, and may have it.
    open: Line,
    /// Those that have none: they have as much as one consumer may have.
    full: Line,
    /// Those with NOACK: they need room for what they claim alone.
    no_ack: Line,
    /// Those that wait for other keys as well.
    several: Line,
    /// Those with CLAIM that may have room, by its ms.
    claims: BTreeMap<u64, Line>,
    /// How many have CLAIM, with room or without.
    claiming: usize,
    /// When it was last looked at, the bound on the group let nothing in.
    crowded: bool,
    /// When those with CLAIM look again (Unix ms).
    look_ms: Option<u64>,
}

impl GroupQueue {
    fn add(&mut self, ticket: u64, client: ClientIndex, reader: &GroupReader, key: &[u8], several: bool) {
        if reader.no_ack {
            self.no_ack.insert(ticket, client);
        }
        if several {
            self.several.insert(ticket, client);
        }
        self.claiming += usize::from(reader.claims_at(key).is_some());
        self.admit(ticket, client, reader, key);
    }

    fn admit(&mut self, ticket: u64, client: ClientIndex, reader: &GroupReader, key: &[u8]) {
        if !reader.no_ack {
            self.open.insert(ticket, client);
        }
        if let Some(idle_ms) = reader.claims_at(key) {
            self.claims.entry(idle_ms).or_default().insert(ticket, client);
        }
    }

    /// Takes a reader out; answers whether it stood among those that have no room.
    fn remove(&mut self, ticket: u64, reader: &GroupReader, key: &[u8]) -> bool {
        self.no_ack.remove(&ticket);
        self.several.remove(&ticket);
        self.claiming -= usize::from(reader.claims_at(key).is_some());
        self.expel(ticket, reader, key);
        self.full.remove(&ticket).is_some()
    }

    fn expel(&mut self, ticket: u64, reader: &GroupReader, key: &[u8]) {
        self.open.remove(&ticket);
        if let Some(idle_ms) = reader.claims_at(key)
            && let Some(line) = self.claims.get_mut(&idle_ms)
        {
            line.remove(&ticket);
            if line.is_empty() {
                self.claims.remove(&idle_ms);
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.open.is_empty() && self.full.is_empty() && self.no_ack.is_empty()
    }

    /// The first from a ticket on that can gain.
    fn next(&self, from: u64, gain: Gain) -> Option<(u64, ClientIndex)> {
        let lines = [
            (gain.everyone || gain.open, &self.open),
            (gain.everyone, &self.full),
            (gain.everyone || gain.no_ack, &self.no_ack),
            (gain.several, &self.several),
        ];
        let lines = lines.into_iter().filter_map(|(gains, line)| gains.then_some(line));
        let claims = gain.claims_up_to_ms.into_iter().flat_map(|idle_ms| self.claims.range(..=idle_ms));
        let firsts = lines.chain(claims.map(|(_, line)| line)).filter_map(|line| line.range(from..).next());
        firsts.min().map(|(&ticket, &client)| (ticket, client))
    }
}

/// Who waits for a key.
#[derive(Debug, Default)]
struct Queue {
    clients: Line,
    /// Those that read for no group.
    plain: Line,
    groups: BTreeMap<Box<[u8]>, GroupQueue>,
    /// How many of all wait for other keys as well.
    several: usize,
    /// One of those has something to read at another key of which it has not heard.
    stirred: bool,
    /// Signals, as bits, with which the key is in the list of those at which something happened.
    listed: u8,
}

impl Queue {
    /// Is there anyone whom it may concern?
    fn is_concerned(&self, what: Signal) -> bool {
        match what {
            Signal::Any | Signal::New => true,
            Signal::Claimable | Signal::Room | Signal::Held if self.stirred => true,
            Signal::Pending | Signal::Claimable | Signal::Idle => self.groups.values().any(|group| group.claiming > 0),
            Signal::Room => self.groups.values().any(|group| group.crowded || !group.full.is_empty()),
            Signal::Held | Signal::Lease => !self.groups.is_empty(),
        }
    }
}

/// The readers of a group at a key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place {
    /// The database.
    pub db: usize,
    /// The key.
    pub key: Box<[u8]>,
    /// The group.
    pub group: Box<[u8]>,
}

/// Queues of waiting readers by key, and their deadlines.
#[derive(Debug)]
pub struct Blocked {
    /// By database and key.
    queues: Vec<BTreeMap<Box<[u8]>, Queue>>,
    deadlines: BTreeSet<(u64, ClientIndex)>,
    /// When readers with CLAIM look again.
    looks: BTreeSet<(u64, Place)>,
    waiting: usize,
    tickets: u64,
    /// Keys at which something happened that may end a wait, in order, each once.
    ready: Vec<(usize, Box<[u8]>, Signal)>,
}

impl Default for Blocked {
    fn default() -> Self {
        let queues = (0..DATABASES).map(|_| BTreeMap::new()).collect();
        Blocked {
            queues,
            deadlines: BTreeSet::new(),
            looks: BTreeSet::new(),
            waiting: 0,
            tickets: 0,
            ready: Vec::new(),
        }
    }
}

impl Blocked {
    /// How many clients wait; those whose command only goes on in the next turn are not among them.
    pub fn len(&self) -> usize {
        self.waiting
    }

    /// Nobody waits?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Waits that end by time.
    pub fn deadline_count(&self) -> usize {
        self.deadlines.len()
    }

    /// Keys that someone waits for.
    pub fn key_count(&self) -> usize {
        self.queues.iter().map(BTreeMap::len).sum()
    }

    /// A ticket behind all others.
    pub fn next_ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    /// The newest ticket there is.
    pub fn newest_ticket(&self) -> u64 {
        self.tickets
    }

    /// Puts a client in the queues of its keys, unless its command only goes on in the next turn.
    pub fn add(&mut self, client: ClientIndex, wait: &Wait) {
        if wait.only_goes_on() {
            return;
        }
        let several = wait.keys.len() > 1;
        for key in &wait.keys {
            let queue = self.queues[wait.db].entry(key.clone()).or_default();
            queue.clients.insert(wait.ticket, client);
            queue.several += usize::from(several);
            match &wait.group {
                None => {
                    queue.plain.insert(wait.ticket, client);
                }
                Some(reader) => {
                    let group = queue.groups.entry(reader.group.clone()).or_default();
                    group.add(wait.ticket, client, reader, key, several);
                }
            }
        }
        if let Some(deadline_ms) = wait.deadline_ms.filter(|_| !wait.goes_on) {
            self.deadlines.insert((deadline_ms, client));
        }
        self.waiting += 1;
    }

    /// Takes a client out of all its queues.
    pub fn remove(&mut self, client: ClientIndex, wait: &Wait) {
        if wait.only_goes_on() {
            return;
        }
        for key in &wait.keys {
            let Some(queue) = self.queues[wait.db].get_mut(key) else { continue };
            queue.clients.remove(&wait.ticket);
            queue.plain.remove(&wait.ticket);
            queue.several -= usize::from(wait.keys.len() > 1);
            if let Some(reader) = &wait.group
                && let Some(of) = queue.groups.get_mut(&reader.group)
            {
                of.remove(wait.ticket, reader, key);
                let look_ms = of.look_ms.filter(|_| of.claiming == 0);
                if let Some(ms) = look_ms {
                    of.look_ms = None;
                    self.looks.remove(&(ms, Place { db: wait.db, key: key.clone(), group: reader.group.clone() }));
                }
                if of.is_empty() {
                    queue.groups.remove(&reader.group);
                }
            }
            if queue.clients.is_empty() {
                self.queues[wait.db].remove(key);
            }
        }
        if let Some(deadline_ms) = wait.deadline_ms.filter(|_| !wait.goes_on) {
            self.deadlines.remove(&(deadline_ms, client));
        }
        self.waiting -= 1;
    }

    /// Gives a client the newest ticket. Nothing else changes for it.
    pub fn go_to_back(&mut self, client: ClientIndex, wait: &mut Wait) {
        let (old, new) = (wait.ticket, self.next_ticket());
        let several = wait.keys.len() > 1;
        for key in &wait.keys {
            let Some(queue) = self.queues[wait.db].get_mut(key) else { continue };
            queue.clients.remove(&old);
            queue.clients.insert(new, client);
            if queue.plain.remove(&old).is_some() {
                queue.plain.insert(new, client);
            }
            if let Some(reader) = &wait.group
                && let Some(of) = queue.groups.get_mut(&reader.group)
            {
                let full = of.remove(old, reader, key);
                of.add(new, client, reader, key, several);
                if full {
                    of.expel(new, reader, key);
                    of.full.insert(new, client);
                }
            }
        }
        wait.ticket = new;
    }

    /// Something happened at a key that may end the wait of those whom `what` names.
    #[inline]
    pub fn signal(&mut self, db: usize, key: &[u8], what: Signal) {
        if self.is_empty() {
            return;
        }
        let Some(queue) = self.queues[db].get_mut(key) else { return };
        if queue.listed & what.bit() == 0 && queue.is_concerned(what) {
            queue.listed |= what.bit();
            self.ready.push((db, key.into(), what));
        }
    }

    /// Something happened at every key of a database.
    pub fn signal_all(&mut self, db: usize) {
        for (key, queue) in &mut self.queues[db] {
            if queue.listed & Signal::Any.bit() == 0 {
                queue.listed |= Signal::Any.bit();
                self.ready.push((db, key.clone(), Signal::Any));
            }
        }
    }

    /// The keys at which something happened since the last call.
    pub fn take_ready(&mut self) -> Vec<(usize, Box<[u8]>, Signal)> {
        for (db, key, _) in &self.ready {
            if let Some(queue) = self.queues[*db].get_mut(key) {
                queue.listed = 0;
            }
        }
        std::mem::take(&mut self.ready)
    }

    /// Has anything happened?
    #[inline]
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Who waits for a key, first come first.
    pub fn queue(&self, db: usize, key: &[u8]) -> Vec<(u64, ClientIndex)> {
        self.queues[db]
            .get(key)
            .map_or_else(Vec::new, |queue| queue.clients.iter().map(|(&ticket, &client)| (ticket, client)).collect())
    }

    /// Does everyone who waits for a key wait for it alone?
    pub fn is_single(&self, db: usize, key: &[u8]) -> bool {
        self.queues[db].get(key).is_none_or(|queue| queue.several == 0)
    }

    /// A reader that waits for these keys may find something at one of them without having been told.
    pub fn stir(&mut self, db: usize, keys: &[Box<[u8]>]) {
        for key in keys {
            if let Some(queue) = self.queues[db].get_mut(key) {
                queue.stirred = true;
            }
        }
    }

    /// Is there such a reader at a key? It is looked at now: the next call says no.
    pub fn take_stirred(&mut self, db: usize, key: &[u8]) -> bool {
        self.queues[db].get_mut(key).is_some_and(|queue| std::mem::take(&mut queue.stirred))
    }

    /// The first reader for no group that waits for a key, from a ticket on.
    pub fn next_plain(&self, db: usize, key: &[u8], from: u64) -> Option<(u64, ClientIndex)> {
        let (&ticket, &client) = self.queues[db].get(key)?.plain.range(from..).next()?;
        Some((ticket, client))
    }

    /// The groups for which readers wait for a key.
    pub fn groups(&self, db: usize, key: &[u8]) -> Vec<Box<[u8]>> {
        self.queues[db].get(key).map_or_else(Vec::new, |queue| queue.groups.keys().cloned().collect())
    }

    fn of(&self, place: &Place) -> Option<&GroupQueue> {
        self.queues[place.db].get(&place.key)?.groups.get(&place.group)
    }

    fn of_mut(&mut self, place: &Place) -> Option<&mut GroupQueue> {
        self.queues[place.db].get_mut(&place.key)?.groups.get_mut(&place.group)
    }

    /// The first reader of a group, from a ticket on, that can gain.
    pub fn next_reader(&self, place: &Place, from: u64, gain: Gain) -> Option<(u64, ClientIndex)> {
        self.of(place)?.next(from, gain)
    }

    /// Is there anyone with CLAIM?
    pub fn has_claims(&self, place: &Place) -> bool {
        self.of(place).is_some_and(|of| of.claiming > 0)
    }

    /// The least idle ms that is asked for by anyone with CLAIM who may have room.
    pub fn least_claim(&self, place: &Place) -> Option<u64> {
        self.of(place)?.claims.first_key_value().map(|(&idle_ms, _)| idle_ms)
    }

    /// A reader has no room.
    pub fn set_full(&mut self, place: &Place, ticket: u64, client: ClientIndex, reader: &GroupReader) {
        if let Some(of) = self.of_mut(place) {
            of.expel(ticket, reader, &place.key);
            of.full.insert(ticket, client);
        }
    }

    /// A reader that had none has room again.
    pub fn set_open(&mut self, place: &Place, ticket: u64, client: ClientIndex, reader: &GroupReader) {
        if let Some(of) = self.of_mut(place) {
            of.full.remove(&ticket);
            of.admit(ticket, client, reader, &place.key);
        }
    }

    /// The readers of a group that have no room.
    pub fn full(&self, place: &Place) -> Vec<(u64, ClientIndex)> {
        let of = self.of(place);
        of.map_or_else(Vec::new, |of| of.full.iter().map(|(&ticket, &client)| (ticket, client)).collect())
    }

    /// Did the bound on a group let nothing in when it was last looked at?
    pub fn is_crowded(&self, place: &Place) -> bool {
        self.of(place).is_some_and(|of| of.crowded)
    }

    /// Notes whether the bound on a group lets something in.
    pub fn set_crowded(&mut self, place: &Place, crowded: bool) {
        if let Some(of) = self.of_mut(place) {
            of.crowded = crowded;
        }
    }

    /// Notes when the readers of a group with CLAIM look again (Unix ms).
    pub fn set_look(&mut self, place: &Place, ms: Option<u64>) {
        let Some(of) = self.of_mut(place).filter(|of| of.look_ms != ms) else { return };
        let old = std::mem::replace(&mut of.look_ms, ms);
        if let Some(old) = old {
            self.looks.remove(&(old, place.clone()));
        }
        if let Some(ms) = ms {
            self.looks.insert((ms, place.clone()));
        }
    }

    /// The earliest deadline, and whose it is.
    pub fn next_deadline(&self) -> Option<(u64, ClientIndex)> {
        self.deadlines.first().copied()
    }

    /// When the first reader with CLAIM looks again.
    pub fn next_look(&self) -> Option<u64> {
        self.looks.first().map(|&(ms, _)| ms)
    }

    /// Whose time to look again has come.
    pub fn due_looks(&self, now_ms: u64) -> Vec<Place> {
        self.looks.iter().take_while(|&&(ms, _)| ms <= now_ms).map(|(_, place)| place.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::args::OwnedArgs;
    use crate::command::table::CommandId;
    use crate::engine::Engine;

    #[test]
    fn a_key_is_ready_once_until_it_is_taken() {
        let mut blocked = Blocked::default();
        let keys: Vec<Box<[u8]>> = vec![b"a".as_slice().into(), b"b".as_slice().into()];
        let wait = Engine::wait_for(CommandId::XRead, OwnedArgs::default(), 0, keys.clone(), None);
        blocked.add(1, &wait);
        blocked.signal(0, b"b", Signal::Any);
        blocked.signal_all(0);
        blocked.signal(0, b"nobody waits here", Signal::Any);
        blocked.signal(0, b"a", Signal::Room);
        let ready = |blocked: &mut Blocked| blocked.take_ready().into_iter().map(|(_, key, _)| key).collect::<Vec<_>>();
        assert_eq!(ready(&mut blocked), [keys[1].clone(), keys[0].clone()]);
        assert!(!blocked.has_ready());
        blocked.signal(0, b"a", Signal::Any);
        assert_eq!(ready(&mut blocked), [keys[0].clone()]);
        blocked.remove(1, &wait);
        assert_eq!((blocked.key_count(), blocked.len()), (0, 0));
    }
}
