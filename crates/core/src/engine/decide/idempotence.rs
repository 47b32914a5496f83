//! IDMP and IDMPAUTO of XADD, and XIDMPRECORD: messages that come again are recognized.
//!
//! The iid of IDMPAUTO is written down in `docs/commands/xadd.md` and never changes: it stands in logs and snapshots.

use std::hash::Hasher;

use siphasher::sip128::{Hasher128, SipHasher24};
use smallvec::SmallVec;

use crate::command::args::Args;
use crate::command::parse::{self, is};
use crate::engine::Cx;
use crate::engine::fault::Fault;
use crate::id::StreamId;
use crate::record::Record;
use crate::resp::encode::Reply;
use crate::state::idempotence::IdempotenceSettings;
use crate::state::stream::Stream;

/// Which message an entry is, as the producer says.
#[derive(Clone, Copy, Debug)]
pub enum Identity<'a> {
    /// IDMP pid iid
    Given { pid: &'a [u8], iid: &'a [u8] },
    /// IDMPAUTO pid
    Auto { pid: &'a [u8] },
}

impl<'a> Identity<'a> {
    /// If IDMP or IDMPAUTO stands at `at`, takes it into `identity` and answers how many words it was; 0 if not.
    pub fn take(identity: &mut Option<Identity<'a>>, args: Args<'a>, at: usize) -> Result<usize, Fault> {
        let (word, more) = (args.get(at), args.len() - at - 1);
        let (taken, words) = if is(word, "IDMP") && more >= 2 {
            let (pid, iid) = (args.get(at + 1), args.get(at + 2));
            if pid.is_empty() {
                return Err(Fault::IDMP_NO_PRODUCER);
            }
            if iid.is_empty() {
                return Err(Fault::IDMP_NO_MESSAGE);
            }
            (Identity::Given { pid, iid }, 3)
        } else if is(word, "IDMPAUTO") && more >= 1 {
            let pid = args.get(at + 1);
            if pid.is_empty() {
                return Err(Fault::IDMPAUTO_NO_PRODUCER);
            }
            (Identity::Auto { pid }, 2)
        } else {
            return Ok(0);
        };
        if identity.replace(taken).is_some() {
            return Err(Fault::IDMP_TWICE);
        }
        Ok(words)
    }

    /// The message, given the fields that it has.
    pub fn message(self, fields: Args<'_>) -> Message<'a> {
        match self {
            Identity::Given { pid, iid } => Message { pid, iid: SmallVec::from_slice(iid) },
            Identity::Auto { pid } => Message { pid, iid: SmallVec::from_slice(&content_iid(fields)) },
        }
    }
}

/// A producer and the ID of one of its messages.
#[derive(Debug)]
pub struct Message<'a> {
    pid: &'a [u8],
    iid: SmallVec<[u8; 32]>,
}

impl Message<'_> {
    /// The entry that this message has become already.
    pub fn known(&self, stream: &Stream, now_ms: u64) -> Option<StreamId> {
        stream.idempotence.as_ref()?.known(self.pid, &self.iid, now_ms)
    }

    /// Records that the message has become an entry of the stream under `key`, which is there. `counts`: it was added
    /// now.
    pub fn remember(&self, cx: &mut Cx<'_>, key: &[u8], id: StreamId, counts: bool) {
        let (at, now_ms) = (cx.at(key), cx.now_ms());
        let Ok(Some(stream)) = cx.stream(key) else { return };
        let (mut recorded_ms, mut added, mut forgotten) = (now_ms, 0, None);
        if let Some(all) = &stream.idempotence {
            recorded_ms = all.recording_ms(self.pid, now_ms);
            added = all.added;
            // An expired message of the same name must not be in the way.
            let until_ms = now_ms.saturating_sub(all.settings().duration_ms());
            forgotten = all.is_due(self.pid, now_ms).then_some(until_ms);
        }
        if let Some(until_ms) = forgotten {
            cx.emit_lazily(&Record::Forget { at, pid: self.pid, until_ms });
        }
        added += u64::from(counts);
        cx.emit(&Record::Remember { at, pid: self.pid, iid: &self.iid, id, recorded_ms, added });
    }
}

