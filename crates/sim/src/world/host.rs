//! The process that the engine asks, as far as there is one.

use std::cell::Cell;

use impel_core::engine::facts::{Host, Saving};

/// See the module.
#[derive(Debug, Default)]
pub struct Process {
    /// Where saving stands.
    pub saving: Cell<Saving>,
    /// The clock that only rises, in µs.
    pub elapsed_us: Cell<u64>,
    /// How far that clock goes on when it is looked at: so much, by chance more.
    pub step: Cell<u64>,
}

impl Process {
    /// Looks at the clock; commands take their time if they are to.
    pub fn look(&self) -> u64 {
        let step = self.step.get();
        if step != 0 {
            let mut bits = step;
            bits ^= bits << 13;
            bits ^= bits >> 7;
            bits ^= bits << 17;
            self.step.set(bits);
            let us = if bits.is_multiple_of(16) { bits >> 8 & 0x7ff } else { bits >> 8 & 7 };
            self.elapsed_us.set(self.elapsed_us.get() + us);
        }
        self.elapsed_us.get()
    }
}

impl Host for Process {
    fn info(&self, _: &str, _: &mut Vec<u8>) {}

    fn saving(&self) -> Saving {
        self.saving.get()
    }

    fn random(&self, bytes: &mut [u8]) {
        bytes.fill(7);
    }

    fn read_acl_file(&self, _: &str) -> Result<Vec<u8>, String> {
        Err("there are no files here".into())
    }

    fn write_acl_file(&self, _: &str, _: &[u8]) -> Result<(), String> {
        Err("there are no files here".into())
    }
}
