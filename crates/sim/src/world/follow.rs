//! The naive model goes along: it carries out what the server carries out, in the same order, and knows what every connection
//! must be told. After a restart it stands where the server came back.
//!
//! The order is that of the server's documentation: the commands of a connection one after the other; who has waited goes on
//! with what it has sent since, first come first, at the end of the turn.

use std::collections::VecDeque;
use std::rc::Rc;

use impel_core::engine::Engine;
use impel_core::id::StreamId;
use impel_core::state::keyspace::Value as Kept;

use super::setup::{PEERS, Setup};
use crate::model::Model;
use crate::model::stream::Id;
use crate::model::value::Value;
use crate::model::work::Book;
use crate::workload::NODE_MAX;

/// What the model was told.
#[derive(Clone)]
enum Told {
    Command(usize, Rc<[Vec<u8>]>),
    Pass(u64),
    Gone(usize),
    Came(usize, usize),
}

/// A position of the log, and how much the model had been told there.
#[derive(Clone, Copy)]
struct Mark {
    position: u64,
    told: usize,
}

/// As many things are told between two copies of the model.
const PER_COPY: usize = 200;

/// See the module.
pub struct Follower {
    /// The model as it is now.
    pub model: Model,
    told: VecDeque<Told>,
    /// How much was told before what is in `told`.
    forgotten: usize,
    marks: VecDeque<Mark>,
    /// Copies of the model, each at a mark.
    copies: VecDeque<(Mark, Model)>,
    /// What each peer is to be told and has not been.
    pub expected: [Vec<u8>; PEERS],
    /// Commands of a peer behind one that waits.
    behind: [VecDeque<Rc<[Vec<u8>]>>; PEERS],
    /// Peers that have stopped waiting in this turn.
    resumed: VecDeque<usize>,
}

impl Follower {
    /// A model of a server that begins with nothing.
    pub fn new(now_ms: u64, setup: &Setup) -> Follower {
        let mut model = Model::new(now_ms, NODE_MAX, setup.lag);
        model.resp3 = setup.resp3.to_vec();
        model.book = setup.work.then(|| Book::new(now_ms));
        let mark = Mark { position: 0, told: 0 };
        Follower {
            told: VecDeque::new(),
            forgotten: 0,
            marks: VecDeque::from([mark]),
            copies: VecDeque::from([(mark, model.clone())]),
            model,
            expected: Default::default(),
            behind: Default::default(),
            resumed: VecDeque::new(),
        }
    }

    fn tell(&mut self, told: Told) {
        let replies = carry_out(&mut self.model, &told);
        let speaker = if let Told::Command(peer, _) = told { Some(peer) } else { None };
        self.told.push_back(told);
        for (peer, value) in replies {
            self.expected[peer].extend(value.encode(self.model.resp3[peer]));
            // Only one that waited is answered in somebody else's name. Who spoke goes on by itself: were it noted here, and
            // waited for something afterwards, it would stand before those that stop waiting before it does.
            if speaker != Some(peer) {
                self.resumed.push_back(peer);
            }
        }
    }

    /// The server was given a whole command.
    pub fn command(&mut self, peer: usize, words: Rc<[Vec<u8>]>) {
        self.behind[peer].push_back(words);
        self.go_on(peer);
    }

    fn go_on(&mut self, peer: usize) {
        while !self.model.waits(peer)
            && let Some(words) = self.behind[peer].pop_front()
        {
            self.tell(Told::Command(peer, words));
        }
    }

    /// Those that have stopped waiting go on.
    pub fn resume(&mut self) {
        while let Some(peer) = self.resumed.pop_front() {
            self.go_on(peer);
        }
    }

    /// A turn begins.
    pub fn tick(&mut self, now_ms: u64) {
        let passed_ms = now_ms - self.model.now;
        self.tell(Told::Pass(passed_ms));
        self.resume();
    }

    /// The server has let a connection in, and given it a place.
    pub fn came(&mut self, peer: usize, place: usize) {
        self.tell(Told::Came(peer, place));
    }

    /// The server has let a connection go.
    pub fn gone(&mut self, peer: usize) {
        self.tell(Told::Gone(peer));
        self.behind[peer].clear();
        self.expected[peer].clear();
    }

