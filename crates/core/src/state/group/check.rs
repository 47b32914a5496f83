//! Every invariant of a group: see `state::group`.

use super::Group;
use crate::id::StreamId;
use crate::state::ledger::HOLD_UNTIL_MS;
use crate::state::pending::ConsumerRef;

impl Group {
    /// Every invariant.
    pub fn check(&self) -> Result<(), String> {
        self.pel.check()?;
        self.deferred.check()?;
        let is_stale = |id| self.stale_keys.is_some_and(|(from, to)| id >= from && id <= to);
        self.held().check(|id| self.pel.contains(id), is_stale)?;
        if let Some(last) = self.held().last().filter(|&last| last > self.last_delivered) {
            return Err(format!("{last} is held beyond the position {}", self.last_delivered));
        }
        if let Some(work) = &self.work {
            work.ledger.check(|id| self.pel.get(id))?;
        }
        let mut counts = vec![0u64; self.consumers.len()];
        let (mut released, mut deferred) = (0, 0);
        for pending in self.pel.range(StreamId::MIN) {
            if pending.is_released() {
                released += 1;
                if pending.delivered_ms > self.last_release {
                    return Err(format!("{} is beyond the last number in the order of release", pending.id));
                }
                continue;
            }
            if pending.is_deferred() {
                deferred += 1;
                if pending.delivered_ms == HOLD_UNTIL_MS && self.work_hold(pending.id).is_none() {
                    return Err(format!("{} is out of reach and not on hold", pending.id));
                }
                if self.deferred.get(pending.id) != Some(pending.delivered_ms) {
                    return Err(format!("{} is deferred and not listed by its time", pending.id));
                }
                continue;
            }
            let slot = counts.get_mut(pending.consumer.0 as usize);
            *slot.ok_or_else(|| format!("{} is pending for an unknown consumer", pending.id))? += 1;
        }
        if (released, deferred) != (self.released, self.deferred.len()) {
            return Err(format!(
                "{released} released, {deferred} deferred, noted as {}, {}",
                self.released,
                self.deferred()
            ));
        }
        for (at, count) in counts.into_iter().enumerate() {
            match &self.consumers[at] {
                Some(consumer) if consumer.pending != count => {
                    return Err(format!("consumer {at} counts {} pending, has {count}", consumer.pending));
                }
                Some(consumer) if self.by_name.get(&consumer.name).map(|of| of.0 as usize) != Some(at) => {
                    return Err(format!("consumer {at} is not found by its name"));
                }
                None if count > 0 => return Err(format!("removed consumer {at} has {count} pending")),
                _ => {}
            }
        }
        if self.by_name.len() != self.consumers.iter().flatten().count() {
            return Err("names and consumers differ in number".to_owned());
        }
        let is_free = |of: &ConsumerRef| self.consumers.get(of.0 as usize).is_some_and(Option::is_none);
        let empty = self.free.len() + self.pel.passing_count();
        if self.by_name.len() + empty != self.consumers.len() || !self.free.iter().all(is_free) {
            return Err("the freed places are not the empty ones".to_owned());
        }
        Ok(())
    }
}
