//! The fake world for tests: a naive model of streams, random workloads, virtual time, an oracle. Never part of the
//! product.
//!
//! The model shares no code with the engine, so that a common mistake cannot hide; only `compare` and `fuzz` drive the engine, and
//! `world` the whole node with its log and snapshots.

pub mod compare;
pub mod fuzz;
pub mod model;
pub mod random;
pub mod shrink;
pub mod workload;
pub mod world;
