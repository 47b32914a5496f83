//! One list of permissions: commands, keys and channels; how its rules are taken, checked and shown.
//!
//! Invariant: the bits of commands and the rules that are shown (`command_rules`) always say the same.

use super::rules::{Denial, is_one_word};
use crate::command::args::Args;
use crate::command::parse::is;
use crate::command::table::{self, Categories, CommandId, CommandSpec, Flags, KeyFlags};
use crate::command::views;
use crate::glob::{self, Case};

pub(super) const SYNTAX: &str = "Syntax error";
pub(super) const UNKNOWN: &str = "Unknown command or category name in ACL";
pub(super) const FIRST_ARGUMENT: &str = "Allowing first-arg of a subcommand is not supported";
pub(super) const AFTER_ALL_KEYS: &str = "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. Try 'resetkeys' to start with an empty list of patterns";
pub(super) const AFTER_ALL_CHANNELS: &str = "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any effect. Try 'resetchannels' to start with an empty list of channels";

/// Commands by number: [`CommandId`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct CommandBits([u64; CommandBits::WORDS]);

impl CommandBits {
    /// Room for 512 commands; a test sees to it that there are not more.
    pub(super) const WORDS: usize = 8;
    const ALL: CommandBits = CommandBits([u64::MAX; CommandBits::WORDS]);

    fn has(&self, id: CommandId) -> bool {
        self.0[id as usize / 64] >> (id as usize % 64) & 1 != 0
    }

    fn set(&mut self, id: CommandId, on: bool) {
        let (word, bit) = (id as usize / 64, 1 << (id as usize % 64));
        self.0[word] = if on { self.0[word] | bit } else { self.0[word] & !bit };
    }
}

/// A pattern of keys, and what may be done to those that fit.
#[derive(Clone, PartialEq, Eq, Debug)]
struct KeyPattern {
    glob: Vec<u8>,
    read: bool,
    write: bool,
}

/// One list of permissions: a command is allowed if one selector of the user allows all of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Selector {
    /// Allowed whatever they are.
    all_commands: bool,
    commands: CommandBits,
    /// Commands that are allowed with these first arguments alone.
    first_arguments: Vec<(CommandId, Vec<u8>)>,
    /// The rules behind the first, which is +@all or -@all: as they were given, but for those that later ones undid.
    from_all: bool,
    command_rules: Vec<Vec<u8>>,
    pub(super) all_keys: bool,
    keys: Vec<KeyPattern>,
    pub(super) all_channels: bool,
    channels: Vec<Vec<u8>>,
}

impl Selector {
    pub(super) fn new(all_channels: bool) -> Selector {
        Selector {
            all_commands: false,
            commands: CommandBits::default(),
            first_arguments: Vec::new(),
            from_all: false,
            command_rules: Vec::new(),
            all_keys: false,
            keys: Vec::new(),
            all_channels,
            channels: Vec::new(),
        }
    }

    pub(super) fn everything(&self) -> bool {
        self.all_commands && self.all_keys && self.all_channels
    }

    // -------------------------------------------------------------------------------------------------- checking

    pub(super) fn check(&self, spec: &CommandSpec, args: Args<'_>) -> Result<(), Denial> {
        // What serves to authenticate is never forbidden.
        if !self.all_commands && !spec.flags.has(Flags::NO_AUTH) && !self.allows_command(spec, args) {
            return Err(Denial::Command);
        }
        if !self.all_keys {
            for at in views::keys_of(spec, args) {
                let flags = views::key_flags_of(spec, args, at);
                if !flags.has(KeyFlags::NOT_KEY) && !self.allows_key(args.get(at), flags) {
                    return Err(Denial::Key(at));
                }
            }
        }
        if !self.all_channels {
            for at in channels_of(spec, args.len()) {
                if !self.allows_channel(args.get(at), spec.id == CommandId::PSubscribe) {
                    return Err(Denial::Channel(at));
                }
            }
        }
        Ok(())
    }

    fn allows_command(&self, spec: &CommandSpec, args: Args<'_>) -> bool {
        self.commands.has(spec.id)
            || args.try_get(1).is_some_and(|first| {
                self.first_arguments.iter().any(|(id, allowed)| *id == spec.id && allowed.eq_ignore_ascii_case(first))
            })
    }

