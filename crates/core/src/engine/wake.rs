//! Waking readers that wait. A record may end a wait at its key; after the command (or the whole transaction) that
//! emitted it, and before the next command of anybody, those who wait there are carried out again, first come first.
//! A key that was lost or holds something else wakes only readers of groups, who then get their error.
//!
//! Who reads for no group gets whatever is added, and is carried out again each time. Of the readers of a group, of whom
//! there may be thousands, only those are that can gain: before each it is asked what the group has to offer (something
//! new, something released, something idle for so long, and room for it), which costs the same however many wait, and
//! `blocked` knows whom that serves. The offer is exact but for entries that are passed over on the way: delayed ones, those
//! behind their keys, and pending ones that the stream has lost. Passing over them is work that is then done, so a reader
//! that was carried out in vain has brought the next answer nearer. If that takes more than a turn (`postpone`), those of its
//! group that stand behind it are left alone until it is done.
//!
//! Invariant: nobody waits who would be served by asking again, but after XGROUP SETID and XCLAIM LASTID (they wake
//! nobody). Whatever makes something available signals it; whoever lacks room is noted and hears of room (`crowded` for the
//! group's bound, `full` for that of the consumer); what grows old enough has a time at which the group is looked at again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Cx, Engine};
use crate::command::table;
use crate::engine::acl::log::Origin;
use crate::engine::blocked::{ClientIndex, Gain, Place, Signal};
use crate::engine::facts::Facts;
use crate::record::Record;
use crate::resp::encode::Reply;
use crate::session::{GroupReader, Wait};
use crate::state::group::Group;
use crate::state::keyspace::Value;
use crate::state::stream::Stream;

impl Cx<'_> {
    /// Something at the key may be claimed sooner than anyone who waits for it could foresee.
    pub(super) fn note_claimable(&mut self, key: &[u8]) {
        self.engine.blocked.signal(self.db, key, Signal::Claimable);
    }

    /// Someone may have fewer entries in flight at the key than before, in a way that no record tells.
    pub(super) fn note_room(&mut self, key: &[u8]) {
        self.engine.blocked.signal(self.db, key, Signal::Room);
    }

    /// The position of a group was set back, which wakes nobody. Those who wait may lack room for what is new again without
    /// having been asked, as there was nothing for them: they are to hear of room like those that were asked in vain. Those who
    /// wait for other keys as well look at this one, too, when something happens there, whether or not it serves them.
    pub(super) fn note_set_back(&mut self, key: &[u8], group: &[u8]) {
        let of = self.engine.stream_at(self.db, key, self.now_ms()).and_then(|stream| stream.group(group));
        let is_bounded = of.is_some_and(|group| {
            let options = group.options();
            options.max_pending != 0 || options.max_pending_per_consumer != 0
        });
        if is_bounded {
            self.engine.blocked.set_crowded(&Place { db: self.db, key: key.into(), group: group.into() }, true);
        }
        self.engine.stir(self.db, key, group);
    }
}

impl Engine {
    /// Notes those who wait for a group at a key and at others.
    fn stir(&mut self, db: usize, key: &[u8], group: &[u8]) {
        if self.blocked.is_single(db, key) {
            return;
        }
        for (_, index) in self.blocked.queue(db, key) {
            let Engine { blocked, clients, .. } = self;
            let wait = clients[index].as_deref().and_then(|client| client.wait.as_deref());
            if let Some(wait) = wait.filter(|wait| wait.group.as_ref().is_some_and(|reader| *reader.group == *group))
                && wait.keys.len() > 1
            {
                blocked.stir(db, &wait.keys);
            }
        }
    }