/// Counts a duplicate.
pub fn note_duplicate(cx: &mut Cx<'_>, key: &[u8]) {
    let at = cx.at(key);
    let Ok(Some(stream)) = cx.stream(key) else { return };
    let duplicates = stream.idempotence.as_ref().map_or(0, |all| all.duplicates) + 1;
    cx.emit_lazily(&Record::Duplicates { at, duplicates });
}

/// Gives the stream under `key`, which was just made, what the settings say for new streams.
pub fn settle_new_stream(cx: &mut Cx<'_>, key: &[u8]) {
    let settings = IdempotenceSettings {
        duration_s: cx.settings().stream_idmp_duration_seconds,
        maxsize: cx.settings().stream_idmp_maxsize,
    };
    if settings != IdempotenceSettings::default() {
        let at = cx.at(key);
        cx.emit(&Record::IdempotenceSettings { at, settings });
    }
}

/// The iid of IDMPAUTO: a hash of the pairs, whatever their order.
fn content_iid(fields: Args<'_>) -> [u8; 16] {
    let mut pairs: SmallVec<[[u8; 16]; 16]> = SmallVec::new();
    let mut words = fields.iter();
    while let (Some(name), Some(value)) = (words.next(), words.next()) {
        let mut hasher = SipHasher24::new_with_keys(0, 0);
        hasher.write(&(name.len() as u64).to_le_bytes());
        hasher.write(name);
        hasher.write(value);
        pairs.push(hasher.finish128().as_bytes());
    }
    pairs.sort_unstable();
    let mut hasher = SipHasher24::new_with_keys(0, 1);
    pairs.iter().for_each(|pair| hasher.write(pair));
    hasher.finish128().as_bytes()
}

/// XIDMPRECORD key pid iid id
pub fn xidmprecord(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let (key, pid, iid) = (args.get(1), args.get(2), args.get(3));
    if pid.is_empty() {
        return Err(Fault::XIDMPRECORD_NO_PRODUCER);
    }
    if iid.is_empty() {
        return Err(Fault::XIDMPRECORD_NO_MESSAGE);
    }
    let id = parse::id(args.get(4))?;
    let now_ms = cx.now_ms();
    let stream = cx.stream(key)?.ok_or(Fault::NO_SUCH_KEY)?;
    if !stream.entries.contains(id) {
        return Err(Fault::XIDMPRECORD_NO_ENTRY);
    }
    let message = Identity::Given { pid, iid }.message(args.slice(0, 0));
    match message.known(stream, now_ms) {
        Some(known) if known == id => {}
        Some(_) => return Err(Fault::XIDMPRECORD_OTHER_ENTRY),
        None => message.remember(cx, key, id, false),
    }
    reply.ok();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::args::OwnedArgs;

    fn iid(fields: &[&str]) -> String {
        let owned = OwnedArgs::new(fields);
        content_iid(owned.args()).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// These stand in logs: they must never change.
    #[test]
    fn the_iid_of_contents_is_the_same_for_ever() {
        assert_eq!(iid(&["f", "v"]), "36db4e5bbbf6162fc9117bff82a15ccf");
        assert_eq!(iid(&["a", "1", "b", "2", "c", ""]), "9d1055bd49ffb3165f6875146c82c9b7");
    }

    #[test]
    fn order_does_not_count_and_all_else_does() {
        assert_eq!(iid(&["a", "1", "b", "2"]), iid(&["b", "2", "a", "1"]));
        let different = [
            iid(&["a", "1", "b", "2"]),
            iid(&["a", "2", "b", "1"]),
            iid(&["a", "1", "a", "1", "b", "2"]),
            iid(&["a", "1"]),
            iid(&["a", "1", "a", "1"]),
            iid(&["ab", "c"]),
            iid(&["a", "bc"]),
            iid(&["abc", ""]),
            iid(&["", "abc"]),
        ];
        let distinct: std::collections::BTreeSet<_> = different.iter().collect();
        assert_eq!(distinct.len(), different.len());
    }
}
