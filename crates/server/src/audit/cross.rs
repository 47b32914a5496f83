//! Do XWORK LOG and XWORK AUDIT tell the same story? A decision that rests on a row of the ledger must find it there, and a row
//! that was there before the first entry was looked at must show in the decisions.
//!
//! The log is read behind the entries, so it knows more: what is younger than the beginning of the audit contradicts nothing. It may
//! also know less: rows that the policy lets go meanwhile. That excuses what is missing only where the policy can have done it.
//! What an entry is told besides, that it is begun or on hold, outlives the rows that say so, and is not asked for here.
//!
//! Memory is bounded: both sides are sorted in files.

use std::path::Path;

use super::sorter::Sorter;
use super::{Given, Trouble, id_of, id_text};

type Id = (u64, u64);

/// What the policy lets the ledger forget, and when it was asked.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Keeping {
    /// Rows that are kept.
    pub len: u64,
    /// For how long, in milliseconds.
    pub age_ms: u64,
    /// When the audit began, by the server's clock (Unix ms); no later.
    pub begin_ms: u64,
    /// The first row there was then.
    pub first: Option<Id>,
}

/// What a decision says of the rows.
const COMPLETED: u8 = b'c';
const CONFLICT: u8 = b'x';
const DEAD: u8 = b'd';
/// It would be another one if the work were completed,
const OPEN: u8 = b'o';
/// or had been released from a contradiction.
const RELEASED: u8 = b'r';

/// In the order of the sorter: rows come before the entries that rest on them.
const ROW: u8 = 0;
const ENTRY: u8 = 1;

pub(super) struct Cross {
    keeping: Keeping,
    sorter: Sorter,
    rows: u64,
    first: Option<Id>,
    last: Option<Id>,
}

fn by_work(work: &[u8]) -> Vec<u8> {
    [b"w", work].concat()
}

fn by_entry(id: Id) -> Vec<u8> {
    [&b"e"[..], &bytes(id)].concat()
}

fn bytes(id: Id) -> [u8; 16] {
    let mut all = [0; 16];
    all[..8].copy_from_slice(&id.0.to_be_bytes());
    all[8..].copy_from_slice(&id.1.to_be_bytes());
    all
}

fn value(side: u8, what: u8, id: Id) -> Vec<u8> {
    [&[side][..], &bytes(id), &[what]].concat()
}

impl Cross {
    pub fn new(keeping: Keeping, temporary: &Path) -> Cross {
        Cross { keeping, sorter: Sorter::new(temporary), rows: 0, first: None, last: None }
    }

    /// Takes what XWORK AUDIT says of an entry.
    pub fn entry(&mut self, given: &Given) -> Result<(), Trouble> {
        let Some(told) = &given.server else { return Ok(()) };
        let what = match (&told.decision[..], &told.reason[..]) {
            ("ACCEPT", "complete") | ("REPAIR", "ack-missing") => COMPLETED,
            ("HOLD", "conflict") if given.pending.is_none() => CONFLICT,
            ("HOLD", "dead-letter") if given.pending.is_none() => DEAD,
            // Whoever put it on hold may have done so at any time, and have called it anything.
            ("HOLD", _) => return Ok(()),
            _ => OPEN,
        };
        let key = if what == DEAD { by_entry(given.id) } else { by_work(&told.work) };
        Ok(self.sorter.push(&key, &value(ENTRY, what, given.id))?)
    }

    /// Takes a row of the log.
    pub fn row(&mut self, id: &str, outcome: &str, entry: &str, work: &[u8]) -> Result<(), Trouble> {
        let strange = || Trouble(format!("XWORK LOG: row {id} of entry {entry} is none"));
        let (id, entry) = (id_of(id).ok_or_else(strange)?, id_of(entry).ok_or_else(strange)?);
        if self.last.is_some_and(|last| last >= id) {
            return Err(Trouble(format!("XWORK LOG: row {} does not stand behind an older one", id_text(id))));
        }
        self.last = Some(id);
        self.first.get_or_insert(id);
        self.rows += 1;
        let (key, what) = match outcome {
            "completed" => (by_work(work), COMPLETED),
            "conflict" => (by_work(work), CONFLICT),
            "released" => (by_work(work), RELEASED),
            "dead" => (by_entry(entry), DEAD),
            _ => return Ok(()),
        };
        Ok(self.sorter.push(&key, &value(ROW, what, id))?)
    }