    /// Notes the keys at which a record may end a wait.
    pub(super) fn signal(&mut self, record: &Record<'_>) {
        if self.state.orders {
            self.signal_ready(record);
        }
        match record {
            Record::Add { at, .. } => self.blocked.signal(at.db, at.key, Signal::New),
            Record::SetString { at, .. } | Record::Delete { at } | Record::GroupDestroy { at, .. } => {
                self.blocked.signal(at.db, at.key, Signal::Any)
            }
            Record::Rename { at, to } => {
                self.blocked.signal(at.db, at.key, Signal::Any);
                self.blocked.signal(at.db, to, Signal::Any);
            }
            Record::Copy { to, .. } => self.blocked.signal(to.db, to.key, Signal::Any),
            Record::Move { at, db } => {
                self.blocked.signal(at.db, at.key, Signal::Any);
                self.blocked.signal(*db, at.key, Signal::Any);
            }
            Record::Flush { db: Some(db) } => self.blocked.signal_all(*db),
            Record::Flush { db: None } => (0..self.state.databases().len()).for_each(|db| self.blocked.signal_all(db)),
            Record::SwapDb { a, b } => {
                self.blocked.signal_all(*a);
                self.blocked.signal_all(*b);
            }
            Record::Deliver { at, no_ack: false, .. } | Record::Give { at, no_ack: false, .. } => {
                self.blocked.signal(at.db, at.key, Signal::Pending);
            }
            Record::Claim { at, .. } => {
                self.blocked.signal(at.db, at.key, Signal::Pending);
                self.blocked.signal(at.db, at.key, Signal::Room);
            }
            Record::GiveBack { at, .. } | Record::GiveBackAll { at, .. } => {
                self.blocked.signal(at.db, at.key, Signal::Claimable);
                self.blocked.signal(at.db, at.key, Signal::Room);
            }
            Record::WorkPolicy { at, .. } => self.blocked.signal(at.db, at.key, Signal::Lease),
            Record::Due { at, .. } => self.blocked.signal(at.db, at.key, Signal::Held),
            Record::Acknowledge { at, .. }
            | Record::WorkRow { at, acknowledges: true, .. }
            | Record::AcknowledgeRange { at, .. }
            | Record::DropRange { at, .. }
            | Record::Drop { at, .. }
            | Record::ConsumerDelete { at, .. }
            | Record::GroupOptions { at, .. } => self.blocked.signal(at.db, at.key, Signal::Room),
            _ => {}
        }
    }

    /// Where a record may have freed a key of a group, readers of groups hear of it if something waits for it no more.
    fn signal_ready(&mut self, record: &Record<'_>) {
        let (at, group) = match record {
            Record::Acknowledge { at, group, .. }
            | Record::WorkRow { at, group, acknowledges: true, .. }
            | Record::AcknowledgeRange { at, group, .. }
            | Record::DropRange { at, group, .. }
            | Record::Drop { at, group, .. }
            | Record::ConsumerDelete { at, group, .. }
            | Record::GroupOptions { at, group, .. } => (at, group),
            _ => return,
        };
        if let Some(Value::Stream(stream)) = self.state.db(at.db).get_any(at.key).map(|slot| &slot.value)
            && stream.group(group).is_some_and(|group| group.held().has_ready())
        {
            self.blocked.signal(at.db, at.key, Signal::Held);
        }
    }

