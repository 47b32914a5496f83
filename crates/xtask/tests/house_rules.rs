//! House rules that the compiler does not know: documents name what is there and leave no module out, files are not too
//! long, and nothing is left behind that was meant for later or for one machine.
//!
//! Each rule is a function over the tree that answers what breaks it, and each is shown to find what it is for.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use impel_xtask::project_root;
use regex::Regex;

/// Lines of a source file without its tests.
const SOFT_CAP: usize = 600;
/// Lines of any source file.
const HARD_CAP: usize = 1000;

/// The files of the project by path from its root, with `/` between the parts; what is not text is empty.
type Tree = BTreeMap<String, String>;

fn tree() -> Tree {
    fn walk(folder: &Path, prefix: &str, tree: &mut Tree) {
        for entry in fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
            let entry = entry.expect("an entry");
            let name = entry.file_name().into_string().expect("UTF-8");
            let hidden = name.starts_with('.') && !matches!(&name[..], ".cargo" | ".ci" | ".gitignore");
            // What is built, installed or kept by git is not the project; nor are data of a server started here.
            if hidden || (prefix.is_empty() && matches!(&name[..], "target" | "impel-data")) || name == "node_modules" {
                continue;
            }
            let path = format!("{prefix}{name}");
            if entry.file_type().expect("a type").is_dir() {
                walk(&entry.path(), &format!("{path}/"), tree);
            } else {
                tree.insert(path, fs::read_to_string(entry.path()).unwrap_or_default());
            }
        }
    }
    let mut tree = Tree::new();
    walk(&project_root(), "", &mut tree);
    assert!(tree.contains_key("ARCHITECTURE.md") && tree.len() > 200, "the project is read");
    tree
}

