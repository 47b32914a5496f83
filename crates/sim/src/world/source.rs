//! Where the steps of a life come from: made one by one from a seed, with an eye on the world, or a list that was made before.

use impel::disk::fake::SURVIVALS;

use super::World;
use super::families::{self, Family};
use super::setup::{PEERS, Setup};
use super::step::{Event, Step, Trouble};
use crate::random::Random;
use crate::workload::{Generator, Profile};

/// Commands that a peer sends without having been answered, as a rule at most.
const AHEAD: usize = 12;

/// What kind of sequence commands are taken from.
const PROFILE: Profile =
    Profile { clients: PEERS, virtual_time: true, blocking: true, restarts: false, extended: true };

/// See the module.
pub enum Source {
    /// Steps are made.
    Made(Box<Made>),
    /// Steps are there.
    List(std::vec::IntoIter<Event>),
}

/// Steps from a seed.
pub struct Made {
    random: Random,
    generator: Generator,
    families: Vec<(u64, Family)>,
    setup: Setup,
    left: usize,
    /// Commands that come one after the other from one peer before time passes.
    burst: Option<(usize, u64)>,
    /// Counts echoes, so that each is another.
    echoes: u64,
    /// What is the same all through a life of work.
    pick: u64,
}

impl Source {
    /// `steps` steps of a seed.
    pub fn new(seed: u64, setup: &Setup, steps: usize) -> Source {
        let mut random = Random::new(seed ^ 0x51de_0000_0000);
        let generator = Generator::new(random.number(), PROFILE);
        let mut weigh = |family: &Family| (*random.pick(&[0, 1, 2, 4]), *family);
        let mut families: Vec<(u64, Family)> = families::ALL.iter().map(&mut weigh).collect();
        // Drawn by itself: what else a seed means is as it was before there was work.
        families.push((*Random::new(seed ^ 0x3027_7b01).pick(&[0, 1, 2, 4]), families::WORK));
        let setup = *setup;
        Source::Made(Box::new(Made {
            random,
            generator,
            families,
            setup,
            left: steps,
            burst: None,
            echoes: 0,
            pick: seed >> 1,
        }))
    }

    /// Steps that were made before.
    pub fn of(events: Vec<Event>) -> Source {
        Source::List(events.into_iter())
    }

    /// The next step.
    pub fn next(&mut self, world: &mut World) -> Option<Event> {
        match self {
            Source::List(events) => events.next(),
            Source::Made(made) => {
                made.left = made.left.checked_sub(1)?;
                let step = made.step(world);
                Some(Event { salt: made.random.number(), step })
            }
        }
    }
}

impl Made {
    fn step(&mut self, world: &mut World) -> Step {
        if let Some((peer, left)) = self.burst.take() {
            self.burst = (left > 1).then_some((peer, left - 1));
            if self.may_send(world, peer) {
                return self.command(world, peer);
            }
        }
        let trouble = self.setup.trouble;
        if self.random.below(1000) < trouble {
            return self.trouble();
        }
        match self.random.below(1000) {
            0..400 => self.pass(),
            400..410 => Step::Vanish { peer: self.peer() },
            410..415 => Step::HalfClose { peer: self.peer() },
            415..425 => Step::Stall { peer: self.peer(), us: self.random.below(300_000) },
            425..430 => Step::Snapshot,
            430..433 => {
                let ms = *self.random.pick(&[-100_000, -1000, -20, 20, 1000, 5000]);
                Step::Clock { ms: self.setup.tempo.clock_ms(ms, &mut self.random) }
            }
            _ => {
                let peer = self.peer();
                let Some(peer) = (peer..PEERS).chain(0..peer).find(|peer| self.may_send(world, *peer)) else {
                    return self.pass();
                };
                if self.random.chance(25) {
                    self.burst = Some((peer, 1 + self.random.below(8)));
                }
                self.command(world, peer)
            }
        }
    }

