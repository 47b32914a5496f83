//! The interpreter: Lua 5.1 with bounded memory, its globals sealed by `prelude.lua`, and the functions of the engine that
//! need no command to be running. It cannot open files, load code that is not source, or see the clock of the machine.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

use mlua::{Error, Function, Lua, LuaOptions, Result, StdLib, Table, Value, Variadic};

use super::values::raised;
use super::{bits, json};
use crate::command::args::OwnedArgs;
use crate::command::table;
use crate::engine::decide::REDIS_VERSION;
use crate::limits;

const PRELUDE: &str = include_str!("prelude.lua");
/// Where the code of `prelude.lua` says that it is from.
const PRELUDE_NAME: &str = "=impel";
/// Where the code of scripts says that it is from.
pub(super) const SCRIPT_NAME: &str = "@user_script";
/// What `math.random` begins with in every script: the default of the generator, which is that of drand48.
const SEED: u64 = 0x1234_abcd_330e;
/// `redis.REDIS_VERSION_NUM` has a byte for each part.
const VERSION_PART_BITS: u32 = 8;

/// An error of the engine inside a script: the line that a client would get.
#[derive(Debug)]
pub(super) struct Raised {
    /// The line, its code first.
    pub text: Vec<u8>,
    /// The command that answered it has already been counted as failed.
    pub counted: bool,
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.text))
    }
}

impl std::error::Error for Raised {}

/// The script has had its time. No script can catch this.
#[derive(Debug)]
pub(super) struct Stopped;

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ERR the script ran longer than busy-reply-threshold allows and was stopped")
    }
}

impl std::error::Error for Stopped {}

/// How a script failed.
pub(super) struct Failure {
    /// The error, its code first.
    pub text: Vec<u8>,
    /// The code and line where it came up, if that is known.
    pub place: Option<(String, usize)>,
    /// It has been counted already.
    pub counted: bool,
}

/// Name of the clock among the values that only the engine sees: a function that tells whether the script has had its time.
pub(super) const CLOCK: &str = "impel-clock";

/// Counts what is made of a script's values, whose sum no other bound knows: a table may hold itself in many places.
#[derive(Default)]
pub(super) struct Meter {
    values: usize,
}

impl Meter {
    /// One more value, `len_bytes` having been written so far.
    pub fn count(&mut self, lua: &Lua, len_bytes: usize) -> Result<()> {
        if len_bytes > limits::SCRIPT_REPLY_MAX_BYTES {
            return Err(raised("ERR what the script makes is too large"));
        }
        self.values += 1;
        if self.values.is_multiple_of(limits::SCRIPT_VALUES_PER_LOOK)
            && lua.named_registry_value::<Function>(CLOCK)?.call::<bool>(())?
        {
            return Err(Error::external(Stopped));
        }
        Ok(())
    }
}

/// What the interpreter's functions share with the engine.
#[derive(Default)]
pub(super) struct Shared {
    /// The script asked for RESP3.
    pub typed: Cell<bool>,
    /// State of `math.random`.
    random: Cell<u64>,
    /// The error that ended the script.
    pub failure: RefCell<Option<Failure>>,
}

/// An interpreter that is ready to run scripts.
pub(super) struct Machine {
    pub lua: Lua,
    pub shared: Rc<Shared>,
    /// `redis` as it is behind its seal: takes `call` and `pcall` of the script that runs.
    pub redis: Table,
    /// `os` likewise.
    pub os: Table,
    /// Makes a fresh environment from KEYS and ARGV.
    pub begin: Function,
    /// Runs a function; what it failed with is then in `shared`.
    pub run: Function,
    /// Keeps the names of chunks alive: the parser holds them without the collector's knowing.
    _names: [Value; 2],
}

