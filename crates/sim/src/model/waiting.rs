//! Readers that wait: first come first served at each key, woken by running the whole command again.

use super::Model;
use super::group::{Holder, Pending};
use super::reading;
use super::stream::Id;
use super::value::Value;
use super::words::Words;

/// What happened at a key, by whose wait it may end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// There is something to read, or something was lost: everyone's.
    Any,
    /// Something became pending: with CLAIM, of those that found nothing pending.
    Pending,
    /// Something can be claimed, perhaps: with CLAIM.
    Claimable,
    /// There is room in a group: of those that found none.
    Room,
    /// What a group held back may be given: of readers of groups.
    Held,
}

/// Until when a read with CLAIM need not look again by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Look {
    /// Until this time (Unix ms), when the oldest pending entry will be idle enough.
    At(u64),
    /// Until something is pending.
    Pending,
    /// Until something happens.
    Never,
}

/// A read that waits.
#[derive(Clone, Debug)]
pub struct Wait {
    /// The command, with `$` resolved.
    words: Vec<Vec<u8>>,
    keys: Vec<Vec<u8>>,
    /// Unix ms; `None` = for ever.
    deadline: Option<u64>,
    /// Its place in all queues.
    ticket: u64,
    /// With CLAIM.
    look: Option<Look>,
    /// Keys in whose groups there was no room.
    crowded: Vec<Vec<u8>>,
    /// The position of a group with bounds was set back meanwhile: it hears of room as if there had been none.
    set_back: bool,
    /// One of several keys has something new again, of which nobody was told: whatever happens at one of them, it looks.
    stirred: bool,
}

impl Model {
    pub(super) fn start_waiting(&mut self, client: usize, words: &Words) {
        let words = self.resolve_dollars(words);
        let (mut keys, timeout) = (reading::keys_of(&words), reading::timeout_of(&words));
        keys.sort_unstable();
        keys.dedup();
        // The end of the wait is not earlier than asked for, so a clock that shows whole ms must show one more.
        let deadline = (timeout > 0).then(|| self.now + timeout + 1);
        self.tickets += 1;
        let ticket = self.tickets;
        let wait =
            Wait { words, keys, deadline, ticket, look: None, crowded: Vec::new(), set_back: false, stirred: false };
        self.wait_on(client, wait);
    }

    /// Waits, having just looked in vain.
    fn wait_on(&mut self, client: usize, mut wait: Wait) {
        wait.crowded.clear();
        (wait.look, wait.set_back, wait.stirred) = (None, false, false);
        if let Some((group, consumer, min_idle)) = reading::group_of(&wait.words) {
            for key in &wait.keys {
                let Some(of) = self.stream(key).ok().flatten().and_then(|stream| stream.groups.get(&group)) else {
                    continue;
                };
                let (in_group, in_consumer) = of.room(&consumer);
                if in_group.min(in_consumer) == 0 && !reading::needs_no_room(&wait.words) {
                    wait.crowded.push(key.clone());
                }
            }
            let (first, reachable) = self.first_look(&wait);
            // It may have looked before there was room for what nobody has.
            wait.look = min_idle.map(|_| match first.map(|then| then.max(self.now)) {
                Some(then) if wait.deadline.is_none_or(|deadline| then < deadline) => Look::At(then),
                None if reachable => Look::Pending,
                _ => Look::Never,
            });
        }
        self.client(client).wait = Some(wait);
    }

    /// Waits on without having been carried out: what it was to hear of, it has not heard.
    fn wait_on_unheard(&mut self, client: usize, wait: Wait) {
        let Wait { crowded, set_back, stirred, .. } = wait.clone();
        self.wait_on(client, wait);
        if let Some(wait) = &mut self.client(client).wait {
            wait.crowded.extend(crowded);
            (wait.set_back, wait.stirred) = (set_back, stirred);
        }
    }

    /// When the first pending entry is, or was, idle enough for a reader with CLAIM (0 for one that nobody has and it may
    /// take), and whether there can be one.
    fn first_look(&self, wait: &Wait) -> (Option<u64>, bool) {
        let (mut first, mut reachable) = (None::<u64>, false);
        let Some((group, consumer, Some(min_idle))) = reading::group_of(&wait.words) else { return (None, false) };
        for key in &wait.keys {
            let Some(of) = self.stream(key).ok().flatten().and_then(|stream| stream.groups.get(&group)) else {
                continue;
            };
            let (in_group, in_consumer) = of.room(&consumer);
            if in_consumer == 0 {
                continue;
            }
            reachable = true;
            let then = |pending: &Pending| match pending.holder {
                Holder::Consumer(_) => Some(pending.time.saturating_add(min_idle)),
                Holder::Nobody(_) if in_group > 0 => Some(0),
                _ => None,
            };
            if let Some(then) = of.pel.values().filter_map(then).min() {
                first = Some(first.map_or(then, |first| first.min(then)));
            }
        }
        (first, reachable)
    }

