//! The server's side of connections, as `run/clients.rs` does it with sockets, and the network between it and the peers:
//! bytes come in pieces, are taken in pieces, or not at all.

use impel_core::settings::ClientClass;

use super::oracle::Seen;
use super::peers::{Arrival, Told};
use super::{Result, World};

/// How many reads a turn makes of one connection is one, as in the server; how many bytes it brings, at most, the setup says.
impl World {
    // ------------------------------------------------------------------------------------------------------ the network

    /// Sends bytes to the server, in pieces.
    pub fn transmit(&mut self, peer: usize, bytes: &[u8]) {
        let mut at = 0;
        while at < bytes.len() {
            let n = match self.random.below(10) {
                0..5 => bytes.len() - at,
                5..7 => 1,
                _ => 1 + self.random.below((bytes.len() - at) as u64) as usize,
            };
            self.arrive_later(peer, Arrival::Bytes(bytes[at..at + n].to_vec()));
            at += n;
        }
    }

    /// Puts something on its way.
    pub fn arrive_later(&mut self, peer: usize, what: Arrival) {
        let delay_us = if self.random.chance(60) { self.random.below(50) } else { self.random.below(3000) };
        let peer = &mut self.peers[peer];
        let last_us = peer.arrivals.back().map_or(0, |(at_us, _)| *at_us);
        peer.arrivals.push_back(((self.now_us + delay_us).max(last_us), what));
    }

    /// When something comes or can be taken again.
    pub fn network_us(&self) -> Option<u64> {
        let now_us = self.now_us;
        let arrivals = self.peers.iter().filter_map(|peer| peer.arrivals.front().map(|(at_us, _)| *at_us));
        let windows = self.peers.iter().map(|peer| peer.closed_window_until_us);
        let windows = windows.filter(|&until_us| until_us > now_us && until_us != u64::MAX);
        arrivals.chain(windows).min()
    }

    /// What has come by now is there.
    pub fn deliver(&mut self) {
        let now_us = self.now_us;
        let mut woken = false;
        for peer in &mut self.peers {
            while let Some((_, what)) = peer.arrivals.pop_front_if(|(at_us, _)| *at_us <= now_us) {
                match what {
                    Arrival::Bytes(bytes) => peer.wire.extend(bytes),
                    Arrival::End => peer.end_arrived = true,
                    Arrival::Reset => (peer.end_arrived, peer.reset) = (true, true),
                }
                (peer.edge, woken) = (true, true);
            }
            if peer.index.is_some() && !peer.writable && peer.closed_window_until_us <= now_us {
                (peer.edge, woken) = (true, true);
            }
            woken |= peer.connecting;
        }
        if woken && let Some(server) = &mut self.server {
            server.wake(now_us);
        }
    }

    // ---------------------------------------------------------------------------------------------- the server's side

    /// Lets in those that knock.
    pub fn accept(&mut self, now_ms: u64) {
        for number in 0..self.peers.len() {
            if !std::mem::take(&mut self.peers[number].connecting) {
                continue;
            }
            let server = self.server.as_mut().expect("it runs");
            let index = server.node.on_open(format!("10.0.0.1:{number}"), "10.0.0.9:6379".into(), now_ms);
            if server.peers.len() <= index {
                server.peers.resize(index + 1, None);
            }
            server.peers[index] = Some(number);
            if let Some(follower) = &mut self.follower {
                follower.came(number, index);
            }
            let peer = &mut self.peers[number];
            peer.index = Some(index);
            // What has come before is an edge after the registration.
            peer.edge = !peer.wire.is_empty() || peer.end_arrived;
            if peer.edge {
                server.wake(self.now_us);
            }
        }
    }

    /// Something has happened at a connection.
    pub fn on_edge(&mut self, number: usize) -> Result {
        let now_us = self.now_us;
        let peer = &mut self.peers[number];
        let Some(index) = peer.index else { return Ok(()) };
        peer.ending |= peer.end_arrived;
        if !peer.writable && peer.closed_window_until_us <= now_us {
            peer.writable = true;
            self.server().node.list_for_flush(index);
        }
        let peer = &mut self.peers[number];
        if !peer.wire.is_empty() || peer.end_arrived {
            peer.readable = true;
            self.read(number)?;
        }
        Ok(())
    }

