//! What Redis 8.2 does not have: newer commands and options, and our own.

use super::Generator;
use super::commands::{Make, add, fields, mode, trimming, words};
use crate::model::stream::Id;

/// Words that make a command worse.
pub const JUNK: &[&str] = &[
    "CLAIM",
    "MKGROUP",
    "DELAY",
    "NOTBEFORE",
    "IDMP",
    "IDMPAUTO",
    "MAXCOUNT",
    "MAXSIZE",
    "KEYFIELD",
    "MAXPENDING",
    "MAXPENDING-CONSUMER",
    "SILENT",
    "FATAL",
    "RANGE",
    "IFEMPTY",
    "RELEASE",
    "RETAIN",
    "FORCE",
    "acked",
    "MAXAGE",
    "MAXBYTES",
    "DISCARD",
    "p1",
    "f",
];

/// Weights and commands.
pub const ROWS: &[(u64, Make)] = &[
    (60, xnack),
    (20, |g| {
        let key = g.key_with_groups();
        let mut list = words(&["XGROUP", "CFGSET", &key, &g.group(&key)]);
        while list.len() < 6 {
            group_settings(g, &mut list, 50);
        }
        list
    }),
    (45, |g| words(&["XINFO", "GROUPSTATS", &g.key_with_groups()])),
    (25, xcfgset),
    (12, |g| words(&["XCFGGET", &g.key()])),
    (8, |g| {
        let key = g.key();
        let iid = g.pick(&["m1", "m2", "m3", ""]);
        words(&["XIDMPRECORD", &key, &g.producer(), &iid, &g.id(&key)])
    }),
    (30, xaddm),
];

impl Generator {
    fn producer(&mut self) -> String {
        if self.random.chance(2) { String::new() } else { self.pick(&["p1", "p1", "p2"]) }
    }

    /// A span of time in ms that things are put off for.
    fn span(&mut self) -> String {
        if self.random.chance(3) {
            return self.pick(&["-1", "x", "9223372036854775807"]);
        }
        self.pick(&["0", "1", "2", "5", "5", "10", "20", "60", "200"])
    }
}

/// DELAY or NOTBEFORE, now and then.
fn delay(g: &mut Generator, list: &mut Vec<String>) {
    if !g.random.chance(15) {
        return;
    }
    if g.random.chance(70) {
        let ms = g.span();
        add(list, &["DELAY", &ms]);
    } else {
        let ms = (g.model.now - 5 + g.random.below(30)).to_string();
        add(list, &["NOTBEFORE", &ms]);
    }
}

/// Options of XADD; answers whether the entry is a message that may come again.
pub fn xadd(g: &mut Generator, list: &mut Vec<String>) -> bool {
    if !g.profile.extended {
        return false;
    }
    delay(g, list);
    let identified = g.random.chance(8);
    if identified {
        let pid = g.producer();
        if g.random.chance(60) {
            let iid = if g.random.chance(2) { String::new() } else { g.pick(&["m1", "m2", "m3"]) };
            add(list, &["IDMP", &pid, &iid]);
        } else {
            add(list, &["IDMPAUTO", &pid]);
        }
    }
    // Only what makes the ID itself is one, as a rule.
    identified && g.random.chance(97)
}

fn xaddm(g: &mut Generator) -> Vec<String> {
    let key = g.key();
    let mut list = words(&["XADDM", &key]);
    if g.random.chance(8) {
        add(&mut list, &["NOMKSTREAM"]);
    }
    if g.random.chance(15) {
        list.extend(mode(g));
        trimming(g, &key, &mut list);
    }
    delay(g, &mut list);
    let n = 1 + g.random.below(4);
    let told = if g.random.chance(3) { g.pick(&["0", "-1", "x", "3"]) } else { n.to_string() };
    add(&mut list, &["COUNT", &told]);
    let mut last = g.model.stream(key.as_bytes()).ok().flatten().map_or(Id::MIN, |stream| stream.last);
    for _ in 0..n {
        last = Id(last.0.saturating_add(g.random.below(3)), last.1.saturating_add(1));
        let id = match g.random.below(20) {
            0..12 => "*".to_owned(),
            12..15 => format!("{}-*", last.0),
            15..19 => last.text(),
            _ => g.id(&key),
        };
        let mut pairs = Vec::new();
        fields(g, &mut pairs);
        let told = if g.random.chance(1) { g.pick(&["0", "3", "x"]) } else { (pairs.len() / 2).to_string() };
        add(&mut list, &[&id, &told]);
        list.extend(pairs);
    }
    list
}

