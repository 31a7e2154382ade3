//! The plain model passes the contract.

use forager_frontier::conformance::{InMemory, Place};

forager_frontier::conformance_suite!(memory, || Box::new(InMemory::default()) as Box<dyn Place>);

/// The cases that are listed for every implementation are all there are.
#[test]
fn no_case_is_left_out() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/conformance");
    let read = |path: &std::path::Path| std::fs::read_to_string(path).unwrap();
    let listed = read(&std::path::Path::new(folder).join("cases.rs"));
    let listed: Vec<&str> = listed.lines().map(|line| line.trim().trim_end_matches(',')).collect();
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        for line in read(&path).lines() {
            let Some(rest) = line.strip_prefix("pub async fn ") else { continue };
            let name = rest.split('(').next().unwrap();
            assert!(listed.contains(&name), "{name} of {} is not in cases.rs", path.display());
        }
    }
}
