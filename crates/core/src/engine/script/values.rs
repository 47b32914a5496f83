//! Replies as Lua values and Lua values as replies, by the rules that Redis documents. A reply is read from the bytes that
//! a command wrote; nothing here runs a command.

use mlua::{Error, Lua, Result, Table, Value};

use super::machine::Meter;
use crate::limits::SCRIPT_REPLY_DEPTH_MAX;
use crate::resp::encode::{Protocol, Reply};

/// Reads one reply from the front of `bytes`.
pub(super) fn from_reply(lua: &Lua, bytes: &mut &[u8]) -> Result<Value> {
    let line = take_line(bytes);
    let (&mark, rest) = line.split_first().expect("a reply has a mark");
    let value = match mark {
        b'+' => one(lua, "ok", lua.create_string(rest)?)?,
        b'-' => one(lua, "err", lua.create_string(rest)?)?,
        b':' => Value::Integer(number(rest)),
        b'$' if rest == b"-1" => Value::Boolean(false),
        b'*' if rest == b"-1" => Value::Boolean(false),
        b'$' => Value::String(lua.create_string(take_bulk(bytes, rest))?),
        b'_' => Value::Nil,
        b'#' => Value::Boolean(rest == b"t"),
        b',' => one(lua, "double", std::str::from_utf8(rest).ok().and_then(|t| t.parse::<f64>().ok()))?,
        b'(' => one(lua, "big_number", lua.create_string(rest)?)?,
        b'=' => {
            let text = take_bulk(bytes, rest);
            let parts = lua.create_table()?;
            parts.raw_set("format", lua.create_string(&text[..3])?)?;
            parts.raw_set("string", lua.create_string(&text[4..])?)?;
            one(lua, "verbatim_string", parts)?
        }
        b'%' => {
            let pairs = lua.create_table()?;
            for _ in 0..number(rest) {
                let key = from_reply(lua, bytes)?;
                let value = from_reply(lua, bytes)?;
                if !key.is_nil() {
                    pairs.raw_set(key, value)?;
                }
            }
            one(lua, "map", pairs)?
        }
        b'~' => {
            let members = lua.create_table()?;
            for _ in 0..number(rest) {
                let member = from_reply(lua, bytes)?;
                if !member.is_nil() {
                    members.raw_set(member, true)?;
                }
            }
            one(lua, "set", members)?
        }
        _ => {
            let count = number(rest);
            let list = lua.create_table_with_capacity(count as usize, 0)?;
            for place in 1..=count {
                list.raw_set(place, from_reply(lua, bytes)?)?;
            }
            Value::Table(list)
        }
    };
    Ok(value)
}

fn one(lua: &Lua, name: &str, value: impl mlua::IntoLua) -> Result<Value> {
    let table = lua.create_table_with_capacity(0, 1)?;
    table.raw_set(name, value)?;
    Ok(Value::Table(table))
}

fn take_line<'b>(bytes: &mut &'b [u8]) -> &'b [u8] {
    let end = memchr::memchr(b'\r', bytes).expect("a reply is made of lines");
    let line = &bytes[..end];
    *bytes = &bytes[end + 2..];
    line
}

fn take_bulk<'b>(bytes: &mut &'b [u8], len: &[u8]) -> &'b [u8] {
    let len = number(len) as usize;
    let bulk = &bytes[..len];
    *bytes = &bytes[len + 2..];
    bulk
}

fn number(digits: &[u8]) -> i64 {
    std::str::from_utf8(digits).ok().and_then(|text| text.parse().ok()).expect("a reply counts in digits")
}

/// Writes what a script returned. `typed` = the script asked for RESP3, so its booleans are booleans.
pub(super) fn to_reply(lua: &Lua, value: &Value, typed: bool, reply: &mut Reply<'_>) -> Result<()> {
    let start = reply.out.len();
    Writer { lua, typed, start, meter: Meter::default() }.write(value, 0, reply)
}

struct Writer<'l> {
    lua: &'l Lua,
    typed: bool,
    start: usize,
    meter: Meter,
}

