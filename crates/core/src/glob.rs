//! Redis's pattern language over bytes: `*` any bytes, `?` one byte, `[a-z]` and `[^a-z]` one of a class, `\x` the byte x.
//! Used by KEYS, SCAN, CONFIG GET and COMMAND LIST.
//!
//! Patterns come from clients, so the work is bounded: at most the product of both lengths, without recursion. That holds
//! since only the last `*` is ever gone back to: what an earlier one could still take, the last one can take as well.

/// Whether letters must have the same case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Case {
    /// KEYS and SCAN.
    Sensitive,
    /// Names of settings and commands.
    Insensitive,
}

/// True when all of `text` fits `pattern`.
pub fn matches(pattern: &[u8], text: &[u8], case: Case) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where to go on when what follows the last star does not fit: behind that star, and from which byte of the text.
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            p += 1;
            retry = Some((p, t));
            continue;
        }
        match element(&pattern[p..], text[t], case) {
            Some(len) => (p, t) = (p + len, t + 1),
            None => match retry {
                Some((star_p, star_t)) => {
                    (p, t) = (star_p, star_t + 1);
                    retry = Some((p, t));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&b| b == b'*')
}

/// True when `pattern` can match nothing but itself, so that a look-up by name does instead of a scan.
pub fn is_literal(pattern: &[u8]) -> bool {
    memchr::memchr3(b'*', b'?', b'[', pattern).is_none() && memchr::memchr(b'\\', pattern).is_none()
}

fn fold(byte: u8, case: Case) -> u8 {
    if case == Case::Insensitive { byte.to_ascii_lowercase() } else { byte }
}

/// Length of the first element of `pattern` (no star) when it fits `byte`.
fn element(pattern: &[u8], byte: u8, case: Case) -> Option<usize> {
    let same = |a: u8| fold(a, case) == fold(byte, case);
    match *pattern {
        [] => None,
        [b'?', ..] => Some(1),
        [b'[', ..] => {
            let (fits, len) = class(pattern, byte, case);
            fits.then_some(len)
        }
        [b'\\', escaped, ..] => same(escaped).then_some(2),
        [literal, ..] => same(literal).then_some(1),
    }
}

/// Whether `byte` is in the class that `pattern` begins with, and the length of that class. As in Redis the end of the
/// pattern closes a class, the first `]` does so even in first place, and a range may be written from either end.
fn class(pattern: &[u8], byte: u8, case: Case) -> (bool, usize) {
    let byte = fold(byte, case);
    let mut p = 1;
    let negated = pattern.get(p) == Some(&b'^');
    p += usize::from(negated);
    let mut found = false;
    loop {
        match pattern[p..] {
            [] => return (found != negated, p),
            [b']', ..] => return (found != negated, p + 1),
            [b'\\', escaped, ..] => {
                found |= fold(escaped, case) == byte;
                p += 2;
            }
            [from, b'-', to, ..] => {
                let (from, to) = (fold(from, case), fold(to, case));
                found |= (from.min(to)..=from.max(to)).contains(&byte);
                p += 3;
            }
            [literal, ..] => {
                found |= fold(literal, case) == byte;
                p += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, yes: &[&str], no: &[&str]) {
        for text in yes {
            assert!(matches(pattern.as_bytes(), text.as_bytes(), Case::Sensitive), "{pattern} must match {text}");
        }
        for text in no {
            assert!(!matches(pattern.as_bytes(), text.as_bytes(), Case::Sensitive), "{pattern} must not match {text}");
        }
    }

    #[test]
    fn stars_and_marks() {
        check("", &[""], &["a"]);
        check("*", &["", "a", "anything"], &[]);
        check("h?llo", &["hello", "hallo"], &["hllo", "heello"]);
        check("h*llo", &["hllo", "heeello"], &["hell"]);
        check("a*b*c", &["abc", "aXbYc", "abbcc", "abcbc"], &["ab", "acb", "abcd"]);
        check("**a**", &["a", "bab"], &["", "b"]);
        check("?*", &["a", "ab"], &[""]);
        check("a*ab", &["aab", "aaab", "abaab"], &["ab", "aaba"]);
    }

    #[test]
    fn classes() {
        check("h[ae]llo", &["hello", "hallo"], &["hillo", "hllo"]);
        check("h[^e]llo", &["hallo"], &["hello"]);
        check("[a-c]", &["a", "b", "c"], &["d", "-", ""]);
        check("[c-a]", &["a", "b", "c"], &["d"]);
        check(r"[\]]", &["]"], &["\\"]);
        check(r"[a\-c]", &["a", "-", "c"], &["b"]);
        check("[]a]", &[], &["]", "a", "]a]", "a]"]);
        check("[^]x", &["ax"], &["x"]);
        check("[ab", &["a", "b"], &["[ab", "c"]);
        check("[", &[], &["["]);
        check("[a-", &["a", "-"], &["b"]);
        check("k[0-9]*", &["k1", "k12x"], &["k", "kx"]);
    }

    #[test]
    fn escapes() {
        check(r"a\*b", &["a*b"], &["aXb", r"a\*b"]);
        check(r"\?", &["?"], &["a"]);
        check(r"a\", &[r"a\"], &["a"]);
        check(r"\a", &["a"], &[r"\a"]);
    }

    #[test]
    fn case_of_letters() {
        assert!(matches(b"MAX*", b"maxmemory", Case::Insensitive));
        assert!(matches(b"[A-M]ax", b"mAX", Case::Insensitive));
        assert!(!matches(b"MAX*", b"maxmemory", Case::Sensitive));
    }

    #[test]
    fn any_bytes() {
        assert!(matches(b"\xff*\x00", b"\xff\xfe\x00", Case::Sensitive));
        assert!(!matches(b"\xff", b"\xfe", Case::Sensitive));
    }

    /// A backtracking matcher needs longer than the age of the world for this.
    #[test]
    fn hostile_patterns_are_cheap() {
        let mut pattern = b"a*".repeat(5_000);
        pattern.push(b'b');
        assert!(!matches(&pattern, &[b'a'; 20_000], Case::Sensitive));
        assert!(!matches(&b"*[^x]".repeat(2_000), &[b'x'; 2_000], Case::Sensitive));
    }

    #[test]
    fn literals() {
        assert!(is_literal(b"maxmemory") && is_literal(b""));
        assert!(!is_literal(b"a*") && !is_literal(b"a?") && !is_literal(b"[a") && !is_literal(b"a\\"));
    }
}
