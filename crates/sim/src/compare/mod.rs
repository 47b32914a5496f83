//! The engine beside the model: the same steps for both, every reply compared byte for byte, every invariant checked
//! after every step, and the state taken through snapshots and the log on the way.
//!
//! Time is virtual, the engine is in this process, and nothing depends on anything but the steps and the setup.

use impel_core::check::{self, Digest};
use impel_core::engine::Engine;
use impel_core::engine::blocked::ClientIndex;
use impel_core::engine::facts::{Facts, Host, Saving};
use impel_core::record::Record;
use impel_core::settings::Settings;
use impel_core::snapshot;
use impel_core::state::codec::Reader;
use impel_core::state::keyspace::Captured;

use crate::model::{Lag, Model};
use crate::random::Random;
use crate::shrink::shrink;
use crate::workload::{Generator, NODE_MAX, Profile, START_MS, Step};

#[cfg(test)]
mod tests;

/// What a sequence is played on.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Which clients speak RESP3.
    pub resp3: [bool; 3],
    /// How lag is told.
    pub lag: Lag,
    /// Commands that the engine never gets, though the model does: for proving that a fault is found.
    pub lose: fn(&[Vec<u8>]) -> bool,
}

impl Setup {
    /// The setup that goes with a seed.
    pub fn of(seed: u64) -> Self {
        let mut random = Random::new(!seed);
        let lag = if random.chance(50) { Lag::Exact } else { Lag::Compat };
        Setup { resp3: [random.chance(50), random.chance(50), random.chance(50)], lag, lose: |_| false }
    }
}

/// What went wrong.
#[derive(Debug)]
pub struct Failure {
    /// At which step.
    pub step: usize,
    /// And what.
    pub what: String,
}

/// Plays a seed's sequence; answers how many commands were compared.
///
/// # Errors
/// The story of the first failure, with a short script.
pub fn play_seed(seed: u64, steps: usize, setup: &Setup) -> Result<usize, String> {
    let steps = Generator::new(seed, Profile::SIMULATED).steps(steps);
    let failure = match play(&steps, setup) {
        Ok(commands) => return Ok(commands),
        Err(failure) => failure,
    };
    let short = shrink(&steps[..=failure.step], Step::words_mut, |candidate| play(candidate, setup).is_err());
    let failure = play(&short, setup).err().unwrap_or(failure);
    let script: Vec<String> = short.iter().map(Step::to_string).collect();
    Err(format!("seed {seed}, {setup:?}\n{}\n{}", script.join("\n"), failure.what))
}

/// The process, which has nothing to tell.
pub(crate) struct Process;

impl Host for Process {
    fn info(&self, _: &str, _: &mut Vec<u8>) {}

    fn saving(&self) -> Saving {
        Saving::default()
    }

    fn random(&self, _: &mut [u8]) {}

    fn read_acl_file(&self, _: &str) -> Result<Vec<u8>, String> {
        Err("there are no files here".into())
    }

    fn write_acl_file(&self, _: &str, _: &[u8]) -> Result<(), String> {
        Err("there are no files here".into())
    }
}

fn new_engine(lag: Lag) -> Engine {
    let mut settings = Settings::default();
    let lag = if lag == Lag::Exact { "exact" } else { "compat" };
    for (name, value) in [("stream-node-max-entries", NODE_MAX.to_string().as_str()), ("stream-lag", lag)] {
        settings.apply(name.as_bytes(), &[value]).expect("settings there are");
    }
    Engine::new(settings, 7)
}

/// A snapshot on its way.
struct Slow {
    digest: Digest,
    taken: Vec<u8>,
}

struct World {
    engine: Engine,
    setup: Setup,
    model: Model,
    clients: Vec<ClientIndex>,
    records: Vec<u8>,
    slow: Option<Slow>,
    commands: usize,
}

/// Plays steps on a new engine and a new model; answers how many commands were compared.
///
/// # Errors
/// The first step after which they differ, or an invariant does not hold.
pub fn play(steps: &[Step], setup: &Setup) -> Result<usize, Failure> {
    let mut world = World {
        engine: new_engine(setup.lag),
        setup: *setup,
        model: Model::new(START_MS, NODE_MAX, setup.lag),
        clients: Vec::new(),
        records: Vec::new(),
        slow: None,
        commands: 0,
    };
    world.model.resp3 = setup.resp3.to_vec();
    world.engine.log.enable(0);
    world.connect();
    for (at, step) in steps.iter().enumerate() {
        world.step(step).map_err(|what| Failure { step: at, what })?;
    }
    world.replay().map_err(|what| Failure { step: steps.len().saturating_sub(1), what })?;
    Ok(world.commands)
}

