//! What a server knows. Plain data with its indexes; changed only by `engine::apply`.

pub mod codec;
pub mod decision;
pub mod delays;
pub mod entries;
pub mod garbage;
pub mod group;
pub mod held;
pub mod idempotence;
pub mod keyspace;
pub mod ledger;
pub mod pending;
pub mod policy;
pub mod redrive;
pub mod retention;
pub mod settled;
pub mod sizes;
pub mod stream;
pub mod timed;
