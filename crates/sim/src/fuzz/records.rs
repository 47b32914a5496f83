//! Records: what is none is a clean error; what is one but could never have been written changes something or nothing, and
//! leaves a state that holds.
//!
//! One thing is not bounded by its input: a part of a string may say that it stands far behind the end, as SETRANGE does, and
//! the string is filled up with zeros to there.

use impel_core::record::Record;
use impel_core::state::codec::Reader;

use super::look;
use crate::workload::START_MS;

/// Parts of strings that stand further behind are left alone here.
const OFFSET_MAX: u64 = 1 << 16;

/// The bytes are those of a log.
pub fn run(data: &[u8]) {
    let mut engine = look::new_engine();
    let mut reader = Reader::new(data);
    while !reader.is_empty() {
        let Ok(record) = Record::decode(&mut reader) else { break };
        if matches!(record, Record::WriteString { offset, .. } if offset > OFFSET_MAX) {
            continue;
        }
        engine.replay(&record, (data.len() - reader.rest.len()) as u64);
    }
    while engine.free_one() {}
    look::check_state(&mut engine);
    look::work_on(&mut engine, START_MS, look::check_state);
}
