//! A disk that is full, read-only, failing or taken away under a server: it says so, answers nothing that may be lost, ends
//! with an error; a snapshot that cannot be written is no reason to end. When there is room again, everything acknowledged is
//! there.
//!
//! Tests of a full disk mount a small one, which takes the rights of root: where that is refused they say so and pass.

mod support;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;

use impel::disk::{Disk, DiskFile, LockGuard, RealDisk};
use impel_core::settings::Settings;
use support::{Client, IMPEL, Reply, Server, command, free_port};

/// A file system in memory; unmounted at the end of the test.
struct Volume(PathBuf);

impl Volume {
    /// `None`: this process may not mount one.
    fn mount(path: &Path, size: &str) -> Option<Volume> {
        fs::create_dir_all(path).unwrap();
        let output =
            Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(path).output();
        match output {
            Ok(output) if output.status.success() => Some(Volume(path.to_owned())),
            Ok(output) => {
                eprintln!("skipped, no volume can be mounted: {}", String::from_utf8_lossy(&output.stderr).trim());
                None
            }
            Err(error) => {
                eprintln!("skipped, there is no mount: {error}");
                None
            }
        }
    }

    fn remount(&self, option: &str) {
        let status = Command::new("mount").args(["-o", &format!("remount,{option}")]).arg(&self.0).status().unwrap();
        assert!(status.success());
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Adds until the connection ends; how many were acknowledged.
fn add_until_the_end(client: &mut Client) -> i64 {
    let value = "x".repeat(100_000);
    let mut added = 0;
    for n in 1..1000 {
        if client.try_send(&command(&["XADD", "s", &format!("{n}-1"), "value", &value])).is_err() {
            break;
        }
        match client.try_reply() {
            Ok(reply) => assert_eq!(reply, Reply::Bulk(format!("{n}-1"))),
            Err(_) => break,
        }
        added = n;
    }
    added
}

fn info(client: &mut Client, name: &str) -> String {
    let text = client.ask(&["INFO"]).text().to_owned();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).to_owned()
}

#[test]
fn a_full_disk_ends_the_server_and_with_room_it_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let Some(volume) = Volume::mount(&folder.path().join("data"), "5m") else { return };
    for fsync in ["always", "everysec"] {
        let options = ["--log-segment-bytes", "1mb", "--appendfsync", fsync];
        let mut server = Server::start(folder.path(), &options);
        server.client().ask(&["DEL", "s"]);
        let added = add_until_the_end(&mut server.client());
        assert!(added > 5, "{added} fit");
        assert_eq!(server.wait_end().code(), Some(1));
        let log = server.log();
        assert!(log.contains("the log could not be written") && log.contains("make room on this volume"), "{log}");
        assert!(log.contains("No space left on device"), "{log}");
        drop(server);
        volume.remount(if fsync == "always" { "size=15m" } else { "size=40m" });
        let server = Server::start(folder.path(), &options);
        assert_eq!(server.client().ask(&["XLEN", "s"]), Reply::Int(added));
        assert_eq!(server.client().ask(&["XADD", "s", "5000-1", "a", "b"]).text(), "5000-1");
        server.stop();
    }
}

#[test]
fn a_snapshot_that_does_not_fit_is_an_error_and_the_server_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let Some(_volume) = Volume::mount(&folder.path().join("data"), "8m") else { return };
    let options = ["--log-segment-bytes", "1mb"];
    let server = Server::start(folder.path(), &options);
    let mut client = server.client();
    let value = "x".repeat(100_000);
    (1..30).for_each(|n| drop(client.ask(&["XADD", "s", &format!("{n}-1"), "value", &value])));
    let ballast = folder.path().join("data/ballast");
    fs::write(&ballast, vec![1; 3 << 20]).unwrap();
    let reply = client.ask(&["SAVE"]);
    assert!(matches!(&reply, Reply::Error(text) if text.contains("snapshot could not be written")), "{reply:?}");
    assert_eq!(info(&mut client, "rdb_last_bgsave_status"), "err");
    assert_eq!(client.ask(&["XADD", "s", "100-1", "a", "b"]).text(), "100-1");
    assert!(server.log().contains("the snapshot could not be written"), "{}", server.log());
    let unfinished = fs::read_dir(folder.path().join("data/snapshots")).unwrap().count();
    assert_eq!(unfinished, 0, "what was written of it is gone");
    fs::remove_file(ballast).unwrap();
    assert_eq!(client.ask(&["SAVE"]), Reply::Simple("OK".into()));
    assert_eq!(info(&mut client, "rdb_last_bgsave_status"), "ok");
    server.kill();
    let server = Server::start(folder.path(), &options);
    assert_eq!(server.client().ask(&["XLEN", "s"]), Reply::Int(30));
}

/// What is in memory alone is not given up because it cannot be saved, and whoever asked for the end is told.
#[test]
fn a_server_without_a_log_that_cannot_save_does_not_end() {
    let folder = tempfile::tempdir().unwrap();
    let Some(_volume) = Volume::mount(&folder.path().join("data"), "3m") else { return };
    let server = Server::start(folder.path(), &["--appendonly", "no"]);
    let mut client = server.client();
    let value = "x".repeat(100_000);
    (1..40).for_each(|n| drop(client.ask(&["XADD", "s", &format!("{n}-1"), "value", &value])));
    assert_eq!(client.ask(&["SHUTDOWN", "SAVE"]).text(), "ERR Errors trying to SHUTDOWN. Check logs.");
    assert_eq!(client.ask(&["XLEN", "s"]), Reply::Int(39));
    assert!(server.log().contains("not ended"), "{}", server.log());
}

