//! XWORK: what an application says of the work that entries stand for, and what the server makes of it. The words and
//! every reply are in `docs/commands/xwork.md`.
//!
//! What is said becomes a row of the group's ledger; what becomes of the pending entry is said by the records that other
//! commands use for it. Everything is checked before the first of them.

pub(super) mod audit;
pub(super) mod begin;
pub(super) mod dead;
pub(super) mod done;
mod emit;
pub(super) mod evidence;
pub(super) mod fail;
pub(super) mod hold;
pub(super) mod log;
pub(super) mod policy;
pub(super) mod redrive;
pub(super) mod timers;

use smallvec::SmallVec;

use super::claim::stream_and_group;
use crate::command::args::Args;
use crate::command::parse::{self, is};
use crate::engine::Cx;
use crate::engine::fault::Fault;
use crate::id::StreamId;
use crate::limits::WORK_TEXT_MAX_BYTES;
use crate::record::{Claimed, Claims, Record};
use crate::resp::encode::Reply;
use crate::state::group::Group;
use crate::state::held::key_of;
use crate::state::ledger::{HOLD_UNTIL_MS, Outcome, Row, WorkId};
use crate::state::pending::Pending;
use crate::state::stream::Stream;

/// Greatest number of ms that an option takes: a time that far away can still be written down everywhere.
const MS_MAX: u64 = (1 << 53) - 1;

/// How much of a wrong word an error shows, in bytes.
const SHOWN_MAX_BYTES: usize = 128;

/// A stream and a group of it.
type Both<'c> = (&'c Stream, &'c Group);

/// Of which entry a command speaks, and who says it: the words behind its name.
#[derive(Clone, Copy)]
struct Subject<'a> {
    key: &'a [u8],
    group: &'a [u8],
    consumer: &'a [u8],
    id: StreamId,
}

impl<'a> Subject<'a> {
    /// Key and group must be there.
    fn read<'c>(cx: &'c Cx<'_>, args: Args<'a>) -> Result<(Subject<'a>, Both<'c>), Fault> {
        let (key, group) = (args.get(2), args.get(3));
        let both = stream_and_group(cx, key, group)?;
        Ok((Subject { key, group, consumer: args.get(4), id: parse::id(args.get(5))? }, both))
    }
}

/// Options of BEGIN, DONE and FAIL.
#[derive(Default)]
struct Options<'a> {
    work: Option<&'a [u8]>,
    digest: &'a [u8],
    receipt: &'a [u8],
    reason: &'a [u8],
    delivery: Option<u64>,
    retry_in_ms: Option<u64>,
    dead: bool,
    /// What stands behind EMIT.
    emit: Option<Args<'a>>,
}

/// Which of them a command takes.
#[derive(Clone, Copy)]
struct Takes {
    name: &'static str,
    work: bool,
    evidence: bool,
    failure: bool,
}

impl<'a> Options<'a> {
    fn read(args: Args<'a>, takes: Takes) -> Result<Options<'a>, Fault> {
        let (mut options, mut at) = (Options::default(), 6);
        while at < args.len() {
            let (word, value) = (args.get(at), args.try_get(at + 1));
            at += 2;
            match value {
                _ if takes.failure && is(word, "DEAD") => {
                    options.dead = true;
                    at -= 1;
                }
                Some(value) if takes.work && is(word, "WORK") => options.work = Some(text("WORK", value, 1)?),
                Some(value) if is(word, "DELIVERY") => {
                    options.delivery = Some(number("DELIVERY", value, 1, i64::MAX as u64)?);
                }
                Some(value) if takes.evidence && is(word, "DIGEST") => options.digest = text("DIGEST", value, 0)?,
                Some(value) if takes.evidence && is(word, "RECEIPT") => options.receipt = text("RECEIPT", value, 0)?,
                Some(_) if takes.evidence && is(word, "EMIT") => {
                    options.emit = Some(args.from(at - 1));
                    break;
                }
                Some(value) if takes.failure && is(word, "REASON") => options.reason = text("REASON", value, 0)?,
                Some(value) if takes.failure && is(word, "RETRYIN") => {
                    options.retry_in_ms = Some(number("RETRYIN", value, 0, MS_MAX)?);
                }
                _ => return Err(unknown_option(word, takes.name)),
            }
        }
        if options.dead && options.retry_in_ms.is_some() {
            return Err(Fault::owned("ERR RETRYIN and DEAD exclude each other"));
        }
        Ok(options)
    }
}

fn unknown_option(word: &[u8], command: &str) -> Fault {
    let word = &word[..word.len().min(SHOWN_MAX_BYTES)];
    Fault::concat(&[b"ERR unknown or incomplete option '", word, b"' of XWORK ", command.as_bytes()])
}

/// A text of an application, or the error that names the argument and its length.
fn text<'a>(name: &str, value: &'a [u8], least: usize) -> Result<&'a [u8], Fault> {
    if (least..=WORK_TEXT_MAX_BYTES).contains(&value.len()) {
        return Ok(value);
    }
    Err(Fault::owned(format!("ERR {name} must be {least} to {WORK_TEXT_MAX_BYTES} bytes long")))
}

