//! Copies the segments of a data directory into another one, while a server may be appending to them and letting old
//! ones go: what is copied is a beginning of the log, whole frames only, and what the other directory has already is not
//! copied again.
//!
//! It must never change the directory that it reads, shorten or change frames that the other one holds, or join the logs
//! of two servers.

use std::cmp::Ordering;
use std::io;
use std::path::{Path, PathBuf};

use super::frame::{self, Beyond};
use super::survey::{read_file, segment_path, starts};
use crate::disk::{DataDir, DiskError, DiskFile};

/// Of a segment that both have with the same length, the end is compared: so many bytes, which hold positions, times and
/// checksums of many commits.
const COMPARED_BYTES: u64 = 64 * 1024;

/// Why segments could not be copied.
#[derive(Debug)]
pub enum CopyError {
    /// A file operation failed.
    Disk(DiskError),
    /// A segment is damaged, or does not reach to the next one.
    Damaged {
        /// The segment.
        path: PathBuf,
        /// The first byte that cannot be used.
        offset: u64,
    },
    /// What was copied there before is not a beginning of this log.
    AnotherLog {
        /// The segment there.
        path: PathBuf,
    },
}

impl From<DiskError> for CopyError {
    fn from(error: DiskError) -> Self {
        CopyError::Disk(error)
    }
}

/// What was copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Copied {
    /// Segments that were new or have grown.
    pub segments: u64,
    /// Bytes written.
    pub len_bytes: u64,
    /// Between these positions the other directory lacks what was let go before it was copied.
    pub gap: Option<(u64, u64)>,
}

/// The segments of a directory, all open: what the server lets go from now on can still be read.
pub struct Segments {
    /// Oldest first.
    files: Vec<(u64, PathBuf, Box<dyn DiskFile>)>,
}

