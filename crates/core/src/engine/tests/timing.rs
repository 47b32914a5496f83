//! How long commands take, on a clock that goes on as the test says: nothing that takes long is missed, and nothing else
//! costs a look at the clock.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use super::{Facts, Host, START_MS, Saving, World};

/// A clock. Each look at its tick comes after so much of `passing` has passed.
#[derive(Default)]
struct Clock {
    us: Cell<u64>,
    passing_us: RefCell<VecDeque<u64>>,
    reads: Cell<u64>,
    /// What passes between two reads.
    step_us: Cell<u64>,
}

/// How often its tick moves on.
const TICK_US: u64 = 4000;

impl Host for Clock {
    fn info(&self, _: &str, _: &mut Vec<u8>) {}

    fn ticked_us(&self) -> u64 {
        self.us.set(self.us.get() + self.passing_us.borrow_mut().pop_front().unwrap_or(0));
        self.us.get() / TICK_US * TICK_US
    }

    fn saving(&self) -> Saving {
        Saving::default()
    }

    fn random(&self, _: &mut [u8]) {}

    fn read_acl_file(&self, _: &str) -> Result<Vec<u8>, String> {
        Err(String::new())
    }

    fn write_acl_file(&self, _: &str, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

impl Clock {
    fn read(&self) -> u64 {
        self.reads.set(self.reads.get() + 1);
        self.us.set(self.us.get() + self.step_us.get());
        self.us.get()
    }

    /// Lets a client send these lines at once; answers how often the clock was read.
    fn run(&self, world: &mut World, lines: &str) -> u64 {
        let before = self.reads.get();
        let read = || self.read();
        let facts = Facts { now_ms: START_MS, now_us: START_MS * 1000, used_memory: 1, elapsed_us: &read, host: self };
        world.engine.feed(world.me, lines.as_bytes(), &facts);
        world.read(world.me);
        self.reads.get() - before
    }
}

/// Calls and microseconds of a command.
fn counts(world: &World, name: &str) -> (u64, u64) {
    let found = world.engine.statistics.commands_called().find(|counts| counts.name == name);
    found.map_or((0, 0), |counts| (counts.calls, counts.took_us))
}

/// A world in which `xack` was called so often that further calls are only sampled, and the microseconds that it took.
fn acked(clock: &Clock, calls: usize) -> World {
    let mut world = World::new();
    clock.run(&mut world, "xgroup create s g 0 mkstream\r\n");
    clock.run(&mut world, &"xack s g 1-1\r\n".repeat(calls));
    world
}

#[test]
fn a_rare_fast_command_is_measured() {
    let clock = Clock::default();
    let mut world = acked(&clock, 1);
    clock.step_us.set(162_000);
    clock.run(&mut world, "xack s g range - +\r\n");
    assert_eq!(counts(&world, "xack"), (2, 162_000));
    assert_eq!(world.engine.slow_log.commands[0].took_us, 162_000);
    assert_eq!(world.engine.slow_log.commands[0].args[3], b"range");
}

#[test]
fn of_frequent_ones_those_that_take_long_and_samples() {
    let clock = Clock::default();
    clock.step_us.set(2);
    let mut world = acked(&clock, 64);
    assert_eq!(counts(&world, "xack"), (64, 128));
    // Neither measured, nor long: no look at the clock.
    assert_eq!(clock.run(&mut world, &"xack s g 1-1\r\n".repeat(20)), 0);
    // The second of two takes long. The batch looks at the tick, and each command.
    *clock.passing_us.borrow_mut() = VecDeque::from([0, 1, 162_000]);
    clock.run(&mut world, "xack s g 2-1\r\nxack s g range - +\r\n");
    let [slow] = Vec::from(world.engine.slow_log.commands.clone()).try_into().expect("one is slow");
    assert_eq!(slow.args[3], b"range");
    assert!((162_000..162_000 + TICK_US).contains(&slow.took_us), "{}", slow.took_us);
    let (calls, took_us) = counts(&world, "xack");
    assert_eq!((calls, took_us), (86, 128 + slow.took_us));
    // A tick between is no sign of a long one, nor is time that passes between batches.
    *clock.passing_us.borrow_mut() = VecDeque::from([50_000, 3, 5000, 5000, 0]);
    clock.run(&mut world, &"xack s g 1-1\r\n".repeat(4));
    assert_eq!((world.engine.slow_log.commands.len(), counts(&world, "xack")), (1, (90, took_us)));
    // Each sample stands for 61: the calls after 122 and 183.
    assert_eq!(clock.run(&mut world, &"xack s g 1-1\r\n".repeat(100)), 4);
    assert_eq!(counts(&world, "xack"), (190, took_us + 2 * 61 * 2));
}

#[test]
fn who_wants_to_see_shorter_ones_sees_all_of_them() {
    let clock = Clock::default();
    let mut world = acked(&clock, 100);
    world.say("config set slowlog-log-slower-than 5 slowlog-max-len 1000");
    clock.step_us.set(5);
    assert_eq!(clock.run(&mut world, &"xack s g 1-1\r\n".repeat(30)), 60);
    assert_eq!((world.engine.slow_log.commands.len(), counts(&world, "xack")), (30, (130, 150)));
    world.say("config set slowlog-log-slower-than -1");
    assert_eq!(clock.run(&mut world, &"xack s g 1-1\r\n".repeat(30)), 0);
}

/// What a script does between its commands is not taken for theirs.
#[test]
fn a_script_is_measured_as_a_whole() {
    let clock = Clock::default();
    let mut world = acked(&clock, 70);
    // Looks: the batch; in the script twice before each command and once behind it.
    *clock.passing_us.borrow_mut() = VecDeque::from([0, 50_000, 0, 50_000, 0]);
    let line = "eval \"redis.call('xack','s','g','1-1') return redis.call('xack','s','g','1-1')\" 0\r\n";
    clock.run(&mut world, line);
    assert_eq!(counts(&world, "xack"), (72, 0));
    let [slow] = Vec::from(world.engine.slow_log.commands.clone()).try_into().expect("one is slow");
    assert_eq!(slow.args[0], b"eval");
}
