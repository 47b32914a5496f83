//! The ledger by itself, beside a naive one.

use std::collections::BTreeMap;

use super::*;
use crate::state::codec::Reader;
use crate::state::pending::ConsumerRef;
use crate::test_support::Random;

const START_MS: u64 = 1_700_000_000_000;

fn pending(id: StreamId) -> Option<Pending> {
    Some(Pending { id, consumer: ConsumerRef::NOBODY, delivered_ms: HOLD_UNTIL_MS, deliveries: 1 })
}

#[test]
fn a_ledger_knows_what_a_list_knows() {
    let mut random = Random(11);
    let mut policy = Policy { ledger_len: 400, ledger_age_ms: 5000, ..Policy::default() };
    let mut ledger = Ledger::default();
    // Rows as (ID, outcome, entry, work), and what is begun and on hold.
    let mut rows: Vec<(StreamId, Outcome, StreamId, String)> = Vec::new();
    let (mut begun, mut held, mut failed) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let mut now_ms = START_MS;
    // Rows that were forgotten stay so when the bound is raised.
    let mut gone = 0;
    for step in 0..6000 {
        now_ms += random.below(40);
        let entry = StreamId::new(START_MS + random.below(60), 0);
        let name = format!("job {}", random.below(30));
        let work = if random.one_in(2) { WorkId::Named(name.as_bytes()) } else { WorkId::Entry(entry) };
        let outcome = OUTCOMES[random.below(11) as usize];
        let text = String::from_utf8(work.text().into_owned()).unwrap();
        if outcome == Outcome::Completed && known_completion(&rows, gone, &text, &policy, now_ms).is_some() {
            continue;
        }
        let id = ledger.next_id(now_ms);
        let reason = ["", "why", "else"][random.below(3) as usize];
        let row =
            Row { work, consumer: b"c", delivery: step, reason: reason.as_bytes(), ..Row::new(id, outcome, entry) };
        ledger.append(&row, || true);
        // The same again changes nothing.
        ledger.append(&row, || true);
        rows.push((id, outcome, entry, text.clone()));
        match outcome {
            Outcome::Begun => {
                begun.insert(entry, (step, text.clone()));
            }
            Outcome::Held | Outcome::Conflict => {
                let reason = if outcome == Outcome::Held { reason } else { "conflict" };
                held.insert(entry, reason);
                if outcome == Outcome::Conflict {
                    begun.remove(&entry);
                }
            }
            Outcome::Completed => {
                begun.remove(&entry);
            }
            Outcome::Failed => {
                begun.remove(&entry);
                if !reason.is_empty() {
                    failed.insert(entry, reason);
                }
            }
            Outcome::Released => {
                begun.remove(&entry);
                held.remove(&entry);
                failed.remove(&entry);
            }
            _ => {}
        }
        if random.one_in(20) {
            ledger.entry_gone(entry);
            begun.remove(&entry);
            held.remove(&entry);
            failed.remove(&entry);
        }
        if let Some(before) = ledger.to_forget(&policy, now_ms, 64).filter(|_| random.one_in(5)) {
            ledger.forget(before);
            gone = before as usize;
        }
        if random.one_in(500) {
            policy.ledger_len = 100 + random.below(400);
        }
        let found = ledger.completion(work, &policy, now_ms).map(|row| row.id);
        assert_eq!(found, known_completion(&rows, gone, &text, &policy, now_ms), "step {step}");
        assert_eq!(ledger.attempt(entry).map(|a| a.delivery), begun.get(&entry).map(|(step, _)| *step));
        assert_eq!(ledger.hold(entry), held.get(&entry).map(|reason| reason.as_bytes()));
        assert_eq!(ledger.failure(entry), failed.get(&entry).map(|reason| reason.as_bytes()));
        let others: BTreeSet<StreamId> = ledger.others_at(work, entry).map(|(id, _)| id).collect();
        let expected = begun.iter().filter(|(id, (_, of))| **id != entry && *of == text).map(|(id, _)| *id);
        assert_eq!(others, expected.collect());
        let first = rows.len().saturating_sub(policy.ledger_len as usize).max(gone);
        let fresh = rows[first..].iter().filter(|row| now_ms - row.0.ms <= policy.ledger_age_ms);
        assert_eq!(ledger.range(StreamId::MIN, &policy, now_ms).count(), fresh.count());
        if random.one_in(50) {
            ledger.check(pending).unwrap();
            let mut bytes = Vec::new();
            ledger.encode(&mut bytes, |_| true);
            let back = Ledger::decode(Reader::new(&bytes)).unwrap();
            back.check(pending).unwrap();
            let mut again = Vec::new();
            back.encode(&mut again, |_| true);
            assert_eq!(bytes, again);
            if random.one_in(3) {
                ledger = back;
            }
        }
    }
    assert!(ledger.len() < 700 && ledger.attempts() > 0 && ledger.holds() > 0);
}

