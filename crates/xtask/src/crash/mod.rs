//! Kills a server in the middle of its work, again and again on the same data, and checks after each restart that
//! everything it acknowledged is still there.
//!
//! The load and its seed are the same in every run; when exactly the kill strikes is not. Commands that the server does
//! not know are left out. A check may never be left out because something else went wrong: a round that could not be judged
//! has failed.

mod check;
mod command;
mod disk;
mod facts;
mod id;
mod maker;
mod maker_newer;
mod owner;
mod pipeline;
mod random;
mod shared;
mod twin;
mod view;
mod work;

#[cfg(test)]
mod tests;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::resp::{Address, Client};
use crate::server::Server;
use disk::Disk;
use owner::{Abilities, Owner};
use pipeline::Pipeline;
pub(crate) use random::Random;
use shared::Shared;
pub(crate) use view::{ask, field, int, items};
use work::Work;

const OWNERS: u64 = 3;
const PIPELINES: u64 = 2;
/// Percentage of rounds that end by SIGTERM.
const TERM_PERCENT: u64 = 15;
/// Percentage of rounds in which a snapshot is asked for.
const SNAPSHOT_PERCENT: u64 = 40;
/// Percentage of restarts that are killed before they can answer.
const EARLY_KILL_PERCENT: u64 = 30;
/// Percentage of restarts after which the server is killed once more before anything is sent to it.
const SECOND_KILL_PERCENT: u64 = 15;

/// What to do.
#[derive(Debug)]
pub struct Options {
    /// The server's binary.
    pub binary: PathBuf,
    /// `appendfsync`.
    pub fsync: String,
    /// Further arguments for the server.
    pub arguments: Vec<String>,
    /// How many rounds.
    pub rounds: usize,
    /// The seed of the load.
    pub seed: u64,
    /// Against a server that is known to lose counts of history reads and the like: leave those out.
    pub lenient: bool,
    /// Owners look at everything after each command: slow, and finds the command that goes wrong.
    pub each: bool,
    /// Where to keep the data of failed rounds, as they were when the server was killed.
    pub keep: Option<PathBuf>,
}

/// What came of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Rounds without a fault.
    pub passed: usize,
    /// Rounds with one, and those that could not be played after a server that does not come back.
    pub failed: usize,
    /// How often the server was killed.
    pub kills: usize,
    /// How often it was asked to end.
    pub terminations: usize,
    /// Snapshots asked for.
    pub snapshots: usize,
    /// Commands answered.
    pub acknowledged: usize,
    /// Facts compared.
    pub checks: usize,
}

/// Everything that runs against the server in a round.
struct Load {
    owners: Vec<Owner>,
    pipelines: Vec<Pipeline>,
    shared: Shared,
    /// `None` for a server without a ledger.
    work: Option<Work>,
    /// `None` for a server that has no tools for it.
    disk: Option<Disk>,
}

/// Plays all rounds; each failure, with its round and seed, is written to `out`.
///
/// # Errors
/// When the server does not start at all, or `out` cannot be written.
pub fn play(options: &Options, out: &mut dyn Write) -> Result<Report, String> {
    let mut arguments = ["--appendonly", "yes", "--save", "", "--appendfsync"].map(str::to_owned).to_vec();
    arguments.push(options.fsync.clone());
    arguments.extend_from_slice(&options.arguments);
    let mut server = Server::start(&options.binary, &arguments)?;
    let mut client = server.client().map_err(|e| e.to_string())?;
    let abilities = Abilities::of(&mut client, !options.lenient).map_err(|e| e.to_string())?;
    let mut load = Load {
        owners: (0..OWNERS).map(|number| Owner::new(options.seed, number, abilities, options.each)).collect(),
        pipelines: (0..PIPELINES).map(|number| Pipeline::new(options.seed, 1000 + number)).collect(),
        shared: Shared::new(options.seed),
        work: Work::is_known(&mut client).map_err(|e| e.to_string())?.then(|| Work::new(options.seed)),
        disk: Disk::of(&options.binary)?,
    };
    load.shared.prepare(&mut client)?;
    load.work.iter_mut().try_for_each(|work| work.prepare(&mut client))?;
    drop(client);
    let mut report = Report::default();
    for round in 1..=options.rounds {
        let mut random = Random::part(options.seed, 10_000 + round as u64);
        let kept = options.keep.as_ref().map(|folder| folder.join(format!("seed-{}-round-{round}", options.seed)));
        let outcome = play_round(&mut server, &mut load, &mut random, kept.as_deref(), &mut report);
        let (faults, is_up) = match outcome {
            Ok(faults) => (faults, true),
            Err(fault) => (vec![fault], false),
        };
        if faults.is_empty() {
            report.passed += 1;
            if let Some(folder) = &kept {
                remove(folder)?;
            }
            continue;
        }
        report.failed += 1;
        let kept = kept.map(|folder| format!(" (data at the kill: {})", folder.display())).unwrap_or_default();
        let mut text = format!("FAIL round {round}, seed {}{kept}\n", options.seed);
        faults.iter().flat_map(|fault| fault.lines()).for_each(|line| text.push_str(&format!("  {line}\n")));
        if !is_up {
            report.failed += options.rounds - round;
            text.push_str("  the rounds after it cannot be played and count as failed\n");
        }
        out.write_all(text.as_bytes()).map_err(|e| e.to_string())?;
        if !is_up {
            break;
        }
    }
    let owners = load.owners.iter().map(|owner| owner.acknowledged).sum::<usize>();
    let pipelines = load.pipelines.iter().map(|pipeline| pipeline.answers).sum::<usize>();
    let worked = load.work.as_ref().map_or(0, |work| work.answers);
    report.acknowledged = owners + pipelines + load.shared.answers + worked;
    Ok(report)
}

