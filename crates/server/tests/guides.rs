//! The guides are true: what they tell a reader to type is typed here, in order, and what comes back is what they show.
//!
//! In blocks of `console` a line that begins with `$ ` is typed, and what stands below it comes back. Times, and sums of what
//! has times in it, are another each time.

mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use support::{IMPEL, Server};

/// What is typed, and what comes back.
fn steps(text: &str) -> Vec<(String, String)> {
    let mut steps: Vec<(String, String)> = Vec::new();
    let mut in_console = false;
    for line in text.lines() {
        if line.starts_with("```") {
            in_console = line == "```console";
        } else if let (true, Some(typed)) = (in_console, line.strip_prefix("$ ")) {
            steps.push((typed.to_owned(), String::new()));
        } else if in_console {
            let (_, comes) = steps.last_mut().expect("a command stands first");
            *comes += &format!("{line}\n");
        }
    }
    steps
}

/// With times and sums left out.
fn without_times(text: &str) -> String {
    let (mut out, mut run) = (String::new(), String::new());
    for c in text.chars().chain(['\n']) {
        if c.is_ascii_hexdigit() {
            run.push(c);
            continue;
        }
        let is_time = run.len() >= 13 && run.bytes().all(|byte| byte.is_ascii_digit());
        out += if is_time {
            "TIME"
        } else if run.len() == 64 {
            "SUM"
        } else {
            &run
        };
        run.clear();
        out.push(c);
    }
    out.trim_end().to_owned()
}

fn program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn play(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides").join(name);
    let steps = steps(&fs::read_to_string(path).unwrap());
    let found = Command::new("sh").args(["-c", "command -v redis-cli"]).output().unwrap();
    let redis_cli = String::from_utf8(found.stdout).unwrap().trim().to_owned();
    if redis_cli.is_empty() {
        println!("skipped: redis-cli is not installed (Debian: apt-get install redis-tools)");
        return;
    }
    let folder = tempfile::TempDir::new().unwrap();
    let (programs, here) = (folder.path().join("programs"), folder.path().join("here"));
    fs::create_dir(&programs).unwrap();
    fs::create_dir(&here).unwrap();
    let server = Server::start(folder.path(), &[]);
    let port = server.port;
    program(&programs.join("redis-cli"), &format!("#!/bin/sh\nexec {redis_cli} --no-raw -p {port} \"$@\"\n"));
    symlink(IMPEL, programs.join("impel")).unwrap();
    let search = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    for (typed, comes) in &steps {
        let output = Command::new("sh")
            .args(["-c", typed])
            .current_dir(&here)
            .env("PATH", &search)
            .env("IMPEL_URL", format!("redis://127.0.0.1:{port}"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        assert_eq!(without_times(&said), without_times(comes), "{name}: $ {typed}");
    }
    assert!(steps.len() > 10, "{name} has {} steps", steps.len());
}

#[test]
fn work_that_is_done() {
    play("work-that-is-done.md");
}

#[test]
fn a_guide_is_read_and_compared() {
    let text = "```\n$ not typed\n```\n```console\n$ a 'b'\n1) x\n$ c\n$ d\n\ne\n```\nno\n";
    let pair = |typed: &str, comes: &str| (typed.to_owned(), comes.to_owned());
    assert_eq!(steps(text), [pair("a 'b'", "1) x\n"), pair("c", ""), pair("d", "\ne\n")]);
    let sum = "0a".repeat(32);
    assert_eq!(
        without_times(&format!("at 1796084736256-0, 179608473625, sum {sum}\n")),
        "at TIME-0, 179608473625, sum SUM"
    );
}
