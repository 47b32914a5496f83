//! `impel lab` against this server, Redis 8.2.3 and the system's Redis: what it decides with handlers of every kind, and that its
//! evidence cannot be altered unnoticed.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use sha2::{Digest, Sha256};
use support::tools::World;
use support::watch::until;

/// Short, so that a run takes a third of a second.
const LAB: &str = "lab --idle-ms 100 --json --out";

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// The rows of the cases and the result.
fn rows(output: &Output) -> (Vec<Value>, Value) {
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines: Vec<Value> =
        said.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{}", text(output)))).collect();
    let result = lines.pop().unwrap_or_else(|| panic!("{}", text(output)));
    (lines, result)
}

/// Case, decision and reason of each row.
fn decisions(output: &Output) -> BTreeMap<String, String> {
    let of = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
    let row = |row: &Value| (of(row, "case"), format!("{} {}", of(row, "decision"), of(row, "reason")));
    rows(output).0.iter().map(row).collect()
}

fn keys(world: &World) -> i64 {
    world.ask("DBSIZE").int()
}

fn verify(world: &World, folder: &str) -> (Option<i32>, String) {
    let output = world.output_of(&format!("lab verify {folder}"));
    (output.status.code(), text(&output))
}

fn accepts(world: &World) {
    let output = world.output(&format!("{LAB} ev"));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let (cases, result) = rows(&output);
    let names: Vec<&str> = cases.iter().map(|row| row["case"].as_str().unwrap()).collect();
    assert_eq!(names, ["C01", "C02", "C03", "C04", "C05", "C06", "C07", "C08"]);
    for row in &cases {
        assert_eq!((&row["decision"], &row["reason"]), (&"ACCEPT".into(), &"as-expected".into()), "{row}");
        assert_eq!(row["expected"], row["observed"]);
        for file in row["evidence"].as_array().unwrap() {
            assert!(world.file("ev").join(file.as_str().unwrap()).exists(), "{file}");
        }
    }
    // What the server's own ledger says of a claim, of work that is done outside, and of a payload that is gone.
    let ledger = |at: usize| cases[at]["server_ledger"]["reason"].as_str();
    let told = [ledger(2), ledger(5), ledger(6)];
    assert_eq!(
        told,
        if world.has_ledger() { [Some("not-started"), Some("payload-lost"), Some("no-ledger")] } else { [None; 3] }
    );
    assert_eq!(result["decision"], "ACCEPT");
    assert_eq!(result["manifest"], sum(&fs::read(world.file("ev/manifest.tsv")).unwrap()));
    assert_eq!(result["server"]["name"], if world.has_ledger() { "impel" } else { "redis" });
    assert!(result["checks"].to_string().contains("kept: claimed by c2, still pending, and no effect"), "{result}");
    assert_eq!(keys(world), 0);
    let work = fs::read_to_string(world.file("ev/work.tsv")).unwrap();
    let outcomes: Vec<&str> = work.lines().skip(1).map(|line| line.split('\t').nth(7).unwrap()).collect();
    assert_eq!(outcomes, ["COMPLETED", "COMPLETED", "DUPLICATE_BLOCKED"]);
    let (code, said) = verify(world, "ev");
    assert!(code == Some(0) && said.starts_with("unaltered: ACCEPT, sum "), "{said}");
    let printed = result["sum"].as_str().unwrap();
    assert!(said.trim_end().ends_with(printed), "{said}");
    assert_eq!(verify(world, &format!("ev --sum {printed}")).0, Some(0));
    assert_eq!(verify(world, &format!("ev --sum {}", "0".repeat(64))).0, Some(1));
}

#[test]
fn every_server_is_accepted_with_the_built_in_handler() {
    let worlds = [Some(World::impel()), World::redis(), World::system_redis()];
    thread::scope(|scope| {
        for world in worlds.iter().flatten() {
            scope.spawn(|| accepts(world));
        }
    });
}

