//! A long stretch of ordinary work: producers, groups of consumers that die and are claimed from, trimming in three ways,
//! snapshots, and a server that is killed and started again at random. At the end every entry is accounted for, and neither
//! memory nor disk have grown.
//!
//! What the load does follows from the seed; when the kills strike does not. A check is never left out because something else
//! went wrong.

mod ledger;
mod samples;
mod workers;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::crash::{Random, field, int, items};
use crate::resp::Client;
use crate::server::Server;
use ledger::{GROUPS, Ledger, Totals};
use samples::{Number, Sample, Trend};
use workers::{KEPT, Keeping, Shared, Stream};

/// Consumers of each group.
const CONSUMERS: u64 = 2;
/// A group gets through its backlog in this time, or it never will.
const DRAIN: Duration = Duration::from_secs(90);
/// Of 100 times that the server is taken away, so often it is asked to end.
const TERM_PERCENT: u64 = 20;
/// Memory and disk may be above their first quarter by this share of it …
const GROWTH_SHARE: f64 = 0.25;
/// … and by so many MiB besides, which is what the allocator and one segment of the log come to.
const GROWTH_MIB: f64 = 24.0;

/// What to do.
#[derive(Debug)]
pub struct Options {
    /// The server's binary.
    pub binary: PathBuf,
    /// How long the load lasts.
    pub duration: Duration,
    /// Entries a second, all streams together.
    pub rate: u64,
    /// The seed of the load.
    pub seed: u64,
    /// Where the JSON and the drawing go; `None`: nowhere.
    pub folder: Option<PathBuf>,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Report {
    /// Checks that passed.
    pub passed: usize,
    /// What is wrong; each a line.
    pub faults: Vec<String>,
}

impl Report {
    fn check(&mut self, is_fine: bool, fault: impl FnOnce() -> String) {
        if is_fine {
            self.passed += 1;
        } else {
            self.faults.push(fault());
        }
    }
}

/// Works for as long as the options say; what is worth reading is written to `out`.
///
/// # Errors
/// When the server does not start, or does not come back.
pub fn play(options: &Options, out: &mut dyn Write) -> Result<Report, String> {
    let arguments = ["--appendonly", "yes", "--appendfsync", "always", "--save", "", "--log-segment-bytes", "4mb"];
    let mut server = Server::start(&options.binary, &arguments)?;
    let streams = [("retained", Keeping::Retain), ("trimmed", Keeping::Acked), ("newest", Keeping::Newest)];
    let streams = streams.map(|(key, keeping)| Stream {
        key: key.to_owned(),
        keeping,
        ledger: Ledger::new(key.to_owned(), (keeping == Keeping::Newest).then_some(KEPT)),
    });
    let shared = Shared {
        address: server.address(),
        rate: (options.rate / streams.len() as u64).max(1),
        streams: streams.into(),
        seed: options.seed,
        taken: AtomicU64::new(0),
        adding_is_over: AtomicBool::new(false),
        is_over: AtomicBool::new(false),
        latencies_us: Mutex::default(),
        deaths: AtomicU64::new(0),
    };
    prepare(&server, &shared)?;
    let mut watch =
        Watch { begun: Instant::now(), samples: Vec::new(), restarts_s: Vec::new(), snapshots: 0, before: [0; 2] };
    let mut report = Report::default();
    let played = thread::scope(|scope| {
        for number in 0..shared.streams.len() {
            let shared = &shared;
            scope.spawn(move || workers::produce(shared, number));
            for group in 0..GROUPS {
                (0..CONSUMERS).for_each(|place| {
                    scope.spawn(move || workers::consume(shared, number, group, place));
                });
                scope.spawn(move || workers::claim(shared, number, group));
            }
        }
        let played = watch.load(options, &mut server, &shared).and_then(|()| {
            shared.adding_is_over.store(true, Ordering::SeqCst);
            drain(&server, &shared, &mut report)
        });
        shared.adding_is_over.store(true, Ordering::SeqCst);
        shared.is_over.store(true, Ordering::SeqCst);
        played
    });
    played?;
    judge(options, &shared, &watch, &mut report, out)?;
    let mut client = server.client().map_err(|e| server.complaint(&e.to_string()))?;
    look_at_streams(&mut client, &shared, &mut report)?;
    Ok(report)
}

fn prepare(server: &Server, shared: &Shared) -> Result<(), String> {
    let mut client = server.client().map_err(|e| e.to_string())?;
    let mut ask = |words: &[&str]| crate::crash::ask(&mut client, words).map(|_| ());
    for stream in &shared.streams {
        for group in 0..GROUPS {
            ask(&["XGROUP", "CREATE", &stream.key, &workers::group_name(group), "0", "MKSTREAM"])?;
        }
        if stream.keeping == Keeping::Retain {
            ask(&["XCFGSET", &stream.key, "RETAIN", "acked"])?;
        }
    }
    Ok(())
}

/// What is seen from beside the load.
struct Watch {
    begun: Instant,
    samples: Vec<Sample>,
    restarts_s: Vec<f64>,
    snapshots: u64,
    before: [u64; 2],
}

impl Watch {
    fn at_s(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// Takes samples and snapshots, and the server away, until the time is over.
    fn load(&mut self, options: &Options, server: &mut Server, shared: &Shared) -> Result<(), String> {
        let mut random = Random::part(options.seed, 1);
        let whole = options.duration;
        let step = (whole / 300).clamp(Duration::from_millis(150), Duration::from_secs(2));
        // Between a tenth and a fifth of the whole, but not more often than a server takes to come back, nor less than each minute.
        let mut pause = |least: f64| {
            let mean = (whole.as_secs_f64() * least).clamp(0.7, 45.0);
            Duration::from_secs_f64(mean * random.between(60, 140) as f64 / 100.0)
        };
        let (mut snapshot_at, mut kill_at) = (pause(0.08), pause(0.18));
        let mut random = Random::part(options.seed, 2);
        let mut last = Instant::now();
        while self.begun.elapsed() < whole {
            thread::sleep(step);
            let elapsed = last.elapsed();
            last = Instant::now();
            self.sample(elapsed, server, shared);
            if self.begun.elapsed() > snapshot_at {
                snapshot_at = self.begun.elapsed() + pause(0.08);
                // One may be running.
                if server.client().and_then(|mut client| client.call(&["BGSAVE"])).is_ok_and(|reply| !reply.is_error())
                {
                    self.snapshots += 1;
                }
            }
            if self.begun.elapsed() > kill_at {
                kill_at = self.begun.elapsed() + pause(0.18);
                self.restarts_s.push(self.at_s());
                // Said before and after: connections may be made in between.
                shared.taken.fetch_add(1, Ordering::SeqCst);
                if random.chance(TERM_PERCENT) {
                    let status = server.terminate()?;
                    if !status.success() {
                        return Err(server.complaint(&format!("SIGTERM: {status}")));
                    }
                } else {
                    server.kill_now()?;
                }
                shared.taken.fetch_add(1, Ordering::SeqCst);
                server.start_again()?;
                server.await_answer()?;
                last = Instant::now();
                self.before = counts(shared);
            }
        }
        Ok(())
    }

    fn sample(&mut self, elapsed: Duration, server: &Server, shared: &Shared) {
        let now = counts(shared);
        let per_s = |place: usize| now[place].saturating_sub(self.before[place]) as f64 / elapsed.as_secs_f64();
        let mut latencies = std::mem::take(&mut *shared.latencies_us.lock().expect("no holder panics"));
        latencies.sort_unstable();
        let p99 = latencies.get(latencies.len() * 99 / 100).copied().unwrap_or(0);
        self.samples.push(Sample {
            at_s: self.at_s(),
            added_per_s: per_s(0),
            given_per_s: per_s(1),
            p99_ms: f64::from(p99) / 1000.0,
            rss_mib: rss_mib(server.process_id()),
            disk_mib: size_of_folder(&server.folder()) as f64 / f64::from(1 << 20),
        });
        self.before = now;
    }
}

fn counts(shared: &Shared) -> [u64; 2] {
    let counts = shared.streams.iter().map(|stream| stream.ledger.counts());
    counts.fold([0; 2], |sum, (added, given, _)| [sum[0] + added, sum[1] + given])
}

fn rss_mib(process: u32) -> f64 {
    let statm = fs::read_to_string(format!("/proc/{process}/statm")).unwrap_or_default();
    let pages = statm.split_ascii_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0);
    (pages * rustix::param::page_size() as u64) as f64 / f64::from(1 << 20)
}

fn size_of_folder(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size_of_folder(&entry.path()),
        Ok(metadata) => metadata.len(),
        // Gone meanwhile.
        Err(_) => 0,
    });
    sizes.sum()
}