impl Writer<'_> {
    fn write(&mut self, value: &Value, depth: usize, reply: &mut Reply<'_>) -> Result<()> {
        self.meter.count(self.lua, reply.out.len() - self.start)?;
        if depth > SCRIPT_REPLY_DEPTH_MAX {
            reply.error(b"ERR reached lua stack limit");
            return Ok(());
        }
        match value {
            Value::String(text) => reply.bulk(&text.as_bytes()),
            Value::Integer(n) => reply.int(*n),
            Value::Number(n) => reply.int(truncated(*n)),
            Value::Boolean(yes) if self.typed && reply.protocol == Protocol::Resp3 => {
                reply.out.extend_from_slice(if *yes { b"#t\r\n" } else { b"#f\r\n" });
            }
            Value::Boolean(true) => reply.int(1),
            Value::Table(table) => return self.write_table(table, depth, reply),
            _ => reply.null(),
        }
        Ok(())
    }

    fn write_table(&mut self, table: &Table, depth: usize, reply: &mut Reply<'_>) -> Result<()> {
        let field = |name: &str| table.raw_get::<Value>(name);
        if let Value::String(text) = field("err")? {
            reply.error(&text.as_bytes());
            return Ok(());
        }
        if let Value::String(text) = field("ok")? {
            line(reply, b'+', &text.as_bytes());
            return Ok(());
        }
        let double = match field("double")? {
            Value::Integer(n) => Some(n as f64),
            Value::Number(n) => Some(n),
            _ => None,
        };
        if let Some(n) = double {
            match reply.protocol {
                Protocol::Resp2 => reply.bulk(&decimal(n)),
                Protocol::Resp3 => line(reply, b',', &decimal(n)),
            }
            return Ok(());
        }
        if let Value::Table(map) = field("map")? {
            let pairs = map.pairs::<Value, Value>().collect::<Result<Vec<_>>>()?;
            reply.map(pairs.len());
            for (key, value) in &pairs {
                self.write(key, depth + 1, reply)?;
                self.write(value, depth + 1, reply)?;
            }
            return Ok(());
        }
        if let Value::Table(set) = field("set")? {
            let members = set.pairs::<Value, Value>().collect::<Result<Vec<_>>>()?;
            reply.set(members.len());
            for (member, _) in &members {
                self.write(member, depth + 1, reply)?;
            }
            return Ok(());
        }
        if let Value::String(digits) = field("big_number")? {
            match reply.protocol {
                Protocol::Resp2 => reply.bulk(&digits.as_bytes()),
                Protocol::Resp3 => line(reply, b'(', &digits.as_bytes()),
            }
            return Ok(());
        }
        if let Value::Table(verbatim) = field("verbatim_string")?
            && let (Value::String(format), Value::String(text)) =
                (verbatim.raw_get::<Value>("format")?, verbatim.raw_get::<Value>("string")?)
        {
            let mut head = [b' '; 3];
            head.iter_mut().zip(&*format.as_bytes()).for_each(|(to, &from)| *to = from);
            match reply.protocol {
                Protocol::Resp2 => reply.bulk(&text.as_bytes()),
                Protocol::Resp3 => {
                    line(reply, b'=', (text.as_bytes().len() + 4).to_string().as_bytes());
                    reply.out.extend_from_slice(&[&head[..], b":", &text.as_bytes(), b"\r\n"].concat());
                }
            }
            return Ok(());
        }
        // An array ends before its first nil.
        let mut list = Vec::new();
        loop {
            let value = table.raw_get::<Value>(list.len() as i64 + 1)?;
            if value.is_nil() {
                break;
            }
            list.push(value);
        }
        reply.array(list.len());
        list.iter().try_for_each(|value| self.write(value, depth + 1, reply))
    }
}

/// As a C cast does it on the machines that Redis runs on.
fn truncated(n: f64) -> i64 {
    // 2 to the power of 63 is the first that an integer cannot hold.
    const END: f64 = (1u64 << 63) as f64;
    if (-END..END).contains(&n) { n as i64 } else { i64::MIN }
}

fn line(reply: &mut Reply<'_>, mark: u8, text: &[u8]) {
    reply.out.push(mark);
    reply.out.extend(text.iter().map(|&b| if b == b'\r' || b == b'\n' { b' ' } else { b }));
    reply.out.extend_from_slice(b"\r\n");
}

/// An argument of `redis.call` as bytes; `None` for what is neither string nor number.
pub(super) fn argument(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => Some(text.as_bytes().to_vec()),
        Value::Integer(n) => Some(n.to_string().into_bytes()),
        Value::Number(n) => Some(decimal(*n)),
        _ => None,
    }
}

/// The shortest digits that mean `n`, with an exponent where that is shorter.
pub(super) fn decimal(n: f64) -> Vec<u8> {
    if n.is_nan() {
        return b"nan".to_vec();
    }
    if n.is_infinite() {
        return if n > 0.0 { b"inf".to_vec() } else { b"-inf".to_vec() };
    }
    if n == 0.0 {
        return b"0".to_vec();
    }
    let short = format!("{n:e}");
    let (mantissa, exponent) = short.split_once('e').expect("an exponent was asked for");
    let exponent: i32 = exponent.parse().expect("it is an integer");
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).count() as i32;
    // Place of the last digit.
    let scale = exponent - digits + 1;
    let plain = if scale >= 0 { exponent < digits + 7 } else { scale > -7 || exponent.abs() < 4 };
    if plain {
        return format!("{n}").into_bytes();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{}", exponent.abs()).into_bytes()
}

/// A number with up to 14 significant digits, as Lua itself prints it.
pub(super) fn fourteen_digits(n: f64) -> String {
    let text = format!("{n:.13e}");
    let (mantissa, exponent) = text.split_once('e').expect("an exponent was asked for");
    let exponent: i32 = exponent.parse().expect("it is an integer");
    let trim = |text: &str| {
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text.to_owned() }
    };
    if (-5..14).contains(&exponent) && exponent >= -4 {
        trim(&format!("{n:.*}", (13 - exponent) as usize))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", trim(mantissa), exponent.abs())
    }
}

/// An error that a script may catch, made of the whole line that a client would get.
pub(super) fn raised(text: impl Into<Vec<u8>>) -> Error {
    Error::external(super::machine::Raised { text: text.into(), counted: false })
}