    fn peer(&mut self) -> usize {
        self.random.below(PEERS as u64) as usize
    }

    fn pass(&mut self) -> Step {
        if let Some(us) = self.setup.tempo.pause_us(&mut self.random) {
            return Step::Pass { us };
        }
        let us = match self.random.below(100) {
            0..30 => 1 + self.random.below(300),
            30..98 => 1 + self.random.below(2 * self.setup.pause_us),
            _ => self.random.below(2_000_000),
        };
        Step::Pass { us }
    }

    /// Does it make sense that the peer sends something?
    fn may_send(&self, world: &World, peer: usize) -> bool {
        let waits = world.waits(peer);
        let ahead = if waits { 1 } else { AHEAD };
        !world.is_ended(peer) && world.ahead(peer) <= ahead && world.is_up()
    }

    fn trouble(&mut self) -> Step {
        let survival = *self.random.pick(&SURVIVALS);
        let after = self.random.below(12);
        let fault = |what| Step::Fault { after, what };
        match self.random.below(14) {
            0..3 => Step::Crash { survival },
            3 => Step::Kill,
            4 => Step::Shutdown { save: self.random.chance(50) },
            5..9 => fault(Trouble::Crash(survival)),
            9 => fault(Trouble::Kill),
            10..12 => fault(Trouble::Error),
            12 => fault(Trouble::Full),
            _ => fault(Trouble::Read),
        }
    }

    fn command(&mut self, world: &mut World, peer: usize) -> Step {
        if world.is_new(peer) {
            self.generator.reconnected(peer);
        }
        let is_new_work = world.model().and_then(|model| model.book.as_ref()).is_some_and(|book| !book.is_there());
        // A client that does not know whether its command was carried out sends it again.
        let again = world.unanswered[peer].take().filter(|_| !is_new_work && self.random.chance(60));
        if let Some(words) = again {
            return Step::Command { peer, words };
        }
        let mut words = self.words(world, peer);
        self.setup.tempo.apply(&mut words, &mut self.random);
        Step::Command { peer, words }
    }

    fn words(&mut self, world: &mut World, peer: usize) -> Vec<Vec<u8>> {
        if let Some(model) = world.model() {
            return match &model.book {
                Some(book) => book.next(self.pick, &mut self.random),
                None => self.generator.words_for(peer, model),
            };
        }
        let now_ms = world.now_ms();
        if let Some(words) = families::of_peer(peer, &mut self.random) {
            return words;
        }
        if self.random.chance(5) {
            self.echoes += 1;
            return families::words(&["ECHO", &format!("echo {}", self.echoes)]);
        }
        if self.random.chance(60) {
            return self.generator.next_words(peer, now_ms);
        }
        let weights = self.families.iter().map(|(weight, _)| *weight);
        let place = if weights.clone().sum::<u64>() == 0 { 0 } else { self.random.weighted(weights) };
        (self.families[place].1)(&mut self.random)
    }
}

impl World {
    /// Does the peer wait for something to happen?
    fn waits(&self, peer: usize) -> bool {
        let server = self.server.as_ref();
        let client = self.peers[peer].index.and_then(|index| server?.node.client(index));
        client.is_some_and(|client| client.wait.is_some())
    }

    fn is_up(&self) -> bool {
        self.server.is_some()
    }

    fn is_ended(&self, peer: usize) -> bool {
        self.peers[peer].ended
    }

    fn is_new(&self, peer: usize) -> bool {
        !self.peers[peer].is_up()
    }

    fn ahead(&self, peer: usize) -> usize {
        self.peers[peer].sent.len()
    }

    fn now_ms(&self) -> u64 {
        self.clock_us / 1000
    }

    /// The model that goes along, if one does.
    fn model(&mut self) -> Option<&mut crate::model::Model> {
        self.follower.as_mut().map(|follower| &mut follower.model)
    }
}
