//! The shape of one row of the command table, and the small builder that the families write their rows with. Rows are
//! constants; whatever can be derived from a row (implicit categories, the key range) is derived here, at compile time.

use super::CommandId;
use super::name::pack;

pub use super::flags::{Categories, Flags, KeyFlags};

/// Where the search for keys begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyBegin {
    /// At this argument; the name of the command is argument 0.
    Index(u8),
    /// Behind this word, looked for from this argument on.
    Keyword(&'static str, u8),
}

/// A rule by which clients find keys: from its begin to `last` (relative to the begin; negative: from the end), every
/// `step`, and of what is left only the `limit`-th part when `limit` is above 1. Or, when `counted`: at the begin stands how
/// many keys follow it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeySpec {
    /// What to know about the rule; empty for nothing.
    pub notes: &'static str,
    /// What happens to the keys.
    pub flags: KeyFlags,
    /// Where to begin.
    pub begin: KeyBegin,
    /// Last key, relative.
    pub last: i8,
    /// From key to key.
    pub step: u8,
    /// Divisor of the rest, or 0.
    pub limit: u8,
    /// At the begin stands the number of keys, and they follow it.
    pub counted: bool,
}

impl KeySpec {
    /// One key at `index`.
    pub const fn at(index: u8, flags: &[KeyFlags]) -> KeySpec {
        let flags = KeyFlags::of(flags);
        KeySpec { notes: "", flags, begin: KeyBegin::Index(index), last: 0, step: 1, limit: 0, counted: false }
    }

    /// Keys behind a word.
    pub const fn after(word: &'static str, from: u8, flags: &[KeyFlags]) -> KeySpec {
        let flags = KeyFlags::of(flags);
        KeySpec { notes: "", flags, begin: KeyBegin::Keyword(word, from), last: 0, step: 1, limit: 0, counted: false }
    }

    /// Several keys.
    pub const fn range(mut self, last: i8, step: u8, limit: u8) -> KeySpec {
        (self.last, self.step, self.limit) = (last, step, limit);
        self
    }

    /// As many keys as the argument at the begin says.
    pub const fn counted(mut self) -> KeySpec {
        self.counted = true;
        self
    }

    /// With a remark.
    pub const fn notes(mut self, notes: &'static str) -> KeySpec {
        self.notes = notes;
        self
    }
}

/// Kind of an argument in COMMAND DOCS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArgumentKind {
    /// Any bytes.
    String,
    /// A decimal integer.
    Integer,
    /// A number with a fraction.
    Double,
    /// A key.
    Key,
    /// A glob pattern.
    Pattern,
    /// A point in time.
    UnixTime,
    /// A word that stands for itself.
    PureToken,
    /// One of the arguments within.
    OneOf,
    /// All of the arguments within, in order.
    Block,
}

impl ArgumentKind {
    /// As COMMAND DOCS prints it.
    pub const fn name(self) -> &'static str {
        match self {
            ArgumentKind::String => "string",
            ArgumentKind::Integer => "integer",
            ArgumentKind::Double => "double",
            ArgumentKind::Key => "key",
            ArgumentKind::Pattern => "pattern",
            ArgumentKind::UnixTime => "unix-time",
            ArgumentKind::PureToken => "pure-token",
            ArgumentKind::OneOf => "oneof",
            ArgumentKind::Block => "block",
        }
    }
}

/// One argument, for COMMAND DOCS and the help texts. Parsing does not go by it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Argument {
    /// Its name.
    pub name: &'static str,
    /// The name to show, when it is another.
    pub display: &'static str,
    /// Its kind.
    pub kind: ArgumentKind,
    /// The word before it, or empty.
    pub token: &'static str,
    /// First version with it, or empty when as old as the command.
    pub since: &'static str,
    /// First version that advises against it, or empty.
    pub deprecated_since: &'static str,
    /// Which key spec finds it.
    pub key_spec: Option<u8>,
    /// It may be left out.
    pub optional: bool,
    /// It may be repeated.
    pub multiple: bool,
    /// What is within: only for one-of and block.
    pub arguments: &'static [Argument],
}

const fn argument(name: &'static str, kind: ArgumentKind) -> Argument {
    Argument {
        name,
        display: name,
        kind,
        token: "",
        since: "",
        deprecated_since: "",
        key_spec: None,
        optional: false,
        multiple: false,
        arguments: &[],
    }
}

