//! ACL and its subcommands. What users are and how they are checked: `engine/acl/`.

use std::borrow::Cow;
use std::sync::Arc;

use crate::command::args::Args;
use crate::command::parse::{self, is};
use crate::command::table::{self, Categories, CommandId};
use crate::engine::Cx;
use crate::engine::acl::rules::{self, Denial, RuleError, Selector, User};
use crate::engine::acl::{user_of_line, users_of_file};
use crate::engine::fault::{Fault, clip};
use crate::limits::GENPASS_MAX_BITS;
use crate::resp::encode::{Protocol, Reply};

/// ACL CAT [category]
pub fn cat(args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    if args.len() > 3 {
        return Err(Fault::subcommand_syntax(args.get(1), "ACL"));
    }
    let Some(name) = args.try_get(2) else {
        reply.array(Categories::NAMES.len());
        Categories::NAMES.iter().for_each(|(_, name)| reply.bulk(name.as_bytes()));
        return Ok(());
    };
    let Some(category) = Categories::by_name(name) else {
        return Err(Fault::concat(&[b"ERR Unknown category '", clip(name, 128), b"'"]));
    };
    let found = table::all_with_subcommands().filter(|spec| spec.categories.has(category));
    reply.array(found.clone().count());
    found.for_each(|spec| reply.bulk(spec.name.as_bytes()));
    Ok(())
}

/// ACL DELUSER name …
pub fn delete_user(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let names = args.from(2);
    if names.iter().any(|name| name == b"default") {
        return Err(Fault::DEFAULT_USER_STAYS);
    }
    let deleted = names.iter().filter(|name| cx.engine().delete_user(name)).count();
    reply.count(deleted as u64);
    Ok(())
}

/// ACL DRYRUN name command [arg …]
pub fn dry_run(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let (name, command) = (args.get(2), args.from(3));
    let user = cx.engine_ref().acl.get(name).cloned();
    let user = user.ok_or_else(|| Fault::concat(&[b"ERR User '", name, b"' not found"]))?;
    let spec = match table::resolve(command) {
        Ok(spec) => spec,
        Err(table::Refusal::Arity(spec)) => return Err(Fault::arity(spec.name)),
        Err(_) => return Err(Fault::concat(&[b"ERR Command '", command.get(0), b"' not found"])),
    };
    let (what, object) = match user.check(spec, command) {
        Ok(()) => {
            reply.ok();
            return Ok(());
        }
        Err(Denial::Command) => {
            let text = [b"User ", name, b" has no permissions to run the '", spec.name.as_bytes(), b"' command"];
            reply.bulk(&text.concat());
            return Ok(());
        }
        Err(Denial::Key(at)) => ("key", command.get(at)),
        Err(Denial::Channel(at)) => ("channel", command.get(at)),
    };
    reply.bulk(&[b"User ", name, b" has no permissions to access the '", object, b"' ", what.as_bytes()].concat());
    Ok(())
}

/// ACL GENPASS [bits]. The randomness is the process's.
pub fn generate_password(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    const BITS: i64 = 256;
    if args.len() > 3 {
        return Err(Fault::subcommand_syntax(args.get(1), "ACL"));
    }
    let bits = args.try_get(2).map_or(Ok(BITS), parse::int)?;
    if !(1..=GENPASS_MAX_BITS).contains(&bits) {
        return Err(Fault::GENPASS_BITS);
    }
    // A digit holds four bits.
    let digits = (bits as usize).div_ceil(4);
    let mut bytes = vec![0; digits.div_ceil(2)];
    cx.facts.host.random(&mut bytes);
    let password = rules::hex(&bytes);
    reply.bulk(&password.as_bytes()[..digits]);
    Ok(())
}

fn selector(of: &Selector, reply: &mut Reply<'_>) {
    for (name, text) in [("commands", of.commands_text()), ("keys", of.keys_text()), ("channels", of.channels_text())] {
        reply.bulk(name.as_bytes());
        reply.bulk(&text);
    }
}

/// ACL GETUSER name
pub fn get_user(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let Some(user) = cx.engine_ref().acl.get(args.get(2)) else {
        reply.null();
        return Ok(());
    };
    reply.map(6);
    reply.bulk(b"flags");
    let flags = user.flags();
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.bulk(b"passwords");
    let passwords = user.passwords();
    reply.array(passwords.len());
    passwords.for_each(|hash| reply.bulk(hash.as_bytes()));
    let mut selectors = user.selectors();
    selector(selectors.next().expect("a user has a first selector"), reply);
    reply.bulk(b"selectors");
    let others: Vec<&Selector> = selectors.collect();
    reply.array(others.len());
    for other in others {
        reply.map(3);
        selector(other, reply);
    }
    Ok(())
}

/// ACL LIST, ACL USERS
pub fn users(cx: &mut Cx<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let whole = cx.spec.id == CommandId::AclList;
    let users = cx.engine_ref().acl.users();
    reply.array(users.len());
    for user in users {
        reply.bulk(&if whole { Cow::Owned(user.line()) } else { Cow::Borrowed(&user.name[..]) });
    }
    Ok(())
}

