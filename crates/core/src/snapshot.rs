//! Snapshot contents: keys with their values as bytes, and back. How they are framed into a file is the server's matter.
//!
//! A key's bytes are canonical: the same key with the same contents gives the same bytes, whatever led to them. The keys
//! of a snapshot stand in the order in which they were taken.

use crate::limits::DATABASES;
use crate::state::codec::{Corrupt, Reader, put_bytes, put_uint};
use crate::state::keyspace::{Captured, Value};

/// Appends one key.
pub fn encode(captured: &Captured, out: &mut Vec<u8>) {
    put_uint(out, captured.db as u64);
    put_bytes(out, &captured.key);
    put_uint(out, captured.expire_ms);
    captured.value.encode(out);
}

/// Reads one key.
pub fn decode(reader: &mut Reader<'_>) -> Result<Captured, Corrupt> {
    let db = reader.uint("database")?;
    if db >= DATABASES as u64 {
        return Err(Corrupt { what: "database number" });
    }
    Ok(Captured {
        db: db as usize,
        key: reader.bytes("key")?.into(),
        expire_ms: reader.uint("expiry")?,
        value: Value::decode(reader)?,
    })
}
