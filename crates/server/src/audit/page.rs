//! The entries that a group was given, page by page, each page as it was at one moment (a transaction).
//!
//! A page asks the stream, the pending list and XWORK AUDIT for the next so many from the same ID on. Of those that have more,
//! the one that has come least far says up to where all three are known; the next page begins behind that.

use super::cross::Keeping;
use super::source::{ask, ask_raw};
use super::{Given, Pending, Question, Source, Told, Trouble, id_of, id_text};
use crate::client::Reply;
use crate::client::entry::Entry;

type Id = (u64, u64);

/// What is known of the group as a whole.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// The newest entry that it had been given when the audit began: later ones are not looked at.
    pub last: Id,
    /// When that was, in Unix seconds by the server's clock.
    pub time: String,
    /// Is there XWORK?
    pub has_ledger: bool,
    /// Is a completion wanted for each entry, by the policy?
    pub evidence: bool,
    /// IDEMPOTENT of the policy.
    pub idempotent: bool,
    /// LEDGERLEN and LEDGERAGE of the policy.
    pub ledger: (u64, u64),
}

/// Reads pages.
pub(super) struct Pager<'a> {
    source: &'a mut dyn Source,
    question: &'a Question,
    group: Group,
    /// Where the next page begins; nothing when there is none.
    start: Option<String>,
}

fn strange(command: &str) -> Trouble {
    Trouble(format!("a strange reply of {command}"))
}

fn id_in(reply: Option<&Reply>, command: &str) -> Result<Id, Trouble> {
    reply.and_then(|reply| id_of(&reply.text())).ok_or_else(|| strange(command))
}

