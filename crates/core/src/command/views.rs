//! Replies made from the command table: COMMAND and its subcommands, HELP of the containers, and the keys of a command.
//! Read-only: nothing here looks at the state. Names come in any case of letters; replies show them in lower case.

use std::ops::Range;

use smallvec::SmallVec;

use super::args::Args;
use super::table::{
    self, Argument, ArgumentKind, Categories, CommandId, CommandSpec, Flags, KeyBegin, KeyFlags, KeySpec,
};
use crate::glob::{self, Case};
use crate::resp::encode::Reply;

/// Argument numbers of the keys of a command; 0 is the name of the command.
pub type KeyPositions = SmallVec<[usize; 8]>;

/// COMMAND: all rows.
pub fn command(reply: &mut Reply) {
    reply.array(table::COMMANDS);
    for spec in table::all() {
        info(spec, reply);
    }
}

/// COMMAND COUNT.
pub fn command_count(reply: &mut Reply) {
    reply.count(table::COMMANDS as u64);
}

/// COMMAND INFO: the rows of those names, null for an unknown one. All rows without a name.
pub fn command_info(names: Args, reply: &mut Reply) {
    if names.is_empty() {
        return command(reply);
    }
    reply.array(names.len());
    for name in names.iter() {
        match table::lookup_full(name) {
            Some(spec) => info(spec, reply),
            None => reply.null(),
        }
    }
}

/// COMMAND DOCS: what is known of those names; unknown ones are left out. All of the table without a name.
pub fn command_docs(names: Args, reply: &mut Reply) {
    if names.is_empty() {
        reply.map(table::COMMANDS);
        for spec in table::all() {
            docs(spec, reply);
        }
        return;
    }
    let found = names.iter().filter_map(table::lookup_full);
    reply.map(found.clone().count());
    for spec in found {
        docs(spec, reply);
    }
}

/// COMMAND LIST: names, with those of subcommands. `options` are the arguments behind LIST.
pub fn command_list(options: Args, reply: &mut Reply) {
    match options.len() {
        0 => names(|_| true, reply),
        3 if options.get(0).eq_ignore_ascii_case(b"FILTERBY") => {
            let filter = options.get(2);
            match options.get(1).to_ascii_uppercase().as_slice() {
                // There are no modules.
                b"MODULE" => reply.array(0),
                b"ACLCAT" => match Categories::by_name(filter) {
                    Some(category) => names(|spec| spec.categories.has(category), reply),
                    None => reply.array(0),
                },
                b"PATTERN" => {
                    names(|spec| glob::matches(filter, spec.name.as_bytes(), Case::Insensitive), reply);
                }
                _ => reply.error(b"ERR syntax error"),
            }
        }
        _ => reply.error(b"ERR syntax error"),
    }
}

fn names(wanted: impl Fn(&CommandSpec) -> bool, reply: &mut Reply) {
    let found = table::all_with_subcommands().filter(|spec| wanted(spec));
    reply.array(found.clone().count());
    for spec in found {
        reply.bulk(spec.name.as_bytes());
    }
}

/// COMMAND GETKEYS: the keys in `command`, which begins with a name and must not be empty.
pub fn command_getkeys(command: Args, reply: &mut Reply) {
    if let Some((_, keys)) = keys_or_error(command, reply) {
        reply.array(keys.len());
        for key in keys {
            reply.bulk(command.get(key));
        }
    }
}

/// COMMAND GETKEYSANDFLAGS: as GETKEYS, with what happens to each key.
pub fn command_getkeysandflags(command: Args, reply: &mut Reply) {
    if let Some((spec, keys)) = keys_or_error(command, reply) {
        reply.array(keys.len());
        for key in keys {
            reply.array(2);
            reply.bulk(command.get(key));
            let flags = key_flags_of(spec, command, key);
            reply.set(flags.len());
            flags.names().for_each(|name| reply.simple(name));
        }
    }
}

fn keys_or_error(command: Args, reply: &mut Reply) -> Option<(&'static CommandSpec, KeyPositions)> {
    let error = match table::find(command) {
        Err(_) => "ERR Invalid command specified",
        Ok(spec) if !spec.takes_keys() => "ERR The command has no key arguments",
        Ok(spec) if !spec.accepts(command.len()) => "ERR Invalid number of arguments specified for command",
        Ok(spec) => {
            let keys = keys_of(spec, command);
            if !keys.is_empty() || spec.flags.has(Flags::NO_MANDATORY_KEYS) {
                return Some((spec, keys));
            }
            "ERR Invalid arguments specified for command"
        }
    };
    reply.error(error.as_bytes());
    None
}

