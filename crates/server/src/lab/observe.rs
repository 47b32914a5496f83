//! What the evidence shows of each case, in the words of the manifest, and what it comes to. A pure function of [`Evidence`].
//!
//! What must come is looked up in the manifest only to be compared; nothing that was observed changes it.

use impel_core::state::decision::Decision;
use serde_json::{Value, json};

use super::decide::{Effect, Facts, Row};
use super::effects::{Run, Tale, What, belongs};
use super::evidence::{EFFECTS, Evidence, JOURNAL, file_of};
use super::identity::Identity;
use super::manifest::{CASES, Case};
use super::plan::{CONTROL, DELETED, POSITIVE, REPEAT, STREAMS, Stream, TOO_LONG_MS};
use crate::client::Reply;
use crate::client::entry::Entry;

/// A case with what was observed.
pub struct Observed {
    /// The case.
    pub case: &'static Case,
    /// What the group showed.
    pub state: String,
    /// What is known of the work.
    pub work: String,
    /// What it comes to.
    pub row: &'static Row,
    /// What is missing, if something is.
    pub missing: Option<String>,
    /// The row of XWORK AUDIT, where the server has one.
    pub ledger: Value,
    /// The files that show it.
    pub evidence: Vec<String>,
    /// When the last of it was asked.
    pub at: Option<String>,
}

/// Something that is required of the run as a whole.
pub struct Check {
    /// Which.
    pub name: &'static str,
    /// What it comes to.
    pub decision: Decision,
    /// Why.
    pub reason: String,
}

/// All of it.
pub struct Report {
    /// A row for each case.
    pub cases: Vec<Observed>,
    /// What is required beside them.
    pub checks: Vec<Check>,
    /// The server, if it said what it is.
    pub server: Option<Identity>,
    /// The worst of all decisions.
    pub decision: Decision,
}

/// A row of the pending list.
struct Pending {
    id: String,
    owner: String,
    idle_ms: i64,
}

/// What a claim gave.
struct Claim {
    entries: Vec<Entry>,
    deleted: Vec<String>,
}

/// What a case shows when nothing is missing.
struct Seen {
    state: String,
    /// What stands behind the number of completions.
    beside: &'static str,
    reached: bool,
    pending: bool,
}

fn list<'a>(reply: &'a Reply, of: &str) -> Result<&'a [Reply], String> {
    match reply {
        Reply::Array(items) => Ok(items),
        _ => Err(format!("{of}: the reply is no list")),
    }
}

fn count(n: usize) -> String {
    ["no", "one", "two", "three"].get(n).map_or_else(|| n.to_string(), |&word| word.to_owned())
}

fn pending_text(rows: &[Pending], stream: &Stream) -> String {
    match rows {
        [] => "pending_zero".into(),
        [row] if row.id == stream.entry => format!("pending_{}", row.owner),
        rows => format!("pending_strange_{}", rows.len()),
    }
}

struct Observer<'a> {
    evidence: &'a Evidence,
    tale: Tale,
}

