//! What the developer commands are made of: a protocol client, servers started for a test, and players for the
//! golden and the field cases. Tests elsewhere may use it too.
//!
//! It may start, stop and talk to servers; it must never share code with the server that it judges. Of `impel-sim` it
//! takes the random workloads, which share none either, and the targets of the fuzzer.

pub mod arguments;
pub mod bench;
pub mod commands;
pub mod compat;
pub mod crash;
pub mod field;
pub mod fuzz;
pub mod golden;
pub mod parts;
pub mod resp;
pub mod server;
pub mod soak;
mod svg;

use std::path::{Path, PathBuf};

/// The folder of the workspace.
pub fn project_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("this crate lives in crates/xtask").to_path_buf()
}

/// Where cargo builds, and where our own outputs go.
pub fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| project_root().join("target"), PathBuf::from)
}

/// Material beside the project that some checks compare against, where it is present.
pub fn shared_folder() -> Option<PathBuf> {
    Some(project_root().join("../shared")).filter(|path| path.is_dir())
}
