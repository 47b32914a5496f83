//! What the naive model of work shows of itself: the decision on each entry, the rows of the ledger, what is pending, and what was
//! emitted. Looks only; it never changes the book.

use std::collections::BTreeSet;

use super::{Book, Pend, Row, bulk, optional, own};

impl Book {
    pub(super) fn audit(&self) -> String {
        let mut rows = Vec::new();
        let given: BTreeSet<u64> =
            self.entries.range(..=self.position).map(|(&id, _)| id).chain(self.pending.keys().copied()).collect();
        for id in given {
            let (pend, work) = (self.pending.get(&id), self.work_of(id, None));
            let completed = self.completion(&work).is_some();
            let payload = self.entries.contains_key(&id);
            let (decision, reason) = match pend {
                Some(Pend { hold: Some(reason), .. }) => ("HOLD", reason.as_str()),
                _ if self.is_in_conflict(&work) => ("HOLD", "conflict"),
                None if completed => ("ACCEPT", "complete"),
                None if self.settlement(id).is_some_and(|row| row.outcome == "dead") => ("HOLD", "dead-letter"),
                None if self.evidence == "off" => ("UNKNOWN", "no-ledger"),
                None => ("REPAIR", "acked-without-evidence"),
                Some(_) if completed => ("REPAIR", "ack-missing"),
                Some(pend) if pend.attempt.is_some() && !self.is_over(id) => ("OPEN", "in-progress"),
                Some(_) if !payload => ("HOLD", "payload-lost"),
                Some(pend) if pend.attempt.is_none() => ("RERUN", "not-started"),
                Some(_) if self.idempotent => ("RERUN", "retry-safe"),
                Some(_) => ("HOLD", "outcome-unknown"),
            };
            let owner = pend.and_then(|pend| pend.owner.clone()).unwrap_or_default();
            let idle = pend.filter(|pend| pend.owner.is_some()).map_or(-1, |p| (self.now_ms - p.at_ms) as i64);
            rows.push(format!(
                "*7\r\n{}{}+{decision}\r\n{}{}:{}\r\n:{idle}\r\n",
                bulk(&own(id)),
                bulk(&work),
                bulk(reason),
                optional(&owner),
                pend.map_or(0, |pend| pend.n),
            ));
        }
        format!("*{}\r\n{}", rows.len(), rows.concat())
    }

    pub(super) fn log(&self) -> String {
        let row = |row: &Row| {
            format!(
                "*2\r\n{}*16\r\n$7\r\noutcome\r\n{}$5\r\nentry\r\n{}$4\r\nwork\r\n{}$8\r\nconsumer\r\n{}$8\r\ndelivery\r\n:{}\r\n$6\r\ndigest\r\n{}$7\r\nreceipt\r\n$-1\r\n\
                 $6\r\nreason\r\n{}",
                bulk(&row.id),
                bulk(row.outcome),
                bulk(&own(row.entry)),
                bulk(&row.work),
                optional(&row.consumer),
                row.n,
                optional(&row.digest),
                optional(&row.reason)
            )
        };
        let known = self.known();
        format!("*{}\r\n{}", known.len(), known.iter().map(row).collect::<String>())
    }

    pub(super) fn pending_list(&self) -> String {
        let rows = self.pending.iter().map(|(&id, pend)| {
            let idle = if pend.owner.is_some() { (self.now_ms - pend.at_ms) as i64 } else { -1 };
            let owner = bulk(pend.owner.as_deref().unwrap_or(""));
            format!("*4\r\n{}{owner}:{idle}\r\n:{}\r\n", bulk(&own(id)), pend.n)
        });
        format!("*{}\r\n{}", self.pending.len(), rows.collect::<String>())
    }

    pub(super) fn emitted(&self) -> String {
        let rows = self
            .out
            .iter()
            .map(|((ms, seq), work)| format!("*2\r\n{}*2\r\n$1\r\nw\r\n{}", bulk(&format!("{ms}-{seq}")), bulk(work)));
        format!("*{}\r\n{}", self.out.len(), rows.collect::<String>())
    }
}
