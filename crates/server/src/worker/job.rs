//! What a command is told of the entry that it is run for: a line of JSON on its standard input, and its environment.
//!
//! The same for whoever runs commands for entries, so that a command written for one is good for the other.

use std::process::Command;

use serde_json::Value;

use crate::client::entry::Entry;

/// Longest value that is put into the environment, in bytes; standard input has all.
const VARIABLE_MAX: usize = 4096;

/// What all these come to at most, with their names: a command that is given more cannot be started.
const VARIABLES_MAX: usize = 128 * 1024;

/// An entry that a consumer was given.
pub(crate) struct Job<'a> {
    pub stream: &'a str,
    pub group: &'a str,
    pub consumer: &'a str,
    /// How often the entry was given to somebody.
    pub delivery: u64,
    /// The work id, if it is not the ID of the entry.
    pub work: Option<&'a str>,
    pub entry: &'a Entry,
}

impl Job<'_> {
    /// The line for standard input.
    pub fn input(&self) -> Vec<u8> {
        let mut input = serde_json::Map::new();
        for (name, value) in [("stream", self.stream), ("group", self.group), ("consumer", self.consumer)] {
            input.insert(name.into(), Value::from(value));
        }
        input.insert("delivery".into(), Value::from(self.delivery));
        if let Some(work) = self.work {
            input.insert("work".into(), Value::from(work));
        }
        input.append(&mut self.entry.json());
        (Value::Object(input).to_string() + "\n").into_bytes()
    }

    /// Sets the variables.
    pub fn set_environment(&self, command: &mut Command) {
        command.env("IMPEL_STREAM", self.stream).env("IMPEL_GROUP", self.group);
        command.env("IMPEL_CONSUMER", self.consumer).env("IMPEL_ID", &self.entry.id);
        command.env("IMPEL_DELIVERY", self.delivery.to_string());
        command.env("IMPEL_WORK", self.work.unwrap_or(&self.entry.id));
        let mut all = 0;
        for (name, value) in self.entry.fields.iter().flatten() {
            let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
            let text =
                std::str::from_utf8(value).ok().filter(|text| text.len() <= VARIABLE_MAX && !text.contains('\0'));
            // Each costs its two ends and a place in a table as well.
            let len = name.len() + value.len() + 32;
            if let Some(text) = text
                && name.iter().all(is_name)
                && all + len <= VARIABLES_MAX
            {
                all += len;
                command.env(format!("IMPEL_FIELD_{}", String::from_utf8_lossy(name)), text);
            }
        }
    }
}