/// Any bytes.
pub(super) const fn string(name: &'static str) -> Argument {
    argument(name, ArgumentKind::String)
}

/// A decimal integer.
pub(super) const fn integer(name: &'static str) -> Argument {
    argument(name, ArgumentKind::Integer)
}

/// A number with a fraction.
pub(super) const fn double(name: &'static str) -> Argument {
    argument(name, ArgumentKind::Double)
}

/// A key that the key spec of that number finds.
pub(super) const fn key(name: &'static str, key_spec: u8) -> Argument {
    let mut key = argument(name, ArgumentKind::Key);
    key.key_spec = Some(key_spec);
    key
}

/// A glob pattern.
pub(super) const fn pattern(name: &'static str) -> Argument {
    argument(name, ArgumentKind::Pattern)
}

/// A point in time.
pub(super) const fn unix_time(name: &'static str) -> Argument {
    argument(name, ArgumentKind::UnixTime)
}

/// A word that stands for itself.
pub(super) const fn word(name: &'static str, token: &'static str) -> Argument {
    argument(name, ArgumentKind::PureToken).token(token)
}

/// One of several.
pub(super) const fn one_of(name: &'static str, arguments: &'static [Argument]) -> Argument {
    let mut one_of = argument(name, ArgumentKind::OneOf);
    one_of.arguments = arguments;
    one_of
}

/// Several in order.
pub(super) const fn block(name: &'static str, arguments: &'static [Argument]) -> Argument {
    let mut block = argument(name, ArgumentKind::Block);
    block.arguments = arguments;
    block
}

impl Argument {
    pub(super) const fn token(mut self, token: &'static str) -> Argument {
        self.token = token;
        self
    }

    pub(super) const fn display(mut self, display: &'static str) -> Argument {
        self.display = display;
        self
    }

    pub(super) const fn since(mut self, version: &'static str) -> Argument {
        self.since = version;
        self
    }

    pub(super) const fn deprecated(mut self, version: &'static str) -> Argument {
        self.deprecated_since = version;
        self
    }

    pub(super) const fn optional(mut self) -> Argument {
        self.optional = true;
        self
    }

    pub(super) const fn multiple(mut self) -> Argument {
        self.multiple = true;
        self
    }
}

/// One row of the table: a command, or a subcommand (`xgroup|create`).
#[derive(Debug)]
pub struct CommandSpec {
    /// Full name in lower case; a subcommand's is `container|subcommand`.
    pub name: &'static str,
    /// The part that a client writes for it, as the look-up compares it.
    pub(super) packed: u128,
    /// What the engine dispatches by.
    pub id: CommandId,
    /// Number of arguments with the name(s): exactly, or when negative at least.
    pub arity: i8,
    /// Arguments that we take beyond a fixed arity, for options of ours. COMMAND shows the arity of Redis.
    pub more: u8,
    /// See [`Flags`].
    pub flags: Flags,
    /// Explicit and implied categories.
    pub categories: Categories,
    /// First key as an argument number, or 0: the old way to tell clients.
    pub first_key: i8,
    /// Last key, negative from the end.
    pub last_key: i8,
    /// From key to key.
    pub step: i8,
    /// The new way.
    pub key_specs: &'static [KeySpec],
    /// First Redis version with it.
    pub since: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Chapter of the manual.
    pub group: &'static str,
    /// Cost.
    pub complexity: &'static str,
    /// Hints for clients and proxies.
    pub tips: &'static [&'static str],
    /// Since when clients are advised to use something else, and what.
    pub deprecated: Option<(&'static str, &'static str)>,
    /// True for commands that only serve the server's own testing.
    pub internal: bool,
    /// Its syntax.
    pub arguments: &'static [Argument],
    /// Not empty for a container.
    pub subcommands: &'static [CommandSpec],
}