impl Machine {
    pub fn new() -> Result<Machine> {
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH;
        // Coroutines come with the base of this version.
        // A panic must reach the engine's caller, not a script's pcall.
        let lua = Lua::new_with(libraries, LuaOptions::new().catch_rust_panics(false))?;
        lua.set_memory_limit(limits::SCRIPT_MEMORY_MAX_BYTES)?;
        let names = [Value::String(lua.create_string(SCRIPT_NAME)?), Value::String(lua.create_string("=(load)")?)];
        let shared = Rc::new(Shared::default());
        let host = lua.create_table()?;
        host.raw_set("base", lua.globals())?;
        host.raw_set("null", Value::NULL)?;
        host.raw_set("pattern_max", limits::SCRIPT_PATTERN_MAX_BYTES)?;
        host.raw_set("values_max", limits::SCRIPT_VALUES_MAX)?;
        host.raw_set("rep", lua.create_function(repeated)?)?;
        let (redis, os) = (redis_library(&lua, &shared)?, lua.create_table()?);
        host.raw_set("redis", &redis)?;
        host.raw_set("os", &os)?;
        host.raw_set("bit", bits::library(&lua)?)?;
        host.raw_set("cjson", json::library(&lua)?)?;
        host.raw_set("told", lua.create_function(told)?)?;
        random_functions(&lua, &shared, &host)?;
        let failures = shared.clone();
        host.raw_set(
            "failed",
            lua.create_function(move |lua, value: Value| {
                *failures.failure.borrow_mut() = Some(failure(lua, &value)?);
                Ok(())
            })?,
        )?;
        lua.load(PRELUDE).set_name(PRELUDE_NAME).call::<()>(&host)?;
        let (begin, run) = (host.raw_get("begin")?, host.raw_get("run")?);
        Ok(Machine { lua, shared, redis, os, begin, run, _names: names })
    }

    /// Makes a function of source.
    pub fn compile(&self, source: &[u8]) -> std::result::Result<Function, String> {
        let chunk = self.lua.load(source).set_name(SCRIPT_NAME).set_mode(mlua::chunk::ChunkMode::Text);
        chunk.into_function().map_err(|error| match error {
            Error::SyntaxError { message, .. } => message,
            Error::MemoryError(_) => "not enough memory".to_owned(),
            other => other.to_string(),
        })
    }

    /// Back to how every script finds it.
    pub fn rewind(&self) {
        self.shared.typed.set(false);
        self.shared.random.set(SEED);
        self.shared.failure.borrow_mut().take();
    }
}

/// The error behind what the interpreter has wrapped around it.
fn cause(error: &Error) -> &Error {
    let mut error = error;
    while let Error::CallbackError { cause, .. } = error {
        error = cause;
    }
    error
}

/// What a script that caught `value` may know of it; nil when it must not be caught.
fn told(lua: &Lua, value: Value) -> Result<Value> {
    let Value::Error(error) = value else { return Ok(Value::Nil) };
    let text = match cause(&error) {
        error if error.downcast_ref::<Stopped>().is_some() => return Ok(Value::Nil),
        Error::MemoryError(_) => return Ok(Value::Nil),
        error => match error.downcast_ref::<Raised>() {
            Some(raised) => raised.text.clone(),
            None => error.to_string().into_bytes(),
        },
    };
    Ok(Value::String(lua.create_string(text)?))
}

/// Makes of an error what its client gets. Runs where the error came up, so that the place can be told.
pub(super) fn failure(lua: &Lua, value: &Value) -> Result<Failure> {
    let mut counted = false;
    let text = match value {
        Value::Error(error) => match cause(error) {
            Error::MemoryError(_) => b"ERR not enough memory".to_vec(),
            error => match error.downcast_ref::<Raised>() {
                Some(raised) => {
                    counted = raised.counted;
                    raised.text.clone()
                }
                None if error.downcast_ref::<Stopped>().is_some() => Stopped.to_string().into_bytes(),
                None => format!("ERR {}", message(error)).into_bytes(),
            },
        },
        Value::Table(table) => {
            counted = table.raw_get::<Value>("ignore_error_stats_update")? == Value::Boolean(true);
            match super::values::argument(&table.raw_get::<Value>("err")?) {
                Some(text) => text,
                None => b"ERR unknown error".to_vec(),
            }
        }
        Value::String(text) => [b"ERR ", without_our_place(&text.as_bytes())].concat(),
        Value::Nil => b"ERR nil".to_vec(),
        other => format!("ERR {}", other.to_string().unwrap_or_default()).into_bytes(),
    };
    Ok(Failure { text, place: place(lua), counted })
}

/// An error of Lua's own libraries that came up in `prelude.lua` names a place there, which says nothing to anyone.
fn without_our_place(text: &[u8]) -> &[u8] {
    let rest = text.strip_prefix(&PRELUDE_NAME.as_bytes()[1..]).and_then(|rest| rest.strip_prefix(b":"));
    let digits = rest.map_or(0, |rest| rest.iter().take_while(|byte| byte.is_ascii_digit()).count());
    rest.and_then(|rest| rest[digits..].strip_prefix(b": ")).unwrap_or(text)
}

