//! `cargo xtask fuzz`: feeds the doors of the server what nobody would send.

use std::fs;
use std::time::Duration;

use impel_sim::fuzz::{TARGETS, Target};

use super::Answer;
use crate::arguments::{Arguments, Stop, Syntax};
use crate::fuzz::{build, minimize, run as fuzz};

const SYNTAX: Syntax = Syntax {
    help: "\
Feed arbitrary bytes to every door by which bytes come into the server, and see that nothing breaks.

usage: cargo xtask fuzz [TARGET] [options]

Without a TARGET each of them in turn; --list names them. Needs a nightly toolchain (rustup toolchain
install nightly) and installs cargo-fuzz where it is missing. Crashes are kept in target/fuzz/crashes; the
inputs in fuzz/corpus are replayed by every `cargo test`. The last line is \"N passed, N failed\", counting targets.

  --minutes N       how long each target is fuzzed (1)
  --weighted        the minutes are multiplied by what a target deserves, up to four times
  --minimize        afterwards make fuzz/corpus the smallest inputs that reach as much
  --only-minimize   that alone
  --input FILE      replay this one input, in this process, without nightly
  --list            list the targets and stop
",
    options: &["--minutes", "--input"],
    flags: &["--weighted", "--minimize", "--only-minimize", "--list"],
    words: 1,
};

/// Runs the command.
///
/// # Errors
/// When the arguments make no sense, or the fuzzer cannot be built.
pub fn run(words: &[String]) -> Answer {
    let arguments = Arguments::parse(words, &SYNTAX)?;
    if arguments.has("--list") {
        TARGETS.iter().for_each(|target| println!("{:<10} {}", target.name, target.about));
        return Ok(true);
    }
    let chosen: Vec<&Target> = match arguments.words() {
        [] => TARGETS.iter().collect(),
        names => TARGETS.iter().filter(|target| names.contains(&target.name.to_owned())).collect(),
    };
    if chosen.is_empty() {
        return Err(Stop::Usage("there is no such target; --list names them".into()));
    }
    if let Some(path) = arguments.one("--input") {
        let [target] = chosen[..] else { return Err(Stop::Usage("--input needs a TARGET".into())) };
        let input = fs::read(path).map_err(|e| format!("{path}: {e}"))?;
        (target.run)(&input);
        println!("{} bears it", target.name);
        return Ok(true);
    }
    let minutes = arguments.number("--minutes", 1.0, 0.0)?;
    let (mut passed, mut failed) = (0, 0);
    for target in chosen {
        let program = build(target)?;
        if !arguments.has("--only-minimize") {
            let weight = if arguments.has("--weighted") { f64::from(target.weight) } else { 1.0 };
            let told = fuzz(&program, target, Duration::from_secs_f64(60.0 * minutes * weight))?;
            println!(
                "{:<10} {:>10} executions, {:>6} edges, {:>6} features, {:>5} inputs, {} crashes",
                target.name,
                told.executions,
                told.edges,
                told.features,
                told.inputs,
                told.crashes.len()
            );
            told.crashes
                .iter()
                .for_each(|path| println!("  cargo xtask fuzz {} --input {}", target.name, path.display()));
            *(if told.crashes.is_empty() { &mut passed } else { &mut failed }) += 1;
        }
        if arguments.has("--minimize") || arguments.has("--only-minimize") {
            println!("{:<10} {} inputs kept", target.name, minimize(&program, target)?);
        }
    }
    println!("{passed} passed, {failed} failed");
    Ok(failed == 0)
}