    /// Would any reader that waits at a key hear of room there?
    pub(super) fn awaits_room(&self, name: &[u8]) -> bool {
        let mut waits = self.clients.values().filter_map(|state| state.wait.as_ref());
        waits.any(|wait| {
            let hears = wait.set_back || wait.stirred || !wait.crowded.is_empty();
            hears && wait.keys.iter().any(|key| key == name)
        })
    }

    /// Who waits, first come first.
    fn waiting(&self, concerned: impl Fn(&Wait) -> bool) -> Vec<(u64, usize)> {
        let waits = self.clients.iter().filter_map(|(client, state)| Some((*client, state.wait.as_ref()?)));
        let mut clients: Vec<(u64, usize)> =
            waits.filter(|(_, wait)| concerned(wait)).map(|(client, wait)| (wait.ticket, client)).collect();
        clients.sort_unstable();
        clients
    }

    /// Notes that what a group had pending is pending no more.
    pub(super) fn freed(&mut self, name: &[u8], group: &[u8]) {
        let stream = self.stream_mut(name);
        if stream.groups.get(group).is_some_and(|group| stream.ready(group).is_some()) {
            self.signal_event(name, Event::Held);
        }
        self.signal_event(name, Event::Room);
    }

    /// The position of a group with bounds was set back: who waits for what is new again hears of room.
    pub(super) fn note_set_back(&mut self, name: &[u8], group: &[u8]) {
        let of = &self.stream_mut(name).groups[group];
        let is_bounded = of.max_pending != 0 || of.max_pending_consumer != 0;
        for state in self.clients.values_mut() {
            let Some(wait) = &mut state.wait else { continue };
            let reads = reading::group_of(&wait.words).is_some_and(|(of, ..)| of == group);
            if reads && wait.keys.iter().any(|key| key == name) {
                wait.set_back |= is_bounded && !reading::needs_no_room(&wait.words);
                wait.stirred |= wait.keys.len() > 1;
            }
        }
    }

    /// Serves those who wait for keys at which something happened.
    pub(super) fn serve(&mut self, replies: &mut Vec<(usize, Value)>) {
        while !self.signals.is_empty() {
            let newest = self.tickets;
            // Who has waited for room or for something new goes before those who may claim.
            let mut signals = std::mem::take(&mut self.signals);
            signals.sort_by_key(|(_, event)| matches!(event, Event::Pending | Event::Claimable));
            // Room that is made while these are served is told next, to all from the first on.
            let full = self.full_readers();
            let several_keys = signals.iter().any(|(key, _)| *key != signals[0].0);
            for (key, event) in signals {
                let line = self.waiting(|wait| wait.keys.contains(&key));
                let stirred = event != Event::Pending
                    && !self.waiting(|wait| wait.stirred && wait.keys.contains(&key)).is_empty();
                let several = stirred || (event == Event::Any && several_keys);
                for (ticket, client) in line {
                    let Some(wait) = self.client(client).wait.clone() else { continue };
                    let concerned = match event {
                        // Readers without a group do not mind losing the key.
                        Event::Any => {
                            matches!(self.stream(&key), Ok(Some(_))) || reading::group_of(&wait.words).is_some()
                        }
                        Event::Pending => wait.look == Some(Look::Pending),
                        _ if wait.stirred => true,
                        Event::Claimable => wait.look.is_some(),
                        Event::Room => wait.set_back || !wait.crowded.is_empty(),
                        Event::Held => reading::group_of(&wait.words).is_some(),
                    };
                    if !concerned || wait.ticket != ticket || ticket > newest {
                        continue;
                    }
                    // After XGROUP SETID there may be something new, which by itself wakes nobody.
                    let for_claims = event == Event::Pending
                        || (event == Event::Room && reading::is_without_acknowledgement(&wait.words) && !wait.stirred);
                    let is_left_out = full.contains(&(client, key.clone())) && !(several && wait.keys.len() > 1);
                    if event == Event::Pending && !self.could_claim(&key, &wait) {
                        self.wait_on_unheard(client, wait);
                    } else if for_claims && !self.could_claim(&key, &wait) {
                        self.wait_on(client, wait);
                    } else if is_left_out && self.has_group(&key, &wait) {
                        let ticket = self.place_of(&wait, event != Event::Any);
                        self.wait_on_unheard(client, Wait { ticket, ..wait });
                    } else {
                        self.try_again(client, wait, event != Event::Any, replies);
                    }
                }
            }
        }
    }

    /// Those that wait and can get nothing at a key, as their consumer has as much as it may have.
    fn full_readers(&self) -> Vec<(usize, Vec<u8>)> {
        let mut full = Vec::new();
        for (client, state) in &self.clients {
            let Some(wait) = state.wait.as_ref().filter(|wait| !reading::is_without_acknowledgement(&wait.words))
            else {
                continue;
            };
            let Some((group, consumer, _)) = reading::group_of(&wait.words) else { continue };
            for key in &wait.keys {
                let of = self.stream(key).ok().flatten().and_then(|stream| stream.groups.get(&group));
                if of.is_some_and(|of| of.room(&consumer).1 == 0) {
                    full.push((*client, key.clone()));
                }
            }
        }
        full
    }

