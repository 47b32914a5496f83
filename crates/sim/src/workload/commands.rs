//! How often each command comes and what it is made of.

use super::{Generator, extended};
use crate::model::stream::Id;

pub type Make = fn(&mut Generator) -> Vec<String>;

/// So many rows at the beginning are never left out.
pub const ALWAYS: usize = 2;

/// Weights and commands.
pub const ROWS: &[(u64, Make)] = &[
    (220, xadd),
    (170, xreadgroup),
    (60, xack),
    (50, xdel),
    (35, xdelex),
    (40, xackdel),
    (45, xtrim),
    (70, xclaim),
    (50, xautoclaim),
    (50, xpending),
    (55, xgroup_create),
    (30, xgroup_setid),
    (10, |g| {
        let key = g.key_with_groups();
        words(&["XGROUP", "DESTROY", &key, &g.group(&key)])
    }),
    (15, |g| {
        let key = g.key_with_groups();
        words(&["XGROUP", "CREATECONSUMER", &key, &g.group(&key), &g.consumer()])
    }),
    (20, |g| {
        let key = g.key_with_groups();
        let mut list = words(&["XGROUP", "DELCONSUMER", &key, &g.group(&key), &g.consumer()]);
        extended::delconsumer(g, &mut list);
        list
    }),
    (25, |g| words(&["XINFO", "STREAM", &g.key()])),
    (45, xinfo_full),
    (45, |g| words(&["XINFO", "GROUPS", &g.key_with_groups()])),
    (35, |g| {
        let key = g.key_with_groups();
        words(&["XINFO", "CONSUMERS", &key, &g.group(&key)])
    }),
    (25, xsetid),
    (45, xread),
    (30, xrange),
    (20, xrevrange),
    (10, |g| words(&["XLEN", &g.key()])),
    (6, |g| words(&["DEL", &g.key()])),
    (4, |g| {
        let key = g.key();
        words(&["EXISTS", &key, &g.key()])
    }),
    (4, |g| words(&["TYPE", &g.key()])),
    (4, |g| {
        let key = g.key();
        words(&["RENAME", &key, &g.key()])
    }),
    (4, |g| {
        let key = g.key();
        words(&["RENAMENX", &key, &g.key()])
    }),
    (10, copy),
    (5, pexpire),
    (5, |g| words(&["PERSIST", &g.key()])),
    (6, |g| words(&["PTTL", &g.key()])),
    (6, set),
    (3, |g| words(&["GET", &g.key()])),
    (9, |_| words(&["MULTI"])),
    (3, |_| words(&["EXEC"])),
    (1, |_| words(&["DISCARD"])),
    (8, |g| words(&["WATCH", &g.key()])),
    (1, |_| words(&["UNWATCH"])),
    (1, |_| words(&["FLUSHALL"])),
];

pub fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

pub fn add(list: &mut Vec<String>, more: &[&str]) {
    list.extend(words(more));
}

pub fn trimming(g: &mut Generator, key: &str, list: &mut Vec<String>) {
    let by_length = g.random.chance(60);
    add(list, &[if by_length { "MAXLEN" } else { "MINID" }]);
    let mark = g.pick(&["", "", "=", "~", "~"]);
    if !mark.is_empty() {
        add(list, &[&mark]);
    }
    let threshold = if by_length { g.pick(&["0", "1", "2", "3", "5", "8", "10", "-1"]) } else { g.id(key) };
    add(list, &[&threshold]);
    if (mark == "~" && g.random.chance(40)) || g.random.chance(2) {
        let limit = g.pick(&["0", "1", "3", "4", "5", "8", "100", "-1"]);
        add(list, &["LIMIT", &limit]);
    }
}

/// KEEPREF and the like; what 8.2.3 is known to get wrong comes less often where servers are compared.
pub fn mode(g: &mut Generator) -> Option<String> {
    g.random
        .chance(if g.profile.virtual_time { 45 } else { 20 })
        .then(|| g.pick(&["KEEPREF", "DELREF", "ACKED", "acked"]))
}

