//! Everything that a run asks and does, in order, as a function of its terms: what is compared later is what was meant, and not
//! what happened to be sent.
//!
//! The four streams wait for their idle times together, so a run takes two of them.

use super::manifest::Terms;

/// The group of each stream.
pub const GROUP: &str = "g";

/// No entry is idle for so long, in milliseconds.
pub const TOO_LONG_MS: u64 = 3_600_000;

/// Longest idle time that a run may be given, in milliseconds.
pub const IDLE_MAX_MS: u64 = 600_000;

/// A stream with its one entry.
#[derive(PartialEq, Eq, Debug)]
pub struct Stream {
    /// Its name behind the prefix.
    pub name: &'static str,
    /// The entry.
    pub entry: &'static str,
    /// The work that the entry stands for.
    pub work: &'static str,
}

/// Claimed, and nothing done: the negative control.
pub const CONTROL: Stream = Stream { name: "control", entry: "1000-0", work: "job-A" };
/// Done, not acknowledged, and claimed again.
pub const REPEAT: Stream = Stream { name: "repeat", entry: "3000-0", work: "job-B" };
/// Deleted while pending.
pub const DELETED: Stream = Stream { name: "deleted", entry: "4000-0", work: "job-C" };
/// Claimed, done, and acknowledged: the positive control.
pub const POSITIVE: Stream = Stream { name: "positive", entry: "2000-0", work: "job-D" };

/// All streams, in the order of their work.
pub const STREAMS: [&Stream; 4] = [&CONTROL, &REPEAT, &DELETED, &POSITIVE];

impl Stream {
    /// Its key.
    pub fn key(&self, prefix: &str) -> String {
        format!("{prefix}{}", self.name)
    }
}

/// When a command is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// In any case.
    Always,
    /// If the handler of this case said that the work is done.
    Done,
    /// If the keys are not to be kept.
    AtTheEnd,
}

/// A command.
#[derive(Debug)]
pub struct Ask {
    /// Of which case.
    pub case: &'static str,
    /// Its name within the case.
    pub name: String,
    /// The stream it is about.
    pub stream: Option<&'static Stream>,
    /// The command and its arguments.
    pub words: Vec<String>,
    /// When it is sent.
    pub when: When,
    /// May the server know nothing of it?
    pub is_optional: bool,
}

/// A run of the handler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Handle {
    /// Of which case.
    pub case: &'static str,
    /// For the entry of this stream,
    pub stream: &'static Stream,
    /// as this consumer,
    pub consumer: &'static str,
    /// if this claim of the case gave it,
    pub claim: &'static str,
    /// with the number of deliveries that this look at the pending list shows.
    pub pending: &'static str,
}

/// A step.
#[derive(Debug)]
pub enum Step {
    /// A command is sent, and its reply kept.
    Ask(Ask),
    /// Until the entries have been idle for long enough.
    Wait,
    /// The handler is run.
    Handle(Handle),
}

struct Steps<'a> {
    terms: &'a Terms,
    steps: Vec<Step>,
}

impl Steps<'_> {
    fn push(&mut self, case: &'static str, name: &str, stream: Option<&'static Stream>, words: &[&str]) -> &mut Ask {
        let words = words.iter().map(|&word| word.to_owned()).collect();
        let ask = Ask { case, name: name.into(), stream, words, when: When::Always, is_optional: false };
        self.steps.push(Step::Ask(ask));
        match self.steps.last_mut() {
            Some(Step::Ask(ask)) => ask,
            _ => unreachable!("it was pushed just now"),
        }
    }

    /// A command about a stream: `name key group …` with `rest` behind.
    fn on(&mut self, case: &'static str, name: &str, stream: &'static Stream, words: &str) -> &mut Ask {
        let key = stream.key(&self.terms.prefix);
        let (idle, too_long) = (self.terms.idle_ms.to_string(), TOO_LONG_MS.to_string());
        let words: Vec<&str> = words
            .split(' ')
            .map(|word| match word {
                "KEY" => &key,
                "ENTRY" => stream.entry,
                "WORK" => stream.work,
                "IDLE" => &idle,
                "TOOLONG" => &too_long,
                word => word,
            })
            .collect();
        self.push(case, name, Some(stream), &words)
    }

    fn prepare(&mut self, case: &'static str, stream: &'static Stream) {
        self.on(case, "add", stream, "XADD KEY ENTRY job_id WORK payload synthetic");
        self.on(case, "group", stream, "XGROUP CREATE KEY g 0");
        self.on(case, "read", stream, "XREADGROUP GROUP g c1 COUNT 1 STREAMS KEY >");
    }

    fn pending(&mut self, case: &'static str, name: &str, stream: &'static Stream) {
        self.on(case, name, stream, "XPENDING KEY g - + 10");
    }

    /// Looks, claims, and looks.
    fn claim(&mut self, case: &'static str, stream: &'static Stream, consumer: &str, names: [&str; 3]) {
        self.pending(case, names[0], stream);
        self.on(case, names[1], stream, &format!("XAUTOCLAIM KEY g {consumer} IDLE 0-0 COUNT 10"));
        self.pending(case, names[2], stream);
    }

    fn ledger(&mut self, case: &'static str, stream: &'static Stream) {
        self.on(case, "ledger", stream, "XWORK AUDIT KEY g - +").is_optional = true;
    }

    fn acknowledge(&mut self, case: &'static str, stream: &'static Stream) {
        self.on(case, "ack", stream, "XACK KEY g ENTRY").when = When::Done;
        self.pending(case, "after", stream);
        self.ledger(case, stream);
    }

    fn handle(&mut self, handle: Handle) {
        self.steps.push(Step::Handle(handle));
    }
}