#[test]
fn what_handlers_of_every_kind_come_to() {
    let world = World::impel();
    let done = r#"$IMPEL_EFFECTS/$IMPEL_WORK"#;
    let ok = "ACCEPT as-expected";
    // The handler, the exit code, and C05, C07, C08.
    let cases: [(&str, String, i32, [&str; 3]); 14] = [
        ("once", format!("set -C; test -e {done} || echo $IMPEL_FIELD_job_id > {done}"), 0, [ok; 3]),
        (
            "odd",
            format!("printf x > $IMPEL_EFFECTS/\"$(printf 'job-A\\nx')\"; mkdir -p {done}"),
            5,
            [ok, ok, "HOLD unexplained-effect"],
        ),
        ("folder", format!("mkdir {done} 2>/dev/null; grep -q job_id"), 0, [ok; 3]),
        ("without", "true".into(), 3, ["REPAIR acked-without-evidence"; 3]),
        ("lost", "exit 1".into(), 4, ["RERUN not-done"; 3]),
        (
            "conflict",
            format!("echo $IMPEL_CONSUMER > {done}.$IMPEL_DELIVERY"),
            5,
            ["HOLD conflicting-effect", ok, "HOLD conflicting-effect"],
        ),
        (
            "overwritten",
            format!("echo $IMPEL_CONSUMER > {done}"),
            5,
            ["HOLD conflicting-effect", ok, "HOLD conflicting-effect"],
        ),
        (
            "twice",
            format!("echo > {done}.$IMPEL_CONSUMER"),
            3,
            ["REPAIR duplicate-effect", ok, "REPAIR duplicate-effect"],
        ),
        ("killed", "kill -9 $$".into(), 5, ["HOLD outcome-unknown"; 3]),
        ("crashed", "sh -c 'kill -9 $$'; exit $?".into(), 5, ["HOLD outcome-unknown"; 3]),
        ("slow", "sleep 60".into(), 5, ["HOLD outcome-unknown"; 3]),
        ("late", format!("mkdir {done}; exit 1"), 3, ["REPAIR ack-missing"; 3]),
        (
            "strange",
            "echo > $IMPEL_EFFECTS/other".into(),
            5,
            ["REPAIR acked-without-evidence", "REPAIR acked-without-evidence", "HOLD unexplained-effect"],
        ),
        (
            "second",
            format!("test $IMPEL_CONSUMER-$IMPEL_DELIVERY = c2-2 -a $IMPEL_WORK = job-B || mkdir {done}"),
            3,
            ["REPAIR done-without-evidence", ok, "REPAIR done-without-evidence"],
        ),
    ];
    thread::scope(|scope| {
        for (name, handler, code, expected) in &cases {
            let world = &world;
            scope.spawn(move || {
                let limit = if *name == "slow" { "100" } else { "60000" };
                let mut tool = world.tool(&format!("{LAB} {name} --handler-timeout {limit}"));
                let output = tool.args(["--handler", handler]).output().unwrap();
                assert_eq!(output.status.code(), Some(*code), "{name}: {}", text(&output));
                let found = decisions(&output);
                assert_eq!(["C05", "C07", "C08"].map(|case| &found[case][..]), *expected, "{name}");
                // The handler has no part in the others.
                for case in ["C01", "C02", "C03", "C04", "C06"] {
                    assert_eq!(found[case], ok, "{name} {case}");
                }
                assert_eq!(verify(world, name).0, Some(0), "{name}: {}", verify(world, name).1);
            });
        }
    });
    assert_eq!(keys(&world), 0);
}

#[test]
fn an_effect_where_nothing_was_to_be_done_is_held() {
    let world = World::impel();
    let handler = "mkdir $IMPEL_EFFECTS/$IMPEL_WORK; mkdir -p $IMPEL_EFFECTS/job-A";
    let output = world.tool(&format!("{LAB} ev")).args(["--handler", handler]).output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{}", text(&output));
    let found = decisions(&output);
    assert_eq!(found["C03"], "HOLD unexplained-effect");
    assert_eq!(found["C06"], "ACCEPT as-expected");
    assert!(rows(&output).1["checks"].to_string().contains("not-kept"), "the negative control");
}

