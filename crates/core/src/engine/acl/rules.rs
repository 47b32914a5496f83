//! Rules of access: what a user or one of its selectors may do, how rules are read and how they are shown.
//!
//! Invariants: a user is never changed in place, a changed copy takes its place, so that whoever holds one sees one
//! state of it; a password is kept as its SHA-256 and nothing else; the bits of commands and the rules that are shown
//! (`command_rules`) always say the same. Nothing here knows connections or writes replies.

use sha2::{Digest, Sha256};

use crate::command::args::Args;
use crate::command::parse::is;
use crate::command::table::{self, Categories, CommandId, CommandSpec, Flags, KeyFlags};
use crate::command::views;
use crate::glob::{self, Case};

/// SHA-256 of a password.
pub type PasswordHash = [u8; 32];

/// What stood in the way of a command.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Denial {
    /// The command itself.
    Command,
    /// The key at this argument.
    Key(usize),
    /// The channel at this argument.
    Channel(usize),
}

/// Why a rule was not taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RuleError {
    /// A bracket without its other half; the argument that it begins in.
    Unmatched(Vec<u8>),
    /// The rule, and what is wrong with it.
    Rule(Vec<u8>, &'static str),
}

const SYNTAX: &str = "Syntax error";
const UNKNOWN: &str = "Unknown command or category name in ACL";
const FIRST_ARGUMENT: &str = "Allowing first-arg of a subcommand is not supported";
const AFTER_ALL_KEYS: &str = "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. Try 'resetkeys' to start with an empty list of patterns";
const AFTER_ALL_CHANNELS: &str = "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any effect. Try 'resetchannels' to start with an empty list of channels";
const HASH: &str = "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters";
const NO_SUCH_PASSWORD: &str = "The password you are trying to remove from the user does not exist";

/// Commands by number: [`CommandId`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct CommandBits([u64; CommandBits::WORDS]);

impl CommandBits {
    /// Room for 512 commands; a test sees to it that there are not more.
    const WORDS: usize = 8;
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
    all_keys: bool,
    keys: Vec<KeyPattern>,
    all_channels: bool,
    channels: Vec<Vec<u8>>,
}

