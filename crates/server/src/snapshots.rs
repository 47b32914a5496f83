//! Snapshots as files: a state in chunks of bytes that nobody here looks into, at a log position. `docs/formats.md`
//! draws the layout.
//!
//! Invariants: a file with a snapshot's name was complete and durable when it got that name; a snapshot is used only
//! after every checksum and the footer have been verified; reading and writing need memory for a chunk, not for a
//! snapshot. A snapshot at position P holds the effect of exactly the log's bytes before P, and its writer makes the
//! log durable up to P before it finishes the snapshot.
//!
//! Nothing here may remove the newest snapshot, or decide which one to start from: that is `log/recovery.rs`'s.

mod keep;

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use keep::{Keep, prune};

use crate::disk::{self, DataDir, DiskError, DiskFile, position_in_name, positioned_name};

#[cfg(test)]
mod tests;

const MAGIC: [u8; 8] = *b"IMPELSNP";

/// The format of snapshots that is written, and the only one that is read.
pub const FORMAT: u32 = 1;

const HEADER_BYTES: usize = 40;

/// In the header's flags: a log was kept when the snapshot was taken.
const WITH_LOG: u64 = 1;
const CHUNK_HEADER_BYTES: usize = 8;
const FOOTER_BYTES: usize = 28;

/// Extension of a snapshot's name.
const SNAPSHOT: &str = "snap";

/// No chunk is longer than this, and no memory is taken for one that says it is.
pub const CHUNK_MAX_BYTES: usize = 64 << 20;

/// Bytes collected before they are written.
const BUFFER_BYTES: usize = 256 * 1024;

/// After this many bytes the file is synced: many dirty pages at once would make the log's syncs, which share the disk,
/// wait for all of them.
const SYNC_EVERY_BYTES: u64 = 8 << 20;

/// What is known of a snapshot that was verified.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SnapshotInfo {
    /// The log position it stands for.
    pub position: u64,
    /// The time it was begun, as its writer was told.
    pub now_ms: u64,
    /// A log was kept when it was taken, and reached its position.
    pub with_log: bool,
    /// Chunks in it.
    pub chunks: u64,
    /// Length of the file.
    pub len_bytes: u64,
    /// The file.
    pub path: PathBuf,
}

/// Why a snapshot could not be written or read.
#[derive(Debug)]
pub enum SnapshotError {
    /// It is not what was written.
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where what cannot be used begins.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// It has a format that this version does not know.
    Foreign {
        /// The file.
        path: PathBuf,
        /// Its format.
        version: u32,
    },
    /// A file operation failed.
    Disk(DiskError),
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SnapshotError::Damaged { path, offset, what } => {
                write!(f, "the snapshot {} is damaged at byte {offset}: {what}", path.display())
            }
            SnapshotError::Foreign { path, version } => write!(
                f,
                "the snapshot {} has format {version}, which this version does not know: start the version that wrote it",
                path.display()
            ),
            SnapshotError::Disk(error) => error.fmt(f),
        }
    }
}

impl Error for SnapshotError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            SnapshotError::Disk(error) => Some(&error.source),
            _ => None,
        }
    }
}

impl From<DiskError> for SnapshotError {
    fn from(error: DiskError) -> Self {
        SnapshotError::Disk(error)
    }
}

pub(crate) fn snapshot_path(dir: &DataDir, position: u64) -> PathBuf {
    dir.snapshots().join(positioned_name(position, SNAPSHOT))
}

fn header(position: u64, now_ms: u64, with_log: bool) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&FORMAT.to_le_bytes());
    header[16..24].copy_from_slice(&position.to_le_bytes());
    header[24..32].copy_from_slice(&now_ms.to_le_bytes());
    let flags = if with_log { WITH_LOG } else { 0 };
    header[32..40].copy_from_slice(&flags.to_le_bytes());
    let crc = header_crc(&header);
    header[12..16].copy_from_slice(&crc.to_le_bytes());
    header
}

fn header_crc(header: &[u8; HEADER_BYTES]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&header[..12]), &header[16..])
}

/// What the checksums of chunks and footer go over before their own bytes: so a chunk of another snapshot, or in
/// another place, does not pass.
fn bound_crc(position: u64, index: u64) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&position.to_le_bytes()), &index.to_le_bytes())
}

fn chunk_crc(position: u64, index: u64, chunk: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(bound_crc(position, index), &(chunk.len() as u32).to_le_bytes()), chunk)
}

/// Sums up a snapshot's chunks, the same way in writing and in reading.
#[derive(Clone, Copy, Default)]
struct Tally {
    chunks: u64,
    payload_bytes: u64,
    crc: u32,
}