#[test]
fn a_handler_that_acknowledges_by_itself_is_repaired() {
    let world = World::impel();
    let handler = "mkdir $IMPEL_EFFECTS/$IMPEL_WORK; echo $IMPEL_STREAM g $IMPEL_ID > new; mv new ask; \
        while test -e ask; do sleep 0.02; done";
    let child =
        world.tool(&format!("{LAB} ev")).args(["--handler", handler]).stdout(std::process::Stdio::piped()).spawn();
    let mut child = child.unwrap();
    let ask = world.file("ask");
    until("the run ends", || {
        if let Ok(words) = fs::read_to_string(&ask) {
            assert_eq!(world.ask(&format!("XACK {}", words.trim())).int(), 1);
            fs::remove_file(&ask).unwrap();
        }
        child.try_wait().unwrap().is_some()
    });
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let found = decisions(&output);
    assert_eq!((&found["C05"][..], &found["C07"][..]), ("REPAIR acked-elsewhere", "REPAIR acked-elsewhere"));
}

#[test]
fn a_server_that_dies_or_hangs_in_the_middle_makes_a_run_to_be_repeated() {
    thread::scope(|scope| {
        // What is not read when a process is killed makes the connection end in another way.
        scope.spawn(|| fails("KILL", &["closed the connection", "Connection reset by peer", "Broken pipe"]));
        scope.spawn(|| fails("STOP", &["has not answered in time"]));
    });
}

/// A run in whose middle the server gets a signal, and what is missing then.
fn fails(signal: &str, missing: &[&str]) {
    let world = World::impel();
    let id = world.impel.as_ref().unwrap().child.id();
    let handler = format!("mkdir $IMPEL_EFFECTS/$IMPEL_WORK; kill -{signal} {id}");
    let begun = Instant::now();
    let mut tool = world.tool(&format!("{LAB} ev --reply-timeout 3000"));
    let output = tool.args(["--handler", &handler]).output().unwrap();
    world.impel.as_ref().unwrap().signal("CONT");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!(output.status.code(), Some(4), "{}", text(&output));
    let found = decisions(&output);
    assert_eq!(found["C03"], "ACCEPT as-expected");
    assert_eq!(found["C05"], "RERUN evidence-missing");
    assert_eq!(found["C07"], "RERUN evidence-missing");
    assert_eq!(found["C08"], "RERUN not-run");
    let (cases, _) = rows(&output);
    let told = cases[6]["missing"].as_str().unwrap();
    assert!(missing.iter().any(|what| told.contains(what)), "{}", text(&output));
    assert!(text(&output).contains("may be left on the server"), "{}", text(&output));
    assert_eq!(verify(&world, "ev").0, Some(0), "{}", verify(&world, "ev").1);
}

#[test]
fn a_server_that_answers_a_byte_now_and_then_holds_nobody_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut request = [0; 100];
        let _ = socket.read(&mut request).unwrap();
        socket.write_all(b"+PONG\r\n").unwrap();
        let _ = socket.read(&mut request).unwrap();
        while socket.write_all(b"+").is_ok() {
            thread::sleep(Duration::from_millis(20));
        }
    });
    let folder = tempfile::TempDir::new().unwrap();
    let mut tool = std::process::Command::new(support::IMPEL);
    tool.args(["lab", "--out", "ev", "--reply-timeout", "300", "--port", &port.to_string()]).current_dir(folder.path());
    let output = tool.output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("has not answered in time"), "{}", text(&output));
    assert!(!folder.path().join("ev").exists());
    server.join().unwrap();
}

#[test]
fn a_run_that_is_ended_by_a_signal_says_so_and_removes_its_keys() {
    let world = World::impel();
    let mut tool = world.tool("lab --idle-ms 30000 --json --out ev");
    let child = tool.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    until("the streams are there", || keys(&world) == 4);
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", text(&output));
    let found = decisions(&output);
    assert_eq!((&found["C01"][..], &found["C03"][..]), ("ACCEPT as-expected", "RERUN not-run"));
    assert_eq!(keys(&world), 0);
    assert_eq!(verify(&world, "ev").0, Some(0));
}

