//! The reply gate: no reply leaves before the newest record it could have seen is durable, and replies of one
//! connection leave in order. What waits is bytes in the connection's output; a gate says up to where, and for which
//! log position. Replies that touched nothing new pass at once unless an earlier reply of the connection still waits.

use std::collections::VecDeque;

/// Output of one connection: chunks that are full, and the buffer that replies are appended to. Lengths count from the front of
/// the first of them.
#[derive(Debug, Default)]
pub struct Output {
    bytes: Vec<u8>,
    /// What stands before `bytes`, and how long it is: a client that does not read costs what it does not read, and not twice
    /// that while one buffer for all of it grows.
    full: VecDeque<Vec<u8>>,
    full_bytes: usize,
    /// How many bytes of the first have been sent …
    sent: usize,
    /// … and how many of all may be. `sent <= open <= full_bytes + bytes.len()`.
    open: usize,
    /// Ends of the held stretches behind `open`, each with the position it waits for; ends and positions rise.
    gates: VecDeque<(usize, u64)>,
}

/// Sent bytes beyond this are cut off while others wait behind them.
const KEEP_BYTES: usize = 64 * 1024;

/// A buffer that is so long is full.
const CHUNK_BYTES: usize = 8 << 20;

/// Buffers that no output uses now: who has something to say takes one, and gives it back when all is sent. So a connection
/// that is silent holds none, and one with long replies does not ask the allocator, and the system, for each of them.
#[derive(Debug, Default)]
pub struct Spares {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

/// Spare buffers beyond this, in bytes altogether, are given back to the allocator.
const SPARE_BYTES: usize = 4 * 1024 * 1024;
/// One larger than this is not kept: it was an exception.
const SPARE_BUFFER_BYTES: usize = 1024 * 1024;

impl Spares {
    /// An empty buffer, the one that was used last.
    #[inline]
    fn lend(&mut self) -> Vec<u8> {
        let buffer = self.buffers.pop().unwrap_or_default();
        self.bytes -= buffer.capacity();
        buffer
    }

    /// Takes a buffer that is not used any more.
    #[inline]
    pub fn keep(&mut self, mut buffer: Vec<u8>) {
        let bytes = buffer.capacity();
        if bytes != 0 && bytes <= SPARE_BUFFER_BYTES && self.bytes + bytes <= SPARE_BYTES {
            buffer.clear();
            self.bytes += bytes;
            self.buffers.push(buffer);
        }
    }

    /// Memory taken, in bytes.
    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Output {
    /// Takes the buffer, to append to it; put it back with [`Output::put`].
    #[inline]
    pub fn take(&mut self, spares: &mut Spares) -> Vec<u8> {
        if self.bytes.capacity() == 0 { spares.lend() } else { std::mem::take(&mut self.bytes) }
    }

    /// Puts the buffer back. What was appended may leave when the log is durable up to `gate`. Answers whether this
    /// made a gate: someone must call [`Output::ready`] when that position is durable.
    #[inline]
    pub fn put(&mut self, bytes: Vec<u8>, gate: u64, durable: u64) -> bool {
        self.bytes = bytes;
        let end = self.full_bytes + self.bytes.len();
        if self.bytes.len() >= CHUNK_BYTES {
            self.fill();
        }
        if end == self.gates.back().map_or(self.open, |&(end, _)| end) {
            // Nothing was appended (the command waits, or its reply is not wanted). A gate at the end of what is open already
            // would outlive the bytes before it, and then count in others.
            return false;
        }
        match self.gates.back_mut() {
            Some((last_end, position)) if *position >= gate => *last_end = end,
            None if gate <= durable => self.open = end,
            _ => {
                self.gates.push_back((end, gate));
                return true;
            }
        }
        false
    }

    /// Lays the buffer aside. What it took beyond need while it grew is given back.
    #[cold]
    fn fill(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.shrink_to_fit();
        self.full_bytes += bytes.len();
        self.full.push_back(bytes);
    }

    /// Puts the buffer back with nothing appended.
    pub fn restore(&mut self, bytes: Vec<u8>) {
        self.bytes = bytes;
    }

    /// The bytes that may leave now, or the first of them: ask again when these were sent.
    pub fn ready(&mut self, durable: u64) -> &[u8] {
        while let Some(&(end, position)) = self.gates.front()
            && position <= durable
        {
            self.open = end;
            self.gates.pop_front();
        }
        match self.full.front() {
            Some(first) => &first[self.sent..self.open.min(first.len())],
            None => &self.bytes[self.sent..self.open],
        }
    }

    /// The newest position that something here waits for; 0 = nothing waits.
    pub fn last_gate(&self) -> u64 {
        self.gates.back().map_or(0, |&(_, position)| position)
    }

    /// Notes that `n` of the ready bytes were sent.
    pub fn advance(&mut self, n: usize, spares: &mut Spares) {
        self.sent += n;
        assert!(self.sent <= self.open, "only what may leave can have been sent");
        if let Some(first) = self.full.front() {
            assert!(self.sent <= first.len(), "no more than what was handed out can have been sent");
            if self.sent == first.len() {
                self.full_bytes -= self.sent;
                self.full.pop_front();
                self.cut_sent();
            }
        } else if self.sent == self.bytes.len() {
            assert!(self.gates.is_empty(), "what waits has bytes");
            (self.sent, self.open) = (0, 0);
            spares.keep(std::mem::take(&mut self.bytes));
        } else if self.sent >= KEEP_BYTES && self.sent * 2 >= self.bytes.len() {
            self.bytes.drain(..self.sent);
            self.cut_sent();
        }
    }

    /// What was sent is not at the front any more.
    fn cut_sent(&mut self) {
        self.open -= self.sent;
        for (end, _) in &mut self.gates {
            *end -= self.sent;
        }
        self.sent = 0;
    }

    /// Bytes that have not been sent, held or not. Those of the buffer are left out while it is taken: a client may ask about
    /// itself.
    pub fn len(&self) -> usize {
        (self.full_bytes + self.bytes.len()).saturating_sub(self.sent)
    }

    /// Nothing left to send?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Memory taken, in bytes.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity() + self.full.iter().map(Vec::capacity).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(output: &mut Output, text: &str, gate: u64, durable: u64) -> bool {
        let mut bytes = output.take(&mut Spares::default());
        bytes.extend_from_slice(text.as_bytes());
        output.put(bytes, gate, durable)
    }

