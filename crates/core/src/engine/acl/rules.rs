//! Rules of access: what a user may do, how rules are read and how they are shown. The permissions themselves are lists,
//! see `selector`.
//!
//! Invariants: a user is never changed in place, a changed copy takes its place, so that whoever holds one sees one
//! state of it; a password is kept as its SHA-256 and nothing else. Nothing here knows connections or writes replies.

use sha2::{Digest, Sha256};

use crate::command::args::Args;
use crate::command::parse::is;
use crate::command::table::CommandSpec;

pub use super::selector::Selector;

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

const HASH: &str = "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters";
const NO_SUCH_PASSWORD: &str = "The password you are trying to remove from the user does not exist";

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
pub(super) fn is_one_word(text: &[u8]) -> bool {
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
