//! Taking replies apart, to count them: the form of each is checked, what it says is not looked at.

/// Nesting beyond this is no reply that is ever given.
const DEPTH_MAX: usize = 32;

/// The replies in `bytes`, which must be whole ones; pushes of RESP3 belong to no command and do not count.
pub fn count(mut bytes: &[u8]) -> Result<usize, String> {
    let mut replies = 0;
    while !bytes.is_empty() {
        replies += usize::from(bytes[0] != b'>');
        bytes = skip(bytes, 0)?;
    }
    Ok(replies)
}

fn skip(bytes: &[u8], depth: usize) -> Result<&[u8], String> {
    let odd = |what: &str| Err(format!("{what}: {}", bytes[..bytes.len().min(100)].escape_ascii()));
    if depth > DEPTH_MAX {
        return odd("nested too deeply");
    }
    let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") else { return odd("no end of line") };
    let (line, mut rest) = (&bytes[..end], &bytes[end + 2..]);
    let Some((&kind, body)) = line.split_first() else { return odd("an empty line") };
    let text = std::str::from_utf8(body).unwrap_or("?");
    let number = || text.parse::<i64>().ok().filter(|n| n.to_string() == text);
    match kind {
        b'+' | b'-' if !body.contains(&b'\n') && !body.contains(&b'\r') => Ok(rest),
        b':' if number().is_some() => Ok(rest),
        b',' if text.parse::<f64>().is_ok() => Ok(rest),
        b'_' if body.is_empty() => Ok(rest),
        b'#' if matches!(body, b"t" | b"f") => Ok(rest),
        b'(' if !body.is_empty() => Ok(rest),
        b'$' | b'*' if text == "-1" => Ok(rest),
        b'$' | b'=' | b'!' => match number().and_then(|n| usize::try_from(n).ok()) {
            Some(n) if rest.len() >= n + 2 && &rest[n..n + 2] == b"\r\n" => Ok(&rest[n + 2..]),
            _ => odd("a string that does not end where it should"),
        },
        b'*' | b'~' | b'>' | b'%' => {
            let Some(n) = number().and_then(|n| usize::try_from(n).ok()) else { return odd("no count") };
            for _ in 0..if kind == b'%' { 2 * n } else { n } {
                rest = skip(rest, depth + 1)?;
            }
            Ok(rest)
        }
        _ => odd("no reply"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_counted_and_what_is_none_is_found() {
        let bytes =
            b"+OK\r\n$3\r\na\r\n\r\n*2\r\n:1\r\n*-1\r\n>1\r\n+x\r\n%1\r\n,1.5\r\n#t\r\n_\r\n-ERR no\r\n=5\r\ntxt:a\r\n";
        assert_eq!(count(bytes), Ok(7));
        for odd in
            ["+OK", ":01\r\n", ":x\r\n", "$3\r\nabcd\r\n", "*2\r\n:1\r\n", "?\r\n", "\r\n", "+a\nb\r\n", "$-2\r\n"]
        {
            assert!(count(odd.as_bytes()).is_err(), "{odd:?}");
        }
        assert!(count("*1\r\n".repeat(100).as_bytes()).is_err());
    }
}