fn xnack(g: &mut Generator) -> Vec<String> {
    let key = g.key_with_groups();
    let (group, mode) = (g.group(&key), g.pick(&["SILENT", "FAIL", "FAIL", "FATAL"]));
    let ids = g.pending_ids(&key, &group, 3);
    let n = if g.random.chance(3) { g.pick(&["0", "-1", "9", "x"]) } else { ids.len().to_string() };
    let mut list = words(&["XNACK", &key, &group, &mode, "IDS", &n]);
    list.extend(ids);
    if g.random.chance(15) {
        let n = g.pick(&["0", "1", "7", "-1", "9223372036854775807"]);
        add(&mut list, &["RETRYCOUNT", &n]);
    }
    if g.random.chance(30) {
        add(&mut list, &["FORCE"]);
    }
    if g.random.chance(40) {
        let ms = g.span();
        add(&mut list, &["DELAY", &ms]);
    }
    list
}

/// IFEMPTY or RELEASE.
pub fn delconsumer(g: &mut Generator, list: &mut Vec<String>) {
    if g.profile.extended && g.random.chance(60) {
        list.push(g.pick(&["IFEMPTY", "RELEASE", "RELEASE"]));
    }
}

/// MAXCOUNT and MAXSIZE.
pub fn bounds(g: &mut Generator, list: &mut Vec<String>) {
    if !g.profile.extended {
        return;
    }
    if g.random.chance(12) {
        let n = g.pick(&["1", "2", "3", "5", "100", "0"]);
        add(list, &["MAXCOUNT", &n]);
    }
    if g.random.chance(12) {
        let bytes = g.pick(&["1", "40", "60", "90", "140", "200", "-1"]);
        add(list, &["MAXSIZE", &bytes]);
    }
}

/// Options of XREADGROUP.
pub fn xreadgroup(g: &mut Generator, key: &str, list: &mut Vec<String>) {
    if !g.profile.extended {
        return;
    }
    bounds(g, list);
    if g.random.chance(40) {
        let ms = g.pick(&["0", "0", "1", "2", "5", "10", "20", "60", "1000000", "-5"]);
        add(list, &["CLAIM", &ms]);
    }
    let any = matches!(g.model.stream(key.as_bytes()), Ok(Some(stream)) if !stream.groups.is_empty());
    if g.random.chance(if any { 10 } else { 60 }) {
        add(list, &["MKGROUP"]);
        if g.random.chance(50) {
            list.push(g.pick(&["0", "$"]));
        }
    }
}

/// Settings of a group, each as often as told.
pub fn group_settings(g: &mut Generator, list: &mut Vec<String>, percent: u64) {
    if !g.profile.extended {
        return;
    }
    for name in ["MAXPENDING", "MAXPENDING-CONSUMER"] {
        if g.random.chance(percent) {
            let n = g.pick(&["0", "1", "1", "2", "3", "10"]);
            add(list, &[name, &n]);
        }
    }
    if g.random.chance(if g.ordered { 80 } else { percent }) {
        let field = g.pick(&["f", "f", "f", "f", "g", ""]);
        add(list, &["KEYFIELD", &field]);
    }
}

fn xcfgset(g: &mut Generator) -> Vec<String> {
    const OPTIONS: &[(&str, &[&str])] = &[
        ("IDMP-DURATION", &["1", "1", "2", "0"]),
        ("IDMP-MAXSIZE", &["1", "2", "3", "10001"]),
        ("MAXLEN", &["0", "0", "3", "5", "8", "-1"]),
        ("MAXBYTES", &["0", "0", "30", "80", "x"]),
        ("MAXAGE", &["0", "0", "3", "20", "100"]),
        ("RETAIN", &["all", "acked", "acked", "ACKED"]),
        ("DISCARD", &["old", "old", "new", "x"]),
    ];
    let mut list = words(&["XCFGSET", &g.key()]);
    for _ in 0..1 + g.random.below(2) {
        let (name, values) = *g.random.pick(OPTIONS);
        let value = g.pick(values);
        add(&mut list, &[name, &value]);
    }
    if g.random.chance(20) {
        add(&mut list, &["FORCE"]);
    }
    list
}
