//! The loop's side of clients: accepting, reading, writing, closing, and the limits on each.

use std::io;

use impel_core::engine::blocked::ClientIndex;
use impel_core::engine::facts::Facts;
use impel_core::session::Client;
use impel_core::settings::{ClientClass, OutputLimit};
use mio::event::Event;
use mio::{Interest, Token};

use super::{ACCEPT_RETRY_MS, LISTENERS, READ_BYTES, SWEEP_MS, Server};
use crate::net::{Accepted, Stream};

/// A client's socket and what is known of it.
#[derive(Debug)]
pub(super) struct Connection {
    stream: Stream,
    /// There may be something to read.
    readable: bool,
    /// The system may take something.
    writable: bool,
    /// The peer has sent its last byte: when all has been read, no event will say so.
    ending: bool,
    /// Nothing is read until it has taken some of its replies.
    paused: bool,
    /// Is in the list of those that have more to read.
    again_listed: bool,
    /// Since when (Unix ms) it is over its soft limit.
    over_since_ms: Option<u64>,
}

impl Server {
    fn connection(&mut self, index: ClientIndex) -> Option<&mut Connection> {
        self.connections.get_mut(index)?.as_mut()
    }

    /// Takes all connections that wait.
    pub(super) fn accept(&mut self, now_ms: u64) {
        self.accept_retry_ms = None;
        for place in 0..self.listeners.len() {
            loop {
                match self.listeners[place].accept() {
                    Ok(accepted) => self.welcome(accepted, now_ms),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    // A peer that is gone again, or a signal.
                    Err(error)
                        if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) => {}
                    Err(error) => {
                        ::log::warn!("a connection could not be accepted: {error}");
                        self.accept_retry_ms = Some(now_ms + ACCEPT_RETRY_MS);
                        break;
                    }
                }
            }
        }
    }

    fn welcome(&mut self, accepted: Accepted, now_ms: u64) {
        let Accepted { mut stream, addr, local_addr, unix } = accepted;
        if self.node.engine().client_count() >= self.node.settings().maxclients as usize {
            self.node.engine_mut().statistics.connections_rejected += 1;
            // One attempt: it is a new connection, so the system has room for a line.
            let _ = stream.write(b"-ERR max number of clients reached\r\n");
            return;
        }
        if let Err(error) = stream.prepare(self.node.settings().tcp_keepalive_seconds) {
            ::log::debug!("connection from {addr} was gone before it was set up: {error}");
            return;
        }
        let index = self.node.on_open(addr, local_addr, now_ms);
        let token = Token(LISTENERS + self.listeners.len() + index);
        if let Err(error) = self.poll.registry().register(&mut stream, token, Interest::READABLE | Interest::WRITABLE) {
            ::log::warn!("a connection could not be watched: {error}");
            self.node.on_closed(index);
            return;
        }
        if let Some(client) = self.node.client_mut(index) {
            client.fd = stream.number();
            client.unix = unix;
        }
        if self.connections.len() <= index {
            self.connections.resize_with(index + 1, || None);
        }
        self.connections[index] = Some(Connection {
            stream,
            readable: false,
            writable: true,
            ending: false,
            paused: false,
            again_listed: false,
            over_since_ms: None,
        });
    }

    /// Something happened at a connection.
    pub(super) fn on_event(&mut self, index: ClientIndex, event: &Event, facts: &Facts<'_>) {
        let Some(connection) = self.connection(index) else { return };
        connection.ending |= event.is_read_closed();
        let became_writable = event.is_writable() && !connection.writable;
        if became_writable {
            connection.writable = true;
        }
        let readable = event.is_readable();
        connection.readable |= readable;
        if became_writable {
            self.node.list_for_flush(index);
        }
        if readable {
            self.read(index, facts);
        }
    }

    /// Goes on reading from a connection that had more. One that is paused comes back when it has taken replies.
    pub(super) fn read_again(&mut self, index: ClientIndex, facts: &Facts<'_>) {
        if let Some(connection) = self.connection(index) {
            connection.again_listed = false;
            self.read(index, facts);
        }
    }

    /// Reads from a connection again in the next turn, after everybody else had a turn.
    fn list_again(&mut self, index: ClientIndex) {
        if let Some(connection) = self.connections.get_mut(index).and_then(Option::as_mut)
            && !connection.again_listed
        {
            connection.again_listed = true;
            self.again.push(index);
        }
    }

    /// One recv.
    fn read(&mut self, index: ClientIndex, facts: &Facts<'_>) {
        // Who has commands left is not read from: they come first.
        if self.node.is_pressed() || self.node.client(index).is_some_and(|client| client.later_listed) {
            self.list_again(index);
            return;
        }
        let unread_bytes = self.node.client(index).map_or(0, |client| client.output.len());
        let unread_max_bytes = self.node.engine().unread_max_bytes();
        let Some(connection) = self.connections.get_mut(index).and_then(Option::as_mut) else { return };
        if !connection.readable {
            return;
        }
        if unread_bytes > unread_max_bytes {
            connection.paused = true;
            return;
        }
        match connection.stream.read(&mut self.buffer) {
            Ok(0) => {
                connection.readable = false;
                if !self.node.on_end_of_input(index) {
                    connection.readable = true;
                    self.list_again(index);
                }
            }
            Ok(n) => {
                // Less than there was room for: all there was, and the next byte makes an edge. The end does not.
                let more = n == READ_BYTES || connection.ending;
                connection.readable = more;
                if more {
                    self.list_again(index);
                }
                self.node.on_bytes(index, &self.buffer[..n], facts);
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => connection.readable = false,
                io::ErrorKind::Interrupted => self.list_again(index),
                _ => self.close(index),
            },
        }
    }

    fn output_limit(&self, class: ClientClass) -> OutputLimit {
        self.node.settings().output_limits[class as usize]
    }

    /// The limit on a client's output. What a subscriber does not read is not of its own asking, hence limits of its
    /// own.
    fn output_limit_of(&self, client: &Client) -> OutputLimit {
        self.output_limit(if client.subscriptions.is_some() { ClientClass::PubSub } else { ClientClass::Normal })
    }

    /// Sends to every client that has something to be sent, and closes those that are to be closed.
    pub(super) fn flush_all(&mut self, now_ms: u64) {
        let mut list = std::mem::take(&mut self.scratch);
        self.node.take_flush(&mut list);
        for &index in &list {
            self.flush(index, now_ms);
        }
        list.clear();
        self.scratch = list;
    }

    /// One send, or more where there is a long backlog.
    fn flush(&mut self, index: ClientIndex, now_ms: u64) {
        let unread_max_bytes = self.node.engine().unread_max_bytes();
        let Some(client) = self.node.client(index) else { return };
        if client.killed {
            return self.close(index);
        }
        let limit = self.output_limit_of(client);
        let Some(connection) = self.connections.get_mut(index).and_then(Option::as_mut) else { return };
        while connection.writable {
            let bytes = self.node.output(index);
            if bytes.is_empty() {
                break;
            }
            let wanted = bytes.len();
            match connection.stream.write(bytes) {
                Ok(n) => {
                    // Less than wanted: the system is full, and the edge will say when it is not.
                    connection.writable = n == wanted;
                    self.node.sent(index, n);
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => connection.writable = false,
                    io::ErrorKind::Interrupted => {
                        self.node.list_for_flush(index);
                        break;
                    }
                    _ => return self.close(index),
                },
            }
        }
        let Some(client) = self.node.client(index) else { return };
        let unread_bytes = client.output.len();
        if unread_bytes == 0 && client.closing {
            return self.close(index);
        }
        let hard_over = limit.hard_bytes != 0 && unread_bytes as u64 > limit.hard_bytes;
        let soft_over = limit.soft_bytes != 0 && unread_bytes as u64 > limit.soft_bytes;
        connection.over_since_ms = soft_over.then(|| connection.over_since_ms.unwrap_or(now_ms));
        if hard_over {
            return self.close_over_limit(index);
        }
        if connection.paused && unread_bytes <= unread_max_bytes {
            connection.paused = false;
            self.list_again(index);
        }
    }

    fn close_over_limit(&mut self, index: ClientIndex) {
        if let Some(client) = self.node.client(index) {
            let (id, addr, unread_bytes) = (client.id, &client.addr, client.output.len());
            let what = if client.subscriptions.is_some() { "messages" } else { "replies" };
            ::log::warn!(
                "client {id} at {addr} closed: {unread_bytes} bytes of {what} that it does not read, over client-output-buffer-limit"
            );
        }
        self.node.engine_mut().statistics.output_buffer_disconnections += 1;
        self.close(index);
    }

    /// Closes a connection; what was not sent is lost.
    pub(super) fn close(&mut self, index: ClientIndex) {
        if let Some(mut connection) = self.connections.get_mut(index).and_then(Option::take) {
            // Closing the descriptor would do; a copy of it in a child would not let go.
            let _ = self.poll.registry().deregister(&mut connection.stream);
        }
        self.node.on_closed(index);
    }

    /// When [`Server::sweep`] has something to do; `None` if no limit needs it.
    pub(super) fn sweep_deadline_ms(&self) -> Option<u64> {
        let needed = self.node.settings().timeout_seconds > 0
            || self.output_limit(ClientClass::Normal).soft_bytes > 0
            || (self.output_limit(ClientClass::PubSub).soft_bytes > 0 && !self.node.engine().pubsub.is_empty());
        (needed && self.node.engine().client_count() > 0).then_some(self.next_sweep_ms)
    }

    /// Closes connections that have been idle or over their soft limit for too long. Once a second.
    pub(super) fn sweep(&mut self, now_ms: u64) {
        if now_ms < self.next_sweep_ms {
            return;
        }
        self.next_sweep_ms = now_ms + SWEEP_MS;
        if self.sweep_deadline_ms().is_none() {
            return;
        }
        let idle_max_ms = u64::from(self.node.settings().timeout_seconds) * 1000;
        for index in 0..self.connections.len() {
            let Some(connection) = &self.connections[index] else { continue };
            let Some(client) = self.node.client(index) else { continue };
            let over_max_ms = u64::from(self.output_limit_of(client).soft_seconds) * 1000;
            let over = connection.over_since_ms.is_some_and(|since_ms| now_ms.saturating_sub(since_ms) >= over_max_ms);
            if over {
                self.close_over_limit(index);
                continue;
            }
            // Who waits in a blocking read, or for messages, is not idle.
            let waits = client.wait.is_some() || client.subscriptions.is_some();
            if idle_max_ms > 0 && !waits && now_ms.saturating_sub(client.active_ms) > idle_max_ms {
                ::log::debug!("client {} at {} closed: idle", client.id, client.addr);
                self.close(index);
            }
        }
    }
}