    fn allows_key(&self, key: &[u8], flags: KeyFlags) -> bool {
        let reads = flags.has(KeyFlags::ACCESS);
        let writes = [KeyFlags::INSERT, KeyFlags::DELETE, KeyFlags::UPDATE].iter().any(|flag| flags.has(*flag));
        self.keys.iter().any(|pattern| {
            (pattern.read || !reads) && (pattern.write || !writes) && glob::matches(&pattern.glob, key, Case::Sensitive)
        })
    }

    /// A pattern that is subscribed to must stand in the list as it is.
    pub(super) fn allows_channel(&self, channel: &[u8], is_pattern: bool) -> bool {
        self.all_channels
            || self.channels.iter().any(|allowed| match is_pattern {
                true => allowed == channel,
                false => glob::matches(allowed, channel, Case::Sensitive),
            })
    }

    // --------------------------------------------------------------------------------------------------- changing

    /// Takes a rule that is good inside and outside of brackets.
    pub(super) fn apply(&mut self, rule: &[u8]) -> Result<(), &'static str> {
        if is(rule, "ALLKEYS") || rule == b"~*" {
            self.all_keys = true;
            self.keys.clear();
        } else if is(rule, "RESETKEYS") {
            self.all_keys = false;
            self.keys.clear();
        } else if is(rule, "ALLCHANNELS") || rule == b"&*" {
            self.all_channels = true;
            self.channels.clear();
        } else if is(rule, "RESETCHANNELS") {
            self.all_channels = false;
            self.channels.clear();
        } else if is(rule, "ALLCOMMANDS") || is(rule, "+@ALL") {
            self.set_all_commands(true);
        } else if is(rule, "NOCOMMANDS") || is(rule, "-@ALL") {
            self.set_all_commands(false);
        } else {
            match rule {
                [b'~' | b'%', ..] => self.add_keys(rule)?,
                [b'&', channel @ ..] => self.add_channels(channel)?,
                [sign @ (b'+' | b'-'), b'@', name @ ..] => {
                    let category = Categories::by_name(name).ok_or(UNKNOWN)?;
                    self.change_category(category, *sign == b'+');
                    self.note_rule(rule);
                }
                [b'+', name @ ..] => self.allow(name, rule)?,
                [b'-', name @ ..] => {
                    let spec = table::lookup_full(name).ok_or(UNKNOWN)?;
                    self.change(spec, false);
                    self.note_rule(rule);
                }
                _ => return Err(SYNTAX),
            }
        }
        Ok(())
    }

    pub(super) fn set_all_commands(&mut self, on: bool) {
        (self.all_commands, self.from_all) = (on, on);
        self.commands = if on { CommandBits::ALL } else { CommandBits::default() };
        self.first_arguments.clear();
        self.command_rules.clear();
    }

    fn add_keys(&mut self, rule: &[u8]) -> Result<(), &'static str> {
        if self.all_keys {
            return Err(AFTER_ALL_KEYS);
        }
        let (mut read, mut write) = (rule[0] == b'~', rule[0] == b'~');
        let mut at = 1;
        if rule[0] == b'%' {
            if rule.len() == 1 {
                return Err(SYNTAX);
            }
            while at < rule.len() {
                match rule[at] {
                    b'R' | b'r' if !read => read = true,
                    b'W' | b'w' if !write => write = true,
                    b'~' if read || write => break,
                    _ => return Err(SYNTAX),
                }
                at += 1;
            }
            at = (at + 1).min(rule.len());
        }
        let pattern = &rule[at..];
        if !is_one_word(pattern) {
            return Err(SYNTAX);
        }
        match self.keys.iter_mut().find(|known| known.glob == pattern) {
            Some(known) => (known.read, known.write) = (known.read || read, known.write || write),
            None => self.keys.push(KeyPattern { glob: pattern.to_vec(), read, write }),
        }
        Ok(())
    }

    fn add_channels(&mut self, pattern: &[u8]) -> Result<(), &'static str> {
        if self.all_channels {
            return Err(AFTER_ALL_CHANNELS);
        }
        if !is_one_word(pattern) {
            return Err(SYNTAX);
        }
        if !self.channels.iter().any(|known| known == pattern) {
            self.channels.push(pattern.to_vec());
        }
        Ok(())
    }

    /// `+command`, `+command|subcommand`, or `+command|first-argument`.
    fn allow(&mut self, name: &[u8], rule: &[u8]) -> Result<(), &'static str> {
        if let Some(spec) = table::lookup_full(name) {
            self.change(spec, true);
        } else {
            let bar = name.iter().rposition(|&byte| byte == b'|').ok_or(UNKNOWN)?;
            let (command, first) = (table::lookup_full(&name[..bar]).ok_or(UNKNOWN)?, &name[bar + 1..]);
            if command.name.contains('|') {
                return Err(FIRST_ARGUMENT);
            }
            if !command.subcommands.is_empty() {
                return Err(UNKNOWN);
            }
            // With white space in it the line that shows the user could not be read again.
            if first.is_empty() || !is_one_word(first) {
                return Err(SYNTAX);
            }
            let (id, first) = (command.id, first.to_ascii_lowercase());
            if !self.first_arguments.iter().any(|known| *known == (id, first.clone())) {
                self.first_arguments.push((id, first));
            }
        }
        self.note_rule(rule);
        Ok(())
    }

    fn change_category(&mut self, category: Categories, on: bool) {
        table::all_with_subcommands()
            .filter(|spec| spec.categories.has(category))
            .for_each(|spec| self.change(spec, on));
    }

    /// A command, and with a container all that it contains.
    fn change(&mut self, spec: &CommandSpec, on: bool) {
        for one in std::iter::once(spec).chain(spec.subcommands) {
            self.commands.set(one.id, on);
            self.first_arguments.retain(|(id, _)| *id != one.id);
        }
        self.all_commands &= on;
    }

    /// Keeps a rule about commands to be shown. What it undoes or repeats is not shown any more.
    fn note_rule(&mut self, rule: &[u8]) {
        let rule = rule.to_ascii_lowercase();
        let about = &rule[1..];
        self.command_rules.retain(|known| {
            let rest = known[1..].strip_prefix(about);
            !rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'|')
        });
        self.command_rules.push(rule);
    }

    // ---------------------------------------------------------------------------------------------------- showing

    /// The rules about commands.
    pub fn commands_text(&self) -> Vec<u8> {
        let mut text = if self.from_all { b"+@all".to_vec() } else { b"-@all".to_vec() };
        for rule in &self.command_rules {
            text.push(b' ');
            text.extend_from_slice(rule);
        }
        text
    }

    /// The patterns of keys.
    pub fn keys_text(&self) -> Vec<u8> {
        if self.all_keys {
            return b"~*".to_vec();
        }
        let mark = |pattern: &KeyPattern| match (pattern.read, pattern.write) {
            (true, false) => "%R~",
            (false, true) => "%W~",
            _ => "~",
        };
        let words: Vec<Vec<u8>> = self.keys.iter().map(|p| [mark(p).as_bytes(), &p.glob].concat()).collect();
        words.join(&b' ')
    }

    /// The patterns of channels.
    pub fn channels_text(&self) -> Vec<u8> {
        if self.all_channels {
            return b"&*".to_vec();
        }
        let words: Vec<Vec<u8>> = self.channels.iter().map(|channel| [b"&", &channel[..]].concat()).collect();
        words.join(&b' ')
    }

    pub(super) fn describe(&self, out: &mut Vec<u8>) {
        let mut words = Vec::new();
        if self.all_keys || !self.keys.is_empty() {
            words.push(self.keys_text());
        }
        if !self.all_channels {
            words.push(b"resetchannels".to_vec());
        }
        if self.all_channels || !self.channels.is_empty() {
            words.push(self.channels_text());
        }
        words.push(self.commands_text());
        out.extend_from_slice(&words.join(&b' '));
    }
}

/// The arguments of a command that are channels, as far as access to them is asked for.
fn channels_of(spec: &CommandSpec, len: usize) -> std::ops::Range<usize> {
    match spec.id {
        CommandId::Subscribe | CommandId::SSubscribe | CommandId::PSubscribe => 1..len,
        CommandId::Publish | CommandId::SPublish => 1..2,
        _ => 0..0,
    }
}
