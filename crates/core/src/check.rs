//! Every invariant of the state in one callable place, and a digest by which two states can be compared.
//!
//! Equal contents give equal digests on every machine, whatever led to them: order of keys, layout of blocks, seeds of
//! hash tables. The digest is no protection against someone who wants two states to look alike. [`exact_digest`] sees the
//! layout of blocks too: two states in which it is the same go on being the same, whatever is done to both.

use crate::id::StreamId;
use crate::state::codec::{put_bytes, put_id, put_uint};
use crate::state::keyspace::{Slot, State, Value};
use crate::state::stream::Stream;

/// Checks everything that must hold of a state.
pub fn check(state: &State) -> Result<(), String> {
    state.check()
}

/// Bytes of a digest.
pub const DIGEST_BYTES: usize = 20;

/// 64-bit lanes that a digest is cut from.
const LANES: usize = 3;

/// Odd numbers without a pattern (digits of the square roots of 2, 3 and 5), one for each lane.
const FACTORS: [u64; LANES] = [0x6a09_e667_f3bc_c909, 0xbb67_ae85_84ca_a73b, 0x3c6e_f372_fe94_f82b];

/// A sum of hashes: the order of what is added does not show.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Digest([u64; LANES]);

impl Digest {
    /// Adds something as its bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        for (sum, hash) in self.0.iter_mut().zip(hash(bytes)) {
            *sum = sum.wrapping_add(hash);
        }
    }

    /// The digest as bytes.
    pub fn bytes(&self) -> [u8; DIGEST_BYTES] {
        let mut all = [0; LANES * 8];
        for (bytes, lane) in all.chunks_exact_mut(8).zip(self.0) {
            bytes.copy_from_slice(&lane.to_be_bytes());
        }
        std::array::from_fn(|at| all[at])
    }

    /// The digest as DEBUG DIGEST shows it.
    pub fn hex(&self) -> String {
        self.bytes().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

fn hash(bytes: &[u8]) -> [u64; LANES] {
    let mut lanes = FACTORS;
    let mut take = |word: u64| {
        for (lane, factor) in lanes.iter_mut().zip(FACTORS) {
            let product = u128::from(*lane ^ word) * u128::from(factor);
            // Both halves, so that no bit of the word is lost; the sum keeps a lane of 0 from staying 0.
            *lane = ((product as u64) ^ ((product >> 64) as u64)).rotate_left(29).wrapping_add(factor);
        }
    };
    let words = bytes.chunks_exact(8);
    let mut last = [0; 8];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    for word in words {
        take(u64::from_le_bytes(word.try_into().expect("eight bytes")));
    }
    take(u64::from_le_bytes(last));
    take(bytes.len() as u64);
    take(0);
    lanes
}

/// Adds a value behind what is in `bytes` (a key, or nothing). A stream is added in parts, each entry by itself: its blocks
/// do not show, and no more than an entry or a group is in memory twice.
fn add_value(digest: &mut Digest, bytes: &mut Vec<u8>, expire_ms: u64, value: &Value) {
    let own = bytes.len();
    put_uint(bytes, expire_ms);
    match value {
        Value::String(_) => value.encode(bytes),
        Value::Stream(stream) => {
            stream.encode_around(bytes, |_| {});
            digest.add(bytes);
            return add_entries(digest, bytes, own, stream);
        }
    }
    digest.add(bytes);
}

fn add_entries(digest: &mut Digest, bytes: &mut Vec<u8>, own: usize, stream: &Stream) {
    for entry in stream.entries.range(StreamId::MIN, StreamId::MAX) {
        bytes.truncate(own);
        put_id(bytes, entry.id);
        for (name, value) in entry.fields() {
            put_bytes(bytes, name);
            put_bytes(bytes, value);
        }
        digest.add(bytes);
    }
}

/// Digest of the contents of a key alone: value and expiry.
pub fn value_digest(slot: &Slot) -> Digest {
    let mut digest = Digest::default();
    add_value(&mut digest, &mut Vec::new(), slot.expire_ms, &slot.value);
    digest
}

/// Adds a key with what it holds. The digest of a state is the sum of its keys.
pub fn add_key(digest: &mut Digest, db: usize, key: &[u8], expire_ms: u64, value: &Value) {
    let mut bytes = Vec::new();
    put_uint(&mut bytes, db as u64);
    put_bytes(&mut bytes, key);
    add_value(digest, &mut bytes, expire_ms, value);
}

/// Digest of everything; all zeros when there are no keys.
pub fn digest(state: &State) -> Digest {
    let mut digest = Digest::default();
    for (number, db) in state.databases().iter().enumerate() {
        for (key, slot) in db.iter() {
            add_key(&mut digest, number, key, slot.expire_ms, &slot.value);
        }
    }
    digest
}

/// As [`digest`], and the layout of blocks shows. Encodes whole values.
pub fn exact_digest(state: &State) -> Digest {
    let mut digest = Digest::default();
    let mut bytes = Vec::new();
    for (number, db) in state.databases().iter().enumerate() {
        for (key, slot) in db.iter() {
            bytes.clear();
            put_uint(&mut bytes, number as u64);
            put_bytes(&mut bytes, key);
            put_uint(&mut bytes, slot.expire_ms);
            slot.value.encode(&mut bytes);
            digest.add(&bytes);
        }
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::args::OwnedArgs;
    use crate::engine::apply::{Context, apply};
    use crate::record::{At, Fields, Record};
    use crate::state::entries::NodeLimits;

    fn state_of(seed: u64, keys: &[(usize, &str, &str, u64)]) -> State {
        let mut state = State::new(seed);
        let context = Context { position: 0, node_limits: NodeLimits { max_entries: 100, max_bytes: 4096 } };
        for &(db, key, value, expire_ms) in keys {
            let at = At { db, key: key.as_bytes() };
            apply(&mut state, &Record::SetString { at, expire_ms, value: value.as_bytes() }, &context);
        }
        state
    }

    #[test]
    fn order_does_not_show_and_everything_else_does() {
        let of = |seed, keys: &[_]| digest(&state_of(seed, keys)).hex();
        let base = of(1, &[(0, "a", "1", 0), (0, "b", "2", 9)]);
        assert_eq!(base, of(7, &[(0, "b", "2", 9), (0, "a", "1", 0)]));
        for other in [
            vec![(0, "a", "1", 0)],
            vec![(0, "a", "2", 0), (0, "b", "1", 9)],
            vec![(0, "a", "1", 0), (0, "b", "2", 8)],
            vec![(0, "a", "1", 0), (1, "b", "2", 9)],
            vec![(0, "a1", "", 0), (0, "b", "2", 9)],
        ] {
            assert_ne!(base, of(1, &other), "{other:?}");
        }
        assert_eq!(of(1, &[]), "0".repeat(40));
        assert_eq!(check(&state_of(1, &[(0, "a", "1", 5)])), Ok(()));
    }

    /// Entries of a stream under other bounds of a block: the same contents, another layout.
    #[test]
    fn the_layout_of_blocks_shows_in_the_exact_digest_alone() {
        let of = |max_entries, value: &[u8]| {
            let mut state = State::new(1);
            let context = Context { position: 0, node_limits: NodeLimits { max_entries, max_bytes: 4096 } };
            for n in 1..=10 {
                let mut args = OwnedArgs::default();
                [&b"field"[..], value].iter().for_each(|part| args.push(part));
                let at = At { db: 0, key: b"s" };
                let record = Record::Add { at, id: StreamId::new(n, 0), fields: Fields::Args(args.args()) };
                apply(&mut state, &record, &context);
            }
            state
        };
        let (wide, narrow) = (of(100, b"v"), of(3, b"v"));
        assert_eq!(digest(&wide), digest(&narrow));
        assert_ne!(exact_digest(&wide), exact_digest(&narrow));
        assert_ne!(digest(&wide), digest(&of(100, b"w")));
        let slot = |state: &State| value_digest(state.db(0).get_any(b"s").unwrap());
        assert_eq!(slot(&wide), slot(&narrow));
    }

    /// The value is kept here so that a change of it, or a machine with another one, is noticed.
    #[test]
    fn the_same_on_every_machine() {
        let mut digest = Digest::default();
        digest.add(b"the bytes of a value, longer than a word");
        assert_eq!(digest.hex(), "87049c3a7d6cd469a2ff7d863d83a526e85a0a8d");
        let zeros = |n: usize| hash(&vec![0; n]);
        assert!((0..40).all(|n| zeros(n) != zeros(n + 1)));
    }
}