pub fn fields(g: &mut Generator, list: &mut Vec<String>) {
    if g.ordered && g.random.chance(80) {
        let value = g.pick(&["1", "1", "2"]);
        add(list, &["f", &value]);
    }
    for _ in 0..1 + g.random.below(2) {
        let value = g.pick(&["1", "2", "x", "", "a longer value"]);
        let field = g.pick(&["f", "g", "h", ""]);
        add(list, &[&field, &value]);
    }
}

fn xadd(g: &mut Generator) -> Vec<String> {
    let key = g.key();
    let mut list = words(&["XADD", &key]);
    if g.random.chance(8) {
        add(&mut list, &["NOMKSTREAM"]);
    }
    if g.random.chance(if g.profile.extended { 8 } else { 20 }) {
        if let Some(mode) = mode(g) {
            add(&mut list, &[&mode]);
        }
        trimming(g, &key, &mut list);
    }
    let identified = extended::xadd(g, &mut list);
    let last = g.model.stream(key.as_bytes()).ok().flatten().map_or(Id::MIN, |stream| stream.last);
    let ms = last.0.saturating_add(g.random.below(3));
    let auto = identified || g.random.chance(if g.profile.virtual_time { 30 } else { 1 });
    let id = match g.random.below(100) {
        _ if auto => "*".to_owned(),
        0..35 => format!("{ms}-*"),
        35..90 => match last {
            Id(ms, seq) if g.random.chance(50) => format!("{ms}-{}", seq.saturating_add(1 + g.random.below(2))),
            _ => format!("{}-{}", ms.saturating_add(1), g.random.below(3)),
        },
        90..99 => g.id(&key),
        _ if g.random.chance(10) => "18446744073709551615-18446744073709551614".to_owned(),
        _ => "0-*".to_owned(),
    };
    add(&mut list, &[&id]);
    fields(g, &mut list);
    list
}

fn xtrim(g: &mut Generator) -> Vec<String> {
    let key = g.key();
    let mut list = words(&["XTRIM", &key]);
    let mode = mode(g);
    let before = g.random.chance(30);
    if let Some(mode) = mode.as_ref().filter(|_| before) {
        add(&mut list, &[mode]);
    }
    trimming(g, &key, &mut list);
    if let Some(mode) = mode.as_ref().filter(|_| !before) {
        add(&mut list, &[mode]);
    }
    list
}

fn xsetid(g: &mut Generator) -> Vec<String> {
    let key = g.key();
    let last = g.model.stream(key.as_bytes()).ok().flatten().map_or(Id::MIN, |stream| stream.last);
    let top = g.model.stream(key.as_bytes()).ok().flatten().and_then(|stream| stream.entries.keys().next_back());
    let top = top.map_or(last, |top| *top);
    let id = match g.random.below(10) {
        0..4 => last.next().text(),
        // Back to the last entry: what was trimmed behind it may come again.
        4..7 => top.text(),
        _ => g.id(&key),
    };
    let mut list = words(&["XSETID", &key, &id]);
    if g.random.chance(50) {
        let n = g.pick(&["0", "1", "5", "10", "20", "30", "-1"]);
        add(&mut list, &["ENTRIESADDED", &n]);
    }
    if g.random.chance(40) {
        let id = g.id(&key);
        add(&mut list, &["MAXDELETEDID", &id]);
    }
    list
}

fn xdel(g: &mut Generator) -> Vec<String> {
    let key = g.key();
    let mut list = words(&["XDEL", &key]);
    list.extend(g.ids(&key, 3));
    list
}

fn ids_block(g: &mut Generator, ids: Vec<String>, list: &mut Vec<String>) {
    let mode = g.random.chance(65).then(|| g.pick(&["KEEPREF", "DELREF", "ACKED"]));
    let before = g.random.chance(50);
    list.extend(mode.clone().filter(|_| before));
    let n = if g.random.chance(3) { g.pick(&["0", "-1", "9", "x"]) } else { ids.len().to_string() };
    add(list, &["IDS", &n]);
    list.extend(ids);
    list.extend(mode.filter(|_| !before));
}

