//! Entries to bytes and back, and the check of everything that must hold.
//!
//! ```text
//! entries: sealed block count, sealed blocks …, open block
//! sealed:  table, packed
//! open:    taken; unless that is 0: weight, table, packed
//! table:   0 = that of the block before, or 1 + number of schemas, each: field count, names
//! packed:  live count, length, the packed bytes (see `block.rs`) of the live entries
//! ```
//!
//! A sealed block that has lost entries is packed anew on the way out, so what is gone leaves no trace. Of the open
//! block, what counts towards its being full (`taken`, `weight`, the table) is kept: it decides where the next block begins,
//! and a server that restarted must begin it where one that did not does.
//!
//! Decoding trusts nothing: every slot is walked, IDs must ascend, lengths are checked before anything is taken.

use std::sync::Arc;

use super::block::{
    Block, FORM_BOTH, FORM_MARK, FORM_SAME_MS, FORM_SEQ_ZERO, SMALL_FOLLOWS, Table, View, count_below, put_mark,
};
use super::packer::Packer;
use super::schema::Schema;
use super::{Entries, Place};
use crate::id::StreamId;
use crate::limits::{BLOCKS_PER_SPAN, SCHEMAS_PER_BLOCK, SLOTS_PER_MARK};
use crate::state::codec::{Corrupt, Reader, put_bytes, put_uint};

fn same_table(a: &[Arc<Schema>], b: &[Arc<Schema>]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| Arc::ptr_eq(a, b) || a.matches(b.names()))
}

fn put_table(out: &mut Vec<u8>, table: &[Arc<Schema>], before: &[Arc<Schema>]) {
    if !table.is_empty() && same_table(table, before) {
        return put_uint(out, 0);
    }
    put_uint(out, 1 + table.len() as u64);
    for schema in table {
        put_uint(out, schema.field_count() as u64);
        for name in schema.names() {
            put_bytes(out, name);
        }
    }
}

fn put_packed(out: &mut Vec<u8>, slots: usize, bytes: &[u8]) {
    put_uint(out, slots as u64);
    put_bytes(out, bytes);
}

fn read_table(reader: &mut Reader<'_>, before: &[Arc<Schema>]) -> Result<Vec<Arc<Schema>>, Corrupt> {
    const WHAT: &str = "field names of a block of entries";
    let count = match reader.uint(WHAT)? {
        0 if before.is_empty() => return Err(Corrupt { what: WHAT }),
        0 => return Ok(before.to_vec()),
        count => (count - 1) as usize,
    };
    if count > SCHEMAS_PER_BLOCK {
        return Err(Corrupt { what: WHAT });
    }
    let mut table: Vec<Arc<Schema>> = Vec::with_capacity(count);
    for _ in 0..count {
        let fields = reader.count(WHAT)?;
        let start = *reader;
        let mut bytes = 0;
        for _ in 0..fields {
            bytes += reader.bytes(WHAT)?.len() + 32;
        }
        if u32::try_from(bytes).is_err() {
            return Err(Corrupt { what: WHAT });
        }
        let names = (0..fields).scan(start, |reader, _| reader.bytes(WHAT).ok());
        if table.iter().any(|schema| schema.matches(names.clone())) {
            return Err(Corrupt { what: WHAT });
        }
        let known = before.iter().find(|schema| schema.matches(names.clone())).cloned();
        table.push(known.unwrap_or_else(|| Arc::new(Schema::new(names))));
    }
    Ok(table)
}

