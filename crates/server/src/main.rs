//! The `impel` binary: hands the command line to the library.

use std::os::unix::ffi::OsStringExt;
use std::process::ExitCode;

use impel::memory::Counting;
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: Counting<MiMalloc> = Counting(MiMalloc);

fn main() -> ExitCode {
    if let Err(error) = impel::memory::give_back_in_background() {
        eprintln!("impel: freed memory stays with the process, as there is no thread to give it back: {error}");
    }
    let words: Vec<Vec<u8>> = std::env::args_os().skip(1).map(OsStringExt::into_vec).collect();
    impel::serve::command_line(&words)
}