/// Waits until every group is through with its stream.
fn drain(server: &Server, shared: &Shared, report: &mut Report) -> Result<(), String> {
    let deadline = Instant::now() + DRAIN;
    let mut client = server.client().map_err(|e| server.complaint(&e.to_string()))?;
    loop {
        let mut left = Vec::new();
        for stream in &shared.streams {
            let groups = crate::crash::ask(&mut client, &["XINFO", "GROUPS", &stream.key])?;
            for group in items(&groups)? {
                let (pending, lag) = (int(field(group, "pending")?)?, int(field(group, "lag")?)?);
                if pending + lag > 0 {
                    left.push(format!("{}: {pending} pending, {lag} to come", stream.key));
                }
            }
        }
        if left.is_empty() {
            report.passed += shared.streams.len() * GROUPS;
            return Ok(());
        }
        if Instant::now() > deadline {
            report.faults.extend(left.into_iter().map(|left| format!("a group does not get through: {left}")));
            return Ok(());
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// What is left in the streams: nothing where it is kept until it is acknowledged, few elsewhere.
fn look_at_streams(client: &mut Client, shared: &Shared, report: &mut Report) -> Result<(), String> {
    for stream in &shared.streams {
        let most = match stream.keeping {
            Keeping::Retain => 0,
            // What is trimmed only by whole nodes, and when the next entry comes.
            Keeping::Acked => 1000 + 200 + 20_000,
            Keeping::Newest => KEPT as i64 + 200,
        };
        let length = int(&crate::crash::ask(client, &["XLEN", &stream.key])?)?;
        report.check(length <= most, || format!("{} holds {length} entries, more than {most}", stream.key));
    }
    Ok(())
}

fn judge(
    options: &Options,
    shared: &Shared,
    watch: &Watch,
    report: &mut Report,
    out: &mut dyn Write,
) -> Result<(), String> {
    let mut all = Totals::default();
    let mut rows = Vec::new();
    for stream in &shared.streams {
        let (totals, faults, count) = stream.ledger.settle();
        report.passed += totals.added as usize;
        report.faults.extend(faults.iter().cloned());
        if count > faults.len() {
            report.faults.push(format!("{}: {} faults more", stream.key, count - faults.len()));
        }
        report.check(totals.added > 0, || format!("{}: nothing was added", stream.key));
        for (sum, more) in [
            (&mut all.added, totals.added),
            (&mut all.sent, totals.sent),
            (&mut all.given, totals.given),
            (&mut all.again, totals.again),
            (&mut all.done, totals.done),
            (&mut all.trimmed, totals.trimmed),
        ] {
            *sum += more;
        }
        rows.push(
            json!({"stream": stream.key, "sent": totals.sent, "added": totals.added, "given_as_new": totals.given,
                         "given_again": totals.again, "acknowledged": totals.done, "trimmed_before": totals.trimmed}),
        );
    }
    let deaths = shared.deaths.load(Ordering::Relaxed);
    let mut text = format!(
        "{} restarts, {} snapshots, {deaths} consumers died; {} entries added ({} sent), to {GROUPS} groups each: {} given as \
         new, {} again by claims, {} acknowledged, {} trimmed before as the bound says\n",
        watch.restarts_s.len(),
        watch.snapshots,
        all.added,
        all.sent,
        all.given,
        all.again,
        all.done,
        all.trimmed
    );
    let mut trends = serde_json::Map::new();
    let series: [(&str, Number); 2] = [("RSS", |sample| sample.rss_mib), ("data directory", |sample| sample.disk_mib)];
    for (name, number) in series {
        let Some(trend) = Trend::of(&watch.samples, number) else {
            report.faults.push(format!("{name}: too few moments to tell"));
            continue;
        };
        let [a, b, c, d] = trend.quarters;
        let line = format!("{name}, MiB by quarter: {a:.1} {b:.1} {c:.1} {d:.1}, {:+.1} MiB an hour", trend.per_hour);
        text.push_str(&line);
        text.push('\n');
        trends.insert(name.into(), json!({"quarters_mib": trend.quarters, "mib_per_hour": trend.per_hour}));
        report.check(!trend.grows(GROWTH_SHARE, GROWTH_MIB), || format!("it grows: {line}"));
    }
    out.write_all(text.as_bytes()).map_err(|e| e.to_string())?;
    if let Some(folder) = &options.folder {
        let said = |e: std::io::Error| format!("{}: {e}", folder.display());
        fs::create_dir_all(folder).map_err(said)?;
        let whole = json!({"seed": options.seed, "seconds": options.duration.as_secs(), "rate": options.rate,
            "restarts_s": watch.restarts_s, "snapshots": watch.snapshots, "deaths": deaths, "streams": rows, "trends": trends,
            "faults": report.faults, "samples": samples::to_json(&watch.samples)});
        fs::write(folder.join("soak.json"), format!("{whole:#}\n")).map_err(said)?;
        let title = format!("seed {}, {} s, {} entries added", options.seed, options.duration.as_secs(), all.added);
        fs::write(folder.join("soak.svg"), samples::draw(&title, &watch.samples, &watch.restarts_s)).map_err(said)?;
    }
    Ok(())
}
