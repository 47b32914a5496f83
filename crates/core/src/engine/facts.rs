//! What comes from outside with every call, and what the engine asks of the process.

/// The world as it is in this turn.
pub struct Facts<'a> {
    /// Unix time in ms. Never goes back: the process sees to it.
    pub now_ms: u64,
    /// Unix time in µs, for TIME.
    pub now_us: u64,
    /// Bytes allocated by the process.
    pub used_memory: u64,
    /// Microseconds on a clock that only rises; asked around commands that may take long, and samples of the others.
    pub elapsed_us: &'a dyn Fn() -> u64,
    /// Writes the parts of INFO that only the process knows; see `decide::info`.
    pub host: &'a dyn Host,
}

/// Where saving stands.
#[derive(Clone, Copy, Debug, Default)]
pub struct Saving {
    /// A snapshot is being written.
    pub running: bool,
    /// Unix seconds of the last one that succeeded (of the start, before the first).
    pub last_success_s: u64,
    /// Did the last one succeed?
    pub last_ok: bool,
    /// Changes since then.
    pub changes_since: u64,
    /// Log position of the newest snapshot; 0 if there is none.
    pub snapshot_position: u64,
    /// Bytes of the newest snapshot.
    pub snapshot_bytes: u64,
}

/// What the process can tell.
pub trait Host {
    /// Appends `name:value\r\n` lines of a section of INFO (`server`, `memory`, `persistence`, `cpu`, `stats`).
    fn info(&self, section: &str, out: &mut Vec<u8>);
    /// What [`Facts::elapsed_us`] said at the last tick of the system, at most 10 ms ago: for less than asking that costs.
    /// A host that has no such clock always answers the same; a fast command that takes long is then noticed only if it is
    /// a sample.
    fn ticked_us(&self) -> u64 {
        0
    }
    /// Where saving stands.
    fn saving(&self) -> Saving;
    /// Fills `bytes` with randomness that nobody can foresee, for passwords (ACL GENPASS).
    fn random(&self, bytes: &mut [u8]);
    /// The file of users (ACL LOAD). The error is a text for people.
    fn read_acl_file(&self, path: &str) -> Result<Vec<u8>, String>;
    /// Puts the file of users in its place (ACL SAVE): after a crash it is the new one or the old one.
    fn write_acl_file(&self, path: &str, bytes: &[u8]) -> Result<(), String>;
}

/// What only the process can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Write a snapshot; the client waits for the end of it (SAVE).
    Save {
        /// ID of the client that waits.
        client: u64,
    },
    /// Write a snapshot beside everything else (BGSAVE, BGREWRITEAOF).
    SaveInBackground,
    /// End the process.
    Shutdown {
        /// ID of the client that waits for it.
        client: u64,
        /// SHUTDOWN SAVE, NOSAVE, or as the settings say.
        save: Option<bool>,
    },
    /// A connection was closed because more input of it waits than client-query-buffer-limit allows: to be logged.
    NoteQueryBuffer {
        /// Its ID.
        client: u64,
        /// The peer.
        addr: String,
        /// Bytes that wait.
        input_bytes: usize,
    },
    /// A connection was closed because it speaks HTTP: to be logged.
    NoteHttp {
        /// The peer.
        addr: String,
    },
    /// Hold everything up for so long (DEBUG SLEEP).
    Sleep {
        /// Microseconds.
        us: u64,
    },
    /// Forget the state and read it back from disk (DEBUG RELOAD, LOADAOF); the client waits.
    Reload {
        /// ID of the client that waits.
        client: u64,
    },
    /// A setting was changed that the process acts on.
    SettingChanged {
        /// Its name.
        name: String,
    },
    /// The client waits until the log is durable up to what it wrote (WAITAOF): answered by the process.
    WaitDurable {
        /// ID of the client that waits.
        client: u64,
        /// Position that must be durable.
        position: u64,
        /// Unix ms at which the wait ends in any case; 0 = never.
        deadline_ms: u64,
    },
}
