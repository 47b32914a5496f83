//! `cjson`: tables as JSON and back, as the library that Redis brings does it, without its settings.

use mlua::{Error, Lua, Result, Table, Value};

use super::machine::{Meter, located};
use super::values::fourteen_digits;
use crate::limits::SCRIPT_REPLY_DEPTH_MAX;

/// From this many places on a list must be at least half full.
const SPARSE_FROM: i64 = 10;

/// The table that scripts know as `cjson`.
pub(super) fn library(lua: &Lua) -> Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("_NAME", "cjson")?;
    table.raw_set("null", Value::NULL)?;
    table.raw_set(
        "encode",
        lua.create_function(|lua, value: Value| {
            let mut out = Vec::new();
            encode(lua, &value, 0, &mut Meter::default(), &mut out)?;
            lua.create_string(out)
        })?,
    )?;
    table.raw_set("decode", lua.create_function(decode)?)?;
    Ok(table)
}

fn encode(lua: &Lua, value: &Value, depth: usize, meter: &mut Meter, out: &mut Vec<u8>) -> Result<()> {
    meter.count(lua, out.len())?;
    match value {
        Value::Nil => out.extend_from_slice(b"null"),
        Value::LightUserData(pointer) if pointer.0.is_null() => out.extend_from_slice(b"null"),
        Value::Boolean(yes) => out.extend_from_slice(if *yes { b"true" } else { b"false" }),
        Value::Integer(n) => out.extend_from_slice(fourteen_digits(*n as f64).as_bytes()),
        Value::Number(n) if n.is_finite() => out.extend_from_slice(fourteen_digits(*n).as_bytes()),
        Value::Number(_) => return Err(located(lua, "Cannot serialise number: must not be NaN or Inf")),
        Value::String(text) => quote(&text.as_bytes(), out),
        Value::Table(table) => {
            if depth >= SCRIPT_REPLY_DEPTH_MAX {
                let text = format!("Cannot serialise, excessive nesting ({})", depth + 1);
                return Err(located(lua, &text));
            }
            encode_table(lua, table, depth, meter, out)?;
        }
        other => {
            let kind = if matches!(other, Value::LightUserData(_)) { "userdata" } else { other.type_name() };
            return Err(located(lua, &format!("Cannot serialise {kind}: type not supported")));
        }
    }
    Ok(())
}

fn encode_table(lua: &Lua, table: &Table, depth: usize, meter: &mut Meter, out: &mut Vec<u8>) -> Result<()> {
    let pairs = table.pairs::<Value, Value>().collect::<Result<Vec<_>>>()?;
    let places = pairs.iter().map(|(key, _)| key.as_integer().filter(|place| *place > 0));
    let last = places.clone().try_fold(0, |last, place| Some(place?.max(last)));
    match last {
        Some(last) if last > 0 => {
            if last > SPARSE_FROM && last > 2 * pairs.len() as i64 {
                return Err(located(lua, "Cannot serialise table: excessively sparse array"));
            }
            for place in 1..=last {
                out.push(if place == 1 { b'[' } else { b',' });
                encode(lua, &table.raw_get::<Value>(place)?, depth + 1, meter, out)?;
            }
            out.push(b']');
        }
        _ => {
            out.push(b'{');
            for (at, (key, value)) in pairs.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                match key {
                    Value::String(text) => quote(&text.as_bytes(), out),
                    Value::Integer(n) => quote(fourteen_digits(*n as f64).as_bytes(), out),
                    Value::Number(n) => quote(fourteen_digits(*n).as_bytes(), out),
                    _ => {
                        return Err(located(lua, "Cannot serialise table: table key must be a number or string"));
                    }
                }
                out.push(b':');
                encode(lua, value, depth + 1, meter, out)?;
            }
            out.push(b'}');
        }
    }
    Ok(())
}

