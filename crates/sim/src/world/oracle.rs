//! What must be there after a restart, and what a reply may not leave before.
//!
//! Every frame that the log was given is kept here as well, whatever the disk does with it, and carried out by a second engine,
//! the *shadow*, which never sees a snapshot. A restart must come back with a state that is, by its digest, that of the shadow at
//! the end of some frame (so no frame is missing, twice there, or there in part, and snapshot and log together say what the log
//! alone says), at or after everything that was acknowledged, and where it was looked, that of the living engine then.

use std::collections::{BTreeMap, VecDeque};

use impel_core::check::{self, Digest};
use impel_core::engine::Engine;
use impel_core::record::Record;
use impel_core::settings::Settings;
use impel_core::state::codec::Reader;
use impel_core::state::keyspace::Captured;

/// What a commit handed over.
struct Frame {
    start: u64,
    bytes: Vec<u8>,
    /// Of the living state at its end, where somebody looked.
    digest: Option<Digest>,
}

/// A record of which it matters when it was durable.
struct Touch {
    position: u64,
    /// Database and key; `None`: whole databases.
    at: Option<(usize, Vec<u8>)>,
}

/// A reply that a peer has seen.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The keys that it told of.
    pub keys: Vec<Vec<u8>>,
    /// Log positions before and after the call in which its command was carried out.
    pub from: u64,
    /// See `from`.
    pub to: u64,
    /// Nothing but this command was carried out in that call.
    pub alone: bool,
    /// How far everything was acknowledged by the log when it was seen.
    pub acknowledged: u64,
    /// What it was, for people.
    pub what: String,
}

/// How a life before a restart ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// What was not synced is lost.
    Power,
    /// What was written is there.
    Process,
    /// As asked for: everything is there.
    Orderly,
}

/// See the module.
pub struct Oracle {
    log: bool,
    settings: Settings,
    frames: VecDeque<Frame>,
    shadow: Engine,
    shadow_end: u64,
    /// The end of the last frame handed over.
    handed: u64,
    /// Acknowledged by the log: written, and synced.
    pub written: u64,
    /// See `written`.
    pub synced: u64,
    touches: VecDeque<Touch>,
    seen: Vec<Seen>,
    /// Without a log: digests at the positions at which snapshots began, and the newest of them that is finished.
    begun: BTreeMap<u64, Digest>,
    finished: Option<u64>,
    /// Replies judged.
    pub judged: u64,
}

/// Does a reply wait for such a record? Those that nobody waits for are told here once more.
fn is_waited_for(record: &Record<'_>) -> bool {
    !matches!(
        record,
        Record::ConsumerSeen { .. }
            | Record::Forget { .. }
            | Record::WorkForget { .. }
            | Record::Duplicates { .. }
            | Record::ScanStart { .. }
    )
}

impl Oracle {
    /// For a server that begins with nothing.
    pub fn new(settings: &Settings) -> Oracle {
        Oracle {
            log: settings.appendonly,
            settings: settings.clone(),
            frames: VecDeque::new(),
            shadow: Engine::new(settings.clone(), 3),
            shadow_end: 0,
            handed: 0,
            written: 0,
            synced: 0,
            touches: VecDeque::new(),
            seen: Vec::new(),
            begun: BTreeMap::new(),
            finished: None,
            judged: 0,
        }
    }