    /// Carries out again whoever can have something to read now.
    pub(super) fn serve_ready(&mut self, facts: &Facts<'_>) {
        while self.blocked.has_ready() {
            // A reader that went to the back was looked at with all its keys, and has a newer ticket.
            let newest = self.blocked.newest_ticket();
            let mut ready = self.blocked.take_ready();
            // Room first: a reader that has waited longer for something new goes before one that may claim.
            ready.sort_by_key(|(_, _, what)| what.is_for_claims());
            // Who may have room again stands in line from the beginning, whatever else has happened at the key.
            for (db, key, _) in ready.iter().filter(|(_, _, what)| matches!(what, Signal::Any | Signal::Room)) {
                for group in self.blocked.groups(*db, key) {
                    self.reopen(&Place { db: *db, key: key.clone(), group }, facts.now_ms);
                }
            }
            let several_keys = ready.iter().any(|(db, key, _)| (*db, key) != (ready[0].0, &ready[0].1));
            for (db, key, what) in ready {
                if matches!(what, Signal::Any | Signal::Lease) {
                    self.refresh_leases(db, &key, facts);
                }
                let is_new = matches!(what, Signal::Any | Signal::New);
                let stream = self.stream_at(db, &key, facts.now_ms);
                let (is_stream, has_entries) = (stream.is_some(), stream.is_some_and(|s| !s.entries.is_empty()));
                // Where everyone waits for this key alone, going to the back one after the other changes no order.
                let rotates = is_new && !self.blocked.is_single(db, &key);
                let line = if rotates { self.blocked.queue(db, &key) } else { Vec::new() };
                let groups = self.blocked.groups(db, &key).into_iter();
                let places: Vec<Place> = groups.map(|group| Place { db, key: key.clone(), group }).collect();
                let mut sources: Vec<Source> = Vec::with_capacity(places.len() + 1);
                // Who waits for other keys as well may be told that one of them holds something else, whatever is here.
                let may_gain = has_entries || !self.blocked.is_single(db, &key);
                if is_stream && (what == Signal::Any || (what == Signal::New && may_gain)) {
                    sources.push(Source::Plain(db, &key));
                }
                sources.extend(places.iter().map(Source::Group));
                let is_told = !matches!(what, Signal::Pending | Signal::Idle | Signal::Lease);
                let stirred = is_told && self.blocked.take_stirred(db, &key);
                let round = Round { what, several: (rotates && several_keys) || stirred, newest };
                self.serve_sources(&sources, round, facts);
                let all_were_asked = matches!(what, Signal::Any | Signal::New | Signal::Room);
                places.iter().for_each(|place| self.note_outlook(place, all_were_asked, facts));
                for (ticket, index) in line {
                    let waits = self.client(index).and_then(|client| client.wait.as_deref());
                    let concerned = |wait: &Wait| wait.ticket == ticket && (is_stream || wait.group.is_some());
                    if ticket <= newest && waits.is_some_and(concerned) {
                        self.go_to_back(index);
                    }
                }
            }
        }
    }

    /// Carries out again the readers with CLAIM for which a pending entry is old enough now, in the order in which they
    /// have waited.
    pub(super) fn serve_claims(&mut self, facts: &Facts<'_>) {
        let places = self.blocked.due_looks(facts.now_ms);
        if places.is_empty() {
            return;
        }
        let sources: Vec<Source> = places.iter().map(Source::Group).collect();
        let round = Round { what: Signal::Idle, several: false, newest: self.blocked.newest_ticket() };
        self.serve_sources(&sources, round, facts);
        places.iter().for_each(|place| self.note_outlook(place, false, facts));
    }

