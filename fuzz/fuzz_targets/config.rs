//! See `impel_sim::fuzz`: this only hands libFuzzer's inputs to the target of this name.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| (impel_sim::fuzz::target("config").expect("a target").run)(data));
