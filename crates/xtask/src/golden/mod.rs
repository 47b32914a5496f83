//! Golden cases: conversations with exact replies, as data in `tests/golden/`, played against any server that speaks
//! the protocol. What most of them expect was recorded from a real server, so a failure here means that a client
//! would notice.

pub mod case;
pub mod expect;
pub mod glob;
pub mod run;

use std::path::PathBuf;

/// Where the case files are.
pub fn folder() -> PathBuf {
    crate::project_root().join("tests/golden")
}
