//! `impel audit` against this server and against Redis 8.2.3, and the evidence it keeps.

mod support;

use std::fs;
use std::path::Path;
use std::process::Output;

use sha2::{Digest, Sha256};
use support::tools::World;

const AUDIT: &str = "audit --stream s --group g";

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Runs an audit: the exit code, and of each entry that is shown ID, work id, decision and reason; then the counts that are
/// not nothing.
fn audit(world: &World, options: &str) -> (i32, Vec<String>) {
    let output = world.output(format!("{AUDIT} --json --page 2 {options}").trim_end());
    let said = text(&output);
    let lines: Vec<serde_json::Value> =
        said.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{said}"))).collect();
    let (totals, entries) = lines.split_last().unwrap();
    let of = |line: &serde_json::Value, name: &str| line[name].as_str().unwrap().to_owned();
    let mut shown: Vec<String> =
        entries.iter().map(|line| ["id", "work", "decision", "reason"].map(|name| of(line, name)).join(" ")).collect();
    let counts = totals["decisions"].as_object().unwrap().iter().filter(|(_, count)| **count != 0);
    shown.extend(counts.map(|(name, count)| format!("{name}={count}")));
    (output.status.code().unwrap(), shown)
}

/// Entries 1-0 to 7-0: 1 and 2 acknowledged, 3 to 6 of a consumer, 6 deleted, 7 not given.
fn fill(world: &World) {
    world.fill(7);
    world.ask("XREADGROUP GROUP g c COUNT 6 STREAMS s >");
    world.ask("XACK s g 1-0 2-0");
    world.ask("XDEL s 6-0");
}

#[test]
fn without_a_ledger_nothing_can_be_said_of_what_is_acknowledged() {
    let Some(world) = World::redis() else { return };
    fill(&world);
    let open = [
        "3-0 3-0 OPEN in-progress",
        "4-0 4-0 OPEN in-progress",
        "5-0 5-0 OPEN in-progress",
        "6-0 6-0 OPEN in-progress",
    ];
    let unknown = ["1-0 1-0 UNKNOWN no-ledger", "2-0 2-0 UNKNOWN no-ledger"];
    let (code, found) = audit(&world, "--lease 600000");
    assert_eq!(
        (code, found),
        (1, [&unknown[..], &open[..], &["OPEN=4", "UNKNOWN=2"]].concat().iter().map(ToString::to_string).collect())
    );
    let (_, found) = audit(&world, "--lease 0");
    assert_eq!(
        found[2..6],
        ["3-0 3-0", "4-0 4-0", "5-0 5-0", "6-0 6-0"].map(|id| match id {
            "6-0 6-0" => format!("{id} HOLD payload-lost"),
            _ => format!("{id} HOLD outcome-unknown"),
        })
    );
    let (_, found) = audit(&world, "--lease 0 --idempotent");
    assert_eq!(found[2], "3-0 3-0 RERUN retry-safe");
}

#[test]
fn completions_of_another_system_decide() {
    let Some(world) = World::redis() else { return };
    fill(&world);
    // In disorder; 4 contradicts itself, 5 was completed twice alike, one is of no entry.
    let rows = "work_id,digest,receipt,completed_at\njob-5,d,,\njob-4,a,,\njob-1,x,r,2026-01-01\nother,,,\njob-4,b,,\njob-5,d,,\n";
    fs::write(world.file("done.csv"), rows).unwrap();
    let (code, found) = audit(&world, "--all --lease 0 --work-field job --ledger csv:done.csv --out bundle");
    assert_eq!(
        (code, found.iter().map(String::as_str).collect::<Vec<_>>()),
        (
            1,
            vec![
                "1-0 job-1 ACCEPT complete",
                "2-0 job-2 REPAIR acked-without-evidence",
                "3-0 job-3 HOLD outcome-unknown",
                "4-0 job-4 HOLD conflict",
                "5-0 job-5 REPAIR ack-missing",
                "6-0 6-0 HOLD payload-lost",
                "ACCEPT=1",
                "HOLD=3",
                "REPAIR=2",
            ]
        )
    );
    let result = fs::read_to_string(world.file("bundle/result.json")).unwrap();
    let result: serde_json::Value = serde_json::from_str(&result).unwrap();
    assert_eq!(result["completions_without_entry"], 1);
    assert_eq!(result["work_ids_completed_repeatedly"], 1);
    let output = world.output_of("audit verify bundle");
    assert!(
        output.status.success() && text(&output).starts_with("unaltered: 6 entries, not all ACCEPT"),
        "{}",
        text(&output)
    );
}

