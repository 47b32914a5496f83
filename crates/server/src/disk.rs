//! The few file operations that the log and the snapshots need, as a trait, so that a test or the simulator can put a
//! disk below them that loses, tears and refuses; the real disk; and the data directory with its lock.
//!
//! Invariants: every operation either did what it says or returns an error; nothing here retries a failed sync, buffers
//! a write or hides a short one. A write is durable only after `sync_data` or `sync_all` of its file, a name (new,
//! renamed, removed) only after `sync_dir` of its directory.
//!
//! It must never know what a log or a snapshot is, and nothing of them may reach the file system past it.

#[cfg(any(test, feature = "fake-disk"))]
pub mod fake;

use std::error::Error;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FallocateFlags, FlockOperation};
use rustix::io::Errno;

/// A file system, as far as we need one.
pub trait Disk: Send + Sync {
    /// Makes a directory and those above it; one that exists already is fine.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// The names of the files in a directory, sorted. Directories in it are left out.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// A new, empty file for reading and writing; one of that name is emptied.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// An existing file for reading and writing.
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// An existing file for reading alone, which needs no right to write it. Who writes to it all the same gets an error.
    fn open_to_read(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.open(path)
    }
    /// Gives a file another name in one step; a file that has the new name already is replaced.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Takes the exclusive lock on a file, which is made if there is none. `None`: somebody else holds it. It is held
    /// until the guard is dropped or the process ends.
    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn LockGuard>>>;
    /// Keeps everybody from taking the lock on a file, which must be there, without writing anything; others may do so at the
    /// same time. `None`: somebody holds the lock. A disk that has no such thing takes the lock itself.
    fn share_lock(&self, path: &Path) -> io::Result<Option<Box<dyn LockGuard>>> {
        self.lock(path)
    }
}

/// What holds a lock; dropping it lets go.
pub trait LockGuard: Send + Sync {}

/// An open file.
pub trait DiskFile: Send {
    /// Its length in bytes.
    fn len_bytes(&self) -> io::Result<u64>;
    /// Fills `buffer` from `offset` on; a file that ends earlier is an error (`UnexpectedEof`).
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
    /// Writes all of `bytes` at `offset`. After an error any part of them may have been written.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Makes the file at least `len_bytes` long with space reserved for it; new bytes read as zeros. Never shortens.
    fn allocate(&mut self, len_bytes: u64) -> io::Result<()>;
    /// Cuts the file to `len_bytes`. What is added to it later reads as zeros until it is written.
    fn truncate(&mut self, len_bytes: u64) -> io::Result<()>;
    /// Makes the content durable, and of the metadata what is needed to read it back.
    fn sync_data(&mut self) -> io::Result<()>;
    /// Makes the content and all metadata durable.
    fn sync_all(&mut self) -> io::Result<()>;
    /// Has its last name been removed? What is written then can be synced and is gone all the same when it is closed.
    fn is_removed(&self) -> io::Result<bool> {
        Ok(false)
    }
}

/// The disk of the operating system.
#[derive(Clone, Copy, Default, Debug)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        std::fs::create_dir_all(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(dir)? {
            let entry = entry?;
            // A name that is not UTF-8 is none of ours, nor is a pipe or a device: opening one may never end.
            let kind = entry.file_type()?;
            if let Ok(name) = entry.file_name().into_string()
                && (kind.is_file() || kind.is_symlink())
            {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
        Ok(Box::new(RealFile(file)))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(RealFile(OpenOptions::new().read(true).write(true).open(path)?)))
    }

    fn open_to_read(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(RealFile(File::open(path)?)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn LockGuard>>> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        flock(file, FlockOperation::NonBlockingLockExclusive)
    }

    fn share_lock(&self, path: &Path) -> io::Result<Option<Box<dyn LockGuard>>> {
        flock(File::open(path)?, FlockOperation::NonBlockingLockShared)
    }
}

