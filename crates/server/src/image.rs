//! What is inside the chunks of a snapshot: keys, as `impel_core::snapshot` writes them. Encoding runs on the writer's thread, decoding at start.
//!
//! ```text
//! chunk   = 0x00 key*          whole keys
//!         | 0x01 bytes         a piece of one that does not fit into a chunk; the rest follows in the next chunk
//! key     = what `impel_core::snapshot` makes of it
//! ```
//!
//! Pieces are joined with everything behind the first byte of the next chunk. Nothing here knows files.

use impel_core::snapshot;
use impel_core::state::codec::{Corrupt, Reader};
use impel_core::state::keyspace::Captured;

use crate::snapshots::CHUNK_MAX_BYTES;

const WHOLE: u8 = 0;
const PIECE: u8 = 1;

/// A chunk is given away when it has this size.
const CHUNK_BYTES: usize = 64 * 1024;

/// Puts keys into chunks.
#[derive(Debug)]
pub struct Encoder {
    buffer: Vec<u8>,
    chunk_max_bytes: usize,
}

impl Default for Encoder {
    fn default() -> Self {
        Encoder { buffer: vec![WHOLE], chunk_max_bytes: CHUNK_MAX_BYTES }
    }
}

impl Encoder {
    /// Adds a key. Chunks that are full go to `write`.
    pub fn key<E>(&mut self, key: &Captured, write: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        snapshot::encode(key, &mut self.buffer);
        if self.buffer.len() >= CHUNK_BYTES { self.flush(write) } else { Ok(()) }
    }

    /// Gives away what there is.
    pub fn flush<E>(&mut self, mut write: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        if self.buffer.len() == 1 {
            return Ok(());
        }
        let mut at = 0;
        while self.buffer.len() - at > self.chunk_max_bytes {
            // The byte before each piece was written already, so its place can be used for the mark.
            self.buffer[at] = PIECE;
            write(&self.buffer[at..at + self.chunk_max_bytes])?;
            at += self.chunk_max_bytes - 1;
        }
        self.buffer[at] = WHOLE;
        write(&self.buffer[at..])?;
        self.buffer.clear();
        self.buffer.push(WHOLE);
        if self.buffer.capacity() > 4 * CHUNK_BYTES {
            self.buffer.shrink_to(4 * CHUNK_BYTES);
        }
        Ok(())
    }
}

/// Reads keys from chunks.
#[derive(Debug, Default)]
pub struct Decoder {
    pieces: Vec<u8>,
    /// The next whole chunk may begin with the rest of a key whose piece was lost.
    mid_key: bool,
}

impl Decoder {
    /// Takes a chunk; the keys that are complete with it go to `restore`.
    pub fn chunk(&mut self, chunk: &[u8], mut restore: impl FnMut(Captured)) -> Result<(), Corrupt> {
        let (&kind, rest) = chunk.split_first().ok_or(Corrupt { what: "empty chunk" })?;
        match kind {
            PIECE if self.mid_key => Ok(()),
            PIECE => {
                self.pieces.extend_from_slice(rest);
                Ok(())
            }
            WHOLE if self.mid_key => {
                self.mid_key = false;
                Ok(())
            }
            WHOLE if self.pieces.is_empty() => Self::keys(rest, &mut restore),
            WHOLE => {
                let mut bytes = std::mem::take(&mut self.pieces);
                bytes.extend_from_slice(rest);
                Self::keys(&bytes, &mut restore)
            }
            _ => Err(Corrupt { what: "unknown kind of chunk" }),
        }
    }

    /// A chunk of this length is lost: so are the keys that were whole in it, and one that it held a piece of. Only a chunk
    /// of full length can have been a piece. Answers whether what follows up to the next whole chunk is lost with it.
    pub fn lost(&mut self, len_bytes: usize) -> bool {
        self.pieces.clear();
        self.mid_key |= len_bytes >= CHUNK_MAX_BYTES;
        self.mid_key
    }

    /// After the last chunk.
    pub fn finish(self) -> Result<(), Corrupt> {
        if self.pieces.is_empty() { Ok(()) } else { Err(Corrupt { what: "the rest of a key" }) }
    }

    fn keys(bytes: &[u8], restore: &mut impl FnMut(Captured)) -> Result<(), Corrupt> {
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            restore(snapshot::decode(&mut reader)?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use impel_core::limits::DATABASES;
    use impel_core::state::keyspace::Value;
    use std::sync::Arc;

    fn key(name: &str, len_bytes: usize) -> Captured {
        let value = Value::String(Arc::new(name.bytes().cycle().take(len_bytes).collect()));
        Captured { db: name.len() % DATABASES, key: name.as_bytes().into(), expire_ms: len_bytes as u64, value }
    }

    fn show(key: &Captured) -> (usize, Vec<u8>, u64, usize) {
        let mut value = Vec::new();
        key.value.encode(&mut value);
        (key.db, key.key.to_vec(), key.expire_ms, value.iter().map(|&byte| usize::from(byte)).sum())
    }

    #[test]
    fn keys_come_back_from_chunks_of_any_size() {
        let keys = [key("a", 10), key("large", 300_000), key("bb", 0), key("exact", 1000), key("ccc", 70_000)];
        for chunk_max_bytes in [2, 3, 100, 1000, 65_536, CHUNK_MAX_BYTES] {
            let mut encoder = Encoder { chunk_max_bytes, ..Encoder::default() };
            let mut chunks: Vec<Vec<u8>> = Vec::new();
            let mut write = |chunk: &[u8]| {
                assert!(chunk.len() <= chunk_max_bytes);
                chunks.push(chunk.to_vec());
                Ok::<(), ()>(())
            };
            keys.iter().for_each(|key| encoder.key(key, &mut write).unwrap());
            encoder.flush(&mut write).unwrap();
            encoder.flush(|_| Err("nothing is left to write")).unwrap();
            let mut decoder = Decoder::default();
            let mut found = Vec::new();
            chunks.iter().for_each(|chunk| decoder.chunk(chunk, |key| found.push(show(&key))).unwrap());
            decoder.finish().unwrap();
            assert_eq!(found, keys.iter().map(show).collect::<Vec<_>>(), "chunks of {chunk_max_bytes}");
        }
    }

    #[test]
    fn what_was_cut_off_is_noticed() {
        let mut decoder = Decoder::default();
        decoder.chunk(&[PIECE, 0], |_| panic!("not complete")).unwrap();
        assert!(decoder.finish().is_err());
        assert!(Decoder::default().chunk(&[WHOLE, 16, 0], |_| ()).is_err(), "there is no database 16");
        assert!(Decoder::default().chunk(&[2], |_| ()).is_err());
        assert!(Decoder::default().chunk(&[], |_| ()).is_err());
    }
}
