//! Keyspace events: what commands do to keys, told to subscribers as `notify-keyspace-events` wants it.
//!
//! A command calls [`Cx::notify`] behind the record that made the change, so that the event waits for that record as
//! a reply would: nobody hears of what a crash may undo. Events never change anything; with the setting off, as it is
//! by default, an event costs one branch.

use std::io::Write;

use super::{Cx, Engine};
use crate::command::table::{CommandId, Flags};
use crate::record::At;

/// Classes of events that happen here, by the letters of the setting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventClass {
    /// `g`: of any key.
    Generic,
    /// `$`: of strings.
    String,
    /// `t`: of streams.
    Stream,
    /// `x`: a key whose time was over.
    Expired,
    /// `n`: a key that was not there before.
    New,
    /// `m`: a key that was looked for and not found.
    Miss,
}

impl EventClass {
    fn letter(self) -> u8 {
        match self {
            EventClass::Generic => b'g',
            EventClass::String => b'$',
            EventClass::Stream => b't',
            EventClass::Expired => b'x',
            EventClass::New => b'n',
            EventClass::Miss => b'm',
        }
    }
}

impl Cx<'_> {
    /// Are there any events to be told of? For what must be looked at to tell of one.
    #[inline]
    pub fn notifies(&self) -> bool {
        !self.engine.settings.notify_keyspace_events.is_empty()
    }

    /// Tells of an event at a key of the selected database. Behind the record.
    #[inline]
    pub fn notify(&mut self, class: EventClass, event: &str, key: &[u8]) {
        self.engine.notify(class, event, self.db, key);
    }

    /// Tells of an event at a key of any database.
    #[inline]
    pub fn notify_in(&mut self, db: usize, class: EventClass, event: &str, key: &[u8]) {
        self.engine.notify(class, event, db, key);
    }

    /// Tells that a key is new, if it is: before the first event at that key.
    #[inline]
    pub fn notify_new(&mut self, is_new: bool, key: &[u8]) {
        if is_new {
            self.notify(EventClass::New, "new", key);
        }
    }

    /// Entries of a stream went by trimming, see [`Engine::note_trim`].
    #[inline]
    pub fn note_trim(&mut self, key: &[u8]) {
        self.engine.note_trim(At { db: self.db, key });
    }

    /// A key was not found: an event, where reading it is what the command does.
    #[cold]
    pub(super) fn note_miss(&self, db: usize, key: &[u8]) {
        use CommandId as C;
        let reads = match self.spec.id {
            // Writers that begin by reading. Those that then go on writing (SET GET, GETSET, COPY) say it themselves.
            C::GetDel | C::GetEx | C::XReadGroup | C::XAck | C::XAckDel | C::XClaim | C::XAutoClaim => true,
            C::ObjectEncoding | C::ObjectRefCount | C::ObjectIdleTime | C::ObjectFreq | C::MemoryUsage => false,
            _ => self.spec.flags.has(Flags::READONLY),
        };
        if !reads || !self.engine.settings.notify_keyspace_events.has(b'm') {
            return;
        }
        let mut missed = self.missed.borrow_mut();
        // Commands that look a key up again while they work have still missed it once.
        let each_counts = matches!(self.spec.id, C::MGet | C::Exists | C::Touch);
        if each_counts || !missed.iter().any(|(d, k)| *d == db && **k == *key) {
            missed.push((db, key.into()));
        }
    }
}

impl Engine {
    /// Tells of an event.
    #[inline]
    pub(super) fn notify(&mut self, class: EventClass, event: &str, db: usize, key: &[u8]) {
        if !self.settings.notify_keyspace_events.is_empty() {
            self.publish_event(class, event, db, key);
        }
    }

    /// Entries of a stream went by trimming, whatever it was that let them go: the command's own bound, bounds of the
    /// stream, RETAIN acked. That is one event `xtrim`, told behind all others of the command, or of the slice of work that
    /// no command has asked for.
    #[inline]
    pub(super) fn note_trim(&mut self, at: At<'_>) {
        if self.settings.notify_keyspace_events.is_empty() {
            return;
        }
        if !self.trimmed.iter().any(|(db, key)| *db == at.db && **key == *at.key) {
            self.trimmed.push((at.db, at.key.into()));
        }
    }

    /// Tells what was noted of trimming.
    #[inline]
    pub(super) fn tell_trims(&mut self) {
        if self.trimmed.is_empty() {
            return;
        }
        for (db, key) in std::mem::take(&mut self.trimmed) {
            self.notify(EventClass::Stream, "xtrim", db, &key);
        }
    }

    #[cold]
    fn publish_event(&mut self, class: EventClass, event: &str, db: usize, key: &[u8]) {
        let chosen = self.settings.notify_keyspace_events;
        if self.pubsub.is_empty() || !chosen.has(class.letter()) {
            return;
        }
        let gate = self.log.position();
        let mut channel = Vec::new();
        if chosen.has(b'K') {
            write!(channel, "__keyspace@{db}__:").expect("a vector takes all that is written");
            channel.extend_from_slice(key);
            self.publish(&channel, event.as_bytes(), gate);
        }
        if chosen.has(b'E') {
            channel.clear();
            write!(channel, "__keyevent@{db}__:{event}").expect("a vector takes all that is written");
            self.publish(&channel, key, gate);
        }
    }
}
