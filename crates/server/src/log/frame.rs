//! The bytes of a segment: its header and its frames, drawn in `docs/formats.md`.
//!
//! Invariants: all integers are little-endian; a frame's mark and checksum depend on its position, so stale or shifted
//! bytes never pass for a frame; a frame has at least one byte of payload; `segment start <= synced <= position`.
//!
//! Nothing here touches a file, and nothing here allocates for a length that it has read.

/// First bytes of every segment.
const MAGIC: [u8; 8] = *b"IMPELLOG";

/// The format that we write, and the only one that we read.
pub(super) const VERSION: u32 = 1;

/// Where the first frame of a segment begins. The header has a page of its own: no append ever rewrites its sector.
pub(super) const FRAMES_AT: usize = 4096;

/// Bytes of the segment header proper; zeros follow it up to `FRAMES_AT`.
const SEGMENT_HEADER_BYTES: usize = 24;

/// Bytes of a frame before its payload.
pub(super) const FRAME_HEADER_BYTES: usize = 28;

/// Bytes of the longest segment there can be: one frame of the greatest length, which has a segment for itself.
pub(super) const SEGMENT_MAX_BYTES: u64 = FRAMES_AT as u64 + FRAME_HEADER_BYTES as u64 + u32::MAX as u64;

/// What the low half of a position is mixed with to make a mark: a frame at position 0 must not look like zeros.
const MARK_MIX: u32 = 0x49b1_6d7c;

/// Why a segment's header could not be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum HeaderFault {
    /// Not what we wrote, or for another position.
    Bad,
    /// Whole, but of a format that we do not know.
    Foreign(u32),
}

/// The header of a segment whose first byte of payload has the position `start`, with the zeros after it.
pub(super) fn segment_header(start: u64) -> [u8; FRAMES_AT] {
    let mut page = [0; FRAMES_AT];
    page[..8].copy_from_slice(&MAGIC);
    page[8..12].copy_from_slice(&VERSION.to_le_bytes());
    page[16..24].copy_from_slice(&start.to_le_bytes());
    let crc = header_crc(&page);
    page[12..16].copy_from_slice(&crc.to_le_bytes());
    page
}

fn header_crc(page: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&page[..12]), &page[16..SEGMENT_HEADER_BYTES])
}

/// Checks the header of the segment that should begin at `start`.
pub(super) fn check_segment_header(segment: &[u8], start: u64) -> Result<(), HeaderFault> {
    if segment.len() < FRAMES_AT || segment[..8] != MAGIC || u32_at(segment, 12) != header_crc(segment) {
        return Err(HeaderFault::Bad);
    }
    // Magic, version, checksum and position keep their places in every later format, so this order tells a newer
    // format from a damaged version number.
    match u32_at(segment, 8) {
        VERSION if u64_at(segment, 16) == start => Ok(()),
        VERSION => Err(HeaderFault::Bad),
        version => Err(HeaderFault::Foreign(version)),
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// The first four bytes of a frame at this position.
fn mark(position: u64) -> u32 {
    position as u32 ^ MARK_MIX
}

/// The bytes before the payload. The payload is not empty and at most `u32::MAX` long.
pub(super) fn frame_header(position: u64, now_ms: u64, synced: u64, payload: &[u8]) -> [u8; FRAME_HEADER_BYTES] {
    debug_assert!(!payload.is_empty() && payload.len() <= u32::MAX as usize && synced <= position);
    let mut header = [0; FRAME_HEADER_BYTES];
    header[..4].copy_from_slice(&mark(position).to_le_bytes());
    header[4..8].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    header[12..20].copy_from_slice(&now_ms.to_le_bytes());
    header[20..28].copy_from_slice(&synced.to_le_bytes());
    let crc = frame_crc(position, &header, payload);
    header[8..12].copy_from_slice(&crc.to_le_bytes());
    header
}

/// Over the position, the header without this field, and the payload.
fn frame_crc(position: u64, header: &[u8], payload: &[u8]) -> u32 {
    let mut bound = [0; FRAME_HEADER_BYTES + 4];
    bound[..8].copy_from_slice(&position.to_le_bytes());
    bound[8..16].copy_from_slice(&header[..8]);
    bound[16..32].copy_from_slice(&header[12..FRAME_HEADER_BYTES]);
    crc32c::crc32c_append(crc32c::crc32c(&bound), payload)
}

/// A whole frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Frame<'a> {
    /// The time the writer was given.
    pub now_ms: u64,
    /// The position up to which everything was known to be durable when the frame was written.
    pub synced: u64,
    /// What was appended.
    pub payload: &'a [u8],
}

impl Frame<'_> {
    /// Bytes the frame takes in the file.
    pub fn len_bytes(&self) -> usize {
        FRAME_HEADER_BYTES + self.payload.len()
    }
}