#[test]
fn a_directory_that_cannot_be_written_is_named_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let Some(volume) = Volume::mount(&folder.path().join("data"), "8m") else { return };
    let options = ["--log-segment-bytes", "1mb"];
    let server = Server::start(folder.path(), &options);
    server.client().ask(&["XADD", "s", "1-1", "a", "b"]);
    server.stop();
    volume.remount("ro");
    let mut server = Server::spawn(folder.path(), free_port(), Command::new(IMPEL), &options);
    assert_eq!(server.wait_end().code(), Some(1));
    assert!(server.log().contains("must be able to write here"), "{}", server.log());
    drop(server);
    // To be looked at it need not be written.
    let output = Command::new(IMPEL).arg("check").arg(folder.path().join("data")).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    volume.remount("rw");
    let server = Server::start(folder.path(), &options);
    assert_eq!(server.client().ask(&["XLEN", "s"]), Reply::Int(1));
}

/// Linux lets a process write to files that nobody can ever find again.
#[test]
fn a_directory_that_is_removed_under_a_server_ends_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), &[]);
    let mut client = server.client();
    assert_eq!(client.ask(&["XADD", "s", "1-1", "a", "b"]).text(), "1-1");
    fs::remove_dir_all(folder.path().join("data")).unwrap();
    client.send(&command(&["XADD", "s", "2-1", "a", "b"]));
    assert!(client.is_closed(), "no reply to what is not stored");
    assert_eq!(server.wait_end().code(), Some(1));
    assert!(server.log().contains("it has been removed"), "{}", server.log());
}

/// What the disk below a server does not do any more.
const WELL: u8 = 0;
const NO_SYNC: u8 = 1;
const NO_WRITE: u8 = 2;

/// The real disk, which begins to fail when it is told.
#[derive(Clone)]
struct Failing(Arc<AtomicU8>);

struct FailingFile(Box<dyn DiskFile>, Arc<AtomicU8>);

/// What the system says when a device fails (EIO).
fn broken<T>() -> io::Result<T> {
    Err(io::Error::from_raw_os_error(5))
}

impl DiskFile for FailingFile {
    fn len_bytes(&self) -> io::Result<u64> {
        self.0.len_bytes()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.read_at(offset, buffer)
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if self.1.load(Ordering::SeqCst) == NO_WRITE { broken() } else { self.0.write_at(offset, bytes) }
    }

    fn allocate(&mut self, len_bytes: u64) -> io::Result<()> {
        self.0.allocate(len_bytes)
    }

    fn truncate(&mut self, len_bytes: u64) -> io::Result<()> {
        self.0.truncate(len_bytes)
    }

    fn sync_data(&mut self) -> io::Result<()> {
        if self.1.load(Ordering::SeqCst) == NO_SYNC { broken() } else { self.0.sync_data() }
    }

    fn sync_all(&mut self) -> io::Result<()> {
        if self.1.load(Ordering::SeqCst) == NO_SYNC { broken() } else { self.0.sync_all() }
    }
}

impl Disk for Failing {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        RealDisk.create_dir(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        RealDisk.list(dir)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(FailingFile(RealDisk.create(path)?, self.0.clone())))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(FailingFile(RealDisk.open(path)?, self.0.clone())))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        RealDisk.sync_dir(dir)
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn LockGuard>>> {
        RealDisk.lock(path)
    }
}

/// The server itself, loop and threads, in this process: its disk can be told to fail.
#[test]
fn a_disk_that_fails_ends_the_server_without_a_reply() {
    for fault in [NO_SYNC, NO_WRITE] {
        let folder = tempfile::tempdir().unwrap();
        let health = Arc::new(AtomicU8::new(WELL));
        let port = free_port();
        let (disk, data) = (Failing(health.clone()), folder.path().join("data"));
        let running = thread::spawn(move || {
            let mut settings = Settings::default();
            settings.apply(b"dir", &[data.to_str().unwrap()]).unwrap();
            settings.apply(b"bind", &["127.0.0.1"]).unwrap();
            settings.apply(b"port", &[&port.to_string()]).unwrap();
            impel::run::Server::start_on(Arc::new(disk), settings, "").unwrap().run()
        });
        let mut tries = 0;
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            tries += 1;
            assert!(tries < 5000);
            thread::sleep(std::time::Duration::from_millis(2));
        }
        let mut client = Client::tcp(port);
        let mut other = Client::tcp(port);
        assert_eq!(client.ask(&["XADD", "s", "1-1", "a", "b"]).text(), "1-1");
        health.store(fault, Ordering::SeqCst);
        client.send(&command(&["XADD", "s", "2-1", "a", "b"]));
        assert!(client.is_closed() && other.is_closed(), "no reply to what is not stored");
        assert!(!running.join().unwrap(), "it ends with an error");
        let server = Server::start(folder.path(), &[]);
        assert_eq!(server.client().ask(&["XRANGE", "s", "-", "+", "COUNT", "1"]).array().len(), 1);
        server.stop();
    }
}
