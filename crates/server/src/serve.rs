//! From a command line to a running server and its exit code.

use std::fs;
use std::io::{self, Write};
use std::process::ExitCode;

use impel_core::settings::Settings;

use crate::cli;
use crate::config::{self, Invocation, Start};
use crate::logger;
use crate::run::Server;

/// Descriptors that are needed beside those of clients.
const OTHER_DESCRIPTORS: u64 = 32;

/// Does what a command line (without the program's name) says; returns when the process is to end.
pub fn command_line(words: &[Vec<u8>]) -> ExitCode {
    if let Some(code) = cli::run(words) {
        return code;
    }
    let start = match config::read(words) {
        Ok(Invocation::Print(text)) => {
            // Whoever reads it may have seen enough: `impel --help | head`.
            let _ = writeln!(io::stdout(), "{text}");
            return ExitCode::SUCCESS;
        }
        Ok(Invocation::Serve(start)) => start,
        Err(error) => {
            eprintln!("impel: {error}");
            return ExitCode::FAILURE;
        }
    };
    match serve(*start) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("impel: {error}");
            ::log::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Serves until the server is asked to end; answers whether it ended as it should.
fn serve(start: Start) -> Result<bool, Box<dyn std::error::Error>> {
    let Start { mut settings, config_file, notes } = start;
    logger::start(&settings.logfile, settings.loglevel)
        .map_err(|error| format!("cannot open the log file {}: {error}", settings.logfile))?;
    ::log::info!("{}, process {}", config::version(), std::process::id());
    for note in notes {
        ::log::info!("{note}");
    }
    raise_descriptor_limit(&mut settings);
    let pid_file = Some(settings.pidfile.clone()).filter(|path| !path.is_empty());
    // The file is written by who got sockets and folder: a second server must not touch the file of the first.
    let server = Server::start(settings, &config_file)?;
    if let Some(path) = &pid_file
        && let Err(error) = fs::write(path, format!("{}\n", std::process::id()))
    {
        ::log::warn!("cannot write the pid file {path}: {error}");
    }
    let ended_well = server.run();
    if let Some(path) = pid_file {
        let _ = fs::remove_file(path);
    }
    Ok(ended_well)
}

/// Sees to it that `maxclients` connections can be open, or lowers it to what can.
fn raise_descriptor_limit(settings: &mut Settings) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let wanted = u64::from(settings.maxclients) + OTHER_DESCRIPTORS;
    let limit = getrlimit(Resource::Nofile);
    // `None` is no limit.
    if limit.current.is_none_or(|current| current >= wanted) {
        return;
    }
    let raised = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
    let allowed = match setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum: limit.maximum }) {
        Ok(()) => raised,
        Err(_) => limit.current.unwrap_or(wanted),
    };
    if allowed < wanted {
        let clients = allowed.saturating_sub(OTHER_DESCRIPTORS).max(1);
        ::log::warn!(
            "maxclients lowered from {} to {clients}: the system allows {allowed} open files (see ulimit -n)",
            settings.maxclients
        );
        settings.maxclients = clients as u32;
    }
}
