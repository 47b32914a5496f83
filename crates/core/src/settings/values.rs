//! The values of settings that are more than a number or a text.

/// `acl-pubsub-default`: the channels that a new user may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AclPubSub {
    /// None.
    #[default]
    ResetChannels,
    /// All.
    AllChannels,
}

impl AclPubSub {
    /// All?
    pub fn all_channels(self) -> bool {
        self == AclPubSub::AllChannels
    }
}

/// `appendfsync`: when a reply to a write may go out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AppendFsync {
    /// After its record is on disk.
    #[default]
    Always,
    /// At once; the disk follows within a second.
    EverySec,
    /// At once; the disk follows when the system likes.
    No,
}

/// `stream-lag`: what to answer where Redis cannot tell the lag of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum StreamLag {
    /// The number.
    #[default]
    Exact,
    /// Nil, as Redis does.
    Compat,
}

/// `enable-debug-command`: who may use DEBUG.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum EnableDebug {
    /// Nobody.
    #[default]
    No,
    /// Everybody.
    Yes,
    /// Connections from this machine.
    Local,
}

/// `loglevel`: the least important lines that are logged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum LogLevel {
    /// Everything.
    Debug,
    /// Much.
    Verbose,
    /// What an operator wants to know.
    #[default]
    Notice,
    /// What an operator must know.
    Warning,
    /// No line at all.
    Nothing,
}

/// `save`: take a snapshot when so much time has passed and so much has changed since the last one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SaveRule {
    /// At least 1.
    pub seconds: u32,
    /// Commands that changed something.
    pub changes: u32,
}

/// `client-output-buffer-limit` of one class of clients. 0 is no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OutputLimit {
    /// Closed at once beyond this.
    pub hard_bytes: u64,
    /// Closed when beyond this …
    pub soft_bytes: u64,
    /// … for so long.
    pub soft_seconds: u32,
}

/// Classes of clients that output limits tell apart: indexes of [`Settings::output_limits`](super::Settings::output_limits).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClientClass {
    /// Ordinary ones.
    Normal,
    /// Replicas.
    Replica,
    /// Subscribers.
    PubSub,
}

/// `notify-keyspace-events`: a set of event classes, by the letters of Redis.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EventClasses(u32);

impl EventClasses {
    /// Letters that stand for one class each, in the order they are shown in.
    const LETTERS: &'static [u8] = b"g$lshzxetdnKEm";
    /// What `A` stands for.
    const ALL: &'static [u8] = b"g$lshzxetd";

    /// The set of those letters; `None` when one has no meaning.
    pub fn parse(letters: &[u8]) -> Option<EventClasses> {
        letters.iter().try_fold(EventClasses(0), |set, &letter| {
            let bits = if letter == b'A' {
                EventClasses::ALL.iter().fold(0, |bits, &l| bits | EventClasses::bit(l))
            } else if EventClasses::LETTERS.contains(&letter) {
                EventClasses::bit(letter)
            } else {
                return None;
            };
            Some(EventClasses(set.0 | bits))
        })
    }

    fn bit(letter: u8) -> u32 {
        EventClasses::LETTERS.iter().position(|&l| l == letter).map_or(0, |index| 1 << index)
    }

    /// True when the class of that letter is in the set.
    pub fn has(self, letter: u8) -> bool {
        self.0 & EventClasses::bit(letter) != 0
    }

    /// True for the empty set, the default.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// True when no event goes out: no channel is chosen, or no class.
    pub fn is_off(self) -> bool {
        let channels = EventClasses::bit(b'K') | EventClasses::bit(b'E');
        self.0 & channels == 0 || self.0 & !channels == 0
    }

    /// The letters. As in Redis, `n` is not shown beside `A`.
    pub fn letters(self) -> String {
        let all = EventClasses::ALL.iter().all(|&letter| self.has(letter));
        let mut shown = String::from(if all { "A" } else { "" });
        for &letter in EventClasses::LETTERS {
            let within_all = letter == b'n' || EventClasses::ALL.contains(&letter);
            if self.has(letter) && !(all && within_all) {
                shown.push(char::from(letter));
            }
        }
        shown
    }
}
