//! CLIENT and its subcommands.

use crate::command::args::Args;
use crate::command::parse::{self, is};
use crate::command::table::CommandId;
use crate::engine::blocked::ClientIndex;
use crate::engine::fault::Fault;
use crate::engine::{Cx, Engine, Pause};
use crate::resp::encode::Reply;
use crate::session::{Client, ReplyMode};

/// CLIENT ID
pub fn id(cx: &mut Cx<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    reply.count(cx.client().id);
    Ok(())
}

/// CLIENT INFO
pub fn info(cx: &mut Cx<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let mut text = Vec::new();
    let now_ms = cx.now_ms();
    Engine::describe(cx.client(), now_ms, &mut text);
    text.push(b'\n');
    reply.verbatim(&text);
    Ok(())
}

/// Kinds of connections, as TYPE asks for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ClientKind {
    Normal,
    PubSub,
    /// What there is none of here.
    Replication,
}

fn kind_of(client: &Client) -> ClientKind {
    if client.subscriptions.is_some() { ClientKind::PubSub } else { ClientKind::Normal }
}

fn kind(name: &[u8]) -> Result<ClientKind, Fault> {
    match name.to_ascii_lowercase().as_slice() {
        b"normal" => Ok(ClientKind::Normal),
        b"pubsub" => Ok(ClientKind::PubSub),
        b"master" | b"slave" | b"replica" => Ok(ClientKind::Replication),
        _ => Err(Fault::concat(&[b"ERR Unknown client type '", name, b"'"])),
    }
}

/// CLIENT LIST [TYPE name | ID id …]
pub fn list(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let mut chosen: Vec<ClientIndex> = Vec::new();
    let engine = cx.engine_ref();
    if args.len() == 2 {
        chosen.extend(engine.clients().map(|(index, _)| index));
    } else if args.len() == 4 && is(args.get(2), "TYPE") {
        let kind = kind(args.get(3))?;
        chosen.extend(engine.clients().filter(|(_, client)| kind_of(client) == kind).map(|(index, _)| index));
    } else if args.len() > 3 && is(args.get(2), "ID") {
        for id in args.from(3).iter() {
            let id = parse::integer(id).ok_or(Fault::CLIENT_ID)?;
            chosen.extend(u64::try_from(id).ok().and_then(|id| engine.find_client(id)));
        }
    } else {
        return Err(Fault::SYNTAX);
    }
    let mut text = Vec::new();
    for client in chosen.into_iter().filter_map(|index| engine.client(index)) {
        Engine::describe(client, cx.now_ms(), &mut text);
        text.push(b'\n');
    }
    reply.verbatim(&text);
    Ok(())
}

fn is_printable(text: &[u8]) -> bool {
    text.iter().all(|byte| (b'!'..=b'~').contains(byte))
}

/// May this be the name of a client? Names stand in lines with other things, so that they must be one word.
pub fn check_name(name: &[u8]) -> Result<(), Fault> {
    if is_printable(name) { Ok(()) } else { Err(Fault::CLIENT_NAME) }
}

/// CLIENT SETNAME name
pub fn set_name(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    check_name(args.get(2))?;
    cx.client().name = args.get(2).to_vec();
    reply.ok();
    Ok(())
}

/// CLIENT GETNAME
pub fn get_name(cx: &mut Cx<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    match cx.client().name.as_slice() {
        b"" => reply.null(),
        name => reply.bulk(name),
    }
    Ok(())
}

/// CLIENT SETINFO LIB-NAME|LIB-VER text
pub fn set_info(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let (attribute, text) = (args.get(2), args.get(3));
    let client = cx.client();
    let field = if is(attribute, "LIB-NAME") {
        &mut client.lib_name
    } else if is(attribute, "LIB-VER") {
        &mut client.lib_ver
    } else {
        return Err(Fault::concat(&[b"ERR Unrecognized option '", attribute, b"'"]));
    };
    if !is_printable(text) {
        let rest = b" cannot contain spaces, newlines or special characters.";
        return Err(Fault::concat(&[b"ERR ", attribute, rest]));
    }
    *field = text.to_vec();
    reply.ok();
    Ok(())
}

/// Which connections CLIENT KILL closes: those that fit all that was given.
#[derive(Debug, Default)]
struct Filter<'a> {
    id: Option<u64>,
    kind: Option<ClientKind>,
    addr: Option<&'a [u8]>,
    local_addr: Option<&'a [u8]>,
    user: Option<&'a [u8]>,
    age_min_s: u64,
    skip_me: bool,
}