impl Observer<'_> {
    fn pending(&self, case: &str, step: &str) -> Result<Vec<Pending>, String> {
        let of = format!("{case} {step}");
        let row = |row: &Reply| match row.items() {
            [id, owner, idle, ..] => {
                let (Some(_), Some(_), Some(idle_ms)) = (id.bytes(), owner.bytes(), idle.int()) else { return None };
                Some(Pending { id: id.text(), owner: owner.text(), idle_ms })
            }
            _ => None,
        };
        let rows: Option<Vec<Pending>> = list(self.evidence.reply(case, step)?, &of)?.iter().map(row).collect();
        rows.ok_or_else(|| format!("{of}: the reply is no pending list"))
    }

    fn claim(&self, case: &str, step: &str) -> Result<Claim, String> {
        let of = format!("{case} {step}");
        let items = list(self.evidence.reply(case, step)?, &of)?;
        let [_, entries, rest @ ..] = items else { return Err(format!("{of}: the reply is no claim")) };
        let deleted = rest.first().map_or(&[][..], Reply::items);
        // Before Redis 7.0 what is deleted is nothing in the list.
        let entries = list(entries, &of)?.iter().filter(|entry| **entry != Reply::Nil);
        let entries: Option<Vec<Entry>> = entries.map(Entry::read).collect();
        let entries = entries.ok_or_else(|| format!("{of}: the reply is no claim"))?;
        Ok(Claim {
            entries: entries.into_iter().filter(|entry| entry.fields.is_some()).collect(),
            deleted: deleted.iter().map(Reply::text).collect(),
        })
    }

    /// The entries that a read gave.
    fn given(&self, case: &str, step: &str) -> Result<Vec<Entry>, String> {
        let of = format!("{case} {step}");
        let reply = self.evidence.reply(case, step)?;
        if *reply == Reply::Nil {
            return Ok(Vec::new());
        }
        let streams = list(reply, &of)?.first().map_or(&[][..], Reply::items);
        let entries = streams.get(1).map_or(Ok(&[][..]), |entries| list(entries, &of))?;
        let entries: Option<Vec<Entry>> = entries.iter().map(Entry::read).collect();
        entries.ok_or_else(|| format!("{of}: the reply is no list of entries"))
    }

    fn has_claimed(&self, case: &str, step: &str, stream: &Stream) -> Result<bool, String> {
        Ok(self.claim(case, step)?.entries.iter().any(|entry| entry.id == stream.entry))
    }

    /// Was the entry this consumer's, and idle for long enough? One that is not there at all is not a matter of time.
    fn is_reached(&self, case: &str, step: &str, owner: &str) -> Result<bool, String> {
        let idle_ms = self.evidence.terms.idle_ms;
        let is_over = |row: &Pending| u64::try_from(row.idle_ms).is_ok_and(|ms| ms >= idle_ms);
        Ok(self.pending(case, step)?.iter().all(|row| row.owner == owner && is_over(row)))
    }

    fn runs(&self, case: &str) -> Vec<&Run> {
        self.evidence.journal.runs.iter().filter(|run| run.case == case).collect()
    }

    /// How often it was acknowledged, if that was asked.
    fn acked(&self, case: &str) -> Option<i64> {
        self.evidence.reply(case, "ack").ok().and_then(Reply::int)
    }

    fn effect(&self, work: &str, wanted: bool) -> Effect {
        let mut sums: Vec<&String> = self.tale.effects(work).map(|(_, sum)| sum).collect();
        let all = sums.len();
        sums.sort_unstable();
        sums.dedup();
        if sums.len() > 1 || self.tale.altered.iter().any(|name| belongs(name, work)) {
            return Effect::Conflict;
        }
        let is_strange = self.tale.strange.iter().any(|name| belongs(name, work)) || !wanted && all > 0;
        match (is_strange, all) {
            (true, _) => Effect::Unexplained,
            (false, 0) => Effect::None,
            (false, 1) => Effect::One,
            (false, _) => Effect::Repeated,
        }
    }

    /// What the cases do that come to an acknowledgement.
    fn finished(&self, case: &str, stream: &Stream, claims: &[(&str, &str)]) -> Result<(String, bool), String> {
        let runs = self.runs(case);
        let mut text = "claimed".to_owned();
        for (step, _) in claims {
            if !self.has_claimed(case, step, stream)? {
                text = "claim_empty".into();
            }
        }
        if text == "claimed" && runs.len() < claims.len() {
            return Err(format!("{case}: the handler was not run"));
        }
        if let Some((_, step)) = claims.last().filter(|_| claims.len() > 1) {
            text += &format!("+{}", pending_text(&self.pending(case, step)?, stream));
        }
        let is_done = runs.last().and_then(|run| run.end.as_ref()).is_some_and(|end| end.code == Some(0));
        let acked = match is_done && runs.len() == claims.len() {
            true => Some(self.evidence.reply(case, "ack")?),
            false => None,
        };
        text += &match acked {
            Some(reply) => format!("+acked_{}", reply.int().ok_or_else(|| format!("{case} ack: no number"))?),
            None => "+not_acked".into(),
        };
        let after = self.pending(case, "after")?;
        Ok((format!("{text}+{}", pending_text(&after, stream)), !after.is_empty()))
    }

    /// What was observed in a case; an error if something is missing.
    fn see(&self, case: &str) -> Result<Seen, String> {
        let (mut reached, mut beside) = (true, "");
        let (state, pending) = match case {
            "C01" => {
                self.evidence.reply(case, "read")?;
                let rows = self.pending(case, "pending")?;
                (pending_text(&rows, &CONTROL), !rows.is_empty())
            }
            "C02" => {
                let claim = self.claim(case, "claim")?;
                let rows = self.pending(case, "pending")?;
                let is_young = |row: &Pending| row.idle_ms < i64::try_from(TOO_LONG_MS).unwrap_or(i64::MAX);
                reached = self.pending("C01", "pending")?.iter().chain(&rows).all(is_young);
                let text = if claim.entries.is_empty() { "claim_empty" } else { "claimed" };
                (format!("{text}+{}", pending_text(&rows, &CONTROL)), !rows.is_empty())
            }
            "C03" => {
                reached = self.is_reached(case, "before", "c1")?;
                let text = if self.has_claimed(case, "claim", &CONTROL)? { "claimed" } else { "claim_empty" };
                let rows = self.pending(case, "pending")?;
                (format!("{text}+{}", pending_text(&rows, &CONTROL)), !rows.is_empty())
            }
            "C04" => {
                reached = self.pending("C03", "pending")?.iter().all(|row| row.owner == "c2");
                let history = self.given(case, "history")?;
                let text = if history.is_empty() { "history_empty" } else { "history_gives_entry" };
                if self.given("C01", "read")?.iter().any(|entry| entry.id == CONTROL.entry && entry.fields.is_some()) {
                    beside = "+payload_still_with_c1";
                }
                let rows = self.pending(case, "pending")?;
                (format!("{text}+{}", pending_text(&rows, &CONTROL)), !rows.is_empty())
            }
            "C05" => {
                reached = self.is_reached(case, "before", "c1")? && self.is_reached(case, "before-2", "c2")?;
                self.finished(case, &REPEAT, &[("claim", "pending"), ("claim-2", "pending-2")])?
            }
            "C06" => {
                self.evidence.reply(case, "delete")?;
                reached = self.is_reached(case, "before", "c1")?;
                let claim = self.claim(case, "claim")?;
                beside = if claim.entries.is_empty() { "+no_payload" } else { "+payload" };
                let is_told = claim.deleted.iter().any(|id| id == DELETED.entry);
                let text = if is_told { "deleted_id_reported" } else { "deleted_id_not_reported" };
                let rows = self.pending(case, "pending")?;
                (format!("{text}+{}", pending_text(&rows, &DELETED)), !rows.is_empty())
            }
            "C07" => {
                reached = self.is_reached(case, "before", "c1")?;
                self.finished(case, &POSITIVE, &[("claim", "pending")])?
            }
            _ => {
                let mut texts = Vec::new();
                for stream in STREAMS {
                    texts.push(format!("{}_{}", stream.name, pending_text(&self.pending(case, stream.name)?, stream)));
                }
                (texts.join("+"), false)
            }
        };
        Ok(Seen { state, beside, reached, pending })
    }

    fn work_text(&self, case: &Case, beside: &str) -> String {
        let completions = |stream: &Stream| self.tale.effects(stream.work).count();
        let plural = |n: usize, one: &str| format!("{}_{one}{}", count(n), if n > 1 { "s" } else { "" });
        let Some(stream) = case.stream else {
            let names = STREAMS.iter().filter_map(|stream| match completions(stream) {
                0 => None,
                1 => Some(stream.work.to_owned()),
                n => Some(format!("{}*{n}", stream.work)),
            });
            let others = self.tale.there.keys().filter(|name| !STREAMS.iter().any(|stream| belongs(name, stream.work)));
            let names: Vec<String> = names.chain(others.cloned()).collect();
            return format!("completed:{}", names.join(","));
        };
        let text = plural(completions(stream), "completion");
        if case.name != "C05" {
            return text + beside;
        }
        let what = |wanted: What| {
            let runs = self.evidence.journal.runs.iter().zip(&self.tale.outcomes);
            runs.filter(|(run, outcome)| run.case == case.name && outcome.what == wanted).count()
        };
        let attempts = plural(self.runs(case.name).len(), "attempt");
        format!("{attempts}+{text}+{}", plural(what(What::Duplicate), "duplicate"))
    }

    /// The facts of a stream's work. `case` is that in which it is done.
    fn facts(&self, stream: &Stream, case: &str) -> Facts {
        let wanted = [&REPEAT, &POSITIVE].contains(&stream);
        let runs = if wanted { self.runs(case) } else { Vec::new() };
        let is_done =
            |run: &Run, effects: &super::effects::Snapshot| effects.keys().any(|name| belongs(name, &run.work));
        let end = |run: &&Run| run.end.clone();
        Facts {
            ran: true,
            whole: true,
            reached: true,
            wanted,
            effect: self.effect(stream.work, wanted),
            pending: false,
            foreign_ack: wanted && self.acked(case) != Some(1),
            silent: runs.iter().any(|run| run.end.as_ref().is_none_or(|end| end.code.is_none())),
            empty_word: runs
                .iter()
                .any(|run| end(run).is_some_and(|end| end.code == Some(0) && !is_done(run, &end.effects))),
            effect_first: runs.get(1).is_none_or(|run| is_done(run, &run.effects)),
            matches: true,
        }
    }

    /// The row of the server's own ledger.
    fn ledger(&self, case: &Case) -> Value {
        let Some(stream) = case.stream else { return Value::Null };
        let rows = self.evidence.reply(case.name, "ledger").map_or(&[][..], Reply::items);
        let row = rows.iter().map(Reply::items).find(|row| row.first().is_some_and(|id| id.text() == stream.entry));
        let text = |at: usize| row.and_then(|row| row.get(at)).filter(|cell| **cell != Reply::Nil).map(Reply::text);
        match row {
            Some(_) => json!({"work": text(1), "decision": text(2), "reason": text(3), "owner": text(4)}),
            None => Value::Null,
        }
    }

    fn judge(&self, case: &'static Case) -> Observed {
        let mine: Vec<_> = self.evidence.exchanges.iter().filter(|one| one.case == case.name).collect();
        let seen = self.see(case.name);
        let beside = seen.as_ref().map_or("", |seen| seen.beside);
        let work = self.work_text(case, beside);
        let of_case = |facts: Facts| Facts {
            ran: !mine.is_empty(),
            whole: seen.is_ok(),
            reached: seen.as_ref().is_ok_and(|seen| seen.reached),
            matches: seen.as_ref().is_ok_and(|seen| seen.state == case.state) && work == case.work,
            ..facts
        };
        let row = match case.stream {
            Some(stream) => {
                let pending = seen.as_ref().is_ok_and(|seen| seen.pending);
                let facts = of_case(self.facts(stream, case.name));
                Facts { pending, foreign_ack: facts.foreign_ack && !pending, ..facts }.judge()
            }
            None => self.judge_all(case, of_case),
        };
        let mut evidence: Vec<String> =
            mine.iter().flat_map(|one| ["request", "reply"].map(|what| file_of(&one.case, &one.step, what))).collect();
        if case.name == "C04" {
            evidence.push(file_of("C01", "read", "reply"));
        }
        evidence.push(JOURNAL.into());
        let works: Vec<&str> =
            case.stream.map_or(STREAMS.map(|stream| stream.work).to_vec(), |stream| vec![stream.work]);
        evidence
            .extend(works.iter().flat_map(|work| self.tale.effects(work)).map(|(name, _)| format!("{EFFECTS}/{name}")));
        Observed {
            case,
            state: seen.as_ref().map_or_else(|_| "not_observed".into(), |seen| seen.state.clone()),
            work,
            row,
            missing: seen.err(),
            ledger: self.ledger(case),
            evidence,
            at: mine.last().map(|one| one.at.clone()),
        }
    }

    /// The reconciliation: the worst that the work of any stream comes to at the end. Each is compared with its own part of what must
    /// come, so that a handler's mistake is told as that.
    fn judge_all(&self, case: &Case, of_case: impl Fn(Facts) -> Facts) -> &'static Row {
        let mut rows: Vec<&'static Row> = Vec::new();
        for (stream, of) in STREAMS.iter().zip(["C01", "C05", "C06", "C07"]) {
            let found = self.pending(case.name, stream.name).unwrap_or_default();
            let state = format!("{}_{}", stream.name, pending_text(&found, stream));
            let facts = of_case(self.facts(stream, of));
            let pending = !found.is_empty();
            let matches = case.state.split('+').any(|part| part == state)
                && (facts.effect == Effect::One) == case.work.contains(stream.work);
            rows.push(Facts { pending, foreign_ack: facts.foreign_ack && !pending, matches, ..facts }.judge());
        }
        let is_ours = |name: &String| STREAMS.iter().any(|stream| belongs(name, stream.work));
        let mut whole = of_case(self.facts(&CONTROL, "C01"));
        if self.tale.strange.iter().chain(&self.tale.altered).any(|name| !is_ours(name)) {
            whole.effect = Effect::Unexplained;
        }
        let worst = rows.into_iter().rev().max_by_key(|row| row.decision);
        let whole = whole.judge();
        // What differs as a whole differs in a part; that says what it is.
        match worst {
            Some(worst) if worst.decision != Decision::Accept && whole.reason != "unexplained-effect" => worst,
            _ => whole,
        }
    }

    fn identity(&self, case: &str) -> Result<Identity, String> {
        let reply = self.evidence.reply(case, "info")?;
        Identity::read(&reply.text()).ok_or_else(|| format!("{case} info: the server does not say what it is"))
    }

    fn checks(&self, cases: &[Observed]) -> Vec<Check> {
        let check = |name, decision, reason: &str| Check { name, decision, reason: reason.into() };
        let (first, last) = (self.identity("begin"), self.identity("C08"));
        let same = match (&first, &last) {
            (Ok(first), Ok(last)) if first == last => check("server", Decision::Accept, "the-same-all-the-time"),
            (Ok(first), Ok(last)) => {
                check("server", Decision::Rerun, &format!("server-changed: from {first} to {last}"))
            }
            (Err(what), _) | (_, Err(what)) => check("server", Decision::Rerun, &format!("evidence-missing: {what}")),
        };
        let baseline = match (&self.evidence.terms.version, &first) {
            (None, _) => check("baseline", Decision::Accept, "recorded"),
            (Some(wanted), Ok(found)) if *wanted == found.version => check("baseline", Decision::Accept, "as-pinned"),
            (Some(wanted), Ok(found)) => {
                check("baseline", Decision::Rerun, &format!("baseline-differs: {wanted} is wanted, and it is {found}"))
            }
            (Some(_), Err(what)) => check("baseline", Decision::Rerun, &format!("evidence-missing: {what}")),
        };
        let is_shown = cases.iter().any(|one| one.case.name == "C03" && one.row.decision == Decision::Accept);
        let is_pending =
            self.pending("C08", CONTROL.name).is_ok_and(|rows| pending_text(&rows, &CONTROL) == "pending_c2");
        let is_undone = self.tale.effects(CONTROL.work).next().is_none();
        let control = match is_shown && is_pending && is_undone {
            true => check("negative-control", Decision::Accept, "kept: claimed by c2, still pending, and no effect"),
            false => check("negative-control", Decision::Rerun, "not-kept"),
        };
        vec![same, baseline, control]
    }
}

