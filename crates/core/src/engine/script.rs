//! Lua scripts: those that are kept, and the interpreter that runs them. What a script does to keys it does through commands,
//! so it leaves records and nothing else; neither scripts nor the interpreter are part of the state, and both are gone
//! after a restart.
//!
//! Invariants: a script finds the interpreter as every other script found it (`script/prelude.lua` seals it). Scripts are
//! kept by the SHA-1 of their text, bounded in number and bytes, and each is compiled once. A script is bounded in time
//! and memory (`limits.rs`).

mod bits;
mod json;
mod machine;
mod run;
mod values;

use std::collections::BTreeMap;

use mlua::Function;

use super::Cx;
use super::fault::Fault;
use crate::command::args::Args;
use crate::limits;
use crate::resp::encode::Reply;

use machine::Machine;
use run::{Order, Outcome};

/// A SHA-1 in hexadecimal digits.
pub type Sha = [u8; 40];

/// The SHA-1 of a script.
pub fn sha1(text: &[u8]) -> Sha {
    let mut sha = [0; 40];
    sha.copy_from_slice(sha1_hex(text).as_bytes());
    sha
}

fn sha1_hex(text: &[u8]) -> String {
    sha1_smol::Sha1::from(text).digest().to_string()
}

/// What a script may do, by the command that runs it and by its first line (`#!lua flags=…`).
#[derive(Clone, Copy, Debug, Default)]
struct Rules {
    /// Has a first line that says so; such scripts are refused where memory is short, others are not.
    declared: bool,
    /// May only read.
    read_only: bool,
    /// May take memory even where it is short.
    allow_oom: bool,
}

struct Script {
    body: Box<[u8]>,
    rules: Rules,
    /// By SCRIPT LOAD: stays until SCRIPT FLUSH.
    loaded: bool,
    /// When it was last used, counted in uses.
    used: u64,
    /// Compiled for the interpreter that there is.
    function: Option<Function>,
}

/// What scripts take, for INFO.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ScriptUsage {
    /// Scripts that are kept.
    pub count: usize,
    /// Bytes of their texts and of what is known of each, without the allocator's share.
    pub kept_bytes: usize,
    /// Bytes that the interpreter holds, compiled scripts included.
    pub machine_bytes: usize,
}

/// Scripts by their SHA-1, and their interpreter.
#[derive(Default)]
pub struct Scripts {
    machine: Option<Machine>,
    kept: BTreeMap<Sha, Script>,
    /// The scripts that EVAL brought, by when they were last used.
    of_eval: BTreeMap<u64, Sha>,
    uses: u64,
    len_bytes: usize,
}

impl Scripts {
    /// How many are kept.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// None at all?
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Is there such a script?
    pub fn has(&self, sha: &Sha) -> bool {
        self.kept.contains_key(sha)
    }

    /// Forgets all scripts, and the interpreter with them.
    pub fn clear(&mut self) {
        *self = Scripts::default();
    }

    /// What they take.
    pub fn usage(&self) -> ScriptUsage {
        ScriptUsage {
            count: self.kept.len(),
            kept_bytes: self.len_bytes + self.kept.len() * (size_of::<Sha>() + size_of::<Script>()),
            machine_bytes: self.machine.as_ref().map_or(0, |machine| machine.lua.used_memory()),
        }
    }

    /// Keeps a script, compiled; errors if it cannot be.
    pub fn keep(&mut self, sha: Sha, body: &[u8], loaded: bool) -> Result<(), Fault> {
        if let Some(script) = self.kept.get_mut(&sha) {
            if loaded && !script.loaded {
                script.loaded = true;
                self.of_eval.remove(&script.used);
            }
            return Ok(());
        }
        let (rules, source) = first_line(body)?;
        let function = self.compile(source)?;
        while !self.of_eval.is_empty()
            && (self.of_eval.len() >= limits::SCRIPTS_OF_EVAL_MAX
                || self.len_bytes + body.len() > limits::SCRIPTS_MAX_BYTES)
        {
            let (_, oldest) = self.of_eval.pop_first().expect("it is not empty");
            self.forget(&oldest);
        }
        if loaded && self.len_bytes + body.len() > limits::SCRIPTS_MAX_BYTES {
            return Err(Fault::SCRIPTS_FULL);
        }
        self.uses += 1;
        if !loaded {
            self.of_eval.insert(self.uses, sha);
        }
        self.len_bytes += body.len();
        let script = Script { body: body.into(), rules, loaded, used: self.uses, function: Some(function) };
        self.kept.insert(sha, script);
        Ok(())
    }

    fn forget(&mut self, sha: &Sha) {
        if let Some(script) = self.kept.remove(sha) {
            self.len_bytes -= script.body.len();
        }
    }

    fn compile(&mut self, source: &[u8]) -> Result<Function, Fault> {
        let compiled = self.machine()?.compile(source);
        compiled.map_err(|text| Fault::owned(format!("ERR Error compiling script (new function): {text}")))
    }

