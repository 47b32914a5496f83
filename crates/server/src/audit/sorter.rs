//! Sorts more than fits into memory: pairs of bytes, by the first and then the second. What is over a bound goes to files in
//! sorted runs, which are merged when they are read.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

/// What is kept in memory before a run is written, in bytes.
const RUN_BYTES: usize = 64 << 20;

/// What a pair takes beside its bytes, in bytes.
const PAIR_BYTES: usize = 48;

/// Bytes read ahead of each run.
const BUFFER_BYTES: usize = 256 << 10;

type Pair = (Vec<u8>, Vec<u8>);

/// Collects pairs.
pub(super) struct Sorter {
    folder: PathBuf,
    run_bytes: usize,
    pairs: Vec<Pair>,
    used_bytes: usize,
    runs: Vec<File>,
}

impl Sorter {
    /// Files are made in `folder`, and have no name there: they are gone when they are closed.
    pub fn new(folder: &Path) -> Sorter {
        Sorter { folder: folder.into(), run_bytes: RUN_BYTES, pairs: Vec::new(), used_bytes: 0, runs: Vec::new() }
    }

    /// Takes a pair.
    pub fn push(&mut self, first: &[u8], second: &[u8]) -> io::Result<()> {
        self.used_bytes += first.len() + second.len() + PAIR_BYTES;
        self.pairs.push((first.into(), second.into()));
        if self.used_bytes >= self.run_bytes {
            self.write_run()?;
        }
        Ok(())
    }

    fn write_run(&mut self) -> io::Result<()> {
        self.pairs.sort_unstable();
        let name = self.folder.join(format!("run-{}-{:p}-{}", std::process::id(), self, self.runs.len()));
        let file = File::options().read(true).write(true).create_new(true).open(&name)?;
        // Open, it needs no name; so nothing is left behind.
        std::fs::remove_file(&name)?;
        let mut out = BufWriter::new(file);
        for (first, second) in self.pairs.drain(..) {
            for part in [&first, &second] {
                let len = u32::try_from(part.len()).map_err(|_| io::Error::other("more than 4 GiB in one piece"))?;
                out.write_all(&len.to_le_bytes())?;
            }
            out.write_all(&first)?;
            out.write_all(&second)?;
        }
        let mut file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        self.runs.push(file);
        self.used_bytes = 0;
        Ok(())
    }

    /// All pairs in order.
    pub fn sorted(mut self) -> io::Result<Sorted> {
        self.pairs.sort_unstable();
        let mut sorted = Sorted { runs: Vec::new(), heads: BinaryHeap::new() };
        for file in std::mem::take(&mut self.runs) {
            sorted.runs.push(Run::File(BufReader::with_capacity(BUFFER_BYTES, file)));
        }
        sorted.runs.push(Run::Memory(std::mem::take(&mut self.pairs).into_iter()));
        for run in 0..sorted.runs.len() {
            if let Some(pair) = sorted.runs[run].next()? {
                sorted.heads.push(Reverse((pair, run)));
            }
        }
        Ok(sorted)
    }
}

enum Run {
    File(BufReader<File>),
    Memory(std::vec::IntoIter<Pair>),
}

impl Run {
    fn next(&mut self) -> io::Result<Option<Pair>> {
        let file = match self {
            Run::Memory(pairs) => return Ok(pairs.next()),
            Run::File(file) => file,
        };
        let mut lengths = [0; 8];
        match file.read_exact(&mut lengths) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        }
        let [a, b, c, d, e, f, g, h] = lengths;
        let mut first = vec![0; u32::from_le_bytes([a, b, c, d]) as usize];
        let mut second = vec![0; u32::from_le_bytes([e, f, g, h]) as usize];
        file.read_exact(&mut first)?;
        file.read_exact(&mut second)?;
        Ok(Some((first, second)))
    }
}

/// Pairs in order.
pub(super) struct Sorted {
    runs: Vec<Run>,
    heads: BinaryHeap<Reverse<(Pair, usize)>>,
}

impl Iterator for Sorted {
    type Item = io::Result<Pair>;

    fn next(&mut self) -> Option<Self::Item> {
        let Reverse((pair, run)) = self.heads.pop()?;
        match self.runs[run].next() {
            Ok(Some(next)) => self.heads.push(Reverse((next, run))),
            Ok(None) => {}
            Err(error) => return Some(Err(error)),
        }
        Some(Ok(pair))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_on_disk_and_what_is_left_in_memory_come_in_one_order() {
        let folder = tempfile::TempDir::new().unwrap();
        let mut sorter = Sorter { run_bytes: 2000, ..Sorter::new(folder.path()) };
        // 37 has no divisor in common with 1000: every number once, in disorder.
        for n in 0..1000_u32 {
            let n = n * 37 % 1000;
            sorter.push(format!("{:03}", n / 2).as_bytes(), n.to_string().as_bytes()).unwrap();
        }
        assert!(sorter.runs.len() > 10);
        assert_eq!(folder.path().read_dir().unwrap().count(), 0, "the files have no names");
        let mut wanted: Vec<Pair> =
            (0..1000_u32).map(|n| (format!("{:03}", n / 2).into(), n.to_string().into())).collect();
        wanted.sort();
        assert_eq!(sorter.sorted().unwrap().collect::<io::Result<Vec<_>>>().unwrap(), wanted);
    }
}