/// Draws all conclusions.
pub fn report(evidence: &Evidence) -> Report {
    let observer = Observer { evidence, tale: evidence.journal.tale() };
    let cases: Vec<Observed> = CASES.iter().map(|case| observer.judge(case)).collect();
    let checks = observer.checks(&cases);
    let all = cases.iter().map(|one| one.row.decision).chain(checks.iter().map(|check| check.decision));
    let decision = all.max().unwrap_or(Decision::Rerun);
    Report { checks, server: observer.identity("begin").ok(), decision, cases }
}

/// The work of every run of the handler, a line each, with tabs.
pub fn work_book(evidence: &Evidence) -> String {
    let tale = evidence.journal.tale();
    let mut text = String::from("run\tcase\twork\tentry\tconsumer\tdelivery\tcode\toutcome\teffects\twhen\n");
    for (at, (run, outcome)) in evidence.journal.runs.iter().zip(&tale.outcomes).enumerate() {
        let code = run.end.as_ref().and_then(|end| end.code).map_or("-".to_owned(), |code| code.to_string());
        let new = if outcome.new.is_empty() { "-".into() } else { outcome.new.join(",").replace(['\t', '\n'], " ") };
        let Run { case, work, entry, consumer, delivery, at: when, .. } = run;
        let what = outcome.what.name();
        text +=
            &format!("{}\t{case}\t{work}\t{entry}\t{consumer}\t{delivery}\t{code}\t{what}\t{new}\t{when}\n", at + 1);
    }
    text
}

impl Observed {
    /// As a line of the ledger.
    pub fn json(&self) -> Value {
        let Case { name, state, work, .. } = self.case;
        json!({
            "case": name, "entry": self.case.stream.map_or("all", |stream| stream.entry),
            "job": self.case.stream.map_or("all", |stream| stream.work),
            "expected": {"state": state, "work": work}, "observed": {"state": self.state, "work": self.work},
            "decision": self.row.decision.name(), "reason": self.row.reason, "missing": self.missing,
            "server_ledger": self.ledger, "evidence": self.evidence, "when": self.at,
        })
    }
}

impl Report {
    /// What the whole comes to.
    pub fn json(&self) -> Value {
        let checks: Vec<Value> = self
            .checks
            .iter()
            .map(|check| json!({"check": check.name, "decision": check.decision.name(), "reason": check.reason}))
            .collect();
        let cases: serde_json::Map<String, Value> =
            self.cases.iter().map(|one| (one.case.name.to_owned(), json!(one.row.decision.name()))).collect();
        json!({
            "decision": self.decision.name(), "cases": cases, "checks": checks,
            "server": self.server.as_ref().map(Identity::json),
        })
    }
}

#[cfg(test)]
mod tests;
