//! What fuzzing found, so that it stays found.

use forager_core::url::Identity;

#[test]
fn a_host_with_empty_labels_has_no_registrable_domain() {
    for host in ["example..", "a.example..", "example...", "a..example.org"] {
        let url = Identity::parse(&format!("http://{host}/")).unwrap();
        assert_eq!(url.registrable_domain(), None, "{host}");
    }
    let rooted = Identity::parse("http://www.example.org./").unwrap();
    assert_eq!(rooted.registrable_domain(), Some("example.org"));
}