/// What a frame header claims, when it could be one: everything but the checksum has been looked at.
fn plausible(segment: &[u8], offset: usize, start: u64, position: u64) -> Option<Frame<'_>> {
    let header = segment.get(offset..offset.checked_add(FRAME_HEADER_BYTES)?)?;
    let len_bytes = u32_at(header, 4) as usize;
    let synced = u64_at(header, 20);
    if u32_at(header, 0) != mark(position) || len_bytes == 0 || synced < start || synced > position {
        return None;
    }
    let payload_at = offset + FRAME_HEADER_BYTES;
    let payload = segment.get(payload_at..payload_at.checked_add(len_bytes)?)?;
    Some(Frame { now_ms: u64_at(header, 12), synced, payload })
}

fn is_intact(segment: &[u8], offset: usize, position: u64, frame: &Frame<'_>) -> bool {
    let header = &segment[offset..offset + FRAME_HEADER_BYTES];
    u32_at(header, 8) == frame_crc(position, header, frame.payload)
}

/// The frame at `offset` of a segment that begins at position `start`, if there is a whole one for `position`.
pub(super) fn frame_at(segment: &[u8], offset: usize, start: u64, position: u64) -> Option<Frame<'_>> {
    plausible(segment, offset, start, position).filter(|frame| is_intact(segment, offset, position, frame))
}

/// How far a segment can be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Walk {
    /// The position after the last whole frame.
    pub position: u64,
    /// Where in the segment that is.
    pub offset: usize,
    /// Whole frames.
    pub frames: u64,
    /// What the last whole frame says was durable; the segment's start if there is none.
    pub synced: u64,
    /// Bytes from `offset` to the last one that is not zero.
    pub stray_bytes: usize,
}

/// Reads whole frames from the beginning of the segment until there is none.
pub(super) fn walk(segment: &[u8], start: u64) -> Walk {
    let mut walk = Walk { position: start, offset: FRAMES_AT, frames: 0, synced: start, stray_bytes: 0 };
    while let Some(frame) = frame_at(segment, walk.offset, start, walk.position) {
        walk.position += frame.payload.len() as u64;
        walk.offset += frame.len_bytes();
        walk.frames += 1;
        walk.synced = frame.synced;
    }
    walk.stray_bytes = len_without_zeros(&segment[walk.offset.min(segment.len())..]);
    walk
}

/// The length up to the last byte that is not zero. Looks at blocks first: after a clean stop nearly a whole segment of
/// zeros is behind the frames.
pub(super) fn len_without_zeros(bytes: &[u8]) -> usize {
    const BLOCK_BYTES: usize = 4096;
    let last_block = bytes.chunks(BLOCK_BYTES).rposition(|block| block.iter().fold(0, |any, &byte| any | byte) != 0);
    let Some(index) = last_block else { return 0 };
    let end = bytes.len().min((index + 1) * BLOCK_BYTES);
    bytes[..end].iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1)
}