    /// Carries out again, first come first, the readers that can gain; after each of them it is asked anew who can.
    fn serve_sources(&mut self, sources: &[Source<'_>], round: Round, facts: &Facts<'_>) {
        let mut line: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::with_capacity(sources.len());
        for (at, source) in sources.iter().enumerate() {
            line.extend(self.next_gaining(source, 0, round, facts).map(|(ticket, _)| Reverse((ticket, at))));
        }
        while let Some(Reverse((ticket, at))) = line.pop() {
            let source = &sources[at];
            // What was true when it was put in line may be so no more.
            let from = match self.next_gaining(source, ticket, round, facts) {
                Some((first, index)) if first == ticket => {
                    self.serve(index, facts);
                    if round.what == Signal::Idle {
                        self.serve_ready(facts);
                    }
                    ticket + 1
                }
                _ => ticket,
            };
            line.extend(self.next_gaining(source, from, round, facts).map(|(ticket, _)| Reverse((ticket, at))));
        }
    }

    /// The first reader from a ticket on that can gain.
    fn next_gaining(
        &mut self,
        source: &Source<'_>,
        from: u64,
        round: Round,
        facts: &Facts<'_>,
    ) -> Option<(u64, ClientIndex)> {
        let place = match *source {
            Source::Plain(db, key) => {
                return self.blocked.next_plain(db, key, from).filter(|&(ticket, _)| ticket <= round.newest);
            }
            Source::Group(place) => place,
        };
        let offer = self.offer(place, facts.now_ms);
        let gain = offer.gain(round, self.blocked.is_crowded(place));
        let mut from = from;
        loop {
            let (ticket, index) = self.blocked.next_reader(place, from, gain)?;
            if ticket > round.newest || self.postponed.is_looked_through(place, ticket) {
                return None;
            }
            let wait = self.client(index)?.wait.as_deref()?;
            let reader = wait.group.as_ref()?;
            if round.what == Signal::Idle
                && wait.deadline_ms.is_some_and(|end_ms| offer.is_late(reader.claims_at(&place.key), end_ms))
            {
                from = ticket + 1;
                continue;
            }
            if gain.everyone
                || (gain.several && wait.keys.len() > 1)
                || (gain.no_ack && reader.no_ack)
                || self.has_room(place, reader, facts.now_ms)
            {
                return Some((ticket, index));
            }
            let Engine { blocked, clients, .. } = self;
            if let Some(reader) = clients[index].as_deref().and_then(|client| client.wait.as_deref()?.group.as_ref()) {
                blocked.set_full(place, ticket, index, reader);
            }
        }
    }

    /// The stream under a key, if it is one.
    fn stream_at(&self, db: usize, key: &[u8], now_ms: u64) -> Option<&Stream> {
        match self.state.db(db).get(key, now_ms).map(|slot| &slot.value) {
            Some(Value::Stream(stream)) => Some(stream),
            _ => None,
        }
    }

    /// What there is for readers of a group.
    fn offer(&self, place: &Place, now_ms: u64) -> Offer {
        let stream = self.stream_at(place.db, &place.key, now_ms);
        let Some((stream, group)) = stream.and_then(|stream| Some((stream, stream.group(&place.group)?))) else {
            return Offer { is_lost: true, ..Offer::default() };
        };
        let (held, bound) = (group.held(), group.options().max_pending);
        let (has_room, has_released) = (bound == 0 || group.in_flight() < bound, group.released() > 0);
        // What was released and may be had is for everyone with CLAIM, however old the rest is.
        let is_age_asked = !(has_released && has_room) && group.in_flight() > 0 && self.blocked.has_claims(place);
        Offer {
            is_lost: false,
            now_ms,
            is_fresh: stream.entries.last_id().is_some_and(|last| last > group.last_delivered)
                || held.has_ready()
                || held.next_due_ms().is_some_and(|due_ms| due_ms <= now_ms),
            has_room,
            has_released,
            oldest_ms: if is_age_asked { group.oldest_owned_ms(u64::MAX) } else { None },
        }
    }

    /// May the consumer of a reader have more in flight, as far as it alone is concerned?
    pub(super) fn has_room(&self, place: &Place, reader: &GroupReader, now_ms: u64) -> bool {
        let stream = self.stream_at(place.db, &place.key, now_ms);
        has_room_in(stream.and_then(|stream| stream.group(&place.group)), reader)
    }

    /// Readers that had no room may have some: those that do can gain as the others.
    fn reopen(&mut self, place: &Place, now_ms: u64) {
        let mut opened = self.blocked.full(place);
        if opened.is_empty() {
            return;
        }
        let group = self.stream_at(place.db, &place.key, now_ms).and_then(|stream| stream.group(&place.group));
        opened.retain(|&(_, index)| {
            let wait = self.client(index).and_then(|client| client.wait.as_deref());
            wait.and_then(|wait| wait.group.as_ref()).is_some_and(|reader| has_room_in(group, reader))
        });
        for (ticket, index) in opened {
            let Engine { blocked, clients, .. } = self;
            let wait = clients[index].as_deref().and_then(|client| client.wait.as_deref());
            if let Some(reader) = wait.and_then(|wait| wait.group.as_ref()) {
                blocked.set_open(place, ticket, index, reader);
                blocked.set_crowded(place, true);
            }
        }
    }

    /// Notes what the readers of a group have to hear of from now on: that there is room, and when something is old enough.
    /// That they lack no room any more is noted only when `all_were_asked` who may have lacked it: the room may just have been
    /// made, and be told to them next.
    pub(super) fn note_outlook(&mut self, place: &Place, all_were_asked: bool, facts: &Facts<'_>) {
        let offer = self.offer(place, facts.now_ms);
        let lacks_room = !offer.is_lost && !offer.has_room;
        if lacks_room || all_were_asked {
            self.blocked.set_crowded(place, lacks_room);
        }
        let least_ms = self.blocked.least_claim(place);
        self.blocked.set_look(place, least_ms.and_then(|idle_ms| offer.look_ms(idle_ms)));
    }

    /// Carries out again a read that waits, or what goes on in a new turn. If it still has nothing, it waits on where it
    /// stood, until the end it had.
    pub(super) fn serve(&mut self, index: ClientIndex, facts: &Facts<'_>) {
        let Some(wait) = self.stop_waiting(index) else { return };
        self.statistics.reads_repeated += u64::from(!wait.goes_on);
        // What was done since the last command is not this one's.
        self.begin_batch(facts);
        let mut out = self.take_output(index);
        let start = out.len();
        self.own_pushes.running = Some(index);
        let Wait { args, deadline_ms, ticket, goes_on, carried, progress, .. } = *wait;
        let spec = table::resolve(args.args()).expect("what waits was a good command before");
        let denial = self.find_denial(index, spec, args.args(), Origin::TopLevel, facts);
        if let (Some(denial), Some(client)) = (denial, self.client(index)) {
            let (fault, protocol) = (denial.fault(&client.user, spec), client.protocol);
            Reply { out: &mut out, protocol }.error(&fault.0);
            self.statistics.note_error(&fault.0);
            self.statistics.of(spec).rejected += 1;
            self.finish_command(index, out, start, 0);
            self.resume.push_back(index);
            return;
        }
        (self.going_on, self.progress) = (goes_on.then_some(carried), progress);
        let (gate, waits) = self.run(index, spec, args.args(), facts, &mut out, true, true);
        if waits {
            let mut pushes = Vec::new();
            let pushes_gate = self.take_own_pushes(index, &mut pushes);
            self.restore_output(index, out);
            if !pushes.is_empty() {
                self.push(index, &pushes, pushes_gate);
            }
            let wait = self.client_mut(index).and_then(|client| client.wait.take());
            if let Some(wait) = wait {
                self.line_up(index, Box::new(Wait { deadline_ms, ticket, ..*wait }), facts);
            }
            return;
        }
        self.finish_command(index, out, start, gate);
        self.resume.push_back(index);
    }

    /// The groups of a key may have other leases than their readers have noted.
    fn refresh_leases(&mut self, db: usize, key: &[u8], facts: &Facts<'_>) {
        for (_, index) in self.blocked.queue(db, key) {
            let wait = self.client(index).and_then(|client| client.wait.as_deref());
            let Some(reader) = wait.and_then(|wait| wait.group.as_ref()) else { continue };
            let group = self.stream_at(db, key, facts.now_ms).and_then(|stream| stream.group(&reader.group));
            let lease_ms = group.map_or(0, Group::lease_ms);
            if reader.lease_at(key) == lease_ms || reader.no_ack {
                continue;
            }
            let Some(mut wait) = self.client_mut(index).and_then(|client| client.wait.take()) else { continue };
            // In its place again, with what it claims from now on.
            self.blocked.remove(index, &wait);
            if let Some(reader) = &mut wait.group {
                reader.set_lease(key, lease_ms);
            }
            self.line_up(index, wait, facts);
        }
    }

    /// A reader goes to the back of the queues of all its keys.
    fn go_to_back(&mut self, index: ClientIndex) {
        let Engine { blocked, clients, postponed, .. } = self;
        if let Some(wait) = clients[index].as_deref_mut().and_then(|client| client.wait.as_deref_mut()) {
            postponed.remove(wait.ticket);
            blocked.go_to_back(index, wait);
            if wait.goes_on {
                postponed.add(index, wait);
            }
        }
    }
}

/// May the consumer of a reader have more in flight in its group? `true` if the group is lost: that is no lack of room.
fn has_room_in(group: Option<&Group>, reader: &GroupReader) -> bool {
    group.is_none_or(|group| {
        let bound = group.options().max_pending_per_consumer;
        bound == 0 || group.find(&reader.consumer).is_none_or(|of| group.consumer(of).pending < bound)
    })
}

/// Where readers are that may be carried out again.
enum Source<'a> {
    /// Those that read a key for no group.
    Plain(usize, &'a [u8]),
    /// Those of a group.
    Group(&'a Place),
}

/// What is asked about readers in one go.
#[derive(Clone, Copy)]
struct Round {
    what: Signal,
    /// Something happened at other keys as well, or had happened: those that wait for several may gain there.
    several: bool,
    /// Readers with newer tickets have been looked at.
    newest: u64,
}

/// What there is for readers of a group.
#[derive(Default)]
struct Offer {
    /// The group is not there: they get an error, or make it.
    is_lost: bool,
    now_ms: u64,
    /// There is something that the group was not given, or passed over and may have now.
    is_fresh: bool,
    /// The bound on the group lets more in.
    has_room: bool,
    /// Something was released.
    has_released: bool,
    /// The last delivery that is longest ago of what consumers have, if anything depends on it.
    oldest_ms: Option<u64>,
}

impl Offer {
    /// Whom it serves. `crowded`: the bound on the group let nothing in before.
    fn gain(&self, round: Round, crowded: bool) -> Gain {
        let what = round.what;
        let is_news = match what {
            Signal::Any | Signal::New | Signal::Held | Signal::Claimable => self.is_fresh,
            Signal::Room => self.is_fresh && crowded,
            Signal::Pending | Signal::Idle | Signal::Lease => false,
        };
        let claims_all = (self.has_released || (is_news && what.is_for_claims())) && self.has_room;
        let age_ms = self.oldest_ms.and_then(|ms| self.now_ms.checked_sub(ms));
        Gain {
            everyone: self.is_lost,
            several: round.several,
            open: is_news && self.has_room && !what.is_for_claims(),
            no_ack: is_news && !what.is_for_claims() && what != Signal::Room,
            claims_up_to_ms: if claims_all { Some(u64::MAX) } else { age_ms },
        }
    }

    /// Has a reader with CLAIM come to the end of its wait before anything was old enough for it?
    fn is_late(&self, claims_ms: Option<u64>, end_ms: u64) -> bool {
        let idle_ms = claims_ms.unwrap_or(0);
        let old_enough_ms = self.oldest_ms.map_or(u64::MAX, |ms| ms.saturating_add(idle_ms));
        end_ms <= self.now_ms && end_ms <= old_enough_ms && !(self.has_released && self.has_room)
    }

    /// When someone who asks for so many idle ms can gain (Unix ms), if time decides it.
    fn look_ms(&self, idle_ms: u64) -> Option<u64> {
        if self.has_released && self.has_room {
            return Some(self.now_ms);
        }
        self.oldest_ms.map(|ms| ms.saturating_add(idle_ms).max(self.now_ms))
    }
}
