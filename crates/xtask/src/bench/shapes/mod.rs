//! The shapes of load under which servers are compared, with what is asked of us in each. A new shape is a row in the
//! table of its family.

mod adding;
mod backlog;
mod durable;
mod reading;
mod settling;
mod sizes;
mod waiting;

use std::path::Path;
use std::time::Duration;

use super::{Figure, cpu_time};
use crate::resp::{Address, Client, Value};
use crate::server::Server;

/// What a shape measured: one number for each of its figures, or `None` where the server knows no such thing.
pub type Numbers = Vec<Option<f64>>;

/// A load on a NATS server of that binary, with so many operations.
pub type OnNats = fn(&Path, usize) -> Result<Numbers, String>;

/// One shape.
#[derive(Debug)]
pub struct Shape {
    /// For `--shape`.
    pub name: &'static str,
    /// What it does.
    pub about: &'static str,
    /// What it measures.
    pub figures: &'static [Figure],
    /// How many operations, unless told otherwise: some seconds' worth, so that the clock ticks of the processor
    /// time (10 ms) do not matter.
    pub operations: usize,
    /// What the servers are started with.
    pub arguments: &'static [&'static str],
    /// Whether each round needs a server that has done nothing before.
    pub fresh: bool,
    /// Rounds at most: what repeats to the byte need not be measured often.
    pub rounds_max: usize,
    /// Runs it once on an empty server.
    pub measure: fn(&mut Run<'_>) -> Result<Numbers, String>,
    /// The same on NATS, where there is such a thing.
    pub on_nats: Option<OnNats>,
}

/// Keeps nothing on disk: this measures engines.
const IN_MEMORY: &[&str] = &["--save", "", "--appendonly", "no"];

/// What most shapes have in common.
const PLAIN: Shape = Shape {
    name: "",
    about: "",
    figures: &[],
    operations: 0,
    arguments: IN_MEMORY,
    fresh: false,
    rounds_max: usize::MAX,
    measure: |_| Ok(Vec::new()),
    on_nats: None,
};

/// All shapes, in the order in which they run.
pub fn shapes() -> impl Iterator<Item = &'static Shape> {
    [
        adding::SHAPES,
        reading::SHAPES,
        settling::SHAPES,
        backlog::SHAPES,
        sizes::SHAPES,
        waiting::SHAPES,
        durable::SHAPES,
    ]
    .into_iter()
    .flatten()
}

/// How long a call may take: peers need seconds for what they do not bound.
const PATIENCE: Duration = Duration::from_secs(120);

/// One run of a shape on one server.
pub struct Run<'a> {
    /// The server.
    pub server: &'a mut Server,
    /// Where it is talked to.
    pub address: Address,
    /// How many operations.
    pub operations: usize,
}

impl Run<'_> {
    /// Empties the server and measures.
    ///
    /// # Errors
    /// When anything is not as it should be: a wrong reply makes a number worthless.
    pub fn shape(&mut self, shape: &Shape) -> Result<Numbers, String> {
        if !shape.fresh {
            self.ask(&["FLUSHALL"])?;
        }
        let numbers = (shape.measure)(self).map_err(|e| format!("{}: {e}", shape.name))?;
        if numbers.len() != shape.figures.len() {
            return Err(format!("{}: {} numbers for {} figures", shape.name, numbers.len(), shape.figures.len()));
        }
        Ok(numbers)
    }

    /// A client that waits long.
    fn client(&self) -> Result<Client, String> {
        Client::connect(&self.address, PATIENCE).map_err(|e| e.to_string())
    }

    /// Sends one command on a connection of its own.
    fn ask(&self, words: &[&str]) -> Result<Value, String> {
        match self.client()?.call(words) {
            Ok(reply) if !reply.is_error() => Ok(reply),
            Ok(reply) => Err(format!("{}: {}", words.join(" "), reply.text())),
            Err(error) => Err(format!("{}: {error}", words.join(" "))),
        }
    }

    /// Whether the server knows a command.
    fn knows(&self, command: &str) -> Result<bool, String> {
        Ok(
            matches!(self.ask(&["COMMAND", "INFO", command])?, Value::Array(rows) if matches!(rows[..], [Value::Array(_)])),
        )
    }

    /// A number of INFO.
    fn info(&self, name: &str) -> Result<f64, String> {
        let text = match self.ask(&["INFO", "everything"])? {
            Value::Bulk(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            other => return Err(format!("INFO: {}", other.text())),
        };
        let number = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')?.trim().parse().ok());
        number.ok_or_else(|| format!("INFO has no number {name}"))
    }

    /// The server's processor time for one of so many operations, in microseconds, beside what `work` answers.
    fn cpu_us<T>(&self, operations: usize, work: impl FnOnce() -> Result<T, String>) -> Result<(f64, T), String> {
        let before = cpu_time(self.server.process_id())?;
        let answer = work()?;
        let cpu = cpu_time(self.server.process_id())?.saturating_sub(before);
        Ok((cpu.as_secs_f64() * 1e6 / operations.max(1) as f64, answer))
    }
}

/// Numbers that are all there.
fn all<const N: usize>(numbers: [f64; N]) -> Numbers {
    numbers.into_iter().map(Some).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_have_names_of_their_own_and_figures() {
        let mut names: Vec<&str> = shapes().map(|shape| shape.name).collect();
        names.sort_unstable();
        assert_eq!(names.windows(2).find(|pair| pair[0] == pair[1]), None);
        assert_eq!(shapes().find(|shape| shape.figures.is_empty() || shape.about.is_empty()).map(|s| s.name), None);
    }
}