/// The offset of the first frame at or after `position`, in a segment that `walk` has read up to `walk.offset`.
pub(super) fn offset_of(segment: &[u8], start: u64, walk: &Walk, position: u64) -> usize {
    let (mut offset, mut at) = (FRAMES_AT, start);
    while offset < walk.offset && at < position {
        let len_bytes = u32_at(segment, offset + 4);
        at += u64::from(len_bytes);
        offset += FRAME_HEADER_BYTES + len_bytes as usize;
    }
    offset
}

/// What lies behind a place where a segment could not be read on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Beyond {
    /// No whole frame.
    Nothing,
    /// Whole frames, none of which knew anything after the damaged place to be durable.
    NeverSynced,
    /// A whole frame at `position` that knew everything before `synced` to be durable, which is after the damaged place.
    Durable {
        /// The position of that frame.
        position: u64,
        /// What it knew.
        synced: u64,
    },
    /// So much looks like a frame and is none that the search was given up.
    Undecided,
}

/// Looks for whole frames after the place where `walk` stopped.
pub(super) fn look_beyond(segment: &[u8], start: u64, walk: &Walk) -> Beyond {
    let mut search = Search::new(segment, start);
    let end = walk.offset + walk.stray_bytes;
    let mut found = Beyond::Nothing;
    let mut from = walk.offset + FRAME_HEADER_BYTES + 1;
    loop {
        match search.next(walk.offset, walk.position, from, end) {
            Found::Frame { position, frame, .. } if frame.synced > walk.position => {
                return Beyond::Durable { position, synced: frame.synced };
            }
            Found::Frame { offset, frame, .. } => {
                found = Beyond::NeverSynced;
                from = offset + frame.len_bytes();
            }
            Found::Nothing => return found,
            Found::TooMuch => return Beyond::Undecided,
        }
    }
}

/// What a search for a frame behind damage came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found<'a> {
    /// A whole one.
    Frame {
        /// Where it begins in the segment.
        offset: usize,
        /// Its position.
        position: u64,
        /// It.
        frame: Frame<'a>,
    },
    /// None.
    Nothing,
    /// So much looks like a frame and is none that the search was given up.
    TooMuch,
}

/// A search for whole frames behind damage in one segment.
///
/// How many frames are lost in between is unknown, and with it the position that belongs to an offset. But a mark gives
/// the low half of one, and the distance from the damage then has to be that many payload bytes and a whole number of
/// headers. With the bounds on length and `synced` this leaves so few candidates that checksums cost little; against
/// bytes made to look like frames, no more than a few times the segment's length is summed.
pub(super) struct Search<'a> {
    segment: &'a [u8],
    start: u64,
    allowance_bytes: usize,
}

impl<'a> Search<'a> {
    /// In a segment that begins at position `start`.
    pub fn new(segment: &'a [u8], start: u64) -> Self {
        Search { segment, start, allowance_bytes: segment.len().saturating_mul(4) }
    }

    /// The next whole frame that begins at or after `from` and before `end`, when reading stopped at `offset`, where the frame
    /// at `position` should be. A frame cannot begin at or after the last byte that is not zero.
    pub fn next(&mut self, offset: usize, position: u64, from: usize, end: usize) -> Found<'a> {
        let stopped = Stopped { offset, position };
        let end = end.min(self.segment.len().saturating_sub(FRAME_HEADER_BYTES));
        for offset in from..end {
            let Some((position, frame)) = candidate(self.segment, self.start, stopped, offset) else { continue };
            let Some(left) = self.allowance_bytes.checked_sub(frame.payload.len()) else { return Found::TooMuch };
            self.allowance_bytes = left;
            if is_intact(self.segment, offset, position, &frame) {
                return Found::Frame { offset, position, frame };
            }
        }
        Found::Nothing
    }
}

/// Where a segment could not be read on.
#[derive(Clone, Copy)]
struct Stopped {
    offset: usize,
    position: u64,
}