/// The keys of a command whose arity is right; none when the arguments are such that the command will be refused.
/// These are exactly the keys that the command uses: access checks and routing go by them.
pub fn keys_of(spec: &CommandSpec, args: Args) -> KeyPositions {
    match spec.id {
        CommandId::XRead | CommandId::XReadGroup => stream_keys(args),
        CommandId::Eval | CommandId::EvalRo | CommandId::EvalSha | CommandId::EvalShaRo => counted_keys(args),
        CommandId::XWorkDone | CommandId::XWorkPolicy => work_keys(spec.id, args),
        _ => spec.key_specs.iter().flat_map(|rule| positions(rule, args.len())).collect(),
    }
}

/// What the command does to the key at `position`.
pub fn key_flags_of(spec: &CommandSpec, args: Args, position: usize) -> KeyFlags {
    if spec.id == CommandId::Set {
        // The old value is seen only with GET.
        let reads = args.iter().skip(3).any(|argument| argument.eq_ignore_ascii_case(b"GET"));
        let access = if reads { KeyFlags::RW.with(KeyFlags::ACCESS) } else { KeyFlags::OW };
        return access.with(KeyFlags::UPDATE);
    }
    if spec.id == CommandId::XReadGroup && read_layout(args).is_some_and(|layout| layout.makes_groups) {
        return KeyFlags::RW.with(KeyFlags::ACCESS).with(KeyFlags::INSERT);
    }
    let found = spec.key_specs.iter().find(|rule| positions(rule, args.len()).any(|p| p == position));
    match found.or(spec.key_specs.first()) {
        // That a rule is incomplete says nothing about a key.
        Some(rule) => rule.flags.without(KeyFlags::INCOMPLETE),
        None => KeyFlags::NONE,
    }
}

/// Positions by a rule that needs no look at the arguments.
fn positions(rule: &KeySpec, len: usize) -> impl Iterator<Item = usize> {
    let (first, end) = match rule.begin {
        KeyBegin::Index(first) => {
            let first = usize::from(first);
            let last = if rule.last < 0 {
                len.saturating_sub(usize::from(rule.last.unsigned_abs()))
            } else {
                first + usize::from(rule.last.unsigned_abs())
            };
            (first, (last + 1).min(len))
        }
        KeyBegin::Keyword(..) => (0, 0),
    };
    let (first, end) = if rule.counted { (0, 0) } else { (first, end) };
    (first..end).step_by(usize::from(rule.step))
}

/// EVAL and its kin: as many as they say; none when they say what cannot be.
fn counted_keys(args: Args) -> KeyPositions {
    let count = args.try_get(2).and_then(|count| std::str::from_utf8(count).ok()?.parse::<usize>().ok());
    match count {
        Some(count) if count <= args.len() - 3 => (3..3 + count).collect(),
        _ => KeyPositions::new(),
    }
}

/// XWORK DONE and POLICY: the stream, and the key behind EMIT or each DEADLETTER, found as the parser does: a work id or a
/// field may be called EMIT as well.
fn work_keys(command: CommandId, args: Args) -> KeyPositions {
    let (mut at, word, ends): (usize, &[u8], bool) = match command {
        CommandId::XWorkDone => (6, b"EMIT", true),
        _ => (4, b"DEADLETTER", false),
    };
    let mut keys: KeyPositions = (2..args.len().min(3)).collect();
    while at + 1 < args.len() {
        if args.get(at).eq_ignore_ascii_case(word) {
            // An empty key is none: it takes the dead letter away.
            if ends || !args.get(at + 1).is_empty() {
                keys.push(at + 1);
            }
            if ends {
                break;
            }
        }
        at += if !ends && args.get(at).eq_ignore_ascii_case(b"BACKOFF") { 3 } else { 2 };
    }
    keys
}

/// XREAD and XREADGROUP: the first half of what follows STREAMS, found as the parser does. A group, a consumer or the
/// value of an option may be named STREAMS as well, so it does not do to look for the word.
fn stream_keys(args: Args) -> KeyPositions {
    read_layout(args).map_or_else(KeyPositions::new, |layout| layout.keys.collect())
}

/// What the arguments of XREAD or XREADGROUP say about its keys.
struct ReadLayout {
    /// Where they stand.
    keys: Range<usize>,
    /// MKGROUP: it may make them.
    makes_groups: bool,
}

