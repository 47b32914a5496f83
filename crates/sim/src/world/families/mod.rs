//! Commands of which the model knows nothing, one family a file, for lives in which replies are counted and not compared. Keys
//! are those of the streams, so that everything meets everything.

mod connections;
mod scripts;
mod server;
mod strings;
mod subscribers;
mod whole;
mod work;

use crate::random::Random;

/// Makes a command.
pub type Family = fn(&mut Random) -> Vec<Vec<u8>>;

/// Every family but [`WORK`].
pub const ALL: &[Family] =
    &[strings::command, scripts::command, whole::command, server::command, connections::command, subscribers::publish];

/// What is drawn by itself.
pub const WORK: Family = work::command;

/// Words from text.
pub fn words(list: &[&str]) -> Vec<Vec<u8>> {
    list.iter().map(|word| word.as_bytes().to_vec()).collect()
}

/// The words of a line without quotes.
pub fn line(text: &str) -> Vec<Vec<u8>> {
    text.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

fn key(random: &mut Random) -> &'static str {
    random.pick::<&str>(&["a", "a", "b", "c", "t", "t", "u"])
}

/// What a peer with a nature of its own sends: one listens, one wants no replies now and then.
pub fn of_peer(peer: usize, random: &mut Random) -> Option<Vec<Vec<u8>>> {
    match peer {
        3 => Some(subscribers::listen(random)),
        // It has no transactions, in which such words would only be queued.
        4 if random.chance(30) => Some(connections::reply_mode(random)),
        4 if random.chance(90) => Some(strings::command(random)),
        4 => Some(words(&["ECHO", &format!("own {}", random.below(1 << 40))])),
        _ => None,
    }
}
