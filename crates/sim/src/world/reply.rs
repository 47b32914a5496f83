//! Replies as bytes: where one ends. Enough to count them and to tell pushes from answers.

/// The length of the reply at the front of `bytes`, of either protocol; `None` if it has not come whole.
///
/// # Errors
/// When these are not the bytes of a reply.
pub fn length(bytes: &[u8]) -> Result<Option<usize>, String> {
    let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") else {
        return Ok(None);
    };
    let (line, rest) = (&bytes[1..end.max(1)], end + 2);
    let number = || -> Result<i64, String> {
        let text = std::str::from_utf8(line).ok().and_then(|text| text.parse().ok());
        text.ok_or_else(|| format!("not a length: {}", bytes[..rest].escape_ascii()))
    };
    let items = match bytes[0] {
        b'+' | b'-' | b':' | b'_' | b'#' | b',' | b'(' => return Ok(Some(rest)),
        b'$' | b'=' | b'!' => {
            let len = number()?;
            let whole = if len < 0 { rest } else { rest + len as usize + 2 };
            if whole <= bytes.len() && len >= 0 && &bytes[whole - 2..whole] != b"\r\n" {
                return Err("a bulk string is not as long as it says".into());
            }
            return Ok((whole <= bytes.len()).then_some(whole));
        }
        b'*' | b'~' | b'>' => number()?.max(0),
        b'%' | b'|' => 2 * number()?.max(0),
        other => return Err(format!("no reply begins with {}", [other].escape_ascii())),
    };
    let mut at = rest;
    for _ in 0..items {
        match length(&bytes[at..])? {
            Some(n) => at += n,
            None => return Ok(None),
        }
    }
    Ok(Some(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_end_where_they_end() {
        for whole in [
            "+OK\r\n",
            ":1\r\n",
            "$-1\r\n",
            "$3\r\na\r\n\r\n",
            "*2\r\n$1\r\na\r\n*0\r\n",
            "%1\r\n+a\r\n_\r\n",
            ">1\r\n:1\r\n",
        ] {
            let more = format!("{whole}+more\r\n");

            assert_eq!(length(more.as_bytes()), Ok(Some(whole.len())), "{whole}");
            for cut in 0..whole.len() {
                assert_eq!(length(&whole.as_bytes()[..cut]), Ok(None), "{whole} cut at {cut}");
            }
        }
        assert!(length(b"x\r\n").is_err() && length(b"$1\r\nab\r\n").is_err());
    }
}
