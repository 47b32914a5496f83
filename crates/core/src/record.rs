//! Records: what the log holds. A record is an *effect* with absolute values (the ID that `*` became, the time, who now
//! holds what), never a command; applying it asks no clock and makes no choice.
//!
//! Here is what each record says; `record/codec.rs` has its bytes, `record/lists.rs` the lists that records carry.

mod codec;
mod lists;
mod tag;

#[cfg(test)]
mod tests;

use crate::id::StreamId;
use crate::state::group::GroupOptions;
use crate::state::idempotence::IdempotenceSettings;
use crate::state::ledger::Row;
use crate::state::policy::Policy;
use crate::state::redrive::Redrive;
use crate::state::retention::Retention;

pub use lists::{Claimed, Claims, Fields, FieldsIter, Ids};
pub use tag::TAGS;

/// A key in a numbered database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct At<'a> {
    /// The database.
    pub db: usize,
    /// The key.
    pub key: &'a [u8],
}

/// One effect.
#[derive(Clone, Debug)]
pub enum Record<'a> {
    /// The key holds this string and goes at `expire_ms` (0 = never).
    SetString { at: At<'a>, expire_ms: u64, value: &'a [u8] },
    /// Bytes of a string from `offset` on are these; the string grows with zeros as needed.
    WriteString { at: At<'a>, offset: u64, bytes: &'a [u8] },
    /// The key is gone.
    Delete { at: At<'a> },
    /// The key goes at `expire_ms` (0 = never).
    Expire { at: At<'a>, expire_ms: u64 },
    /// What `at` held is now under `to` (of the same database), which loses what it held.
    Rename { at: At<'a>, to: &'a [u8] },
    /// `to` holds a copy of `at`.
    Copy { at: At<'a>, to: At<'a> },
    /// The key is now in another database.
    Move { at: At<'a>, db: usize },
    /// A database is empty; `None`: all are.
    Flush { db: Option<usize> },
    /// Two databases have changed places.
    SwapDb { a: usize, b: usize },
    /// The key holds an empty stream.
    StreamCreate { at: At<'a> },
    /// An entry stands at the end of the stream, which is made if it is not there.
    Add { at: At<'a>, id: StreamId, fields: Fields<'a> },
    /// These entries are deleted (raises the greatest deleted ID).
    DeleteEntries { at: At<'a>, ids: Ids<'a> },
    /// All entries below the bound are trimmed away.
    Trim { at: At<'a>, before: StreamId },
    /// These entries are trimmed away (those between them stay).
    TrimEntries { at: At<'a>, ids: Ids<'a> },
    /// Counters of the stream.
    SetStream { at: At<'a>, last_id: StreamId, max_deleted: StreamId, entries_added: u64 },
    /// How long and how many messages the stream remembers from now on; those it has remembered are forgotten.
    IdempotenceSettings { at: At<'a>, settings: IdempotenceSettings },
    /// The message `iid` of the producer became the entry; so many were recorded over the stream's life.
    Remember { at: At<'a>, pid: &'a [u8], iid: &'a [u8], id: StreamId, recorded_ms: u64, added: u64 },
    /// The producer's messages recorded up to `until_ms` are forgotten.
    Forget { at: At<'a>, pid: &'a [u8], until_ms: u64 },
    /// So many duplicates were recognized over the stream's life.
    Duplicates { at: At<'a>, duplicates: u64 },
    /// How long the stream keeps its entries.
    RetentionSettings { at: At<'a>, retention: Retention },
    /// A group stands at a position.
    GroupCreate { at: At<'a>, group: &'a [u8], position: StreamId, entries_read: Option<u64> },
    /// The group's position.
    GroupPosition { at: At<'a>, group: &'a [u8], position: StreamId, entries_read: Option<u64> },
    /// The group is gone.
    GroupDestroy { at: At<'a>, group: &'a [u8] },
    /// The consumer is there, seen at `now_ms`.
    ConsumerCreate { at: At<'a>, group: &'a [u8], consumer: &'a [u8], now_ms: u64 },
    /// The consumer and its pending entries are gone.
    ConsumerDelete { at: At<'a>, group: &'a [u8], consumer: &'a [u8] },
    /// The consumer tried to get entries and, if `active`, got some.
    ConsumerSeen { at: At<'a>, group: &'a [u8], consumer: &'a [u8], now_ms: u64, active: bool },
    /// The entries after `after` up to `last` were handed out to the consumer, pending unless `no_ack`.
    Deliver {
        at: At<'a>,
        group: &'a [u8],
        consumer: &'a [u8],
        after: StreamId,
        last: StreamId,
        entries_read: Option<u64>,
        no_ack: bool,
        now_ms: u64,
    },
    /// These entries are pending for the consumer, delivered at `delivered_ms`.
    Claim { at: At<'a>, group: &'a [u8], consumer: &'a [u8], delivered_ms: u64, claims: Claims<'a> },
    /// These entries are pending no more.
    Acknowledge { at: At<'a>, group: &'a [u8], ids: Ids<'a> },
    /// These entries are pending and nobody's: released, in this order and numbered from `first_order` on (`due_ms` 0),
    /// or deferred until `due_ms`.
    GiveBack { at: At<'a>, group: &'a [u8], first_order: u64, due_ms: u64, claims: Claims<'a> },
    /// The options of a group.
    GroupOptions { at: At<'a>, group: &'a [u8], options: GroupOptions },
    /// What is pending between two IDs, both included, is pending no more.
    AcknowledgeRange { at: At<'a>, group: &'a [u8], from: StreamId, to: StreamId },
    /// All that the consumer had is released, numbered from `first_order` on, each with a delivery less.
    GiveBackAll { at: At<'a>, group: &'a [u8], consumer: &'a [u8], first_order: u64 },
    /// These entries are pending no more, and were not acknowledged: the stream has lost them.
    Drop { at: At<'a>, group: &'a [u8], ids: Ids<'a> },
    /// What is pending between two IDs, both included, is pending no more, and was not acknowledged.
    DropRange { at: At<'a>, group: &'a [u8], from: StreamId, to: StreamId },
    /// Groups do not get the entry before `due_ms`.
    Delay { at: At<'a>, id: StreamId, due_ms: u64 },
    /// The group has come to `position` and passed over these entries; each stands with the time until which it is held
    /// in the place of a delivery count, 0 = until its key is free.
    Hold { at: At<'a>, group: &'a [u8], position: StreamId, entries_read: Option<u64>, holds: Claims<'a> },
    /// These entries, held or not, were handed out to the consumer for the first time, pending unless `no_ack`.
    Give { at: At<'a>, group: &'a [u8], consumer: &'a [u8], no_ack: bool, now_ms: u64, ids: Ids<'a> },
    /// Delayed entries are due: in order of their times, those up to this time and, of that very time, up to this ID.
    Due { at: At<'a>, due_ms: u64, id: StreamId },
    /// Where the last XAUTOCLAIM began that gave up before it found anything; `None`: the last one did not.
    ScanStart { at: At<'a>, group: &'a [u8], start: Option<StreamId> },
    /// The policy of a group.
    WorkPolicy { at: At<'a>, group: &'a [u8], policy: Policy },
    /// The ledger of a group has this row. What else the row's outcome brings about in the ledger follows from it; what
    /// becomes of the pending entry is said by other records, but that with `acknowledges` it is pending no more.
    WorkRow { at: At<'a>, group: &'a [u8], row: Row<'a>, acknowledges: bool },
    /// The ledger of a group has forgotten the rows before this number.
    WorkForget { at: At<'a>, group: &'a [u8], before: u64 },
    /// The entries of a stream are on their way back to where they came from, or no more.
    Redrive { at: At<'a>, redrive: Option<Redrive> },
}

impl<'a> Record<'a> {
    /// The key that the record is about, if it is about one.
    pub fn at(&self) -> Option<At<'a>> {
        match self {
            Record::Flush { .. } | Record::SwapDb { .. } => None,
            Record::SetString { at, .. }
            | Record::WriteString { at, .. }
            | Record::Delete { at }
            | Record::Expire { at, .. }
            | Record::Rename { at, .. }
            | Record::Copy { at, .. }
            | Record::Move { at, .. }
            | Record::StreamCreate { at }
            | Record::Add { at, .. }
            | Record::DeleteEntries { at, .. }
            | Record::Trim { at, .. }
            | Record::TrimEntries { at, .. }
            | Record::SetStream { at, .. }
            | Record::IdempotenceSettings { at, .. }
            | Record::Remember { at, .. }
            | Record::Forget { at, .. }
            | Record::Duplicates { at, .. }
            | Record::RetentionSettings { at, .. }
            | Record::GroupCreate { at, .. }
            | Record::GroupPosition { at, .. }
            | Record::GroupDestroy { at, .. }
            | Record::ConsumerCreate { at, .. }
            | Record::ConsumerDelete { at, .. }
            | Record::ConsumerSeen { at, .. }
            | Record::Deliver { at, .. }
            | Record::Claim { at, .. }
            | Record::Acknowledge { at, .. }
            | Record::GiveBack { at, .. }
            | Record::GroupOptions { at, .. }
            | Record::AcknowledgeRange { at, .. }
            | Record::GiveBackAll { at, .. }
            | Record::Drop { at, .. }
            | Record::DropRange { at, .. }
            | Record::Delay { at, .. }
            | Record::Hold { at, .. }
            | Record::Give { at, .. }
            | Record::Due { at, .. }
            | Record::ScanStart { at, .. }
            | Record::WorkPolicy { at, .. }
            | Record::WorkRow { at, .. }
            | Record::WorkForget { at, .. }
            | Record::Redrive { at, .. } => Some(*at),
        }
    }
}
