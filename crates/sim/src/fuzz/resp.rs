//! Requests: fed in pieces of any size they are the same commands as fed at once, no cap is passed, and what was understood
//! is understood again when it is written anew.

use impel_core::limits::{ARGUMENTS_MAX_UNAUTHENTICATED, BULK_MAX_UNAUTHENTICATED_BYTES, INLINE_MAX_BYTES};
use impel_core::resp::decode::{Caps, Decoder, Step};

use crate::compare::encode;
use crate::random::Random;

/// What came of an input: the commands, and the error that ended it.
#[derive(PartialEq, Debug, Default)]
struct Heard {
    commands: Vec<Vec<Vec<u8>>>,
    broken: Option<String>,
    /// Bytes left of a command that has not come whole.
    left: usize,
}

/// The first byte is the caps, the second the seed of the pieces, the rest what a client sends.
pub fn run(data: &[u8]) {
    let [caps, seed, input @ ..] = data else { return };
    // Whether a line of this length is too long depends, as in Redis, on whether its end has come with it.
    if input.len() > INLINE_MAX_BYTES {
        return;
    }
    let bulk_max = [0, 7, 100, 512 << 20][usize::from(caps & 3)];
    let caps = Caps { bulk_max, authenticated: caps & 4 == 0 };
    let at_once = hear(input, caps, |rest| rest);
    let mut random = Random::new(u64::from(*seed));
    let in_pieces = hear(input, caps, |_| 1 + random.below(9) as usize);
    assert_eq!(at_once, in_pieces, "the pieces show");
    for command in at_once.commands.iter().filter(|command| !command.is_empty()) {
        let again = hear(&encode(command), Caps { bulk_max: usize::MAX >> 1, authenticated: true }, |rest| rest);
        assert_eq!(again, Heard { commands: vec![command.clone()], ..Heard::default() });
    }
}

fn hear(input: &[u8], caps: Caps, mut piece: impl FnMut(usize) -> usize) -> Heard {
    let mut heard = Heard::default();
    let mut decoder = Decoder::default();
    let (mut begin, mut end) = (0, 0);
    while end < input.len() {
        end += piece(input.len() - end).min(input.len() - end);
        loop {
            let buffer = &input[begin..end];
            match decoder.step(buffer, caps) {
                Step::Command(length) => {
                    assert!(length > 0 && length <= buffer.len());
                    let command: Vec<Vec<u8>> = decoder.args(buffer).iter().map(<[u8]>::to_vec).collect();
                    check_caps(buffer, &command, caps);
                    heard.commands.push(command);
                    begin += length;
                    decoder.reset();
                }
                Step::Incomplete => {
                    // Memory is taken in steps, never for what was only announced.
                    assert!(decoder.wanted(64) <= buffer.len() + 64 + 2);
                    break;
                }
                Step::Broken(text) => {
                    assert!(text.starts_with("ERR Protocol error: "), "{text:?}");
                    heard.broken = Some(text);
                    return heard;
                }
            }
            if begin == end {
                break;
            }
        }
    }
    heard.left = end - begin;
    heard
}

fn check_caps(buffer: &[u8], command: &[Vec<u8>], caps: Caps) {
    if buffer[0] != b'*' {
        return;
    }
    let longest = command.iter().map(Vec::len).max().unwrap_or(0);
    assert!(longest <= caps.bulk_max);
    if !caps.authenticated {
        assert!(command.len() <= ARGUMENTS_MAX_UNAUTHENTICATED && longest <= BULK_MAX_UNAUTHENTICATED_BYTES);
    }
}
