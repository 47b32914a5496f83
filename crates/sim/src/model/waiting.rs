//! Readers that wait: first come first served at each key, woken by running the whole command again.

use super::Model;
use super::reading;
use super::value::Value;
use super::words::Words;

/// A read that waits.
#[derive(Clone, Debug)]
pub struct Wait {
    /// The command, with `$` resolved.
    words: Vec<Vec<u8>>,
    keys: Vec<Vec<u8>>,
    /// Unix ms; `None` = for ever.
    deadline: Option<u64>,
    /// Its place in all queues.
    ticket: u64,
}

impl Model {
    pub(super) fn start_waiting(&mut self, client: usize, words: &Words) {
        let words = self.resolve_dollars(words);
        let (keys, timeout) = (reading::keys_of(&words), reading::timeout_of(&words));
        // The end of the wait is not earlier than asked for, so a clock that shows whole ms must show one more.
        let deadline = (timeout > 0).then(|| self.now + timeout + 1);
        self.tickets += 1;
        let ticket = self.tickets;
        self.client(client).wait = Some(Wait { words, keys, deadline, ticket });
    }

    /// Who waits for a key, first come first.
    fn waiting_for(&self, key: &[u8]) -> Vec<usize> {
        let mut clients: Vec<(u64, usize)> = self
            .clients
            .iter()
            .filter_map(|(client, state)| Some((*client, state.wait.as_ref()?)))
            .filter(|(_, wait)| wait.keys.iter().any(|of| of == key))
            .map(|(client, wait)| (wait.ticket, client))
            .collect();
        clients.sort_unstable();
        clients.into_iter().map(|(_, client)| client).collect()
    }

    /// Serves those who wait for keys at which something happened.
    pub(super) fn serve(&mut self, replies: &mut Vec<(usize, Value)>) {
        while !self.signals.is_empty() {
            for key in std::mem::take(&mut self.signals) {
                for client in self.waiting_for(&key) {
                    self.try_again(client, &key, replies);
                }
            }
        }
    }

    fn try_again(&mut self, client: usize, key: &[u8], replies: &mut Vec<(usize, Value)>) {
        let Some(wait) = self.client(client).wait.clone() else { return };
        let of_group = super::words::is(&wait.words[0], "XREADGROUP");
        // Readers without a group do not mind losing the key.
        if !of_group && !matches!(self.stream(key), Ok(Some(_))) {
            return;
        }
        self.again = true;
        let answer = super::find(&wait.words).and_then(|run| run(self, &wait.words));
        self.again = false;
        match answer {
            Ok(Value::NullArray) => {
                self.tickets += 1;
                let ticket = self.tickets;
                self.client(client).wait = Some(Wait { ticket, ..wait });
            }
            answer => {
                self.client(client).wait = None;
                replies.push((client, answer.unwrap_or_else(Value::Error)));
            }
        }
    }

    /// Ends the waits whose time is over.
    pub(super) fn time_out(&mut self, replies: &mut Vec<(usize, Value)>) {
        let now = self.now;
        let over = |wait: &Wait| wait.deadline.is_some_and(|deadline| deadline <= now);
        let mut due: Vec<(u64, usize)> = Vec::new();
        for (client, state) in &mut self.clients {
            if let Some(wait) = state.wait.take_if(|wait| over(wait)) {
                due.push((wait.deadline.unwrap_or(0), *client));
            }
        }
        due.sort_unstable();
        replies.extend(due.into_iter().map(|(_, client)| (client, Value::NullArray)));
    }
}
