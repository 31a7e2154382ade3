//! The content of any page, and what changed between two. Input: one page, a zero byte, another.
#![no_main]

use forager_fetch::difference::{Difference, Limits, lines};
use forager_fetch::fingerprint::{Form, take};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (one, other) = text.split_once('\0').unwrap_or((text, ""));
    for form in [Form::Html, Form::Text] {
        let [one, other] = [one, other].map(|text| take(text.as_bytes(), text, form, None));
        for taken in [&one, &other] {
            assert_eq!(taken.fingerprint.exact.len(), 32);
            for line in taken.lines.lines() {
                assert_eq!(line.split_whitespace().collect::<Vec<_>>().join(" "), line, "tidy lines");
                assert!(!line.is_empty());
            }
        }
        let change = lines(&one.lines, &other.lines, Limits::default());
        assert!(change.added.len() <= 100 && change.removed.len() <= 100);
        if one.fingerprint.content != other.fingerprint.content && !one.cut && !other.cut {
            assert_ne!(change, Difference::default(), "a change that can be shown");
        }
    }
    // A script before everything is never seen, nor is a comment.
    let noisy = format!("<script>1</script><!-- 2 -->{one}");
    let [plain, noisy] = [one, &noisy].map(|text| take(text.as_bytes(), text, Form::Html, None));
    assert_eq!(plain.fingerprint.content, noisy.fingerprint.content);
});
