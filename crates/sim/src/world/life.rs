//! The course of a life: step after step, whatever becomes due in between, and the end at which everyone gets what they are
//! owed.

use impel_core::command::table::CommandId;

use super::oracle::End;
use super::peers::Arrival;
use super::server::Server;
use super::source::Source;
use super::step::{Event, Step};
use super::{Result, World};
use crate::random::Random;
use crate::workload::START_MS;

/// After the last step everything that waits for time has come to its end in so long.
const REST_US: u64 = 20_000_000;

/// So many µs of waiting at the end are looked at one after the other.
const REST_PIECE_US: u64 = 1_000_000;

impl World {
    /// Lives until the source has no more steps, and comes to a good end.
    pub fn live(&mut self, source: &mut Source, mut events: Option<&mut Vec<Event>>) -> Result {
        while let Some(event) = source.next(self) {
            if let Some(events) = &mut events {
                events.push(event.clone());
            }
            self.random = Random::new(event.salt);
            self.note(|| event.to_string());
            self.step(event.step)?;
            if let Some(why) = self.found.take() {
                return Err(why);
            }
        }
        self.random = Random::new(0x000e_0d0f);
        self.rest()?;
        self.report.simulated_us = self.now_us;
        self.report.judged = self.oracle.judged;
        Ok(())
    }

    fn step(&mut self, step: Step) -> Result {
        match step {
            Step::Command { peer, words } => self.send(peer, &words),
            Step::Pass { us } => {
                let until_us = self.now_us + us;
                self.run_until(until_us)?;
            }
            Step::Vanish { peer } => {
                if self.peers[peer].index.is_some() && !self.peers[peer].ended {
                    self.peers[peer].ended = true;
                    self.arrive_later(peer, Arrival::Reset);
                } else if self.peers[peer].index.is_none() {
                    self.drop_connection(peer);
                }
            }
            Step::HalfClose { peer } => {
                if self.peers[peer].index.is_some() && !self.peers[peer].ended {
                    self.peers[peer].ended = true;
                    self.arrive_later(peer, Arrival::End);
                }
            }
            Step::Stall { peer, us } => {
                let until_us = self.now_us + us;
                let peer = &mut self.peers[peer];
                peer.closed_window_until_us = peer.closed_window_until_us.max(until_us);
            }
            Step::Snapshot => {
                let now_us = self.now_us;
                if let Some(server) = &mut self.server {
                    server.node.ask_for_snapshot();
                    server.wake(now_us);
                }
            }
            Step::Crash { survival } => self.power_off(survival),
            Step::Kill => self.kill(),
            Step::Shutdown { save } => {
                if self.server.is_some() {
                    self.clock_us = self.read_clock();
                    self.shut_down(save.then_some(true))?;
                }
            }
            Step::Fault { after, what } => self.arm(after, what),
            Step::Clock { ms } => {
                let wall_us = self.now_us as i64 + self.wall_offset_us + ms * 1000;
                // Before that time there are no delays, and the model knows nothing of such times.
                if wall_us >= (START_MS * 1000) as i64 {
                    self.wall_offset_us += ms * 1000;
                }
            }
        }
        Ok(())
    }

    /// A peer sends a command.
    fn send(&mut self, peer: usize, words: &[Vec<u8>]) {
        if !self.peers[peer].is_up() {
            if self.peers[peer].index.is_some() {
                // It has said its last word and is still there.
                return;
            }
            self.peers[peer].connect();
            if self.setup.resp3[peer] {
                let hello = self.peers[peer].send(&[b"HELLO".to_vec(), b"3".to_vec()]);
                self.transmit(peer, &hello);
            }
        }
        let bytes = self.peers[peer].send(words);
        self.transmit(peer, &bytes);
        self.deliver();
    }

    /// Lets time pass, with everything that becomes due in it.
    pub fn run_until(&mut self, until_us: u64) -> Result {
        loop {
            if self.server.is_none() {
                if self.start_us > until_us {
                    break;
                }
                self.now_us = self.now_us.max(self.start_us);
                self.start()?;
                self.deliver();
            }
            let server = self.server.as_ref().and_then(|server| server.next_us());
            let next_us = [server, self.network_us()].into_iter().flatten().min().unwrap_or(u64::MAX);
            let quiet = !self.server.as_ref().is_some_and(|server| server.is_busy(self.now_us))
                && self.peers.iter().all(|peer| peer.arrivals.is_empty());
            let to_us = next_us.max(self.now_us).min(until_us.max(self.now_us));
            if quiet {
                self.report.idle_us += to_us - self.now_us;
            }
            self.now_us = to_us;
            if next_us > until_us {
                break;
            }
            self.deliver();
            let now_us = self.now_us;
            let Some(server) = &mut self.server else { continue };
            // A thread that has finished something wakes the loop.
            if server.next_us().is_some_and(|next_us| next_us <= now_us) {
                server.wake(now_us);
            }
            if server.wake_us.is_some_and(|wake_us| wake_us <= now_us) {
                self.turn()?;
                if let Some(why) = self.found.take() {
                    return Err(why);
                }
            }
        }
        self.now_us = self.now_us.max(until_us);
        Ok(())
    }

    /// The disk is well, everybody takes what they get: in the end nobody is owed anything.
    fn rest(&mut self) -> Result {
        self.disk.heal();
        self.armed = None;
        for peer in &mut self.peers {
            peer.closed_window_until_us = peer.closed_window_until_us.min(self.now_us + 1);
        }
        let stretch = self.setup.tempo.stretch();
        let ends_us = self.now_us + REST_US * stretch;
        // A job that has failed before the disk was well ends the process when it is told of, which must not be later.
        let works = |server: &Server| server.threads_us().is_some();
        while self.now_us < ends_us && (self.server.as_ref().is_none_or(works) || self.owed().is_some()) {
            self.run_until(self.now_us + REST_PIECE_US * (stretch / 10).max(1))?;
        }
        if let Some(why) = self.owed() {
            return Err(why);
        }
        if !self.shuts_down()? {
            return Err("the server does not end though it was asked to and nothing is wrong".into());
        }
        self.start()?;
        // What a start has found is durable: the next one finds the same, whatever the machine does.
        self.power_off(impel::disk::fake::Survival::Nothing);
        self.start()
    }

    fn shuts_down(&mut self) -> std::result::Result<bool, String> {
        self.clock_us = self.read_clock();
        let before = self.report.shutdowns;
        self.shut_down(None)?;
        Ok(self.report.shutdowns > before && self.end == End::Orderly)
    }

    /// Who is owed a reply, and does not wait for something that may never happen.
    fn owed(&self) -> Option<String> {
        let server = self.server.as_ref()?;
        for (number, peer) in self.peers.iter().enumerate() {
            let client = peer.index.and_then(|index| server.node.client(index));
            let waits = client.and_then(|client| client.wait.as_ref()).is_some_and(|wait| {
                let reads = matches!(wait.command, CommandId::XRead | CommandId::XReadGroup);
                reads && wait.deadline_ms.is_none() && !wait.goes_on
            });
            let first = peer.sent.iter().find(|sent| sent.replies > 0);
            if let Some(sent) = first.filter(|_| !waits) {
                return Some(format!("c{number} is owed a reply to {}", sent.words.join(&b' ').escape_ascii()));
            }
            if let Some(follower) = &self.follower
                && !follower.expected[number].is_empty()
            {
                return Some(format!("c{number} is owed {}", follower.expected[number].escape_ascii()));
            }
        }
        None
    }
}
