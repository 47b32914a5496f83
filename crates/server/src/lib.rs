//! The process around the engine: event loop, sockets, log providers, snapshots, configuration, command-line tools.
//! Decides nothing about what a command means; that is `impel-core`'s.

pub mod disk;
pub mod log;
pub mod snapshots;