impl<'a> Pager<'a> {
    /// Asks who the server is, and for the group.
    pub fn begin(source: &'a mut dyn Source, question: &'a Question) -> Result<Pager<'a>, Trouble> {
        let Question { stream, group, .. } = question;
        // Only to be kept; a user may not be allowed to ask.
        ask_raw(source, &["INFO", "server"])?;
        let time = ask(source, &["TIME"])?.items().first().map(Reply::text).ok_or_else(|| strange("TIME"))?;
        ask(source, &["XINFO", "STREAM", stream])?;
        let groups = ask(source, &["XINFO", "GROUPS", stream])?;
        let is_it = |one: &&Reply| one.get("name").map(Reply::text).as_deref() == Some(group);
        let found =
            groups.items().iter().find(is_it).ok_or_else(|| Trouble(format!("{stream} has no group {group}")))?;
        let last = id_in(found.get("last-delivered-id"), "XINFO GROUPS")?;
        let policy = ask_raw(source, &["XWORK", "POLICY", stream, group])?;
        let has_ledger = match policy.error() {
            None => true,
            Some(text) if text.starts_with("ERR unknown command") => false,
            Some(text) => return Err(Trouble(text)),
        };
        let says = |name: &str| policy.get(name).map(Reply::text).unwrap_or_default();
        let bound = |name: &str| policy.get(name).and_then(Reply::int).and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
        let group = Group {
            last,
            time,
            has_ledger,
            evidence: has_ledger && says("evidence") != "off",
            idempotent: has_ledger && says("idempotent") == "yes",
            ledger: (bound("ledgerlen"), bound("ledgerage")),
        };
        Ok(Pager { source, question, group, start: Some("-".into()) })
    }

    pub fn group(&self) -> &Group {
        &self.group
    }

    /// What of the ledger is there, and how long it will be; nothing where there is none. Asked before the first page.
    pub fn keeping(&mut self) -> Result<Option<Keeping>, Trouble> {
        if !self.group.has_ledger {
            return Ok(None);
        }
        let Question { stream, group, .. } = self.question;
        let first = ask(self.source, &["XWORK", "LOG", stream, group, "-", "+", "COUNT", "1"])?;
        let first = match first.items().first() {
            Some(row) => Some(id_in(row.items().first(), "XWORK LOG")?),
            None => None,
        };
        let seconds: u64 = self.group.time.parse().map_err(|_| strange("TIME"))?;
        let (len, age_ms) = self.group.ledger;
        Ok(Some(Keeping { len, age_ms, begin_ms: seconds.saturating_mul(1000), first }))
    }

    pub fn source(&mut self) -> &mut dyn Source {
        self.source
    }

    /// The next entries, in order.
    pub fn next(&mut self) -> Result<Option<Vec<Given>>, Trouble> {
        let Some(start) = self.start.take() else { return Ok(None) };
        let Question { stream, group, page, .. } = self.question;
        let (end, count) = (id_text(self.group.last), page.to_string());
        let mut commands = vec![
            vec!["MULTI"],
            vec!["XRANGE", stream, &start, &end, "COUNT", &count],
            vec!["XPENDING", stream, group, &start, &end, &count],
        ];
        if self.group.has_ledger {
            commands.push(vec!["XWORK", "AUDIT", stream, group, &start, &end, "COUNT", &count]);
        }
        commands.push(vec!["EXEC"]);
        let commands: Vec<Vec<String>> =
            commands.into_iter().map(|command| command.into_iter().map(str::to_owned).collect()).collect();
        let replies = self.source.ask_all(&commands)?;
        let replies = replies.last().ok_or_else(|| strange("EXEC"))?;
        if let Some(text) = replies.error().or_else(|| replies.items().iter().find_map(Reply::error)) {
            return Err(Trouble(text));
        }
        let of = |at: usize| replies.items().get(at).map(Reply::items).ok_or_else(|| strange("EXEC"));
        let (range, pending) = (of(0)?, of(1)?);
        let audit = if self.group.has_ledger { Some(of(2)?) } else { None };
        // Up to where all is known.
        let mut known = self.group.last;
        let mut is_last = true;
        for (rows, command) in [(Some(range), "XRANGE"), (Some(pending), "XPENDING"), (audit, "XWORK AUDIT")] {
            if let Some(row) = rows.filter(|rows| rows.len() >= *page).and_then(<[Reply]>::last) {
                known = known.min(id_in(row.items().first(), command)?);
                is_last = false;
            }
        }
        if !is_last {
            self.start = Some(format!("({}", id_text(known)));
        }
        Ok(Some(self.merge(range, pending, audit, known)?))
    }

    fn merge(
        &self,
        range: &[Reply],
        pending: &[Reply],
        audit: Option<&[Reply]>,
        known: Id,
    ) -> Result<Vec<Given>, Trouble> {
        let mut given: Vec<Given> = Vec::new();
        for row in range {
            let entry = Entry::read(row).ok_or_else(|| strange("XRANGE"))?;
            let id = id_of(&entry.id).ok_or_else(|| strange("XRANGE"))?;
            let named = self.question.work_field.as_ref().and_then(|field| entry.get(field.as_bytes()));
            let work = named.map_or_else(|| entry.id.clone().into_bytes(), <[u8]>::to_vec);
            given.push(Given { id, work, payload: true, pending: None, server: None });
        }
        for row in pending {
            let [first, owner, idle_ms, deliveries] = row.items() else { return Err(strange("XPENDING")) };
            let id = id_in(Some(first), "XPENDING")?;
            let (Some(idle_ms), Some(deliveries)) = (idle_ms.int(), deliveries.int()) else {
                return Err(strange("XPENDING"));
            };
            let owner = owner.bytes().filter(|owner| !owner.is_empty()).map(<[u8]>::to_vec);
            let pending = Some(Pending { owner, idle_ms, deliveries });
            match given.binary_search_by_key(&id, |one| one.id) {
                Ok(at) => given[at].pending = pending,
                Err(at) => {
                    let work = first.text().into_bytes();
                    given.insert(at, Given { id, work, payload: false, pending, server: None });
                }
            }
        }
        given.retain(|one| one.id <= known);
        let Some(rows) = audit else { return Ok(given) };
        // With a ledger it says which entries the group was given: not those that it keeps back.
        let mut told = Vec::new();
        for row in rows {
            let [id, work, decision, reason, ..] = row.items() else { return Err(strange("XWORK AUDIT")) };
            let id = id_in(Some(id), "XWORK AUDIT")?;
            if id > known {
                break;
            }
            let at = given.binary_search_by_key(&id, |one| one.id).map_err(|_| {
                Trouble(format!(
                    "entry {}: XWORK AUDIT tells of it, and it is neither in the stream nor pending",
                    id_text(id)
                ))
            })?;
            let named = self.question.work_field.is_some() && given[at].payload;
            let own = work.bytes().unwrap_or_default();
            let server = Some(Told { decision: decision.text(), reason: reason.text(), work: own.to_vec() });
            // A field that was asked for decides where the server knows no more than the ID.
            let work = match named && own == id_text(id).as_bytes() {
                true => given[at].work.clone(),
                false => own.to_vec(),
            };
            told.push(Given { work, server, ..given[at].clone() });
        }
        let is_told = |one: &Given| told.binary_search_by_key(&one.id, |told| told.id).is_ok();
        if let Some(missing) = given.iter().find(|one| one.pending.is_some() && !is_told(one)) {
            return Err(Trouble(format!(
                "entry {}: pending, and XWORK AUDIT does not tell of it",
                id_text(missing.id)
            )));
        }
        Ok(told)
    }
}
