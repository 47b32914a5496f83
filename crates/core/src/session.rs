//! What the server knows of one connection: how it speaks, who it is, what it has queued and watches, what it waits for.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::command::args::OwnedArgs;
use crate::command::table::{CommandId, CommandSpec, Flags};
use crate::engine::Carried;
use crate::engine::acl::rules::User;
use crate::engine::pubsub::Subscriptions;
use crate::id::StreamId;
use crate::pipeline::Output;
use crate::resp::decode::Decoder;
use crate::resp::encode::Protocol;
use crate::state::decision::REASONS;

/// Which replies a client wants (CLIENT REPLY).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ReplyMode {
    /// All.
    #[default]
    On,
    /// None.
    Off,
    /// Not the one of the next command.
    SkipNext,
    /// Not the one of this command.
    Skip,
}

/// Commands queued by MULTI.
#[derive(Debug, Default)]
pub struct Transaction {
    /// In order, each with its row of the table.
    pub queue: Vec<(&'static CommandSpec, OwnedArgs)>,
    /// Bytes of the queue.
    pub len_bytes: usize,
    /// A command was refused while queueing: EXEC will be, too.
    pub refused: bool,
}

impl Transaction {
    /// Is there a command of that kind in it?
    pub fn has(&self, flag: Flags) -> bool {
        self.queue.iter().any(|(spec, _)| spec.flags.has(flag))
    }

    /// May EXEC change something?
    pub fn writes(&self) -> bool {
        self.has(Flags::WRITE)
    }
}

/// A key that WATCH looks at, as it was.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// Its version then: `State::watch_version`.
    pub version: u64,
    /// There was no such key.
    pub missing: bool,
}

/// What ends the wait of a reader of a group depends on this.
#[derive(Debug)]
pub struct GroupReader {
    /// The group.
    pub group: Box<[u8]>,
    /// The consumer.
    pub consumer: Box<[u8]>,
    /// CLAIM: also takes pending entries that have been idle for so long (ms).
    pub claim_idle_ms: Option<u64>,
    /// NOACK: new entries do not become pending.
    pub no_ack: bool,
    /// Leases of the group by key (ms), where there is one: it takes what has been idle for so long, too.
    pub leases: Vec<(Box<[u8]>, u64)>,
}

impl GroupReader {
    /// Takes pending entries of the stream under a key that have been idle for so long (ms).
    pub fn claims_at(&self, key: &[u8]) -> Option<u64> {
        let lease = self.leases.iter().find(|(of, _)| **of == *key).map(|&(_, ms)| ms);
        self.claim_idle_ms.into_iter().chain(lease).min()
    }

    /// The lease of its group that it has noted for a key (ms); 0 = none.
    pub fn lease_at(&self, key: &[u8]) -> u64 {
        self.leases.iter().find(|(of, _)| **of == *key).map_or(0, |&(_, ms)| ms)
    }

    /// Notes the lease of its group at a key; 0 = none. With NOACK nothing is taken over by it.
    pub fn set_lease(&mut self, key: &[u8], lease_ms: u64) {
        self.leases.retain(|(of, _)| **of != *key);
        if lease_ms != 0 && !self.no_ack {
            self.leases.push((key.into(), lease_ms));
        }
    }
}

/// How far a command has come that answers with what it has found in several turns.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Where it goes on.
    pub next: StreamId,
    /// Where it ends, if that was settled at its beginning.
    pub last: StreamId,
    /// How many elements its reply has so far.
    pub found: usize,
    /// The elements, as bytes of the reply.
    pub reply: Vec<u8>,
    /// What it has counted.
    pub counts: [u64; REASONS.len()],
}

/// What a blocked reader waits for.
#[derive(Debug)]
pub struct Wait {
    /// The read, with `$` made an ID.
    pub args: OwnedArgs,
    /// XREAD or XREADGROUP, or what goes on in the next turn.
    pub command: CommandId,
    /// Its database.
    pub db: usize,
    /// The streams.
    pub keys: Vec<Box<[u8]>>,
    /// Unix ms at which it is answered null; `None` = never.
    pub deadline_ms: Option<u64>,
    /// XREADGROUP: for whom it reads.
    pub group: Option<GroupReader>,
    /// The client has asked to wait. If not, the command only goes on in the next turn.
    pub is_asked_for: bool,
    /// It is no wait but for the next turn, in which the command goes on. As long as it does it has no deadline.
    pub goes_on: bool,
    /// What a trim that goes on carries over.
    pub carried: Option<Carried>,
    /// How far a command has come that goes on and collects its reply.
    pub progress: Option<Box<Progress>>,
    /// Its place in the queues of its keys.
    pub ticket: u64,
}

