//! XWORK POLICY: what a group is told to do with its work.

use std::sync::Arc;

use super::{MS_MAX, number, optional, text, unknown_option};
use crate::command::args::Args;
use crate::command::parse::is;
use crate::engine::Cx;
use crate::engine::decide::claim::stream_and_group;
use crate::engine::fault::Fault;
use crate::limits::LEDGER_LEN_MAX;
use crate::record::Record;
use crate::resp::encode::Reply;
use crate::state::policy::{Evidence, Policy};

/// XWORK POLICY key group [option value …]
pub fn policy(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let (key, name) = (args.get(2), args.get(3));
    let (_, group) = stream_and_group(cx, key, name)?;
    let before = &group.work_or_none().policy;
    if args.len() == 4 {
        write(before, reply);
        return Ok(());
    }
    let (mut policy, mut at, mut names_key) = (before.clone(), 4, false);
    while at < args.len() {
        names_key |= is(args.get(at), "DEADLETTER");
        at += take(&mut policy, args, at)?;
    }
    // What that key has become since it was named is no reason to refuse anything else.
    if let Some(to) = policy.dead_letter.as_ref().filter(|_| names_key) {
        if **to == *key {
            return Err(Fault::owned("ERR DEADLETTER must be another key than the stream"));
        }
        cx.stream(to)?;
    }
    let (_, group) = stream_and_group(cx, key, name)?;
    if policy != group.work_or_none().policy {
        let at = cx.at(key);
        cx.emit(&Record::WorkPolicy { at, group: name, policy });
    }
    reply.ok();
    Ok(())
}

/// Takes the option at `at`; answers how many words it was.
fn take(policy: &mut Policy, args: Args<'_>, at: usize) -> Result<usize, Fault> {
    let (word, Some(value)) = (args.get(at), args.try_get(at + 1)) else {
        return Err(unknown_option(args.get(at), "POLICY"));
    };
    let name = |name: &str| text(name, value, 0).map(|name| Some(name).filter(|name| !name.is_empty()).map(Arc::from));
    if is(word, "EVIDENCE") {
        let all = [Evidence::Off, Evidence::Record, Evidence::Require];
        let found = all.into_iter().find(|evidence| is(value, &evidence.name().to_ascii_uppercase()));
        policy.evidence = found.ok_or_else(|| Fault::owned("ERR EVIDENCE must be off, record or require"))?;
    } else if is(word, "WORKFIELD") {
        policy.work_field = name("WORKFIELD")?;
    } else if is(word, "IDEMPOTENT") {
        policy.idempotent = match value {
            value if is(value, "YES") => true,
            value if is(value, "NO") => false,
            _ => return Err(Fault::owned("ERR IDEMPOTENT must be yes or no")),
        };
    } else if is(word, "LEASE") {
        policy.lease_ms = number("LEASE", value, 0, MS_MAX)?;
    } else if is(word, "MAXDELIVERIES") {
        policy.max_deliveries = number("MAXDELIVERIES", value, 0, MS_MAX)?;
    } else if is(word, "DEADLETTER") {
        policy.dead_letter = Some(value).filter(|key| !key.is_empty()).map(Arc::from);
    } else if is(word, "BACKOFF") {
        let Some(most) = args.try_get(at + 2) else { return Err(unknown_option(word, "POLICY")) };
        policy.backoff_base_ms = number("BACKOFF base", value, 0, MS_MAX)?;
        policy.backoff_max_ms = number("BACKOFF max", most, policy.backoff_base_ms, MS_MAX)?;
        return Ok(3);
    } else if is(word, "CONSUMERTTL") {
        policy.consumer_ttl_ms = number("CONSUMERTTL", value, 0, MS_MAX)?;
    } else if is(word, "LEDGERAGE") {
        policy.ledger_age_ms = number("LEDGERAGE", value, 1, MS_MAX)?;
    } else if is(word, "LEDGERLEN") {
        policy.ledger_len = number("LEDGERLEN", value, 1, LEDGER_LEN_MAX)?;
    } else {
        return Err(unknown_option(word, "POLICY"));
    }
    Ok(2)
}

fn write(policy: &Policy, reply: &mut Reply<'_>) {
    let count = |reply: &mut Reply<'_>, name: &str, number: u64| {
        reply.bulk(name.as_bytes());
        reply.count(number);
    };
    reply.map(10);
    reply.bulk(b"evidence");
    reply.bulk(policy.evidence.name().as_bytes());
    reply.bulk(b"workfield");
    optional(reply, policy.work_field.as_deref().unwrap_or_default());
    reply.bulk(b"idempotent");
    reply.bulk(if policy.idempotent { b"yes" } else { b"no" });
    count(reply, "lease", policy.lease_ms);
    count(reply, "maxdeliveries", policy.max_deliveries);
    reply.bulk(b"deadletter");
    optional(reply, policy.dead_letter.as_deref().unwrap_or_default());
    reply.bulk(b"backoff");
    reply.array(2);
    reply.count(policy.backoff_base_ms);
    reply.count(policy.backoff_max_ms);
    count(reply, "consumerttl", policy.consumer_ttl_ms);
    count(reply, "ledgerage", policy.ledger_age_ms);
    count(reply, "ledgerlen", policy.ledger_len);
}