fn flock(file: File, operation: FlockOperation) -> io::Result<Option<Box<dyn LockGuard>>> {
    match rustix::io::retry_on_intr(|| rustix::fs::flock(&file, operation)) {
        Ok(()) => Ok(Some(Box::new(RealLock(file)))),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// The descriptor that carries the lock: closing it lets go.
struct RealLock(#[expect(dead_code, reason = "held for its Drop")] File);

impl LockGuard for RealLock {}

struct RealFile(File);

impl DiskFile for RealFile {
    fn len_bytes(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(buffer, offset)
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn allocate(&mut self, len_bytes: u64) -> io::Result<()> {
        if self.len_bytes()? >= len_bytes {
            return Ok(());
        }
        match rustix::io::retry_on_intr(|| rustix::fs::fallocate(&self.0, FallocateFlags::empty(), 0, len_bytes)) {
            Ok(()) => Ok(()),
            // A file system that cannot reserve: the length alone still spares a size change at every sync.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.0.set_len(len_bytes),
            Err(errno) => Err(errno.into()),
        }
    }

    fn truncate(&mut self, len_bytes: u64) -> io::Result<()> {
        self.0.set_len(len_bytes)
    }

    fn sync_data(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn sync_all(&mut self) -> io::Result<()> {
        self.0.sync_all()
    }

    fn is_removed(&self) -> io::Result<bool> {
        Ok(self.0.metadata()?.nlink() == 0)
    }
}

/// A disk that can only be read: every change is refused. A directory that is not there is an empty one.
struct ReadOnly(Arc<dyn Disk>);

fn read_only<T>() -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::PermissionDenied, "it was opened to be read"))
}

impl Disk for ReadOnly {
    fn create_dir(&self, _: &Path) -> io::Result<()> {
        read_only()
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        match self.0.list(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            listed => listed,
        }
    }

    fn create(&self, _: &Path) -> io::Result<Box<dyn DiskFile>> {
        read_only()
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.0.open_to_read(path)
    }

    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        read_only()
    }

    fn remove(&self, _: &Path) -> io::Result<()> {
        read_only()
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        read_only()
    }

    fn lock(&self, _: &Path) -> io::Result<Option<Box<dyn LockGuard>>> {
        read_only()
    }

    fn share_lock(&self, path: &Path) -> io::Result<Option<Box<dyn LockGuard>>> {
        self.0.share_lock(path)
    }
}

/// A file operation that failed: what was tried, on which file, and why it failed.
#[derive(Debug)]
pub struct DiskError {
    /// The operation, as a verb: "write", "sync".
    pub action: &'static str,
    /// The file or directory.
    pub path: PathBuf,
    /// What the operating system said.
    pub source: io::Error,
}

impl DiskError {
    /// For `map_err`: names the operation and the file.
    pub fn at(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DiskError {
        let path = path.to_owned();
        move |source| DiskError { action, path, source }
    }
}

impl fmt::Display for DiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}: {}", self.action, self.path.display(), self.source)?;
        match self.source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                write!(f, " (make room on this volume, then start again)")
            }
            io::ErrorKind::PermissionDenied if READING.contains(&self.action) => write!(f, " ({MUST_READ})"),
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                write!(f, " (the user that runs the server must be able to write here)")
            }
            _ => Ok(()),
        }
    }
}

/// Actions of a [`DiskError`] that need the right to read, if only that.
const READING: [&str; 3] = ["open", "read", "list"];

/// What to do about a file that must not be read.
pub(crate) const MUST_READ: &str =
    "the user that runs this must be able to read it, and a server to write it: see who owns it, chown";

impl Error for DiskError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.source)
    }
}

/// Why a data directory could not be taken.
#[derive(Debug)]
pub enum DataDirError {
    /// Another process works in it.
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// A file operation failed.
    Disk(DiskError),
}

impl fmt::Display for DataDirError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DataDirError::Locked { path } => write!(
                f,
                "the data directory {} is in use by another server (or looked at by impel check): stop that one, or give this \
                 one a directory of its own",
                path.display()
            ),
            DataDirError::Disk(error) => error.fmt(f),
        }
    }
}

impl Error for DataDirError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            DataDirError::Locked { .. } => None,
            DataDirError::Disk(error) => Some(&error.source),
        }
    }
}

impl From<DiskError> for DataDirError {
    fn from(error: DiskError) -> Self {
        DataDirError::Disk(error)
    }
}

/// The file with a directory's identity.
const IDENTITY: &str = "identity";

/// A data directory that this process holds alone: `lock`, `log/` with the segments, `snapshots/`. Whoever reads or
/// writes in it keeps an `Arc` of this, so the lock is held for as long as anybody does.
pub struct DataDir {
    disk: Arc<dyn Disk>,
    log: PathBuf,
    snapshots: PathBuf,
    /// `None`: it is only looked at.
    _lock: Option<Box<dyn LockGuard>>,
}

