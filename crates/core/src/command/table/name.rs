//! Names as numbers: the bytes of a name in lower case, its length in the last byte. Two names are the same when the numbers
//! are, so a look-up folds the case once and compares no bytes. Names of more than 15 bytes do not exist.

/// Longest name.
const NAME_MAX_BYTES: usize = 15;

/// `name` as a number, whatever the case of its letters; `None` when it cannot be a name.
///
/// The bytes are read in whole words that may overlap, and what was read twice is shifted out: quicker than a copy of
/// variable length, which is a call.
#[inline]
pub(super) const fn pack(name: &[u8]) -> Option<u128> {
    let len = name.len();
    let (head, tail) = match len {
        9..=NAME_MAX_BYTES => (eight(name, 0), eight(name, len - 8) >> (8 * (16 - len))),
        8 => (eight(name, 0), 0),
        4..8 => (four(name, 0) | (four(name, len - 4) >> (8 * (8 - len))) << 32, 0),
        // First, middle and last are all there are.
        1..4 => {
            let (middle, last) = (len / 2, len - 1);
            (name[0] as u64 | (name[middle] as u64) << (8 * middle) | (name[last] as u64) << (8 * last), 0)
        }
        _ => return None,
    };
    Some(lower(head) as u128 | ((lower(tail) | (len as u64) << 56) as u128) << 64)
}

const fn eight(name: &[u8], at: usize) -> u64 {
    match name.split_at(at).1.first_chunk() {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => unreachable!(),
    }
}

const fn four(name: &[u8], at: usize) -> u64 {
    match name.split_at(at).1.first_chunk() {
        Some(bytes) => u32::from_le_bytes(*bytes) as u64,
        None => unreachable!(),
    }
}

/// Eight bytes in lower case: the bit of case is set in those, and only those, that are `A` to `Z`.
const fn lower(word: u64) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let low_bits = word & (0x7f * EACH);
    // The high bit of a byte: not below `A`; above `Z`; ASCII. No sum carries into the next byte.
    let from_a = low_bits + (0x80 - b'A' as u64) * EACH;
    let beyond_z = low_bits + (0x7f - b'Z' as u64) * EACH;
    let upper = (from_a ^ beyond_z) & !word & (0x80 * EACH);
    word | (upper >> 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same, byte by byte.
    fn plain(name: &[u8]) -> u128 {
        let mut bytes = [0; 16];
        bytes[..name.len()].copy_from_slice(name);
        bytes.make_ascii_lowercase();
        bytes[15] = name.len() as u8;
        u128::from_le_bytes(bytes)
    }

    #[test]
    fn every_length_and_every_byte() {
        for len in 1..=15 {
            for byte in 0..=255 {
                for at in 0..len {
                    let mut name: Vec<u8> = (0..len as u8).map(|i| b'A' + 3 * i).collect();
                    name[at] = byte;
                    assert_eq!(pack(&name), Some(plain(&name)), "{name:?}");
                }
            }
        }
        assert_eq!((pack(b""), pack(&[b'a'; 16])), (None, None));
    }
}
