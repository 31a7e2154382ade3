//! Every console session in the documents, run as it is written.

use std::path::{Path, PathBuf};

use crate::common::{session, sessions_in};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn each_prints_what_the_document_says() {
    let folder = tempfile::tempdir().unwrap();
    // A copy, so that a session may write files beside the examples.
    std::fs::create_dir(folder.path().join("examples")).unwrap();
    for file in std::fs::read_dir(root().join("examples")).unwrap() {
        let path = file.unwrap().path();
        std::fs::copy(&path, folder.path().join("examples").join(path.file_name().unwrap())).unwrap();
    }
    for document in ["README.md", "docs/command-line.md", "docs/configuration.md", "docs/policies.md"] {
        let text = std::fs::read_to_string(root().join(document)).unwrap();
        let sessions = sessions_in(&text);
        assert!(!sessions.is_empty(), "{document} shows nothing");
        for (step, printed) in sessions {
            assert_eq!(session(&step, folder.path()), printed, "{document}: {step}");
        }
    }
}