fn known_completion(
    rows: &[(StreamId, Outcome, StreamId, String)],
    gone: usize,
    work: &str,
    policy: &Policy,
    now_ms: u64,
) -> Option<StreamId> {
    let first = rows.len().saturating_sub(policy.ledger_len as usize).max(gone);
    let mut known = rows[first..].iter().filter(|row| now_ms - row.0.ms <= policy.ledger_age_ms);
    known.find(|row| row.1 == Outcome::Completed && row.3 == work).map(|row| row.0)
}

#[test]
fn damaged_bytes_are_refused() {
    let mut ledger = Ledger::default();
    for outcome in OUTCOMES.into_iter().take(5) {
        let row = Row::new(ledger.next_id(START_MS), outcome, StreamId::new(1, 1));
        let row = Row { work: WorkId::Named(b"w"), ..row };
        ledger.append(&row, || true);
    }
    let mut bytes = Vec::new();
    ledger.encode(&mut bytes, |_| true);
    for len in 0..bytes.len() {
        assert!(Ledger::decode(Reader::new(&bytes[..len])).is_err(), "{len} bytes");
    }
}

#[test]
fn a_row_is_small() {
    let mut ledger = Ledger::default();
    for n in 0..100_000 {
        let entry = StreamId::new(START_MS + n / 3, n % 3);
        let id = ledger.next_id(START_MS + 40 + n / 3);
        let row = Row { consumer: b"worker-7", delivery: 1, ..Row::new(id, Outcome::Completed, entry) };
        ledger.append(&row, || false);
    }
    let each = ledger.memory_bytes() / 100_000;
    assert!(each <= 40, "{each} bytes a row");
}

#[test]
fn what_is_said_for_ever_of_an_entry_is_found_in_one_place() {
    let (policy, entry) = (Policy::default(), StreamId::new(1, 0));
    let mut ledger = Ledger::default();
    let mut say = |outcome, work| {
        let row = Row { work, ..Row::new(ledger.next_id(START_MS), outcome, entry) };
        ledger.append(&row, || false);
        ledger.check(pending).unwrap();
        (ledger.index.len(), ledger.settlement(entry, &policy, START_MS).unwrap().outcome)
    };
    assert_eq!(say(Outcome::Completed, WorkId::Named(b"job")), (2, Outcome::Completed));
    for outcome in [Outcome::Duplicate, Outcome::Conflict, Outcome::Released, Outcome::Dead].repeat(50) {
        assert_eq!(say(outcome, WorkId::Named(b"job")), (3, outcome));
    }
    let mut bytes = Vec::new();
    ledger.encode(&mut bytes, |_| false);
    let mut read = Ledger::decode(Reader::new(&bytes)).unwrap();
    read.check(pending).unwrap();
    assert_eq!(read.index.len(), 3);
    assert_eq!(read.completion(WorkId::Named(b"job"), &policy, START_MS).map(|row| row.entry), Some(entry));
    read.forget(200);
    read.check(pending).unwrap();
    assert_eq!(read.index.len(), 1);
}