    /// One recv.
    pub fn read(&mut self, number: usize) -> Result {
        let read_bytes = self.setup.read_bytes;
        let Some(index) = self.peers[number].index else { return Ok(()) };
        let node = &self.server().node;
        if node.is_pressed() || node.client(index).is_some_and(|client| client.later_listed) {
            self.list_again(number);
            return Ok(());
        }
        let unread_bytes = node.client(index).map_or(0, |client| client.output.len());
        let unread_max_bytes = node.engine().unread_max_bytes();
        let peer = &mut self.peers[number];
        if !peer.readable {
            return Ok(());
        }
        if unread_bytes > unread_max_bytes {
            peer.paused = true;
            return Ok(());
        }
        if peer.reset {
            self.close(number);
            return Ok(());
        }
        if peer.wire.is_empty() {
            peer.readable = false;
            if peer.end_arrived && !self.act(|node, _| node.on_end_of_input(index)) {
                self.peers[number].readable = true;
                self.list_again(number);
            }
            return Ok(());
        }
        let n = peer.wire.len().min(read_bytes);
        let bytes: Vec<u8> = peer.wire.drain(..n).collect();
        let more = n == read_bytes || peer.ending;
        peer.readable = more;
        if more {
            self.list_again(number);
        }
        self.act(|node, facts| node.on_bytes(index, &bytes, facts));
        self.follow_fed(number, bytes.len() as u64);
        Ok(())
    }

    /// The follower carries out the commands that have come whole.
    fn follow_fed(&mut self, number: usize, bytes: u64) {
        let peer = &mut self.peers[number];
        peer.fed_bytes += bytes;
        // A command that came whole has no reply yet, so it is still among those that were sent.
        let mut commands = Vec::new();
        while let Some(sent) = peer.sent.get((peer.fed_commands - peer.answered) as usize)
            && sent.end <= peer.fed_bytes
        {
            if self.follower.is_some() && sent.words[0] != b"HELLO" {
                commands.push(sent.words.clone());
            }
            peer.fed_commands += 1;
        }
        for words in &commands {
            self.note(|| format!("the server has got c{number}> {}", words.join(&b' ').escape_ascii()));
        }
        if let Some(follower) = &mut self.follower {
            commands.into_iter().for_each(|words| follower.command(number, words));
        }
    }

    /// Sends to every client that has something to be sent, and closes those that are to be closed.
    pub fn flush_all(&mut self, now_ms: u64) -> Result {
        if self.down() {
            return Ok(());
        }
        let mut list = Vec::new();
        self.server().node.take_flush(&mut list);
        for index in list {
            if let Some(number) = self.server().peers.get(index).copied().flatten() {
                self.flush(number, index, now_ms)?;
            }
        }
        Ok(())
    }

    /// One send.
    fn flush(&mut self, number: usize, index: usize, _now_ms: u64) -> Result {
        let server = self.server.as_mut().expect("it runs");
        let unread_max_bytes = server.node.engine().unread_max_bytes();
        let Some(client) = server.node.client(index) else { return Ok(()) };
        if client.killed {
            self.close(number);
            return Ok(());
        }
        let peer = &mut self.peers[number];
        if peer.writable {
            let bytes = server.node.output(index);
            if !bytes.is_empty() {
                if peer.reset {
                    self.close(number);
                    return Ok(());
                }
                let wanted = bytes.len();
                let n = match self.random.below(20) {
                    _ if peer.closed_window_until_us > self.now_us => 0,
                    0 => self.random.below(wanted as u64) as usize,
                    _ => wanted,
                };
                if n < wanted {
                    peer.writable = false;
                    let opens_us = self.now_us + 1 + self.random.below(5000);
                    peer.closed_window_until_us = peer.closed_window_until_us.max(opens_us);
                }
                if n > 0 {
                    peer.inbox.extend_from_slice(&bytes[..n]);
                    let got = bytes[..n].to_vec();
                    server.node.sent(index, n);
                    self.received(number, &got)?;
                }
            }
        }
        let server = self.server.as_mut().expect("it runs");
        let Some(client) = server.node.client(index) else { return Ok(()) };
        let (unread_bytes, closing) = (client.output.len(), client.closing);
        if unread_bytes == 0 && closing {
            self.close(number);
            return Ok(());
        }
        let class = if client.subscriptions.is_some() { ClientClass::PubSub } else { ClientClass::Normal };
        let hard_bytes = server.node.settings().output_limits[class as usize].hard_bytes;
        if hard_bytes != 0 && unread_bytes as u64 > hard_bytes {
            self.close(number);
            return Ok(());
        }
        let peer = &mut self.peers[number];
        if peer.paused && unread_bytes <= unread_max_bytes {
            peer.paused = false;
            self.list_again(number);
        }
        Ok(())
    }

