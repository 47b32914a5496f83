//! The arguments of one command: a view of the bytes that came in, without a copy. Cheap to pass on; never owns anything.

/// The arguments of a command, its name first, as spans of the buffer that they arrived in.
#[derive(Clone, Copy)]
pub struct Args<'a> {
    buffer: &'a [u8],
    spans: &'a [(usize, usize)],
}

impl<'a> Args<'a> {
    /// `spans` are start and end (exclusive) of each argument within `buffer`.
    pub fn new(buffer: &'a [u8], spans: &'a [(usize, usize)]) -> Args<'a> {
        debug_assert!(spans.iter().all(|&(start, end)| start <= end && end <= buffer.len()));
        Args { buffer, spans }
    }

    /// How many there are.
    pub fn len(self) -> usize {
        self.spans.len()
    }

    /// True when there is none.
    pub fn is_empty(self) -> bool {
        self.spans.is_empty()
    }

    /// The argument at `index`. Panics when there is none, as a slice does.
    pub fn get(self, index: usize) -> &'a [u8] {
        let (start, end) = self.spans[index];
        &self.buffer[start..end]
    }

    /// The arguments in order.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = &'a [u8]> + ExactSizeIterator + Clone {
        let buffer = self.buffer;
        self.spans.iter().map(move |&(start, end)| &buffer[start..end])
    }

    /// Those from `index` on; none when `index` is the length. Panics beyond it.
    pub fn from(self, index: usize) -> Args<'a> {
        Args { buffer: self.buffer, spans: &self.spans[index..] }
    }

    /// Those from `start` up to, without, `end`. Panics out of range.
    pub fn slice(self, start: usize, end: usize) -> Args<'a> {
        Args { buffer: self.buffer, spans: &self.spans[start..end] }
    }
}

impl std::fmt::Debug for Args<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter().map(|a| String::from_utf8_lossy(a))).finish()
    }
}

/// Arguments that own their bytes: for tests, and for commands kept from one turn to the next (MULTI).
#[derive(Clone, Default)]
pub struct OwnedArgs {
    buffer: Vec<u8>,
    spans: Vec<(usize, usize)>,
}

impl OwnedArgs {
    /// A copy of `arguments`.
    pub fn new<T: AsRef<[u8]>>(arguments: impl IntoIterator<Item = T>) -> OwnedArgs {
        let mut owned = OwnedArgs::default();
        for argument in arguments {
            owned.push(argument.as_ref());
        }
        owned
    }

    /// Adds one at the end.
    pub fn push(&mut self, argument: &[u8]) {
        let start = self.buffer.len();
        self.buffer.extend_from_slice(argument);
        self.spans.push((start, self.buffer.len()));
    }

    /// The view that commands take.
    pub fn args(&self) -> Args<'_> {
        Args { buffer: &self.buffer, spans: &self.spans }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_of_the_same_bytes() {
        let args = Args::new(b"XADDs*", &[(0, 4), (4, 5), (5, 6), (6, 6)]);
        assert_eq!((args.len(), args.get(0), args.get(1), args.get(3)), (4, &b"XADD"[..], &b"s"[..], &b""[..]));
        assert_eq!(args.from(2).iter().collect::<Vec<_>>(), [&b"*"[..], &b""[..]]);
        assert_eq!(args.slice(1, 3).iter().rev().collect::<Vec<_>>(), [&b"*"[..], &b"s"[..]]);
        assert!(args.from(4).is_empty());
        let owned = OwnedArgs::new(args.iter());
        assert_eq!(format!("{:?}", owned.args()), r#"["XADD", "s", "*", ""]"#);
    }
}