/// The steps of a run, behind the look at the server and its keys.
pub fn steps(terms: &Terms) -> Vec<Step> {
    let mut steps = Steps { terms, steps: Vec::new() };
    steps.prepare("C01", &CONTROL);
    steps.pending("C01", "pending", &CONTROL);
    steps.ledger("C01", &CONTROL);
    steps.on("C02", "claim", &CONTROL, "XAUTOCLAIM KEY g c2 TOOLONG 0-0 COUNT 10");
    steps.pending("C02", "pending", &CONTROL);
    steps.ledger("C02", &CONTROL);
    steps.prepare("C05", &REPEAT);
    steps.prepare("C06", &DELETED);
    steps.on("C06", "delete", &DELETED, "XDEL KEY ENTRY");
    steps.prepare("C07", &POSITIVE);
    steps.steps.push(Step::Wait);
    steps.claim("C03", &CONTROL, "c2", ["before", "claim", "pending"]);
    steps.ledger("C03", &CONTROL);
    steps.on("C04", "history", &CONTROL, "XREADGROUP GROUP g c1 COUNT 10 STREAMS KEY 0");
    steps.pending("C04", "pending", &CONTROL);
    steps.ledger("C04", &CONTROL);
    // Behind the claim the entry is in neither book.
    steps.ledger("C06", &DELETED);
    steps.claim("C06", &DELETED, "c2", ["before", "claim", "pending"]);
    let handle =
        |case, stream, consumer, [claim, pending]: [&'static str; 2]| Handle { case, stream, consumer, claim, pending };
    steps.claim("C07", &POSITIVE, "c2", ["before", "claim", "pending"]);
    steps.claim("C05", &REPEAT, "c2", ["before", "claim", "pending"]);
    steps.handle(handle("C07", &POSITIVE, "c2", ["claim", "pending"]));
    steps.acknowledge("C07", &POSITIVE);
    // The consumer ends here, with the work done and not acknowledged.
    steps.handle(handle("C05", &REPEAT, "c2", ["claim", "pending"]));
    steps.steps.push(Step::Wait);
    steps.claim("C05", &REPEAT, "c3", ["before-2", "claim-2", "pending-2"]);
    steps.handle(handle("C05", &REPEAT, "c3", ["claim-2", "pending-2"]));
    steps.acknowledge("C05", &REPEAT);
    for stream in STREAMS {
        steps.pending("C08", stream.name, stream);
    }
    steps.push("C08", "info", None, &["INFO", "server"]);
    for stream in STREAMS {
        steps.on("end", stream.name, stream, "DEL KEY").when = When::AtTheEnd;
    }
    steps.steps
}

/// The first command of all.
pub fn info() -> Ask {
    let words = vec!["INFO".to_owned(), "server".to_owned()];
    Ask { case: "begin", name: "info".into(), stream: None, words, when: When::Always, is_optional: false }
}

/// The look for keys with the prefix, page by page.
pub fn scan(terms: &Terms, page: usize, cursor: &str) -> Ask {
    let pattern: String = terms
        .prefix
        .chars()
        .flat_map(|c| ['\\'].into_iter().filter(move |_| matches!(c, '*' | '?' | '[' | ']' | '\\')).chain([c]))
        .collect();
    let words = ["SCAN", cursor, "MATCH", &format!("{pattern}*"), "COUNT", "10000"].map(str::to_owned).to_vec();
    Ask { case: "begin", name: format!("scan-{page}"), stream: None, words, when: When::Always, is_optional: false }
}
