//! The same as `page.rs`, for programs: one JSON object. Names are added and never change their meaning.

use std::fmt::Write;

use super::repair::Repaired;
use super::{Counts, Damage, Report, SnapshotFault, Verdict};
use crate::disk::Holder;

/// An object or a list in the making.
struct Json(String);

impl Json {
    fn object(fill: impl FnOnce(&mut Json)) -> String {
        let mut json = Json("{".into());
        fill(&mut json);
        json.0 + "}"
    }

    fn list(items: impl Iterator<Item = String>) -> String {
        format!("[{}]", items.collect::<Vec<_>>().join(","))
    }

    /// A member whose value is JSON already.
    fn raw(&mut self, name: &str, value: impl std::fmt::Display) {
        let comma = if self.0.len() > 1 { "," } else { "" };
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{comma}\"{name}\":{value}");
    }

    fn text(&mut self, name: &str, value: &str) {
        self.raw(name, quoted(value));
    }

    fn optional(&mut self, name: &str, value: Option<u64>) {
        match value {
            Some(value) => self.raw(name, value),
            None => self.raw(name, "null"),
        }
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            // Writing to a string cannot fail.
            control if control < ' ' => drop(write!(out, "\\u{:04x}", u32::from(control))),
            letter => out.push(letter),
        }
    }
    out + "\""
}

/// The report.
pub fn report(report: &Report) -> String {
    Json::object(|json| {
        json.text("folder", &report.folder);
        json.text(
            "verdict",
            match report.verdict() {
                Verdict::Whole => "whole",
                Verdict::Damaged => "damaged",
                Verdict::Refused => "refused",
            },
        );
        json.text(
            "holder",
            match report.holder {
                Holder::Nobody => "nobody",
                Holder::Server => "server",
                Holder::Unknown => "unknown",
            },
        );
        json.raw("snapshots", Json::list(report.snapshots.iter().map(snapshot)));
        let segments = report.segments.iter().map(|one| {
            Json::object(|json| {
                json.text("file", &one.path.display().to_string());
                json.raw("start", one.start);
                json.raw("end", one.end);
                json.raw("commits", one.commits);
                json.optional("first_ms", one.times.map(|(first, _)| first));
                json.optional("last_ms", one.times.map(|(_, last)| last));
                json.raw("used_bytes", one.used_bytes);
                json.raw("len_bytes", one.len_bytes);
                json.raw("whole", one.is_whole);
            })
        });
        json.raw("segments", Json::list(segments));
        json.raw("leftovers", Json::list(report.leftovers.iter().map(|name| quoted(name))));
        json.raw("start", start(report));
        json.raw("state", state(report));
        json.raw("gaps", Json::list(report.gaps.iter().map(damage)));
        json.raw("damage", Json::list(report.damage.iter().map(damage)));
        json.raw("unknown_commits", Json::list(report.unknown_commits.iter().map(u64::to_string)));
    })
}

fn snapshot(one: &super::SnapshotReport) -> String {
    Json::object(|json| {
        json.text("file", &one.path.display().to_string());
        json.raw("position", one.position);
        json.raw("whole", one.contents.is_ok());
        match &one.contents {
            Ok(contents) => {
                json.raw("time_ms", contents.now_ms);
                json.raw("with_log", contents.with_log);
                json.raw("len_bytes", contents.len_bytes);
                counts(json, &contents.counts);
            }
            Err(SnapshotFault::Damaged { offset, what }) => {
                json.raw("damaged_at", offset);
                json.text("what", what);
            }
            Err(SnapshotFault::Foreign(version)) => json.raw("format", version),
            Err(SnapshotFault::Unknown(what)) => json.text("what", &what.to_string()),
        }
    })
}

fn start(report: &Report) -> String {
    let start = &report.start;
    Json::object(|json| {
        let (found, done) = start.row.meaning();
        json.text("row", &format!("{:?}", start.row));
        json.text("found", found);
        json.text("done", done);
        match &start.refusal {
            Some(refusal) => json.text("refusal", refusal),
            None => json.raw("refusal", "null"),
        }
        json.raw("cut_bytes", start.cut_bytes);
        json.raw("log_is_missing", start.log_is_missing);
        json.optional("snapshot", start.snapshot);
    })
}