/// `None` if the command will be refused.
fn read_layout(args: Args) -> Option<ReadLayout> {
    let (mut i, mut makes_groups) = (1, false);
    while i < args.len() {
        let option = args.get(i);
        let is = |name: &[u8]| option.eq_ignore_ascii_case(name);
        if is(b"STREAMS") {
            let rest = args.len() - i - 1;
            // An odd rest is an error of the command.
            return rest.is_multiple_of(2).then(|| ReadLayout { keys: i + 1..i + 1 + rest / 2, makes_groups });
        }
        i += if is(b"COUNT") || is(b"BLOCK") || is(b"CLAIM") || is(b"MAXCOUNT") || is(b"MAXSIZE") {
            2
        } else if is(b"GROUP") {
            3
        } else if is(b"NOACK") {
            1
        } else if is(b"MKGROUP") {
            makes_groups = true;
            1 + usize::from(args.try_get(i + 1).is_some_and(|position| matches!(position, b"0" | b"$")))
        } else {
            return None;
        };
    }
    None
}

const XGROUP_HELP: &[&str] = &[
    "XGROUP <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CREATE <key> <groupname> <id|$> [option]",
    "    Create a new consumer group. Options are:",
    "    * MKSTREAM",
    "      Create the empty stream if it does not exist.",
    "    * ENTRIESREAD entries_read",
    "      Set the group's entries_read counter (internal use).",
    "CREATECONSUMER <key> <groupname> <consumer>",
    "    Create a new consumer in the specified group.",
    "DELCONSUMER <key> <groupname> <consumer>",
    "    Remove the specified consumer.",
    "DESTROY <key> <groupname>",
    "    Remove the specified group.",
    "SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]",
    "    Set the current group ID and entries_read counter.",
    "HELP",
    "    Print this help.",
];

const XINFO_HELP: &[&str] = &[
    "XINFO <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CONSUMERS <key> <groupname>",
    "    Show consumers of <groupname>.",
    "GROUPS <key>",
    "    Show the stream consumer groups.",
    "STREAM <key> [FULL [COUNT <count>]",
    "    Show information about the stream.",
    "HELP",
    "    Print this help.",
];

/// HELP of a container.
pub fn help(container: &CommandSpec, reply: &mut Reply) {
    // For the stream commands the recorded replies hold the lines themselves.
    let recorded = match container.name {
        "xgroup" => XGROUP_HELP,
        "xinfo" => XINFO_HELP,
        _ => &[],
    };
    if !recorded.is_empty() {
        reply.array(recorded.len());
        return recorded.iter().for_each(|line| reply.simple(line));
    }
    let upper = container.name.to_ascii_uppercase();
    let mut lines = vec![format!("{upper} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")];
    if container.id != CommandId::Container {
        lines.push("(no subcommand)".into());
        lines.push(format!("    {}", container.summary));
    }
    let (last, others): (Vec<_>, Vec<_>) = container.subcommands.iter().partition(|s| s.leaf() == "help");
    for spec in others.into_iter().chain(last) {
        let mut line = spec.leaf().to_ascii_uppercase();
        for argument in spec.arguments {
            line.push(' ');
            line.push_str(&syntax(argument));
        }
        lines.push(line);
        lines.push(format!("    {}", spec.summary));
    }
    reply.array(lines.len());
    for line in &lines {
        reply.simple(line);
    }
}

/// An argument as manuals write it: `[COUNT <count>]`.
pub fn syntax(argument: &Argument) -> String {
    let within = |separator: &str| argument.arguments.iter().map(syntax).collect::<Vec<_>>().join(separator);
    let value = match argument.kind {
        ArgumentKind::PureToken => String::new(),
        ArgumentKind::OneOf if argument.optional && argument.token.is_empty() => within(" | "),
        // The brackets around the choice do for those around a name within.
        ArgumentKind::OneOf => format!("<{}>", within(" | ").replace(['<', '>'], "")),
        ArgumentKind::Block => within(" "),
        _ => format!("<{}>", argument.display),
    };
    let mut text = match (argument.token, value.as_str()) {
        (token, "") => token.to_owned(),
        ("", value) => value.to_owned(),
        (token, value) => format!("{token} {value}"),
    };
    if argument.multiple {
        text = format!("{text} [{text} ...]");
    }
    if argument.optional { format!("[{text}]") } else { text }
}

fn info(spec: &CommandSpec, reply: &mut Reply) {
    reply.array(10);
    reply.bulk(spec.name.as_bytes());
    reply.int(spec.arity.into());
    reply.set(spec.flags.len());
    spec.flags.names().for_each(|name| reply.simple(name));
    reply.int(spec.first_key.into());
    reply.int(spec.last_key.into());
    reply.int(spec.step.into());
    reply.set(spec.categories.len());
    spec.categories.names().for_each(|name| reply.simple(&format!("@{name}")));
    reply.set(spec.tips.len());
    spec.tips.iter().for_each(|tip| reply.bulk(tip.as_bytes()));
    reply.set(spec.key_specs.len());
    spec.key_specs.iter().for_each(|rule| key_spec(rule, reply));
    // An array of rows, but a set when there are none: that is what Redis sends.
    if spec.subcommands.is_empty() {
        reply.set(0);
    } else {
        reply.array(spec.subcommands.len());
        spec.subcommands.iter().for_each(|subcommand| info(subcommand, reply));
    }
}