fn made_of(files: &[(&str, &str)]) -> Tree {
    files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

fn none(found: &[String]) {
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

// ---------------------------------------------------------------------------------------------- what documents name

/// What stands between backticks in a document, outside of blocks.
fn quoted(text: &str) -> Vec<&str> {
    let mut spans = Vec::new();
    let mut in_block = false;
    for line in text.lines() {
        if line.starts_with("```") {
            in_block = !in_block;
        } else if !in_block {
            spans.extend(line.split('`').skip(1).step_by(2));
        }
    }
    spans
}

/// Files, folders and names that the sources define.
struct Known {
    paths: BTreeSet<String>,
    /// Each name with the files that define it.
    names: BTreeMap<String, Vec<String>>,
}

impl Known {
    fn of(tree: &Tree) -> Known {
        let defines = Regex::new(
            r"(?m)^\s*(?:pub(?:\([^)]*\))? )?(?:const |async |unsafe )*(?:fn|struct|enum|trait|mod|const|static|type) (\w+)",
        );
        let defines = defines.expect("a pattern");
        let variant = Regex::new(r"(?m)^    ([A-Z]\w*)(?:,| \{|\(| =)").expect("a pattern");
        let (mut paths, mut names) = (BTreeSet::new(), BTreeMap::<String, Vec<String>>::new());
        for (path, text) in tree {
            for (at, _) in path.match_indices('/') {
                paths.insert(path[..=at].to_owned());
            }
            paths.insert(path.clone());
            if !path.ends_with(".rs") {
                continue;
            }
            // A module is defined by its file, and named as that or as its folder.
            let stem = path.trim_end_matches(".rs").trim_end_matches("/mod");
            let stem = stem.rsplit('/').next().expect("a part").to_owned();
            let found = defines.captures_iter(text).chain(variant.captures_iter(text)).map(|found| found[1].to_owned());
            for name in found.chain([stem]) {
                names.entry(name).or_default().push(path.clone());
            }
        }
        Known { paths, names }
    }

    /// Is there a file or a folder of which this is the path, or the end of it?
    fn has_path(&self, path: &str) -> bool {
        let (folder, end) = (format!("{path}/"), format!("/{path}"));
        self.paths.contains(&folder) || self.paths.iter().any(|known| known == path || known.ends_with(&end))
    }

    /// Is there something of that name; with `::`, in a file that defines or is what stands before it?
    fn has_name(&self, name: &str) -> bool {
        let Some((of, last)) = name.rsplit_once("::") else { return self.names.contains_key(name) };
        let of = of.rsplit("::").next().expect("a part");
        let files = |name: &str| self.names.get(name).map_or(&[][..], |files| files);
        files(last).iter().any(|file| {
            let stem = file.trim_end_matches(".rs");
            // A type's functions may stand in the file of its module or below it.
            files(of).iter().any(|home| {
                let home = home.trim_end_matches(".rs").trim_end_matches("/mod");
                stem == home || stem.starts_with(&format!("{home}/"))
            })
        })
    }
}

/// Names that are not there. In the map every word between backticks is looked at, elsewhere what is plainly a source
/// file or a path of names: other documents also quote settings, replies and options.
fn unknown_names(tree: &Tree) -> Vec<String> {
    let known = Known::of(tree);
    let name = Regex::new(r"^\w+(::\w+)*(\(.*\))?$").expect("a pattern");
    let mut found = Vec::new();
    for (document, text) in tree {
        let is_map = document == "ARCHITECTURE.md";
        if !(is_map || document.starts_with("docs/") && document.ends_with(".md")) {
            continue;
        }
        for span in quoted(text) {
            let is_source = [".rs", ".lua", ".md"].iter().any(|end| span.ends_with(end));
            let is_path = !span.contains(' ') && (is_source || is_map && span.contains('/'));
            let is_name = name.is_match(span) && (is_map || span.contains("::")) && !NOT_OURS.contains(&span);
            let bare = span.split('(').next().expect("a part");
            if is_path && !known.has_path(span) || !is_path && is_name && !known.has_name(bare) {
                found.push(format!("{document}: there is no {span}"));
            }
        }
    }
    found
}

/// What the map names and does not define: calls of the system, and crates by their names.
const NOT_OURS: [&str; 3] = ["recv", "send", "impel"];

/// Modules that the map does not name in the part about their crate: those at the top of each crate, and those of the
/// engine and the state.
fn unnamed_modules(tree: &Tree) -> Vec<String> {
    let map = &tree["ARCHITECTURE.md"];
    let named = |krate: &str, module: &str| {
        let part = map.split("\n`crates/").find_map(|part| part.strip_prefix(&format!("{krate}/src`\n")));
        part.is_some_and(|part| quoted(part.split("\n## ").next().expect("a part")).contains(&module))
    };
    let mut found = BTreeSet::new();
    for path in tree.keys().filter(|path| path.ends_with(".rs")) {
        let Some((krate, inside)) = path.strip_prefix("crates/").and_then(|rest| rest.split_once("/src/")) else {
            continue;
        };
        let parts: Vec<&str> = inside.split('/').collect();
        let depth = if krate == "core" && matches!(parts[0], "engine" | "state") { 2 } else { 1 };
        let module = parts[..parts.len().min(depth)].join("/");
        let stem = module.trim_end_matches(".rs");
        let last = stem.rsplit('/').next().expect("a part");
        if matches!(last, "lib" | "main" | "mod" | "tests") {
            continue;
        }
        if !named(krate, &format!("{stem}.rs")) && !named(krate, &format!("{stem}/")) {
            found.insert(format!("ARCHITECTURE.md leaves out {stem} of crates/{krate}/src"));
        }
    }
    found.into_iter().collect()
}

#[test]
fn documents_name_what_is_there() {
    none(&unknown_names(&tree()));
}

#[test]
fn the_map_leaves_no_module_out() {
    none(&unnamed_modules(&tree()));
}

#[test]
fn names_that_are_not_there_and_modules_left_out_are_found() {
    let map = "\n`crates/sim/src`\n`left/`\n`crates/core/src`\n`core/src/a.rs` `src/` `a.rs` `Thing` `Thing::make` `Thing::One` `a::make` `deep` `two words` `recv`\n\
               ```\n`block.rs`\n```\n\
               `b.rs` `other/` `Nothing` `Thing::Two` `b::make`\n## More\n`engine/out.rs`";
    let sources = "pub(crate) struct Thing;\nimpl Thing {\n    pub const fn make() {}\n}\nenum E {\n    One,\n}\n";
    let tree = made_of(&[
        ("ARCHITECTURE.md", map),
        ("README.md", "`gone.rs`"),
        ("docs/d.md", "`gone.rs` `gone::gone` `gone`"),
        ("crates/core/src/lib.rs", ""),
        ("crates/core/src/a.rs", sources),
        ("crates/core/src/left/deep.rs", ""),
        ("crates/core/src/engine/out.rs", ""),
        ("crates/sim/src/left.rs", ""),
    ]);
    let no = |what: &str| format!("ARCHITECTURE.md: there is no {what}");
    let in_docs = |what: &str| format!("docs/d.md: there is no {what}");
    assert_eq!(
        unknown_names(&tree),
        [
            no("b.rs"),
            no("other/"),
            no("Nothing"),
            no("Thing::Two"),
            no("b::make"),
            in_docs("gone.rs"),
            in_docs("gone::gone")
        ]
    );
    let left_out = |what: &str| format!("ARCHITECTURE.md leaves out {what} of crates/core/src");
    assert_eq!(unnamed_modules(&tree), [left_out("engine/out"), left_out("left")]);
}

// ------------------------------------------------------------------------------------------------ shape of sources

fn is_test(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("tests.rs") || path.contains("/examples/")
}

/// Source files that are too long, or do not say at their beginning what they are for.
fn shapeless(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in tree.iter().filter(|(path, _)| path.ends_with(".rs")) {
        if !text.starts_with("//! ") {
            found.push(format!("{path} does not begin with what it is for"));
        }
        let whole = text.lines().count();
        let own = text.split("\n#[cfg(test)]\nmod tests {").next().expect("a part").lines().count();
        if whole > HARD_CAP || own > SOFT_CAP && !is_test(path) {
            found.push(format!("{path} has {whole} lines, {own} without tests"));
        }
    }
    found
}

#[test]
fn sources_are_short_and_say_what_they_are_for() {
    none(&shapeless(&tree()));
}

#[test]
fn long_files_and_files_without_a_word_are_found() {
    let lines = |n: usize| format!("//! For.\n{}", "x\n".repeat(n - 1));
    let with_tests = format!("{}\n#[cfg(test)]\nmod tests {{\n{}}}\n", lines(599), "x\n".repeat(300));
    let (fits, long, too_long) = (lines(600), lines(601), lines(1001));
    let tree = made_of(&[
        ("a/src/fits.rs", &fits),
        ("a/src/with_tests.rs", &with_tests),
        ("a/src/tests.rs", &long),
        ("a/src/long.rs", &long),
        ("a/tests/too_long.rs", &too_long),
        ("a/src/silent.rs", "use std::fs;\n"),
        ("a/long.txt", &too_long),
    ]);
    assert_eq!(
        shapeless(&tree),
        [
            "a/src/long.rs has 601 lines, 601 without tests",
            "a/src/silent.rs does not begin with what it is for",
            "a/tests/too_long.rs has 1001 lines, 1001 without tests"
        ]
    );
}

// --------------------------------------------------------------------------------------------------- what is not said

/// Words that mean "later" or "only here", put together so that this file does not hold them.
const FORBIDDEN: [&str; 7] = [
    concat!("todo", "!("),
    concat!("unimplemented", "!("),
    concat!("FIX", "ME"),
    concat!("#[ign", "ore"),
    concat!("/wo", "rk/"),
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
];

/// Files in which such a word means something else: the file, the word, and why.
const ALLOWED: [(&str, &str, &str); 0] = [];

fn forbidden(tree: &Tree, allowed: &[(&str, &str, &str)]) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in tree {
        for word in FORBIDDEN.iter().filter(|word| text.contains(**word)) {
            if !allowed.iter().any(|(file, allowed, _)| file == path && allowed == word) {
                found.push(format!("{path} holds {word}"));
            }
        }
    }
    for (file, word, _) in allowed {
        if !tree.get(*file).is_some_and(|text| text.contains(word)) {
            found.push(format!("{file} is allowed to hold {word} and does not"));
        }
    }
    found
}

#[test]
fn nothing_is_left_for_later_or_for_one_machine() {
    none(&forbidden(&tree(), &ALLOWED));
}

#[test]
fn forbidden_words_and_idle_exceptions_are_found() {
    let later = concat!("// FIX", "ME later");
    let here = concat!("cd /ho", "me/somebody");
    let tree = made_of(&[("a.rs", later), ("b.md", here), ("c.rs", later), ("d.rs", "fine")]);
    let word = concat!("FIX", "ME");
    let allowed = [("c.rs", word, "it is about such words"), ("d.rs", word, "it was")];
    assert_eq!(
        forbidden(&tree, &allowed),
        [
            format!("a.rs holds {word}"),
            format!("b.md holds {}", concat!("/ho", "me/")),
            format!("d.rs is allowed to hold {word} and does not")
        ]
    );
}
