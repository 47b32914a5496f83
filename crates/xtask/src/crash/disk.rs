//! What the server's own tools say of the disk that a killed server has left: `check` may find an end that the kill tore and
//! nothing worse, and a copy that `backup` keeps up from kill to kill is whole and holds the same state.
//!
//! It must never change the directory that the server goes on with.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::server::TempFolder;

/// Exit code of `check` for a directory that a start would refuse.
const REFUSED: i32 = 2;

/// The tools, and the copy.
pub(super) struct Disk {
    binary: PathBuf,
    copy: TempFolder,
}

impl Disk {
    /// `None` for a server without such tools.
    pub fn of(binary: &Path) -> Result<Option<Disk>, String> {
        let answer = Command::new(binary).args(["check", "--help"]).output();
        match answer.map_err(|e| format!("{}: {e}", binary.display()))? {
            answer if !answer.status.success() => Ok(None),
            _ => {
                let copy = TempFolder::new("copy")?;
                Ok(Some(Disk { binary: binary.to_owned(), copy }))
            }
        }
    }

    /// Looks at what a killed server has left in `folder`. Answers how many facts were compared.
    pub fn judge(&self, folder: &Path) -> Result<usize, String> {
        let (code, left) = self.check(folder)?;
        if code >= REFUSED {
            return Err(format!("impel check of what the kill left: {left}"));
        }
        let copy = self.copy.path().join("copy");
        let (code, said) = self.run(&["backup".as_ref(), folder.as_os_str(), copy.as_os_str()])?;
        if code != 0 {
            return Err(format!("impel backup of what the kill left: {said}"));
        }
        let (code, copied) = self.check(&copy)?;
        if code != 0 {
            return Err(format!("impel check of the copy: {copied}"));
        }
        match (digest(&left), digest(&copied)) {
            (Some(left), Some(copied)) if left == copied => Ok(3),
            (left, copied) => Err(format!("the directory has the digest {left:?}, its copy {copied:?}")),
        }
    }

    fn check(&self, folder: &Path) -> Result<(i32, String), String> {
        self.run(&["check".as_ref(), "--json".as_ref(), folder.as_os_str()])
    }

    fn run(&self, words: &[&std::ffi::OsStr]) -> Result<(i32, String), String> {
        let output = Command::new(&self.binary).args(words).output();
        let output = output.map_err(|e| format!("{}: {e}", self.binary.display()))?;
        let said = [output.stdout, output.stderr].concat();
        let code = output.status.code().ok_or_else(|| format!("{words:?}: {}", output.status))?;
        Ok((code, String::from_utf8_lossy(&said).into_owned()))
    }
}

/// The digest of the state that a start would serve.
fn digest(report: &str) -> Option<&str> {
    let (_, state) = report.split_once("\"state\"")?;
    state.split_once("\"digest\"")?.1.split('"').nth(1)
}
