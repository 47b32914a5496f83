//! Commands from outside: bytes go in, bytes come out, time is what the test says.

mod acl;
mod clients;
mod delays;
mod events;
mod found;
mod groups;
mod idempotence;
mod keys;
mod order;
mod postpone;
mod pubsub;
mod reach;
mod retention;
mod scripts;
mod server;
mod streams;
mod strings;
mod syntax;
mod timing;
mod transactions;
mod trim;
mod turns;
mod waking;
mod work;

use std::cell::{Cell, RefCell};

use super::Engine;
use super::blocked::ClientIndex;
use super::facts::{Facts, Host, Request, Saving};
use crate::check;
use crate::settings::Settings;

/// The process, as far as a test needs one.
#[derive(Default)]
struct Process {
    saving: Saving,
    acl_file: RefCell<Option<Vec<u8>>>,
}

impl Host for Process {
    fn info(&self, section: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("told_of_{section}:1\r\n").as_bytes());
    }

    fn saving(&self) -> Saving {
        self.saving
    }

    fn random(&self, bytes: &mut [u8]) {
        bytes.iter_mut().zip(1..).for_each(|(byte, n): (_, u8)| *byte = n.wrapping_mul(17));
    }

    fn read_acl_file(&self, _: &str) -> Result<Vec<u8>, String> {
        self.acl_file.borrow().clone().ok_or_else(|| "it is not there".into())
    }

    fn write_acl_file(&self, _: &str, bytes: &[u8]) -> Result<(), String> {
        *self.acl_file.borrow_mut() = Some(bytes.to_vec());
        Ok(())
    }
}

/// An engine with a clock that stands still and a first client.
struct World {
    engine: Engine,
    process: Process,
    now_ms: u64,
    /// What the clock that measures shows, and by how much it goes on each time it is looked at.
    elapsed_us: Cell<u64>,
    look_us: u64,
    me: ClientIndex,
}

/// The clock of a new world.
const START_MS: u64 = 1_700_000_000_000;

impl World {
    fn new() -> World {
        World::with(&[])
    }

    fn with(settings: &[(&str, &str)]) -> World {
        let mut all = Settings::default();
        for (name, value) in settings {
            all.apply(name.as_bytes(), &[value]).unwrap();
        }
        let mut engine = Engine::new(all, 7);
        let me = engine.open("10.0.0.1:1000".into(), "10.0.0.9:6379".into(), START_MS);
        World { engine, process: Process::default(), now_ms: START_MS, elapsed_us: Cell::new(0), look_us: 0, me }
    }

    fn open(&mut self, addr: &str) -> ClientIndex {
        self.engine.open(addr.into(), "10.0.0.9:6379".into(), self.now_ms)
    }

    fn turn<T>(&mut self, what: impl FnOnce(&mut Engine, &Facts<'_>) -> T) -> T {
        let facts = Facts {
            now_ms: self.now_ms,
            now_us: self.now_ms * 1000 + 42,
            used_memory: 1_300_000,
            elapsed_us: &|| {
                self.elapsed_us.set(self.elapsed_us.get() + self.look_us);
                self.elapsed_us.get()
            },
            host: &self.process,
        };
        let result = what(&mut self.engine, &facts);
        self.engine.resume(&facts);
        result
    }

    /// Lets time pass, as the process does.
    fn pass(&mut self, ms: u64) {
        self.now_ms += ms;
        self.turn(|engine, facts| engine.tick(facts));
    }

    /// Sends an inline command; answers what has come back since, with `|` for each end of line.
    fn send(&mut self, client: ClientIndex, line: &str) -> String {
        let line = format!("{line}\r\n");
        self.turn(|engine, facts| engine.feed(client, line.as_bytes(), facts));
        self.read(client)
    }

    /// What has come back since it was last asked.
    fn read(&mut self, client: ClientIndex) -> String {
        let output = &mut self.engine.client_mut(client).expect("the client is there").output;
        let bytes = output.ready(u64::MAX).to_vec();
        self.engine.on_sent(client, bytes.len());
        String::from_utf8_lossy(&bytes).replace("\r\n", "|")
    }

    fn say(&mut self, line: &str) -> String {
        self.send(self.me, line)
    }

    /// Commands and their replies, in order.
    fn talk(&mut self, lines: &[(&str, &str)]) {
        for (line, reply) in lines {
            assert_eq!(self.say(line), *reply, "{line}");
        }
        check::check(self.engine.state()).unwrap();
    }

    fn requests(&mut self) -> Vec<Request> {
        self.engine.take_requests()
    }
}
