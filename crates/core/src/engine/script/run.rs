//! One run of a script: its commands go the way of those of EXEC, so all its records are of one turn, and a turn's records
//! are one frame of the log. Time stands still inside.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use mlua::{Function, HookTriggers, Lua, Result, Value, Variadic, VmState};

use super::machine::{CLOCK, Failure, Machine, Raised, Stopped, failure};
use super::{Rules, values};
use crate::command::args::{Args, OwnedArgs};
use crate::command::table::{self, CommandId, Flags, Refusal};
use crate::engine::Cx;
use crate::engine::acl::log::Origin;
use crate::engine::fault::Fault;
use crate::limits;
use crate::resp::encode::{Protocol, Reply};

/// What is to be run, and how.
pub(super) struct Order<'a> {
    pub function: &'a Function,
    pub keys: Args<'a>,
    pub arguments: Args<'a>,
    pub rules: Rules,
    /// Memory is short: commands that take more are refused until the script has changed something.
    pub memory_short: bool,
}

/// What became of it.
pub(super) enum Outcome {
    /// The reply is written; this much of it may be an error that nobody has counted.
    Replied { uncounted_error: bool },
    /// It failed.
    Failed(Failure),
}

pub(super) fn run(machine: &Machine, cx: &mut Cx<'_>, order: &Order<'_>, reply: &mut Reply<'_>) -> Outcome {
    machine.rewind();
    let home = cx.engine.client(cx.client).map(|client| (client.db, client.protocol));
    let outcome = run_inside(machine, cx, order, reply);
    // What the script selected holds inside it alone.
    if let (Some((db, protocol)), Some(client)) = (home, cx.engine.client_mut(cx.client)) {
        (client.db, client.protocol) = (db, protocol);
    }
    machine.lua.remove_hook();
    machine.lua.remove_global_hook();
    outcome.unwrap_or_else(|error| Outcome::Failed(broken(&machine.lua, error)))
}

/// The interpreter itself could not go on: in effect always for lack of memory.
fn broken(lua: &Lua, error: mlua::Error) -> Failure {
    let text = format!("ERR {error}").into_bytes();
    failure(lua, &Value::Error(Box::new(error))).unwrap_or(Failure { text, place: None, counted: false })
}

fn run_inside(machine: &Machine, cx: &mut Cx<'_>, order: &Order<'_>, reply: &mut Reply<'_>) -> Result<Outcome> {
    let lua = &machine.lua;
    let list = |args: Args<'_>| {
        let strings = args.iter().map(|arg| lua.create_string(arg)).collect::<Result<Vec<_>>>()?;
        lua.create_sequence_from(strings)
    };
    let environment: mlua::Table = machine.begin.call((list(order.keys)?, list(order.arguments)?))?;
    order.function.set_environment(environment)?;

    let facts = cx.facts;
    let begun_us = (facts.elapsed_us)();
    let soft_ms = cx.settings().busy_reply_threshold_ms;
    let wrote = Cell::new(false);
    let wrote = &wrote;
    // Of what is on its way to the log already the script has nothing.
    let records_max_bytes = cx.engine.log.len() + limits::SCRIPT_RECORDS_MAX_BYTES;
    let (rules, memory_short) = (order.rules, order.memory_short);
    let caller = RefCell::new(Caller { cx, rules, memory_short, buffer: Vec::new(), records_max_bytes });
    let elapsed_us = move || (facts.elapsed_us)().saturating_sub(begun_us);
    let is_over = move || {
        let bound_ms = if wrote.get() { soft_ms.saturating_mul(limits::SCRIPT_HARD_BOUND_FACTOR) } else { soft_ms };
        soft_ms > 0 && elapsed_us() / 1000 >= bound_ms
    };
    let in_time = |lua: &Lua, values: &[Value]| {
        if is_over() {
            return Err(mlua::Error::external(Stopped));
        }
        caller.borrow_mut().call(lua, values, machine.shared.typed.get(), wrote)
    };
    lua.scope(|scope| {
        let call = scope.create_function(|lua, values: Variadic<Value>| {
            let (value, counted) = in_time(lua, &values)?;
            match value {
                Value::Table(table) if counted.is_some() => Err(mlua::Error::external(Raised {
                    text: table.raw_get::<mlua::LuaString>("err")?.as_bytes().to_vec(),
                    counted: counted == Some(true),
                })),
                value => Ok(value),
            }
        })?;
        let pcall = scope.create_function(|lua, values: Variadic<Value>| {
            let (value, counted) = in_time(lua, &values)?;
            if let (Value::Table(table), Some(true)) = (&value, counted) {
                table.raw_set("ignore_error_stats_update", true)?;
            }
            Ok(value)
        })?;
        let clock = scope.create_function(move |_, ()| Ok(elapsed_us() as f64 / 1e6))?;
        let over = scope.create_function(move |_, ()| Ok(is_over()))?;
        machine.redis.raw_set("call", call)?;
        machine.redis.raw_set("pcall", pcall)?;
        machine.os.raw_set("clock", clock)?;
        lua.set_named_registry_value(CLOCK, over)?;
        watch_time(lua)?;
        let (ended, value): (bool, Value) = machine.run.call(order.function)?;
        if !ended {
            let noted = machine.shared.failure.borrow_mut().take();
            return Ok(Outcome::Failed(match noted {
                Some(failure) => failure,
                None => failure(lua, &value)?,
            }));
        }
        let start = reply.out.len();
        let typed = machine.shared.typed.get();
        values::to_reply(lua, &value, typed, reply)?;
        let counted = match &value {
            Value::Table(table) => table.raw_get::<Value>("ignore_error_stats_update")? == Value::Boolean(true),
            _ => false,
        };
        Ok(Outcome::Replied { uncounted_error: reply.out[start] == b'-' && !counted })
    })
}