fn text(reply: &mut Reply, name: &str, value: &str) {
    reply.bulk(name.as_bytes());
    reply.bulk(value.as_bytes());
}

fn number(reply: &mut Reply, name: &str, value: impl Into<i64>) {
    reply.bulk(name.as_bytes());
    reply.int(value.into());
}

fn key_spec(rule: &KeySpec, reply: &mut Reply) {
    reply.map(3 + usize::from(!rule.notes.is_empty()));
    if !rule.notes.is_empty() {
        text(reply, "notes", rule.notes);
    }
    reply.bulk(b"flags");
    reply.set(rule.flags.len());
    rule.flags.names().for_each(|name| reply.simple(name));
    reply.bulk(b"begin_search");
    reply.map(2);
    match rule.begin {
        KeyBegin::Index(index) => {
            text(reply, "type", "index");
            reply.bulk(b"spec");
            reply.map(1);
            number(reply, "index", index);
        }
        KeyBegin::Keyword(word, from) => {
            text(reply, "type", "keyword");
            reply.bulk(b"spec");
            reply.map(2);
            text(reply, "keyword", word);
            number(reply, "startfrom", from);
        }
    }
    reply.bulk(b"find_keys");
    reply.map(2);
    if rule.counted {
        text(reply, "type", "keynum");
        reply.bulk(b"spec");
        reply.map(3);
        number(reply, "keynumidx", 0);
        number(reply, "firstkey", 1);
        return number(reply, "keystep", rule.step);
    }
    text(reply, "type", "range");
    reply.bulk(b"spec");
    reply.map(3);
    number(reply, "lastkey", rule.last);
    number(reply, "keystep", rule.step);
    number(reply, "limit", rule.limit);
}

/// Name and description, as one pair of a map.
fn docs(spec: &CommandSpec, reply: &mut Reply) {
    reply.bulk(spec.name.as_bytes());
    let flagged = spec.internal || spec.deprecated.is_some();
    reply.map(
        4 + usize::from(flagged)
            + 2 * usize::from(spec.deprecated.is_some())
            + usize::from(!spec.arguments.is_empty())
            + usize::from(!spec.subcommands.is_empty()),
    );
    text(reply, "summary", spec.summary);
    text(reply, "since", spec.since);
    text(reply, "group", spec.group);
    text(reply, "complexity", spec.complexity);
    if flagged {
        reply.bulk(b"doc_flags");
        reply.set(usize::from(spec.internal) + usize::from(spec.deprecated.is_some()));
        if spec.deprecated.is_some() {
            reply.simple("deprecated");
        }
        if spec.internal {
            reply.simple("syscmd");
        }
    }
    if let Some((since, instead)) = spec.deprecated {
        text(reply, "deprecated_since", since);
        text(reply, "replaced_by", instead);
    }
    if !spec.arguments.is_empty() {
        reply.bulk(b"arguments");
        arguments(spec.arguments, reply);
    }
    if !spec.subcommands.is_empty() {
        reply.bulk(b"subcommands");
        reply.map(spec.subcommands.len());
        spec.subcommands.iter().for_each(|subcommand| docs(subcommand, reply));
    }
}

fn arguments(list: &[Argument], reply: &mut Reply) {
    reply.array(list.len());
    for argument in list {
        let composed = matches!(argument.kind, ArgumentKind::OneOf | ArgumentKind::Block);
        let flags = usize::from(argument.optional) + usize::from(argument.multiple);
        reply.map(
            3 + usize::from(argument.key_spec.is_some())
                + usize::from(!argument.token.is_empty())
                + usize::from(!argument.since.is_empty())
                + usize::from(!argument.deprecated_since.is_empty())
                + usize::from(flags > 0),
        );
        text(reply, "name", argument.name);
        text(reply, "type", argument.kind.name());
        if !composed {
            text(reply, "display_text", argument.display);
        }
        if let Some(number_of_spec) = argument.key_spec {
            number(reply, "key_spec_index", number_of_spec);
        }
        for (name, value) in
            [("token", argument.token), ("since", argument.since), ("deprecated_since", argument.deprecated_since)]
        {
            if !value.is_empty() {
                text(reply, name, value);
            }
        }
        if flags > 0 {
            reply.bulk(b"flags");
            reply.set(flags);
            if argument.optional {
                reply.simple("optional");
            }
            if argument.multiple {
                reply.simple("multiple");
            }
        }
        if composed {
            reply.bulk(b"arguments");
            arguments(argument.arguments, reply);
        }
    }
}

#[cfg(test)]
mod tests;
