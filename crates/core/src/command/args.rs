//! The arguments of one command: byte strings inside the buffer they arrived in. Nothing is copied.

/// Arguments, the command's name first.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    buffer: &'a [u8],
    spans: &'a [(usize, usize)],
}

impl<'a> Args<'a> {
    /// Arguments whose starts and ends (`spans`) lie inside `buffer`.
    pub fn new(buffer: &'a [u8], spans: &'a [(usize, usize)]) -> Self {
        Args { buffer, spans }
    }

    /// How many, the command's name included.
    #[inline]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// None at all?
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// One argument. Panics beyond the end, like a slice.
    #[inline]
    pub fn get(&self, at: usize) -> &'a [u8] {
        let (start, end) = self.spans[at];
        &self.buffer[start..end]
    }

    /// One argument, if it is there.
    pub fn try_get(&self, at: usize) -> Option<&'a [u8]> {
        self.spans.get(at).map(|&(start, end)| &self.buffer[start..end])
    }

    /// The arguments from `at` on.
    pub fn from(&self, at: usize) -> Args<'a> {
        Args { buffer: self.buffer, spans: &self.spans[at..] }
    }

    /// The arguments `start..end`.
    pub fn slice(&self, start: usize, end: usize) -> Args<'a> {
        Args { buffer: self.buffer, spans: &self.spans[start..end] }
    }

    /// All of them in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone + use<'a> {
        let buffer = self.buffer;
        self.spans.iter().map(move |&(start, end)| &buffer[start..end])
    }

    /// All of them as pairs; one that is left over is left out.
    #[inline]
    pub fn pairs(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone + use<'a> {
        let buffer = self.buffer;
        self.spans.chunks_exact(2).map(move |pair| (&buffer[pair[0].0..pair[0].1], &buffer[pair[1].0..pair[1].1]))
    }

    /// Bytes of all arguments together.
    pub fn total_bytes(&self) -> usize {
        self.spans.iter().map(|&(start, end)| end - start).sum()
    }
}

/// Arguments that outlive the buffer they came in: queued by MULTI, or of a reader that waits.
#[derive(Clone, Debug, Default)]
pub struct OwnedArgs {
    buffer: Vec<u8>,
    spans: Vec<(usize, usize)>,
}

impl OwnedArgs {
    /// From any list of texts or byte strings.
    pub fn new<T: AsRef<[u8]>>(arguments: impl IntoIterator<Item = T>) -> Self {
        let mut owned = OwnedArgs::default();
        for argument in arguments {
            owned.push(argument.as_ref());
        }
        owned
    }

    /// Appends one argument.
    pub fn push(&mut self, argument: &[u8]) {
        let start = self.buffer.len();
        self.buffer.extend_from_slice(argument);
        self.spans.push((start, self.buffer.len()));
    }

    /// The arguments to look at.
    pub fn args(&self) -> Args<'_> {
        Args::new(&self.buffer, &self.spans)
    }

    /// Bytes taken.
    pub fn len_bytes(&self) -> usize {
        self.buffer.len() + self.spans.len() * size_of::<(usize, usize)>()
    }
}
