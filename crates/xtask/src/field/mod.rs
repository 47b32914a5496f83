//! Field cases: situations in which users of streams were hurt or surprised, as scripts in `tests/field/cases.md`
//! with the replies that are right, whether or not a known server gives them.

pub mod connection;
pub mod notation;
pub mod play;
pub mod script;

use std::path::PathBuf;

/// The case file.
pub fn case_file() -> PathBuf {
    crate::project_root().join("tests/field/cases.md")
}