    /// Compares them. `end_ms` is when the log had been read, by the server's clock (Unix ms); no earlier.
    pub fn finish(self, end_ms: u64) -> Result<(), Trouble> {
        let Keeping { len, age_ms, begin_ms, first } = self.keeping;
        // Rows that were there at the beginning and are no more: may the policy have let them go?
        let is_over = |id: Id| self.rows >= len || end_ms.saturating_sub(id.0) > age_ms;
        if let Some(was) = first
            && self.first != Some(was)
            && !is_over(was)
        {
            return Err(Trouble(format!(
                "XWORK LOG: row {} was there when the audit began and is not in the log, which may not have let it go",
                id_text(was)
            )));
        }
        let is_whole = self.first == first || first.is_none();
        let mut key = Vec::new();
        let (mut completed, mut dead, mut conflict) = (None::<Id>, false, None::<Id>);
        let mut has_conflict = false;
        for pair in self.sorter.sorted()? {
            let (of, value) = pair?;
            if of != key {
                (completed, dead, conflict, has_conflict) = (None, false, None, false);
                key = of;
            }
            let [side, id @ .., what] = &value[..] else { return Err(Trouble("a temporary file has changed".into())) };
            let number = |at: usize| id[at..at + 8].iter().fold(0, |number, &byte| number << 8 | u64::from(byte));
            let id = (number(0), number(8));
            if *side == ROW {
                match *what {
                    COMPLETED => completed = completed.or(Some(id)),
                    DEAD => dead = true,
                    CONFLICT => (conflict, has_conflict) = (Some(id), true),
                    _ => conflict = None,
                }
                continue;
            }
            let entry = id_text(id);
            let was_before = |row: Option<Id>| row.filter(|row| row.0 < begin_ms);
            let wrong = match *what {
                COMPLETED if completed.is_none() && is_whole => {
                    "is completed, and XWORK LOG has no completion of its work"
                }
                CONFLICT if !has_conflict && is_whole => "is in conflict, and XWORK LOG has none of its work",
                DEAD if !dead && is_whole => "is a dead letter, and XWORK LOG has no such row of it",
                OPEN if was_before(completed).is_some() => {
                    "is not completed, and XWORK LOG has a completion of its work"
                }
                COMPLETED | OPEN if was_before(conflict).is_some() => {
                    "is in no conflict, and XWORK LOG has one of its work that was not released"
                }
                _ => continue,
            };
            return Err(Trouble(format!("entry {entry}: by XWORK AUDIT it {wrong}")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Pending, Told};
    use super::*;

    /// Entries as `id decision reason work`, pending if the ID has a `p` behind it; rows as `id outcome entry work`.
    fn crossed(keeping: Keeping, entries: &[&str], rows: &[&str], end_ms: u64) -> Result<(), String> {
        let folder = tempfile::TempDir::new().unwrap();
        let mut cross = Cross::new(keeping, folder.path());
        for entry in entries {
            let words: Vec<&str> = entry.split(' ').collect();
            let pending = words[0].ends_with('p').then_some(Pending { owner: None, idle_ms: 0, deliveries: 1 });
            let server = Told { decision: words[1].into(), reason: words[2].into(), work: words[3].into() };
            let id = id_of(words[0].trim_end_matches('p')).unwrap();
            let given = Given { id, work: vec![], payload: true, pending, server: Some(server) };
            cross.entry(&given).unwrap();
        }
        for row in rows {
            let words: Vec<&str> = row.split(' ').collect();
            cross.row(words[0], words[1], words[2], words[3].as_bytes()).map_err(|trouble| trouble.0)?;
        }
        cross.finish(end_ms).map_err(|trouble| trouble.0)
    }

    const KEEPING: Keeping = Keeping { len: 100, age_ms: 1000, begin_ms: 50, first: Some((10, 0)) };

    #[test]
    fn decisions_that_rest_on_rows_find_them() {
        let entries = [
            "1-0 ACCEPT complete w",
            "2-0p REPAIR ack-missing w",
            "3-0 HOLD conflict c",
            "4-0 HOLD dead-letter d",
            "5-0p RERUN not-started e",
            "6-0p OPEN in-progress late",
            "7-0 ACCEPT complete released",
            "8-0p HOLD conflict nobody-knows",
            "9-0p HOLD outcome-unknown w",
        ];
        let rows = [
            "10-0 completed 1-0 w",
            "11-0 completed 3-0 c",
            "12-0 conflict 3-0 c",
            "13-0 dead 4-0 d",
            "14-0 begun 6-0 late",
            "15-0 completed 7-0 released",
            "16-0 conflict 7-0 released",
            "17-0 released 7-0 released",
            // After the beginning, and so perhaps after the entry was looked at.
            "60-0 completed 6-0 late",
            "61-0 conflict 1-0 w",
        ];
        assert_eq!(crossed(KEEPING, &entries, &rows, 70), Ok(()));
        // Without the row that it rests on, each is found out.
        for (row, what) in [
            (1, "entry 3-0: by XWORK AUDIT it is in no"),
            (2, "entry 3-0: by XWORK AUDIT it is in conflict, and XWORK LOG has none"),
            (3, "entry 4-0: by XWORK AUDIT it is a dead letter, and XWORK LOG has no"),
            (5, "entry 7-0: by XWORK AUDIT it is completed, and XWORK LOG has no completion"),
            (7, "entry 7-0: by XWORK AUDIT it is in no conflict, and XWORK LOG has one"),
        ] {
            let mut fewer = rows.to_vec();
            fewer.remove(row);
            match crossed(KEEPING, &entries, &fewer, 70) {
                Err(said) => assert!(said.starts_with(what), "{row}: {said}"),
                // A completion of what is in conflict anyhow is asked for by nobody.
                Ok(()) => assert_eq!(row, 1),
            }
        }
    }

    #[test]
    fn rows_that_were_there_show_in_the_decisions() {
        for decision in ["RERUN not-started", "OPEN in-progress", "UNKNOWN no-ledger", "REPAIR acked-without-evidence"]
        {
            let entry = format!("5-0 {decision} w");
            let found = crossed(KEEPING, &[&entry], &["10-0 completed 5-0 w"], 70);
            assert!(found.unwrap_err().contains("5-0: by XWORK AUDIT it is not completed"), "{decision}");
            assert_eq!(crossed(KEEPING, &[&entry], &["10-0 begun 5-0 w", "50-0 completed 5-0 w"], 70), Ok(()));
        }
    }

    #[test]
    fn what_the_policy_let_go_is_not_missed() {
        let accepted = ["1-0 ACCEPT complete w"];
        let gone = |keeping, end_ms| crossed(keeping, &accepted, &["20-0 begun 2-0 x"], end_ms);
        assert!(gone(KEEPING, 1010).unwrap_err().contains("row 10-0 was there when the audit began"));
        assert_eq!(gone(KEEPING, 1011), Ok(()), "it is too old by now");
        assert_eq!(gone(Keeping { len: 1, ..KEEPING }, 70), Ok(()), "there is no room for more");
        let said = crossed(KEEPING, &[], &["10-0 begun 1-0 w", "10-0 begun 2-0 w"], 70).unwrap_err();
        assert_eq!(said, "XWORK LOG: row 10-0 does not stand behind an older one");
    }
}