    /// The server closes a connection.
    pub fn close(&mut self, number: usize) {
        if self.follower.is_some() && !self.peers[number].ended {
            self.found = Some(format!("the server closes the connection of c{number}, which has done nothing for it"));
        }
        if let Some(index) = self.peers[number].index.take() {
            let server = self.server();
            server.peers[index] = None;
            server.node.on_closed(index);
            self.note(|| format!("the connection of c{number} is closed"));
        }
        self.drop_connection(number);
    }

    /// A connection is no more, for whatever reason.
    pub fn drop_connection(&mut self, number: usize) {
        let peer = std::mem::take(&mut self.peers[number]);
        self.unanswered[number] = peer.sent.into_iter().next().map(|sent| sent.words.to_vec());
        if let Some(follower) = &mut self.follower {
            follower.gone(number);
        }
    }

    // ---------------------------------------------------------------------------------------------------- the peer's side

    /// A peer has received something, which is in its inbox.
    fn received(&mut self, number: usize, got: &[u8]) -> Result {
        self.trace(got.len() as u64);
        self.trace(got.iter().fold(number as u64, |sum, &byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte))));
        self.note(|| format!("c{number} gets {}", got.escape_ascii()));
        while let Some(told) = self.peers[number].next_told().map_err(|why| format!("c{number}: {why}"))? {
            let Told::Reply { bytes, command } = told else { continue };
            self.report.replies += 1;
            let greets = command.as_ref().is_some_and(|sent| sent.words[0] == b"HELLO");
            if let Some(follower) = self.follower.as_mut().filter(|_| !greets) {
                let expected = &mut follower.expected[number];
                if !expected.starts_with(&bytes) {
                    let what = command.as_ref().map(|sent| sent.words.join(&b' ').escape_ascii().to_string());
                    return Err(format!(
                        "c{number} was to get\n  {}\nbut got\n  {}\nfor {}",
                        expected.escape_ascii(),
                        bytes.escape_ascii(),
                        what.unwrap_or_default()
                    ));
                }
                expected.drain(..bytes.len());
            }
            let Some(sent) = command else { continue };
            let is_nil = [&b"*-1\r\n"[..], b"_\r\n", b"$-1\r\n"].contains(&bytes.as_slice());
            // In a transaction the commands that are refused have looked at nothing.
            let is_refused = bytes[0] == b'-' || bytes.windows(3).any(|three| three == b"\r\n-");
            let is_plain = !is_refused && bytes != b"+QUEUED\r\n" && !is_nil;
            let Some(call) = sent.call else {
                return Err(format!("c{number} was answered what was never carried out"));
            };
            if is_plain && !sent.keys.is_empty() && self.setup.log {
                let what = format!("c{number}> {}", sent.words.join(&b' ').escape_ascii());
                let acknowledged = self.oracle.written;
                // One that found nothing to do has no record: the first one is that of a reader which it woke (XCLAIM with IDLE).
                let alone = call.alone && bytes != b"*0\r\n";
                let (from, to) = (call.from, call.to);
                self.oracle.seen(Seen { keys: sent.keys, from, to, alone, acknowledged, what })?;
            }
        }
        Ok(())
    }
}
