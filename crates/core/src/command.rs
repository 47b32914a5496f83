//! Commands as the client wrote them: their arguments ([`args`]), what is known of each ([`table`]) and the replies that
//! only tell about that ([`views`]). What a command does is the engine's matter; nothing here reads or changes a key.

pub mod args;
pub mod table;
pub mod views;
