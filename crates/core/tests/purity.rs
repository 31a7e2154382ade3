//! Core names nothing of the outside world: of `std` it takes only what computes.
//!
//! The bans of `clippy.toml` say why a thing is refused; this list is shorter and has no holes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "the test reads; core does not")]

use std::path::Path;

/// The modules of `std` that neither do I/O nor read a clock, start a thread or make random numbers.
const ALLOWED: [&str; 2] = ["borrow", "collections"];

/// What core must not do stands there on purpose.
const PROOF: &str = "purity.rs";

fn check(folder: &Path, checked: &mut usize) {
    for file in std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()) {
        if file.is_dir() {
            check(&file, checked);
        } else if file.file_name().unwrap() != PROOF {
            *checked += 1;
            let source = std::fs::read_to_string(&file).unwrap();
            assert_eq!(refused(&source), None, "in {}", file.display());
        }
    }
}

/// The first thing of `std` in a source that is not allowed. Examples in comments may print.
fn refused(source: &str) -> Option<&str> {
    let code = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.flat_map(|line| line.split("std::").skip(1)).find(|rest| {
        let module = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
        !ALLOWED.contains(&module)
    })
}

#[test]
fn core_takes_nothing_from_std_but_what_computes() {
    let mut checked = 0;
    check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut checked);
    assert!(checked > 20, "only {checked} files");
}

#[test]
fn the_check_finds_what_it_looks_for() {
    assert_eq!(refused("use std::borrow::Cow;\n// std::fs\n"), None);
    for line in [
        "std::fs::remove_file(x)",
        "use std::{fs, io};",
        "std::time::UNIX_EPOCH.elapsed()",
        "::std::env::vars()",
    ] {
        assert!(refused(line).is_some(), "{line}");
    }
}
