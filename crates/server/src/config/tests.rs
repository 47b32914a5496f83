//! The command line and files: what redis-server's users write must mean the same here.

use std::fs;

use super::*;

fn serve(line: &[&str]) -> Result<Start, String> {
    let words: Vec<Vec<u8>> = line.iter().map(|word| word.as_bytes().to_vec()).collect();
    match read(&words) {
        Ok(Invocation::Serve(start)) => Ok(*start),
        Ok(Invocation::Print(text)) => panic!("only prints {text}"),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn the_command_line_of_a_test_harness() {
    let line = [
        "--port",
        "0",
        "--unixsocket",
        "/tmp/s",
        "--unixsocketperm",
        "700",
        "--save",
        "",
        "--appendonly",
        "no",
        "--dir",
        "/tmp/d",
        "--maxmemory-policy",
        "noeviction",
    ];
    let Start { settings, config_file, notes } = serve(&line).unwrap();
    assert_eq!((settings.port, &*settings.unixsocket, settings.unixsocketperm), (0, "/tmp/s", 0o700));
    assert_eq!((settings.appendonly, &*settings.dir, settings.save.len()), (false, "/tmp/d", 0));
    assert_eq!((config_file.as_str(), notes.len()), ("", 0));
}

#[test]
fn a_file_and_options_that_change_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("redis.conf");
    let other = folder.path().join("other.conf");
    fs::write(&other, "timeout 7\n").unwrap();
    let text = format!("# comment\n\n  port 7001  \nrequirepass \"a b\"\nhz 10\r\ninclude {}\n", other.display());
    fs::write(&file, text).unwrap();
    let start = serve(&[file.to_str().unwrap(), "--port", "7000"]).unwrap();
    assert_eq!((start.settings.port, start.settings.timeout_seconds), (7000, 7));
    assert_eq!(start.settings.requirepass, b"a b");
    assert_eq!(start.config_file, file.to_str().unwrap());
    assert_eq!(start.notes.len(), 1, "{:?}", start.notes);
    assert!(start.notes[0].contains("redis.conf:5: hz"), "{:?}", start.notes);
}

#[test]
fn errors_name_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c");
    let name = file.to_str().unwrap().to_owned();
    for (text, expected) in [
        ("port 1\nno-such-thing 5\n", format!("{name}:2: unknown setting 'no-such-thing'")),
        ("port 70000\n", format!("{name}:1: setting 'port'")),
        ("requirepass \"a\n", format!("{name}:1: unbalanced quotes")),
        (&format!("include {name}\n"), format!("{name}:1: too many files")),
    ] {
        fs::write(&file, text).unwrap();
        let error = serve(&[&name]).unwrap_err();
        assert!(error.starts_with(&expected), "{error}");
    }
    assert!(serve(&["--no-such-thing", "5"]).unwrap_err().contains("unknown setting 'no-such-thing'"));
    assert!(serve(&["--port", "1", "2"]).unwrap_err().contains("'port'"));
    assert!(serve(&["/no/such/file"]).unwrap_err().contains("/no/such/file"));
    assert!(serve(&["--daemonize", "yes"]).unwrap_err().contains("'daemonize'"));
}

#[test]
fn a_value_may_look_like_an_option() {
    assert_eq!(serve(&["--requirepass", "--secret", "--port", "5"]).unwrap().settings.requirepass, b"--secret");
    assert!(serve(&["--requirepass", "--port", "5"]).is_err(), "a name is not a value");
    assert!(serve(&["--save", "--port", "5"]).unwrap().settings.save.is_empty());
    assert!(serve(&["some.conf", "port", "5"]).unwrap_err().contains("two dashes"));
}

#[test]
fn help_and_version_may_stand_anywhere() {
    let prints = |line: &[&str]| {
        let words: Vec<Vec<u8>> = line.iter().map(|word| word.as_bytes().to_vec()).collect();
        match read(&words) {
            Ok(Invocation::Print(text)) => text,
            other => panic!("{line:?}: {other:?}"),
        }
    };
    for line in [&["--help"][..], &["-h"], &["--port", "7000", "--help"], &["/no/such/file", "--help", "--port"]] {
        assert!(prints(line).starts_with("Usage: impel"), "{line:?}");
    }
    for line in [&["--version"][..], &["-v"], &["--port", "7000", "--version"]] {
        assert_eq!(prints(line), version(), "{line:?}");
    }
    assert_eq!(serve(&["--requirepass", "-h"]).unwrap().settings.requirepass, b"-h");
}

#[test]
fn users_come_from_lines_or_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let (acl, conf) = (folder.path().join("users.acl"), folder.path().join("impel.conf"));
    fs::write(&acl, "# who\n\nuser bob on nopass +@all ~*\n").unwrap();
    fs::write(&conf, "user carl on nopass +get ~*\n").unwrap();
    let (acl, conf) = (acl.to_str().unwrap(), conf.to_str().unwrap());
    let names = |start: &Start| start.settings.users.iter().map(|words| words[0].clone()).collect::<Vec<_>>();
    assert_eq!(names(&serve(&["--aclfile", acl]).unwrap()), [b"bob"]);
    assert_eq!(names(&serve(&[conf]).unwrap()), [b"carl"]);
    assert!(serve(&[conf, "--aclfile", acl]).is_err(), "in one place only");
    assert!(serve(&["--aclfile", "/nowhere/users.acl"]).is_err());
    fs::write(acl, "user bob on +nosuch\n").unwrap();
    let error = serve(&["--aclfile", acl]).unwrap_err();
    assert!(error.contains("users.acl:1") && error.contains("Unknown command or category"), "{error}");
}