/// Who has the lock of a directory that is only looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holder {
    /// Nobody, and nobody can take it while we look.
    Nobody,
    /// A server works in it.
    Server,
    /// There is no telling: the lock's file may not be read.
    Unknown,
}

impl DataDir {
    /// Makes the directory if there is none and takes its lock.
    pub fn open(disk: Arc<dyn Disk>, path: &Path) -> Result<Arc<DataDir>, DataDirError> {
        let log = path.join("log");
        let snapshots = path.join("snapshots");
        disk.create_dir(path).map_err(DiskError::at("create directory", path))?;
        let lock_path = path.join("lock");
        let lock = disk.lock(&lock_path).map_err(DiskError::at("lock", &lock_path))?;
        let Some(lock) = lock else { return Err(DataDirError::Locked { path: path.to_owned() }) };
        for sub_dir in [&log, &snapshots] {
            disk.create_dir(sub_dir).map_err(DiskError::at("create directory", sub_dir))?;
        }
        // The names of the two directories, and our own name in the one above, must be as durable as what is to be
        // acknowledged in them. A parent that we may not even open was not made by us.
        disk.sync_dir(path).map_err(DiskError::at("sync directory", path))?;
        if let Some(parent) = path.parent() {
            let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            match disk.sync_dir(parent) {
                Err(error) if error.kind() != io::ErrorKind::PermissionDenied => {
                    return Err(DiskError::at("sync directory", parent)(error).into());
                }
                _ => {}
            }
        }
        Ok(Arc::new(DataDir { disk, log, snapshots, _lock: Some(lock) }))
    }

    /// A directory to look at: nothing in it can be changed by this, and nothing is made. Whether a server works in it is
    /// answered as well; if not, none can begin to as long as anybody keeps what is returned.
    pub fn look(disk: Arc<dyn Disk>, path: &Path) -> Result<(Arc<DataDir>, Holder), DiskError> {
        disk.list(path).map_err(DiskError::at("list", path))?;
        let (lock, holder) = match disk.share_lock(&path.join("lock")) {
            Ok(Some(lock)) => (Some(lock), Holder::Nobody),
            Ok(None) => (None, Holder::Server),
            // No server has ever worked here, or the directory was copied without it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => (None, Holder::Nobody),
            Err(_) => (None, Holder::Unknown),
        };
        let disk = Arc::new(ReadOnly(disk));
        Ok((Arc::new(DataDir { disk, log: path.join("log"), snapshots: path.join("snapshots"), _lock: lock }), holder))
    }

    /// The disk below.
    pub fn disk(&self) -> &dyn Disk {
        &*self.disk
    }

    /// Where the segments are.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Itself.
    pub fn path(&self) -> &Path {
        self.log.parent().expect("the log is in a directory")
    }

    /// What tells the directory of one server from that of another: made with the first start in it, copied by nobody.
    pub fn identity(&self) -> Result<Option<String>, DiskError> {
        read_note(self.disk(), &self.path().join(IDENTITY))
    }

    /// Gives it an identity if it has none.
    pub fn identify(&self, random: u64) -> Result<(), DiskError> {
        match self.identity()? {
            Some(_) => Ok(()),
            None => write_note(self.disk(), &self.path().join(IDENTITY), &format!("{random:016x}\n")),
        }
    }

    /// Where the snapshots are.
    pub fn snapshots(&self) -> &Path {
        &self.snapshots
    }
}

impl fmt::Debug for DataDir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataDir").field("log", &self.log).finish_non_exhaustive()
    }
}

/// How often a file is read anew that shrinks meanwhile: a segment does when it is closed, once.
const READINGS_MAX: u32 = 3;

/// A kind of file that is read whole, with the length of the largest that is ever written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    /// What it is, with its article.
    pub name: &'static str,
    /// Its greatest length.
    pub max_bytes: u64,
}

/// Notes: identity, gaps.
const NOTE: Kind = Kind { name: "such a file", max_bytes: 16 << 20 };

/// A file that is longer than any of its kind: no memory is taken for it.
fn too_long(len_bytes: u64, kind: Kind) -> io::Error {
    let Kind { name, max_bytes } = kind;
    let what = format!(
        "it is {len_bytes} bytes long, and {name} at most {max_bytes}: no server wrote it like this. Put the right file in its place, \
         or move it to another directory"
    );
    io::Error::new(io::ErrorKind::FileTooLarge, what)
}

