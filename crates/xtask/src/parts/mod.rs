//! The parts of `cargo xtask test`, in the order in which they run. A new part is one row in [`PARTS`].
//!
//! A part counts what it checked. It may never pass over something quietly: what cannot run here is a failure that
//! says what is missing, and what waits for a feature stands in an explicit table with its reason.

mod cases;
mod context;
mod crash;
mod programs;
mod sim;
mod soak;
mod workspace;

pub use context::{Context, cargo, run_or_explain};

/// What a part answers: its count, or why it could not be done, which counts as one failure.
pub type Outcome = Result<Tally, String>;

/// How many tests of a part passed and failed, and what to show of the failures.
#[derive(Debug, Default)]
pub struct Tally {
    /// Tests that passed.
    pub passed: usize,
    /// Tests that failed.
    pub failed: usize,
    /// Lines for the reader, shown only when something failed.
    pub report: String,
}

impl Tally {
    /// One check that passed.
    pub fn one() -> Self {
        Tally { passed: 1, ..Tally::default() }
    }
}

/// One part.
pub struct Part {
    /// For `--only`.
    pub name: &'static str,
    /// What it checks.
    pub about: &'static str,
    /// Runs it.
    pub run: fn(&Context) -> Outcome,
}

const fn part(name: &'static str, about: &'static str, run: fn(&Context) -> Outcome) -> Part {
    Part { name, about, run }
}

/// Every part. Those that need the server, Python or Node bring that about themselves when they run alone.
pub const PARTS: &[Part] = &[
    part("format", "cargo fmt --check", workspace::format),
    part("lints", "cargo clippy, warnings are errors", workspace::lints),
    part("unit", "cargo test: unit, property and simulation tests, house rules", workspace::unit),
    part("server", "the server, built with assertions", |context| context.server().map(|_| Tally::one())),
    part("redis-tools", "redis-cli and redis-benchmark are there", |context| {
        context.redis_tools().map(|()| Tally::one())
    }),
    part("python", "Python with redis-py, and the servers we compare with", |context| {
        context.python().map(|_| Tally::one())
    }),
    part("node", "Node with ioredis and node-redis", |context| context.node_modules().map(|_| Tally::one())),
    part("golden-tcp", "golden cases over TCP, nothing kept on disk", cases::golden_tcp),
    part("golden-unix", "golden cases over a unix socket, everything kept on disk", cases::golden_unix),
    part("field", "field cases; reload is kill -9 and a restart", cases::field),
    part("crash", "kill -9 under load: what was acknowledged is kept", crash::crash),
    part("sim", "whole lives in virtual time: crashes, faults, every reply right and none lost", sim::sim),
    part("soak", "some seconds of work with restarts: every entry accounted for", soak::soak),
    part("players", "the players give the known results on Redis 8.2.3", cases::players),
    part("compat", "random commands to the server and to Redis 8.2.3, replies compared", cases::compat),
    part("redis-cli", "redis-cli and redis-benchmark against the server", programs::redis_cli),
    part("redis-py", "redis-py against the server", programs::redis_py),
    part("ioredis", "ioredis against the server", programs::ioredis),
    part("node-redis", "node-redis against the server", programs::node_redis),
    part("redis-rs", "the redis crate against the server", programs::redis_rs),
    part("positions", "scenario: delivery positions of groups", programs::positions),
    part("lag", "scenario: lag and pending", programs::lag),
    part("claims", "scenario: a claim is not completion", programs::claims),
    part("work", "scenario: the pending list as work in progress", programs::work),
    part("laboratory", "scenario: the published laboratory, where its text is at hand", programs::laboratory),
    part("shapes", "every shape of the benchmark, run tiny", programs::shapes),
    part("growth", "every operation of the growth benchmark, run tiny", programs::growth),
];

/// The count in the last line of a test program, `N passed, N failed`.
pub fn parse_tally(output: &str) -> Option<(usize, usize)> {
    let (passed, failed) = output.trim_end().lines().last()?.split_once(" passed, ")?;
    Some((passed.parse().ok()?, failed.strip_suffix(" failed")?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_names_are_unique() {
        let mut names: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
        names.sort_unstable();
        assert_eq!(names.windows(2).find(|pair| pair[0] == pair[1]), None);
    }

    #[test]
    fn only_an_exact_last_line_counts() {
        assert_eq!(parse_tally("x\n3 passed, 1 failed\n"), Some((3, 1)));
        for output in
            ["", "3 passed, 1 failed\nmore", "3 passed", "a passed, 1 failed", "3 passed, 1 failed, 0 skipped"]
        {
            assert_eq!(parse_tally(output), None, "{output:?}");
        }
    }
}
