//! Readers that wait. Each holds one ticket; in every queue it stands by that ticket, so who asked first is served
//! first. A reader woken in vain takes a new ticket, which puts it at the back of all its queues.

use std::collections::{BTreeMap, BTreeSet};

use crate::limits::DATABASES;

/// Index of a client in the engine's table.
pub type ClientIndex = usize;

/// Who waits for one key.
#[derive(Debug, Default)]
struct Queue {
    by_ticket: BTreeMap<u64, ClientIndex>,
    /// Is in the list of keys at which something happened.
    ready: bool,
}

/// Queues of waiting readers by key, and their deadlines.
#[derive(Debug)]
pub struct Blocked {
    /// By database and key.
    queues: Vec<BTreeMap<Box<[u8]>, Queue>>,
    deadlines: BTreeSet<(u64, ClientIndex)>,
    waiting: usize,
    tickets: u64,
    /// Keys at which something happened that may end a wait, in order, each once while its queue lasts.
    ready: Vec<(usize, Box<[u8]>)>,
}

impl Default for Blocked {
    fn default() -> Self {
        let queues = (0..DATABASES).map(|_| BTreeMap::new()).collect();
        Blocked { queues, deadlines: BTreeSet::new(), waiting: 0, tickets: 0, ready: Vec::new() }
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
    pub fn add(&mut self, client: ClientIndex, db: usize, keys: &[Box<[u8]>], ticket: u64, deadline_ms: Option<u64>) {
        for key in keys {
            self.queues[db].entry(key.clone()).or_default().by_ticket.insert(ticket, client);
        }
        if let Some(deadline_ms) = deadline_ms {
            self.deadlines.insert((deadline_ms, client));
        }
        self.waiting += 1;
    }

    /// Takes a client out of all its queues.
    pub fn remove(
        &mut self,
        client: ClientIndex,
        db: usize,
        keys: &[Box<[u8]>],
        ticket: u64,
        deadline_ms: Option<u64>,
    ) {
        for key in keys {
            if let Some(queue) = self.queues[db].get_mut(key) {
                queue.by_ticket.remove(&ticket);
                if queue.by_ticket.is_empty() {
                    self.queues[db].remove(key);
                }
            }
        }
        if let Some(deadline_ms) = deadline_ms {
            self.deadlines.remove(&(deadline_ms, client));
        }
        self.waiting -= 1;
    }

    /// Gives a client another deadline.
    pub fn change_deadline(&mut self, client: ClientIndex, old_ms: Option<u64>, new_ms: Option<u64>) {
        if let Some(old_ms) = old_ms {
            self.deadlines.remove(&(old_ms, client));
        }
        if let Some(new_ms) = new_ms {
            self.deadlines.insert((new_ms, client));
        }
    }

    /// Something happened at a key.
    #[inline]
    pub fn signal(&mut self, db: usize, key: &[u8]) {
        if let Some(queue) = self.queues[db].get_mut(key)
            && !std::mem::replace(&mut queue.ready, true)
        {
            self.ready.push((db, key.into()));
        }
    }

    /// Something happened at every key of a database.
    pub fn signal_all(&mut self, db: usize) {
        for (key, queue) in &mut self.queues[db] {
            if !std::mem::replace(&mut queue.ready, true) {
                self.ready.push((db, key.clone()));
            }
        }
    }

    /// The keys at which something happened since the last call.
    pub fn take_ready(&mut self) -> Vec<(usize, Box<[u8]>)> {
        let ready = std::mem::take(&mut self.ready);
        for (db, key) in &ready {
            if let Some(queue) = self.queues[*db].get_mut(key) {
                queue.ready = false;
            }
        }
        ready
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
            .map_or_else(Vec::new, |queue| queue.by_ticket.iter().map(|(&ticket, &client)| (ticket, client)).collect())
    }

    /// The earliest deadline, and whose it is.
    pub fn next_deadline(&self) -> Option<(u64, ClientIndex)> {
        self.deadlines.first().copied()
    }
}