const fn leaf(name: &'static str) -> &'static str {
    let mut bar = 0;
    while bar < name.len() {
        if name.as_bytes()[bar] == b'|' {
            return name.split_at(bar + 1).1;
        }
        bar += 1;
    }
    name
}

/// Begins a row.
pub(super) const fn command(name: &'static str, id: CommandId, arity: i8, since: &'static str) -> CommandSpec {
    CommandSpec {
        name,
        packed: match pack(leaf(name).as_bytes()) {
            Some(packed) => packed,
            None => panic!("a name is too long for the look-up"),
        },
        id,
        arity,
        more: 0,
        flags: Flags::NONE,
        categories: Categories::SLOW,
        first_key: 0,
        last_key: 0,
        step: 0,
        key_specs: &[],
        since,
        summary: "",
        group: "",
        complexity: "",
        tips: &[],
        deprecated: None,
        internal: false,
        arguments: &[],
        subcommands: &[],
    }
}

impl CommandSpec {
    /// The part of the name behind the bar: `create` of `xgroup|create`. The whole name of a command.
    pub fn leaf(&self) -> &'static str {
        leaf(self.name)
    }

    /// True when `len` arguments (names included) can be right.
    pub const fn accepts(&self, len: usize) -> bool {
        if self.arity >= 0 {
            len >= self.arity as usize && len - self.arity as usize <= self.more as usize
        } else {
            len >= self.arity.unsigned_abs() as usize
        }
    }

    /// True when some argument can be a key.
    pub const fn takes_keys(&self) -> bool {
        let mut i = 0;
        while i < self.key_specs.len() {
            // Shard channels hash like keys and are none.
            if !self.key_specs[i].flags.has(KeyFlags::NOT_KEY) {
                return true;
            }
            i += 1;
        }
        false
    }

    /// Flags, with the categories that follow from them as Redis has it.
    pub(super) const fn more(mut self, arguments: u8) -> CommandSpec {
        self.more = arguments;
        self
    }

    pub(super) const fn flags(mut self, flags: &[Flags]) -> CommandSpec {
        let flags = Flags::of(flags);
        let mut categories = self.categories;
        if flags.has(Flags::WRITE) {
            categories = categories.with(Categories::WRITE);
        }
        if flags.has(Flags::READONLY) && !categories.has(Categories::SCRIPTING) {
            categories = categories.with(Categories::READ);
        }
        if flags.has(Flags::ADMIN) {
            categories = categories.with(Categories::ADMIN).with(Categories::DANGEROUS);
        }
        if flags.has(Flags::PUBSUB) {
            categories = categories.with(Categories::PUBSUB);
        }
        if flags.has(Flags::BLOCKING) {
            categories = categories.with(Categories::BLOCKING);
        }
        if flags.has(Flags::FAST) {
            categories = categories.with(Categories::FAST).without(Categories::SLOW);
        }
        (self.flags, self.categories) = (flags, categories);
        self
    }

    /// Categories that do not follow from flags. Before [`CommandSpec::flags`].
    pub(super) const fn categories(mut self, categories: &[Categories]) -> CommandSpec {
        self.categories = self.categories.with(Categories::of(categories));
        self
    }

    /// Key specs; the old-style range is what they have in common.
    pub(super) const fn keys(mut self, key_specs: &'static [KeySpec]) -> CommandSpec {
        self.key_specs = key_specs;
        let mut i = 0;
        while i < key_specs.len() {
            if let KeyBegin::Index(index) = key_specs[i].begin
                && !key_specs[i].counted
            {
                let index = index as i8;
                let last = if key_specs[i].last < 0 { key_specs[i].last } else { index + key_specs[i].last };
                if self.first_key == 0 || index < self.first_key {
                    self.first_key = index;
                }
                if last < 0 || last > self.last_key {
                    self.last_key = last;
                }
                self.step = key_specs[i].step as i8;
            }
            i += 1;
        }
        self
    }

    pub(super) const fn docs(
        mut self,
        group: &'static str,
        summary: &'static str,
        complexity: &'static str,
    ) -> CommandSpec {
        (self.group, self.summary, self.complexity) = (group, summary, complexity);
        self
    }

    pub(super) const fn tips(mut self, tips: &'static [&'static str]) -> CommandSpec {
        self.tips = tips;
        self
    }

    pub(super) const fn deprecated(mut self, since: &'static str, instead: &'static str) -> CommandSpec {
        self.deprecated = Some((since, instead));
        self
    }

    pub(super) const fn internal(mut self) -> CommandSpec {
        self.internal = true;
        self
    }

    pub(super) const fn arguments(mut self, arguments: &'static [Argument]) -> CommandSpec {
        self.arguments = arguments;
        self
    }

    pub(super) const fn subcommands(mut self, subcommands: &'static [CommandSpec]) -> CommandSpec {
        self.subcommands = subcommands;
        self
    }
}