    /// A commit is handed over. `digest`: of the living state, which stands at its end.
    pub fn frame(&mut self, bytes: &[u8], end: u64, digest: Option<Digest>) -> Result<(), String> {
        let start = self.handed;
        if start + bytes.len() as u64 != end {
            return Err(format!("a commit of {} bytes behind position {start} ends at {end}", bytes.len()));
        }
        if bytes.is_empty() {
            return Ok(());
        }
        self.handed = end;
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            let record = Record::decode(&mut reader).map_err(|e| format!("a record cannot be read: {e:?}"))?;
            if is_waited_for(&record) {
                self.note_touch(&record, end - reader.rest.len() as u64);
            }
        }
        self.frames.push_back(Frame { start, bytes: bytes.to_vec(), digest });
        self.judge()
    }

    fn note_touch(&mut self, record: &Record<'_>, position: u64) {
        let mut touch = |at: Option<(usize, &[u8])>| {
            self.touches.push_back(Touch { position, at: at.map(|(db, key)| (db, key.to_vec())) });
        };
        match record {
            // What is copied stays as it is.
            Record::Copy { to, .. } => return touch(Some((to.db, to.key))),
            _ => touch(record.at().map(|at| (at.db, at.key))),
        }
        match record {
            Record::Rename { at, to } => touch(Some((at.db, to))),
            Record::Move { at, db } => touch(Some((*db, at.key))),
            _ => {}
        }
    }

    /// The log has acknowledged everything up to `end`.
    pub fn acknowledged(&mut self, end: u64, synced: bool) -> Result<(), String> {
        self.written = self.written.max(end);
        if synced {
            self.synced = self.synced.max(end);
            self.carry_out(self.synced)?;
        }
        if self.seen.is_empty() {
            let written = self.written;
            while self.touches.front().is_some_and(|touch| touch.position <= written) {
                self.touches.pop_front();
            }
        }
        Ok(())
    }

    /// A peer has seen a reply.
    pub fn seen(&mut self, seen: Seen) -> Result<(), String> {
        self.seen.push(seen);
        self.judge()
    }

    /// Looks at every reply for which the records are known that it may depend on.
    fn judge(&mut self) -> Result<(), String> {
        let handed = self.handed;
        for seen in self.seen.extract_if(.., |seen| seen.to <= handed) {
            self.judged += 1;
            let touches = self.touches.iter().filter(|touch| {
                let about = |key: &Vec<u8>| touch.at.as_ref().is_none_or(|(db, of)| *db == 0 && of == key);
                seen.keys.iter().any(about)
            });
            let first = if seen.alone {
                touches.clone().find(|touch| touch.position > seen.from && touch.position <= seen.to)
            } else {
                None
            };
            let before = touches.clone().rfind(|touch| touch.position <= seen.from);
            if let Some(touch) = first.or(before).filter(|touch| touch.position > seen.acknowledged) {
                return Err(format!(
                    "{} was answered before it was durable: it depends on position {}, and {} was acknowledged",
                    seen.what, touch.position, seen.acknowledged
                ));
            }
        }
        Ok(())
    }

    /// Lets the shadow carry out all frames that end at or before `position`.
    fn carry_out(&mut self, position: u64) -> Result<(), String> {
        while let Some(frame) = self.frames.pop_front_if(|frame| frame.start + frame.bytes.len() as u64 <= position) {
            let end = frame.start + frame.bytes.len() as u64;
            let mut reader = Reader::new(&frame.bytes);
            while !reader.is_empty() {
                let record = Record::decode(&mut reader).map_err(|e| format!("a record cannot be read: {e:?}"))?;
                self.shadow.replay(&record, end - reader.rest.len() as u64);
            }
            while self.shadow.free_one() {}
            self.shadow_end = end;
            if frame.digest.is_some_and(|digest| digest != check::digest(self.shadow.state())) {
                return Err(format!("carrying out all records up to {end} does not make the state that was"));
            }
        }
        Ok(())
    }

    /// A snapshot without a log begins.
    pub fn snapshot_begun(&mut self, position: u64, digest: Digest) {
        if !self.log {
            self.begun.insert(position, digest);
        }
    }

    /// It is on disk.
    pub fn snapshot_finished(&mut self, position: u64) {
        if !self.log {
            self.finished = Some(position);
        }
    }

    /// What was emitted and not handed over when everything ended is carried out on a copy of all that was, so that the whole
    /// life has been replayed once.
    pub fn last_words(&mut self, pending: &[u8], live: Digest) -> Result<(), String> {
        if !self.log {
            return Ok(());
        }
        // Where nothing is left to be carried out there is nothing to copy for.
        if self.frames.is_empty() && pending.is_empty() {
            return match check::digest(self.shadow.state()) == live {
                true => Ok(()),
                false => Err("carrying out all records of a life does not make its last state".into()),
            };
        }
        let mut engine = Engine::new(self.settings.clone(), 5);
        for captured in self.captured() {
            engine.restore(captured, self.shadow_end);
        }
        for bytes in self.frames.iter().map(|frame| frame.bytes.as_slice()).chain([pending]) {
            let mut reader = Reader::new(bytes);
            while !reader.is_empty() {
                let record = Record::decode(&mut reader).map_err(|e| format!("a record cannot be read: {e:?}"))?;
                engine.replay(&record, self.handed);
            }
        }
        if check::digest(engine.state()) != live {
            return Err("carrying out all records of a life does not make its last state".into());
        }
        Ok(())
    }

    fn captured(&mut self) -> Vec<Captured> {
        self.shadow.snapshot_begin();
        let mut all = Vec::new();
        loop {
            let (keys, done) = self.shadow.snapshot_continue(1000);
            all.extend(keys);
            if done {
                return all;
            }
        }
    }

    /// The server has come back with this state at `position`.
    pub fn restarted(&mut self, engine: &Engine, position: u64, end: End) -> Result<(), String> {
        check::check(engine.state()).map_err(|why| format!("after a restart: {why}"))?;
        let digest = check::digest(engine.state());
        self.seen.clear();
        self.touches.clear();
        if !self.log {
            return self.restarted_without_log(digest, position);
        }
        let least = match end {
            End::Power => self.synced,
            End::Process => self.written,
            End::Orderly => self.handed,
        };
        if position < least {
            return Err(format!("{least} was acknowledged, and the server came back at {position} ({end:?})"));
        }
        self.carry_out(position)?;
        if self.shadow_end != position {
            let handed = self.handed;
            return Err(format!(
                "the server came back at {position}, where no commit ended ({handed} were handed over)"
            ));
        }
        if digest != check::digest(self.shadow.state()) {
            return Err(format!("the state that came back at {position} is not what the log makes"));
        }
        self.frames.clear();
        // A start has made durable what it found.
        (self.handed, self.written, self.synced) = (position, position, position);
        Ok(())
    }

    fn restarted_without_log(&mut self, digest: Digest, position: u64) -> Result<(), String> {
        let least = self.finished.unwrap_or(0);
        if position < least {
            return Err(format!("the snapshot at {least} was written, and the server came back at {position}"));
        }
        let wanted = if position == 0 { Some(Digest::default()) } else { self.begun.get(&position).copied() };
        match wanted {
            None => Err(format!("the server came back at {position}, where no snapshot began")),
            Some(wanted) if wanted != digest => Err(format!("the snapshot at {position} does not hold the state then")),
            Some(_) => {
                self.begun.retain(|&at, _| at <= position);
                self.finished = (position > 0).then_some(position);
                Ok(())
            }
        }
    }
}
