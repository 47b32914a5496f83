//! Commands as the client wrote them: their arguments ([`args`]) and how these are read ([`parse`]), what is known of each
//! command ([`table`]) and the replies that only tell about that ([`views`]). What a command does is the engine's matter;
//! nothing here reads or changes a key.

pub mod args;
pub mod parse;
pub mod table;
pub mod views;
