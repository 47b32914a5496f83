//! Publishing, and the connection that listens.

use super::line;
use crate::random::Random;

/// A message.
pub fn publish(random: &mut Random) -> Vec<Vec<u8>> {
    line(&format!("PUBLISH {} {}", random.pick(&["news", "talk"]), random.below(1000)))
}

/// What a subscriber may send.
pub fn listen(random: &mut Random) -> Vec<Vec<u8>> {
    line(random.pick::<&str>(&[
        "SUBSCRIBE news",
        "SUBSCRIBE news talk",
        "PSUBSCRIBE n*",
        "PSUBSCRIBE __key*",
        "UNSUBSCRIBE news",
        "PUNSUBSCRIBE n*",
        "PING",
    ]))
}