pub(crate) fn encode(words: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n", word.len()).into_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

impl World {
    fn turn<T>(&mut self, what: impl FnOnce(&mut Engine, &Facts<'_>) -> T) -> T {
        let now_ms = self.model.now;
        let facts = Facts { now_ms, now_us: now_ms * 1000, used_memory: 0, elapsed_us: &|| 0, host: &Process };
        what(&mut self.engine, &facts)
    }

    fn connect(&mut self) {
        self.clients.clear();
        for number in 0..self.setup.resp3.len() {
            let index = self.engine.open(format!("10.0.0.1:{number}"), "10.0.0.9:6379".into(), self.model.now);
            self.clients.push(index);
            if self.setup.resp3[number] {
                self.turn(|engine, facts| engine.feed(index, b"HELLO 3\r\n", facts));
                self.received(number);
            }
        }
    }

    fn received(&mut self, client: usize) -> Vec<u8> {
        let output = &mut self.engine.client_mut(self.clients[client]).expect("it stays open").output;
        let bytes = output.ready(u64::MAX).to_vec();
        self.engine.on_sent(self.clients[client], bytes.len());
        bytes
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        let mut lost = None;
        let replies = match step {
            // What stands behind a read that waits would only wait as well.
            Step::Command { client, .. } if self.model.waits(*client) => Vec::new(),
            Step::Command { client, words } => {
                self.commands += 1;
                if (self.setup.lose)(words) {
                    lost = Some(*client);
                } else {
                    let (index, bytes) = (self.clients[*client], encode(words));
                    self.turn(|engine, facts| engine.feed(index, &bytes, facts));
                }
                self.model.command(*client, words)
            }
            Step::Pass { ms, tick } => {
                let waits = (0..self.clients.len()).any(|client| self.model.waits(client));
                let replies = self.model.pass(*ms, *tick);
                if *tick || waits {
                    self.turn(|engine, facts| engine.tick(facts));
                }
                replies
            }
            Step::SlowSnapshot => {
                if self.slow.is_none() {
                    self.slow = Some(Slow { digest: check::exact_digest(self.engine.state()), taken: Vec::new() });
                    self.engine.snapshot_begin();
                }
                Vec::new()
            }
            Step::Restart => {
                self.restart()?;
                Vec::new()
            }
            Step::Replay => {
                self.replay()?;
                Vec::new()
            }
        };
        for client in 0..self.clients.len() {
            let of = replies.iter().filter(|(whose, _)| *whose == client);
            let wanted = of.map(|(_, value)| value.encode(self.setup.resp3[client])).collect::<Vec<_>>().concat();
            let got = self.received(client);
            if got != wanted && lost != Some(client) {
                return Err(format!(
                    "client {client} was to get\n  {}\nbut got\n  {}",
                    wanted.escape_ascii(),
                    got.escape_ascii()
                ));
            }
        }
        check::check(self.engine.state())?;
        if let Some(client) = self.model.overlooked() {
            return Err(format!("client {client} waits, though it could be served"));
        }
        self.engine.free_one();
        self.go_on_with_snapshot()?;
        self.take_records();
        Ok(())
    }

    fn take_records(&mut self) {
        let mut bytes = Vec::new();
        self.engine.log.take(&mut bytes);
        self.records.extend(bytes);
    }

    fn go_on_with_snapshot(&mut self) -> Result<(), String> {
        let Some(slow) = &mut self.slow else { return Ok(()) };
        let (keys, done) = self.engine.snapshot_continue(1);
        keys.iter().for_each(|key| snapshot::encode(key, &mut slow.taken));
        if !done {
            return Ok(());
        }
        let Slow { digest, taken } = self.slow.take().expect("just looked at");
        let engine = self.restored(&taken)?;
        if check::exact_digest(engine.state()) != digest {
            return Err("a slow snapshot does not hold the state at its begin".into());
        }
        Ok(())
    }

    fn restored(&self, taken: &[u8]) -> Result<Engine, String> {
        let mut engine = new_engine(self.setup.lag);
        let mut reader = Reader::new(taken);
        while !reader.is_empty() {
            let key: Captured = snapshot::decode(&mut reader).map_err(|e| format!("a snapshot is corrupt: {e:?}"))?;
            engine.restore(key, 0);
        }
        check::check(engine.state()).map_err(|why| format!("after a snapshot: {why}"))?;
        Ok(engine)
    }

    fn restart(&mut self) -> Result<(), String> {
        self.take_records();
        self.engine.snapshot_abort();
        self.slow = None;
        let digest = check::exact_digest(self.engine.state());
        self.engine.snapshot_begin();
        let mut taken = Vec::new();
        loop {
            let (keys, done) = self.engine.snapshot_continue(2);
            keys.iter().for_each(|key| snapshot::encode(key, &mut taken));
            if done {
                break;
            }
        }
        self.engine = self.restored(&taken)?;
        if check::exact_digest(self.engine.state()) != digest {
            return Err("a snapshot does not hold the state".into());
        }
        self.engine.log.enable(self.records.len() as u64);
        self.model.disconnect_all();
        self.connect();
        Ok(())
    }

    fn replay(&mut self) -> Result<(), String> {
        self.take_records();
        let mut engine = new_engine(self.setup.lag);
        let mut reader = Reader::new(&self.records);
        while !reader.is_empty() {
            let record = Record::decode(&mut reader).map_err(|e| format!("a record is corrupt: {e:?}"))?;
            engine.replay(&record, 0);
        }
        check::check(engine.state()).map_err(|why| format!("after a replay: {why}"))?;
        if check::exact_digest(engine.state()) != check::exact_digest(self.engine.state()) {
            return Err("replaying all records does not make the same state".into());
        }
        Ok(())
    }
}
