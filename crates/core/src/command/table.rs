//! The one command table. COMMAND, ACL checks, cluster routing, help texts and the compatibility page all come from these
//! rows, one file per family. A row says what a command looks like from outside; what it does is the engine's matter.
//!
//! Invariants: names are in lower case (a test), unique and, checked when this is compiled, short enough for a look-up to
//! compare numbers (`name.rs`).

mod acl;
mod connection;
mod flags;
mod id;
mod keys;
mod name;
mod pubsub;
mod scripting;
mod server;
mod spec;
mod stream_settings;
mod streams;
mod strings;
mod transactions;
mod work;

pub use flags::{Categories, Flags, KeyFlags};
pub use id::CommandId;
pub use spec::{Argument, ArgumentKind, CommandSpec, KeyBegin, KeySpec};

use crate::command::args::Args;

const FAMILIES: [&[CommandSpec]; 11] = [
    &streams::COMMANDS,
    &stream_settings::COMMANDS,
    &work::COMMANDS,
    &strings::COMMANDS,
    &keys::COMMANDS,
    &transactions::COMMANDS,
    &scripting::COMMANDS,
    &pubsub::COMMANDS,
    &connection::COMMANDS,
    &acl::COMMANDS,
    &server::COMMANDS,
];

/// Number of commands, subcommands not counted.
pub const COMMANDS: usize = {
    let (mut count, mut i) = (0, 0);
    while i < FAMILIES.len() {
        count += FAMILIES[i].len();
        i += 1;
    }
    count
};

/// Slots of the hash table: a power of two, several times the number of commands, so that nearly every look-up is one probe.
const SLOTS: usize = 512;

static INDEX: [Option<&'static CommandSpec>; SLOTS] = {
    assert!(COMMANDS * 2 < SLOTS, "the hash table of commands is too full");
    let mut index = [None; SLOTS];
    let mut family = 0;
    while family < FAMILIES.len() {
        let mut i = 0;
        while i < FAMILIES[family].len() {
            let spec: &'static CommandSpec = &FAMILIES[family][i];
            let mut slot = hash(spec.packed);
            while let Some(other) = index[slot] {
                let other: &CommandSpec = other;
                assert!(other.packed != spec.packed, "a command stands twice in the table");
                slot = (slot + 1) % SLOTS;
            }
            index[slot] = Some(spec);
            i += 1;
        }
        family += 1;
    }
    index
};

const fn hash(name: u128) -> usize {
    let folded = (name as u64) ^ ((name >> 64) as u64).rotate_left(29);
    (folded.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 55) as usize
}

/// The command of that name, in any case of letters. Subcommands are not found here.
pub fn lookup(name: &[u8]) -> Option<&'static CommandSpec> {
    let packed = name::pack(name)?;
    let mut slot = hash(packed);
    // Ends: the table is never full.
    loop {
        let spec = INDEX[slot]?;
        if spec.packed == packed {
            return Some(spec);
        }
        slot = (slot + 1) % SLOTS;
    }
}

/// The subcommand of that name, in any case of letters.
pub fn subcommand(container: &CommandSpec, name: &[u8]) -> Option<&'static CommandSpec> {
    let packed = name::pack(name)?;
    container.subcommands.iter().find(|subcommand| subcommand.packed == packed)
}

/// A command or subcommand by its full name (`xgroup|create`), in any case of letters.
pub fn lookup_full(name: &[u8]) -> Option<&'static CommandSpec> {
    match name.iter().position(|&b| b == b'|') {
        Some(bar) => subcommand(lookup(&name[..bar])?, &name[bar + 1..]),
        None => lookup(name),
    }
}

/// All commands, family by family, in the order of the table. Subcommands are within their containers.
pub fn all() -> impl Iterator<Item = &'static CommandSpec> + Clone {
    FAMILIES.iter().copied().flatten()
}

/// All commands, each followed by its subcommands.
pub fn all_with_subcommands() -> impl Iterator<Item = &'static CommandSpec> + Clone {
    all().flat_map(|spec| std::iter::once(spec).chain(spec.subcommands))
}

/// Why no row fits the arguments of a command.
#[derive(Clone, Copy, Debug)]
pub enum Refusal {
    /// There is no such command.
    UnknownCommand,
    /// This container has no such subcommand.
    UnknownSubcommand(&'static CommandSpec),
    /// This row wants another number of arguments.
    Arity(&'static CommandSpec),
}

/// The row for a command with its name(s) and arguments, arity checked. `args` must not be empty.
pub fn resolve(args: Args) -> Result<&'static CommandSpec, Refusal> {
    let spec = find(args)?;
    if spec.accepts(args.len()) { Ok(spec) } else { Err(Refusal::Arity(spec)) }
}

/// As [`resolve`], without the arity. A container alone is found as such, so that its arity refuses it.
pub(crate) fn find(args: Args) -> Result<&'static CommandSpec, Refusal> {
    let spec = lookup(args.get(0)).ok_or(Refusal::UnknownCommand)?;
    if spec.subcommands.is_empty() || args.len() == 1 {
        return Ok(spec);
    }
    subcommand(spec, args.get(1)).ok_or(Refusal::UnknownSubcommand(spec))
}

impl Refusal {
    /// The error for the client, code included. What is repeated of the arguments ends where it does in Redis: after
    /// so many bytes, or at a NUL.
    pub fn text(self, args: Args) -> Vec<u8> {
        const SHOWN_MAX_BYTES: usize = 128;
        fn cut(bytes: &[u8], len: usize) -> &[u8] {
            let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
            &bytes[..end.min(len)]
        }
        match self {
            Refusal::UnknownCommand => {
                let mut text = b"ERR unknown command '".to_vec();
                text.extend_from_slice(cut(args.get(0), SHOWN_MAX_BYTES));
                text.extend_from_slice(b"', with args beginning with: ");
                let begin = text.len();
                for argument in args.from(1).iter() {
                    let shown = text.len() - begin;
                    if shown >= SHOWN_MAX_BYTES {
                        break;
                    }
                    text.push(b'\'');
                    text.extend_from_slice(cut(argument, SHOWN_MAX_BYTES - shown));
                    text.extend_from_slice(b"' ");
                }
                text
            }
            Refusal::UnknownSubcommand(container) => {
                let mut text = b"ERR unknown subcommand '".to_vec();
                text.extend_from_slice(cut(args.get(1), SHOWN_MAX_BYTES));
                text.extend_from_slice(b"'. Try ");
                text.extend_from_slice(container.name.to_ascii_uppercase().as_bytes());
                text.extend_from_slice(b" HELP.");
                text
            }
            Refusal::Arity(spec) => format!("ERR wrong number of arguments for '{}' command", spec.name).into_bytes(),
        }
    }
}

#[cfg(test)]
mod tests;