#[test]
fn keys_that_are_there_are_left_alone() {
    let world = World::impel();
    world.ask("SET lab[1]*:mine x");
    let refused = world.output(&format!("{LAB} ev --prefix lab[1]*:"));
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused);
    assert!(said.contains("there are keys that begin with lab[1]*: (lab[1]*:mine); choose another --prefix"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(!world.file("ev").exists(), "nothing was run");
    // A prefix is no pattern.
    world.ask("SET lab1:mine x");
    let output = world.output(&format!("{LAB} ev --prefix lab[1]: --keep"));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert_eq!(keys(&world), 2 + 4);
    assert_eq!(world.ask("EXISTS lab[1]:control lab[1]:repeat lab[1]:deleted lab[1]:positive").int(), 4);
    assert_eq!(verify(&world, "ev").0, Some(0));
}

#[test]
fn another_version_than_the_pinned_one_is_no_evidence() {
    let world = World::impel();
    let output = world.output(&format!("{LAB} ev --expect-version 9.9.9"));
    assert_eq!(output.status.code(), Some(4), "{}", text(&output));
    assert!(text(&output).contains("baseline-differs: 9.9.9 is wanted, and it is impel"), "{}", text(&output));
    assert!(decisions(&output).values().all(|one| one == "ACCEPT as-expected"));
    let output = world.output(&format!("{LAB} other --expect-version {}", env!("CARGO_PKG_VERSION")));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
}

#[test]
fn a_wrong_command_line_is_told_in_one_line() {
    let world = World::impel();
    for (wrong, code) in [
        ("lab", 64),
        ("lab --out", 64),
        ("lab --out=", 64),
        ("lab --out ev more", 64),
        ("lab --out ev --prefix=", 64),
        ("lab --out ev --idle-ms 0", 64),
        ("lab --out ev --idle-ms 600001", 64),
        ("lab --out ev --idle-ms x", 64),
        ("lab --out ev --handler=", 64),
        ("lab --out ev --handler-timeout 0", 64),
        ("lab --out ev --strange", 64),
        ("lab --out ev --url http://h", 64),
        ("lab --out ev --db 99", 2),
        ("lab --out none/ev", 2),
        ("lab --out .", 2),
    ] {
        let output = world.output(wrong);
        assert_eq!(output.status.code(), Some(code), "{wrong}: {}", text(&output));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.starts_with("impel lab: ") && said.lines().count() == 1, "{wrong}: {said}");
        assert!(!world.file("ev").exists(), "{wrong}");
    }
    for (wrong, code) in [("lab verify", 64), ("lab verify a b", 64), ("lab verify --sum", 64), ("lab verify none", 2)]
    {
        assert_eq!(world.output_of(wrong).status.code(), Some(code), "{wrong}");
    }
    let help = text(&world.output_of("lab --help"));
    for words in ["0 ACCEPT", "3 REPAIR", "4 RERUN", "5 HOLD", "IMPEL_EFFECTS", "C08"] {
        assert!(help.contains(words), "{words}");
    }
}

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn sum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes the sums anew, as one would who alters a bundle.
fn seal_anew(folder: &Path) {
    let _ = fs::remove_file(folder.join("SHA256SUMS"));
    let line = |path: PathBuf| {
        let name = path.strip_prefix(folder).unwrap().display().to_string();
        format!("{}  {name}\n", sum(&fs::read(&path).unwrap()))
    };
    let mut lines: Vec<String> = files(folder).into_iter().map(line).collect();
    lines.sort_by_key(|line| line[66..].to_owned());
    fs::write(folder.join("SHA256SUMS"), lines.concat()).unwrap();
}

/// Replaces a text in a file, once.
fn replace(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    let changed = text.replacen(from, to, 1);
    assert_ne!(text, changed, "{} has no {from}", path.display());
    fs::write(path, changed).unwrap();
}

/// Replaces what is in a reply, and everything that is said of it in the index.
fn forge(folder: &Path, name: &str, from: &str, to: &str) {
    let path = folder.join(format!("traffic/{name}.reply"));
    let before = fs::read(&path).unwrap();
    replace(&path, from, to);
    let after = fs::read(&path).unwrap();
    let index = folder.join("traffic.jsonl");
    let told = |bytes: &[u8]| format!("\"reply_bytes\":{},\"reply_sha256\":\"{}\"", bytes.len(), sum(bytes));
    replace(&index, &told(&before), &told(&after));
}