/// A number, or the error that names the argument and its range.
fn number(name: &str, value: &[u8], least: u64, most: u64) -> Result<u64, Fault> {
    let number = parse::integer(value).and_then(|n| u64::try_from(n).ok()).filter(|n| (least..=most).contains(n));
    number.ok_or_else(|| Fault::owned(format!("ERR {name} must be a number from {least} to {most}")))
}

/// A work id that outlives what it was read from.
enum Name {
    Entry(StreamId),
    Named(SmallVec<[u8; 64]>),
}

impl Name {
    fn of(work: WorkId<'_>) -> Name {
        match work {
            WorkId::Entry(id) => Name::Entry(id),
            WorkId::Named(text) => Name::Named(text.into()),
        }
    }

    fn id(&self) -> WorkId<'_> {
        match self {
            Name::Entry(id) => WorkId::Entry(*id),
            Name::Named(text) => WorkId::Named(text),
        }
    }
}

/// The work of an entry: as given, else as it was begun, else as the ledger has it from before, else by the field of the
/// policy, else the entry's own. A field too long for a row names no work: rows are kept where the entry may be long gone.
fn work_of<'a>(
    (stream, group): (&'a Stream, &'a Group),
    id: StreamId,
    given: Option<&'a [u8]>,
    now_ms: u64,
) -> WorkId<'a> {
    match completion_of((stream, group), id, given, now_ms).0 {
        work if check_work(work).is_ok() => work,
        _ => WorkId::Entry(id),
    }
}

/// The work of an entry, as [`work_of`] finds it, and its completion.
fn completion_of<'a>(
    (stream, group): Both<'a>,
    id: StreamId,
    given: Option<&'a [u8]>,
    now_ms: u64,
) -> (WorkId<'a>, Option<Row<'a>>) {
    let Some(work) = group.work() else { return (given.map_or(WorkId::Entry(id), WorkId::parse), None) };
    let (ledger, policy) = (&work.ledger, &work.policy);
    let said = given.map(WorkId::parse).or_else(|| Some(ledger.attempt(id)?.work_id(id)));
    if let Some(said) = said {
        return (said, ledger.completion(said, policy, now_ms));
    }
    let (settlement, own) = ledger.heard_of(id, policy, now_ms);
    let from_field = || {
        // Most groups have no such field; the entry is looked up only for those that do.
        let field = policy.work_field.as_deref()?;
        let name = key_of(&stream.entries.get(id)?, field)?;
        (!name.is_empty()).then(|| WorkId::parse(name))
    };
    match settlement.map(|row| row.work).or_else(from_field) {
        Some(named) if named != WorkId::Entry(id) => (named, ledger.completion(named, policy, now_ms)),
        _ => (WorkId::Entry(id), own),
    }
}

/// Refuses a work id of an entry's field that is too long for a row.
fn check_work(work: WorkId<'_>) -> Result<(), Fault> {
    match work {
        WorkId::Named(name) => text("the work id in the entry", name, 1).map(drop),
        WorkId::Entry(_) => Ok(()),
    }
}

