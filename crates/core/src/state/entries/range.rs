//! Walking the entries, forwards and backwards. Nothing is allocated: entries are views into the blocks.

use super::block::{Cursor, View};
use super::entry::Entry;
use super::{Entries, Place};
use crate::id::StreamId;
use crate::limits::SLOTS_PER_MARK;

/// Live entries in ascending order, up to an ID.
pub struct Range<'a> {
    entries: &'a Entries,
    /// Where the cursor is; `None` when there is nothing more.
    place: Option<Place>,
    cursor: Cursor<'a>,
    end: StreamId,
}

impl<'a> Range<'a> {
    pub(super) fn new(entries: &'a Entries, start: StreamId, end: StreamId) -> Self {
        let place = if start > end { None } else { entries.locate(start).or_else(|| entries.first_place()) };
        let cursor = place.map_or_else(Cursor::at_end, |place| entries.view(place).seek(start));
        Range { entries, place, cursor, end }
    }
}

impl<'a> Iterator for Range<'a> {
    type Item = Entry<'a>;

    #[inline]
    fn next(&mut self) -> Option<Entry<'a>> {
        loop {
            if let Some(entry) = self.cursor.next_live() {
                if entry.id > self.end {
                    self.place = None;
                    self.cursor = Cursor::at_end();
                    return None;
                }
                return Some(entry);
            }
            self.place = self.entries.next_place(self.place?);
            self.cursor = self.entries.view(self.place?).cursor(0);
        }
    }
}

/// Live entries in descending order, down to an ID. A group of 8 slots is decoded forwards and handed out backwards.
pub struct RangeRev<'a> {
    entries: &'a Entries,
    /// The block that `group` counts in; `None` when there is nothing more to decode.
    place: Option<Place>,
    view: Option<View<'a>>,
    /// The groups of the block that are still to be decoded: those below this number.
    group: usize,
    start: StreamId,
    end: StreamId,
    buffer: [Option<Entry<'a>>; SLOTS_PER_MARK],
    /// Entries in the buffer, not handed out yet.
    filled: usize,
}

impl<'a> RangeRev<'a> {
    pub(super) fn new(entries: &'a Entries, start: StreamId, end: StreamId) -> Self {
        let place = if start > end { None } else { entries.locate(end) };
        let view = place.map(|place| entries.view(place));
        let group = view.map_or(0, |view| view.group_of(end) + 1);
        RangeRev { entries, place, view, group, start, end, buffer: [None; SLOTS_PER_MARK], filled: 0 }
    }

    /// Decodes the group before the last one decoded. Returns false when there is none.
    fn fill(&mut self) -> bool {
        let (Some(place), Some(mut view)) = (self.place, self.view) else { return false };
        if self.group == 0 {
            self.place = self.entries.previous_place(place);
            let Some(place) = self.place else { return false };
            view = self.entries.view(place);
            self.view = Some(view);
            self.group = view.groups();
        }
        self.group -= 1;
        let mut cursor = view.cursor(self.group);
        let behind = (self.group + 1) * SLOTS_PER_MARK;
        while cursor.slot < behind {
            let Some(entry) = cursor.step() else { break };
            if entry.id > self.end {
                break;
            }
            if entry.id < self.start {
                // What lies before this group is smaller still.
                self.place = None;
            } else if !super::block::is_set(view.deleted, cursor.slot - 1) {
                self.buffer[self.filled] = Some(entry);
                self.filled += 1;
            }
        }
        true
    }
}

#[cfg(test)]
impl RangeRev<'_> {
    /// Is it known that there is nothing more to decode?
    pub(super) fn is_at_start(&self) -> bool {
        self.place.is_none()
    }
}

impl<'a> Iterator for RangeRev<'a> {
    type Item = Entry<'a>;

    #[inline]
    fn next(&mut self) -> Option<Entry<'a>> {
        while self.filled == 0 {
            if !self.fill() {
                return None;
            }
        }
        self.filled -= 1;
        self.buffer[self.filled].take()
    }
}
