//! The reply gate: no reply leaves before the newest record it could have seen is durable, and replies of one
//! connection leave in order. What waits is bytes in the connection's output; a gate says up to where, and for which
//! log position. Replies that touched nothing new pass at once unless an earlier reply of the connection still waits.

use std::collections::VecDeque;

/// Output of one connection.
#[derive(Debug, Default)]
pub struct Output {
    bytes: Vec<u8>,
    /// How many of `bytes` have been sent …
    sent: usize,
    /// … and how many may be. `sent <= open <= bytes.len()`.
    open: usize,
    /// Ends of the held stretches behind `open`, each with the position it waits for; ends and positions rise.
    gates: VecDeque<(usize, u64)>,
}

/// Buffers that have grown beyond this are given back once they are empty; sent bytes beyond it are cut off.
const KEEP_BYTES: usize = 64 * 1024;

impl Output {
    /// Takes the buffer, to append to it; put it back with [`Output::put`].
    #[inline]
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// Puts the buffer back. What was appended may leave when the log is durable up to `gate`. Answers whether this
    /// made a gate: someone must call [`Output::ready`] when that position is durable.
    #[inline]
    pub fn put(&mut self, bytes: Vec<u8>, gate: u64, durable: u64) -> bool {
        self.bytes = bytes;
        let end = self.bytes.len();
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

    /// Puts the buffer back with nothing appended.
    pub fn restore(&mut self, bytes: Vec<u8>) {
        self.bytes = bytes;
    }

    /// The bytes that may leave now.
    pub fn ready(&mut self, durable: u64) -> &[u8] {
        while let Some(&(end, position)) = self.gates.front()
            && position <= durable
        {
            self.open = end;
            self.gates.pop_front();
        }
        &self.bytes[self.sent..self.open]
    }

    /// The newest position that something here waits for; 0 = nothing waits.
    pub fn last_gate(&self) -> u64 {
        self.gates.back().map_or(0, |&(_, position)| position)
    }

    /// Notes that `n` of the ready bytes were sent.
    pub fn advance(&mut self, n: usize) {
        self.sent += n;
        assert!(self.sent <= self.open, "only what may leave can have been sent");
        if self.sent == self.bytes.len() {
            (self.sent, self.open) = (0, 0);
            if self.bytes.capacity() > KEEP_BYTES {
                self.bytes = Vec::new();
            } else {
                self.bytes.clear();
            }
        } else if self.sent >= KEEP_BYTES && self.sent * 2 >= self.bytes.len() {
            self.bytes.drain(..self.sent);
            self.open -= self.sent;
            for (end, _) in &mut self.gates {
                *end -= self.sent;
            }
            self.sent = 0;
        }
    }

    /// Bytes that have not been sent, held or not.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// Nothing left to send?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Memory taken, in bytes.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Drops all that has not been sent.
    pub fn discard(&mut self) {
        *self = Output::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(output: &mut Output, text: &str, gate: u64, durable: u64) -> bool {
        let mut bytes = output.take();
        bytes.extend_from_slice(text.as_bytes());
        output.put(bytes, gate, durable)
    }

    #[test]
    fn replies_wait_for_what_they_saw_and_for_nothing_else() {
        let mut output = Output::default();
        assert!(!reply(&mut output, "a", 0, 10));
        assert!(!reply(&mut output, "b", 10, 10));
        assert_eq!(output.ready(10), b"ab");
        output.advance(2);
        assert!(reply(&mut output, "c", 20, 10));
        assert!(!reply(&mut output, "d", 0, 10), "behind c in any case");
        assert!(reply(&mut output, "e", 30, 10));
        assert_eq!(output.ready(19), b"");
        assert_eq!(output.ready(20), b"cd");
        output.advance(1);
        assert!(!reply(&mut output, "f", 25, 20));
        assert_eq!(output.ready(29), b"d");
        assert_eq!(output.ready(30), b"def");
        output.advance(3);
        assert!(output.is_empty());
    }

    #[test]
    fn a_long_output_gives_back_what_was_sent() {
        let mut output = Output::default();
        assert!(reply(&mut output, &"x".repeat(3 * KEEP_BYTES), 1, 0));
        assert!(reply(&mut output, "end", 2, 0));
        assert_eq!(output.ready(1).len(), 3 * KEEP_BYTES);
        output.advance(2 * KEEP_BYTES);
        assert_eq!(output.ready(1).len(), KEEP_BYTES);
        assert_eq!(output.len(), KEEP_BYTES + 3);
        assert!(output.ready(2).ends_with(b"xend"));
    }
}
