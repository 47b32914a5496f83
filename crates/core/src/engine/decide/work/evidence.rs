//! EVIDENCE: what XACK and its kin do about entries whose work nobody has said to be done.

use smallvec::SmallVec;

use super::{Name, completion_of, work_of};
use crate::engine::Cx;
use crate::engine::decide::claim::stream_and_group;
use crate::engine::fault::Fault;
use crate::id::StreamId;
use crate::state::group::Group;
use crate::state::ledger::{Outcome, Row};
use crate::state::policy::Evidence;
use crate::state::stream::Stream;

/// Entries that are acknowledged without a completion, to be noted.
pub(in crate::engine::decide) type Lacking = SmallVec<[StreamId; 8]>;

/// Does acknowledging in this group ask for evidence?
#[inline]
pub(in crate::engine::decide) fn is_asked(group: &Group) -> bool {
    group.work().is_some_and(|work| work.policy.evidence != Evidence::Off)
}

/// Looks for completions of pending entries that are about to be acknowledged. Answers those without one, or the error
/// that refuses all of them.
#[cold]
pub(in crate::engine::decide) fn find_lacking(
    both @ (_, group): (&Stream, &Group),
    ids: impl Iterator<Item = StreamId>,
    now_ms: u64,
) -> Result<Lacking, Fault> {
    let work = group.work_or_none();
    let (mut lacking, mut asked) = (Lacking::new(), 0_u64);
    for id in ids {
        asked += 1;
        if completion_of(both, id, None, now_ms).1.is_none() {
            lacking.push(id);
        }
    }
    match lacking.first() {
        Some(first) if work.policy.evidence == Evidence::Require => Err(Fault::owned(format!(
            "NOEVIDENCE {} of {asked} entries have no completion, the first is {first}: acknowledge by XWORK DONE",
            lacking.len()
        ))),
        _ => Ok(lacking),
    }
}

/// Notes that entries are acknowledged without a completion. Before they are.
pub(in crate::engine::decide) fn note_lacking(cx: &mut Cx<'_>, key: &[u8], name: &[u8], lacking: &[StreamId]) {
    let now_ms = cx.now_ms();
    for &id in lacking {
        let Ok(both @ (_, group)) = stream_and_group(cx, key, name) else { return };
        let Some(pending) = group.pel().get(id) else { continue };
        let work = Name::of(work_of(both, id, None, now_ms));
        let consumer: Vec<u8> = group.owner_name(pending.consumer).unwrap_or_default().into();
        let row = Row::new(StreamId::MIN, Outcome::Acked, id);
        cx.note_work(key, name, Row { work: work.id(), consumer: &consumer, delivery: pending.deliveries, ..row });
    }
}
