//! One column of a chunk: numbers stored as their distance from a base, all in the same number of bytes.
//!
//! A [`Frame`] says how (base and width), a [`View`] reads. Width 0 means that every value is the base, and then there
//! are no bytes at all. Single values are read and written eight bytes at a time and masked, without a branch on the
//! width, which a processor could not foresee; so [`PADDING_BYTES`] follow the last column of a buffer. Nothing here
//! allocates or knows what a column means.

use std::hint::select_unpredictable;

use crate::limits::PENDING_PER_CHUNK;

/// The values of one column, unpacked. Only the first `len` mean anything.
pub(super) type Values = [u64; PENDING_PER_CHUNK];

/// What must follow a column, be it other columns or nothing of meaning.
pub(super) const PADDING_BYTES: usize = 8;

/// How a column's values are packed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Frame {
    /// What is added to each stored number. Not above any value of the column.
    pub base: u64,
    /// Bytes of one stored number: 0, 1, 2, 4 or 8.
    pub width: u8,
}

/// The greatest number that so many bytes hold; only the five widths count.
const GREATEST: [u64; 9] = [
    0,
    u8::MAX as u64,
    u16::MAX as u64,
    u16::MAX as u64,
    u32::MAX as u64,
    u32::MAX as u64,
    u32::MAX as u64,
    u32::MAX as u64,
    u64::MAX,
];

impl Frame {
    /// The greatest number that can be stored, which is also the mask of its bytes.
    #[inline]
    fn greatest(self) -> u64 {
        GREATEST[usize::from(self.width)]
    }

    /// The smallest frame for values between `low` and `high`.
    #[inline]
    pub fn tight(low: u64, high: u64) -> Frame {
        let distance = high - low;
        let width = match distance {
            0 => 0,
            1..=0xff => 1,
            0x100..=0xffff => 2,
            0x1_0000..=0xffff_ffff => 4,
            _ => 8,
        };
        Frame { base: low, width }
    }

    /// The frame that takes over when values between `low` and `high` no longer fit this one. When it would be of the
    /// same width with a base further up, and nearly used up again, it gets the next width: a window of values that
    /// moves on must not be packed anew at every step.
    #[inline]
    pub fn successor(self, low: u64, high: u64) -> Frame {
        let mut frame = Frame::tight(low, high);
        let moved_up = frame.width == self.width && frame.base > self.base;
        if moved_up && frame.width < 8 && high - low > frame.greatest() / 2 {
            frame.width *= 2;
        }
        frame
    }

    /// Can every value between `low` and `high` be stored?
    #[inline]
    pub fn holds(self, low: u64, high: u64) -> bool {
        low >= self.base && high - self.base <= self.greatest()
    }

    /// Is this one of the five widths?
    pub fn is_valid(self) -> bool {
        matches!(self.width, 0 | 1 | 2 | 4 | 8)
    }

    /// Packs `value` as number `index`. A value outside the frame is stored cut off; the caller then overwrites it.
    #[inline]
    pub fn write(self, bytes: &mut [u8], index: usize, value: u64) {
        let mask = self.greatest();
        let place = bytes[index * usize::from(self.width)..].first_chunk_mut::<8>().expect("padding");
        let others = u64::from_le_bytes(*place) & !mask;
        *place = (others | (value.wrapping_sub(self.base) & mask)).to_le_bytes();
    }

    /// Packs `values` from the front of `bytes` on, which has room for them.
    pub fn write_all(self, bytes: &mut [u8], values: &[u64]) {
        let base = self.base;
        match self.width {
            0 => {}
            1 => {
                for (place, value) in bytes.iter_mut().zip(values) {
                    *place = value.wrapping_sub(base) as u8;
                }
            }
            2 => {
                for (place, value) in bytes.as_chunks_mut::<2>().0.iter_mut().zip(values) {
                    *place = (value.wrapping_sub(base) as u16).to_le_bytes();
                }
            }
            4 => {
                for (place, value) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(values) {
                    *place = (value.wrapping_sub(base) as u32).to_le_bytes();
                }
            }
            _ => {
                for (place, value) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(values) {
                    *place = value.wrapping_sub(base).to_le_bytes();
                }
            }
        }
    }
}

/// A packed column to read from.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub frame: Frame,
    /// `len * width` bytes, and at least the padding.
    pub bytes: &'a [u8],
    /// Number of values.
    pub len: usize,
}

impl<'a> View<'a> {
    /// The value at `index`, which is below `len`.
    #[inline]
    pub fn get(&self, index: usize) -> u64 {
        debug_assert!(index < self.len);
        let place = self.bytes[index * usize::from(self.frame.width)..].first_chunk::<8>().expect("padding");
        self.frame.base.wrapping_add(u64::from_le_bytes(*place) & self.frame.greatest())
    }

