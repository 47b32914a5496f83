//! What only the process knows, for INFO, beside what the engine writes there itself: who it is, memory, CPU time. One value of [`Observed`] is shared by
//! the loop, which keeps it up to date, and by the engine, which asks.

use std::cell::Cell;
use std::cell::RefCell;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use impel_core::engine::decide::info::human;
use impel_core::engine::facts::{Host, Saving};
use impel_core::settings::{AppendFsync, Settings};
use rustix::rand::{GetRandomFlags, getrandom};

use crate::clock::Stopwatch;
use crate::disk::read_text_file;
use crate::memory;

/// Unpredictable bits.
pub fn random_u64() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// What INFO shows of the settings.
#[derive(Clone, Debug, Default)]
struct Shown {
    port: u16,
    appendonly: bool,
    appendfsync: AppendFsync,
}

/// See the module.
#[derive(Debug)]
pub struct Observed {
    run_id: String,
    executable: String,
    config_file: String,
    os: String,
    started_us: u64,
    stopwatch: Stopwatch,
    shown: RefCell<Shown>,
    /// The time of this turn, in Unix µs.
    pub now_us: Cell<u64>,
    /// Where saving stands.
    pub saving: Cell<Saving>,
    /// Bytes of the log in its segments, as of the last commit.
    pub log_position: Cell<u64>,
    /// Bytes that the log takes on the disk.
    pub log_bytes: Cell<u64>,
    /// The log took everything it was given.
    pub log_ok: Cell<bool>,
}

impl Observed {
    /// A process that starts now. `stopwatch`: what the engine measures with.
    pub fn new(settings: &Settings, config_file: &str, now_us: u64, stopwatch: Stopwatch) -> Self {
        let uname = rustix::system::uname();
        let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
        let absolute = |path: &str| match path {
            "" | "-" => String::new(),
            path => fs::canonicalize(path).map_or_else(|_| path.into(), |path| path.display().to_string()),
        };
        let observed = Observed {
            run_id: format!("{:016x}{:016x}{:08x}", random_u64(), random_u64(), random_u64() as u32),
            executable: std::env::current_exe().map_or_else(|_| String::new(), |path| path.display().to_string()),
            config_file: absolute(config_file),
            os: format!("{} {} {}", text(uname.sysname()), text(uname.release()), text(uname.machine())),
            started_us: now_us,
            stopwatch,
            shown: RefCell::default(),
            now_us: Cell::new(now_us),
            saving: Cell::default(),
            log_position: Cell::new(0),
            log_bytes: Cell::new(0),
            log_ok: Cell::new(true),
        };
        observed.show(settings);
        observed
    }

    /// Settings have changed.
    pub fn show(&self, settings: &Settings) {
        *self.shown.borrow_mut() =
            Shown { port: settings.port, appendonly: settings.appendonly, appendfsync: settings.appendfsync };
    }

    fn server(&self, out: &mut Lines<'_>) {
        let uptime_s = self.now_us.get().saturating_sub(self.started_us) / 1_000_000;
        out.line("impel_version", env!("CARGO_PKG_VERSION"));
        out.line("os", &self.os);
        out.line("multiplexing_api", "epoll");
        out.line("process_id", std::process::id());
        out.line("run_id", &self.run_id);
        out.line("tcp_port", self.shown.borrow().port);
        out.line("uptime_in_seconds", uptime_s);
        out.line("uptime_in_days", uptime_s / 86_400);
        out.line("executable", &self.executable);
        out.line("config_file", &self.config_file);
    }

    fn memory(&self, out: &mut Lines<'_>) {
        let (used, peak, rss) = (memory::used_bytes(), memory::peak_bytes(), memory::resident_bytes());
        out.line("used_memory_rss", rss);
        out.line("used_memory_rss_human", human(rss));
        out.line("used_memory_peak", peak);
        out.line("used_memory_peak_human", human(peak));
        out.line("mem_fragmentation_ratio", format!("{:.2}", if used == 0 { 0.0 } else { rss as f64 / used as f64 }));
        out.line("mem_allocator", "mimalloc");
    }

