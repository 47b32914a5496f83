//! The other ends of the connections: what they have sent and not been answered, what the network has brought, what they take.

use std::collections::VecDeque;

use impel_core::engine::blocked::ClientIndex;

use super::keys;
use super::reply;
use crate::model::words::is;

/// What comes to the server's side of a connection.
#[derive(Debug)]
pub enum Arrival {
    /// Bytes.
    Bytes(Vec<u8>),
    /// The peer sends no more.
    End,
    /// The peer is gone.
    Reset,
}

/// In which call of the server a command was carried out.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Log positions before and after it.
    pub from: u64,
    /// See `from`.
    pub to: u64,
    /// No other command of which a record could be was carried out in it.
    pub alone: bool,
}

/// A command that was sent.
#[derive(Debug)]
pub struct Sent {
    /// Its words.
    pub words: Vec<Vec<u8>>,
    /// Bytes of the connection up to its end.
    pub end: u64,
    /// Replies that are still to come.
    pub replies: usize,
    /// Keys that a good reply depends on.
    pub keys: Vec<Vec<u8>>,
    /// It is answered with its own word.
    pub echoes: bool,
    /// When it was carried out.
    pub call: Option<Call>,
    /// It waited after that.
    pub waited: bool,
}

/// One peer, and the server's side of its connection.
#[derive(Debug, Default)]
pub struct Peer {
    /// Wants to be let in by the next turn.
    pub connecting: bool,
    /// The place of its connection in the engine.
    pub index: Option<ClientIndex>,
    /// What is on its way, with when it comes.
    pub arrivals: VecDeque<(u64, Arrival)>,
    /// What has come and was not read.
    pub wire: VecDeque<u8>,
    /// Has sent its last byte, or is gone: nothing more is sent.
    pub ended: bool,
    /// The end has arrived.
    pub end_arrived: bool,
    /// It has gone: whatever is written fails.
    pub reset: bool,
    /// Commands without all of their replies, oldest first.
    pub sent: VecDeque<Sent>,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Bytes that the node was given.
    pub fed_bytes: u64,
    /// Commands that the node has been given whole, of all that were sent on this connection.
    pub fed_commands: u64,
    /// Commands that were sent on this connection and are in `sent` no more.
    pub answered: u64,
    /// Commands carried out.
    pub carried_out: u64,
    /// Takes nothing until then.
    pub closed_window_until_us: u64,
    /// Received and not looked at.
    pub inbox: Vec<u8>,
    /// Keys of the commands that a transaction will carry out.
    transaction: Option<Vec<Vec<u8>>>,
    /// CLIENT REPLY OFF.
    silent: bool,
    /// CLIENT REPLY SKIP.
    skip: bool,
    /// The server's side: there may be something to read.
    pub readable: bool,
    /// The server's side: something may be taken.
    pub writable: bool,
    /// The server's side: no edge will tell of the end.
    pub ending: bool,
    /// The server's side: is not read from before it has taken replies.
    pub paused: bool,
    /// The server's side: is in the list of those that have more.
    pub again_listed: bool,
    /// An edge that the server has not looked at.
    pub edge: bool,
}

