//! What connections do to themselves and to others.

use super::line;
use crate::random::Random;

/// A command about connections.
pub fn command(random: &mut Random) -> Vec<Vec<u8>> {
    let ms = *random.pick(&[1, 10, 100, 400]);
    let id = 1 + random.below(60);
    line(&match random.below(10) {
        0 => format!("CLIENT PAUSE {ms} WRITE"),
        1 => format!("CLIENT PAUSE {ms} ALL"),
        2 => "CLIENT UNPAUSE".to_owned(),
        3 => format!("CLIENT KILL ADDR 10.0.0.1:{}", random.below(5)),
        4 => "CLIENT KILL TYPE pubsub".to_owned(),
        5 => format!("CLIENT UNBLOCK {id}"),
        6 => format!("CLIENT UNBLOCK {id} ERROR"),
        7 => "CLIENT LIST".to_owned(),
        8 => "QUIT".to_owned(),
        _ => "CLIENT SETNAME somebody".to_owned(),
    })
}

/// Which replies the connection wants from now on.
pub fn reply_mode(random: &mut Random) -> Vec<Vec<u8>> {
    line(random.pick::<&str>(&[
        "CLIENT REPLY SKIP",
        "CLIENT REPLY SKIP",
        "CLIENT REPLY OFF",
        "CLIENT REPLY ON",
        "CLIENT REPLY ON",
    ]))
}
