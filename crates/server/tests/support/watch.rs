//! What others notice while someone misbehaves: a bystander that asks PING all the time, and the server's memory.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::{Reply, Server};

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(3);

pub const MIB: u64 = 1 << 20;

/// RAM of the server's process.
pub fn rss_bytes(server: &Server) -> u64 {
    rss_of(server.child.id())
}

fn rss_of(process: u32) -> u64 {
    let statm = fs::read_to_string(format!("/proc/{process}/statm")).unwrap();
    let pages: u64 = statm.split_ascii_whitespace().nth(1).unwrap().parse().unwrap();
    pages * rustix::param::page_size() as u64
}

/// A number in INFO.
pub fn info(server: &Server, name: &str) -> u64 {
    super::info(&mut server.client(), name).trim().parse().unwrap()
}

/// Waits until something is so.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Watches a server from now on. That the bystander is answered is asserted (its client waits as long as any here), not how
/// fast: what it took is printed.
pub struct Watch {
    name: &'static str,
    over: Arc<AtomicBool>,
    bystander: Option<JoinHandle<(u64, Duration)>>,
    measurer: Option<JoinHandle<()>>,
    before_bytes: u64,
    peak_bytes: Arc<AtomicU64>,
}

impl Watch {
    pub fn begin(name: &'static str, server: &Server) -> Watch {
        let over = Arc::new(AtomicBool::new(false));
        let (port, process, before_bytes) = (server.port, server.child.id(), rss_bytes(server));
        let peak_bytes = Arc::new(AtomicU64::new(before_bytes));
        // Before anyone misbehaves: later there may be no place.
        let mut client = super::Client::tcp(port);
        let (ends, peak) = (over.clone(), peak_bytes.clone());
        let bystander = thread::spawn(move || {
            let (mut answers, mut longest) = (0, Duration::ZERO);
            // What is watched may be over before it began.
            while answers == 0 || !ends.load(Ordering::Relaxed) {
                let begun = Instant::now();
                assert_eq!(client.ask(&["PING"]), Reply::Simple("PONG".into()));
                (answers, longest) = (answers + 1, longest.max(begun.elapsed()));
                thread::sleep(PAUSE);
            }
            (answers, longest)
        });
        let ends = over.clone();
        let measurer = thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                peak.fetch_max(rss_of(process), Ordering::Relaxed);
                thread::sleep(PAUSE);
            }
        });
        Watch { name, over, bystander: Some(bystander), measurer: Some(measurer), before_bytes, peak_bytes }
    }

    /// By how much the memory has grown at most so far.
    pub fn grown_bytes(&self) -> u64 {
        self.peak_bytes.load(Ordering::Relaxed) - self.before_bytes
    }

    /// The bystander was answered throughout, and the memory never grew by more than so much.
    pub fn end(mut self, grown_max_bytes: u64) {
        self.over.store(true, Ordering::Relaxed);
        let (answers, longest) = self.bystander.take().unwrap().join().expect("a bystander was not answered");
        self.measurer.take().unwrap().join().unwrap();
        let grown_bytes = self.grown_bytes();
        println!(
            "{}: memory grew by {:.1} MiB at most; {answers} PINGs of another client answered, the slowest after {:.1} ms",
            self.name,
            grown_bytes as f64 / MIB as f64,
            longest.as_secs_f64() * 1000.0
        );
        assert!(grown_bytes <= grown_max_bytes, "{}: {grown_bytes} bytes are more than {grown_max_bytes}", self.name);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}
