//! Where the material that the cases were copied from lies beside the project, says which copies differ from it.
//! Elsewhere there is nothing to compare, and the copies stand for themselves.

use std::fs;
use std::path::Path;

use impel_xtask::{project_root, shared_folder};

/// Names of files of one kind in a folder, sorted.
fn names(folder: &Path, ends: &str) -> Vec<String> {
    let listing = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut names: Vec<String> = listing
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .filter(|name| name.ends_with(ends))
        .collect();
    names.sort();
    names
}

/// What differs between an original folder and our copy of it.
fn differences(original: &Path, copy: &Path, ends: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (originals, copies) = (names(original, ends), names(copy, ends));
    found.extend(copies.iter().filter(|name| !originals.contains(name)).map(|name| format!("{name}: has no original")));
    for name in originals {
        match fs::read(copy.join(&name)) {
            Err(_) => found.push(format!("{name}: not copied")),
            Ok(ours) if ours != fs::read(original.join(&name)).expect("the original") => {
                found.push(format!("{name}: differs"));
            }
            Ok(_) => {}
        }
    }
    found
}

#[test]
fn copied_cases_are_still_what_they_were_copied_from() {
    let Some(shared) = shared_folder() else { return };
    let tests = project_root().join("tests");
    let mut found = differences(&shared.join("golden"), &tests.join("golden"), ".json");
    found.extend(differences(&shared.join("field"), &tests.join("field"), "cases.md"));
    assert!(found.is_empty(), "case files that differ from ../shared:\n{}", found.join("\n"));
}

#[test]
fn every_kind_of_difference_is_found() {
    let folder = impel_xtask::server::TempFolder::new("drift").expect("a folder");
    let (original, copy) = (folder.path().join("original"), folder.path().join("copy"));
    for (path, text) in [
        (original.join("same.json"), "1"),
        (copy.join("same.json"), "1"),
        (original.join("changed.json"), "1"),
        (copy.join("changed.json"), "2"),
        (original.join("missing.json"), "1"),
        (copy.join("extra.json"), "1"),
        (copy.join("other.txt"), "1"),
    ] {
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    let found = differences(&original, &copy, ".json");
    assert_eq!(found, ["extra.json: has no original", "changed.json: differs", "missing.json: not copied"]);
}