    fn machine(&mut self) -> Result<&Machine, Fault> {
        if self.machine.is_none() {
            let made = Machine::new().map_err(|error| Fault::owned(format!("ERR no interpreter: {error}")))?;
            self.machine = Some(made);
        }
        Ok(self.machine.as_ref().expect("it has been made"))
    }

    /// Runs a script that is kept. `read_only` = by EVAL_RO or EVALSHA_RO.
    pub(super) fn run(
        &mut self,
        cx: &mut Cx<'_>,
        sha: &Sha,
        keys: Args<'_>,
        arguments: Args<'_>,
        read_only: bool,
        reply: &mut Reply<'_>,
    ) -> Result<(), Fault> {
        let script = self.kept.get_mut(sha).ok_or(Fault::NO_SCRIPT)?;
        self.uses += 1;
        if !script.loaded {
            self.of_eval.remove(&script.used);
            self.of_eval.insert(self.uses, *sha);
        }
        script.used = self.uses;
        let mut rules = script.rules;
        if read_only && rules.declared && !rules.read_only {
            return Err(Fault::SCRIPT_WRITES);
        }
        let short = cx.engine.is_memory_short(cx.facts) && !rules.allow_oom;
        if short && rules.declared && !rules.read_only {
            return Err(Fault::OUT_OF_MEMORY);
        }
        rules.read_only |= read_only;
        let function = match script.function.clone() {
            Some(function) => function,
            None => {
                let body = script.body.clone();
                let (_, source) = first_line(&body)?;
                let function = self.compile(source)?;
                if let Some(script) = self.kept.get_mut(sha) {
                    script.function = Some(function.clone());
                }
                function
            }
        };
        let order = Order { function: &function, keys, arguments, rules, memory_short: short };
        let start = reply.out.len();
        let outcome = run::run(self.machine()?, cx, &order, reply);
        drop(function);
        self.tidy();
        match outcome {
            Outcome::Replied { uncounted_error: false } => Ok(()),
            Outcome::Replied { uncounted_error: true } => {
                let text = reply.out[start + 1..].to_vec();
                note_failure(cx, &text, false);
                Ok(())
            }
            Outcome::Failed(failure) => {
                reply.out.truncate(start);
                let mut text = [&failure.text[..], b" script: ", sha].concat();
                match failure.place {
                    Some((code, line)) => text.extend_from_slice(format!(", on {code}:{line}.").as_bytes()),
                    None => text.push(b'.'),
                }
                reply.error(&text);
                note_failure(cx, &text, failure.counted);
                Ok(())
            }
        }
    }

    /// Gives back what a script has left lying about.
    fn tidy(&mut self) {
        let Some(machine) = &self.machine else { return };
        if machine.lua.used_memory() <= limits::SCRIPT_MEMORY_COLLECT_BYTES {
            return;
        }
        // Twice: the first pass may still hold what it ran finalizers for.
        let collected = machine.lua.gc_collect().and_then(|()| machine.lua.gc_collect());
        if collected.is_err() || machine.lua.used_memory() > limits::SCRIPT_MEMORY_RENEW_BYTES {
            self.kept.values_mut().for_each(|script| script.function = None);
            self.machine = None;
        }
    }
}

/// Counts a script that failed; `counted` = the command in it that failed has been, under the same code.
fn note_failure(cx: &mut Cx<'_>, text: &[u8], counted: bool) {
    let spec = cx.spec;
    let statistics = &mut cx.engine.statistics;
    if !counted {
        statistics.note_error(text);
        statistics.of(spec).failed += 1;
    }
}

/// What the first line says, and the source without it. Its end is left, so that lines keep their numbers.
fn first_line(body: &[u8]) -> Result<(Rules, &[u8]), Fault> {
    let mut rules = Rules::default();
    if !body.starts_with(b"#!") {
        return Ok((rules, body));
    }
    let end = memchr::memchr(b'\n', body).ok_or(Fault::SCRIPT_FIRST_LINE)?;
    let mut words = body[..end].split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let engine = words.next().unwrap_or_default();
    if engine != b"#!lua" {
        return Err(Fault::concat(&[b"ERR Unexpected engine in script shebang: ", engine]));
    }
    rules.declared = true;
    for word in words {
        let Some(flags) = word.strip_prefix(b"flags=") else {
            return Err(Fault::concat(&[b"ERR Unknown lua shebang option: ", word]));
        };
        for flag in flags.split(|&b| b == b',').filter(|flag| !flag.is_empty()) {
            match flag {
                b"no-writes" => rules.read_only = true,
                b"allow-oom" => rules.allow_oom = true,
                b"allow-stale" | b"no-cluster" | b"allow-cross-slot-keys" => {}
                _ => return Err(Fault::concat(&[b"ERR Unexpected flag in script shebang: ", flag])),
            }
        }
    }
    Ok((rules, &body[end..]))
}
