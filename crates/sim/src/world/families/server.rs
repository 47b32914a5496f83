//! Snapshots and settings by command, and waiting for the disk.

use super::line;
use crate::random::Random;

const LINES: &[&str] = &[
    "BGSAVE",
    "SAVE",
    "WAITAOF 1 0 0",
    "WAITAOF 1 0 40",
    "LASTSAVE",
    "CONFIG SET appendfsync always",
    "CONFIG SET appendfsync everysec",
    "CONFIG SET appendfsync no",
    "CONFIG SET save 1 5",
    "CONFIG GET appendfsync",
    "CONFIG SET notify-keyspace-events KEA",
    "CONFIG SET notify-keyspace-events x",
    "INFO",
    "DEBUG RELOAD",
    "TIME",
    "PING",
    "OBJECT FREQ a",
    "NOSUCHCOMMAND a b",
];

/// A command about the server.
pub fn command(random: &mut Random) -> Vec<Vec<u8>> {
    line(random.pick::<&str>(LINES))
}