/// Reads packed bytes, walking all of them. IDs must be greater than `after`. Returns also the first ID and the bytes of
/// names and values.
fn read_packed(
    reader: &mut Reader<'_>,
    table: Vec<Arc<Schema>>,
    after: Option<StreamId>,
) -> Result<(Packer, StreamId, u64), Corrupt> {
    const WHAT: &str = "entries of a block";
    let corrupt = Corrupt { what: WHAT };
    let slots = reader.count(WHAT)?;
    let bytes = reader.bytes(WHAT)?;
    if slots == 0 || u32::try_from(bytes.len()).is_err() {
        return Err(corrupt);
    }
    let mut packer = Packer { bytes: bytes.to_vec(), table, slots, ..Packer::default() };
    let mut first = None;
    let mut last = after;
    let mut walk = Reader::new(bytes);
    let mut payload = 0;
    for slot in 0..slots {
        let offset = bytes.len() - walk.rest.len();
        let head = walk.byte(WHAT)?;
        let (form, small) = (head >> 3 & 3, u64::from(head >> 5));
        if slot.is_multiple_of(SLOTS_PER_MARK) != (form == FORM_MARK) || (form >= FORM_BOTH && small != 0) {
            return Err(corrupt);
        }
        let mut id = last.unwrap_or(StreamId::MIN);
        match form {
            FORM_SAME_MS | FORM_SEQ_ZERO => {
                let delta = if small == SMALL_FOLLOWS { walk.uint(WHAT)? } else { small + 1 };
                if form == FORM_SAME_MS {
                    id.seq = id.seq.checked_add(delta).ok_or(corrupt)?;
                } else {
                    id = StreamId::new(id.ms.checked_add(delta).ok_or(corrupt)?, 0);
                }
            }
            FORM_BOTH => id = StreamId::new(id.ms.checked_add(walk.uint(WHAT)?).ok_or(corrupt)?, walk.uint(WHAT)?),
            _ => {
                id = walk.id(WHAT)?;
                if last.is_some_and(|last| id <= last) {
                    return Err(corrupt);
                }
                if slot > 0 {
                    put_mark(&mut packer.marks, offset, id.ms, packer.base_ms);
                } else {
                    packer.base_ms = id.ms;
                }
            }
        }
        if last.is_some_and(|last| id <= last) {
            return Err(corrupt);
        }
        let strings = match usize::from(head & 7) {
            0 => walk.count(WHAT)?.checked_mul(2).ok_or(corrupt)?,
            number => {
                let schema = packer.table.get(number - 1).ok_or(corrupt)?;
                payload += schema.name_bytes() as u64;
                schema.field_count()
            }
        };
        for _ in 0..strings {
            payload += walk.bytes(WHAT)?.len() as u64;
        }
        first = first.or(Some(id));
        last = Some(id);
    }
    packer.last = last.ok_or(corrupt)?;
    if !walk.is_empty() {
        return Err(corrupt);
    }
    Ok((packer, first.ok_or(corrupt)?, payload))
}

impl Entries {
    fn sealed_blocks(&self) -> impl Iterator<Item = (&Block, View<'_>)> {
        let blocks = |span: &super::SpanSlot| 0..span.span.block_count();
        self.spans
            .iter()
            .flat_map(move |slot| blocks(slot).map(|index| (slot.span.block(index), slot.span.view(index))))
    }