impl Tally {
    fn add(&mut self, chunk: &[u8]) {
        self.chunks += 1;
        self.payload_bytes += chunk.len() as u64;
        self.crc = crc32c::crc32c_append(self.crc, chunk);
    }

    /// A chunk of length 0 that says what the others were.
    fn footer(&self, position: u64) -> [u8; FOOTER_BYTES] {
        let mut footer = [0; FOOTER_BYTES];
        footer[8..16].copy_from_slice(&self.chunks.to_le_bytes());
        footer[16..24].copy_from_slice(&self.payload_bytes.to_le_bytes());
        footer[24..28].copy_from_slice(&self.crc.to_le_bytes());
        let crc = crc32c::crc32c_append(bound_crc(position, self.chunks), &footer[8..]);
        footer[4..8].copy_from_slice(&crc.to_le_bytes());
        footer
    }
}

/// Writes a snapshot aside. Dropped before `finish` has returned `Ok`, it leaves nothing but what an unfinished file
/// leaves; the snapshots there are stay as they are.
pub struct SnapshotWriter {
    dir: Arc<DataDir>,
    file: Box<dyn DiskFile>,
    unfinished: PathBuf,
    position: u64,
    now_ms: u64,
    with_log: bool,
    tally: Tally,
    buffer: Vec<u8>,
    written_bytes: u64,
    synced_bytes: u64,
    has_its_name: bool,
}

/// Begins a snapshot of the state at a log position. `with_log` says that there is a log, which will be durable up to that
/// position before the snapshot is finished: a start takes a log that ends earlier for a damaged one.
pub fn create(dir: &Arc<DataDir>, position: u64, now_ms: u64, with_log: bool) -> Result<SnapshotWriter, SnapshotError> {
    let unfinished = snapshot_path(dir, position).with_extension("snap.tmp");
    let file = dir.disk().create(&unfinished).map_err(DiskError::at("create", &unfinished))?;
    Ok(SnapshotWriter {
        dir: dir.clone(),
        file,
        unfinished,
        position,
        now_ms,
        with_log,
        tally: Tally::default(),
        buffer: header(position, now_ms, with_log).to_vec(),
        written_bytes: 0,
        synced_bytes: 0,
        has_its_name: false,
    })
}

impl SnapshotWriter {
    /// Appends a chunk: at most [`CHUNK_MAX_BYTES`], which reading will need in memory at once. An empty one is left out.
    pub fn write_chunk(&mut self, chunk: &[u8]) -> Result<(), SnapshotError> {
        if chunk.is_empty() {
            return Ok(());
        }
        assert!(chunk.len() <= CHUNK_MAX_BYTES, "a chunk that reading would refuse");
        let len_bytes = chunk.len() as u32;
        self.buffer.extend_from_slice(&len_bytes.to_le_bytes());
        self.buffer.extend_from_slice(&chunk_crc(self.position, self.tally.chunks, chunk).to_le_bytes());
        self.tally.add(chunk);
        if chunk.len() >= BUFFER_BYTES {
            self.flush()?;
            return self.write(chunk);
        }
        self.buffer.extend_from_slice(chunk);
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    /// Bytes written or about to be.
    pub fn len_bytes(&self) -> u64 {
        self.written_bytes + self.buffer.len() as u64
    }

    /// Completes the snapshot, makes it durable and gives it its name. The log must be durable up to the snapshot's
    /// position before this is called. After an error the snapshot may or may not be there: trim nothing because of it.
    pub fn finish(mut self) -> Result<SnapshotInfo, SnapshotError> {
        self.buffer.extend_from_slice(&self.tally.footer(self.position));
        self.flush()?;
        self.file.sync_all().map_err(DiskError::at("sync", &self.unfinished))?;
        let path = snapshot_path(&self.dir, self.position);
        self.dir.disk().rename(&self.unfinished, &path).map_err(DiskError::at("rename", &self.unfinished))?;
        self.has_its_name = true;
        let folder = self.dir.snapshots();
        self.dir.disk().sync_dir(folder).map_err(DiskError::at("sync directory", folder))?;
        Ok(SnapshotInfo {
            position: self.position,
            now_ms: self.now_ms,
            with_log: self.with_log,
            chunks: self.tally.chunks,
            len_bytes: self.written_bytes,
            path,
        })
    }

    fn flush(&mut self) -> Result<(), SnapshotError> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let result = self.write(&buffer);
        buffer.clear();
        self.buffer = buffer;
        result
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        self.file.write_at(self.written_bytes, bytes).map_err(DiskError::at("write", &self.unfinished))?;
        self.written_bytes += bytes.len() as u64;
        if self.written_bytes - self.synced_bytes >= SYNC_EVERY_BYTES {
            self.file.sync_data().map_err(DiskError::at("sync", &self.unfinished))?;
            self.synced_bytes = self.written_bytes;
        }
        Ok(())
    }
}