/// Looks at the clock now and then; once time is over, every instruction is refused, so that no loop around a pcall goes on.
fn watch_time(lua: &Lua) -> Result<()> {
    let stopped = Rc::new(Cell::new(false));
    let triggers = HookTriggers::new().every_nth_instruction(limits::SCRIPT_INSTRUCTIONS_PER_LOOK);
    lua.set_global_hook(triggers, move |lua, _| {
        if !stopped.get() && !lua.named_registry_value::<Function>(CLOCK)?.call::<bool>(())? {
            return Ok(VmState::Continue);
        }
        stopped.set(true);
        Err(mlua::Error::external(Stopped))
    })
}

/// What the commands of a script run with.
struct Caller<'c, 'e> {
    cx: &'c mut Cx<'e>,
    rules: Rules,
    memory_short: bool,
    buffer: Vec<u8>,
    /// With more records than this on their way to the log it writes no more.
    records_max_bytes: usize,
}

impl Caller<'_, '_> {
    /// Runs one command. With an error comes whether it has been counted as one.
    fn call(&mut self, lua: &Lua, values: &[Value], typed: bool, wrote: &Cell<bool>) -> Result<(Value, Option<bool>)> {
        self.buffer.clear();
        let judged = self.judge(values, wrote.get()).and_then(|(spec, args)| match self.deny(spec, args.args()) {
            Some(fault) => Err(fault),
            None => Ok((spec, args)),
        });
        let refused = match judged {
            Ok((spec, args)) => {
                let granted = !self.memory_short || wrote.get();
                wrote.set(wrote.get() || spec.flags.has(Flags::WRITE));
                let (index, facts) = (self.cx.client, self.cx.facts);
                if let Some(client) = self.cx.engine.client_mut(index) {
                    client.protocol = if typed { Protocol::Resp3 } else { Protocol::Resp2 };
                }
                // What the script itself has taken time for is not the command's.
                self.cx.engine.begin_batch(facts);
                self.cx.engine.memory_granted = granted;
                let (gate, _) = self.cx.engine.run(index, spec, args.args(), facts, &mut self.buffer, false, false);
                self.cx.engine.memory_granted = false;
                self.cx.depends_on(gate);
                None
            }
            Err(fault) => Some(fault),
        };
        if let Some(fault) = &refused {
            Reply { out: &mut self.buffer, protocol: Protocol::Resp2 }.error(&fault.0);
        }
        let error = (self.buffer.first() == Some(&b'-')).then_some(refused.is_none());
        let value = values::from_reply(lua, &mut &self.buffer[..])?;
        if self.buffer.capacity() > limits::SCRIPT_MEMORY_COLLECT_BYTES {
            self.buffer = Vec::new();
        }
        Ok((value, error))
    }

    /// Why the user of the connection may not do this, if so.
    fn deny(&mut self, spec: &'static table::CommandSpec, args: Args<'_>) -> Option<Fault> {
        let (index, facts) = (self.cx.client, self.cx.facts);
        let denial = self.cx.engine.find_denial(index, spec, args, Origin::Script, facts)?;
        let user = self.cx.engine.client(index)?.user.clone();
        let text = denial.fault(&user, spec).0;
        Some(Fault::concat(&[b"ERR ACL failure in script: ", text.strip_prefix(b"NOPERM ").unwrap_or(&text)]))
    }

    /// What is asked of a command of a script before it runs.
    fn judge(
        &self,
        values: &[Value],
        wrote: bool,
    ) -> std::result::Result<(&'static table::CommandSpec, OwnedArgs), Fault> {
        if values.is_empty() {
            return Err(Fault::SCRIPT_NO_ARGUMENTS);
        }
        let mut args = OwnedArgs::default();
        for value in values {
            match value {
                Value::String(text) => args.push(&text.as_bytes()),
                other => args.push(&values::argument(other).ok_or(Fault::SCRIPT_ARGUMENTS)?),
            }
            if args.len_bytes() as u64 > self.cx.settings().query_buffer_max_bytes {
                return Err(Fault::SCRIPT_ARGUMENTS_SIZE);
            }
        }
        let spec = table::resolve(args.args()).map_err(|refusal| match refusal {
            Refusal::Arity(_) => Fault::SCRIPT_ARITY,
            Refusal::UnknownCommand | Refusal::UnknownSubcommand(_) => Fault::SCRIPT_UNKNOWN,
        })?;
        if spec.flags.has(Flags::NOSCRIPT) {
            return Err(Fault::SCRIPT_NOT_ALLOWED);
        }
        // What others hear of counts as writing, too.
        let writes = spec.flags.has(Flags::WRITE) || matches!(spec.id, CommandId::Publish | CommandId::SPublish);
        if writes && self.rules.read_only {
            return Err(Fault::SCRIPT_READ_ONLY);
        }
        if writes && self.cx.engine.log.len() + args.len_bytes() > self.records_max_bytes {
            return Err(Fault::SCRIPT_RECORDS_SIZE);
        }
        if spec.flags.has(Flags::DENYOOM) && self.memory_short && !wrote {
            return Err(Fault::OUT_OF_MEMORY);
        }
        Ok((spec, args))
    }
}
