//! What happens to policies and ledgers by time alone: rows are forgotten, consumers that have nothing are removed.

use crate::engine::Engine;
use crate::engine::events::EventClass;
use crate::record::{At, Record};
use crate::state::group::Group;
use crate::state::keyspace::Value;

/// Consumers are looked through no more often than this (ms): some may have something and still count as old.
const LOOK_LEAST_MS: u64 = 100;

impl Engine {
    fn groups_at(&self, at: At<'_>) -> impl Iterator<Item = (&[u8], &Group)> {
        let stream = match self.state.db(at.db).get_any(at.key).map(|slot| &slot.value) {
            Some(Value::Stream(stream)) => Some(stream),
            _ => None,
        };
        stream.into_iter().flat_map(|stream| stream.groups.iter().map(|(name, group)| (&**name, &**group)))
    }

    /// Forgets rows of the ledgers of a stream that are known no more, at most `limit`; answers how many.
    pub(in crate::engine) fn forget_rows(&mut self, at: At<'_>, now_ms: u64, limit: usize) -> usize {
        let due = self.groups_at(at).find_map(|(name, group)| {
            let work = group.work()?;
            work.ledger.next_due_ms(&work.policy).filter(|&due_ms| due_ms <= now_ms)?;
            let before = work.ledger.to_forget(&work.policy, now_ms, limit as u64)?;
            Some((name.to_vec(), before, work.ledger.len()))
        });
        let Some((group, before, len)) = due else { return 0 };
        self.emit_lazily(&Record::WorkForget { at, group: &group, before });
        let left = self.groups_at(at).find(|(name, _)| **name == *group);
        left.and_then(|(_, group)| group.work()).map_or(0, |work| (len - work.ledger.len()) as usize)
    }

    /// Removes consumers of a stream that have had nothing for longer than their group's CONSUMERTTL, and for whom nobody
    /// waits; answers how many were looked at.
    pub(in crate::engine) fn end_consumers(&mut self, at: At<'_>, now_ms: u64) -> usize {
        let due = self.groups_at(at).find_map(|(name, group)| {
            let work = group.work().filter(|work| work.policy.consumer_ttl_ms != 0)?;
            (work.consumers_look_ms <= now_ms).then(|| (name.to_vec(), work.policy.consumer_ttl_ms))
        });
        let Some((group, ttl_ms)) = due else { return 0 };
        let waiting = self.waiting_consumers(at, &group);
        let (mut over, mut looked) = (Vec::new(), 0);
        let mut look_ms = now_ms.saturating_add(ttl_ms);
        for (_, consumer) in self.groups_at(at).filter(|(name, _)| **name == *group).flat_map(|(_, it)| it.consumers())
        {
            looked += 1;
            let over_ms = consumer.seen_ms.saturating_add(ttl_ms).saturating_add(1);
            if over_ms > now_ms {
                look_ms = look_ms.min(over_ms);
            } else if consumer.pending == 0 && !waiting.contains(&&*consumer.name) {
                over.push(consumer.name.clone());
            } else {
                // It may be done with it at any time.
                look_ms = look_ms.min(now_ms + (ttl_ms / 8).max(LOOK_LEAST_MS));
            }
        }
        for consumer in over {
            self.emit(&Record::ConsumerDelete { at, group: &group, consumer: &consumer });
            self.notify(EventClass::Stream, "xgroup-delconsumer", at.db, at.key);
        }
        self.state.note_consumers_look(at, &group, look_ms);
        looked
    }

    /// Consumers of a group for whom someone waits at the key.
    fn waiting_consumers(&self, at: At<'_>, group: &[u8]) -> std::collections::BTreeSet<&[u8]> {
        let waits = self.blocked.queue(at.db, at.key).into_iter();
        let readers = waits.filter_map(|(_, index)| self.client(index)?.wait.as_deref()?.group.as_ref());
        readers.filter(|reader| *reader.group == *group).map(|reader| &*reader.consumer).collect()
    }
}
