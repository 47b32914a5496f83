//! Runs the fuzz targets: builds them with the nightly compiler, lets libFuzzer work, keeps the smallest inputs that reach all
//! that was reached.
//!
//! What is found goes to `target/fuzz`; `fuzz/corpus` changes only when asked to, and is what `cargo test` replays.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use impel_sim::fuzz::Target;

use crate::parts::run_or_explain;
use crate::{project_root, target_folder};

/// Compiling everything with the sanitizer may take this long.
const PATIENCE: Duration = Duration::from_secs(30 * 60);
/// One input may take no more memory …
const MEMORY_MAX_MIB: u32 = 2048;
/// … and no more time.
const TIME_MAX_S: u32 = 25;
/// Inputs of a target that are kept at most, and their bytes: they are in everybody's checkout.
const KEPT_MAX: usize = 500;
const KEPT_MAX_BYTES: usize = 900 * 1024;

/// What a run of a target told at its end.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Inputs tried.
    pub executions: u64,
    /// Edges of the code that were reached.
    pub edges: u64,
    /// Features: edges with how often, and the like.
    pub features: u64,
    /// Inputs that are worth keeping.
    pub inputs: u64,
    /// Inputs that a target could not bear.
    pub crashes: Vec<PathBuf>,
}

/// The folder of what is found.
fn found(target: &Target, what: &str) -> PathBuf {
    target_folder().join("fuzz").join(what).join(target.name)
}

/// The inputs of a target that are kept.
pub fn corpus(target: &Target) -> PathBuf {
    project_root().join("fuzz/corpus").join(target.name)
}

fn nightly() -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo"]).current_dir(project_root());
    // The compiler that runs us is another one.
    for variable in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN", "RUSTFLAGS"] {
        command.env_remove(variable);
    }
    command
}

/// Builds a target; answers the program.
///
/// # Errors
/// What is missing, or what the compiler says.
pub fn build(target: &Target) -> Result<PathBuf, String> {
    if run_or_explain("fuzz-version", nightly().args(["fuzz", "--version"]), PATIENCE).is_err() {
        run_or_explain("fuzz-install", nightly().args(["install", "cargo-fuzz", "--locked"]), PATIENCE).map_err(
            |e| format!("cargo-fuzz and a nightly toolchain (rustup toolchain install nightly) are needed: {e}"),
        )?;
    }
    let folder = target_folder().join("fuzz");
    let mut build = nightly();
    build.args(["fuzz", "build", "--fuzz-dir", "fuzz", "--target-dir"]).arg(&folder).arg(target.name);
    run_or_explain("fuzz-build", &mut build, PATIENCE)?;
    let triple = fs::read_dir(&folder).map_err(|e| e.to_string())?.flatten().map(|entry| entry.path());
    let mut programs = triple.map(|path| path.join("release").join(target.name)).filter(|path| path.is_file());
    programs.next().ok_or_else(|| format!("{} was built and is nowhere below {}", target.name, folder.display()))
}

