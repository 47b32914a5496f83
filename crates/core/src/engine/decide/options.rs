//! Options that several commands share: trimming, and blocks of IDs.

use smallvec::SmallVec;

use crate::command::args::Args;
use crate::command::parse::{self, is};
use crate::engine::fault::Fault;
use crate::id::StreamId;

/// What happens to references (group PELs, positions) of entries that go.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum References {
    /// They stay, dangling.
    #[default]
    Keep,
    /// They go with the entry.
    Delete,
    /// Only entries without any go.
    Acked,
}

impl References {
    /// KEEPREF, DELREF or ACKED.
    pub fn parse(word: &[u8]) -> Option<References> {
        if is(word, "KEEPREF") {
            Some(References::Keep)
        } else if is(word, "DELREF") {
            Some(References::Delete)
        } else if is(word, "ACKED") {
            Some(References::Acked)
        } else {
            None
        }
    }
}

/// How far to trim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Threshold {
    /// So many entries stay.
    MaxLen(u64),
    /// Entries with a smaller ID go.
    MinId(StreamId),
}

/// MAXLEN or MINID, with all that belongs to it.
#[derive(Clone, Copy, Debug)]
pub struct Trimming {
    /// How far.
    pub threshold: Threshold,
    /// `~`: whole blocks only.
    pub approximate: bool,
    /// Most entries to remove.
    pub limit: u64,
    /// What happens to references.
    pub references: References,
}

/// Collects trimming options from left to right, as XADD and XTRIM take them.
#[derive(Debug, Default)]
pub struct TrimParser {
    threshold: Option<Threshold>,
    approximate: bool,
    limit: Option<i64>,
    /// KEEPREF, DELREF or ACKED, if given.
    pub references: Option<References>,
}

impl TrimParser {
    /// If a trimming option stands at `at`, takes it and answers how many words it was; 0 if there is none.
    pub fn take(&mut self, args: Args<'_>, at: usize) -> Result<usize, Fault> {
        let (word, more) = (args.get(at), args.len() - at - 1);
        let by_length = is(word, "MAXLEN");
        if (by_length || is(word, "MINID")) && more > 0 {
            if self.threshold.is_some() {
                return Err(Fault::TRIM_TWICE);
            }
            let mut next = at + 1;
            self.approximate = false;
            // When only one word follows it is the threshold, even `~`.
            if more > 1 && matches!(args.get(next), b"~" | b"=") {
                self.approximate = args.get(next) == b"~";
                next += 1;
            }
            let value = args.get(next);
            self.threshold = Some(if by_length {
                let n = parse::int(value)?;
                Threshold::MaxLen(u64::try_from(n).map_err(|_| Fault::TRIM_MAXLEN_NEGATIVE)?)
            } else {
                Threshold::MinId(parse::id(value)?)
            });
            return Ok(next + 1 - at);
        }
        if is(word, "LIMIT") && more > 0 {
            let limit = parse::int(args.get(at + 1))?;
            if limit < 0 {
                return Err(Fault::TRIM_LIMIT_NEGATIVE);
            }
            self.limit = Some(limit);
            return Ok(2);
        }
        Ok(0)
    }

    /// Is there nothing to trim by, and no LIMIT to say so of?
    pub fn lacks_strategy(&self) -> bool {
        self.threshold.is_none() && self.limit.is_none_or(|limit| limit == 0)
    }

    /// The trimming asked for, if any. `node_entries`: `stream-node-max-entries`, for the default LIMIT.
    pub fn finish(self, node_entries: u64) -> Result<Option<Trimming>, Fault> {
        let Some(threshold) = self.threshold else {
            return match self.limit {
                // LIMIT 0 is as if there were none for one check, and not for the other.
                Some(0) => Err(Fault::TRIM_LIMIT_EXACT),
                Some(_) => Err(Fault::TRIM_LIMIT_ALONE),
                None => Ok(None),
            };
        };
        let limit = match (self.limit, self.approximate) {
            (Some(_), false) => return Err(Fault::TRIM_LIMIT_EXACT),
            (Some(0), true) | (None, false) => u64::MAX,
            (Some(limit), true) => limit as u64,
            (None, true) => match node_entries.saturating_mul(100) {
                0 => 10_000,
                limit => limit,
            },
        };
        let references = self.references.unwrap_or_default();
        Ok(Some(Trimming { threshold, approximate: self.approximate, limit, references }))
    }
}

/// IDs of a command; eight or fewer take no allocation.
pub type IdList = SmallVec<[StreamId; 8]>;

/// All of the arguments as IDs.
pub fn ids(args: Args<'_>) -> Result<IdList, Fault> {
    args.iter().map(parse::id).collect()
}

/// `[KEEPREF|DELREF|ACKED] IDS n id …` in either order: the mode, and where the IDs stand.
pub fn ids_block(args: Args<'_>, from: usize) -> Result<(References, std::ops::Range<usize>), Fault> {
    let (mut references, mut block) = (None, None);
    let mut at = from;
    while at < args.len() {
        let word = args.get(at);
        if let Some(found) = References::parse(word) {
            if references.is_some() {
                return Err(Fault::SYNTAX);
            }
            references = Some(found);
            at += 1;
        } else if is(word, "IDS") && at + 1 < args.len() {
            let n = parse::integer(args.get(at + 1)).filter(|&n| n > 0).ok_or(Fault::IDS_NOT_POSITIVE)?;
            let start = at + 2;
            if n as u64 > (args.len() - start) as u64 {
                return Err(Fault::IDS_MISMATCH);
            }
            at = start + n as usize;
            block = Some(start..at);
        } else {
            return Err(Fault::SYNTAX);
        }
    }
    Ok((references.unwrap_or_default(), block.ok_or(Fault::SYNTAX)?))
}