/// ACL WHOAMI
pub fn who_am_i(cx: &mut Cx<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let user = Arc::clone(&cx.client().user);
    reply.bulk(&user.name);
    Ok(())
}

/// ACL SETUSER name [rule …]
pub fn set_user(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let name = args.get(2);
    if !User::is_name(name) {
        return Err(Fault::USER_NAME);
    }
    let all_channels = cx.settings().acl_pubsub_default.all_channels();
    let known = cx.engine_ref().acl.get(name);
    let mut user = known.map_or_else(|| User::new(name, all_channels), |user| User::clone(user));
    let rules: Vec<&[u8]> = args.from(3).iter().collect();
    user.apply_all(&rules).map_err(|error| match error {
        RuleError::Unmatched(begin) => {
            Fault::concat(&[b"ERR Unmatched parenthesis in acl selector starting at '", &begin, b"'."])
        }
        RuleError::Rule(rule, reason) => {
            Fault::concat(&[b"ERR Error in ACL SETUSER modifier '", &rule, b"': ", reason.as_bytes()])
        }
    })?;
    cx.engine().put_user(user);
    reply.ok();
    Ok(())
}

/// ACL LOG [count | RESET]
pub fn log(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    /// As many as Redis shows.
    const SHOWN: i64 = 10;
    if args.len() > 3 {
        return Err(Fault::subcommand_syntax(args.get(1), "ACL"));
    }
    let count = match args.try_get(2) {
        None => SHOWN,
        Some(word) if is(word, "RESET") => {
            cx.engine().acl.log.clear();
            reply.ok();
            return Ok(());
        }
        Some(count) => parse::int(count)?.max(0),
    };
    let now_ms = cx.now_ms();
    let entries = cx.engine_ref().acl.log.entries();
    let shown = entries.len().min(count as usize);
    reply.array(shown);
    for entry in entries.take(shown) {
        reply.map(10);
        reply.bulk(b"count");
        reply.count(entry.count);
        let texts: [(&str, &[u8]); 4] = [
            ("reason", entry.reason.name().as_bytes()),
            ("context", entry.origin.name().as_bytes()),
            ("object", &entry.object),
            ("username", &entry.username),
        ];
        for (name, text) in texts {
            reply.bulk(name.as_bytes());
            reply.bulk(text);
        }
        reply.bulk(b"age-seconds");
        number(now_ms.saturating_sub(entry.updated_ms) as f64 / 1000.0, reply);
        reply.bulk(b"client-info");
        reply.bulk(&entry.client);
        for (name, n) in [
            ("entry-id", entry.id),
            ("timestamp-created", entry.created_ms),
            ("timestamp-last-updated", entry.updated_ms),
        ] {
            reply.bulk(name.as_bytes());
            reply.count(n);
        }
    }
    Ok(())
}

fn acl_file(cx: &Cx<'_>) -> Result<String, Fault> {
    let path = &cx.settings().aclfile;
    if path.is_empty() { Err(Fault::NO_ACL_FILE) } else { Ok(path.clone()) }
}

/// ACL SAVE
pub fn save(cx: &mut Cx<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let path = acl_file(cx)?;
    let mut text = Vec::new();
    for user in cx.engine_ref().acl.users() {
        text.extend_from_slice(&user.line());
        text.push(b'\n');
    }
    let written = cx.facts.host.write_acl_file(&path, &text);
    written.map_err(|error| Fault::owned(format!("ERR cannot write the ACL file {path}: {error}")))?;
    reply.ok();
    Ok(())
}

/// ACL LOAD: all of the file or nothing.
pub fn load(cx: &mut Cx<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let path = acl_file(cx)?;
    let all_channels = cx.settings().acl_pubsub_default.all_channels();
    let bytes = cx.facts.host.read_acl_file(&path);
    let bytes = bytes.map_err(|error| Fault::owned(format!("ERR cannot read the ACL file {path}: {error}")))?;
    let wrong = |line: usize, what: &str| {
        Fault::owned(format!(
            "ERR {path}:{line}: {what}. WARNING: ACL errors detected, no change to the users was made"
        ))
    };
    let mut users: Vec<User> = Vec::new();
    for (line, words) in users_of_file(&bytes).map_err(|(line, what)| wrong(line, &what))? {
        let user = user_of_line(&words, all_channels).map_err(|what| wrong(line, &what))?;
        if users.iter().any(|known| known.name == user.name) {
            return Err(wrong(line, "the user stands there twice"));
        }
        users.push(user);
    }
    cx.engine().replace_users(users);
    reply.ok();
    Ok(())
}

/// A number with a fraction: a double in RESP3.
fn number(value: f64, reply: &mut Reply<'_>) {
    match reply.protocol {
        Protocol::Resp2 => reply.bulk(value.to_string().as_bytes()),
        Protocol::Resp3 => reply.out.extend_from_slice(format!(",{value}\r\n").as_bytes()),
    }
}