    /// Appends all live entries and the layout of their blocks. Equal layout and entries, equal bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_uint(out, self.sealed as u64);
        let mut before: Table = Arc::from([]);
        for (block, view) in self.sealed_blocks() {
            if view.deleted.is_empty() {
                put_table(out, view.table, &before);
                put_packed(out, view.slots, view.bytes);
                before = block.table().clone();
            } else {
                let packer = Packer::of(view, &[]);
                put_table(out, &packer.table, &before);
                put_packed(out, packer.slots, &packer.bytes);
                before = packer.table.into();
            }
        }
        let open = &self.open;
        put_uint(out, open.taken as u64);
        if open.taken > 0 {
            put_uint(out, open.weight as u64);
            put_table(out, &open.packer.table, &before);
            if open.deleted.is_empty() {
                put_packed(out, open.packer.slots, &open.packer.bytes);
            } else {
                let packer = Packer::of(open.view(), &open.packer.table);
                put_packed(out, packer.slots, &packer.bytes);
            }
        }
    }

    /// Reads what [`Entries::encode`] wrote.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Entries, Corrupt> {
        const WHAT: &str = "blocks of entries";
        let mut entries = Entries::default();
        let mut before: Table = Arc::from([]);
        let mut last = None;
        for _ in 0..reader.count(WHAT)? {
            let table = read_table(reader, &before)?;
            let (mut packer, first, payload) = read_packed(reader, table, last)?;
            last = Some(packer.last);
            let live = packer.slots as u32;
            let block = Block::seal(&mut packer, Some(&before));
            before = block.table().clone();
            entries.push_sealed(block, first, live, payload);
            entries.len += u64::from(live);
            entries.payload += payload;
        }
        Arc::make_mut(&mut entries.open).recent = before.to_vec();
        let taken = reader.uint(WHAT)?;
        if taken > 0 {
            let weight = reader.uint(WHAT)?;
            let table = read_table(reader, &before)?;
            let (packer, first, payload) = read_packed(reader, table, last)?;
            if taken < packer.slots as u64 || taken > u64::from(u32::MAX) || weight > u64::from(u32::MAX) {
                return Err(Corrupt { what: WHAT });
            }
            let open = Arc::make_mut(&mut entries.open);
            open.live = packer.slots;
            open.first = first;
            open.last = packer.last;
            open.taken = taken as usize;
            open.weight = weight as usize;
            open.packer = packer;
            open.payload = payload;
            entries.len += open.live as u64;
            entries.payload += payload;
        }
        Ok(entries)
    }

    /// Does everything hold that this collection promises? Decodes every entry. The error says what does not.
    pub fn check(&self) -> Result<(), String> {
        let (mut len, mut blocks, mut last, mut payload) = (0, 0, None, 0);
        for (number, slot) in self.spans.iter().enumerate() {
            let count = slot.span.block_count();
            let live = slot.span.live_before(count);
            let fault = |what: String| Err(format!("span {number}: {what}"));
            if count == 0 || count > BLOCKS_PER_SPAN {
                return fault(format!("has {count} blocks"));
            }
            if slot.live != live || slot.first != slot.span.first() {
                return fault(format!("{} live from {}, its blocks say {live} from another", slot.live, slot.first));
            }
            if slot.payload != slot.span.payload_before(count) {
                return fault(format!("{} bytes of names and values", slot.payload));
            }
            payload += slot.payload;
            for block in 0..count {
                let view = self.view(Place { span: number, block });
                check_block(view, &mut last).or_else(|what| fault(format!("block {block}: {what}")))?;
                let bytes = slot.span.payload_before(block + 1) - slot.span.payload_before(block);
                if bytes != view.cursor(0).map(|entry| entry.payload_bytes()).sum::<u64>() {
                    return fault(format!("block {block}: {bytes} bytes of names and values"));
                }
                if view.deleted.is_empty() {
                    let packer = Packer::of(view, &[]);
                    if packer.bytes != view.bytes
                        || packer.marks != view.marks
                        || !same_table(&packer.table, view.table)
                    {
                        return fault(format!("block {block}: packing its entries anew gives other bytes"));
                    }
                }
            }
            len += live;
            blocks += count;
        }
        let open = &self.open;
        if open.live > open.packer.slots || open.packer.slots > open.taken || (open.live == 0 && open.taken > 0) {
            return Err(format!("open block: {} live, {} slots, {} taken", open.live, open.packer.slots, open.taken));
        }
        if open.live > 0 {
            check_block(open.view(), &mut last).map_err(|what| format!("open block: {what}"))?;
        }
        if open.payload != open.view().cursor(0).map(|entry| entry.payload_bytes()).sum::<u64>() {
            return Err(format!("open block: {} bytes of names and values", open.payload));
        }
        if payload + open.payload != self.payload {
            return Err(format!("{} bytes of names and values", self.payload));
        }
        len += open.live as u64;
        if (len, blocks) != (self.len, self.sealed) {
            return Err(format!("{} live in {} blocks, found {len} in {blocks}", self.len, self.sealed));
        }
        Ok(())
    }
}

fn check_block(view: View<'_>, last: &mut Option<StreamId>) -> Result<(), String> {
    let (mut cursor, mut live, mut first) = (view.cursor(0), 0, None);
    while let Some(entry) = cursor.next_live() {
        if last.is_some_and(|last| entry.id <= last) {
            return Err(format!("{} does not ascend", entry.id));
        }
        if view.at(cursor.slot - 1).id != entry.id {
            return Err(format!("{} is not found by its slot", entry.id));
        }
        if view.rank(entry.id) != live || view.nth_live_slot(live) + 1 != cursor.slot {
            return Err(format!("{} is not found at its rank", entry.id));
        }
        first = first.or(Some(entry.id));
        *last = Some(entry.id);
        live += 1;
    }
    if live == 0 || live != view.live || live != view.slots - count_below(view.deleted, view.slots) {
        return Err(format!("{live} live entries, counted {} in {} slots", view.live, view.slots));
    }
    if first != Some(view.first) || *last != Some(view.last) {
        return Err(format!("its ends are not {} and {}", view.first, view.last));
    }
    Ok(())
}
