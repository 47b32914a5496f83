//! Plays one field case on a server.
//!
//! A mismatched line does not end a case; a missing reply or a lost connection does. Time counts for blocking reads:
//! a wake-up that comes late is a mismatch even when the reply is right. Settings that a script changes are put back.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::connection::{Arrival, Connection};
use super::notation::{Want, show};
use super::script::{Action, Case, Step};
use crate::resp::{Address, Value};
use crate::server::TempFolder;

/// After `B& cmd`: time for the server to take it up.
const SETTLE: Duration = Duration::from_millis(60);
/// How long `B<blocked` watches.
const STILL_BLOCKED: Duration = Duration::from_millis(250);
/// A reply that "arrives now" is here by then …
const AT_ONCE: Duration = Duration::from_secs(1);
/// … and from this BLOCK time on, before that time is over.
const LONG_BLOCK: Duration = Duration::from_millis(400);
/// A BLOCK time may end this much too soon (the clock's rounding) …
const NIL_EARLY: Duration = Duration::from_millis(5);
/// … or this much too late.
const NIL_LATE: Duration = Duration::from_millis(250);
/// For the reload command, then once more until the server answers.
const RESTART_WAIT: Duration = Duration::from_secs(20);
/// For a replica to connect and take its first full copy.
const REPLICA_WAIT: Duration = Duration::from_secs(15);
/// After leaving a connection that waits for entries: time for the server to notice, or a ghost takes the next case's.
const GHOST_PAUSE: Duration = Duration::from_millis(50);

/// How `~ reload` is done.
pub enum Reload<'a> {
    /// Ask the server, `DEBUG RELOAD`; where it refuses, the case is skipped.
    Debug,
    /// A shell command that restarts the server keeping its state, and returns.
    Shell(String),
    /// Restart it ourselves.
    Call(&'a mut dyn FnMut() -> Result<(), String>),
}

/// How to play.
pub struct Options<'a> {
    /// The server.
    pub server: Address,
    /// A replica of it; without one the cases that need it are skipped.
    pub replica: Option<Address>,
    /// How `~ reload` is done.
    pub reload: Reload<'a>,
    /// How long a reply may take before its case fails.
    pub timeout: Duration,
    /// Print each line as it is played.
    pub verbose: bool,
}

/// How a case ended.
#[derive(Debug, PartialEq)]
pub enum Verdict {
    /// Everything was as wanted.
    Passed,
    /// What was not, line by line.
    Failed(Vec<String>),
    /// It cannot be played here, and why.
    Skipped(String),
}

/// Why the rest of a case is not played.
enum Stop {
    /// It cannot be played here.
    Skip(String),
    /// It makes no sense any more; the mismatch is noted.
    GiveUp,
    /// A connection failed.
    Lost(String),
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        Stop::Lost(error.to_string())
    }
}

/// The player's own connections, which no script sees.
const CONTROL: &str = "control";
const REPLICA_CONTROL: &str = "R control";

/// Plays the case.
pub fn play(case: &Case, options: &mut Options<'_>) -> Verdict {
    let mut play =
        Play { case, options, connections: BTreeMap::new(), bad: Vec::new(), restore: BTreeMap::new(), line: 0 };
    let skipped = match play.run() {
        Ok(()) | Err(Stop::GiveUp) => None,
        Err(Stop::Skip(why)) => Some(why),
        Err(Stop::Lost(why)) => {
            play.mismatch(&play.text(), "a connection", &why);
            None
        }
    };
    play.clean_up();
    match (play.bad, skipped) {
        (bad, _) if !bad.is_empty() => Verdict::Failed(bad),
        (_, Some(why)) => Verdict::Skipped(why),
        _ => Verdict::Passed,
    }
}

struct Play<'a, 'b> {
    case: &'a Case,
    options: &'a mut Options<'b>,
    connections: BTreeMap<String, Connection>,
    bad: Vec<String>,
    /// Settings as they were before the script changed them.
    restore: BTreeMap<String, String>,
    /// The line being played, from 1; 0 before the script.
    line: usize,
}

