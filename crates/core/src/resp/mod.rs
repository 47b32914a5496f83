//! The wire: requests in ([`decode`]), replies out ([`encode`]). Knows RESP2, RESP3 and inline commands; knows no command.

pub mod decode;
pub mod encode;
