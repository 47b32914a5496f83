//! The inputs that the fuzzer has found worth keeping, and those to begin with: each of them once, in every ordinary test.

use std::fs;
use std::path::Path;

use impel_sim::fuzz::TARGETS;

/// Most files kept for a target, and most bytes in all of them: they are in everybody's checkout.
const FILES_MAX: usize = 600;
const BYTES_MAX: usize = 1 << 20;

#[test]
fn every_input_that_is_kept_is_borne() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for target in TARGETS {
        let folder = folder.join(target.name);
        let mut paths: Vec<_> = fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
            .map(|entry| entry.expect("an entry").path())
            .collect();
        paths.sort();
        assert!((1..=FILES_MAX).contains(&paths.len()), "{} inputs for {}", paths.len(), target.name);
        let mut len_bytes = 0;
        for path in paths {
            let input = fs::read(&path).expect("a file");
            len_bytes += input.len();
            let borne = std::panic::catch_unwind(|| (target.run)(&input));
            assert!(borne.is_ok(), "cargo xtask fuzz {} --input {}", target.name, path.display());
        }
        assert!(len_bytes <= BYTES_MAX, "{len_bytes} bytes of inputs for {}", target.name);
    }
}

#[test]
fn every_input_to_begin_with_is_borne() {
    for target in TARGETS {
        let seeds = (target.seeds)();
        assert!(!seeds.is_empty(), "{} has nothing to begin with", target.name);
        for seed in seeds {
            let borne = std::panic::catch_unwind(|| (target.run)(&seed));
            assert!(borne.is_ok(), "{}: {}", target.name, seed.escape_ascii());
        }
    }
}
