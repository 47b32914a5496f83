//! Shell-style name patterns: `*`, `?` and `[…]` sets. Only for choosing cases by name.

/// Whether the whole of `name` fits `pattern`. A `[` that is never closed stands for itself.
pub fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    fits_from(&pattern, &name)
}

fn fits_from(pattern: &[char], name: &[char]) -> bool {
    match pattern.split_first() {
        None => name.is_empty(),
        Some(('*', rest)) => (0..=name.len()).any(|skip| fits_from(rest, &name[skip..])),
        Some(('?', rest)) => !name.is_empty() && fits_from(rest, &name[1..]),
        Some(('[', rest)) => match set_end(rest) {
            Some(end) => {
                name.first().is_some_and(|c| in_set(&rest[..end], *c)) && fits_from(&rest[end + 1..], &name[1..])
            }
            None => name.first() == Some(&'[') && fits_from(rest, &name[1..]),
        },
        Some((c, rest)) => name.first() == Some(c) && fits_from(rest, &name[1..]),
    }
}

/// Where the set ends; a `]` in first place (after `!`) belongs to it.
fn set_end(rest: &[char]) -> Option<usize> {
    let first = usize::from(rest.first() == Some(&'!'));
    (first + 1..rest.len()).find(|i| rest[*i] == ']')
}

fn in_set(set: &[char], c: char) -> bool {
    let (negated, mut set) = match set.split_first() {
        Some(('!', rest)) => (true, rest),
        _ => (false, set),
    };
    let mut found = false;
    while let Some((&low, rest)) = set.split_first() {
        if let ['-', high, ..] = rest {
            found |= (low..=*high).contains(&c);
            set = &rest[2..];
        } else {
            found |= low == c;
            set = rest;
        }
    }
    found != negated
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn patterns() {
        for (pattern, name) in [
            ("xadd", "xadd"),
            ("xadd*", "xadd-trim"),
            ("*trim*", "xadd-trim-1"),
            ("x?dd", "xadd"),
            ("[a-c]x", "bx"),
            ("[!a-c]x", "dx"),
            ("[", "["),
            ("*", ""),
        ] {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("xadd", "xadd-trim"), ("x?dd", "xdd"), ("[a-c]x", "dx"), ("[!a-c]x", "ax"), ("a*b", "ac")]
        {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }
}