impl Selector {
    fn new(all_channels: bool) -> Selector {
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

    fn everything(&self) -> bool {
        self.all_commands && self.all_keys && self.all_channels
    }

    // -------------------------------------------------------------------------------------------------- checking

    fn check(&self, spec: &CommandSpec, args: Args<'_>) -> Result<(), Denial> {
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
    fn allows_channel(&self, channel: &[u8], is_pattern: bool) -> bool {
        self.all_channels
            || self.channels.iter().any(|allowed| match is_pattern {
                true => allowed == channel,
                false => glob::matches(allowed, channel, Case::Sensitive),
            })
    }

    // --------------------------------------------------------------------------------------------------- changing

    /// Takes a rule that is good inside and outside of brackets.
    fn apply(&mut self, rule: &[u8]) -> Result<(), &'static str> {
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

    fn set_all_commands(&mut self, on: bool) {
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
            if first.is_empty() {
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

    fn describe(&self, out: &mut Vec<u8>) {
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

/// A user. The first selector holds the permissions outside of brackets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct User {
    /// What AUTH names.
    pub name: Box<[u8]>,
    /// May authenticate. Who did so before goes on.
    pub enabled: bool,
    /// Any password will do.
    pub no_password: bool,
    /// What RESTORE brings is to be checked. Noted and shown.
    sanitize_payload: bool,
    passwords: Vec<PasswordHash>,
    root: Selector,
    selectors: Vec<Selector>,
    /// Whether new lists of channels hold all.
    all_channels_at_first: bool,
}

impl User {
    /// A new user, who may do nothing. `all_channels`: the setting `acl-pubsub-default`.
    pub fn new(name: &[u8], all_channels: bool) -> User {
        User {
            name: name.into(),
            enabled: false,
            no_password: false,
            sanitize_payload: true,
            passwords: Vec::new(),
            root: Selector::new(all_channels),
            selectors: Vec::new(),
            all_channels_at_first: all_channels,
        }
    }

    /// The user `default` as a server begins: everything is allowed, with that password or with none.
    pub fn open(password: &[u8], all_channels: bool) -> User {
        let mut user = User::new(b"default", all_channels);
        user.enabled = true;
        user.root.set_all_commands(true);
        (user.root.all_keys, user.root.all_channels) = (true, true);
        user.set_only_password(password);
        user
    }

    /// Can this be the name of a user?
    pub fn is_name(name: &[u8]) -> bool {
        is_one_word(name)
    }

    /// One selector allows everything: then nothing needs to be checked.
    pub fn may_do_everything(&self) -> bool {
        self.selectors().any(Selector::everything)
    }

    /// The selectors, that of the rules outside of brackets first.
    pub fn selectors(&self) -> impl Iterator<Item = &Selector> {
        std::iter::once(&self.root).chain(&self.selectors)
    }

    /// The password that `requirepass` sets: this one alone; empty for none.
    pub fn set_only_password(&mut self, password: &[u8]) {
        self.passwords.clear();
        self.no_password = password.is_empty();
        if !password.is_empty() {
            self.passwords.push(hash(password));
        }
    }

    /// Does that password let the user in? It takes the same time wherever hashes differ, and looks at all of them.
    pub fn lets_in(&self, given: &PasswordHash) -> bool {
        let mut found = false;
        for known in &self.passwords {
            let differing = known.iter().zip(given).fold(0, |bits, (a, b)| bits | (a ^ b));
            found |= std::hint::black_box(differing) == 0;
        }
        self.enabled & (self.no_password | found)
    }

    /// May the user carry out this command, whose arity is right? When not, the reason comes from the selector that
    /// got furthest.
    pub fn check(&self, spec: &CommandSpec, args: Args<'_>) -> Result<(), Denial> {
        let mut nearest = Denial::Command;
        for selector in self.selectors() {
            match selector.check(spec, args) {
                Ok(()) => return Ok(()),
                Err(denial) => nearest = nearest.max(denial),
            }
        }
        Err(nearest)
    }

    /// May the user be subscribed to that?
    pub fn may_hear(&self, channel: &[u8], is_pattern: bool) -> bool {
        self.selectors().any(|selector| selector.allows_channel(channel, is_pattern))
    }

    /// Takes the rules of ACL SETUSER. What was taken before an error stays: change a copy.
    pub fn apply_all<T: AsRef<[u8]>>(&mut self, rules: &[T]) -> Result<(), RuleError> {
        for rule in with_brackets_joined(rules)? {
            self.apply(&rule).map_err(|reason| RuleError::Rule(rule, reason))?;
        }
        Ok(())
    }

    fn apply(&mut self, rule: &[u8]) -> Result<(), &'static str> {
        match rule {
            [] => {}
            [b'>', password @ ..] => self.add_password(hash(password)),
            [b'#', digits @ ..] => self.add_password(parse_hash(digits).ok_or(HASH)?),
            [b'<', password @ ..] => self.remove_password(&hash(password))?,
            [b'!', digits @ ..] => self.remove_password(&parse_hash(digits).ok_or(HASH)?)?,
            [b'(', inner @ .., b')'] => {
                let mut selector = Selector::new(self.all_channels_at_first);
                for part in inner.split(u8::is_ascii_whitespace).filter(|part| !part.is_empty()) {
                    selector.apply(part)?;
                }
                self.selectors.push(selector);
            }
            _ if is(rule, "ON") => self.enabled = true,
            _ if is(rule, "OFF") => self.enabled = false,
            _ if is(rule, "NOPASS") => {
                self.no_password = true;
                self.passwords.clear();
            }
            _ if is(rule, "RESETPASS") => {
                self.no_password = false;
                self.passwords.clear();
            }
            _ if is(rule, "SANITIZE-PAYLOAD") => self.sanitize_payload = true,
            _ if is(rule, "SKIP-SANITIZE-PAYLOAD") => self.sanitize_payload = false,
            _ if is(rule, "CLEARSELECTORS") => self.selectors.clear(),
            _ if is(rule, "RESET") => *self = User::new(&self.name, self.all_channels_at_first),
            _ => self.root.apply(rule)?,
        }
        Ok(())
    }

    fn add_password(&mut self, hash: PasswordHash) {
        self.no_password = false;
        if !self.passwords.contains(&hash) {
            self.passwords.push(hash);
        }
    }

    fn remove_password(&mut self, hash: &PasswordHash) -> Result<(), &'static str> {
        let place = self.passwords.iter().position(|known| known == hash).ok_or(NO_SUCH_PASSWORD)?;
        self.passwords.remove(place);
        Ok(())
    }

    /// What ACL GETUSER shows as flags.
    pub fn flags(&self) -> Vec<&'static str> {
        let mut flags = vec![if self.enabled { "on" } else { "off" }];
        if self.no_password {
            flags.push("nopass");
        }
        flags.push(if self.sanitize_payload { "sanitize-payload" } else { "skip-sanitize-payload" });
        flags
    }

    /// The hashes of the passwords, in hexadecimal digits.
    pub fn passwords(&self) -> impl ExactSizeIterator<Item = String> {
        self.passwords.iter().map(|hash| hex(hash))
    }

    /// The line of ACL LIST, of files and of the configuration: `user NAME RULE …`.
    pub fn line(&self) -> Vec<u8> {
        let mut line = [b"user ", &self.name[..]].concat();
        for flag in self.flags() {
            line.push(b' ');
            line.extend_from_slice(flag.as_bytes());
        }
        for hash in self.passwords() {
            line.extend_from_slice(b" #");
            line.extend_from_slice(hash.as_bytes());
        }
        line.push(b' ');
        self.root.describe(&mut line);
        for selector in &self.selectors {
            line.extend_from_slice(b" (");
            selector.describe(&mut line);
            line.push(b')');
        }
        line
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

/// The rules with what stands between brackets as one: `(+get` `~x)` may come as two arguments.
fn with_brackets_joined<T: AsRef<[u8]>>(rules: &[T]) -> Result<Vec<Vec<u8>>, RuleError> {
    let mut joined = Vec::with_capacity(rules.len());
    let mut open: Option<(&[u8], Vec<u8>)> = None;
    for rule in rules.iter().map(AsRef::as_ref) {
        let closes = rule.last() == Some(&b')');
        match &mut open {
            Some((_, text)) => {
                text.push(b' ');
                text.extend_from_slice(rule);
            }
            None if rule.first() == Some(&b'(') && !closes => open = Some((rule, rule.to_vec())),
            None => joined.push(rule.to_vec()),
        }
        if closes && let Some((_, text)) = open.take() {
            joined.push(text);
        }
    }
    match open {
        Some((begin, _)) => Err(RuleError::Unmatched(begin.to_vec())),
        None => Ok(joined),
    }
}

/// Names and patterns stand in lines with other things.
fn is_one_word(text: &[u8]) -> bool {
    !text.iter().any(|byte| byte.is_ascii_whitespace() || matches!(byte, 0 | 0x0b))
}

/// What is kept of a password.
pub fn hash(password: &[u8]) -> PasswordHash {
    Sha256::digest(password).into()
}

fn parse_hash(digits: &[u8]) -> Option<PasswordHash> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut hash = PasswordHash::default();
    if digits.len() != 2 * hash.len() {
        return None;
    }
    for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = value(pair[0])? << 4 | value(pair[1])?;
    }
    Some(hash)
}

/// Bytes in lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|digit| DIGITS[usize::from(digit)] as char).collect()
}

#[cfg(test)]
mod tests;