/// Puts the inputs to begin with where libFuzzer finds them; answers the folder in which it also puts new ones.
fn prepare(target: &Target) -> Result<PathBuf, String> {
    let folder = found(target, "inputs");
    let said = |e: std::io::Error| format!("{}: {e}", folder.display());
    for folder in [&folder, &found(target, "crashes"), &corpus(target)] {
        fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    for (number, seed) in (target.seeds)().iter().enumerate() {
        fs::write(folder.join(format!("seed-{number}")), seed).map_err(said)?;
    }
    Ok(folder)
}

fn fuzzer(program: &Path, target: &Target) -> Command {
    let mut command = Command::new("nice");
    command.args(["-n", "19"]).arg(program).current_dir(project_root()).stdin(Stdio::null());
    // What is still held at the end of the process is none of our business.
    command.env("ASAN_OPTIONS", "detect_leaks=0");
    command.arg(format!("-max_len={}", target.len_max));
    command.arg(format!("-rss_limit_mb={MEMORY_MAX_MIB}")).arg(format!("-timeout={TIME_MAX_S}"));
    command.arg(format!("-artifact_prefix={}/", found(target, "crashes").display()));
    command
}

/// Lets libFuzzer work on a target for so long; its own words go to `target/fuzz/NAME.log`.
///
/// # Errors
/// When it cannot be run.
pub fn run(program: &Path, target: &Target, duration: Duration) -> Result<Told, String> {
    let folder = prepare(target)?;
    let log_path = target_folder().join(format!("fuzz/{}.log", target.name));
    let log = File::create(&log_path).map_err(|e| format!("{}: {e}", log_path.display()))?;
    let mut command = fuzzer(program, target);
    command.arg(format!("-max_total_time={}", duration.as_secs())).arg("-print_final_stats=1");
    command.arg(&folder).arg(corpus(target)).stdout(Stdio::null()).stderr(log);
    let status = command.status().map_err(|e| format!("{}: {e}", program.display()))?;
    let output = fs::read(&log_path).map_err(|e| format!("{}: {e}", log_path.display()))?;
    let mut told = read(&String::from_utf8_lossy(&output));
    if !status.success() && told.crashes.is_empty() {
        return Err(format!("{}: {status}; see {}", target.name, log_path.display()));
    }
    told.crashes.dedup();
    Ok(told)
}

/// Takes the numbers out of libFuzzer's output.
fn read(output: &str) -> Told {
    let mut told = Told::default();
    let after = |line: &str, word: &str| -> Option<u64> {
        let rest = line.split_once(word)?.1.trim_start();
        rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())].parse().ok()
    };
    for line in output.lines() {
        if line.starts_with('#') && line.contains(" cov: ") {
            told.edges = after(line, " cov:").unwrap_or(told.edges);
            told.features = after(line, " ft:").unwrap_or(told.features);
            told.inputs = after(line, " corp:").unwrap_or(told.inputs);
        }
        told.executions = after(line, "stat::number_of_executed_units:").unwrap_or(told.executions);
        if let Some((_, path)) = line.split_once("Test unit written to ") {
            told.crashes.push(PathBuf::from(path.trim()));
        }
    }
    told
}

/// Makes `fuzz/corpus` of a target the smallest inputs that reach all that was reached; answers how many they are.
///
/// # Errors
/// When that cannot be done.
pub fn minimize(program: &Path, target: &Target) -> Result<usize, String> {
    let folder = prepare(target)?;
    let small = found(target, "small");
    let _none_before = fs::remove_dir_all(&small);
    fs::create_dir_all(&small).map_err(|e| format!("{}: {e}", small.display()))?;
    let mut merge = fuzzer(program, target);
    merge.arg("-merge=1").arg(&small).arg(&folder).arg(corpus(target));
    run_or_explain("fuzz-minimize", &mut merge, PATIENCE)?;
    let mut inputs = Vec::new();
    for entry in fs::read_dir(&small).map_err(|e| e.to_string())?.flatten() {
        inputs.push((entry.metadata().map_err(|e| e.to_string())?.len() as usize, entry.path()));
    }
    // The smallest, where there are too many.
    inputs.sort();
    let kept = corpus(target);
    fs::remove_dir_all(&kept)
        .and_then(|()| fs::create_dir_all(&kept))
        .map_err(|e| format!("{}: {e}", kept.display()))?;
    let (mut count, mut bytes) = (0, 0);
    for (len, path) in inputs {
        if count == KEPT_MAX || bytes + len > KEPT_MAX_BYTES {
            break;
        }
        let name = path.file_name().ok_or("an input without a name")?;
        fs::copy(&path, kept.join(name)).map_err(|e| format!("{}: {e}", path.display()))?;
        (count, bytes) = (count + 1, bytes + len);
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_libfuzzer_are_read() {
        let output = "INFO: seed corpus: files: 3\n#4\tINITED cov: 11 ft: 12 corp: 3/9b exec/s: 0 rss: 30Mb\n\
                      #2097152\tpulse  cov: 5120 ft: 9001 corp: 44/1203b lim: 100 exec/s: 100 rss: 70Mb\n\
                      artifact_prefix='x/'; Test unit written to x/crash-1\nstat::number_of_executed_units: 2200000\n";
        let told = read(output);
        assert_eq!((told.executions, told.edges, told.features, told.inputs), (2_200_000, 5120, 9001, 44));
        assert_eq!(told.crashes, [PathBuf::from("x/crash-1")]);
        assert_eq!(read(""), Told::default());
    }
}
