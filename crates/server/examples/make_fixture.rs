//! Makes a directory for `crates/server/tests/fixtures/`, with data as this version writes them:
//! `cargo run -p impel --example make_fixture -- crates/server/tests/fixtures/format-1b`.

#[path = "../tests/support/fixture.rs"]
mod fixture;

fn main() {
    let folder = std::env::args().nth(1).expect("where to make it");
    fixture::make(folder.as_ref());
}