/// Reads a whole file into `bytes`, though a server may cut it to the length in use meanwhile.
pub(crate) fn read_whole(file: &dyn DiskFile, path: &Path, kind: Kind, bytes: &mut Vec<u8>) -> Result<(), DiskError> {
    let mut readings = 0;
    loop {
        readings += 1;
        let len_bytes = file.len_bytes().map_err(DiskError::at("read", path))?;
        if len_bytes > kind.max_bytes {
            return Err(DiskError::at("read", path)(too_long(len_bytes, kind)));
        }
        let len = usize::try_from(len_bytes).expect("the greatest length of a file fits into memory");
        if bytes.capacity() < len {
            // Memory that is zero already and was never touched: the old is not copied, nothing is written twice.
            *bytes = vec![0; len];
        } else {
            bytes.resize(len, 0);
        }
        match file.read_at(0, bytes) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && readings < READINGS_MAX => {}
            Err(error) => return Err(DiskError::at("read", path)(error)),
        }
    }
}

/// The text in a small file; `None` if there is no such file.
pub(crate) fn read_note(disk: &dyn Disk, path: &Path) -> Result<Option<String>, DiskError> {
    let file = match disk.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(DiskError::at("open", path)(error)),
    };
    let mut bytes = Vec::new();
    read_whole(&*file, path, NOTE, &mut bytes)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Bytes of a text for people (configuration, users), or of what comes from a pipe in its place.
const TEXT_MAX_BYTES: u64 = 64 << 20;