#[test]
fn the_servers_ledger_decides() {
    let world = World::impel();
    world.ask("XGROUP CREATE s g 0 MKSTREAM");
    world.ask("XWORK POLICY s g EVIDENCE record WORKFIELD job");
    fill(&world);
    world.ask("XWORK BEGIN s g c 3-0");
    world.ask("XWORK BEGIN s g c 4-0");
    world.ask("XWORK DONE s g c 4-0 DIGEST d");
    world.ask("XWORK HOLD s g REASON why IDS 1 5-0");
    let (code, found) = audit(&world, "--all --out bundle");
    assert_eq!(
        (code, found.iter().map(String::as_str).collect::<Vec<_>>()),
        (
            1,
            vec![
                "1-0 job-1 REPAIR acked-without-evidence",
                "2-0 job-2 REPAIR acked-without-evidence",
                "3-0 job-3 OPEN in-progress",
                "4-0 job-4 ACCEPT complete",
                "5-0 job-5 HOLD why",
                "6-0 6-0 HOLD payload-lost",
                "ACCEPT=1",
                "HOLD=2",
                "OPEN=1",
                "REPAIR=2",
            ]
        )
    );
    let ledger = fs::read_to_string(world.file("bundle/ledger.jsonl")).unwrap();
    assert!(ledger.lines().count() >= 5 && ledger.contains("\"outcome\":\"completed\""), "{ledger}");
    // What another system knows is added to it.
    fs::write(world.file("done.jsonl"), "{\"work_id\":\"job-2\"}\n{\"work_id\":\"job-3\"}\n").unwrap();
    let (_, found) = audit(&world, "--all --ledger jsonl:done.jsonl");
    assert_eq!(found[1..3], ["2-0 job-2 ACCEPT complete", "3-0 job-3 REPAIR ack-missing"]);
}

#[test]
fn it_ends_with_0_only_if_all_is_accepted() {
    let world = World::impel();
    world.fill(25);
    let (code, found) = audit(&world, "");
    assert_eq!((code, found), (0, vec![]), "nothing was given yet");
    let said = world.work("--until-empty --work-field job", "true");
    assert!(said.contains("25 done"), "{said}");
    let (code, found) = audit(&world, "--work-field job --out bundle");
    assert_eq!((code, found), (0, vec!["ACCEPT=25".to_owned()]));
    let output = world.output(AUDIT);
    assert!(text(&output).contains("ACCEPT   25\n"), "{}", text(&output));
    for (wrong, code) in [
        ("audit --stream s", 64),
        ("audit --stream s --group x", 2),
        ("audit --stream s --group g --ledger xml:f", 64),
        ("audit --stream s --group g --ledger csv:none", 2),
        ("audit --stream s --group g --out bundle", 2),
        ("audit --stream s --group g --page 1", 64),
    ] {
        assert_eq!(world.output(wrong).status.code(), Some(code), "{wrong}");
    }
    assert!(text(&world.output("audit --help")).contains("Exit codes:"));
}

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// Changes a byte of a file that is a letter or a digit, so that lines stay lines.
fn alter(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] = if bytes[at] == b'7' { b'3' } else { b'7' };
    fs::write(path, bytes).unwrap();
}

fn seal_anew(folder: &Path) {
    let sealed = std::process::Command::new("sh")
        .args(["-c", "LC_ALL=C; sha256sum completions.jsonl decisions.jsonl group.jsonl ledger.jsonl question.json replies.bin replies.jsonl result.json > SHA256SUMS"])
        .current_dir(folder)
        .status()
        .unwrap();
    assert!(sealed.success());
}

