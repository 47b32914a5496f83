//! Every invariant of the state: what tests ask after each step, and DEBUG on request.

use super::{State, Value};
use crate::state::sizes::{SizeClass, Sizes};

impl State {
    /// Every invariant of everything.
    pub fn check(&self) -> Result<(), String> {
        for (number, db) in self.databases.iter().enumerate() {
            let (mut expiring, mut timed) = (0, 0);
            let mut sizes = Sizes::default();
            for (key, slot) in db.iter() {
                sizes.add(SizeClass::of(&slot.value));
                timed += usize::from(slot.timer_ms != 0);
                let due_ms = slot.value.next_due_ms().unwrap_or(u64::MAX);
                if (slot.timer_ms == 0 && due_ms != u64::MAX)
                    || slot.timer_ms > due_ms
                    || (slot.timer_ms != 0 && !db.timers.contains(&(slot.timer_ms, key.into())))
                {
                    return Err(format!("key {} of database {number} misses its time", key.escape_ascii()));
                }
                if slot.expire_ms != 0 {
                    expiring += 1;
                    if !db.expiry.contains(&(slot.expire_ms, key.into())) {
                        return Err(format!(
                            "key {} of database {number} is not in the expiry index",
                            key.escape_ascii()
                        ));
                    }
                }
                if let Value::Stream(stream) = &slot.value {
                    stream
                        .check()
                        .map_err(|why| format!("stream {} of database {number}: {why}", key.escape_ascii()))?;
                }
            }
            if timed != db.timers.len() {
                return Err(format!("database {number}: {timed} keys have timers, the index has {}", db.timers.len()));
            }
            if sizes != db.sizes {
                return Err(format!("database {number}: its values are not as large as the histograms say"));
            }
            if expiring != db.expiry.len() {
                return Err(format!("database {number}: {expiring} keys expire, the index has {}", db.expiry.len()));
            }
        }
        Ok(())
    }
}
