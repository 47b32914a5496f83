//! One row of a ledger: what was said of an entry's work, by whom, about which delivery.

use std::borrow::Cow;

use siphasher::sip::SipHasher13;
use std::hash::Hasher;

use crate::id::StreamId;
use crate::state::codec::{Corrupt, Reader, put_bytes, put_id, put_uint};

/// What a row says. The numbers stand in logs and snapshots: they never get another meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    /// An attempt began.
    Begun = 0,
    /// The work is done.
    Completed = 1,
    /// It was done before.
    Duplicate = 2,
    /// It was done before, with another digest.
    Conflict = 3,
    /// Someone who has the entry no more spoke of it.
    Stale = 4,
    /// An attempt failed.
    Failed = 5,
    /// The entry is on hold.
    Held = 6,
    /// It is so no more.
    Released = 7,
    /// It was acknowledged without a completion.
    Acked = 8,
    /// It went to the dead-letter stream.
    Dead = 9,
    /// Its lease was over, and it was handed out again.
    Expired = 10,
}

/// All outcomes, by their numbers.
pub const OUTCOMES: [Outcome; 11] = [
    Outcome::Begun,
    Outcome::Completed,
    Outcome::Duplicate,
    Outcome::Conflict,
    Outcome::Stale,
    Outcome::Failed,
    Outcome::Held,
    Outcome::Released,
    Outcome::Acked,
    Outcome::Dead,
    Outcome::Expired,
];

impl Outcome {
    /// Does such a row tell what became of an entry that is pending no more?
    pub(super) fn settles(self) -> bool {
        matches!(self, Outcome::Completed | Outcome::Duplicate | Outcome::Conflict | Outcome::Dead | Outcome::Released)
    }

    /// Does such a row say all that is asked of its entry's older rows of this kind?
    pub(super) fn supersedes(self) -> bool {
        self.settles() && self != Outcome::Completed
    }

    /// As XWORK LOG writes it.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Begun => "begun",
            Outcome::Completed => "completed",
            Outcome::Duplicate => "duplicate",
            Outcome::Conflict => "conflict",
            Outcome::Stale => "stale",
            Outcome::Failed => "failed",
            Outcome::Held => "held",
            Outcome::Released => "released",
            Outcome::Acked => "acked",
            Outcome::Dead => "dead",
            Outcome::Expired => "expired",
        }
    }

    /// The outcome of a number.
    pub fn of(number: u8) -> Option<Outcome> {
        OUTCOMES.get(usize::from(number)).copied()
    }
}

/// A unit of work. Two are the same if they are written the same: an entry's ID names the entry's own work and is what a
/// producer would write for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkId<'a> {
    /// Named after an entry.
    Entry(StreamId),
    /// As the application says; not the normal form of an ID.
    Named(&'a [u8]),
}

impl<'a> WorkId<'a> {
    /// From what was written.
    pub fn parse(text: &'a [u8]) -> WorkId<'a> {
        if text.first().is_some_and(u8::is_ascii_digit)
            && text.len() <= 41
            && text.contains(&b'-')
            && let Ok(id) = StreamId::parse(text, 0)
        {
            let mut normal = Vec::with_capacity(41);
            id.write(&mut normal);
            if normal == text {
                return WorkId::Entry(id);
            }
        }
        WorkId::Named(text)
    }

    /// As it is written.
    pub fn text(self) -> Cow<'a, [u8]> {
        match self {
            WorkId::Named(text) => Cow::Borrowed(text),
            WorkId::Entry(id) => {
                let mut text = Vec::with_capacity(41);
                id.write(&mut text);
                Cow::Owned(text)
            }
        }
    }

    /// A number that is the same on every machine. Applications choose the names: it must not be easy to find many with the
    /// same one.
    pub(super) fn hash(self) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(0x696d_7065_6c20_776f, 0x726b_206c_6564_6765);
        match self {
            WorkId::Entry(id) => {
                hasher.write_u64(id.ms);
                hasher.write_u64(id.seq);
            }
            WorkId::Named(text) => hasher.write(text),
        }
        hasher.finish()
    }
}

/// Flags beside the outcome in the first byte of a row, which the lower half is: which texts follow.
const HAS_WORK: u8 = 16;
const HAS_DIGEST: u8 = 32;
const HAS_RECEIPT: u8 = 64;
const HAS_REASON: u8 = 128;

/// One row. Texts that were not given are empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<'a> {
    /// Its own ID: when it was written (Unix ms), and a number within that millisecond. Rises from row to row.
    pub id: StreamId,
    /// What it says.
    pub outcome: Outcome,
    /// The entry.
    pub entry: StreamId,
    /// The work.
    pub work: WorkId<'a>,
    /// Who said it, or had the entry.
    pub consumer: &'a [u8],
    /// The number of the delivery that it is about.
    pub delivery: u64,
    /// Fingerprint of the effect.
    pub digest: &'a [u8],
    /// Proof from where the effect landed.
    pub receipt: &'a [u8],
    /// Why.
    pub reason: &'a [u8],
}