impl Play<'_, '_> {
    fn run(&mut self) -> Result<(), Stop> {
        let case = self.case;
        let letters: Vec<char> = case.steps.iter().filter_map(Step::connection).collect();
        if letters.contains(&'R') || case.steps.iter().any(|step| matches!(step.action, Action::Sync)) {
            self.await_replica()?;
        }
        let emptied = self.control(&["FLUSHALL"])?;
        if emptied.is_error() {
            return self.give_up("FLUSHALL to work", &show(&emptied, 2));
        }
        self.prepare()?;
        for letter in letters {
            self.connection(&letter.to_string())?;
        }
        for (index, step) in case.steps.iter().enumerate() {
            self.line = index + 1;
            match &step.action {
                Action::Call(letter, arguments, want) => self.call(step, *letter, arguments, want)?,
                Action::Send(letter, arguments) => {
                    self.in_flight(*letter, 0)?.send(arguments)?;
                    self.trace(step, None, "");
                    self.in_flight(*letter, 1)?.wait(SETTLE);
                }
                Action::Reply(letter, want) => {
                    self.in_flight(*letter, 1)?;
                    self.compare(step, *letter, want, Instant::now())?;
                }
                Action::Blocked(letter) => self.blocked(step, *letter)?,
                Action::Sleep(time) => {
                    self.trace(step, None, "");
                    thread::sleep(*time);
                }
                Action::Sync => self.sync(step)?,
                Action::Reload => self.reload(step)?,
            }
        }
        Ok(())
    }

    // Notes and connections.

    fn text(&self) -> String {
        match self.line.checked_sub(1) {
            Some(index) => self.case.steps[index].text.clone(),
            None => "(before the script)".into(),
        }
    }

    fn mismatch(&mut self, text: &str, want: &str, got: &str) {
        self.bad.push(format!("  line {}: {text}\n    want: {want}\n     got: {got}", self.line));
    }

    fn give_up<T>(&mut self, want: &str, got: &str) -> Result<T, Stop> {
        self.mismatch(&self.text(), want, got);
        Err(Stop::GiveUp)
    }

    /// With --verbose: the line, and the reply where it is not word for word the wanted one.
    fn trace(&self, step: &Step, want: Option<&Want>, got: &str) {
        if self.options.verbose {
            let as_wanted = got.is_empty() || want.is_some_and(|want| want.text == got);
            let reply = if as_wanted { String::new() } else { format!("   <-- {got}") };
            println!("     {} {:2}  {}{reply}", self.case.number, self.line, step.text);
        }
    }

    fn connection(&mut self, name: &str) -> Result<&mut Connection, Stop> {
        if !self.connections.contains_key(name) {
            let address = match (&self.options.replica, name) {
                (Some(replica), "R" | REPLICA_CONTROL) => replica,
                _ => &self.options.server,
            };
            self.connections.insert(name.to_owned(), Connection::open(address, self.options.timeout)?);
        }
        Ok(self.connections.get_mut(name).expect("it was put there just now"))
    }

    /// The connection of a line, which must have this many commands under way.
    fn in_flight(&mut self, letter: char, commands: usize) -> Result<&mut Connection, Stop> {
        let owed = self.connection(&letter.to_string())?.owed;
        if owed != commands {
            return self.give_up(&format!("{commands} commands under way on {letter}"), &owed.to_string());
        }
        self.connection(&letter.to_string())
    }

    /// The oldest reply of a connection that no line has taken, waiting for it.
    fn take(&mut self, name: &str, want: &str) -> Result<Arrival, Stop> {
        let patience = self.options.timeout;
        let connection = self.connection(name)?;
        connection.wait(patience);
        if let Some(arrival) = connection.replies.pop_front() {
            connection.owed -= 1;
            return Ok(arrival);
        }
        let why = connection.lost.clone();
        self.give_up(want, &why.unwrap_or_else(|| format!("no reply within {} s", patience.as_secs_f64())))
    }

    fn ask(&mut self, name: &str, arguments: &[&str]) -> Result<Value, Stop> {
        self.connection(name)?.send(arguments)?;
        Ok(self.take(name, &format!("a reply to {}", arguments.join(" ")))?.1)
    }

    fn control(&mut self, arguments: &[&str]) -> Result<Value, Stop> {
        self.ask(CONTROL, arguments)
    }

    /// Servers without that setting answer an error, which is no matter.
    fn prepare(&mut self) -> Result<(), Stop> {
        self.control(&["CONFIG", "SET", "stream-lag", "exact"]).map(|_| ())
    }

    // Replies.

    fn call(&mut self, step: &Step, letter: char, arguments: &[String], want: &Want) -> Result<(), Stop> {
        self.in_flight(letter, 0)?;
        self.remember_setting(arguments)?;
        let connection = self.in_flight(letter, 0)?;
        connection.send(arguments)?;
        let sent_at = connection.sent_at;
        let got = self.compare(step, letter, want, sent_at)?;
        if let [hello, version, ..] = arguments
            && hello.eq_ignore_ascii_case("HELLO")
            && !got.is_error()
        {
            self.connection(&letter.to_string())?.version = if version == "3" { 3 } else { 2 };
        }
        Ok(())
    }

