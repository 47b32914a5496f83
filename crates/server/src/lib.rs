//! The process around the engine: event loop, sockets, log providers, snapshots, configuration, command-line tools.
//! Decides nothing about what a command means; that is `impel-core`'s.

pub mod audit;
pub mod backup;
pub mod calendar;
pub mod check;
pub mod cli;
pub mod client;
pub mod clock;
pub mod config;
pub mod disk;
pub mod headless;
pub mod image;
pub mod lab;
pub mod log;
pub mod logger;
pub mod memory;
pub mod net;
pub mod node;
pub mod observe;
pub mod offline;
pub mod restore;
pub mod run;
pub mod saver;
pub mod serve;
pub mod signals;
pub mod snapshots;
pub mod startup;
pub mod syncer;
pub mod worker;
