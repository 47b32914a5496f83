//! Sets of properties, one bit each, with their names on the wire: flags of a command, its categories, and what it does to
//! a key. The bits of flags and categories are ours; the names and their order are those that clients know.

/// Properties of a command that the dispatcher decides by. Names as COMMAND INFO prints them: [`Flags::NAMES`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flags(u32);

/// Groups of commands for ACL rules (`@write`). Names: [`Categories::NAMES`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Categories(u32);

/// What a command does to a key. Names: [`KeyFlags::NAMES`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KeyFlags(u32);

macro_rules! bits {
    ($set:ident, $($(#[$doc:meta])* $constant:ident = $bit:literal, $name:literal;)*) => {
        impl $set {
            $($(#[$doc])* pub const $constant: $set = $set(1 << $bit);)*
            /// Every member with its name on the wire, in the order they are listed in.
            pub const NAMES: &'static [($set, &'static str)] = &[$(($set::$constant, $name)),*];
            /// No member.
            pub const NONE: $set = $set(0);

            /// All of `list` together.
            pub const fn of(list: &[$set]) -> $set {
                let (mut bits, mut i) = (0, 0);
                while i < list.len() {
                    bits |= list[i].0;
                    i += 1;
                }
                $set(bits)
            }

            /// These and those.
            pub const fn with(self, other: $set) -> $set {
                $set(self.0 | other.0)
            }

            /// These without those.
            pub const fn without(self, other: $set) -> $set {
                $set(self.0 & !other.0)
            }

            /// True when every member of `other` is here.
            pub const fn has(self, other: $set) -> bool {
                self.0 & other.0 == other.0
            }

            /// How many members.
            pub const fn len(self) -> usize {
                self.0.count_ones() as usize
            }

            /// True when there is no member.
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }

            /// The names of the members, in the order of `NAMES`.
            pub fn names(self) -> impl Iterator<Item = &'static str> {
                $set::NAMES.iter().filter(move |(bit, _)| self.has(*bit)).map(|(_, name)| *name)
            }

            /// The member of that name, in any case of letters.
            pub fn by_name(name: &[u8]) -> Option<$set> {
                $set::NAMES.iter().find(|(_, n)| n.as_bytes().eq_ignore_ascii_case(name)).map(|(bit, _)| *bit)
            }
        }
    };
}

bits! { Flags,
    /// Changes keys, or may.
    WRITE = 0, "write";
    /// Reads keys.
    READONLY = 1, "readonly";
    /// Refused over `maxmemory`.
    DENYOOM = 2, "denyoom";
    /// About the server itself.
    ADMIN = 4, "admin";
    /// About channels.
    PUBSUB = 5, "pubsub";
    /// Not from scripts.
    NOSCRIPT = 6, "noscript";
    /// May hold its reply back until something happens.
    BLOCKING = 8, "blocking";
    /// Served while the state is being loaded.
    LOADING = 9, "loading";
    /// Served by a replica that has lost its source.
    STALE = 10, "stale";
    /// Not shown to MONITOR.
    SKIP_MONITOR = 11, "skip_monitor";
    /// Not kept in the slow log.
    SKIP_SLOWLOG = 12, "skip_slowlog";
    /// Redirects through ASKING without being asked.
    ASKING = 13, "asking";
    /// Constant or logarithmic time.
    FAST = 14, "fast";
    /// Served before authentication.
    NO_AUTH = 15, "no_auth";
    /// May cause traffic to replicas without changing keys.
    MAY_REPLICATE = 16, "may_replicate";
    /// No key is fine, though it takes keys.
    NO_MANDATORY_KEYS = 20, "no_mandatory_keys";
    /// Not while loading in the background.
    NO_ASYNC_LOADING = 23, "no_async_loading";
    /// Not within MULTI.
    NO_MULTI = 24, "no_multi";
    /// Key positions depend on the arguments.
    MOVABLEKEYS = 25, "movablekeys";
    /// Served while a script runs for too long.
    ALLOW_BUSY = 26, "allow_busy";
}

bits! { Categories,
    /// About keys whatever their value.
    KEYSPACE = 0, "keyspace";
    /// Reads values.
    READ = 1, "read";
    /// Changes values.
    WRITE = 2, "write";
    /// About sets: there are none, and rules may name them all the same. So with others below.
    SET = 3, "set";
    /// About sorted sets.
    SORTED_SET = 4, "sortedset";
    /// About lists.
    LIST = 5, "list";
    /// About hashes.
    HASH = 7, "hash";
    /// About strings.
    STRING = 6, "string";
    /// About bits of strings.
    BITMAP = 8, "bitmap";
    /// About estimated counts.
    HYPERLOGLOG = 19, "hyperloglog";
    /// About places.
    GEO = 20, "geo";
    /// About streams.
    STREAM = 9, "stream";
    /// About channels.
    PUBSUB = 10, "pubsub";
    /// About the server itself.
    ADMIN = 11, "admin";
    /// Constant or logarithmic time.
    FAST = 12, "fast";
    /// All that are not fast.
    SLOW = 13, "slow";
    /// May block.
    BLOCKING = 14, "blocking";
    /// May harm when used without thought.
    DANGEROUS = 15, "dangerous";
    /// About connections.
    CONNECTION = 16, "connection";
    /// About transactions.
    TRANSACTION = 17, "transaction";
    /// About scripts.
    SCRIPTING = 18, "scripting";
}

bits! { KeyFlags,
    /// Reads the value, changes nothing.
    RO = 0, "RO";
    /// Reads and changes.
    RW = 1, "RW";
    /// Overwrites without reading.
    OW = 2, "OW";
    /// Removes.
    RM = 3, "RM";
    /// Gives the caller something of the value, so it needs the right to read.
    ACCESS = 4, "access";
    /// Changes what is there.
    UPDATE = 5, "update";
    /// Only adds.
    INSERT = 6, "insert";
    /// Removes content.
    DELETE = 7, "delete";
    /// Hashes like a key but is none.
    NOT_KEY = 8, "not_key";
    /// This rule does not find every key.
    INCOMPLETE = 9, "incomplete";
    /// Options change these flags.
    VARIABLE_FLAGS = 10, "variable_flags";
}