    /// Takes a reply; it must be the wanted one, and in time.
    fn compare(&mut self, step: &Step, letter: char, want: &Want, since: Instant) -> Result<Value, Stop> {
        let name = letter.to_string();
        let (when, got) = self.take(&name, &want.text)?;
        let connection = self.connection(&name)?;
        let (version, timing) = (connection.version, out_of_time(connection, &got, when, since));
        let shown = show(&got, version);
        self.trace(step, Some(want), &shown);
        let text = step.text.split(" =>").next().unwrap_or_default();
        if !want.fits(&got, version) {
            self.mismatch(text, &want.text, &shown);
        } else if let Some((wanted, was)) = timing {
            self.mismatch(text, &format!("{}, {wanted}", want.text), &format!("{shown}, {was}"));
        }
        Ok(got)
    }

    fn blocked(&mut self, step: &Step, letter: char) -> Result<(), Stop> {
        let connection = self.in_flight(letter, 1)?;
        connection.wait(STILL_BLOCKED);
        let reply = connection.replies.front().map(|(_, reply)| show(reply, connection.version));
        let got = reply.or_else(|| connection.lost.clone()).unwrap_or_default();
        self.trace(step, None, &got);
        if !got.is_empty() {
            self.mismatch(&step.text, "no reply yet", &got);
        }
        Ok(())
    }

    // Restarting and replication.

    fn reload(&mut self, step: &Step) -> Result<(), Stop> {
        self.trace(step, None, "");
        if !matches!(self.options.reload, Reload::Debug) {
            self.connections.clear();
        }
        let restarted = match &mut self.options.reload {
            Reload::Debug => return self.debug_reload(),
            Reload::Shell(command) => run_shell(command),
            Reload::Call(restart) => restart(),
        };
        if let Err(why) = restarted {
            return self.give_up("the restart to work", &why);
        }
        self.await_answer()?;
        self.prepare()
    }

    fn debug_reload(&mut self) -> Result<(), Stop> {
        let reply = self.control(&["DEBUG", "RELOAD"])?;
        if reply.is_error() {
            let text = show(&reply, 2);
            let refusals = [
                "unknown command",
                "unknown subcommand",
                "not allowed",
                "not supported",
                "not implemented",
                "disabled",
                "permission",
            ];
            if refusals.iter().any(|refusal| text.to_lowercase().contains(refusal)) {
                return Err(Stop::Skip(format!("needs a restart (--reload-cmd CMD); DEBUG RELOAD answers: {text}")));
            }
            return self.give_up("a server that reloads its state", &text);
        }
        self.prepare()
    }

    /// Until the restarted server answers PING.
    fn await_answer(&mut self) -> Result<(), Stop> {
        let deadline = Instant::now() + RESTART_WAIT;
        let mut trouble = "no answer".to_owned();
        while Instant::now() < deadline {
            let opened = Connection::open(&self.options.server, self.options.timeout);
            match opened.and_then(|mut connection| connection.send(&["PING"]).map(|()| connection)) {
                Err(error) => trouble = error.to_string(),
                Ok(mut connection) => {
                    connection.wait(self.options.timeout);
                    match connection.replies.pop_front() {
                        Some((_, Value::Simple(pong))) if pong == b"PONG" => {
                            connection.owed = 0;
                            self.connections.insert(CONTROL.to_owned(), connection);
                            return Ok(());
                        }
                        Some((_, other)) => trouble = show(&other, 2),
                        None => trouble = connection.lost.clone().unwrap_or_else(|| "no reply".into()),
                    }
                }
            }
            thread::sleep(Duration::from_millis(50));
        }
        self.give_up("a server that answers PING after the restart", &trouble)
    }