impl Drop for SnapshotWriter {
    fn drop(&mut self) {
        if !self.has_its_name {
            // If this fails, the next start removes it.
            let _ = self.dir.disk().remove(&self.unfinished);
        }
    }
}

/// Positions of the snapshots there are, oldest first. Damaged ones are among them.
pub fn list(dir: &DataDir) -> Result<Vec<u64>, DiskError> {
    let folder = dir.snapshots();
    let names = dir.disk().list(folder).map_err(DiskError::at("list", folder))?;
    Ok(names.iter().filter_map(|name| position_in_name(name, SNAPSHOT)).collect())
}

/// Reads a whole snapshot and verifies it.
pub fn check(dir: &DataDir, position: u64) -> Result<SnapshotInfo, SnapshotError> {
    let mut reader = read(dir, position)?;
    while reader.next_chunk()?.is_some() {}
    Ok(SnapshotInfo {
        position,
        now_ms: reader.now_ms,
        with_log: reader.with_log,
        chunks: reader.tally.chunks,
        len_bytes: reader.len_bytes,
        path: reader.path,
    })
}

/// Opens a snapshot for reading chunk after chunk. What it gives is verified chunk by chunk; that the snapshot is
/// complete is known only at its end, so a caller who must not begin with an incomplete one calls `check` before.
pub fn read(dir: &DataDir, position: u64) -> Result<SnapshotReader, SnapshotError> {
    let path = snapshot_path(dir, position);
    let file = dir.disk().open(&path).map_err(DiskError::at("open", &path))?;
    let len_bytes = file.len_bytes().map_err(DiskError::at("read", &path))?;
    let damaged = |what| SnapshotError::Damaged { path: path.clone(), offset: 0, what };
    if len_bytes < HEADER_BYTES as u64 {
        return Err(damaged("it is shorter than its header"));
    }
    let mut bytes = [0; HEADER_BYTES];
    file.read_at(0, &mut bytes).map_err(DiskError::at("read", &path))?;
    if bytes[..8] != MAGIC || u32_at(&bytes, 12) != header_crc(&bytes) {
        return Err(damaged("its header is not one"));
    }
    // Magic, version, checksum and position keep their places in every later format.
    let version = u32_at(&bytes, 8);
    if version != FORMAT {
        return Err(SnapshotError::Foreign { path, version });
    }
    if u64_at(&bytes, 16) != position {
        return Err(damaged("it is of another position than its name says"));
    }
    let flags = u64_at(&bytes, 32);
    if flags & !WITH_LOG != 0 {
        return Err(damaged("its header has flags that mean nothing"));
    }
    Ok(SnapshotReader {
        file,
        path,
        position,
        now_ms: u64_at(&bytes, 24),
        with_log: flags & WITH_LOG != 0,
        len_bytes,
        offset: HEADER_BYTES as u64,
        tally: Tally::default(),
        chunk: Vec::new(),
        is_complete: false,
    })
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Reads a snapshot.
pub struct SnapshotReader {
    file: Box<dyn DiskFile>,
    path: PathBuf,
    position: u64,
    now_ms: u64,
    with_log: bool,
    len_bytes: u64,
    offset: u64,
    tally: Tally,
    chunk: Vec<u8>,
    is_complete: bool,
}

impl SnapshotReader {
    /// The log position the snapshot stands for.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The time it was begun.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// Was a log kept when it was taken?
    pub fn with_log(&self) -> bool {
        self.with_log
    }

    /// Length of the file.
    pub fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next chunk, as it was written; `None` when all have been read and the footer agrees with them.
    pub fn next_chunk(&mut self) -> Result<Option<&[u8]>, SnapshotError> {
        if self.is_complete {
            return Ok(None);
        }
        let mut header = [0; CHUNK_HEADER_BYTES];
        self.take(&mut header, "it ends without a footer")?;
        let len_bytes = u32_at(&header, 0);
        if len_bytes == 0 {
            return self.end().map(|()| None);
        }
        // Checked before memory is taken for it.
        if u64::from(len_bytes) > self.len_bytes - self.offset - CHUNK_HEADER_BYTES as u64 {
            return Err(self.damaged("a chunk is longer than the file"));
        }
        if len_bytes as usize > CHUNK_MAX_BYTES {
            return Err(self.damaged("a chunk is longer than any that is written"));
        }
        let mut chunk = std::mem::take(&mut self.chunk);
        chunk.resize(len_bytes as usize, 0);
        let chunk_at = self.offset + CHUNK_HEADER_BYTES as u64;
        self.file.read_at(chunk_at, &mut chunk).map_err(DiskError::at("read", &self.path))?;
        if u32_at(&header, 4) != chunk_crc(self.position, self.tally.chunks, &chunk) {
            return Err(self.damaged("a chunk does not match its checksum"));
        }
        self.tally.add(&chunk);
        self.offset = chunk_at + u64::from(len_bytes);
        self.chunk = chunk;
        Ok(Some(&self.chunk))
    }

    fn end(&mut self) -> Result<(), SnapshotError> {
        let mut footer = [0; FOOTER_BYTES];
        self.take(&mut footer, "it ends within its footer")?;
        if footer != self.tally.footer(self.position) {
            return Err(self.damaged("its footer does not match its chunks"));
        }
        if self.len_bytes - self.offset != FOOTER_BYTES as u64 {
            return Err(self.damaged("it goes on after its footer"));
        }
        self.is_complete = true;
        Ok(())
    }

    fn take(&self, bytes: &mut [u8], otherwise: &'static str) -> Result<(), SnapshotError> {
        if self.len_bytes - self.offset < bytes.len() as u64 {
            return Err(self.damaged(otherwise));
        }
        Ok(self.file.read_at(self.offset, bytes).map_err(DiskError::at("read", &self.path))?)
    }

    fn damaged(&self, what: &'static str) -> SnapshotError {
        SnapshotError::Damaged { path: self.path.clone(), offset: self.offset, what }
    }
}

/// What became of the chunks of a damaged snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Salvage {
    /// Chunks that are whole.
    pub whole: u64,
    /// Chunks that are known to have been there and are damaged.
    pub damaged: u64,
    /// All chunks there were are among these; else there is no telling how many came behind.
    pub is_all: bool,
}