/// A command as bytes.
pub fn encode(words: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n", word.len()).into_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// Something that a peer was told.
pub enum Told {
    /// A reply to its oldest command.
    Reply {
        /// The bytes.
        bytes: Vec<u8>,
        /// The command, if this was all of its replies.
        command: Option<Sent>,
    },
    /// A message that nobody asked for.
    Push,
}

impl Peer {
    /// A new connection.
    pub fn connect(&mut self) {
        *self = Peer { connecting: true, writable: true, ..Peer::default() };
    }

    /// Is there a connection, or about to be one, that takes commands?
    pub fn is_up(&self) -> bool {
        (self.connecting || self.index.is_some()) && !self.ended
    }

    /// Notes that a command is sent; answers its bytes.
    pub fn send(&mut self, words: &[Vec<u8>]) -> Vec<u8> {
        let bytes = encode(words);
        self.sent_bytes += bytes.len() as u64;
        let replies = self.replies_to(words);
        let keys = self.keys_of(words);
        let echoes = is(&words[0], "ECHO") && self.transaction.is_none();
        let (words, end) = (words.to_vec(), self.sent_bytes);
        self.sent.push_back(Sent { words, end, replies, keys, echoes, call: None, waited: false });
        bytes
    }

    fn replies_to(&mut self, words: &[Vec<u8>]) -> usize {
        let several = ["SUBSCRIBE", "PSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE"].iter().any(|name| is(&words[0], name));
        let usual = if several { words.len() - 1 } else { 1 };
        if is(&words[0], "CLIENT") && words.len() == 3 && is(&words[1], "REPLY") {
            match () {
                () if is(&words[2], "OFF") => self.silent = true,
                () if is(&words[2], "SKIP") => self.skip = !self.silent,
                () => (self.silent, self.skip) = (false, false),
            }
            return usize::from(is(&words[2], "ON"));
        }
        let skipped = std::mem::take(&mut self.skip);
        if self.silent || skipped { 0 } else { usual }
    }

    fn keys_of(&mut self, words: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let own = keys::of(words).into_iter().map(<[u8]>::to_vec).collect();
        match (keys::transaction(words), &mut self.transaction) {
            (Some(true), transaction) => {
                transaction.get_or_insert_default();
                Vec::new()
            }
            (Some(false), transaction) => {
                let keys = transaction.take().unwrap_or_default();
                if is(&words[0], "EXEC") { keys } else { Vec::new() }
            }
            (None, Some(keys)) => {
                keys.extend(own);
                Vec::new()
            }
            (None, None) => own,
        }
    }

    /// Drops commands that are carried out and have no reply.
    fn drop_silent(&mut self) {
        let carried_out = self.carried_out;
        while self.answered < carried_out && self.sent.front().is_some_and(|sent| sent.replies == 0 && !sent.waited) {
            self.sent.pop_front();
            self.answered += 1;
        }
    }

    /// The next thing that it was told, if it has come whole.
    pub fn next_told(&mut self) -> Result<Option<Told>, String> {
        self.drop_silent();
        if self.inbox.is_empty() {
            return Ok(None);
        }
        let Some(length) = reply::length(&self.inbox)? else { return Ok(None) };
        let bytes: Vec<u8> = self.inbox.drain(..length).collect();
        let is_message = [&b"message\r\n"[..], b"pmessage\r\n"].iter().any(|kind| {
            let head = if kind.len() == 9 { &b"3\r\n$7\r\n"[..] } else { b"4\r\n$8\r\n" };
            matches!(bytes[0], b'*' | b'>') && bytes[1..].starts_with(head) && bytes[1 + head.len()..].starts_with(kind)
        });
        if is_message {
            return Ok(Some(Told::Push));
        }
        let Some(first) = self.sent.front_mut().filter(|sent| sent.replies > 0) else {
            return Err(format!("a reply to nothing: {}", bytes.escape_ascii()));
        };
        if first.echoes && bytes != encode(&first.words[1..])[4..] {
            return Err(format!("{} was the reply to ECHO {}", bytes.escape_ascii(), first.words[1].escape_ascii()));
        }
        first.replies -= 1;
        let done = first.replies == 0;
        let command = if done { self.sent.pop_front() } else { None };
        self.answered += u64::from(done);
        Ok(Some(Told::Reply { bytes, command }))
    }

    /// Notes that commands were carried out in a call.
    pub fn note_carried_out(&mut self, commands: u64, call: Call, waits: bool) {
        let first = self.carried_out - self.answered;
        for place in first..first + commands {
            if let Some(sent) = self.sent.get_mut(place as usize) {
                sent.call = Some(call);
            }
        }
        self.carried_out += commands;
        if waits && let Some(sent) = self.sent.get_mut((first + commands).saturating_sub(1) as usize) {
            sent.waited = true;
        }
    }

    /// The command that waited does so no more.
    pub fn note_woken(&mut self, call: Call) {
        let last = (self.carried_out - self.answered).saturating_sub(1);
        if let Some(sent) = self.sent.get_mut(last as usize) {
            (sent.call, sent.waited) = (Some(Call { alone: true, ..call }), false);
        }
    }
}