#[test]
fn a_bundle_that_was_altered_anywhere_is_refused_and_the_place_named() {
    let world = World::impel();
    world.fill(5);
    world.work("--until-empty", "test $IMPEL_ID != 3-0");
    fs::write(world.file("done.jsonl"), "{\"work_id\":\"1-0\",\"digest\":\"d\"}\n").unwrap();
    let (code, _) = audit(&world, "--ledger jsonl:done.jsonl --out bundle");
    assert_eq!(code, 1);
    let (bundle, altered) = (world.file("bundle"), world.file("altered"));
    let verify = || {
        let output = world.output_of("audit verify altered");
        (output.status.code(), text(&output))
    };
    copy(&bundle, &altered);
    let (code, said) = verify();
    assert_eq!(code, Some(0), "{said}");
    let sum = said.trim_end().rsplit(' ').next().unwrap().to_owned();
    // Every file, at its beginning, in the middle and at its end.
    let names: Vec<String> =
        fs::read_dir(&bundle).unwrap().map(|one| one.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(names.len(), 9);
    for name in &names {
        let len = fs::metadata(bundle.join(name)).unwrap().len() as usize;
        assert!(len > 0, "{name}");
        for at in [0, len / 2, len - 2] {
            copy(&bundle, &altered);
            alter(&altered.join(name), at);
            let (code, said) = verify();
            assert!(matches!(code, Some(1 | 2)) && said.contains(name.as_str()), "{name} at {at}: {code:?} {said}");
        }
        copy(&bundle, &altered);
        fs::remove_file(altered.join(name)).unwrap();
        let (code, said) = verify();
        assert!(matches!(code, Some(1 | 2)) && said.contains(name.as_str()), "{name} is gone: {code:?} {said}");
    }
    // A conclusion that was altered together with its sum.
    copy(&bundle, &altered);
    let decisions = fs::read_to_string(altered.join("decisions.jsonl")).unwrap();
    let wrong = decisions.replacen("\"REPAIR\"", "\"ACCEPT\"", 1).replacen("\"RERUN\"", "\"ACCEPT\"", 1);
    assert_ne!(decisions, wrong);
    fs::write(altered.join("decisions.jsonl"), wrong).unwrap();
    seal_anew(&altered);
    let (code, said) = verify();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("ALTERED decisions.jsonl: line") && said.lines().count() == 1, "{said}");
    // A reply, with all sums: the index does not fit.
    copy(&bundle, &altered);
    let len = fs::metadata(altered.join("replies.bin")).unwrap().len() as usize;
    alter(&altered.join("replies.bin"), len / 2);
    seal_anew(&altered);
    assert!(verify().1.contains("ALTERED replies.bin: reply "), "{}", verify().1);
    // A file more.
    copy(&bundle, &altered);
    fs::write(altered.join("note.txt"), "x").unwrap();
    assert!(verify().1.contains("ALTERED note.txt"));
    // Everything made anew is another bundle: its sum tells.
    let output = world.output_of(&format!("audit verify bundle --sum {sum}"));
    assert!(output.status.success());
    let output = world.output_of(&format!("audit verify bundle --sum {}", "0".repeat(64)));
    assert_eq!(output.status.code(), Some(1));
}

/// Makes a bundle with other replies, with all lengths and sums as if they had always been so. Every conclusion in it would have to be
/// made anew too; none of them is looked at where the replies contradict each other.
fn with_replies(bundle: &Path, to: &Path, change: impl Fn(&str) -> String) {
    copy(bundle, to);
    let (bytes, index) = (to.join("replies.bin"), to.join("replies.jsonl"));
    let (old, lines) = (fs::read(&bytes).unwrap(), fs::read_to_string(&index).unwrap());
    let (mut at, mut replies, mut all) = (0, Vec::new(), String::new());
    for line in lines.lines() {
        let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
        let len = line["len_bytes"].as_u64().unwrap() as usize;
        let reply = change(std::str::from_utf8(&old[at..at + len]).unwrap());
        at += len;
        let sum: String = Sha256::digest(&reply).iter().map(|byte| format!("{byte:02x}")).collect();
        (line["len_bytes"], line["sha256"]) = (reply.len().into(), sum.into());
        replies.extend_from_slice(reply.as_bytes());
        all += &format!("{line}\n");
    }
    assert_ne!(replies, old);
    fs::write(&bytes, replies).unwrap();
    fs::write(&index, all).unwrap();
    seal_anew(to);
}