fn state(report: &Report) -> String {
    let state = &report.state;
    Json::object(|json| {
        json.raw("position", state.position);
        json.raw("commits", state.commits);
        json.raw("records", state.records);
        json.text("digest", &state.digest);
        match &state.fault {
            Some(fault) => json.text("fault", fault),
            None => json.raw("fault", "null"),
        }
        let databases = state.databases.iter().map(|(number, of)| {
            Json::object(|json| {
                json.raw("database", number);
                counts(json, of);
            })
        });
        json.raw("databases", Json::list(databases));
        match &report.older {
            None => json.raw("older", "null"),
            Some(older) => json.raw(
                "older",
                Json::object(|json| {
                    json.raw("from", older.base);
                    match &older.digest {
                        Ok(digest) => json.text("digest", digest),
                        Err(why) => json.text("fault", why),
                    }
                }),
            ),
        }
    })
}

fn counts(json: &mut Json, counts: &Counts) {
    json.raw("keys", counts.keys);
    json.raw("streams", counts.streams);
    json.raw("entries", counts.entries);
    json.raw("groups", counts.groups);
    json.raw("pending", counts.pending);
}

fn damage(one: &Damage) -> String {
    Json::object(|json| {
        json.text("file", &one.path.display().to_string());
        json.optional("from_byte", one.bytes.map(|(from, _)| from));
        json.optional("to_byte", one.bytes.and_then(|(_, to)| to));
        json.optional("from_position", one.positions.map(|(from, _)| from));
        json.optional("to_position", one.positions.and_then(|(_, to)| to));
        json.optional("before_ms", one.before_ms);
        json.optional("after_ms", one.after_ms);
        json.text("what", &one.what);
    })
}

/// What a repair made.
pub fn repaired(repaired: &Repaired, folder: &str) -> String {
    Json::object(|json| {
        json.text("folder", folder);
        json.raw("complete", repaired.is_complete());
        json.raw("position", repaired.position);
        json.text("digest", &repaired.digest);
        counts(json, &repaired.counts);
        json.optional("base", repaired.base);
        json.raw("commits", repaired.commits);
        json.raw("commits_behind", repaired.commits_behind);
        json.raw("lost", Json::list(repaired.lost.iter().map(damage)));
        let salvaged = repaired.salvaged.iter().map(|one| {
            Json::object(|json| {
                json.raw("position", one.position);
                json.raw("keys", one.keys);
                json.raw("chunks_lost", one.chunks_lost);
                json.raw("is_all", one.is_all);
            })
        });
        json.raw("salvaged", Json::list(salvaged));
        match &repaired.given_up {
            Some(why) => json.text("given_up", why),
            None => json.raw("given_up", "null"),
        }
        json.raw("left_out", repaired.left_out);
        let named = repaired.named.iter().map(|one| {
            Json::object(|json| {
                json.raw("position", one.position);
                json.raw("time_ms", one.now_ms);
                json.text("record", one.kind);
                if let Some((db, key)) = &one.key {
                    json.raw("database", db);
                    json.text("key", &key.escape_ascii().to_string());
                }
                json.text("why", one.why);
            })
        });
        json.raw("named", Json::list(named));
    })
}

/// Both in one object.
pub fn both(check: &str, repair: Option<&str>) -> String {
    Json::object(|json| {
        json.raw("check", check);
        json.raw("repair", repair.unwrap_or("null"));
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_and_texts() {
        let object = Json::object(|json| {
            json.text("a", "\"\\\n\u{e9}");
            json.raw("b", Json::list([1, 2].iter().map(ToString::to_string)));
            json.optional("c", None);
        });
        assert_eq!(object, "{\"a\":\"\\\"\\\\\\u000a\u{e9}\",\"b\":[1,2],\"c\":null}");
        assert_eq!(both("{}", None), "{\"check\":{},\"repair\":null}");
    }
}
