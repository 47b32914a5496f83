//! The `impel` binary: hands the command line to the library.

fn main() {}
