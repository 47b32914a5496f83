//! `verify DIR` of the commands that leave evidence behind: the words, what is printed, and the exit codes are the same for all of
//! them. It never asks a server.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::{FAILED, path, print, understood};
use crate::audit::Trouble;

/// Exit code: a bundle is not as it was.
const ALTERED: u8 = 1;

/// What was found in a bundle.
pub(super) struct Found {
    /// What is not as it was; nothing if all is.
    pub differences: Vec<String>,
    /// What is in it, for one that is as it was.
    pub content: String,
    /// SHA-256 of its list of sums.
    pub sum: String,
}

/// Runs `impel NAME verify`; `help` is that of the whole command.
pub(super) fn verify(
    name: &str,
    help: &str,
    words: &[Vec<u8>],
    examine: impl FnOnce(&Path) -> Result<Found, Trouble>,
) -> ExitCode {
    let (folder, wanted) = match understood(name, help, read(words)) {
        Ok(understood) => understood,
        Err(code) => return code,
    };
    let Found { mut differences, content, sum } = match examine(&folder) {
        Ok(found) => found,
        Err(trouble) => {
            eprintln!("impel {name}: {}: {trouble}", folder.display());
            return ExitCode::from(FAILED);
        }
    };
    if wanted.is_some_and(|wanted| wanted != sum) {
        differences.push(format!("SHA256SUMS: its sum is {sum}"));
    }
    for difference in &differences {
        print(&format!("ALTERED {difference}\n"));
    }
    if !differences.is_empty() {
        return ExitCode::from(ALTERED);
    }
    print(&format!("unaltered: {content}, sum {sum}\n"));
    ExitCode::SUCCESS
}

/// The words: the folder, and the sum that it must have, if that is told.
fn read(words: &[Vec<u8>]) -> Result<Option<(PathBuf, Option<String>)>, String> {
    let (mut folder, mut wanted) = (None, None);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match &word[..] {
            b"--help" | b"-h" => return Ok(None),
            b"--sum" => {
                let sum = words.next().ok_or("--sum wants a value")?;
                wanted = Some(String::from_utf8_lossy(sum).to_ascii_lowercase());
            }
            [b'-', ..] => return Err(format!("there is no option {}", word.escape_ascii())),
            _ if folder.is_none() => folder = Some(path(word)),
            _ => return Err("one directory is wanted".into()),
        }
    }
    Ok(Some((folder.ok_or("a directory is wanted")?, wanted)))
}