    fn persistence(&self, out: &mut Lines<'_>) {
        let saving = self.saving.get();
        let status = |ok: bool| if ok { "ok" } else { "err" };
        let shown = self.shown.borrow();
        out.line("aof_last_bgrewrite_status", status(saving.last_ok));
        out.line("aof_last_write_status", status(self.log_ok.get()));
        if shown.appendonly {
            out.line(
                "aof_fsync",
                match shown.appendfsync {
                    AppendFsync::Always => "always",
                    AppendFsync::EverySec => "everysec",
                    AppendFsync::No => "no",
                },
            );
            out.line("aof_current_size", self.log_bytes.get());
            out.line("aof_base_size", saving.snapshot_bytes);
            out.line("snapshot_position", saving.snapshot_position);
            out.line("log_position", self.log_position.get());
        }
    }

    fn cpu(&self, out: &mut Lines<'_>) {
        let (user_s, system_s) = cpu_seconds();
        out.line("used_cpu_sys", format!("{system_s:.6}"));
        out.line("used_cpu_user", format!("{user_s:.6}"));
    }
}

impl Host for Observed {
    fn info(&self, section: &str, out: &mut Vec<u8>) {
        let mut lines = Lines(out);
        match section {
            "server" => self.server(&mut lines),
            "memory" => self.memory(&mut lines),
            "persistence" => self.persistence(&mut lines),
            "cpu" => self.cpu(&mut lines),
            _ => {}
        }
    }

    fn ticked_us(&self) -> u64 {
        self.stopwatch.ticked_us()
    }

    fn saving(&self) -> Saving {
        self.saving.get()
    }

    fn random(&self, bytes: &mut [u8]) {
        let mut filled = 0;
        while filled < bytes.len() {
            match getrandom(&mut bytes[filled..], GetRandomFlags::empty()) {
                Ok(some) => filled += some,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => panic!("the system gives no randomness: {error}"),
            }
        }
    }

    fn read_acl_file(&self, path: &str) -> Result<Vec<u8>, String> {
        read_text_file(Path::new(path)).map_err(|error| error.to_string())
    }

    fn write_acl_file(&self, path: &str, bytes: &[u8]) -> Result<(), String> {
        replace_file(Path::new(path), bytes).map_err(|error| error.to_string())
    }
}

/// Writes a file beside the old one, lets it reach the disk and gives it the name. Only the owner may read it.
fn replace_file(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.tmp", std::process::id()));
    let write = || {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&beside, path)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder)?.sync_all()
    };
    write().inspect_err(|_| {
        let _ = fs::remove_file(&beside);
    })
}

struct Lines<'a>(&'a mut Vec<u8>);

impl Lines<'_> {
    fn line(&mut self, name: &str, value: impl std::fmt::Display) {
        write!(self.0, "{name}:{value}\r\n").expect("memory takes what is written to it");
    }
}

/// CPU time of the process, user and system; 0 where the system does not tell.
fn cpu_seconds() -> (f64, f64) {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name, in parentheses, may hold anything.
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = |nth: usize| rest.split_ascii_whitespace().nth(nth).and_then(|text| text.parse::<f64>().ok());
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    (ticks(11).unwrap_or(0.0) / per_second, ticks(12).unwrap_or(0.0) / per_second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sections_hold_what_clients_look_for() {
        let observed = Observed::new(&Settings::default(), "", 5_000_000, Stopwatch::start());
        observed.now_us.set(95_000_000);
        let mut out = Vec::new();
        for section in ["server", "memory", "persistence", "cpu", "stats", "nonsense"] {
            observed.info(section, &mut out);
        }
        let text = String::from_utf8(out).unwrap();
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.unwrap_or_else(|| panic!("no {name} in {text}")).to_owned()
        };
        assert_eq!(value("uptime_in_seconds"), "90");
        assert_eq!((value("run_id").len(), value("tcp_port")), (40, "6379".into()));
        assert_eq!((value("aof_fsync"), value("aof_last_write_status")), ("always".into(), "ok".into()));
        assert!(value("used_memory_rss").parse::<u64>().unwrap() > 0);
        assert!(value("used_cpu_user").parse::<f64>().unwrap() >= 0.0);
        assert!(text.ends_with("\r\n"));
    }
}