/// One round; what is wrong after it. An error when the server does not come back, or ends without being told to.
fn play_round(
    server: &mut Server,
    load: &mut Load,
    random: &mut Random,
    kept: Option<&Path>,
    report: &mut Report,
) -> Result<Vec<String>, String> {
    let (tcp, unix) = (server.address(), Address::Unix(server.socket()));
    let lifetime = Duration::from_millis(random.between(20, 400));
    let snapshot = random.chance(SNAPSHOT_PERCENT).then(|| {
        let command = if random.chance(50) { "BGSAVE" } else { "BGREWRITEAOF" };
        (command, lifetime.mul_f64(random.below(100) as f64 / 100.0))
    });
    let gently = random.chance(TERM_PERCENT);
    let killed = AtomicBool::new(false);
    let mut faults = Vec::new();
    let ended = thread::scope(|scope| {
        let (tcp, unix, killed) = (&tcp, &unix, &killed);
        for owner in &mut load.owners {
            scope.spawn(move || owner.drive(tcp, killed));
        }
        for pipeline in &mut load.pipelines {
            scope.spawn(move || pipeline.drive(unix, killed));
        }
        let shared = &mut load.shared;
        scope.spawn(move || shared.drive(tcp, killed));
        if let Some(work) = &mut load.work {
            scope.spawn(move || work.drive(tcp, killed));
        }
        if let Some((command, after)) = snapshot {
            scope.spawn(move || {
                thread::sleep(after);
                // Whatever it answers: one may be running, or the server be gone by now.
                let _either_way =
                    Client::connect(tcp, owner::REPLY_WAIT).and_then(|mut client| client.call(&[command]));
            });
        }
        thread::sleep(lifetime);
        killed.store(true, Ordering::SeqCst);
        if gently {
            server.terminate().and_then(|status| {
                if status.success() { Ok(()) } else { Err(server.complaint(&format!("SIGTERM: {status}"))) }
            })
        } else {
            server.kill_now()
        }
    });
    // It is restarted all the same: what it kept is the more important question.
    faults.extend(ended.err());
    report.snapshots += usize::from(snapshot.is_some());
    *(if gently { &mut report.terminations } else { &mut report.kills }) += 1;
    if let Some(folder) = kept {
        copy_folder(&server.folder(), folder)?;
    }
    if let Some(disk) = &load.disk {
        match disk.judge(&server.folder()) {
            Ok(checks) => report.checks += checks,
            Err(fault) => faults.push(fault),
        }
    }
    server.start_again()?;
    while random.chance(EARLY_KILL_PERCENT) {
        thread::sleep(Duration::from_micros(random.below(40_000)));
        server.kill_now()?;
        report.kills += 1;
        server.start_again()?;
    }
    server.await_answer()?;
    if random.chance(SECOND_KILL_PERCENT) {
        server.kill_now()?;
        report.kills += 1;
        server.start_again()?;
        server.await_answer()?;
    }
    let mut client = server.client().map_err(|e| server.complaint(&e.to_string()))?;
    let mut note = |outcome: Result<usize, String>| match outcome {
        Ok(checks) => report.checks += checks,
        Err(fault) => faults.push(fault),
    };
    load.owners.iter_mut().for_each(|owner| note(owner.check(&mut client)));
    load.pipelines.iter_mut().for_each(|pipeline| note(pipeline.check(&mut client)));
    note(load.shared.check(&mut client));
    load.work.iter_mut().for_each(|work| note(work.check(&mut client)));
    Ok(faults)
}

fn copy_folder(from: &Path, to: &Path) -> Result<(), String> {
    remove(to)?;
    copy_into(from, to).map_err(|e| format!("cannot keep {}: {e}", from.display()))
}

fn copy_into(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for item in fs::read_dir(from)? {
        let item = item?;
        let target = to.join(item.file_name());
        if item.file_type()?.is_dir() {
            copy_into(&item.path(), &target)?;
        } else if item.file_type()?.is_file() {
            fs::copy(item.path(), target)?;
        }
    }
    Ok(())
}

fn remove(folder: &Path) -> Result<(), String> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(format!("{}: {error}", folder.display())),
        _ => Ok(()),
    }
}