    #[test]
    fn replies_wait_for_what_they_saw_and_for_nothing_else() {
        let mut output = Output::default();
        assert!(!reply(&mut output, "a", 0, 10));
        assert!(!reply(&mut output, "b", 10, 10));
        assert_eq!(output.ready(10), b"ab");
        output.advance(2, &mut Spares::default());
        assert!(reply(&mut output, "c", 20, 10));
        assert!(!reply(&mut output, "d", 0, 10), "behind c in any case");
        assert!(reply(&mut output, "e", 30, 10));
        assert_eq!(output.ready(19), b"");
        assert_eq!(output.ready(20), b"cd");
        output.advance(1, &mut Spares::default());
        assert!(!reply(&mut output, "f", 25, 20));
        assert_eq!(output.ready(29), b"d");
        assert_eq!(output.ready(30), b"def");
        output.advance(3, &mut Spares::default());
        assert!(output.is_empty());
    }

    #[test]
    fn a_long_output_gives_back_what_was_sent() {
        let mut output = Output::default();
        assert!(reply(&mut output, &"x".repeat(3 * KEEP_BYTES), 1, 0));
        assert!(reply(&mut output, "end", 2, 0));
        assert_eq!(output.ready(1).len(), 3 * KEEP_BYTES);
        output.advance(2 * KEEP_BYTES, &mut Spares::default());
        assert_eq!(output.ready(1).len(), KEEP_BYTES);
        assert_eq!(output.len(), KEEP_BYTES + 3);
        assert!(output.ready(2).ends_with(b"xend"));
    }

    /// What nobody reads takes as much memory as it is, and leaves in order behind its gates.
    #[test]
    fn a_long_backlog_is_held_in_chunks() {
        let (mut output, mut spares) = (Output::default(), Spares::default());
        let piece = "x".repeat(3 << 20);
        for n in 1..=10 {
            reply(&mut output, &piece, n, 0);
            reply(&mut output, &n.to_string(), n, 0);
        }
        let all = 10 * piece.len() + 11;
        assert_eq!(output.len(), all);
        assert!(output.capacity() < all + CHUNK_BYTES, "{} bytes for {all}", output.capacity());
        assert_eq!(output.ready(0), b"");
        let mut sent = Vec::new();
        for durable in [4, 4, 9, 10] {
            let before = sent.len();
            loop {
                let ready = output.ready(durable);
                let n = ready.len().min(1_000_003);
                if n == 0 {
                    break;
                }
                sent.extend_from_slice(&ready[..n]);
                output.advance(n, &mut spares);
            }
            let digits = if durable == 10 { 11 } else { durable as usize };
            assert_eq!(sent.len(), durable as usize * piece.len() + digits, "from {before} on");
            assert_eq!(output.len(), all - sent.len());
        }
        assert!(output.is_empty() && output.last_gate() == 0 && output.capacity() == 0);
        let expected: String = (1..=10).map(|n| format!("{piece}{n}")).collect();
        assert!(sent == expected.as_bytes());
    }

    #[test]
    fn buffers_go_round() {
        let (mut spares, mut one, mut other) = (Spares::default(), Output::default(), Output::default());
        let mut bytes = one.take(&mut spares);
        bytes.resize(100_000, b'x');
        one.put(bytes, 0, 0);
        one.ready(0);
        one.advance(100_000, &mut spares);
        assert_eq!((one.capacity(), spares.bytes() >= 100_000), (0, true));
        let bytes = other.take(&mut spares);
        assert_eq!((bytes.capacity() >= 100_000, bytes.len(), spares.bytes()), (true, 0, 0));
        spares.keep(Vec::with_capacity(SPARE_BUFFER_BYTES + 1));
        assert_eq!(spares.bytes(), 0, "an exception in size");
        for _ in 0..2 * SPARE_BYTES / SPARE_BUFFER_BYTES {
            spares.keep(Vec::with_capacity(SPARE_BUFFER_BYTES));
        }
        assert_eq!(spares.bytes(), SPARE_BYTES, "no more than so many");
    }

    #[test]
    fn a_command_without_a_reply_makes_no_gate() {
        let (mut output, mut spares) = (Output::default(), Spares::default());
        assert!(!reply(&mut output, "pong", 0, 10));
        assert!(!reply(&mut output, "", 20, 10), "it has changed something and says nothing");
        assert_eq!(output.ready(10), b"pong");
        output.advance(4, &mut spares);
        assert!(reply(&mut output, "later", 30, 10));
        assert_eq!(output.ready(20), b"", "nothing of another reply may leave for it");
        assert!(!reply(&mut output, "", 40, 20));
        assert_eq!(output.ready(30), b"later");
    }
}