    /// Is the group there for which it reads?
    fn has_group(&self, key: &[u8], wait: &Wait) -> bool {
        let stream = self.stream(key).ok().flatten();
        reading::group_of(&wait.words)
            .is_some_and(|(group, ..)| stream.is_some_and(|of| of.groups.contains_key(&group)))
    }

    /// Is there anything at the key that a reader with CLAIM may take, or has it lost its group?
    fn could_claim(&self, key: &[u8], wait: &Wait) -> bool {
        let Some((group, consumer, Some(min_idle))) = reading::group_of(&wait.words) else { return false };
        let Some(of) = self.stream(key).ok().flatten().and_then(|stream| stream.groups.get(&group)) else {
            return true;
        };
        let (in_group, in_consumer) = of.room(&consumer);
        let may_go = |pending: &Pending| match pending.holder {
            Holder::Nobody(_) => in_group > 0,
            _ => pending.may_go(self.now, min_idle),
        };
        in_consumer > 0 && of.pel.values().any(may_go)
    }

    /// Serves those for whom something pending is old enough now.
    pub(super) fn serve_claims(&mut self, replies: &mut Vec<(usize, Value)>) {
        let now = self.now;
        // A wait that ends before something is old enough ends so, however late that is noticed.
        let is_over = |wait: &Wait, then: u64| wait.deadline.is_some_and(|deadline| deadline <= then);
        let looks = |wait: &Wait| matches!(wait.look, Some(Look::At(then)) if then <= now && !is_over(wait, then));
        for (ticket, client) in self.waiting(looks) {
            let wait = self.client(client).wait.clone().filter(|wait| wait.ticket == ticket);
            let Some(wait) = wait else { continue };
            // What it was to look at may be gone, and what is there instead is too young yet, or was when its wait ended.
            match self.first_look(&wait).0 {
                Some(then) if then <= now && !is_over(&wait, then) => {
                    self.try_again(client, wait, true, replies);
                    self.serve(replies);
                }
                _ => self.wait_on_unheard(client, wait),
            }
        }
    }

    fn try_again(&mut self, client: usize, wait: Wait, keeps_place: bool, replies: &mut Vec<(usize, Value)>) {
        self.again = true;
        self.speaker = client;
        let answer = super::find(&wait.words).and_then(|run| run(self, &wait.words));
        self.again = false;
        match answer {
            Ok(Value::NullArray) => {
                let ticket = self.place_of(&wait, keeps_place);
                self.wait_on(client, Wait { ticket, ..wait });
            }
            answer => {
                self.client(client).wait = None;
                replies.push((client, answer.unwrap_or_else(Value::Error)));
            }
        }
    }

    /// Its place from now on: that which it has, or behind all others.
    fn place_of(&mut self, wait: &Wait, keeps_place: bool) -> u64 {
        self.tickets += u64::from(!keeps_place);
        if keeps_place { wait.ticket } else { self.tickets }
    }

    /// Ends the waits whose time is over.
    pub(super) fn time_out(&mut self, replies: &mut Vec<(usize, Value)>) {
        let now = self.now;
        let over = |wait: &Wait| wait.deadline.is_some_and(|deadline| deadline <= now);
        let mut due: Vec<(u64, usize, usize)> = Vec::new();
        for (client, state) in &mut self.clients {
            if let Some(wait) = state.wait.take_if(|wait| over(wait)) {
                due.push((wait.deadline.unwrap_or(0), self.places.get(client).copied().unwrap_or(0), *client));
            }
        }
        due.sort_unstable();
        replies.extend(due.into_iter().map(|(_, _, client)| (client, Value::NullArray)));
    }

    /// Who waits though there is something new or something to claim, something held back that may be given now, or room
    /// that was missed:
    /// nobody, ever, but one that looks again in the next turn.
    pub fn overlooked(&self) -> Option<usize> {
        let waits = |client: &usize, wait: &Wait| {
            let (group, consumer, min_idle) = reading::group_of(&wait.words)?;
            if matches!(wait.look, Some(Look::At(then)) if then <= self.now) {
                return None;
            }
            let found = wait.keys.iter().any(|key| {
                let Ok(Some(stream)) = self.stream(key) else { return false };
                let Some(of) = stream.groups.get(&group) else { return false };
                let (in_group, in_consumer) = of.room(&consumer);
                let claims = min_idle.map_or(Vec::new(), |min_idle| of.claimable(self.now, min_idle));
                let can_claim = claims
                    .into_iter()
                    .any(|id| stream.entries.contains_key(&id) && (in_group > 0 || of.pel[&id].idle(self.now) >= 0));
                let room = in_group.min(in_consumer) > 0;
                let is_new = |id: &Id| *id > of.position && stream.entries[id].due <= self.now;
                let free = |id: &Id| stream.key_of(of, *id).is_none_or(|key| !stream.is_busy(of, &key));
                let new = !of.moved && stream.entries.keys().any(|id| is_new(id) && free(id));
                (in_consumer > 0 && can_claim)
                    || (room && (new || stream.ready(of).is_some() || wait.crowded.contains(key)))
            });
            found.then_some(*client)
        };
        self.clients.iter().find_map(|(client, state)| waits(client, state.wait.as_ref()?))
    }
}
