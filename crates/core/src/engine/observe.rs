//! What the server notes about itself: counters for INFO and the slow log. Not part of the state; lost at restart.

use std::collections::{BTreeMap, VecDeque};

use crate::command::args::Args;
use crate::command::table::CommandSpec;

/// Counters since the start, or since CONFIG RESETSTAT.
#[derive(Debug, Default)]
pub struct Statistics {
    /// Connections accepted.
    pub connections_received: u64,
    /// Connections refused because of `maxclients`.
    pub connections_rejected: u64,
    /// Commands carried out or refused.
    pub commands: u64,
    /// Keys that went by time.
    pub expired_keys: u64,
    /// Lookups that found their key.
    pub keyspace_hits: u64,
    /// Lookups that did not.
    pub keyspace_misses: u64,
    /// Reads that had to wait.
    pub blocked_total: u64,
    /// How often a read that waits was carried out again, because there might be something for it or its time was over.
    pub reads_repeated: u64,
    /// Error replies.
    pub errors: u64,
    /// Error replies by their first word.
    pub errors_by_code: BTreeMap<String, u64>,
    /// Connections closed because they sent more than `client-query-buffer-limit` ahead.
    pub query_buffer_disconnections: u64,
    /// Connections closed because they did not read what they asked for.
    pub output_buffer_disconnections: u64,
    /// By command, at the place of its number.
    by_command: Vec<CommandCounts>,
    /// Bytes received.
    pub received_bytes: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
}

/// What is counted of one command.
#[derive(Clone, Copy, Debug, Default)]
pub struct CommandCounts {
    /// Its full name.
    pub name: &'static str,
    /// Calls that ran.
    pub calls: u64,
    /// Microseconds that they took; of the fast ones, with many calls, as samples and the long ones tell: `engine::timing`.
    pub took_us: u64,
    /// Calls refused before they ran.
    pub rejected: u64,
    /// Calls that answered an error.
    pub failed: u64,
}

/// Different error codes that are counted apart; Redis stops at 128 as well.
const ERROR_CODES_MAX: usize = 128;

impl Statistics {
    /// The counts of a command, to be changed.
    #[inline]
    pub fn of(&mut self, spec: &'static CommandSpec) -> &mut CommandCounts {
        let place = spec.id as usize;
        if place >= self.by_command.len() {
            self.by_command.resize(place + 1, CommandCounts::default());
        }
        let counts = &mut self.by_command[place];
        counts.name = spec.name;
        counts
    }

    /// The counts of every command that was called.
    pub fn commands_called(&self) -> impl Iterator<Item = &CommandCounts> {
        self.by_command.iter().filter(|counts| counts.calls + counts.rejected > 0)
    }

    /// Counts an error reply.
    pub fn note_error(&mut self, text: &[u8]) {
        self.errors += 1;
        let code = text.split(|&b| b == b' ').next().unwrap_or_default();
        let code = String::from_utf8_lossy(code);
        if let Some(count) = self.errors_by_code.get_mut(code.as_ref()) {
            *count += 1;
        } else if self.errors_by_code.len() < ERROR_CODES_MAX {
            self.errors_by_code.insert(code.into_owned(), 1);
        }
    }
}

/// A command that took long.
#[derive(Clone, Debug)]
pub struct SlowCommand {
    /// Rises by one with each.
    pub id: u64,
    /// Unix seconds.
    pub at_s: u64,
    /// Microseconds that it took.
    pub took_us: u64,
    /// Its arguments, cut as Redis cuts them: 32 of them, 128 bytes each.
    pub args: Vec<Vec<u8>>,
    /// Who sent it.
    pub addr: String,
    /// Its CLIENT SETNAME.
    pub name: Vec<u8>,
}

/// The newest slow commands, newest first.
#[derive(Debug, Default)]
pub struct SlowLog {
    /// They.
    pub commands: VecDeque<SlowCommand>,
    next_id: u64,
}

const ARGUMENTS_SHOWN: usize = 32;
const ARGUMENT_SHOWN_BYTES: usize = 128;

impl SlowLog {
    /// Notes a command; keeps `max` at most.
    pub fn note(&mut self, args: Args<'_>, at_s: u64, took_us: u64, addr: String, name: Vec<u8>, max: usize) {
        let mut shown: Vec<Vec<u8>> = Vec::new();
        for (place, argument) in args.iter().enumerate() {
            if place == ARGUMENTS_SHOWN - 1 && args.len() > ARGUMENTS_SHOWN {
                shown.push(format!("... ({} more arguments)", args.len() - place).into_bytes());
                break;
            }
            shown.push(match argument.len().checked_sub(ARGUMENT_SHOWN_BYTES) {
                None | Some(0) => argument.to_vec(),
                Some(more) => {
                    [&argument[..ARGUMENT_SHOWN_BYTES], format!("... ({more} more bytes)").as_bytes()].concat()
                }
            });
        }
        let command = SlowCommand { id: self.next_id, at_s, took_us, args: shown, addr, name };
        self.next_id += 1;
        self.commands.push_front(command);
        self.commands.truncate(max);
    }
}
