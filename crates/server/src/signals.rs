//! Signals that end the process: SIGTERM and SIGINT become a byte in a pipe that the loop looks at; a second SIGINT
//! ends the process on the spot, for whoever does not want to wait. (The standard library ignores SIGPIPE for us.)

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use mio::net::UnixStream as MioStream;
use mio::{Interest, Registry, Token};
use signal_hook::consts::{SIGINT, SIGTERM};

/// Exit code after a second SIGINT: 128 and the signal, as shells have it.
const INTERRUPTED: i32 = 128 + SIGINT;

/// The loop's end of the pipe.
#[derive(Debug)]
pub struct Signals {
    pipe: MioStream,
}

impl Signals {
    /// Takes the signals over. Once a process.
    pub fn install() -> io::Result<Self> {
        let (read, write) = UnixStream::pair()?;
        read.set_nonblocking(true)?;
        let interrupted = Arc::new(AtomicBool::new(false));
        // In this order: the first SIGINT only sets what the second one looks at.
        signal_hook::flag::register_conditional_shutdown(SIGINT, INTERRUPTED, interrupted.clone())?;
        signal_hook::flag::register(SIGINT, interrupted)?;
        for signal in [SIGTERM, SIGINT] {
            signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
        }
        Ok(Signals { pipe: MioStream::from_std(read) })
    }

    /// Registers for the arrival of a signal.
    pub fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        registry.register(&mut self.pipe, token, Interest::READABLE)
    }

    /// Has a signal come since the last call?
    pub fn take(&mut self) -> bool {
        let mut came = false;
        let mut bytes = [0; 16];
        while let Ok(n) = self.pipe.read(&mut bytes)
            && n > 0
        {
            came = true;
        }
        came
    }
}