impl Cx<'_> {
    /// Appends a row to the ledger of a group. Its ID is made here.
    fn note_work(&mut self, key: &[u8], group: &[u8], row: Row<'_>) {
        let now_ms = self.now_ms();
        let Ok((_, of)) = stream_and_group(self, key, group) else { return };
        let id = of.work_or_none().ledger.next_id(now_ms);
        let at = self.at(key);
        self.emit(&Record::WorkRow { at, group, row: Row { id, ..row }, acknowledges: false });
    }

    /// Gives a pending entry back: nobody has it, and it is released at `due_ms` (0 = now).
    fn give_back_work(&mut self, key: &[u8], group: &[u8], pending: &Pending, due_ms: u64) {
        let Ok((_, of)) = stream_and_group(self, key, group) else { return };
        let (at, first_order) = (self.at(key), of.next_release());
        let claims = [Claimed { id: pending.id, deliveries: pending.deliveries }];
        self.emit(&Record::GiveBack { at, group, first_order, due_ms, claims: Claims::Slice(&claims) });
    }

    /// Puts a pending entry on hold.
    fn hold_work(&mut self, key: &[u8], group: &[u8], pending: &Pending, row: Row<'_>) {
        self.note_work(key, group, Row { outcome: Outcome::Held, ..row });
        self.give_back_work(key, group, pending, HOLD_UNTIL_MS);
    }
}

/// A row about a delivery, without an ID of its own yet.
fn row_of<'a>(outcome: Outcome, subject: &Subject<'a>, work: WorkId<'a>, delivery: u64) -> Row<'a> {
    Row { work, consumer: subject.consumer, delivery, ..Row::new(StreamId::MIN, outcome, subject.id) }
}

/// Begins a reply of `n` elements, the first of which is a status.
fn status(reply: &mut Reply<'_>, n: usize, word: &str) {
    reply.array(n);
    reply.simple(word);
}

/// A text, or nil for one that was not given.
fn optional(reply: &mut Reply<'_>, text: &[u8]) {
    if text.is_empty() { reply.null() } else { reply.bulk(text) }
}

/// A completion as a map.
fn write_completion(row: &Row<'_>, reply: &mut Reply<'_>) {
    reply.map(8);
    reply.written(b"$2\r\nid\r\n");
    reply.id(row.id);
    reply.written(b"$4\r\nwork\r\n");
    reply.bulk(&row.work.text());
    reply.written(b"$5\r\nentry\r\n");
    reply.id(row.entry);
    reply.written(b"$8\r\nconsumer\r\n");
    reply.bulk(row.consumer);
    reply.written(b"$8\r\ndelivery\r\n");
    reply.count(row.delivery);
    reply.written(b"$6\r\ndigest\r\n");
    optional(reply, row.digest);
    reply.written(b"$7\r\nreceipt\r\n");
    optional(reply, row.receipt);
    reply.written(b"$4\r\ntime\r\n");
    reply.count(row.id.ms);
}

/// `STALE`, who has the entry, and the number of its delivery.
fn write_stale(group: &Group, pending: &Pending, reply: &mut Reply<'_>) {
    status(reply, 3, "STALE");
    match group.owner_name(pending.consumer) {
        Some(owner) => reply.bulk(owner),
        None => reply.null(),
    }
    reply.count(pending.deliveries);
}

/// `HELD` and why.
fn write_held(reason: &[u8], reply: &mut Reply<'_>) {
    status(reply, 2, "HELD");
    reply.bulk(reason);
}

/// Does the caller have the entry, in that delivery?
fn has_entry(group: &Group, pending: &Pending, subject: &Subject<'_>, delivery: Option<u64>) -> bool {
    group.owner_name(pending.consumer) == Some(subject.consumer) && delivery.is_none_or(|n| n == pending.deliveries)
}

/// XWORK GET key group wid
pub fn get(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let (_, group) = stream_and_group(cx, args.get(2), args.get(3))?;
    let work = group.work_or_none();
    match work.ledger.completion(WorkId::parse(args.get(4)), &work.policy, cx.now_ms()) {
        Some(row) => write_completion(&row, reply),
        None => reply.null(),
    }
    Ok(())
}
