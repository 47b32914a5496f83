//! Readers that wait. Each holds one ticket; in every queue it stands by that ticket, so who asked first is served
//! first. A reader woken in vain by what happened to a stream takes a new ticket, which puts it at the back of all its
//! queues; one that looked in vain for something to claim, or for room, keeps its place.
//!
//! Readers with CLAIM also stand in an index of times: at which the oldest pending entry of their streams will have been
//! idle long enough. Entries that are delivered later cannot be earlier than that, so only readers that found nothing
//! pending need to hear of new deliveries.

use std::collections::{BTreeMap, BTreeSet};

use crate::limits::DATABASES;
use crate::session::{ClaimWait, Wait};

/// Index of a client in the engine's table.
pub type ClientIndex = usize;

/// What happened at a key, by whose wait it may end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// There is something to read, or the key or group was lost: everyone's.
    Any,
    /// Something became pending: of readers with CLAIM that found nothing pending.
    Pending,
    /// Something can be claimed: of readers with CLAIM.
    Claimable,
    /// There is room for more in flight: of readers that found none.
    Room,
    /// An entry that a group did not get before may be given now: of readers of groups.
    Held,
}

impl Signal {
    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// Who waits for a key.
#[derive(Debug, Default)]
struct Queue {
    /// By ticket.
    clients: BTreeMap<u64, ClientIndex>,
    /// How many of them wait for other keys as well.
    several: usize,
    /// How many of them are concerned by [`Signal::Pending`].
    pending: usize,
    /// By [`Signal::Claimable`].
    claims: usize,
    /// By [`Signal::Room`].
    crowded: usize,
    /// By [`Signal::Held`].
    groups: usize,
    /// Signals, as bits, with which the key is in the list of those at which something happened.
    listed: u8,
}

/// Queues of waiting readers by key, and their deadlines.
#[derive(Debug)]
pub struct Blocked {
    /// By database and key.
    queues: Vec<BTreeMap<Box<[u8]>, Queue>>,
    deadlines: BTreeSet<(u64, ClientIndex)>,
    /// Readers with CLAIM, by the time at which the oldest pending entry will be idle enough.
    claims: BTreeSet<(u64, ClientIndex)>,
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
            claims: BTreeSet::new(),
            waiting: 0,
            tickets: 0,
            ready: Vec::new(),
        }
    }
}

impl Blocked {
    /// How many clients wait.
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

    /// Puts a client in the queues of its keys.
    pub fn add(&mut self, client: ClientIndex, wait: &Wait) {
        for key in &wait.keys {
            let queue = self.queues[wait.db].entry(key.clone()).or_default();
            queue.clients.insert(wait.ticket, client);
            queue.several += usize::from(wait.keys.len() > 1);
            queue.pending += usize::from(wait.claims == Some(ClaimWait::Pending));
            queue.claims += usize::from(wait.claims.is_some());
            queue.crowded += usize::from(wait.crowded);
            queue.groups += usize::from(wait.group.is_some());
        }
        if let Some(deadline_ms) = wait.deadline_ms.filter(|_| !wait.goes_on) {
            self.deadlines.insert((deadline_ms, client));
        }
        if let Some(ClaimWait::Until(ms)) = wait.claims {
            self.claims.insert((ms, client));
        }
        self.waiting += 1;
    }

    /// Takes a client out of all its queues.
    pub fn remove(&mut self, client: ClientIndex, wait: &Wait) {
        for key in &wait.keys {
            if let Some(queue) = self.queues[wait.db].get_mut(key) {
                queue.clients.remove(&wait.ticket);
                queue.several -= usize::from(wait.keys.len() > 1);
                queue.pending -= usize::from(wait.claims == Some(ClaimWait::Pending));
                queue.claims -= usize::from(wait.claims.is_some());
                queue.crowded -= usize::from(wait.crowded);
                queue.groups -= usize::from(wait.group.is_some());
                if queue.clients.is_empty() {
                    self.queues[wait.db].remove(key);
                }
            }
        }
        if let Some(deadline_ms) = wait.deadline_ms.filter(|_| !wait.goes_on) {
            self.deadlines.remove(&(deadline_ms, client));
        }
        if let Some(ClaimWait::Until(ms)) = wait.claims {
            self.claims.remove(&(ms, client));
        }
        self.waiting -= 1;
    }

    /// Something happened at a key that may end the wait of those whom `what` names.
    #[inline]
    pub fn signal(&mut self, db: usize, key: &[u8], what: Signal) {
        if self.is_empty() {
            return;
        }
        let Some(queue) = self.queues[db].get_mut(key) else { return };
        let concerned = match what {
            Signal::Any => queue.clients.len(),
            Signal::Pending => queue.pending,
            Signal::Claimable => queue.claims,
            Signal::Room => queue.crowded,
            Signal::Held => queue.groups,
        };
        if concerned > 0 && queue.listed & what.bit() == 0 {
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

    /// The earliest deadline, and whose it is.
    pub fn next_deadline(&self) -> Option<(u64, ClientIndex)> {
        self.deadlines.first().copied()
    }

    /// When the first reader with CLAIM looks again.
    pub fn next_claim(&self) -> Option<u64> {
        self.claims.first().map(|&(ms, _)| ms)
    }

    /// Readers with CLAIM whose time has come.
    pub fn due_claims(&self, now_ms: u64) -> Vec<ClientIndex> {
        self.claims.iter().take_while(|&&(ms, _)| ms <= now_ms).map(|&(_, client)| client).collect()
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