#[test]
fn replies_that_contradict_each_other_are_refused_by_name() {
    let world = World::impel();
    world.fill(4);
    world.ask("XWORK POLICY s g DEADLETTER dlq");
    world.work("--until-empty", "test $IMPEL_ID != 4-0");
    world.ask("XREADGROUP GROUP g c CLAIM 0 STREAMS s >");
    world.ask("XWORK FAIL s g c 4-0 DEAD");
    world.ask("XADD s 5-0 job e");
    world.ask("XREADGROUP GROUP g c STREAMS s >");
    world.ask("XWORK DONE s g c 5-0 DIGEST one");
    world.ask("XWORK DONE s g c 5-0 DIGEST two");
    // The clock of an audit has whole seconds.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let (_, found) = audit(&world, "--all --out bundle");
    assert_eq!(found[3..5], ["4-0 4-0 HOLD dead-letter", "5-0 5-0 HOLD conflict"]);
    let verify = || {
        let output = world.output_of("audit verify altered");
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        text(&output)
    };
    let altered = |from: &str, to: &str| {
        with_replies(&world.file("bundle"), &world.file("altered"), |reply| reply.replacen(from, to, 1));
        verify()
    };
    // The log loses a completion, a conflict, a dead letter; its rows change places.
    assert_eq!(
        altered("$9\r\ncompleted\r\n$5\r\nentry\r\n$3\r\n2-0", "$9\r\nduplicate\r\n$5\r\nentry\r\n$3\r\n2-0"),
        "ALTERED entry 2-0: by XWORK AUDIT it is completed, and XWORK LOG has no completion of its work\n"
    );
    assert_eq!(
        altered("$8\r\nconflict\r\n$5\r\nentry", "$9\r\nduplicate\r\n$5\r\nentry"),
        "ALTERED entry 5-0: by XWORK AUDIT it is in conflict, and XWORK LOG has none of its work\n"
    );
    assert_eq!(
        altered("$4\r\ndead\r\n", "$5\r\nstale\r\n"),
        "ALTERED entry 4-0: by XWORK AUDIT it is a dead letter, and XWORK LOG has no such row of it\n"
    );
    // The decisions know nothing of what the log says.
    assert_eq!(
        altered("+ACCEPT\r\n$8\r\ncomplete\r\n", "+UNKNOWN\r\n$9\r\nno-ledger\r\n"),
        "ALTERED entry 1-0: by XWORK AUDIT it is not completed, and XWORK LOG has a completion of its work\n"
    );
    assert_eq!(
        altered("+HOLD\r\n$8\r\nconflict\r\n", "+ACCEPT\r\n$8\r\ncomplete\r\n"),
        "ALTERED entry 5-0: by XWORK AUDIT it is in no conflict, and XWORK LOG has one of its work that was not released\n"
    );
}

/// A PostgreSQL of Debian in a folder of its own, on a unix socket alone.
struct Postgres {
    folder: tempfile::TempDir,
    programs: std::path::PathBuf,
    as_user: Vec<String>,
}

