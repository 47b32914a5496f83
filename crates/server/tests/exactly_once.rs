//! `examples/exactly-once`: the demonstration as a user starts it, and its negative control. Each in its short form.

mod support;

use std::path::Path;
use std::process::Command;

use support::{IMPEL, free_port};

/// Runs the demonstration: what it printed. Nothing, with the reason printed, where PostgreSQL is not installed.
fn demonstrate(options: &[&str]) -> Option<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/exactly-once/run.sh");
    let output = Command::new(script)
        .args(["--jobs", "40"])
        .args(options)
        .env("IMPEL", IMPEL)
        .env("PORT", free_port().to_string())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(2) && said.contains("PostgreSQL is not installed") {
        println!("skipped: {said}");
        return None;
    }
    assert!(output.status.success(), "{said}");
    Some(said)
}

/// The number in front of a word.
fn number(said: &str, word: &str) -> u64 {
    let (before, _) = said.split_once(word).unwrap_or_else(|| panic!("no {word:?} in {said}"));
    let number = before.trim_end().rsplit(|end: char| !end.is_ascii_digit()).next().unwrap();
    number.parse().unwrap_or_else(|_| panic!("no number before {word:?} in {said}"))
}

#[test]
fn with_the_ledger_each_job_has_one_effect_and_one_completion() {
    let Some(said) = demonstrate(&[]) else { return };
    assert!(said.contains("EXACTLY ONCE"), "{said}");
    assert!(said.contains("40 payments for 40 jobs, 820 paid of 820 due: 0 duplicates"), "{said}");
    assert!(said.contains("40 entries for 40 jobs: 0 duplicates"), "{said}");
    assert!(said.contains("40 completions, 0 conflicts"), "{said}");
    assert!(said.contains("server's ledger: 40 of 40 ACCEPT, exit 0"), "{said}");
    assert!(said.contains("with PostgreSQL's: 40 of 40 ACCEPT, 40 completions, exit 0"), "{said}");
    // There was trouble, and without what blocks them there would have been duplicates.
    assert!(number(&said, "workers killed") >= 1 && number(&said, "paused") >= 1, "{said}");
    assert!(number(&said, "times\nthe command") >= 1 && number(&said, "runs too many") >= 2, "{said}");
    assert!(number(&said, "payments by the key") >= 2, "{said}");
}

#[test]
fn without_evidence_the_same_trouble_makes_duplicates() {
    let Some(said) = demonstrate(&["--control"]) else { return };
    assert!(said.contains("CONTROL: duplicates"), "{said}");
    for line in said.lines().filter(|line| line.ends_with("duplicates")) {
        assert!(number(line, "duplicates") >= 2, "{said}");
    }
    assert_eq!(said.matches(" duplicates\n").count(), 2, "{said}");
    assert_eq!(number(&said, "of 40 UNKNOWN"), 40, "{said}");
}