/// Reads what is whole of a damaged snapshot: hands each chunk to `each`, oldest first, and for a damaged one its length.
/// A chunk's checksum is bound to its place and to the position in the file's name, so each vouches for itself. Where a
/// length is damaged, what stands behind it is out of reach.
pub fn salvage(
    dir: &DataDir,
    position: u64,
    mut each: impl FnMut(Result<&[u8], usize>),
) -> Result<Salvage, SnapshotError> {
    let path = snapshot_path(dir, position);
    let file = dir.disk().open(&path).map_err(DiskError::at("open", &path))?;
    let len_bytes = file.len_bytes().map_err(DiskError::at("read", &path))?;
    let (mut salvage, mut chunk) = (Salvage::default(), Vec::new());
    let mut offset = HEADER_BYTES as u64;
    loop {
        let mut header = [0; CHUNK_HEADER_BYTES];
        let chunk_at = offset + CHUNK_HEADER_BYTES as u64;
        if chunk_at > len_bytes {
            return Ok(salvage);
        }
        file.read_at(offset, &mut header).map_err(DiskError::at("read", &path))?;
        let chunk_bytes = u32_at(&header, 0);
        if chunk_bytes == 0 || u64::from(chunk_bytes) > (len_bytes - chunk_at).min(CHUNK_MAX_BYTES as u64) {
            salvage.is_all = chunk_bytes == 0 && len_bytes - offset == FOOTER_BYTES as u64;
            return Ok(salvage);
        }
        chunk.resize(chunk_bytes as usize, 0);
        file.read_at(chunk_at, &mut chunk).map_err(DiskError::at("read", &path))?;
        if u32_at(&header, 4) == chunk_crc(position, salvage.whole + salvage.damaged, &chunk) {
            salvage.whole += 1;
            each(Ok(&chunk));
        } else {
            salvage.damaged += 1;
            each(Err(chunk.len()));
        }
        offset = chunk_at + u64::from(chunk_bytes);
    }
}

/// Removes what snapshots that were never finished left behind. Not while one is being written.
pub fn remove_unfinished(dir: &DataDir) -> Result<usize, DiskError> {
    disk::remove_unfinished(dir.disk(), dir.snapshots())
}

/// Gives a damaged snapshot a name that is not a snapshot's, so that it can be examined and is not counted.
pub(crate) fn set_aside(dir: &DataDir, position: u64) -> Result<PathBuf, DiskError> {
    let path = snapshot_path(dir, position);
    let aside = aside_path(&path);
    dir.disk().rename(&path, &aside).map_err(DiskError::at("rename", &path))?;
    Ok(aside)
}

fn aside_path(path: &Path) -> PathBuf {
    path.with_extension("snap.damaged")
}
