//! Chunks of a snapshot: a clean error, or a state that holds.

use impel::image::Decoder;

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
    // What came before the error is a beginning of a state; a start that meets one goes no further.
    look::check_foreign(&mut engine);
    if fine.is_ok() {
        look::work_on(&mut engine, START_MS, look::check_foreign);
    }
}