fn xdelex(g: &mut Generator) -> Vec<String> {
    let key = g.key_with_groups();
    let mut list = words(&["XDELEX", &key]);
    let ids = g.ids(&key, 3);
    ids_block(g, ids, &mut list);
    list
}

fn xack(g: &mut Generator) -> Vec<String> {
    let key = g.key_with_groups();
    let group = g.group(&key);
    let mut list = words(&["XACK", &key, &group]);
    if g.profile.extended && g.random.chance(20) {
        let (first, last) = (g.bound(&key, "-"), g.bound(&key, "+"));
        add(&mut list, &["RANGE", &first, &last]);
        return list;
    }
    list.extend(g.pending_ids(&key, &group, 3));
    list
}

fn xackdel(g: &mut Generator) -> Vec<String> {
    let key = g.key_with_groups();
    let group = g.group(&key);
    let mut list = words(&["XACKDEL", &key, &group]);
    let ids = g.pending_ids(&key, &group, 3);
    ids_block(g, ids, &mut list);
    list
}

fn range(g: &mut Generator, name: &str, from: &str, to: &str) -> Vec<String> {
    let key = g.key();
    let (first, second) = (g.bound(&key, from), g.bound(&key, to));
    let mut list = words(&[name, &key, &first, &second]);
    if g.random.chance(40) {
        let count = g.count();
        add(&mut list, &["COUNT", &count]);
    }
    list
}

fn xrange(g: &mut Generator) -> Vec<String> {
    range(g, "XRANGE", "-", "+")
}

fn xrevrange(g: &mut Generator) -> Vec<String> {
    range(g, "XREVRANGE", "+", "-")
}

fn block(g: &mut Generator, list: &mut Vec<String>) {
    if g.profile.blocking && g.random.chance(35) {
        let ms = g.pick(&["1", "5", "20", "50", "0", "100"]);
        add(list, &["BLOCK", &ms]);
    } else if g.random.chance(1) {
        let ms = g.pick(&["-1", "x", "9223372036854775807"]);
        add(list, &["BLOCK", &ms]);
    }
}

fn streams(g: &mut Generator, key: String, list: &mut Vec<String>, id: fn(&mut Generator, &str) -> String) {
    let mut keys = vec![key];
    if g.random.chance(20) {
        keys.push(g.key_with_groups());
    }
    add(list, &["STREAMS"]);
    list.extend(keys.clone());
    for key in &keys {
        let id = id(g, key);
        list.push(id);
    }
}

fn xread(g: &mut Generator) -> Vec<String> {
    let mut list = words(&["XREAD"]);
    if g.random.chance(50) {
        let count = g.count();
        add(&mut list, &["COUNT", &count]);
    }
    extended::bounds(g, &mut list);
    block(g, &mut list);
    let key = g.key();
    streams(g, key, &mut list, |g, key| match g.random.below(10) {
        0..3 => "$".to_owned(),
        3 => "+".to_owned(),
        4..6 => "0".to_owned(),
        _ => g.id(key),
    });
    list
}

fn xreadgroup(g: &mut Generator) -> Vec<String> {
    let key = g.key_with_groups();
    let (group, consumer) = (g.group(&key), g.consumer());
    let mut list = words(&["XREADGROUP", "GROUP", &group, &consumer]);
    if g.random.chance(60) {
        let count = g.count();
        add(&mut list, &["COUNT", &count]);
    }
    if g.random.chance(12) {
        add(&mut list, &["NOACK"]);
    }
    extended::xreadgroup(g, &key, &mut list);
    block(g, &mut list);
    streams(g, key, &mut list, |g, key| match g.random.below(100) {
        0..70 => ">".to_owned(),
        70..82 => "0".to_owned(),
        82 => g.pick(&["$", "+"]),
        _ => g.id(key),
    });
    list
}

