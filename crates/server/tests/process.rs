//! The process as its users start and stop it: sockets, signals, exit codes, the command line.

mod support;

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::process::Command;

use support::{Client, IMPEL, Reply, Server, free_port};

#[test]
fn it_serves_and_ends_when_asked_with_code_0() {
    for signal in ["TERM", "INT"] {
        let folder = tempfile::tempdir().unwrap();
        let mut server = Server::start(folder.path(), &[]);
        assert_eq!(server.client().ask(&["PING"]), Reply::Simple("PONG".into()));
        assert!(server.log().contains("Ready to accept connections"));
        server.signal(signal);
        assert_eq!(server.wait_end().code(), Some(0));
        assert!(std::net::TcpStream::connect(("127.0.0.1", server.port)).is_err());
    }
}

#[test]
fn the_arguments_of_a_test_harness() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let options =
        ["--unixsocket", socket.to_str().unwrap(), "--unixsocketperm", "700", "--save", "", "--appendonly", "no"];
    let mut server = Server::spawn(folder.path(), 0, Command::new(IMPEL), &options);
    server.wait_ready();
    let metadata = fs::metadata(&socket).unwrap();
    assert!(metadata.file_type().is_socket());
    assert_eq!(metadata.permissions().mode() & 0o777, 0o700);
    let mut client = Client::unix(&socket);
    assert_eq!(client.ask(&["PING"]), Reply::Simple("PONG".into()));
    assert_eq!(client.ask(&["XADD", "s", "1-1", "a", "b"]).text(), "1-1");
    server.stop();
    assert!(!socket.exists(), "the socket's file goes with the server");
    assert!(!folder.path().join("data").exists(), "a server that keeps nothing leaves nothing");
}

#[test]
fn a_socket_file_that_was_left_behind_does_not_matter_and_one_in_use_does() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let options = ["--unixsocket", socket.to_str().unwrap(), "--appendonly", "no"];
    let mut server = Server::spawn(folder.path(), 0, Command::new(IMPEL), &options);
    server.wait_ready();
    server.kill();
    assert!(socket.exists());
    let mut server = Server::spawn(folder.path(), 0, Command::new(IMPEL), &options);
    server.wait_ready();
    let other = tempfile::tempdir().unwrap();
    let mut second = Server::spawn(other.path(), 0, Command::new(IMPEL), &options);
    assert_eq!(second.wait_end().code(), Some(1));
    assert!(second.log().contains(socket.to_str().unwrap()), "{}", second.log());
    assert_eq!(Client::unix(&socket).ask(&["PING"]), Reply::Simple("PONG".into()));
}

#[test]
fn two_servers_do_not_share_a_directory_or_a_port() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let log = folder.path().join("second.log");
    for (port, expected) in [(free_port(), "in use by another server"), (server.port, "cannot listen on 127.0.0.1")] {
        let output = Command::new(IMPEL)
            .args(["--port", &port.to_string(), "--logfile", log.to_str().unwrap(), "--dir"])
            .arg(folder.path().join("data"))
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1));
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains(expected) && text.lines().count() == 1, "{text}");
        assert!(fs::read_to_string(&log).unwrap().contains(expected));
    }
}

#[test]
fn a_second_server_leaves_the_pid_file_of_the_first_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let options = ["--pidfile", file.to_str().unwrap()];
    let server = Server::start(folder.path(), &options);
    // Written once it serves, which `start` waits for.
    assert_eq!(server.client().ask(&["PING"]), Reply::Simple("PONG".into()));
    let first = fs::read_to_string(&file).unwrap();
    let output = Command::new(IMPEL)
        .args(["--port", &free_port().to_string(), "--pidfile", file.to_str().unwrap(), "--dir"])
        .arg(folder.path().join("data"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(fs::read_to_string(&file).unwrap(), first);
    server.stop();
    assert!(!file.exists());
}

#[test]
fn a_configuration_file_comes_first_and_options_change_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("redis.conf");
    fs::write(&file, "appendonly no\nport 1\nhz 50\n").unwrap();
    let mut impel = Command::new(IMPEL);
    impel.arg(&file);
    let mut server = Server::spawn(folder.path(), free_port(), impel, &[]);
    server.wait_ready();
    assert_eq!(server.client().ask(&["PING"]), Reply::Simple("PONG".into()));
    assert!(server.log().contains("redis.conf:3: hz"), "{}", server.log());
}

#[test]
fn what_the_command_line_gets_wrong_is_one_line_and_code_1() {
    let run = |words: &[&str]| {
        let output = Command::new(IMPEL).args(words).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (code, _, error) = run(&["--no-such-option", "1"]);
    assert_eq!((code, error.lines().count()), (Some(1), 1), "{error}");
    assert!(error.contains("no-such-option"), "{error}");
    let (code, _, error) = run(&["--daemonize", "yes"]);
    assert_eq!((code, error.lines().count()), (Some(1), 1), "{error}");
    let (code, help, _) = run(&["--help"]);
    assert!(code == Some(0) && help.contains("appendfsync") && help.contains("--port"), "{help}");
    assert_eq!(help.matches("Usage:").count(), 1, "{help}");
    for option in ["--version", "-v"] {
        let (code, version, _) = run(&[option]);
        assert!(code == Some(0) && version.starts_with("impel ") && version.lines().count() == 1, "{version}");
    }
}
