//! A group as bytes, for snapshots and digests: canonical, so equal groups are equal bytes. `docs/formats.md` draws them.
//!
//! Reading checks: bytes that are no group are an error, never a panic.

use std::sync::Arc;

use super::{Group, GroupOptions, Totals, Work};
use crate::id::StreamId;
use crate::state::codec::{Corrupt, Reader, end_sections, put_bytes, put_id, put_int, put_section, put_uint};
use crate::state::pending::{ConsumerRef, Pel, Pending};

mod tag {
    pub const OPTIONS: u8 = 1;
    pub const HELD: u8 = 2;
    pub const TOTALS: u8 = 3;
    pub const KEYS: u8 = 5;
    pub const WORK: u8 = 6;
}

impl Group {
    /// Appends the group in its canonical form: equal groups, equal bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_id(out, self.last_delivered);
        put_int(out, self.entries_read.map_or(-1, |n| n as i64));
        // References are an accident of history; in the canonical form a consumer's number is its place by name.
        put_uint(out, self.by_name.len() as u64);
        let mut renumbered = Group { last_delivered: self.last_delivered, ..Group::default() };
        let mut in_order = true;
        for (place, (of, consumer)) in self.consumers().enumerate() {
            put_bytes(out, &consumer.name);
            put_uint(out, consumer.seen_ms);
            put_int(out, consumer.active_ms.map_or(-1, |ms| ms as i64));
            in_order &= of.0 as usize == place;
        }
        if in_order {
            self.pel.encode(out);
            return self.encode_parts(out);
        }
        let mut places = vec![ConsumerRef(u32::MAX); self.consumers.len()];
        for (place, (of, _)) in self.consumers().enumerate() {
            places[of.0 as usize] = ConsumerRef(place as u32);
        }
        for pending in self.pel.range(StreamId::MIN) {
            let consumer = match pending.consumer {
                ConsumerRef::NOBODY => ConsumerRef::NOBODY,
                of => places[of.0 as usize],
            };
            renumbered.pel.put(Pending { consumer, ..pending });
        }
        renumbered.pel.encode(out);
        self.encode_parts(out);
    }

    /// What was released or deferred stands in the pending list; the counts follow from it.
    fn encode_parts(&self, out: &mut Vec<u8>) {
        put_section(out, tag::OPTIONS, |out| self.options.encode(out));
        put_section(out, tag::HELD, |out| self.held().encode(out));
        put_section(out, tag::TOTALS, |out| self.totals.encode(out));
        let is_pending = |id| self.stale_keys.is_none() || self.pel.contains(id);
        put_section(out, tag::KEYS, |out| self.held().encode_keys(out, is_pending));
        put_section(out, tag::WORK, |out| {
            if let Some(work) = &self.work {
                work.encode(out, self);
            }
        });
        end_sections(out);
    }

    /// Reads what [`Group::encode`] wrote.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Group, Corrupt> {
        let what = "consumer group";
        let last_delivered = reader.id(what)?;
        let entries_read = u64::try_from(reader.int(what)?).ok();
        let mut group = Group::new(last_delivered, entries_read);
        for _ in 0..reader.count(what)? {
            let name = reader.bytes(what)?;
            let seen_ms = reader.uint(what)?;
            let active_ms = u64::try_from(reader.int(what)?).ok();
            if group.find(name).is_some() {
                return Err(Corrupt { what: "consumer named twice" });
            }
            let of = group.ensure_consumer(name, seen_ms);
            group.consumer_mut(of).active_ms = active_ms;
        }
        let pel = Pel::decode(reader)?;
        for pending in pel.range(StreamId::MIN) {
            let known = group.consumers.get(pending.consumer.0 as usize).is_some_and(Option::is_some);
            if !known && pending.consumer != ConsumerRef::NOBODY {
                return Err(Corrupt { what: "pending entry of an unknown consumer" });
            }
            group.note_put(&pending);
        }
        group.pel = pel;
        let mut last_tag = 0;
        while let Some((tag, part)) = reader.section(what)? {
            if tag <= last_tag {
                return Err(Corrupt { what: "parts of a consumer group out of order" });
            }
            last_tag = tag;
            match tag {
                tag::OPTIONS => group.options = GroupOptions::decode(part)?,
                tag::HELD => {
                    Arc::make_mut(group.held.get_or_insert_default()).decode(part)?;
                    let is_wrong = |id| id > group.last_delivered || group.pel.contains(id);
                    if group.held().iter().any(is_wrong) {
                        return Err(Corrupt { what: "held entries of a consumer group" });
                    }
                }
                tag::TOTALS => group.totals = Totals::decode(part)?,
                tag::WORK => {
                    let work = Work::decode(part)?;
                    if work.ledger.check_pending(|id| group.pel.get(id)).is_err() {
                        return Err(Corrupt { what: "begun and held entries of a consumer group" });
                    }
                    group.work = Some(Box::new(work));
                }
                tag::KEYS if group.options.key_field.is_none() => {
                    return Err(Corrupt { what: "keys of a consumer group that keeps no order" });
                }
                tag::KEYS => {
                    let pel = &group.pel;
                    Arc::make_mut(group.held.get_or_insert_default()).decode_keys(part, |id| pel.contains(id))?;
                }
                _ => return Err(Corrupt { what: "unknown part of a consumer group" }),
            }
        }
        Ok(group)
    }
}
