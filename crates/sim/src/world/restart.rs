//! The ends of a process and its starts: what is lost, what is read back, and whether it is what it must be.

use std::path::Path;
use std::sync::Arc;

use impel::clock::Pace;
use impel::disk::fake::{Fault, SURVIVALS};
use impel::disk::{DataDir, DataDirError, Disk};
use impel::node::Node;
use impel::startup;
use impel_core::check;

use super::oracle::End;
use super::server::Server;
use super::step::Trouble;
use super::threads::LogThread;
use super::{Result, World};

/// Where the data are.
const DIR: &str = "/data";

/// A start takes up to so long.
const START_US: u64 = 50_000;

/// Starts that may fail in a row because of faults.
const STARTS: usize = 10;

impl World {
    /// Takes the directory of the data.
    pub fn open_dir(&self) -> std::result::Result<Arc<DataDir>, DataDirError> {
        DataDir::open(Arc::new(self.disk.clone()), Path::new(DIR))
    }

    /// Lets a disk operation meet a fault, `after` operations from now.
    pub fn arm(&mut self, after: u64, what: Trouble) {
        if self.armed.is_some() {
            return;
        }
        let counted = if what == Trouble::Read { self.disk.reads() } else { self.disk.operations() };
        let at = counted + after;
        match what {
            Trouble::Crash(_) | Trouble::Kill => self.disk.break_at(at, Fault::Crash),
            Trouble::Error => self.disk.break_at(at, Fault::Error(std::io::ErrorKind::Other)),
            Trouble::Full => self.disk.break_at(at, Fault::Error(std::io::ErrorKind::StorageFull)),
            Trouble::Read => self.disk.break_read_at(at),
        }
        self.armed = Some((at, what));
    }

    /// The fault that was armed, if it has struck.
    fn struck(&mut self) -> Option<Trouble> {
        let (at, what) = self.armed?;
        let counted = if what == Trouble::Read { self.disk.reads() } else { self.disk.operations() };
        if counted <= at {
            return None;
        }
        self.armed = None;
        self.report.faults += 1;
        Some(what)
    }

    /// Looks whether a fault of the disk has ended the process. Answers whether there is no server now.
    pub fn look_at_the_disk(&mut self) -> bool {
        if let Some(what) = self.struck() {
            self.note(|| format!("the disk: {what:?}"));
            match what {
                Trouble::Crash(survival) => {
                    self.power_off(survival);
                    return true;
                }
                Trouble::Kill => {
                    self.kill();
                    return true;
                }
                Trouble::Error | Trouble::Full | Trouble::Read => {}
            }
        }
        self.server.is_none()
    }

    /// Has a fault of the disk ended a process of which nothing is left?
    pub fn armed_has_ended(&mut self) -> bool {
        match self.struck() {
            Some(Trouble::Crash(survival)) => self.power_off(survival),
            Some(Trouble::Kill) => self.kill(),
            _ => return false,
        }
        true
    }

    /// The machine loses its power.
    pub fn power_off(&mut self, survival: impel::disk::fake::Survival) {
        self.report.crashes += 1;
        self.stop(End::Power);
        let seed = self.random.number();
        self.note(|| format!("the machine loses its power, what survives: {survival:?}"));
        self.disk.crash(survival, seed);
        self.armed = None;
    }

    /// The process is killed.
    pub fn kill(&mut self) {
        self.report.kills += 1;
        self.stop(End::Process);
        self.disk.restart();
        self.armed = None;
    }

    /// The process has ended.
    pub fn die(&mut self, end: End) -> Result {
        self.stop(end);
        // Now and then the machine goes down with it, or soon after.
        if end != End::Orderly && self.random.chance(30) {
            let survival = *self.random.pick(&SURVIVALS);
            self.power_off(survival);
        } else {
            self.disk.restart();
            self.armed = None;
        }
        self.found.take().map_or(Ok(()), Err)
    }

    /// What was in memory is gone.
    fn stop(&mut self, end: End) {
        self.end = if end == End::Power || self.end == End::Power { End::Power } else { end };
        self.start_us = self.now_us + 1 + self.random.below(START_US);
        if let Some(mut server) = self.server.take() {
            self.note(|| format!("the server ends: {end:?}"));
            let mut pending = Vec::new();
            let live = check::digest(server.node.engine().state());
            server.node.engine_mut().log.take(&mut pending);
            if let Err(why) = self.oracle.last_words(&pending, live) {
                self.found = Some(why);
            }
            if end == End::Orderly && self.setup.log && !pending.is_empty() {
                self.found = Some("an orderly end leaves records that the log was not given".into());
            }
        }
        for peer in 0..self.peers.len() {
            self.drop_connection(peer);
        }
    }

    /// Starts the server, again and again if faults of the disk are in the way.
    pub fn start(&mut self) -> Result {
        if let Some(why) = self.found.take() {
            return Err(why);
        }
        for _ in 0..STARTS {
            self.now_us += 1 + self.random.below(START_US);
            let failure = match self.try_to_start() {
                Ok(()) => return self.found.take().map_or(Ok(()), Err),
                Err(failure) => failure,
            };
            let struck = self.struck();
            self.note(|| format!("a start fails: {failure} ({struck:?})"));
            self.report.failed_starts += 1;
            match struck {
                None => return Err(format!("the server does not start: {failure}")),
                Some(Trouble::Crash(survival)) => self.power_off(survival),
                Some(Trouble::Kill) => self.kill(),
                Some(_) => self.disk.restart(),
            }
            self.armed = None;
        }
        Err("the server does not start, however often it is tried".into())
    }

    fn try_to_start(&mut self) -> std::result::Result<(), String> {
        let settings = self.setup.settings();
        let mut node = Node::new(settings.clone(), self.random.number());
        let wanted = settings.appendonly
            || !settings.save.is_empty()
            || self.disk.list(&Path::new(DIR).join("snapshots")).is_ok();
        let dir = if wanted { Some(self.open_dir().map_err(|error| error.to_string())?) } else { None };
        let opened = startup::load(dir, node.engine_mut()).map_err(|error| error.to_string())?;
        if self.disk.is_down() {
            return Err("the machine has stopped".into());
        }
        let position = opened.position;
        if let Some(recovery) = &opened.recovery {
            self.report.rows[usize::from(format!("{:?}", recovery.row).as_bytes()[0] - b'A')] += 1;
        }
        self.note(|| format!("the server starts at position {position}"));
        self.trace(position);
        self.started_us = self.now_us;
        let wall_us = (self.now_us as i64 + self.wall_offset_us) as u64;
        self.pace = Pace::new(wall_us, node.engine().state().last_ms);
        self.clock_us = self.pace.last_us();
        let now_ms = self.clock_us / 1000;
        let end = std::mem::replace(&mut self.end, End::Process);
        let wrong = self.oracle.restarted(node.engine(), position, end);
        let wrong = wrong.and_then(|()| match &mut self.follower {
            Some(follower) => follower.restarted(position, node.engine(), now_ms),
            None => Ok(()),
        });
        if let Err(why) = wrong {
            self.found = Some(why);
        }
        node.restored(position, opened.newest(), opened.log.is_some(), now_ms);
        let log = opened.log.map(|log| LogThread::new(log, self.setup.log_us));
        self.server = Some(Server::new(node, opened.dir, log, self.now_us, now_ms));
        Ok(())
    }
}