impl Postgres {
    /// Nothing, with the reason printed, where it is not installed.
    fn start() -> Option<Postgres> {
        let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let mut programs = versions.map(|one| one.path().join("bin")).filter(|bin| bin.join("initdb").exists());
        let Some(programs) = programs.next() else {
            println!("skipped: PostgreSQL is not installed (Debian: apt-get install postgresql)");
            return None;
        };
        // It refuses to run as root.
        let is_root = rustix::process::getuid().is_root();
        let as_user = if is_root { vec!["runuser", "-u", "postgres", "--"] } else { vec![] };
        let folder = tempfile::TempDir::new().unwrap();
        let postgres = Postgres { folder, programs, as_user: as_user.into_iter().map(str::to_owned).collect() };
        if is_root {
            let owned =
                std::process::Command::new("chown").arg("postgres").arg(postgres.folder.path()).status().unwrap();
            assert!(owned.success());
        }
        let (data, socket) = (postgres.path("data"), postgres.path(""));
        postgres.run("initdb", &["-D", &data, "-U", "tester", "-A", "trust", "--no-sync"], "");
        let options = format!("-c listen_addresses= -c fsync=off -c unix_socket_directories={socket}");
        let log = postgres.path("log");
        postgres.run("pg_ctl", &["-D", &data, "-w", "-l", &log, "-o", &options, "start"], "");
        Some(postgres)
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn run(&self, program: &str, arguments: &[&str], input: &str) {
        let program = self.programs.join(program).display().to_string();
        let mut words = self.as_user.iter().map(String::as_str).chain([&program[..]]).chain(arguments.iter().copied());
        let mut child = std::process::Command::new(words.next().unwrap())
            .args(words)
            .current_dir(self.folder.path())
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success(), "{program}");
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let data = self.path("data");
        self.run("pg_ctl", &["-D", &data, "-m", "immediate", "stop"], "");
    }
}

#[test]
fn completions_in_a_table_decide() {
    let Some(postgres) = Postgres::start() else { return };
    let world = World::impel();
    fill(&world);
    let socket = postgres.folder.path().display().to_string();
    let script = "CREATE SCHEMA \"S\"; CREATE TABLE \"S\".done (work_id text, digest bytea, receipt bigint, completed_at timestamptz);
        INSERT INTO \"S\".done SELECT 'other-' || n, NULL, n, now() FROM generate_series(1, 12000) n;
        INSERT INTO \"S\".done VALUES ('job-1', 'x', 1, now()), ('job-2', 'x', 2, NULL), ('job-2', 'y', 3, NULL);";
    postgres.run("psql", &["-h", &socket, "-U", "tester", "-q", "-v", "ON_ERROR_STOP=1", "postgres"], script);
    let tool = |table: &str, options: &[&str]| {
        let ledger = format!("postgres:host={socket} user=tester password=secret dbname=postgres#{table}");
        world.tool(AUDIT).args(["--all", "--work-field", "job", "--ledger", &ledger]).args(options).output().unwrap()
    };
    let output = tool("S.done", &["--out", "bundle"]);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("1-0\tjob-1\tACCEPT\tcomplete") && said.contains("2-0\tjob-2\tHOLD\tconflict"), "{said}");
    assert!(said.contains("12003 completions; work ids that no entry has: 12000"), "{said}");
    assert!(!fs::read_to_string(world.file("bundle/question.json")).unwrap().contains("secret"));
    let output = world.output_of("audit verify bundle");
    assert!(output.status.success(), "{}", text(&output));
    let output = tool("none", &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("PostgreSQL: relation \"none\" does not exist"), "{}", text(&output));
}

#[test]
fn a_bundle_with_something_else_in_the_place_of_a_file_is_altered() {
    let world = World::impel();
    world.fill(1);
    audit(&world, "--out bundle");
    let at = |name: &str| world.file("bundle").join(name);
    let verify = || {
        let output = world.output_of("audit verify bundle");
        (output.status.code(), text(&output))
    };
    let sums = fs::read(at("SHA256SUMS")).unwrap();
    for wrong in [None, Some([&sums[..], b"\xff"].concat())] {
        fs::remove_file(at("SHA256SUMS")).unwrap();
        if let Some(wrong) = wrong {
            fs::write(at("SHA256SUMS"), wrong).unwrap();
        }
        let (code, said) = verify();
        assert!(code == Some(1) && said.contains("ALTERED SHA256SUMS: "), "{said}");
        fs::write(at("SHA256SUMS"), &sums).unwrap();
    }
    fs::remove_file(at("result.json")).unwrap();
    fs::create_dir(at("result.json")).unwrap();
    let (code, said) = verify();
    assert!(code == Some(1) && said.contains("ALTERED ") && said.contains("result.json: "), "{said}");
    assert_eq!(world.output_of("audit verify nothing").status.code(), Some(2));
}