fn quote(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &byte in text {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'/' => out.extend_from_slice(b"\\/"),
            8 => out.extend_from_slice(b"\\b"),
            9 => out.extend_from_slice(b"\\t"),
            10 => out.extend_from_slice(b"\\n"),
            12 => out.extend_from_slice(b"\\f"),
            13 => out.extend_from_slice(b"\\r"),
            0..32 | 127 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

fn decode(lua: &Lua, text: mlua::LuaString) -> Result<Value> {
    let bytes = text.as_bytes();
    let mut reader = Reader { lua, bytes: &bytes, at: 0 };
    let value = reader.value(0)?;
    reader.blanks();
    if reader.at < bytes.len() {
        return Err(reader.expected("the end"));
    }
    Ok(value)
}

struct Reader<'l> {
    lua: &'l Lua,
    bytes: &'l [u8],
    at: usize,
}

impl Reader<'_> {
    fn expected(&self, what: &str) -> Error {
        let found = if self.at < self.bytes.len() { "invalid token" } else { "T_END" };
        located(self.lua, &format!("Expected {what} but found {found} at character {}", self.at + 1))
    }

    fn blanks(&mut self) {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn next(&mut self) -> Option<u8> {
        self.blanks();
        self.bytes.get(self.at).copied()
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err(self.expected("value"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn value(&mut self, depth: usize) -> Result<Value> {
        if depth > SCRIPT_REPLY_DEPTH_MAX {
            let text = format!("Found too many nested data structures ({depth}) at character {}", self.at);
            return Err(located(self.lua, &text));
        }
        match self.next() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => {
                let text = self.string()?;
                Ok(Value::String(self.lua.create_string(text)?))
            }
            Some(b't') => self.word("true", Value::Boolean(true)),
            Some(b'f') => self.word("false", Value::Boolean(false)),
            Some(b'n') => self.word("null", Value::NULL),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.expected("value")),
        }
    }

    fn number(&mut self) -> Result<Value> {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|b| !matches!(b, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9'));
        let digits = &rest[..end.unwrap_or(rest.len())];
        let number = std::str::from_utf8(digits).ok().and_then(|text| text.parse::<f64>().ok());
        let number = number.ok_or_else(|| self.expected("value"))?;
        self.at += digits.len();
        Ok(Value::Number(number))
    }

    fn list(&mut self, depth: usize) -> Result<Value> {
        let list = self.lua.create_table()?;
        self.at += 1;
        if self.next() == Some(b']') {
            self.at += 1;
            return Ok(Value::Table(list));
        }
        for place in 1i64.. {
            let value = self.value(depth + 1)?;
            list.raw_set(place, value)?;
            match self.next() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return Err(self.expected("comma or array end")),
            }
        }
        self.at += 1;
        Ok(Value::Table(list))
    }

    fn object(&mut self, depth: usize) -> Result<Value> {
        let object = self.lua.create_table()?;
        self.at += 1;
        if self.next() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Table(object));
        }
        loop {
            if self.next() != Some(b'"') {
                return Err(self.expected("object key string"));
            }
            let key = self.string()?;
            if self.next() != Some(b':') {
                return Err(self.expected("colon"));
            }
            self.at += 1;
            let value = self.value(depth + 1)?;
            object.raw_set(self.lua.create_string(key)?, value)?;
            match self.next() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return Err(self.expected("comma or object end")),
            }
        }
        self.at += 1;
        Ok(Value::Table(object))
    }

    /// The string at this place, its escapes resolved.
    fn string(&mut self) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        self.at += 1;
        loop {
            let byte = *self.bytes.get(self.at).ok_or_else(|| self.expected("value"))?;
            match byte {
                b'"' => {
                    self.at += 1;
                    return Ok(text);
                }
                0..32 => return Err(self.expected("value")),
                b'\\' => {
                    self.at += 1;
                    let escape = *self.bytes.get(self.at).ok_or_else(|| self.expected("value"))?;
                    self.at += 1;
                    match escape {
                        b'"' | b'\\' | b'/' => text.push(escape),
                        b'b' => text.push(8),
                        b'f' => text.push(12),
                        b'n' => text.push(b'\n'),
                        b'r' => text.push(b'\r'),
                        b't' => text.push(b'\t'),
                        b'u' => {
                            let letter = self.letter()?;
                            text.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                        }
                        _ => return Err(self.expected("value")),
                    }
                }
                _ => {
                    text.push(byte);
                    self.at += 1;
                }
            }
        }
    }

    /// The letter behind `\u`: four hexadecimal digits, or a pair of such.
    fn letter(&mut self) -> Result<char> {
        let high = self.unit()?;
        let code = if (0xd800..0xdc00).contains(&high) && self.bytes[self.at..].starts_with(b"\\u") {
            self.at += 2;
            let low = self.unit()?;
            if !(0xdc00..0xe000).contains(&low) {
                return Err(self.expected("value"));
            }
            0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)
        } else {
            high
        };
        char::from_u32(code).ok_or_else(|| self.expected("value"))
    }

    fn unit(&mut self) -> Result<u32> {
        let digits = self.bytes.get(self.at..self.at + 4).filter(|d| d.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let unit = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let unit = unit.ok_or_else(|| self.expected("value"))?;
        self.at += 4;
        Ok(unit)
    }
}
