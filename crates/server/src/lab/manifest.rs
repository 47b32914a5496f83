//! The manifest: what the eight cases are and what must come of them. It is written before anything is asked of the server, and
//! is a function of the terms of the run alone: nothing in it was ever read from a reply.

use serde_json::{Value, json};

use super::plan::{CONTROL, DELETED, POSITIVE, REPEAT, Stream};

/// Version of the form of manifests and bundles.
pub const FORMAT: u64 = 1;

/// A case, and what must come of it.
#[derive(Debug)]
pub struct Case {
    /// C01 to C08.
    pub name: &'static str,
    /// The stream it is about; none is all of them.
    pub stream: Option<&'static Stream>,
    /// What is brought about.
    pub condition: &'static str,
    /// What the group must show, in the words of the observations.
    pub state: &'static str,
    /// What must be known of the work.
    pub work: &'static str,
}

/// The cases.
pub const CASES: [Case; 8] = [
    Case {
        name: "C01",
        stream: Some(&CONTROL),
        condition: "c1 reads and does not acknowledge",
        state: "pending_c1",
        work: "no_completion",
    },
    Case {
        name: "C02",
        stream: Some(&CONTROL),
        condition: "c2 claims before the idle time is over",
        state: "claim_empty+pending_c1",
        work: "no_completion",
    },
    Case {
        name: "C03",
        stream: Some(&CONTROL),
        condition: "negative control: c2 claims after the idle time and does nothing",
        state: "claimed+pending_c2",
        work: "no_completion",
    },
    Case {
        name: "C04",
        stream: Some(&CONTROL),
        condition: "c1 resumes and asks for what is pending for it",
        state: "history_empty+pending_c2",
        work: "no_completion+payload_still_with_c1",
    },
    Case {
        name: "C05",
        stream: Some(&REPEAT),
        condition: "c2 claims and does the work without acknowledging, c3 claims again, does it and acknowledges",
        state: "claimed+pending_c3+acked_1+pending_zero",
        work: "two_attempts+one_completion+one_duplicate",
    },
    Case {
        name: "C06",
        stream: Some(&DELETED),
        condition: "deleted while pending, then claimed by c2",
        state: "deleted_id_reported+pending_zero",
        work: "no_completion+no_payload",
    },
    Case {
        name: "C07",
        stream: Some(&POSITIVE),
        condition: "positive control: c2 claims, does the work and acknowledges",
        state: "claimed+acked_1+pending_zero",
        work: "one_completion",
    },
    Case {
        name: "C08",
        stream: None,
        condition: "both books are reconciled at the end",
        state: "control_pending_c2+repeat_pending_zero+deleted_pending_zero+positive_pending_zero",
        work: "completed:job-B,job-D",
    },
];

/// What a run was asked to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Terms {
    /// The program.
    pub tool: String,
    /// The server, without a password.
    pub url: String,
    /// What the keys begin with.
    pub prefix: String,
    /// After how many milliseconds an entry may be claimed.
    pub idle_ms: u64,
    /// How long a handler may take, in milliseconds.
    pub handler_ms: u64,
    /// The command that does the work; the built-in one without.
    pub handler: Option<String>,
    /// The version that the server must have, if that is wanted.
    pub version: Option<String>,
    /// Are the keys left where they are?
    pub keep: bool,
    /// When the manifest was made.
    pub made: String,
}

impl Terms {
    fn json(&self) -> [(&'static str, Value); 10] {
        [
            ("format", json!(FORMAT)),
            ("tool", json!(self.tool)),
            ("url", json!(self.url)),
            ("prefix", json!(self.prefix)),
            ("idle_ms", json!(self.idle_ms)),
            ("handler_ms", json!(self.handler_ms)),
            ("handler", json!(self.handler)),
            ("version", json!(self.version)),
            ("keep", json!(self.keep)),
            ("made", json!(self.made)),
        ]
    }

    /// The manifest: the terms, a line each, and a table of the cases with tabs.
    pub fn manifest(&self) -> String {
        let mut text: String = self.json().iter().map(|(name, value)| format!("# {name}\t{value}\n")).collect();
        text += "case\twork\tentry\tstream\tcondition\texpected_state\texpected_work\n";
        for case in &CASES {
            let Case { name, condition, state, work, stream } = case;
            let [of, entry, key] = stream.map_or(["all"; 3], |stream| [stream.work, stream.entry, stream.name]);
            text += &format!("{name}\t{of}\t{entry}\t{key}\t{condition}\t{state}\t{work}\n");
        }
        text
    }

    /// Reads the terms of a manifest; whether the rest is as it must be shows in comparing it with [`Terms::manifest`].
    pub fn read(text: &str) -> Result<Terms, String> {
        let mut terms = serde_json::Map::new();
        for line in text.lines().filter_map(|line| line.strip_prefix("# ")) {
            let (name, value) = line.split_once('\t').ok_or("a line of the terms without a tab")?;
            terms.insert(name.into(), serde_json::from_str(value).map_err(|error| format!("{name}: {error}"))?);
        }
        let terms = Value::Object(terms);
        if terms["format"] != json!(FORMAT) {
            return Err("is of a format that is not known".into());
        }
        let text = |name: &str| terms[name].as_str().map(str::to_owned).ok_or_else(|| format!("has no {name}"));
        let number = |name: &str| terms[name].as_u64().ok_or_else(|| format!("has no {name}"));
        let or_none = |name: &str| terms[name].as_str().map(str::to_owned);
        Ok(Terms {
            tool: text("tool")?,
            url: text("url")?,
            prefix: text("prefix")?,
            idle_ms: number("idle_ms")?,
            handler_ms: number("handler_ms")?,
            handler: or_none("handler"),
            version: or_none("version"),
            keep: terms["keep"].as_bool().ok_or("has no keep")?,
            made: text("made")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms() -> Terms {
        Terms {
            tool: "impel 0".into(),
            url: "redis://h:1/0".into(),
            prefix: "lab:\t\"x\":".into(),
            idle_ms: 5,
            handler_ms: 7,
            handler: Some("a\nb".into()),
            version: None,
            keep: true,
            made: "now".into(),
        }
    }

    #[test]
    fn a_manifest_says_what_it_was_made_of() {
        let manifest = terms().manifest();
        assert_eq!(manifest.lines().count(), 10 + 1 + 8, "{manifest}");
        assert_eq!(Terms::read(&manifest), Ok(terms()));
        for name in ["format", "tool", "url", "prefix", "idle_ms", "handler_ms", "keep", "made"] {
            let without: Vec<&str> =
                manifest.lines().filter(|line| !line.starts_with(&format!("# {name}\t"))).collect();
            assert!(Terms::read(&without.join("\n")).is_err(), "{name}");
        }
        assert!(Terms::read(&manifest.replace("# format\t1", "# format\t2")).is_err());
    }
}
