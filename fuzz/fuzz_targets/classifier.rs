//! What kind of page a URL leads to, under any table.
//!
//! Input: the URL, then the content type, then up to three patterns, one on each line.
#![no_main]

use std::sync::LazyLock;

use forager_core::sentinel::Risk;
use forager_core::sentinel::classify::{Classifier, NodeRole, NodeType, Reason, Row};
use forager_core::url::FetchUrl;
use libfuzzer_sys::fuzz_target;

static DEFAULT: LazyLock<Classifier> = LazyLock::new(Classifier::default);

fuzz_target!(|text: &str| {
    let mut lines = text.lines();
    let Ok(url) = FetchUrl::parse(lines.next().unwrap_or_default()) else { return };
    let content_type = lines.next();
    let rows: Vec<Row> = lines.take(3).map(row).collect();
    let Ok(classifier) = Classifier::new(rows.clone()) else { return };
    let class = classifier.classify(&url, content_type);
    let [reason] = class.reasons[..] else { panic!("one reason, not {:?}", class.reasons) };
    match reason {
        Reason::AssetEnding(_) | Reason::AssetType(_) => assert_eq!(class.node_type, NodeType::Asset),
        Reason::OwnRow(_) => {
            // Of all own rows that match on their own, the first decides.
            let first = rows.iter().find(|row| is_matched_alone(row, &url));
            assert_eq!(first.map(|row| Reason::OwnRow(&row.pattern)), Some(reason));
        }
        Reason::DefaultRow(_) | Reason::NoRow => {
            assert!(!rows.iter().any(|row| is_matched_alone(row, &url)), "own rows come first");
            assert_eq!(DEFAULT.classify(&url, content_type), class);
        }
        Reason::AssetOnCriticalPage => panic!("nothing was said of the page it was found on"),
    }
    let is_asset = class.node_type == NodeType::Asset;
    let risk = class.freshness_risk;
    let expected = if is_asset { Risk::Critical } else { risk };
    assert_eq!(class.on_page_of(Risk::Critical).freshness_risk, expected);
});

fn row(pattern: &str) -> Row {
    Row { pattern: pattern.to_owned(), node: NodeType::Hub, role: Some(NodeRole::Index), risk: Risk::High }
}

fn is_matched_alone(row: &Row, url: &FetchUrl) -> bool {
    let alone = Classifier::new(vec![row.clone()]).expect("it compiled among others");
    matches!(alone.classify(url, None).reasons[..], [Reason::OwnRow(_)])
}