fn xclaim(g: &mut Generator) -> Vec<String> {
    let key = g.key_with_groups();
    let group = g.group(&key);
    let mut list = words(&["XCLAIM", &key, &group, &g.consumer(), &g.min_idle()]);
    list.extend(g.pending_ids(&key, &group, 4));
    if g.random.chance(25) {
        let ms = g.idle();
        add(&mut list, &["IDLE", &ms]);
    }
    if g.random.chance(10) {
        let ms = g.unix_ms();
        add(&mut list, &["TIME", &ms]);
    }
    if g.random.chance(15) {
        let n = g.pick(&["0", "1", "7", "-1", "9223372036854775000"]);
        add(&mut list, &["RETRYCOUNT", &n]);
    }
    if g.random.chance(30) {
        add(&mut list, &["FORCE"]);
    }
    if g.random.chance(25) {
        add(&mut list, &["JUSTID"]);
    }
    if g.random.chance(10) {
        let id = g.id(&key);
        add(&mut list, &["LASTID", &id]);
    }
    list
}

fn xautoclaim(g: &mut Generator) -> Vec<String> {
    let key = g.key_with_groups();
    let (group, consumer, min_idle) = (g.group(&key), g.consumer(), g.min_idle());
    let start = g.bound(&key, "0");
    let mut list = words(&["XAUTOCLAIM", &key, &group, &consumer, &min_idle, &start]);
    if g.random.chance(50) {
        let count = g.count();
        add(&mut list, &["COUNT", &count]);
    }
    if g.random.chance(25) {
        add(&mut list, &["JUSTID"]);
    }
    list
}

fn xpending(g: &mut Generator) -> Vec<String> {
    let key = g.key_with_groups();
    let mut list = words(&["XPENDING", &key, &g.group(&key)]);
    if g.random.chance(30) {
        return list;
    }
    if g.random.chance(35) {
        let ms = g.min_idle();
        add(&mut list, &["IDLE", &ms]);
    }
    let (first, second, count) = (g.bound(&key, "-"), g.bound(&key, "+"), g.count());
    add(&mut list, &[&first, &second, &count]);
    if g.random.chance(30) {
        list.push(g.consumer());
    }
    list
}

fn entries_read(g: &mut Generator, list: &mut Vec<String>) {
    if g.random.chance(35) {
        let n = g.pick(&["0", "1", "2", "5", "100", "-1", "-2"]);
        add(list, &["ENTRIESREAD", &n]);
    }
}

fn xgroup_create(g: &mut Generator) -> Vec<String> {
    let key = g.key();
    let id = if g.random.chance(65) { g.pick(&["0", "0", "$"]) } else { g.id(&key) };
    let mut list = words(&["XGROUP", "CREATE", &key, &g.new_group(), &id]);
    if g.random.chance(60) {
        add(&mut list, &["MKSTREAM"]);
    }
    entries_read(g, &mut list);
    extended::group_settings(g, &mut list, 30);
    list
}

fn xgroup_setid(g: &mut Generator) -> Vec<String> {
    let key = g.key_with_groups();
    let id = if g.random.chance(40) { g.pick(&["0", "$", "-", "+"]) } else { g.id(&key) };
    let mut list = words(&["XGROUP", "SETID", &key, &g.group(&key), &id]);
    entries_read(g, &mut list);
    list
}

fn xinfo_full(g: &mut Generator) -> Vec<String> {
    let mut list = words(&["XINFO", "STREAM", &g.key_with_groups(), "FULL"]);
    if g.random.chance(50) {
        let count = g.count();
        add(&mut list, &["COUNT", &count]);
    }
    list
}

fn copy(g: &mut Generator) -> Vec<String> {
    let from = g.key();
    let mut list = words(&["COPY", &from, &g.key()]);
    if g.random.chance(70) {
        add(&mut list, &["REPLACE"]);
    }
    list
}

fn pexpire(g: &mut Generator) -> Vec<String> {
    let key = g.key();
    let ms = if g.profile.virtual_time { g.pick(&["5", "20", "60", "0", "-1"]) } else { g.pick(&["100000000", "-1"]) };
    words(&["PEXPIRE", &key, &ms])
}

fn set(g: &mut Generator) -> Vec<String> {
    let key = if g.random.chance(70) { "t".to_owned() } else { g.key() };
    words(&["SET", &key, "v"])
}