    /// Does the peer wait, or has it sent something that waits?
    pub fn waits(&self, peer: usize) -> bool {
        self.model.waits(peer) || !self.behind[peer].is_empty()
    }

    /// What is now is what the log holds up to `position`. Everything before `safe` will never be asked for again.
    pub fn mark(&mut self, position: u64, safe: u64) {
        let mark = Mark { position, told: self.forgotten + self.told.len() };
        if self.marks.back().is_some_and(|last| last.position == position) {
            return;
        }
        self.marks.push_back(mark);
        if self.copies.back().is_none_or(|(last, _)| mark.told - last.told >= PER_COPY) {
            self.copies.push_back((mark, self.model.clone()));
        }
        while self.copies.get(1).is_some_and(|(next, _)| next.position <= safe) {
            self.copies.pop_front();
        }
        let oldest = self.copies[0].0;
        while self.forgotten < oldest.told {
            self.told.pop_front();
            self.forgotten += 1;
        }
        while self.marks[0].position < oldest.position {
            self.marks.pop_front();
        }
    }

    /// The server has come back at `position`; all connections are gone.
    pub fn restarted(&mut self, position: u64, engine: &Engine, now_ms: u64) -> Result<(), String> {
        let mark = self.marks.iter().find(|mark| mark.position == position).copied();
        let mark = mark.ok_or_else(|| format!("no turn ended at position {position}"))?;
        self.copies.retain(|(copy, _)| copy.told <= mark.told);
        let (copy, mut model) = self.copies.back().cloned().ok_or("no copy of the model is old enough")?;
        for told in self.told.range(copy.told - self.forgotten..mark.told - self.forgotten) {
            carry_out(&mut model, told);
        }
        // Time may go back to when the newest record was made, not behind it.
        model.now = model.now.min(now_ms);
        model.forget_connections();
        model.take_scan_starts(|key, group| {
            let Some(Kept::Stream(stream)) = engine.state().db(0).get_any(key).map(|slot| &slot.value) else {
                return None;
            };
            let StreamId { ms, seq } = stream.group(group)?.scan_start?;
            Some(Id(ms, seq))
        });
        let mark = Mark { position, told: 0 };
        self.model = model.clone();
        self.told.clear();
        self.forgotten = 0;
        self.marks = VecDeque::from([mark]);
        self.copies = VecDeque::from([(mark, model)]);
        self.expected = Default::default();
        self.behind = Default::default();
        self.resumed.clear();
        Ok(())
    }
}

fn carry_out(model: &mut Model, told: &Told) -> Vec<(usize, Value)> {
    match told {
        Told::Command(peer, words) => model.command(*peer, words),
        Told::Pass(ms) => model.pass(*ms, true),
        Told::Came(peer, place) => {
            model.places.insert(*peer, *place);
            Vec::new()
        }
        Told::Gone(peer) => {
            model.disconnect(*peer);
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::START_MS;

    #[test]
    fn who_stops_waiting_goes_on_first_come_first_whatever_it_has_said_before() {
        let mut follower = Follower::new(START_MS, &Setup { resp3: [false; PEERS], work: false, ..Setup::of(0) });
        let say = |follower: &mut Follower, peer, line: &str| {
            follower.command(peer, line.split(' ').map(|word| word.as_bytes().to_vec()).collect());
        };
        say(&mut follower, 1, "XREAD BLOCK 0 STREAMS s 1-0");
        say(&mut follower, 1, "SET k one");
        say(&mut follower, 2, "XREAD BLOCK 0 STREAMS s $");
        say(&mut follower, 2, "XADD s 2-0 f v");
        // Has spoken in this turn, has woken 2, and waits behind 1 then.
        say(&mut follower, 3, "XADD s 1-0 f v");
        say(&mut follower, 3, "GET k");
        say(&mut follower, 3, "XREAD BLOCK 0 STREAMS s 1-0");
        say(&mut follower, 3, "SET k three");
        follower.resume();
        say(&mut follower, 4, "GET k");
        assert_eq!(follower.expected[4], b"$5\r\nthree\r\n");
    }
}