    /// The values' own bytes.
    #[inline]
    pub fn packed(&self) -> &'a [u8] {
        &self.bytes[..self.len * usize::from(self.frame.width)]
    }

    /// The smallest value; `u64::MAX` of an empty column.
    pub fn min(&self) -> u64 {
        if self.len == 0 {
            return u64::MAX;
        }
        let number = match self.frame.width {
            0 => 0,
            1 => u64::from(self.packed().iter().fold(u8::MAX, |least, n| least.min(*n))),
            2 => {
                let numbers = self.packed().as_chunks::<2>().0;
                u64::from(numbers.iter().fold(u16::MAX, |least, n| least.min(u16::from_le_bytes(*n))))
            }
            4 => {
                let numbers = self.packed().as_chunks::<4>().0;
                u64::from(numbers.iter().fold(u32::MAX, |least, n| least.min(u32::from_le_bytes(*n))))
            }
            _ => {
                let numbers = self.packed().as_chunks::<8>().0;
                numbers.iter().fold(u64::MAX, |least, n| least.min(u64::from_le_bytes(*n)))
            }
        };
        self.frame.base.wrapping_add(number)
    }

    /// Is any value equal to `value`?
    pub fn contains(&self, value: u64) -> bool {
        if self.len == 0 || !self.frame.holds(value, value) {
            return false;
        }
        let number = value - self.frame.base;
        match self.frame.width {
            0 => true,
            1 => memchr::memchr(number as u8, self.packed()).is_some(),
            _ => (0..self.len).any(|index| self.get(index) == value),
        }
    }

    /// Of a column that ascends between `from` and `to`: the first index there whose value is not below `value`, or `to`.
    #[inline]
    pub fn lower_bound(&self, from: usize, to: usize, value: u64) -> usize {
        if value <= self.frame.base {
            return from;
        }
        if value - self.frame.base > self.frame.greatest() {
            return to;
        }
        let (mut first, mut size) = (from, to - from);
        while size > 1 {
            let half = size / 2;
            first = select_unpredictable(self.get(first + half) < value, first + half, first);
            size -= half;
        }
        first + usize::from(size == 1 && self.get(first) < value)
    }

    /// Unpacks every value.
    pub fn read_all(&self, values: &mut Values) {
        let base = self.frame.base;
        let values = &mut values[..self.len];
        match self.frame.width {
            0 => values.fill(base),
            1 => {
                for (value, n) in values.iter_mut().zip(self.packed()) {
                    *value = base.wrapping_add(u64::from(*n));
                }
            }
            2 => {
                for (value, n) in values.iter_mut().zip(self.packed().as_chunks::<2>().0) {
                    *value = base.wrapping_add(u64::from(u16::from_le_bytes(*n)));
                }
            }
            4 => {
                for (value, n) in values.iter_mut().zip(self.packed().as_chunks::<4>().0) {
                    *value = base.wrapping_add(u64::from(u32::from_le_bytes(*n)));
                }
            }
            _ => {
                for (value, n) in values.iter_mut().zip(self.packed().as_chunks::<8>().0) {
                    *value = base.wrapping_add(u64::from_le_bytes(*n));
                }
            }
        }
    }
}

/// Smallest and greatest of `values`; the empty slice gives (`u64::MAX`, 0).
pub(super) fn extremes(values: &[u64]) -> (u64, u64) {
    values.iter().fold((u64::MAX, 0), |(low, high), v| (low.min(*v), high.max(*v)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_holds_its_extremes() {
        for (distance, width) in
            [(0, 0), (1, 1), (255, 1), (256, 2), (65_535, 2), (65_536, 4), (u64::from(u32::MAX), 4), (1 << 32, 8)]
        {
            for low in [0, 7, u64::MAX - distance] {
                let frame = Frame::tight(low, low + distance);
                assert_eq!(frame, Frame { base: low, width });
                let mut bytes = vec![0; usize::from(width) * 3 + PADDING_BYTES];
                frame.write_all(&mut bytes, &[low, low + distance, low + distance]);
                frame.write(&mut bytes, 1, low);
                let view = View { frame, bytes: &bytes, len: 3 };
                assert_eq!([view.get(0), view.get(1), view.get(2)], [low, low, low + distance]);
                assert_eq!(view.min(), low);
                assert!(view.contains(low + distance));
                assert_eq!(view.lower_bound(0, 3, low), 0);
                if distance > 0 {
                    assert_eq!(view.lower_bound(0, 3, low + 1), 2);
                    assert_eq!(view.contains(low + 1), distance == 1);
                }
                if let Some(above) = (low + distance).checked_add(1) {
                    assert_eq!(view.lower_bound(0, 3, above), 3);
                    assert!(!view.contains(above));
                }
                let mut values = [0; PENDING_PER_CHUNK];
                view.read_all(&mut values);
                assert_eq!(values[..3], [low, low, low + distance]);
            }
        }
    }

    #[test]
    fn a_moving_window_gets_room() {
        let frame = Frame { base: 10, width: 1 };
        assert_eq!(frame.successor(100, 300), Frame { base: 100, width: 2 });
        assert_eq!(frame.successor(100, 150), Frame { base: 100, width: 1 });
        assert_eq!(frame.successor(3, 250), Frame { base: 3, width: 1 });
    }
}