impl Wait {
    /// Does the command only go on in the next turn, without waiting for anything? Then nobody is to see a client that
    /// waits: it cannot be unblocked, and INFO does not count it.
    pub fn only_goes_on(&self) -> bool {
        !self.is_asked_for
    }
}

/// A connection.
#[derive(Debug)]
pub struct Client {
    /// Never the same for two connections.
    pub id: u64,
    /// The peer: `address:port`, or the socket's path and `:0`.
    pub addr: String,
    /// Our side of it.
    pub local_addr: String,
    /// The file descriptor, for CLIENT LIST.
    pub fd: i64,
    /// Came over a unix socket.
    pub unix: bool,
    /// Unix ms of its opening.
    pub created_ms: u64,
    /// Unix ms of its last command.
    pub active_ms: u64,
    /// Name of its last command.
    pub last_command: &'static str,
    /// Commands so far.
    pub commands: u64,
    /// Bytes received so far.
    pub received_bytes: u64,
    /// Bytes sent so far.
    pub sent_bytes: u64,

    /// Database selected.
    pub db: usize,
    /// RESP2 or RESP3.
    pub protocol: Protocol,
    /// CLIENT SETNAME; empty = none.
    pub name: Vec<u8>,
    /// CLIENT SETINFO LIB-NAME.
    pub lib_name: Vec<u8>,
    /// CLIENT SETINFO LIB-VER.
    pub lib_ver: Vec<u8>,
    /// Has said who it is, or need not.
    pub authenticated: bool,
    /// The user that it acts for, as that is now.
    pub user: Arc<User>,
    /// The user may not do everything: each command is checked.
    pub restricted: bool,
    /// CLIENT REPLY.
    pub reply_mode: ReplyMode,
    /// CLIENT NO-EVICT. Noted and shown; nothing is evicted here.
    pub no_evict: bool,
    /// CLIENT NO-TOUCH. Noted and shown.
    pub no_touch: bool,
    /// Between MULTI and EXEC.
    pub transaction: Option<Box<Transaction>>,
    /// WATCH, by database and key.
    pub watches: BTreeMap<(usize, Box<[u8]>), Watch>,
    /// What it is subscribed to, if to anything.
    pub subscriptions: Option<Box<Subscriptions>>,
    /// Waits in a blocking read.
    pub wait: Option<Box<Wait>>,
    /// Its next command is held back by CLIENT PAUSE.
    pub held_back: bool,
    /// To be closed once its output has been sent. Nothing more is read from it.
    pub closing: bool,
    /// To be closed at once.
    pub killed: bool,

    /// Place inside the command that is arriving.
    pub decoder: Decoder,
    /// Input; what lies before `input_at` has been carried out.
    pub input: Vec<u8>,
    /// Where the input that has not been carried out begins.
    pub input_at: usize,
    /// Has whole commands left, and is in the list of those that go on in the next turn.
    pub later_listed: bool,
    /// Goes on when it has taken some of its replies: there are too many.
    pub stuffed: bool,
    /// Replies.
    pub output: Output,
    /// Is in the list of those with output to send.
    pub flush_listed: bool,
}

impl Client {
    /// A new connection of the user `default`. Nobody is let in yet.
    pub fn new(id: u64, addr: String, local_addr: String, now_ms: u64, user: Arc<User>) -> Self {
        Client {
            id,
            unix: addr.starts_with('/'),
            addr,
            local_addr,
            fd: -1,
            created_ms: now_ms,
            active_ms: now_ms,
            last_command: "NULL",
            commands: 0,
            received_bytes: 0,
            sent_bytes: 0,
            db: 0,
            protocol: Protocol::Resp2,
            name: Vec::new(),
            lib_name: Vec::new(),
            lib_ver: Vec::new(),
            authenticated: false,
            restricted: !user.may_do_everything(),
            user,
            reply_mode: ReplyMode::On,
            no_evict: false,
            no_touch: false,
            transaction: None,
            watches: BTreeMap::new(),
            subscriptions: None,
            wait: None,
            held_back: false,
            closing: false,
            killed: false,
            decoder: Decoder::default(),
            input: Vec::new(),
            input_at: 0,
            later_listed: false,
            stuffed: false,
            output: Output::default(),
            flush_listed: false,
        }
    }

    /// Bytes of input that have not been carried out.
    pub fn input_len(&self) -> usize {
        self.input.len() - self.input_at
    }

    /// Back to how a new connection is (RESET), but for its identity and authentication, and for what it watches and
    /// is subscribed to, which the engine ends.
    pub fn reset(&mut self) {
        self.db = 0;
        self.protocol = Protocol::Resp2;
        self.name.clear();
        self.reply_mode = ReplyMode::On;
        self.no_evict = false;
        self.no_touch = false;
        self.transaction = None;
    }
}
