//! What a check of the store finds.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use common::{new_folder, open, wait};
use forager_frontier::verbs::{Note, text_key};
use forager_frontier::{Frontier as _, Settings};
use jiff::Timestamp;

/// Earlier versions left the texts of collections that were removed behind.
#[test]
fn the_text_of_a_page_that_is_gone_is_found() {
    let folder = new_folder();
    let store = open(folder.path(), Settings::default());
    let left = text_key("gone", "https://a.example/");
    let keep = |key: &str| Note::Keep(key.to_owned(), Some(b"x".to_vec()));
    let notes = [keep(&left), keep("text"), keep("robots https://a.example")];
    wait(store.note(&notes, Timestamp::from_second(1_800_000_000).unwrap())).unwrap();
    let found: Vec<(String, String)> =
        store.check().unwrap().into_iter().map(|finding| (finding.place, finding.problem)).collect();
    let want = ("note \"text gone https://a.example/\"", "it is the text of a page that does not come back");
    assert_eq!(found, [(want.0.to_owned(), want.1.to_owned())]);
}