impl Segments {
    /// Opens them. `None`: one went in the meantime; try again.
    pub fn open(dir: &DataDir) -> Result<Option<Segments>, DiskError> {
        let mut files = Vec::new();
        for start in starts(dir)? {
            let path = segment_path(dir, start);
            match dir.disk().open(&path) {
                Ok(file) => files.push((start, path, file)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(DiskError::at("open", &path)(error)),
            }
        }
        Ok(Some(Segments { files }))
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Sees to it that what `to` has can be the past of this log: segments with the names of these, and before them some that end
    /// where these begin. If they end before, that is a gap: from where to where.
    fn gap_behind(&self, to: &DataDir) -> Result<Option<(u64, u64)>, CopyError> {
        let Some(&(first, ..)) = self.files.first() else { return Ok(None) };
        let there = starts(to)?;
        let is_ours = |start: &u64| self.files.binary_search_by_key(start, |(start, ..)| *start).is_ok();
        if let Some(&start) = there.iter().find(|&start| *start >= first && !is_ours(start)) {
            return Err(CopyError::AnotherLog { path: segment_path(to, start) });
        }
        if there.iter().any(|start| *start >= first) {
            return Ok(None);
        }
        let Some(&newest) = there.last() else { return Ok(None) };
        let path = segment_path(to, newest);
        let file = to.disk().open(&path).map_err(DiskError::at("open", &path))?;
        let mut bytes = Vec::new();
        read_file(&*file, &path, &mut bytes)?;
        let end = frame::walk(&bytes, newest).position;
        match end.cmp(&first) {
            Ordering::Less => Ok(Some((end, first))),
            Ordering::Equal => Ok(None),
            Ordering::Greater => Err(CopyError::AnotherLog { path }),
        }
    }

    /// Copies what `to` does not have. Damage before `needed_from`, in what a snapshot stands for, is no error: that
    /// segment is left out.
    pub fn copy_to(&self, to: &DataDir, needed_from: u64) -> Result<Copied, CopyError> {
        let mut copied = Copied { gap: self.gap_behind(to)?, ..Copied::default() };
        let mut bytes = Vec::new();
        for (index, (start, path, file)) in self.files.iter().enumerate() {
            let next = self.files.get(index + 1).map(|&(next, ..)| next);
            if next.is_some() && is_copied(to, *start, &**file, path)? {
                continue;
            }
            read_file(&**file, path, &mut bytes)?;
            let walk = match frame::check_segment_header(&bytes, *start) {
                Ok(()) => Some(frame::walk(&bytes, *start)),
                Err(_) => None,
            };
            let reaches = walk.as_ref().is_some_and(|walk| next.is_none_or(|next| walk.position == next));
            let Some(walk) = walk.filter(|_| reaches) else {
                if next.is_some_and(|next| next <= needed_from) {
                    continue;
                }
                return Err(CopyError::Damaged {
                    path: path.clone(),
                    offset: walk.map_or(0, |walk| walk.offset as u64),
                });
            };
            // What a write under way leaves is nothing that was durable; this is.
            let is_damaged = next.is_none()
                && matches!(frame::look_beyond(&bytes, *start, &walk), Beyond::Durable { .. } | Beyond::Undecided);
            if is_damaged {
                return Err(CopyError::Damaged { path: path.clone(), offset: walk.offset as u64 });
            }
            let written_bytes = put(to, *start, &bytes[..walk.offset])?;
            copied.segments += u64::from(written_bytes > 0);
            copied.len_bytes += written_bytes;
        }
        if copied.segments > 0 {
            to.disk().sync_dir(to.log()).map_err(DiskError::at("sync directory", to.log()))?;
        }
        Ok(copied)
    }
}

/// Removes the segments that hold nothing at or after `before`; answers how many.
pub fn trim(dir: &DataDir, before: u64) -> Result<usize, DiskError> {
    let starts = starts(dir)?;
    let superfluous = starts.iter().skip(1).take_while(|&&next| next <= before).count();
    for &start in &starts[..superfluous] {
        let path = segment_path(dir, start);
        dir.disk().remove(&path).map_err(DiskError::at("remove", &path))?;
    }
    if superfluous > 0 {
        dir.disk().sync_dir(dir.log()).map_err(DiskError::at("sync directory", dir.log()))?;
    }
    Ok(superfluous)
}

/// Does `to` have all of a segment that is not appended to any more?
fn is_copied(to: &DataDir, start: u64, file: &dyn DiskFile, path: &Path) -> Result<bool, DiskError> {
    let there_path = segment_path(to, start);
    let there = match to.disk().open(&there_path) {
        Ok(there) => there,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(DiskError::at("open", &there_path)(error)),
    };
    let len_bytes = file.len_bytes().map_err(DiskError::at("read", path))?;
    if there.len_bytes().map_err(DiskError::at("read", &there_path))? != len_bytes {
        return Ok(false);
    }
    let from = len_bytes.saturating_sub(COMPARED_BYTES);
    let (mut ours, mut theirs) = (vec![0; (len_bytes - from) as usize], vec![0; (len_bytes - from) as usize]);
    file.read_at(from, &mut ours).map_err(DiskError::at("read", path))?;
    there.read_at(from, &mut theirs).map_err(DiskError::at("read", &there_path))?;
    Ok(ours == theirs)
}

/// Sees to it that `to` has these whole frames of the segment; answers how many bytes were written.
fn put(to: &DataDir, start: u64, bytes: &[u8]) -> Result<u64, CopyError> {
    let path = segment_path(to, start);
    let mut file = match to.disk().open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let unfinished = path.with_extension("log.tmp");
            let mut file = to.disk().create(&unfinished).map_err(DiskError::at("create", &unfinished))?;
            file.write_at(0, bytes).map_err(DiskError::at("write", &unfinished))?;
            file.sync_all().map_err(DiskError::at("sync", &unfinished))?;
            to.disk().rename(&unfinished, &path).map_err(DiskError::at("rename", &unfinished))?;
            return Ok(bytes.len() as u64);
        }
        Err(error) => return Err(DiskError::at("open", &path)(error).into()),
    };
    let mut there = Vec::new();
    read_file(&*file, &path, &mut there)?;
    let whole = frame::check_segment_header(&there, start).map(|()| frame::walk(&there, start).offset);
    let Some(whole) = whole.ok().filter(|&whole| bytes.get(..whole) == Some(&there[..whole])) else {
        return Err(CopyError::AnotherLog { path });
    };
    // Behind the frames stands at most what an earlier copy that was broken off has left.
    if there.len() > whole {
        file.truncate(whole as u64).map_err(DiskError::at("cut", &path))?;
    }
    if bytes.len() > whole {
        file.write_at(whole as u64, &bytes[whole..]).map_err(DiskError::at("write", &path))?;
    }
    if there.len() != bytes.len() || whole != bytes.len() {
        file.sync_all().map_err(DiskError::at("sync", &path))?;
    }
    Ok((bytes.len() - whole) as u64)
}