#[test]
fn a_bundle_that_was_altered_anywhere_is_refused_and_the_place_named() {
    let world = World::impel();
    let output = world.output(&format!("{LAB} ev"));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let (bundle, altered) = (world.file("ev"), world.file("altered"));
    // Every file, of the traffic that of a case: changed, and missing.
    let name_of = |path: &PathBuf| path.strip_prefix(&bundle).unwrap().display().to_string();
    let names: Vec<String> = files(&bundle).iter().map(name_of).collect();
    for name in names.iter().filter(|name| !name.starts_with("traffic/") || name.starts_with("traffic/C03")).cloned() {
        let path = bundle.join(&name);
        copy(&bundle, &altered);
        let mut bytes = fs::read(&path).unwrap();
        let at = bytes.len() / 2;
        bytes[at] = if bytes[at] == b'7' { b'3' } else { b'7' };
        fs::write(altered.join(&name), bytes).unwrap();
        // That of the sums names what the sum is of.
        let named = if name == "SHA256SUMS" { "traffic/" } else { &name };
        let (code, said) = verify(&world, "altered");
        assert!(code == Some(1) && said.contains(&format!("ALTERED {named}")), "{name}: {said}");
        fs::remove_file(altered.join(&name)).unwrap();
        let (code, said) = verify(&world, "altered");
        assert!(code == Some(1) && said.contains(&format!("ALTERED {name}: ")), "{name} is gone: {said}");
        if name != "SHA256SUMS" {
            seal_anew(&altered);
            let (code, said) = verify(&world, "altered");
            assert!(code == Some(1) && said.contains(&name), "{name} is gone, with all sums: {said}");
        }
    }
    // Together with all sums.
    type Alter = fn(&Path);
    let cases: [(&str, Alter, &str); 9] = [
        ("an expectation", |at| replace(&at.join("manifest.tsv"), "pending_c2", "pending_c1"), "manifest.tsv: line "),
        (
            "a term",
            |at| replace(&at.join("manifest.tsv"), "idle_ms\t100", "idle_ms\t1"),
            "manifest.tsv: is not that of the sum in manifest.sha256",
        ),
        (
            "a row",
            |at| replace(&at.join("ledger.jsonl"), "\"C03\"", "\"C09\""),
            "ledger.jsonl: line 3 C03 is not what follows",
        ),
        (
            "the decision",
            |at| replace(&at.join("result.json"), "\"ACCEPT\"", "\"HOLD\""),
            "result.json: line 1 is not what follows",
        ),
        (
            "an effect",
            |at| fs::write(at.join("effects/job-D"), "x").unwrap(),
            "effects/job-D: is not what effects.jsonl says",
        ),
        (
            "an effect more",
            |at| fs::write(at.join("effects/job-A"), "x").unwrap(),
            "effects/job-A: effects.jsonl knows nothing of it",
        ),
        (
            "a file more",
            |at| fs::write(at.join("traffic/note"), "x").unwrap(),
            "traffic/note: does not belong to the bundle",
        ),
        ("a reply", |at| forge(at, "C06-claim", "4000-0", "4000-1"), "ledger.jsonl: line 6 C06 is not what follows"),
        (
            "an owner",
            |at| forge(at, "C03-pending", "$2\r\nc2", "$2\r\nc1"),
            "ledger.jsonl: line 3 C03 is not what follows",
        ),
    ];
    for (what, alter, named) in cases {
        copy(&bundle, &altered);
        alter(&altered);
        seal_anew(&altered);
        let (code, said) = verify(&world, "altered");
        assert!(code == Some(1) && said.contains(named), "{what}: {said}");
    }
    assert_eq!(verify(&world, "ev").0, Some(0));
}

#[test]
fn a_link_in_the_place_of_a_file_is_an_alteration() {
    let world = World::impel();
    assert_eq!(world.output(&format!("{LAB} ev")).status.code(), Some(0));
    let reply = world.file("ev/traffic/C07-claim.reply");
    fs::rename(&reply, world.file("elsewhere")).unwrap();
    std::os::unix::fs::symlink(world.file("elsewhere"), &reply).unwrap();
    let (code, said) = verify(&world, "ev");
    assert!(code == Some(1) && said.contains("ALTERED traffic/C07-claim.reply: is no plain file"), "{said}");
}
