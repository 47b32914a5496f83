//! A connection of the worker that is made again when it breaks. All that the worker asks may be asked twice: what was read
//! and did not arrive is pending and found again, what was said of an entry is not said of it a second time.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use super::{Options, Shared, may_pass};
use crate::client::{Address, Connection, Failure, Reply};

/// How long a worker that is to end tries to reach the server.
const LAST_TRIES: Duration = Duration::from_secs(5);

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(250);

/// Added to what a server may take, for commands that wait.
const BLOCK_MS: u64 = super::BLOCK_MS;

pub(super) struct Link {
    address: Address,
    timeout: Duration,
    connection: Option<Connection>,
    /// How often one was made.
    opened: u64,
    shared: Option<Arc<Shared>>,
}

impl Link {
    pub fn new(options: &Options, shared: Option<Arc<Shared>>) -> Link {
        Link { address: options.address.clone(), timeout: options.timeout, connection: None, opened: 0, shared }
    }

    /// How often a connection was made. Where it rises a reply was lost.
    pub fn opened(&self) -> u64 {
        self.opened
    }

    fn try_ask(&mut self, words: &[&str]) -> Result<Reply, Failure> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => {
                let opened = none.insert(Connection::open(&self.address, self.timeout)?);
                self.opened += 1;
                opened
            }
        };
        let reply = connection.ask_waiting(words, BLOCK_MS);
        if reply.is_err() {
            self.connection = None;
        }
        reply
    }

    /// Asks once.
    pub fn ask_once(&mut self, words: &[&str]) -> Result<Reply, String> {
        self.try_ask(words).map_err(|failure| format!("{}: {failure}", self.address))
    }

    /// Asks until there is a reply, or the worker is to end and the server cannot be reached.
    pub fn ask(&mut self, words: &[&str]) -> Result<Reply, String> {
        let mut failed = None::<Instant>;
        loop {
            let failure = match self.try_ask(words) {
                // The server is there, and not ready yet.
                Ok(Reply::Error(text)) if text.starts_with(b"LOADING") => Failure::Refused("LOADING".into()),
                Ok(reply) => return Ok(reply),
                Err(failure) if may_pass(&failure) => failure,
                Err(failure) => return Err(format!("{}: {failure}", self.address)),
            };
            let since = *failed.get_or_insert_with(|| {
                eprintln!("impel work: {}: {failure}; trying again", self.address);
                Instant::now()
            });
            let ends = self.shared.as_ref().is_some_and(|shared| shared.is_stopping());
            let is_over = self.shared.as_ref().is_some_and(|shared| shared.over.load(Ordering::SeqCst));
            if is_over || ends && since.elapsed() >= LAST_TRIES {
                return Err(format!("{}: {failure}", self.address));
            }
            thread::sleep(PAUSE);
        }
    }
}
