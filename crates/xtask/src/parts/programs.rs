//! Parts that are programs of their own: clients in other languages, and scenarios that start the server themselves.
//! Each ends with a line `N passed, N failed`; one that does not has failed.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::context::{cargo, run_logged, run_or_explain, tail};
use super::{Context, Outcome, Tally, parse_tally};
use crate::bench::growth::{self, OPERATIONS};
use crate::bench::shapes::{self, Run};
use crate::{project_root, shared_folder, target_folder};

/// No program needs a fraction of it.
const PATIENCE: Duration = Duration::from_secs(180);
/// Compiling is in it.
const BUILD_PATIENCE: Duration = Duration::from_secs(15 * 60);
/// Operations of a benchmark that is only to be seen running.
const TINY: usize = 2000;

pub fn redis_cli(context: &Context) -> Outcome {
    context.redis_tools()?;
    client(context, "redis-cli", python(context, "clients/redis_cli.py")?)
}

pub fn redis_py(context: &Context) -> Outcome {
    client(context, "redis-py", python(context, "clients/redis_py.py")?)
}

pub fn ioredis(context: &Context) -> Outcome {
    client(context, "ioredis", node(context, "clients/ioredis.js")?)
}

pub fn node_redis(context: &Context) -> Outcome {
    client(context, "node-redis", node(context, "clients/node_redis.js")?)
}

pub fn redis_rs(context: &Context) -> Outcome {
    let mut build = cargo();
    // With --workspace, so that it is the very build that `cargo test --workspace` has made before.
    build.args(["build", "--workspace", "--example", "client_redis_rs"]);
    run_or_explain("redis-rs-build", &mut build, BUILD_PATIENCE)?;
    client(context, "redis-rs", Command::new(target_folder().join("debug/examples/client_redis_rs")))
}

pub fn positions(context: &Context) -> Outcome {
    scenario(context, "positions", "seeds/delivery_positions.py")
}

pub fn lag(context: &Context) -> Outcome {
    scenario(context, "lag", "seeds/lag_and_pending.py")
}

pub fn claims(context: &Context) -> Outcome {
    context.redis_tools()?;
    scenario(context, "claims", "seeds/claim_is_not_completion.py")
}

pub fn work(context: &Context) -> Outcome {
    scenario(context, "work", "seeds/work_in_progress.py")
}

/// Runs the Python program printed in an article word for word, with our server in the place of its Redis. Its text
/// is not ours to copy: where it does not lie beside the project, there is nothing to run, and nothing is counted.
pub fn laboratory(context: &Context) -> Outcome {
    let Some(shared) = shared_folder() else { return Ok(Tally::default()) };
    let listing = fs::read_dir(shared.join("seeds")).map_err(|e| format!("seeds: {e}"))?;
    let mut articles = listing.filter_map(|entry| Some(entry.ok()?.path())).collect::<Vec<PathBuf>>();
    articles.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("003_")));
    let [article] = articles.as_slice() else { return Err("there is no article 003_* beside the project".into()) };
    let text = fs::read_to_string(article).map_err(|e| format!("{}: {e}", article.display()))?;
    let program = python_block(&text).ok_or("the article has no Python block")?;
    let (folder, python) = (target_folder().join("test-env"), context.python()?);
    let path = folder.join("laboratory.py");
    fs::create_dir_all(&folder)
        .and_then(|()| fs::write(&path, program))
        .map_err(|e| format!("{}: {e}", path.display()))?;
    let mut command = Command::new(python);
    command.arg(&path).env("REDIS_SERVER", context.server()?);
    let output = run_or_explain("laboratory", &mut command, PATIENCE)?;
    match output.lines().count() {
        3 => Ok(Tally { passed: 3, ..Tally::default() }),
        other => Err(format!("it prints three summaries, not {other}:\n{output}")),
    }
}

