//! The engine of Impel: RESP codec, commands, state, records, snapshot encoding and the reply gate.
//!
//! Pure and synchronous. Nothing in this crate does I/O, reads a clock, spawns, awaits, draws randomness, or lets the
//! order of a hash table show. Time, memory use and whatever else comes from outside is an argument.

pub mod check;
pub mod command;
pub mod engine;
pub mod extended;
pub mod glob;
pub mod id;
pub mod limits;
pub mod pipeline;
pub mod record;
pub mod resp;
pub mod session;
pub mod settings;
pub mod snapshot;
pub mod state;
#[cfg(test)]
mod test_support;