impl<'a> Row<'a> {
    /// A row without texts, about the entry's own work.
    pub fn new(id: StreamId, outcome: Outcome, entry: StreamId) -> Row<'a> {
        let work = WorkId::Entry(entry);
        Row { id, outcome, entry, work, consumer: b"", delivery: 0, digest: b"", receipt: b"", reason: b"" }
    }

    /// The hashes by which the row is found: that of its work if it completes it, that of its entry if it settles it.
    pub(super) fn hashes(&self) -> impl Iterator<Item = u64> {
        let own = self.work == WorkId::Entry(self.entry);
        let work = (self.outcome == Outcome::Completed && !own).then(|| self.work.hash());
        let entry = self.outcome.settles().then(|| WorkId::Entry(self.entry).hash());
        work.into_iter().chain(entry)
    }

    /// What stands in the first byte of a row beside the outcome: which texts it has.
    fn flags(&self) -> u8 {
        let is_named = match self.work {
            WorkId::Entry(id) => id != self.entry,
            WorkId::Named(name) => !name.is_empty(),
        };
        let has = |flag: u8, is_there: bool| if is_there { flag } else { 0 };
        has(HAS_WORK, is_named)
            | has(HAS_DIGEST, !self.digest.is_empty())
            | has(HAS_RECEIPT, !self.receipt.is_empty())
            | has(HAS_REASON, !self.reason.is_empty())
    }

    /// What comes before the texts of a row: outcome and flags in one byte.
    pub(super) fn head(&self) -> u8 {
        self.outcome as u8 | self.flags()
    }

    /// Appends the texts that a row with this head has.
    pub(super) fn put_texts(&self, head: u8, out: &mut Vec<u8>) {
        if head & HAS_WORK != 0 {
            put_bytes(out, &self.work.text());
        }
        for (flag, text) in [(HAS_DIGEST, self.digest), (HAS_RECEIPT, self.receipt), (HAS_REASON, self.reason)] {
            if head & flag != 0 {
                put_bytes(out, text);
            }
        }
    }

    /// Reads the texts behind a head into the row.
    pub(super) fn read_texts(&mut self, head: u8, reader: &mut Reader<'a>) -> Result<(), Corrupt> {
        const WHAT: &str = "row of a ledger";
        let mut text = |flag: u8| if head & flag == 0 { Ok(&b""[..]) } else { reader.bytes(WHAT) };
        let work = text(HAS_WORK)?;
        (self.digest, self.receipt, self.reason) = (text(HAS_DIGEST)?, text(HAS_RECEIPT)?, text(HAS_REASON)?);
        if !work.is_empty() {
            self.work = WorkId::parse(work);
        }
        Ok(())
    }

    /// Appends the row as records hold it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let head = self.head();
        out.push(head);
        put_id(out, self.id);
        put_id(out, self.entry);
        put_bytes(out, self.consumer);
        put_uint(out, self.delivery);
        self.put_texts(head, out);
    }

    /// Reads what [`Row::encode`] wrote.
    pub fn decode(reader: &mut Reader<'a>) -> Result<Row<'a>, Corrupt> {
        const WHAT: &str = "row of a ledger";
        let head = reader.byte(WHAT)?;
        let outcome = Outcome::of(head & 15).ok_or(Corrupt { what: WHAT })?;
        let mut row = Row::new(reader.id(WHAT)?, outcome, reader.id(WHAT)?);
        (row.consumer, row.delivery) = (reader.bytes(WHAT)?, reader.uint(WHAT)?);
        row.read_texts(head, reader)?;
        Ok(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_the_same_work_however_it_is_named() {
        assert_eq!(WorkId::parse(b"5-0"), WorkId::Entry(StreamId::new(5, 0)));
        for named in ["5", "05-0", "5-00", "+5-0", "5-", "-5", "", "job 5-0", "99999999999999999999-0"] {
            assert_eq!(WorkId::parse(named.as_bytes()), WorkId::Named(named.as_bytes()), "{named}");
        }
        assert_eq!(&*WorkId::parse(b"5-0").text(), b"5-0");
    }

    #[test]
    fn outcomes_keep_their_numbers() {
        for (number, outcome) in OUTCOMES.iter().enumerate() {
            assert_eq!((*outcome as usize, Outcome::of(number as u8)), (number, Some(*outcome)));
        }
        assert_eq!(Outcome::of(11), None);
    }

    #[test]
    fn bytes_come_back() {
        let mut row = Row::new(StreamId::new(9, 1), Outcome::Completed, StreamId::new(7, 3));
        let mut rows = vec![row];
        (row.consumer, row.delivery, row.digest) = (b"c", 4, b"d");
        rows.push(row);
        (row.work, row.receipt, row.reason, row.outcome) = (WorkId::Named(b"job"), b"r", b"why", Outcome::Expired);
        rows.push(row);
        row.work = WorkId::Entry(StreamId::new(1, 1));
        rows.push(row);
        for row in rows {
            let mut out = Vec::new();
            row.encode(&mut out);
            let mut reader = Reader::new(&out);
            assert_eq!(Row::decode(&mut reader), Ok(row));
            assert!(reader.is_empty());
            for len in 0..out.len() {
                assert!(Row::decode(&mut Reader::new(&out[..len])).is_err());
            }
        }
    }
}
