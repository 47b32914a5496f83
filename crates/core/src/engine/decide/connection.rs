//! Commands about the connection itself: PING, AUTH, HELLO, SELECT, RESET, QUIT.

use super::client::check_name;
use super::keys;
use crate::command::args::Args;
use crate::command::parse::{self, is};
use crate::engine::Cx;
use crate::engine::fault::Fault;
use crate::resp::encode::{Protocol, Reply};

/// The version of Redis whose behaviour this server has. Clients switch features on by it.
pub const REDIS_VERSION: &str = "8.2.3";
/// The user of those who name none.
const USER: &[u8] = b"default";

/// PING [message]. A subscriber in RESP2 gets its answer in the form of a message.
pub fn ping(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    match args.len() {
        1 | 2 if reply.protocol == Protocol::Resp2 && cx.client().subscriptions.is_some() => {
            reply.array(2);
            reply.bulk(b"pong");
            reply.bulk(args.try_get(1).unwrap_or_default());
        }
        1 => reply.simple("PONG"),
        2 => reply.bulk(args.get(1)),
        _ => return Err(Fault::arity("ping")),
    }
    Ok(())
}

fn authenticate(cx: &mut Cx<'_>, user: &[u8], password: &[u8], command: &[u8]) -> Result<(), Fault> {
    let (index, now_ms) = (cx.client, cx.now_ms());
    cx.engine().authenticate(index, user, password, command, now_ms)
}

/// AUTH [user] password
pub fn auth(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    match args.len() {
        2 if cx.engine_ref().acl.default_user().no_password => return Err(Fault::AUTH_WITHOUT_PASSWORD),
        2 => authenticate(cx, USER, args.get(1), args.get(0))?,
        3 => authenticate(cx, args.get(1), args.get(2), args.get(0))?,
        _ => return Err(Fault::SYNTAX),
    }
    reply.ok();
    Ok(())
}

/// HELLO [version [AUTH user password] [SETNAME name]]
pub fn hello(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let protocol = match args.try_get(1) {
        None => None,
        Some(text) => Some(match parse::integer(text).ok_or(Fault::HELLO_VERSION)? {
            2 => Protocol::Resp2,
            3 => Protocol::Resp3,
            _ => return Err(Fault::NO_PROTO),
        }),
    };
    let (mut credentials, mut name) = (None, None);
    let mut at = 2;
    while at < args.len() {
        let (word, more) = (args.get(at), args.len() - at - 1);
        if is(word, "AUTH") && more >= 2 {
            credentials = Some((args.get(at + 1), args.get(at + 2)));
            at += 3;
        } else if is(word, "SETNAME") && more >= 1 {
            check_name(args.get(at + 1))?;
            name = Some(args.get(at + 1));
            at += 2;
        } else {
            return Err(Fault::concat(&[b"ERR Syntax error in HELLO option '", word, b"'"]));
        }
    }
    if let Some((user, password)) = credentials {
        authenticate(cx, user, password, args.get(0))?;
    }
    let client = cx.client();
    if !client.authenticated {
        return Err(Fault::HELLO_NO_AUTH);
    }
    if let Some(name) = name {
        client.name = name.to_vec();
    }
    if let Some(protocol) = protocol {
        client.protocol = protocol;
        reply.protocol = protocol;
    }
    let (id, version) = (client.id, if client.protocol == Protocol::Resp3 { 3 } else { 2 });
    reply.map(7);
    for (name, value) in [("server", "redis"), ("version", REDIS_VERSION)] {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"proto");
    reply.int(version);
    reply.bulk(b"id");
    reply.count(id);
    for (name, value) in [("mode", "standalone"), ("role", "master")] {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"modules");
    reply.array(0);
    Ok(())
}

/// SELECT db
pub fn select(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let db = keys::database(cx, args.get(1))?;
    cx.client().db = db;
    reply.ok();
    Ok(())
}

/// RESET
pub fn reset(cx: &mut Cx<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let index = cx.client;
    cx.engine().unsubscribe_all(index);
    cx.engine().forget_watches(index);
    cx.engine().forget_user(index);
    let client = cx.client();
    client.reset();
    reply.protocol = client.protocol;
    reply.simple("RESET");
    Ok(())
}

/// QUIT
pub fn quit(cx: &mut Cx<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let index = cx.client;
    cx.engine().unsubscribe_all(index);
    cx.client().closing = true;
    reply.ok();
    Ok(())
}
