//! Chunks of a snapshot: a clean error, or a state that holds.
//!
//! One invariant is of what we write ourselves, and is not asked of what was read: that a block of entries is packed in the one
//! way in which we pack. Finding out would mean packing everything anew at each start, and nothing depends on it.

use impel::image::Decoder;
use impel_core::check;

use super::look;
use crate::workload::START_MS;

/// Two bytes say where the rest is cut into two chunks; 0: it is one.
pub fn run(data: &[u8]) {
    let [high, low, bytes @ ..] = data else { return };
    let cut = usize::from(u16::from_be_bytes([*high, *low])).min(bytes.len());
    let mut engine = look::new_engine();
    let mut decoder = Decoder::default();
    let chunks = [&bytes[..cut], &bytes[cut..]];
    let fine = chunks
        .iter()
        .filter(|chunk| !chunk.is_empty())
        .try_for_each(|chunk| decoder.chunk(chunk, |key| engine.restore(key, 0)))
        .and_then(|()| decoder.finish());
    if check::check(engine.state()).is_err_and(|why| why.ends_with("packing its entries anew gives other bytes")) {
        return;
    }
    // What came before the error is a beginning of a state; a start that meets one goes no further.
    look::check_state(&mut engine);
    if fine.is_ok() {
        look::work_on(&mut engine, START_MS);
    }
}
