//! What a seed's life is like before anything happens in it: settings, how slow the disk is, how much goes wrong.

use impel_core::settings::{AppendFsync, SaveRule, Settings};

use super::tempo::Tempo;
use crate::model::Lag;
use crate::random::Random;
use crate::workload::NODE_MAX;

/// Connections that a life has at most.
pub const PEERS: usize = 5;

/// `maxmemory` where memory is short.
pub const MEMORY_BYTES: u64 = 1 << 20;

/// The life of a seed.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The naive model goes along and says what each reply must be; else anything may be sent, and replies are counted.
    pub followed: bool,
    /// It does, and knows of work alone (XWORK): nothing else is sent.
    pub work: bool,
    /// There is a log.
    pub log: bool,
    /// `appendfsync`.
    pub fsync: AppendFsync,
    /// `save`: after so many seconds and changes; `None` for no rule.
    pub save: Option<(u32, u32)>,
    /// `log-segment-bytes`, smaller than a user may have it, so that segments come and go.
    pub segment_bytes: u64,
    /// `log-retention`, s: how far back the past is kept.
    pub retention_s: u64,
    /// How lag is told.
    pub lag: Lag,
    /// Which peers speak RESP3.
    pub resp3: [bool; PEERS],
    /// A job of the log takes up to so long, as a rule.
    pub log_us: u64,
    /// A piece of a snapshot takes up to so long.
    pub snapshot_us: u64,
    /// What a connection brings at once, at most.
    pub read_bytes: usize,
    /// Of 1000 steps so many are faults of the disk or the end of the process.
    pub trouble: u64,
    /// Time that passes between two steps, up to so long, as a rule.
    pub pause_us: u64,
    /// Memory is short now and then.
    pub short_memory: bool,
    /// Commands may take long, so that turns end early.
    pub slow_commands: bool,
    /// How fast the life goes.
    pub tempo: Tempo,
}

impl Setup {
    /// The setup of a seed.
    pub fn of(seed: u64) -> Setup {
        let mut random = Random::new(seed ^ 0x5e7_0fa1);
        let log = random.chance(85);
        let save = random.chance(if log { 30 } else { 75 });
        let tempo = Tempo::of(seed);
        // Rules that fit the pauses, and a past that fits the life.
        let long_s = tempo.stretch() / 10;
        let followed = seed.is_multiple_of(2);
        let work = followed && Random::new(seed ^ 0x3027_7b00).chance(30);
        let mut setup = Setup {
            followed,
            work,
            log,
            fsync: *random.pick(&[
                AppendFsync::Always,
                AppendFsync::Always,
                AppendFsync::Always,
                AppendFsync::EverySec,
                AppendFsync::No,
            ]),
            save: save.then(|| ((1 + random.below(3) as u32) * long_s.max(1) as u32, 1 + random.below(40) as u32)),
            segment_bytes: *random.pick(&[8 << 10, 8 << 10, 16 << 10, 64 << 10]),
            lag: if random.chance(50) { Lag::Exact } else { Lag::Compat },
            resp3: std::array::from_fn(|_| random.chance(40)),
            log_us: *random.pick(&[200, 1000, 5000, 30_000]),
            snapshot_us: *random.pick(&[100, 2000, 50_000]),
            read_bytes: *random.pick(&[64, 1000, 64 << 10, 64 << 10]),
            trouble: *random.pick(&[0, 5, 10, 20, 60]),
            pause_us: *random.pick(&[3_000, 20_000, 100_000, 400_000]),
            slow_commands: random.chance(50),
            short_memory: !seed.is_multiple_of(2) && random.chance(20),
            retention_s: *random.pick(&[0, 0, 0, 1, 8, 100]) * long_s.max(1),
            tempo,
        };
        if work {
            // The model of work speaks RESP2.
            setup.resp3 = [false; PEERS];
        }
        setup
    }

    /// The settings of the server.
    pub fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        let yes_no = |yes| if yes { "yes" } else { "no" };
        let fsync = match self.fsync {
            AppendFsync::Always => "always",
            AppendFsync::EverySec => "everysec",
            AppendFsync::No => "no",
        };
        let lag = if self.lag == Lag::Exact { "exact" } else { "compat" };
        let node_max = NODE_MAX.to_string();
        for (name, value) in [
            ("appendonly", yes_no(self.log)),
            ("appendfsync", fsync),
            ("stream-lag", lag),
            ("stream-node-max-entries", &node_max),
            ("log-retention", &self.retention_s.to_string()),
            ("enable-debug-command", "yes"),
        ] {
            settings.apply(name.as_bytes(), &[value]).expect("settings there are");
        }
        settings.save = self.save.iter().map(|&(seconds, changes)| SaveRule { seconds, changes }).collect();
        settings.log_segment_bytes = self.segment_bytes;
        // So that snapshots also begin by themselves.
        settings.auto_snapshot_min_bytes = 4 * self.segment_bytes;
        settings.maxmemory_bytes = if self.short_memory { MEMORY_BYTES } else { 0 };
        settings
    }
}
