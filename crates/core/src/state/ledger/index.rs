//! Which rows tell what became of a work id, or of an entry, by the hash of either: a hash table that grows by one bucket at a time, so that no
//! insertion takes long, and whose buckets are shared with a snapshot until they change.
//!
//! A place is eight bytes: a part of the hash, which also decides its bucket, and the low half of the row's number. It says
//! where to look, not what is there: whoever asks compares the rows.

use std::sync::Arc;

use smallvec::SmallVec;

/// Places in a bucket on average before there is one more of them.
const PER_BUCKET: usize = 24;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    tag: u32,
    row: u32,
}

type Bucket = Vec<Place>;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    buckets: Vec<Arc<Bucket>>,
    len: usize,
}

/// The bucket of a tag among `count`: by its remainder modulo the least power of two that is not below `count`, or half
/// of that.
fn bucket_of(tag: u32, count: usize) -> usize {
    let power = count.next_power_of_two();
    let at = tag as usize & (power - 1);
    if at < count { at } else { at & (power / 2 - 1) }
}

fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}

impl Index {
    /// It knows nothing.
    pub const NEW: Index = Index { buckets: Vec::new(), len: 0 };

    /// How many rows it knows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Adds a row.
    pub fn insert(&mut self, hash: u64, row: u64) {
        if self.len >= self.buckets.len() * PER_BUCKET {
            self.grow();
        }
        let at = bucket_of(tag(hash), self.buckets.len());
        Arc::make_mut(&mut self.buckets[at]).push(Place { tag: tag(hash), row: row as u32 });
        self.len += 1;
    }

    /// One bucket more, which takes its share of the one that had it until now.
    fn grow(&mut self) {
        let new = self.buckets.len();
        if new == 0 {
            self.buckets.push(Arc::default());
            return;
        }
        let old = new - (new + 1).next_power_of_two() / 2;
        let stays = |place: &&Place| bucket_of(place.tag, new + 1) == old;
        let all = &self.buckets[old];
        let count = all.iter().filter(stays).count();
        let (mut kept, mut moved) = (Bucket::with_capacity(count), Bucket::with_capacity(all.len() - count));
        all.iter().for_each(|place| if stays(&place) { kept.push(*place) } else { moved.push(*place) });
        self.buckets[old] = Arc::new(kept);
        self.buckets.push(Arc::new(moved));
    }

    /// Takes a row out.
    pub fn remove(&mut self, hash: u64, row: u64) {
        if self.buckets.is_empty() {
            return;
        }
        let at = bucket_of(tag(hash), self.buckets.len());
        let Some(place) = self.buckets[at].iter().position(|place| place.row == row as u32) else { return };
        let bucket = Arc::make_mut(&mut self.buckets[at]);
        bucket.swap_remove(place);
        if bucket.len() * 4 <= bucket.capacity() {
            bucket.shrink_to(bucket.len() * 2);
        }
        self.len -= 1;
        self.shrink();
    }

    /// One bucket less, where they are nearly empty.
    fn shrink(&mut self) {
        if self.len * 2 > self.buckets.len() * PER_BUCKET {
            return;
        }
        let Some(last) = self.buckets.pop() else { return };
        let count = self.buckets.len();
        if count == 0 {
            if !last.is_empty() {
                self.buckets.push(last);
            }
            return;
        }
        let into = count - (count + 1).next_power_of_two() / 2;
        if !last.is_empty() {
            Arc::make_mut(&mut self.buckets[into]).extend_from_slice(&last);
        }
        if self.buckets.len() * 4 <= self.buckets.capacity() {
            self.buckets.shrink_to(self.buckets.len() * 2);
        }
    }

    /// The rows that may have this hash, by the low half of their numbers.
    pub fn find(&self, hash: u64) -> SmallVec<[u32; 2]> {
        if self.buckets.is_empty() {
            return SmallVec::new();
        }
        let bucket = &self.buckets[bucket_of(tag(hash), self.buckets.len())];
        let is_it = |place: &&Place| place.tag == tag(hash);
        // Most that is asked for is not there. A look without a way out in the middle takes four places at a time.
        if !bucket.iter().fold(false, |any, place| any | is_it(&place)) {
            return SmallVec::new();
        }
        bucket.iter().filter(is_it).map(|place| place.row).collect()
    }

    /// Frees a part, at most `most` buckets, of what nobody uses any more; answers whether there is more.
    pub fn free_some(&mut self, most: usize) -> bool {
        self.buckets.truncate(self.buckets.len().saturating_sub(most));
        !self.buckets.is_empty()
    }

    /// Memory that it takes, in bytes, without the allocator's share.
    pub fn memory_bytes(&self) -> usize {
        let header = size_of::<Bucket>() + 2 * size_of::<usize>();
        let buckets = self.buckets.iter().map(|bucket| header + bucket.capacity() * size_of::<Place>());
        buckets.sum::<usize>() + self.buckets.capacity() * size_of::<Arc<Bucket>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::Random;

    #[test]
    fn what_was_put_in_is_found_while_it_grows_and_shrinks() {
        let mut random = Random(3);
        let hashes: Vec<u64> = (0..5000).map(|_| random.next()).collect();
        let mut index = Index::default();
        let found = |index: &Index, row: usize| index.find(hashes[row]).contains(&(row as u32));
        for (row, &hash) in hashes.iter().enumerate() {
            index.insert(hash, row as u64);
            assert!(found(&index, row) && found(&index, row / 2));
        }
        assert!((0..hashes.len()).all(|row| found(&index, row)));
        let full = (index.memory_bytes(), index.buckets.len());
        assert!(full.1 > 5000 / PER_BUCKET && full.0 < 5000 * 24);
        for (row, &hash) in hashes.iter().enumerate() {
            index.remove(hash, row as u64);
            assert!(!found(&index, row));
            assert!((row + 1..hashes.len()).step_by(97).all(|row| found(&index, row)));
        }
        assert_eq!((index.len(), index.buckets.len()), (0, 0));
    }
}