fn candidate(segment: &[u8], start: u64, walk: Stopped, offset: usize) -> Option<(u64, Frame<'_>)> {
    let lost_payload_bytes = u64::from((u32_at(segment, offset) ^ MARK_MIX).wrapping_sub(walk.position as u32));
    let lost_header_bytes = ((offset - walk.offset) as u64).checked_sub(lost_payload_bytes)?;
    let lost_frames = lost_header_bytes / FRAME_HEADER_BYTES as u64;
    if !lost_header_bytes.is_multiple_of(FRAME_HEADER_BYTES as u64)
        || lost_frames == 0
        || lost_frames > lost_payload_bytes
    {
        return None;
    }
    let position = walk.position.checked_add(lost_payload_bytes)?;
    Some((position, plausible(segment, offset, start, position)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A segment of frames `(payload length, synced)`, padded with zeros.
    fn segment(start: u64, frames: &[(usize, u64)], len_bytes: usize) -> Vec<u8> {
        let mut bytes = segment_header(start).to_vec();
        let mut position = start;
        for (index, &(payload_len, synced)) in frames.iter().enumerate() {
            let payload = vec![index as u8 + 1; payload_len];
            bytes.extend_from_slice(&frame_header(position, 1000 + index as u64, synced, &payload));
            bytes.extend_from_slice(&payload);
            position += payload_len as u64;
        }
        assert!(bytes.len() <= len_bytes);
        bytes.resize(len_bytes, 0);
        bytes
    }

    #[test]
    fn the_bytes_are_those_of_the_format_document() {
        let header = segment_header(0x0102);
        assert_eq!(&header[..12], b"IMPELLOG\x01\0\0\0");
        assert_eq!(&header[16..26], b"\x02\x01\0\0\0\0\0\0\0\0");
        assert_eq!(crc32c::crc32c(b"123456789"), 0xe306_9283, "the Castagnoli polynomial");
        let frame = frame_header(5, 6, 4, b"xy");
        assert_eq!(&frame[..8], &[0x79, 0x6d, 0xb1, 0x49, 2, 0, 0, 0]);
        assert_eq!(&frame[12..], &[6, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0]);
        let mut summed = vec![5, 0, 0, 0, 0, 0, 0, 0];
        summed.extend_from_slice(&frame[..8]);
        summed.extend_from_slice(&frame[12..]);
        summed.extend_from_slice(b"xy");
        assert_eq!(u32_at(&frame, 8), crc32c::crc32c(&summed));
    }

    #[test]
    fn a_header_is_good_bad_or_foreign() {
        let good = segment_header(7);
        assert_eq!(check_segment_header(&good, 7), Ok(()));
        assert_eq!(check_segment_header(&good, 8), Err(HeaderFault::Bad));
        assert_eq!(check_segment_header(&good[..100], 7), Err(HeaderFault::Bad));
        for at in 0..SEGMENT_HEADER_BYTES {
            let mut damaged = good;
            damaged[at] ^= 0x10;
            assert_eq!(check_segment_header(&damaged, 7), Err(HeaderFault::Bad), "byte {at}");
        }
        let mut newer = good;
        newer[8] = 2;
        let crc = header_crc(&newer);
        newer[12..16].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(check_segment_header(&newer, 7), Err(HeaderFault::Foreign(2)));
    }

    #[test]
    fn every_changed_bit_of_a_frame_is_noticed() {
        let good = segment(100, &[(30, 100)], 8192);
        assert_eq!(walk(&good, 100).position, 130);
        for bit in 0..(FRAME_HEADER_BYTES + 30) * 8 {
            let mut damaged = good.clone();
            damaged[FRAMES_AT + bit / 8] ^= 1 << (bit % 8);
            assert_eq!(walk(&damaged, 100).position, 100, "bit {bit}");
        }
    }

    #[test]
    fn a_frame_is_valid_at_its_position_only() {
        let bytes = segment(1000, &[(50, 1000)], 8192);
        assert!(frame_at(&bytes, FRAMES_AT, 1000, 1000).is_some());
        assert!(frame_at(&bytes, FRAMES_AT, 1000, 1001).is_none());
        // The mark holds only the low half; the checksum holds all of it.
        assert!(frame_at(&bytes, FRAMES_AT, 1000, 1000 + (1 << 32)).is_none());
    }

    #[test]
    fn walking_stops_where_the_frames_do() {
        let bytes = segment(0, &[(10, 0), (20, 10), (5, 30)], 8192);
        let walked = walk(&bytes, 0);
        assert_eq!(walked, Walk { position: 35, offset: FRAMES_AT + 119, frames: 3, synced: 30, stray_bytes: 0 });
        assert_eq!(offset_of(&bytes, 0, &walked, 0), FRAMES_AT);
        assert_eq!(offset_of(&bytes, 0, &walked, 30), FRAMES_AT + 86);
        assert_eq!(offset_of(&bytes, 0, &walked, 35), walked.offset);
        // A frame that runs past the file is no frame.
        let cut = &bytes[..FRAMES_AT + 100];
        assert_eq!(walk(cut, 0).frames, 2);
        assert_eq!(walk(cut, 0).stray_bytes, 14);
    }

    #[test]
    fn zeros_at_the_end_are_told_from_the_rest() {
        for len_bytes in [0, 1, 4095, 4096, 4097, 20_000] {
            let mut bytes = vec![0; len_bytes];
            assert_eq!(len_without_zeros(&bytes), 0);
            for last in [0, 1, 4095, 4096, 12_287, 19_999].into_iter().filter(|&last| last < len_bytes) {
                bytes[last] = 1;
                assert_eq!(len_without_zeros(&bytes), last + 1);
            }
        }
    }

    #[test]
    fn what_lies_beyond_damage_is_told_apart() {
        let damage = |frames: &[(usize, u64)], from: usize, to: usize| {
            let mut bytes = segment(50, frames, 8192);
            bytes[FRAMES_AT + from..FRAMES_AT + to].fill(0xee);
            let walked = walk(&bytes, 50);
            look_beyond(&bytes, 50, &walked)
        };
        let frames = [(10, 50), (20, 60), (5, 80), (7, 85)];
        // The third frame knew of everything before its own position, so the damaged second one had been durable.
        assert_eq!(damage(&frames, 38, 40), Beyond::Durable { position: 80, synced: 80 });
        assert_eq!(damage(&frames, 60, 100), Beyond::Durable { position: 85, synced: 85 });
        assert_eq!(damage(&frames, 119, 154), Beyond::Nothing);
        assert_eq!(damage(&[(10, 50), (20, 60), (5, 60), (7, 60)], 38, 40), Beyond::NeverSynced);
        assert_eq!(
            damage(&[(10, 50), (20, 60), (5, 60), (7, 85)], 38, 40),
            Beyond::Durable { position: 85, synced: 85 }
        );
        // A hole of zeros where the first frames were.
        let mut bytes = segment(50, &frames, 8192);
        bytes[FRAMES_AT..FRAMES_AT + 86].fill(0);
        assert_eq!(look_beyond(&bytes, 50, &walk(&bytes, 50)), Beyond::Durable { position: 80, synced: 80 });
    }

    #[test]
    fn bytes_made_to_look_like_frames_end_the_search() {
        let mut bytes = segment(0, &[], 1 << 20);
        bytes[FRAMES_AT] = 1;
        for offset in (FRAMES_AT + 64..bytes.len() - 1024).step_by(FRAME_HEADER_BYTES) {
            let lost_payload_bytes = (offset - FRAMES_AT - FRAME_HEADER_BYTES) as u64;
            let rest_len = (bytes.len() - offset - FRAME_HEADER_BYTES) as u32;
            bytes[offset..offset + 4].copy_from_slice(&mark(lost_payload_bytes).to_le_bytes());
            bytes[offset + 4..offset + 8].copy_from_slice(&rest_len.to_le_bytes());
        }
        assert_eq!(look_beyond(&bytes, 0, &walk(&bytes, 0)), Beyond::Undecided);
    }
}
