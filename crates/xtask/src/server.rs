//! Servers started for a test: a free port, a unix socket and a folder of their own, gone when the handle is dropped.
//!
//! Any server that takes redis-server arguments will do, so that the same test runs against Impel and against the
//! servers it is compared with. Nothing started here may outlive its handle, and nothing listens beyond this machine.

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::resp::{Address, Client, ClientError, Value};

/// How long a server may take until it answers PING.
const START_WAIT: Duration = Duration::from_secs(20);
/// How long a server may take to end after SIGTERM.
const STOP_WAIT: Duration = Duration::from_secs(20);
/// How long a reply may take on the clients handed out here.
const REPLY_WAIT: Duration = Duration::from_secs(5);
/// Between the asking for a free port and the server's taking of it somebody else may be quicker.
const START_ATTEMPTS: usize = 3;

/// A folder under the system's temporary folder, removed with everything in it when dropped.
#[derive(Debug)]
pub struct TempFolder(PathBuf);

impl TempFolder {
    /// Makes a new empty folder. The name is kept short: the path of a unix socket must fit in 100 bytes.
    ///
    /// # Errors
    /// A sentence when it cannot be made.
    pub fn new(purpose: &str) -> Result<Self, String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("impel-{purpose}-{}-{count}", std::process::id()));
        fs::create_dir_all(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(TempFolder(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        // Nothing depends on its going; at worst a folder stays behind.
        let _left_behind = fs::remove_dir_all(&self.0);
    }
}

/// A running server process.
#[derive(Debug)]
pub struct Server {
    binary: PathBuf,
    arguments: Vec<String>,
    process: Child,
    port: u16,
    folder: TempFolder,
}

impl Server {
    /// Starts `binary` as redis-server would be started, with a free port on 127.0.0.1, a unix socket and its own
    /// folder, then `arguments`; returns once it answers PING.
    ///
    /// # Errors
    /// What went wrong, with the end of the server's own output.
    pub fn start<A: AsRef<str>>(binary: &Path, arguments: &[A]) -> Result<Self, String> {
        let arguments: Vec<String> = arguments.iter().map(|a| a.as_ref().to_owned()).collect();
        let binary = fs::canonicalize(binary).map_err(|e| format!("{}: {e}", binary.display()))?;
        let mut last = String::new();
        for _ in 0..START_ATTEMPTS {
            let (port, folder) = (free_port()?, TempFolder::new("server")?);
            let process = spawn(&binary, &arguments, port, folder.path())?;
            let mut server = Server { binary: binary.clone(), arguments: arguments.clone(), process, port, folder };
            match server.await_answer() {
                Ok(()) => return Ok(server),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// `127.0.0.1` and its port.
    pub fn address(&self) -> Address {
        Address::Tcp("127.0.0.1".into(), self.port)
    }

    /// The TCP port, on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The unix socket.
    pub fn socket(&self) -> PathBuf {
        socket_in(self.folder.path())
    }

    /// The folder it was started in, its `--dir`.
    pub fn folder(&self) -> PathBuf {
        data_in(self.folder.path())
    }

    /// The id of the process.
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// A client over TCP.
    ///
    /// # Errors
    /// When the server is not there any more.
    pub fn client(&self) -> Result<Client, ClientError> {
        Client::connect(&self.address(), REPLY_WAIT)
    }

    /// All that the server has printed since it was first started.
    pub fn output(&self) -> String {
        fs::read(output_in(self.folder.path())).map(|b| String::from_utf8_lossy(&b).into_owned()).unwrap_or_default()
    }

    /// Kills it without warning (SIGKILL) and starts it again on the same port, socket and folder.
    ///
    /// # Errors
    /// When it does not come back.
    pub fn kill_and_restart(&mut self) -> Result<(), String> {
        self.kill();
        self.start_again()?;
        self.await_answer()
    }

    /// Kills it without warning (SIGKILL).
    ///
    /// # Errors
    /// When it had ended by itself before; its last words tell why.
    pub fn kill_now(&mut self) -> Result<(), String> {
        let ended = self.process.try_wait().map_err(|e| e.to_string())?;
        self.kill();
        ended.map_or(Ok(()), |status| Err(self.complaint(&format!("it ended by itself with {status}"))))
    }

    /// Starts it once more after it was killed or has ended, on the same port, socket and folder, without waiting.
    ///
    /// # Errors
    /// When there is no such binary any more.
    pub fn start_again(&mut self) -> Result<(), String> {
        self.process = spawn(&self.binary, &self.arguments, self.port, self.folder.path())?;
        Ok(())
    }

    /// Asks it to end (SIGTERM) and answers how it did.
    ///
    /// # Errors
    /// When it does not end in time; it is killed then.
    pub fn terminate(&mut self) -> Result<ExitStatus, String> {
        let id = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw).ok_or("no such process id")?;
        kill_process(id, Signal::TERM).map_err(|e| format!("SIGTERM: {e}"))?;
        let deadline = Instant::now() + STOP_WAIT;
        loop {
            match self.process.try_wait().map_err(|e| e.to_string())? {
                Some(status) => return Ok(status),
                None if Instant::now() > deadline => {
                    self.kill();
                    return Err(self.complaint("it did not end after SIGTERM"));
                }
                None => thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    fn kill(&mut self) {
        // An error here means that it had ended by itself.
        let _ended_before = self.process.kill();
        let _status = self.process.wait();
    }

    /// Waits until it answers PING.
    ///
    /// # Errors
    /// When it ends instead, or takes too long.
    pub fn await_answer(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + START_WAIT;
        loop {
            if let Some(status) = self.process.try_wait().map_err(|e| e.to_string())? {
                let signal = status.signal().map(|s| format!(" (signal {s})")).unwrap_or_default();
                return Err(self.complaint(&format!("it ended during its start with {status}{signal}")));
            }
            // Its own socket, so that a stranger who took the port in between is not taken for it.
            let answer = Client::connect(&Address::Unix(self.socket()), REPLY_WAIT).and_then(|mut c| c.call(&["PING"]));
            let trouble = match answer {
                Ok(Value::Simple(pong)) if pong == b"PONG" => return Ok(()),
                Ok(other) => other.text(),
                Err(error) => error.to_string(),
            };
            if Instant::now() > deadline {
                return Err(self.complaint(&format!("it does not answer PING: {trouble}")));
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// What to tell about it when something went wrong: the end of its output belongs to every failure.
    pub fn complaint(&self, what: &str) -> String {
        let output = self.output();
        let lines: Vec<&str> = output.lines().collect();
        let tail = lines[lines.len().saturating_sub(30)..].join("\n    ");
        format!("{}: {what}; its last words:\n    {tail}", self.binary.display())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn socket_in(folder: &Path) -> PathBuf {
    folder.join("s")
}

fn data_in(folder: &Path) -> PathBuf {
    folder.join("data")
}

fn output_in(folder: &Path) -> PathBuf {
    folder.join("output")
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| format!("no free port: {e}"))?;
    listener.local_addr().map(|address| address.port()).map_err(|e| format!("no free port: {e}"))
}

fn spawn(binary: &Path, arguments: &[String], port: u16, folder: &Path) -> Result<Child, String> {
    let data = data_in(folder);
    fs::create_dir_all(&data).map_err(|e| format!("{}: {e}", data.display()))?;
    let open = || File::options().create(true).append(true).open(output_in(folder));
    let (out, err) = open().and_then(|out| open().map(|err| (out, err))).map_err(|e| format!("output file: {e}"))?;
    Command::new(binary)
        .args(["--bind", "127.0.0.1", "--port", &port.to_string()])
        .arg("--unixsocket")
        .arg(socket_in(folder))
        .arg("--dir")
        .arg(&data)
        .args(arguments)
        .current_dir(&data)
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .spawn()
        .map_err(|e| format!("{}: {e}", binary.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binary_that_ends_at_once_is_told_with_its_words() {
        let error = Server::start(Path::new("/bin/sh"), &["-c", "ignored"]).expect_err("no server");
        assert!(error.contains("ended during its start"), "{error}");
        let error = Server::start(Path::new("/nonexistent"), &[] as &[&str]).expect_err("no server");
        assert!(error.contains("/nonexistent"), "{error}");
    }

    #[test]
    fn a_folder_goes_with_its_handle() {
        let folder = TempFolder::new("test").expect("a folder");
        let path = folder.path().to_path_buf();
        fs::write(path.join("f"), "x").expect("a file");
        drop(folder);
        assert!(!path.exists());
    }
}