/// Reads a text for people from wherever it comes, to its end.
pub(crate) fn read_text(source: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(TEXT_MAX_BYTES + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > TEXT_MAX_BYTES {
        true => Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is longer than {} bytes", TEXT_MAX_BYTES))),
        false => Ok(bytes),
    }
}

/// The same from a file.
pub(crate) fn read_text_file(path: &Path) -> io::Result<Vec<u8>> {
    read_text(File::open(path)?)
}

/// Puts a text into a small file: after a crash it holds this or what it held before.
pub(crate) fn write_note(disk: &dyn Disk, path: &Path, text: &str) -> Result<(), DiskError> {
    let unfinished = path.with_extension("tmp");
    let mut file = disk.create(&unfinished).map_err(DiskError::at("create", &unfinished))?;
    file.write_at(0, text.as_bytes()).map_err(DiskError::at("write", &unfinished))?;
    file.sync_all().map_err(DiskError::at("sync", &unfinished))?;
    disk.rename(&unfinished, path).map_err(DiskError::at("rename", &unfinished))?;
    let folder = path.parent().expect("a file in a directory has a directory");
    disk.sync_dir(folder).map_err(DiskError::at("sync directory", folder))
}

/// A file name made of a position, 20 digits so that names sort as positions do, and an extension.
pub(crate) fn positioned_name(position: u64, extension: &str) -> String {
    format!("{position:020}.{extension}")
}

/// The position in such a name; `None` for any other name.
pub(crate) fn position_in_name(name: &str, extension: &str) -> Option<u64> {
    let digits = name.strip_suffix(extension)?.strip_suffix('.')?;
    if digits.len() != 20 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

/// Removes what an unfinished creation left behind: names that end in `.tmp`.
pub(crate) fn remove_unfinished(disk: &dyn Disk, dir: &Path) -> Result<usize, DiskError> {
    let names = disk.list(dir).map_err(DiskError::at("list", dir))?;
    let mut removed = 0;
    for name in names.iter().filter(|name| name.ends_with(".tmp")) {
        let path = dir.join(name);
        disk.remove(&path).map_err(DiskError::at("remove", &path))?;
        removed += 1;
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_memory_is_taken_for_a_file_that_is_longer_than_any_of_its_kind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sparse");
        let file = File::create(&path).unwrap();
        let kind = Kind { name: "a segment", max_bytes: 100 };
        let mut bytes = Vec::new();
        file.set_len(100).unwrap();
        read_whole(&*RealDisk.open(&path).unwrap(), &path, kind, &mut bytes).unwrap();
        file.set_len(2 << 40).unwrap();
        let error = read_whole(&*RealDisk.open(&path).unwrap(), &path, kind, &mut bytes).unwrap_err().to_string();
        assert!(error.contains(&*path.display().to_string()) && error.contains("2199023255552 bytes long"), "{error}");
        assert!(bytes.capacity() < 1000);
        let error = read_note(&RealDisk, &path).unwrap_err().to_string();
        assert!(error.contains("2199023255552 bytes long"), "{error}");
        let error = read_text_file(&path).unwrap_err().to_string();
        assert_eq!(error, format!("it is longer than {TEXT_MAX_BYTES} bytes"));
    }

    #[test]
    fn what_must_not_be_read_is_told_from_what_must_not_be_written() {
        let denied =
            |action| DiskError::at(action, Path::new("/data/x"))(io::ErrorKind::PermissionDenied.into()).to_string();
        for action in READING {
            let told = denied(action);
            assert!(
                told.starts_with(&format!("cannot {action} /data/x: ")) && told.contains("be able to read"),
                "{told}"
            );
        }
        assert!(denied("create").contains("be able to write"));
    }

    #[test]
    fn names_are_positions() {
        assert_eq!(positioned_name(42, "log"), "00000000000000000042.log");
        assert_eq!(position_in_name("00000000000000000042.log", "log"), Some(42));
        assert_eq!(position_in_name(&positioned_name(u64::MAX, "log"), "log"), Some(u64::MAX));
        for name in
            ["42.log", "00000000000000000042.snap", "99999999999999999999.log", "+0000000000000000042.log", ".log"]
        {
            assert_eq!(position_in_name(name, "log"), None, "{name}");
        }
    }

    #[test]
    fn the_second_owner_of_a_directory_is_refused_until_the_first_has_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        let first = DataDir::open(Arc::new(RealDisk), &path).unwrap();
        let error = DataDir::open(Arc::new(RealDisk), &path).unwrap_err();
        assert!(matches!(&error, DataDirError::Locked { path: named } if *named == path), "{error}");
        drop(first);
        DataDir::open(Arc::new(RealDisk), &path).unwrap();
    }

    #[test]
    fn looking_changes_nothing_and_sees_who_works_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        assert!(DataDir::look(Arc::new(RealDisk), &path).is_err(), "there is no such directory");
        std::fs::create_dir(&path).unwrap();
        let (dir, holder) = DataDir::look(Arc::new(RealDisk), &path).unwrap();
        assert_eq!((holder, dir.disk().list(dir.log()).unwrap().len()), (Holder::Nobody, 0));
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0);
        drop(dir);
        let server = DataDir::open(Arc::new(RealDisk), &path).unwrap();
        let file = server.log().join("file");
        server.disk().create(&file).unwrap();
        let (dir, holder) = DataDir::look(Arc::new(RealDisk), &path).unwrap();
        assert_eq!(holder, Holder::Server);
        let disk = dir.disk();
        assert!(disk.create(&file).is_err() && disk.remove(&file).is_err() && disk.rename(&file, &path).is_err());
        assert!(disk.open(&file).unwrap().write_at(0, b"x").is_err());
        drop((dir, server));
        let (dir, holder) = DataDir::look(Arc::new(RealDisk), &path).unwrap();
        let (_, second) = DataDir::look(Arc::new(RealDisk), &path).unwrap();
        assert_eq!((holder, second), (Holder::Nobody, Holder::Nobody));
        assert!(
            matches!(DataDir::open(Arc::new(RealDisk), &path), Err(DataDirError::Locked { .. })),
            "while one looks"
        );
        drop(dir);
        DataDir::open(Arc::new(RealDisk), &path).unwrap();
        let kept = RealDisk.open(&file).unwrap();
        assert!(!kept.is_removed().unwrap());
        RealDisk.remove(&file).unwrap();
        assert!(kept.is_removed().unwrap());
    }

    #[test]
    fn what_is_allocated_reads_as_zeros_and_never_shortens() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = RealDisk.create(&folder.path().join("file")).unwrap();
        file.write_at(0, b"abc").unwrap();
        file.allocate(8192).unwrap();
        file.allocate(10).unwrap();
        assert_eq!(file.len_bytes().unwrap(), 8192);
        let mut bytes = vec![1; 8192];
        file.read_at(0, &mut bytes).unwrap();
        assert_eq!(&bytes[..4], b"abc\0");
        assert!(bytes[3..].iter().all(|&byte| byte == 0));
        file.truncate(2).unwrap();
        assert_eq!(file.read_at(0, &mut [0; 3]).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
