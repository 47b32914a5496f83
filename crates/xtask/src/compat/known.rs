//! What is meant to differ from Redis 8.2.3, and why. Each row stands in `docs/compatibility.md` too.

use impel_sim::workload::Step;

/// A difference that is meant.
pub struct Known {
    /// The words by which `docs/compatibility.md` tells of it.
    pub documented: &'static str,
    /// Why it is so.
    pub reason: &'static str,
    /// Can it be what a short script shows?
    pub applies: fn(&Script<'_>) -> bool,
}

/// A short script that makes a difference.
pub struct Script<'s>(&'s [Step]);

impl Script<'_> {
    /// Is there a command of one of these names that has all of these words?
    fn has(&self, names: &[&str], words: &[&str]) -> bool {
        self.0.iter().any(|step| match step {
            Step::Command { words: said, .. } => {
                let is = |word: &Vec<u8>, other: &str| word.eq_ignore_ascii_case(other.as_bytes());
                names.iter().any(|name| is(&said[0], name))
                    && words.iter().all(|word| said[1..].iter().any(|other| is(other, word)))
            }
            _ => false,
        })
    }
}

/// All of them.
pub const KNOWN: &[Known] = &[
    Known {
        documented: "`XTRIM MAXLEN ~ … ACKED` or `DELREF`",
        reason: "8.2.3 removes nothing; fixed in 8.2.7",
        applies: |script| {
            script.has(&["XTRIM", "XADD"], &["~", "DELREF"]) || script.has(&["XTRIM", "XADD"], &["~", "ACKED"])
        },
    },
    Known {
        documented: "`XTRIM … DELREF`",
        reason: "8.2.3 passes over references of entries that were deleted before",
        applies: |script| script.has(&["XTRIM", "XADD"], &["DELREF"]),
    },
    Known {
        documented: "`ACKED` after XGROUP DESTROY",
        reason: "in 8.2.3 a destroyed group goes on protecting entries; fixed in 8.2.7",
        applies: |script| {
            script.has(&["XGROUP"], &["DESTROY"]) && script.has(&["XTRIM", "XADD", "XDELEX", "XACKDEL"], &["ACKED"])
        },
    },
    Known {
        documented: "`XGROUP DELCONSUMER` with surplus words in MULTI",
        reason: "it has options here, so they are looked at when it runs",
        applies: |script| script.has(&["XGROUP"], &["DELCONSUMER"]) && script.has(&["MULTI"], &[]),
    },
    Known {
        documented: "the greatest delivery count, the greatest entries-added",
        reason: "Redis wraps around to a negative number",
        applies: |script| {
            script.has(&["XCLAIM"], &["RETRYCOUNT", "9223372036854775807"])
                || script.has(&["XSETID"], &["ENTRIESADDED", "9223372036854775807"])
        },
    },
    Known {
        documented: "`MAXLEN … ACKED`",
        reason: "Redis ends with the node in which the bound falls, though it kept entries before",
        applies: |script| script.has(&["XTRIM", "XADD"], &["MAXLEN", "ACKED"]),
    },
    Known {
        documented: "`MINID` after XSETID went back",
        reason: "Redis stops at a node whose deleted entries had greater IDs",
        applies: |script| {
            script.has(&["XSETID"], &[])
                && script.has(&["XTRIM", "XADD"], &["MINID"])
                && script.has(&["XDEL", "XDELEX", "XACKDEL"], &[])
        },
    },
    Known {
        documented: "`~` after deletions",
        reason: "Redis counts deleted entries of a node where Impel looks at those that are there",
        applies: |script| script.has(&["XTRIM", "XADD"], &["~"]) && script.has(&["XDEL", "XDELEX", "XACKDEL"], &[]),
    },
];

/// The row that a short script belongs to, by its place.
pub fn find(script: &[Step]) -> Option<usize> {
    KNOWN.iter().position(|known| (known.applies)(&Script(script)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_meant_to_differ_is_documented() {
        let page = std::fs::read_to_string(crate::project_root().join("docs/compatibility.md")).expect("the page");
        for known in KNOWN {
            assert!(page.contains(known.documented), "{} is not in docs/compatibility.md", known.documented);
        }
    }

    #[test]
    fn a_row_fits_its_commands_alone() {
        let script = |line: &str| {
            let words = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
            find(&[Step::Command { client: 0, words }])
        };
        assert_eq!(script("XTRIM a MAXLEN ~ 1 acked"), Some(0));
        assert_eq!(script("XTRIM a MAXLEN 1 DELREF"), Some(1));
        assert_eq!(script("XTRIM a MINID 1 ACKED"), None);
    }
}