impl<'a> Filter<'a> {
    fn parse(words: Args<'a>, engine: &Engine) -> Result<Filter<'a>, Fault> {
        let mut filter = Filter { skip_me: true, ..Filter::default() };
        for at in (0..words.len()).step_by(2) {
            let word = words.get(at);
            let Some(value) = words.try_get(at + 1) else { return Err(Fault::SYNTAX) };
            if is(word, "ID") {
                let id = parse::integer(value).filter(|&id| id > 0).ok_or(Fault::CLIENT_ID_RANGE)?;
                filter.id = Some(id as u64);
            } else if is(word, "TYPE") {
                filter.kind = Some(kind(value)?);
            } else if is(word, "ADDR") {
                filter.addr = Some(value);
            } else if is(word, "LADDR") {
                filter.local_addr = Some(value);
            } else if is(word, "USER") {
                if engine.acl.get(value).is_none() {
                    return Err(Fault::concat(&[b"ERR No such user '", value, b"'"]));
                }
                filter.user = Some(value);
            } else if is(word, "MAXAGE") {
                let age = parse::integer(value).ok_or(Fault::MAX_AGE_NOT_INTEGER)?;
                filter.age_min_s = u64::try_from(age).ok().filter(|&age| age > 0).ok_or(Fault::MAX_AGE_RANGE)?;
            } else if is(word, "SKIPME") && is(value, "YES") {
                filter.skip_me = true;
            } else if is(word, "SKIPME") && is(value, "NO") {
                filter.skip_me = false;
            } else {
                return Err(Fault::SYNTAX);
            }
        }
        Ok(filter)
    }

    fn fits(&self, client: &Client, now_ms: u64) -> bool {
        self.kind.is_none_or(|kind| kind_of(client) == kind)
            && self.id.is_none_or(|id| client.id == id)
            && self.addr.is_none_or(|addr| client.addr.as_bytes() == addr)
            && self.local_addr.is_none_or(|addr| client.local_addr.as_bytes() == addr)
            && self.user.is_none_or(|user| *client.user.name == *user)
            && (now_ms / 1000).saturating_sub(client.created_ms / 1000) >= self.age_min_s
    }
}

/// CLIENT KILL addr, CLIENT KILL [ID id] [TYPE name] [USER name] [ADDR addr] [LADDR addr] [SKIPME yes|no] [MAXAGE s]
pub fn kill(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let by_address = args.len() == 3;
    let filter = if by_address {
        Filter { addr: Some(args.get(2)), ..Filter::default() }
    } else {
        Filter::parse(args.from(2), cx.engine_ref())?
    };
    let (me, now_ms) = (cx.client, cx.now_ms());
    let chosen: Vec<ClientIndex> = cx
        .engine_ref()
        .clients()
        .filter(|&(index, client)| filter.fits(client, now_ms) && !(filter.skip_me && index == me))
        .map(|(index, _)| index)
        .collect();
    if by_address && chosen.is_empty() {
        return Err(Fault::NO_SUCH_CLIENT);
    }
    for &index in &chosen {
        if index == me {
            // It gets its answer first.
            cx.client().closing = true;
        } else {
            cx.engine().kill(index);
        }
    }
    if by_address {
        reply.ok();
    } else {
        reply.count(chosen.len() as u64);
    }
    Ok(())
}

/// CLIENT UNBLOCK id [TIMEOUT|ERROR]
pub fn unblock(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    if args.len() > 4 {
        return Err(Fault::subcommand_syntax(args.get(1), "CLIENT"));
    }
    let as_error = match args.try_get(3) {
        None => false,
        Some(reason) if is(reason, "TIMEOUT") => false,
        Some(reason) if is(reason, "ERROR") => true,
        Some(_) => return Err(Fault::UNBLOCK_REASON),
    };
    let id = parse::int(args.get(2))?;
    let index = u64::try_from(id).ok().and_then(|id| cx.engine_ref().find_client(id));
    let done = index.is_some_and(|index| cx.engine().unblock(index, as_error));
    reply.int(done.into());
    Ok(())
}

/// CLIENT REPLY ON|OFF|SKIP
pub fn reply_mode(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let client = cx.client();
    if is(args.get(2), "ON") {
        client.reply_mode = ReplyMode::On;
        reply.ok();
    } else if is(args.get(2), "OFF") {
        client.reply_mode = ReplyMode::Off;
    } else if is(args.get(2), "SKIP") {
        if client.reply_mode != ReplyMode::Off {
            client.reply_mode = ReplyMode::SkipNext;
        }
    } else {
        return Err(Fault::SYNTAX);
    }
    Ok(())
}

/// CLIENT NO-EVICT on|off, CLIENT NO-TOUCH on|off
pub fn on_off(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let on = is(args.get(2), "ON");
    if !on && !is(args.get(2), "OFF") {
        return Err(Fault::SYNTAX);
    }
    let evict = cx.spec.id == CommandId::ClientNoEvict;
    let client = cx.client();
    if evict {
        client.no_evict = on;
    } else {
        client.no_touch = on;
    }
    reply.ok();
    Ok(())
}

/// CLIENT PAUSE ms [WRITE|ALL]
pub fn pause(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    if args.len() > 4 {
        return Err(Fault::subcommand_syntax(args.get(1), "CLIENT"));
    }
    let what = match args.try_get(3) {
        None => Pause::All,
        Some(mode) if is(mode, "ALL") => Pause::All,
        Some(mode) if is(mode, "WRITE") => Pause::Write,
        Some(_) => return Err(Fault::PAUSE_MODE),
    };
    let until_ms = cx.now_ms() + timeout_ms(args.get(2), cx.now_ms())?;
    cx.engine().pause_until(until_ms, what);
    reply.ok();
    Ok(())
}

/// A timeout in ms.
pub fn timeout_ms(text: &[u8], now_ms: u64) -> Result<u64, Fault> {
    let ms = parse::integer(text).ok_or(Fault::TIMEOUT_NOT_INTEGER)?;
    let ms = u64::try_from(ms).map_err(|_| Fault::TIMEOUT_NEGATIVE)?;
    if ms > i64::MAX as u64 - now_ms { Err(Fault::TIMEOUT_RANGE) } else { Ok(ms) }
}