fn message(error: &Error) -> String {
    match error {
        Error::RuntimeError(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The innermost code of the script that is running.
fn place(lua: &Lua) -> Option<(String, usize)> {
    for level in 0.. {
        let found = lua.inspect_stack(level, |frame| {
            let source = frame.source();
            let code =
                source.source.filter(|name| source.what != "C" && source.what != "tail" && *name != PRELUDE_NAME);
            Some((code?.into_owned(), frame.current_line()?))
        })?;
        if found.is_some() {
            return found;
        }
    }
    None
}

/// An error with the place where it came up before its text, as those of Lua's own libraries.
pub(super) fn located(lua: &Lua, text: &str) -> Error {
    let place =
        lua.inspect_stack(1, |frame| Some(format!("{}:{}: ", frame.source().short_src?, frame.current_line()?)));
    raised(format!("ERR {}{text}", place.flatten().unwrap_or_default()))
}

fn redis_library(lua: &Lua, shared: &Rc<Shared>) -> Result<Table> {
    let redis = lua.create_table()?;
    for (level, name) in ["DEBUG", "VERBOSE", "NOTICE", "WARNING"].into_iter().enumerate() {
        redis.raw_set(format!("LOG_{name}"), level)?;
    }
    for (name, bits) in [("NONE", 0), ("AOF", 1), ("SLAVE", 2), ("REPLICA", 2), ("ALL", 3)] {
        redis.raw_set(format!("REPL_{name}"), bits)?;
    }
    redis.raw_set("REDIS_VERSION", REDIS_VERSION)?;
    let parts = REDIS_VERSION.split('.').filter_map(|part| part.parse::<u32>().ok());
    redis.raw_set("REDIS_VERSION_NUM", parts.fold(0, |all, part| (all << VERSION_PART_BITS) + part))?;

    redis.raw_set(
        "sha1hex",
        lua.create_function(|_, values: Variadic<Value>| {
            let [value] = &values[..] else { return Err(raised("ERR wrong number of arguments")) };
            let text = super::values::argument(value).unwrap_or_default();
            Ok(super::sha1_hex(&text))
        })?,
    )?;
    for (name, field, code) in [("error_reply", "err", true), ("status_reply", "ok", false)] {
        redis.raw_set(
            name,
            lua.create_function(move |lua, values: Variadic<Value>| {
                let reply = lua.create_table()?;
                match &values[..] {
                    [Value::String(text)] => {
                        let text = text.as_bytes();
                        reply.raw_set(field, lua.create_string(if code { coded(&text) } else { text.to_vec() })?)?;
                    }
                    _ => reply.raw_set("err", "ERR wrong number or type of arguments")?,
                }
                Ok(reply)
            })?,
        )?;
    }
    let asked = shared.clone();
    redis.raw_set(
        "setresp",
        lua.create_function(move |lua, values: Variadic<Value>| {
            let [version] = &values[..] else { return Err(raised("ERR redis.setresp() requires one argument.")) };
            match lua.coerce_integer(version.clone())? {
                Some(version @ (2 | 3)) => asked.typed.set(version == 3),
                _ => return Err(raised("ERR RESP version must be 2 or 3.")),
            }
            Ok(())
        })?,
    )?;
    redis.raw_set(
        "log",
        lua.create_function(|_, values: Variadic<Value>| match &values[..] {
            [] | [_] => Err(raised("ERR redis.log() requires two arguments or more.")),
            [Value::Integer(0..=3), ..] => Ok(()),
            [Value::Integer(_) | Value::Number(_), ..] => Err(raised("ERR Invalid log level.")),
            _ => Err(raised("ERR First argument must be a number (log level).")),
        })?,
    )?;
    redis.raw_set("replicate_commands", lua.create_function(|_, ()| Ok(true))?)?;
    redis.raw_set(
        "set_repl",
        lua.create_function(|_, values: Variadic<Value>| match &values[..] {
            [Value::Integer(0..=3)] => Ok(()),
            [_] => Err(raised("ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.")),
            _ => Err(raised("ERR redis.set_repl() requires one argument.")),
        })?,
    )?;
    redis.raw_set("breakpoint", lua.create_function(|_, ()| Ok(false))?)?;
    redis.raw_set("debug", lua.create_function(|_, _: Variadic<Value>| Ok(()))?)?;
    redis.raw_set(
        "acl_check_cmd",
        lua.create_function(|_, values: Variadic<Value>| {
            if values.is_empty() {
                return Err(raised("ERR Please specify at least one argument for this redis lib call"));
            }
            let words: Option<Vec<_>> = values.iter().map(super::values::argument).collect();
            let words =
                words.ok_or_else(|| raised("ERR Lua redis lib command arguments must be strings or integers"))?;
            match table::find(OwnedArgs::new(words).args()) {
                Ok(_) => Ok(true),
                Err(_) => Err(raised("ERR Invalid command passed to redis.acl_check_cmd()")),
            }
        })?,
    )?;
    Ok(redis)
}

/// The text of `redis.error_reply`, which may come with or without a code.
fn coded(text: &[u8]) -> Vec<u8> {
    match text.strip_prefix(b"-") {
        Some(text) => text.to_vec(),
        None if text.contains(&b' ') => text.to_vec(),
        None => [b"ERR ", text].concat(),
    }
}

/// `string.rep`. Lua's own takes its time even where nothing comes of it, and its memory before it asks how much.
fn repeated(lua: &Lua, values: Variadic<Value>) -> Result<Value> {
    let wrong = |at: usize, wanted: &str| {
        let kind = values.get(at).map_or("no value", type_name);
        located(lua, &format!("bad argument #{} to 'rep' ({wanted} expected, got {kind})", at + 1))
    };
    let text = values.first().and_then(super::values::argument).ok_or_else(|| wrong(0, "string"))?;
    let count = match values.get(1) {
        Some(count) => lua.coerce_number(count.clone())?,
        None => None,
    };
    let count = count.ok_or_else(|| wrong(1, "number"))?.clamp(0.0, usize::MAX as f64) as usize;
    match text.len().checked_mul(count) {
        Some(len) if len <= limits::SCRIPT_MEMORY_MAX_BYTES => {
            Ok(Value::String(lua.create_string(text.repeat(if len == 0 { 0 } else { count }))?))
        }
        _ => Err(located(lua, "resulting string too large")),
    }
}

/// As Lua names them: it has one kind of number.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Integer(_) => "number",
        Value::LightUserData(_) => "userdata",
        other => other.type_name(),
    }
}

fn random_functions(lua: &Lua, shared: &Rc<Shared>, host: &Table) -> Result<()> {
    let numbers = shared.clone();
    let draw = move |lua: &Lua, values: Variadic<Value>| {
        // The generator that POSIX calls lrand48: 31 bits of a sequence of 48.
        let state = numbers.random.get().wrapping_mul(0x5_deec_e66d).wrapping_add(0xb) & ((1 << 48) - 1);
        numbers.random.set(state);
        const LARGEST: u64 = i32::MAX as u64;
        let share = ((state >> 17) % LARGEST) as f64 / LARGEST as f64;
        let bound = |at: usize| {
            lua.coerce_number(values[at].clone())?.ok_or_else(|| {
                let kind = type_name(&values[at]);
                located(lua, &format!("bad argument #{} to 'random' (number expected, got {kind})", at + 1))
            })
        };
        let empty = |at: usize| located(lua, &format!("bad argument #{at} to 'random' (interval is empty)"));
        match values.len() {
            0 => Ok(share),
            1 => {
                let last = bound(0)?.trunc();
                if last >= 1.0 { Ok((share * last).floor() + 1.0) } else { Err(empty(1)) }
            }
            2 => {
                let (first, last) = (bound(0)?.trunc(), bound(1)?.trunc());
                if first <= last { Ok((share * (last - first + 1.0)).floor() + first) } else { Err(empty(2)) }
            }
            _ => Err(located(lua, "wrong number of arguments")),
        }
    };
    host.raw_set("random", lua.create_function(draw)?)?;
    let numbers = shared.clone();
    host.raw_set(
        "randomseed",
        lua.create_function(move |_, seed: f64| {
            numbers.random.set(u64::from(seed as i64 as u32) << 16 | 0x330e);
            Ok(())
        })?,
    )
}