/// Every shape of the benchmark, run tiny on our server, so that none stops working unnoticed. Measures nothing.
pub fn shapes(context: &Context) -> Outcome {
    context.redis_tools()?;
    let mut tally = Tally::default();
    for shape in shapes::shapes() {
        let mut server = context.start_server(shape.arguments)?;
        let address = server.address();
        let run = Run { server: &mut server, address, operations: TINY }.shape(shape);
        match run.map(|numbers| numbers.iter().all(Option::is_some)) {
            Ok(true) => match shape.on_nats.map(|on_nats| on_nats(&context.nats()?, TINY)).transpose() {
                Ok(_) => tally.passed += 1,
                Err(why) => {
                    tally.failed += 1;
                    tally.report.push_str(&format!("FAIL {} on NATS: {why}\n", shape.name));
                }
            },
            Ok(false) => {
                tally.failed += 1;
                tally.report.push_str(&format!("FAIL {}: a figure is missing\n", shape.name));
            }
            Err(why) => {
                tally.failed += 1;
                tally.report.push_str(&format!("FAIL {why}\n"));
            }
        }
    }
    Ok(tally)
}

/// Every operation of the growth benchmark at sizes that take no time, so that none stops working unnoticed. Measures
/// nothing.
pub fn growth(context: &Context) -> Outcome {
    let mut tally = Tally::default();
    for size in [1000, 4000] {
        let server = context.start_server(&["--save", "", "--appendonly", "no"])?;
        for (operation, figure) in OPERATIONS.iter().zip(growth::measure(&server, size)?) {
            if figure.is_some() {
                tally.passed += 1;
            } else {
                tally.failed += 1;
                tally.report.push_str(&format!("FAIL {}: refused with {size} entries\n", operation.name));
            }
        }
    }
    Ok(tally)
}

/// From the first import to the last print.
fn python_block(article: &str) -> Option<String> {
    let lines: Vec<&str> = article.lines().collect();
    let first = lines.iter().position(|line| line.starts_with("from contextlib import"))?;
    let last = lines.iter().rposition(|line| line.starts_with("    print("))?;
    Some(lines.get(first..=last)?.join("\n") + "\n")
}

fn python(context: &Context, program: &str) -> Result<Command, String> {
    let mut command = Command::new(context.python()?);
    command.arg("-B").arg(project_root().join("tests").join(program));
    Ok(command)
}

fn node(context: &Context, program: &str) -> Result<Command, String> {
    let mut command = Command::new("node");
    command.env("NODE_PATH", context.node_modules()?).arg(project_root().join("tests").join(program));
    Ok(command)
}

/// A program that is told where a server is, as started with nothing but a place for its data: the defaults.
fn client(context: &Context, name: &str, mut command: Command) -> Outcome {
    let server = context.start_server(&[])?;
    command.arg(server.port().to_string()).arg(server.socket());
    let mut tally = counted(name, &mut command)?;
    if tally.failed > 0 {
        tally.report.push_str(&server.complaint("a client's checks failed on it"));
    }
    Ok(tally)
}

/// A program that starts servers from a binary.
fn scenario(context: &Context, name: &str, program: &str) -> Outcome {
    let mut command = python(context, program)?;
    counted(name, command.arg(context.server()?))
}

fn counted(name: &str, command: &mut Command) -> Outcome {
    let (status, output) = run_logged(name, command, PATIENCE)?;
    let report = format!("{}\n", tail(&output, 80));
    match parse_tally(&output) {
        Some((passed, failed)) if passed + failed > 0 && status.success() == (failed == 0) => {
            Ok(Tally { passed, failed, report })
        }
        _ => Err(format!("it ended with {status} and without a count:\n{report}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_within_an_article() {
        let article = "words\n\nfrom contextlib import x\nwith y:\n    print(1)\n    z\n    print(2)\n\nwords";
        assert_eq!(
            python_block(article).as_deref(),
            Some("from contextlib import x\nwith y:\n    print(1)\n    z\n    print(2)\n")
        );
        assert_eq!(python_block("words"), None);
    }

    #[test]
    fn a_program_without_a_count_has_failed() {
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            counted("selftest", &mut command)
        };
        let tally = shell("echo 2 passed, 0 failed").expect("a count");
        assert_eq!((tally.passed, tally.failed), (2, 0));
        let tally = shell("echo 2 passed, 1 failed; exit 1").expect("a count");
        assert_eq!((tally.passed, tally.failed), (2, 1));
        for script in ["true", "echo 2 passed, 0 failed; exit 1", "echo 0 passed, 0 failed", "echo 1 passed, 1 failed"]
        {
            assert!(shell(script).is_err(), "{script}");
        }
    }
}