    /// Before the script: the replica must be connected to the primary.
    fn await_replica(&mut self) -> Result<(), Stop> {
        if self.options.replica.is_none() {
            return Err(Stop::Skip("needs a replica (--replica PORT)".into()));
        }
        let deadline = Instant::now() + REPLICA_WAIT;
        loop {
            let info = self.ask(REPLICA_CONTROL, &["INFO", "replication"])?;
            if info_field(&info, "master_link_status").is_none_or(|status| status == "up") {
                return Ok(());
            }
            if Instant::now() > deadline {
                return self.give_up("a replica with a link to its primary", "a link that is down");
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Until the replica has applied what the primary has sent so far.
    fn sync(&mut self, step: &Step) -> Result<(), Stop> {
        self.trace(step, None, "");
        let primary = self.control(&["INFO", "replication"])?;
        let Some(target) = info_field(&primary, "master_repl_offset").and_then(|n| n.parse::<i64>().ok()) else {
            return self.wait_for_acks();
        };
        let deadline = Instant::now() + self.options.timeout;
        loop {
            let info = self.ask(REPLICA_CONTROL, &["INFO", "replication"])?;
            let offset = info_field(&info, "slave_repl_offset").and_then(|n| n.parse::<i64>().ok());
            if offset.is_some_and(|offset| offset >= target) {
                return Ok(());
            }
            if Instant::now() > deadline {
                return self.give_up(&format!("a replica that applied offset {target}"), &format!("{offset:?}"));
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// The same on a server that tells no offsets: WAIT, which speaks for one connection.
    fn wait_for_acks(&mut self) -> Result<(), Stop> {
        // A little less than our own patience.
        let patience_ms = (self.options.timeout.mul_f64(0.9)).as_millis().to_string();
        let idle = self.connections.iter().filter(|(name, c)| name.len() == 1 && *name != "R" && c.owed == 0);
        for name in idle.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            let acks = self.ask(&name, &["WAIT", "1", &patience_ms])?;
            if !matches!(acks, Value::Int(1..)) {
                return self.give_up("a replica that has caught up", &format!("WAIT: {}", show(&acks, 2)));
            }
        }
        Ok(())
    }

    // Leaving the server as it was.

    /// Before a script's CONFIG SET: note the old value.
    fn remember_setting(&mut self, arguments: &[String]) -> Result<(), Stop> {
        if let [config, set, name, ..] = arguments
            && config.eq_ignore_ascii_case("CONFIG")
            && set.eq_ignore_ascii_case("SET")
            && !self.restore.contains_key(name)
            && let Value::Array(pair) = self.control(&["CONFIG", "GET", name])?
            && let [_, Value::Bulk(old)] = pair.as_slice()
        {
            self.restore.insert(name.clone(), String::from_utf8_lossy(old).into_owned());
        }
        Ok(())
    }

    fn clean_up(&mut self) {
        for (name, value) in std::mem::take(&mut self.restore) {
            let at_rest = self.connections.get(CONTROL).is_some_and(|control| control.owed == 0);
            if !at_rest || self.control(&["CONFIG", "SET", &name, &value]).is_err() {
                break;
            }
        }
        let waiting = self.connections.values().any(|connection| connection.owed > 0);
        self.connections.clear();
        if waiting {
            thread::sleep(GHOST_PAUSE);
        }
    }
}

/// What is wrong with the moment of a reply to a blocking read: (wanted, was).
fn out_of_time(connection: &Connection, got: &Value, when: Instant, since: Instant) -> Option<(String, String)> {
    let limit = Duration::from_millis(connection.block_ms?);
    let took = when.saturating_duration_since(connection.sent_at);
    let was = format!("{} ms after the command", took.as_millis());
    if matches!(got, Value::Nil(_)) && !limit.is_zero() {
        let in_time = limit.saturating_sub(NIL_EARLY)..=limit + NIL_LATE;
        let wanted = format!("{} to {} ms after the command", limit.as_millis(), (limit + NIL_LATE).as_millis());
        return (!in_time.contains(&took)).then_some((wanted, was));
    }
    if limit >= LONG_BLOCK && took >= limit {
        // A lost wake-up, found out at the end.
        return Some((format!("before the {} ms of BLOCK are over", limit.as_millis()), was));
    }
    let late = when.saturating_duration_since(since);
    (late > AT_ONCE).then(|| ("at once".into(), format!("{} ms late", late.as_millis())))
}

/// Runs a shell command that restarts the server. Its output goes to a file: the server may keep a pipe open.
fn run_shell(command: &str) -> Result<(), String> {
    let folder = TempFolder::new("reload")?;
    let path = folder.path().join("output");
    let output = File::create(&path).map_err(|e| e.to_string())?;
    let both = output.try_clone().map_err(|e| e.to_string())?;
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).process_group(0);
    shell.stdin(Stdio::null()).stdout(output).stderr(both);
    let mut shell = shell.spawn().map_err(|e| e.to_string())?;
    let deadline = Instant::now() + RESTART_WAIT;
    loop {
        match shell.try_wait().map_err(|e| e.to_string())? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => {
                let said = std::fs::read_to_string(&path).unwrap_or_default();
                return Err(format!("{status}: {}", said.trim().lines().last().unwrap_or_default()));
            }
            None if Instant::now() > deadline => {
                let _gone_already = shell.kill();
                let _status = shell.wait();
                return Err(format!("no end within {} s", RESTART_WAIT.as_secs()));
            }
            None => thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// One line of an INFO reply.
fn info_field(reply: &Value, name: &str) -> Option<String> {
    let text = match reply {
        Value::Bulk(text) => String::from_utf8_lossy(text).into_owned(),
        Value::Verbatim(text) => String::from_utf8_lossy(text).into_owned(),
        _ => return None,
    };
    text.lines().filter_map(|line| line.split_once(':')).find(|(key, _)| *key == name).map(|(_, v)| v.to_owned())
}
