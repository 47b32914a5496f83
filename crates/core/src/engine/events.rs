//! Keyspace events: what commands do to keys, told to subscribers as `notify-keyspace-events` wants it.
//!
//! A command calls [`Cx::notify`] behind the record that made the change, so that the event waits for that record as
//! a reply would: nobody hears of what a crash may undo. Events never change anything; with the setting off, as it is
//! by default, an event costs one branch.

use std::io::Write;

use super::{Cx, Engine};

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
}

impl Engine {
    /// Tells of an event.
    #[inline]
    pub(super) fn notify(&mut self, class: EventClass, event: &str, db: usize, key: &[u8]) {
        if !self.settings.notify_keyspace_events.is_empty() {
            self.publish_event(class, event, db, key);
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
