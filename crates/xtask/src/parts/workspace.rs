//! Parts that cargo does: format, lints, the tests of the workspace.

use std::time::Duration;

use super::context::{cargo, run_logged, run_or_explain, tail};
use super::{Context, Outcome, Tally};

/// Compiling everything is in it.
const PATIENCE: Duration = Duration::from_secs(20 * 60);

pub fn format(_: &Context) -> Outcome {
    run_or_explain("format", cargo().args(["fmt", "--all", "--check"]), PATIENCE)?;
    Ok(Tally::one())
}

pub fn lints(_: &Context) -> Outcome {
    let mut clippy = cargo();
    clippy.args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]);
    run_or_explain("lints", &mut clippy, PATIENCE)?;
    Ok(Tally::one())
}

pub fn unit(_: &Context) -> Outcome {
    let mut test = cargo();
    test.args(["test", "--workspace", "--no-fail-fast"]);
    let (status, output) = run_logged("unit", &mut test, PATIENCE)?;
    let (passed, failed) = count_tests(&output);
    if status.success() && passed == 0 {
        return Err("cargo test ran no test".into());
    }
    // A failure outside any test, e.g. of the compiler, counts as one.
    let failed = if status.success() { failed } else { failed.max(1) };
    Ok(Tally { passed, failed, report: failures(&output) })
}

/// Adds up the `test result:` lines of all test programs.
fn count_tests(output: &str) -> (usize, usize) {
    let (mut passed, mut failed) = (0, 0);
    for line in output.lines().filter_map(|line| line.strip_prefix("test result: ")) {
        let number = |word: &str| {
            let before = line.split(word).next().filter(|before| before.len() < line.len())?;
            before.split_whitespace().last()?.parse::<usize>().ok()
        };
        passed += number(" passed").unwrap_or(0);
        failed += number(" failed").unwrap_or(0);
    }
    (passed, failed)
}

/// What the failed tests said, or else the end of the output.
fn failures(output: &str) -> String {
    let sections: Vec<&str> = output
        .split("\nfailures:\n")
        .filter(|section| section.trim_start().starts_with("---- "))
        .map(str::trim_end)
        .collect();
    if sections.is_empty() { tail(output, 60) } else { sections.join("\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_results_are_added_up() {
        let output = "\
test a ... ok
test result: ok. 26 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.12s
test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
noise: 5 passed; 5 failed
";
        assert_eq!(count_tests(output), (27, 2));
        assert_eq!(count_tests("error: could not compile"), (0, 0));
    }

    #[test]
    fn a_failed_test_is_quoted() {
        let output = "x\nfailures:\n\n---- a stdout ----\nit broke\n\nfailures:\n    a\n\ntest result: FAILED.";
        assert_eq!(failures(output).trim(), "---- a stdout ----\nit broke");
        assert_eq!(failures("error: could not compile"), "error: could not compile");
    }
}
