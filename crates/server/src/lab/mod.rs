//! Is a claimed entry's work done? Eight cases on any server of the protocol show what claiming, acknowledging and deleting do to the
//! group's book, beside a book of effects that no server has a part in (`impel lab`).
//!
//! What must come is written down and hashed before anything is asked ([`manifest`]), what is asked is a function of that
//! ([`plan`]), and what came is kept byte for byte ([`evidence`]); the conclusions are drawn from the evidence alone
//! ([`observe`], [`decide`]), by the run itself as by whoever verifies its folder ([`bundle`]). No expectation is ever taken from a
//! reply, and no key is touched that does not begin with the prefix of the run.

pub mod bundle;
pub mod decide;
pub mod effects;
pub mod evidence;
mod handler;
mod identity;
mod live;
pub mod manifest;
pub mod observe;
pub mod plan;

pub use live::{Options, Outcome, run};
