//! The adaptive sentinel: what kind of page it is, and how often it changes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{after, cases, now};
use forager_core::sentinel::Risk;
use forager_core::sentinel::classify::{Class, Classifier, NodeRole, NodeType, Reason, Row};
use forager_core::sentinel::velocity::{Evidence, Velocity};
use forager_core::url::FetchUrl;
use proptest::prelude::*;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ClassifyCase {
    #[serde(default)]
    name: String,
    url: FetchUrl,
    content_type: Option<String>,
    parent_risk: Option<Risk>,
    expected: ExpectedClass,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ExpectedClass {
    node_type: NodeType,
    node_role: Option<NodeRole>,
    freshness_risk: Risk,
}

impl From<Class<'_>> for ExpectedClass {
    fn from(Class { node_type, node_role, freshness_risk, .. }: Class<'_>) -> Self {
        Self { node_type, node_role, freshness_risk }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct VelocityCase {
    current: Velocity,
    scan_count: u64,
    changed: bool,
    expected: f64,
}

fn classify(classifier: &Classifier, url: &str) -> ExpectedClass {
    classifier.classify(&url.parse().unwrap(), None).into()
}

fn velocity(value: f64) -> Velocity {
    Velocity::new(value).unwrap()
}

fn is_close(velocity: Velocity, to: f64) -> bool {
    (velocity.get() - to).abs() < 1e-9
}

#[test]
fn every_case_has_its_class() {
    let classifier = Classifier::default();
    for (file, at_least) in [("sentinel", 20), ("more-sentinel", 60)] {
        for case in cases::<ClassifyCase>(file, "classify", at_least) {
            let mut class = classifier.classify(&case.url, case.content_type.as_deref());
            if let Some(parent) = case.parent_risk {
                class = class.on_page_of(parent);
            }
            assert_eq!(ExpectedClass::from(class), case.expected, "{} {}", case.name, case.url);
        }
    }
}

#[test]
fn each_alternative_of_each_row_has_the_class_of_its_row() {
    use NodeRole::{Archive, Form, Guidance, Index, NewsFeed, Regulation};
    use NodeType::{Hub, Leaf};
    // The words that the pattern of the row stands for, and what follows them.
    let table = [
        ("arhiv arhiva archive povijest history stari stari-", "/", Hub, Archive, Risk::Low),
        (
            "savjetovanja esavjetovanja e-savjetovanja javna-rasprava public-consult",
            "",
            Hub,
            Guidance,
            Risk::Critical,
        ),
        ("natjecaji tenders javna-nabava pozivi", "", Hub, NewsFeed, Risk::High),
        ("vijesti novosti news priopcenja priopćenja aktual objave mediji", "", Hub, NewsFeed, Risk::High),
        ("obrasc obrasci form forms tiskanice prijav prijave zahtjevi", "", Leaf, Form, Risk::Medium),
        (
            "upute uputa misljenje misljenja mišljenje mišljenja tumacenje tumacenja tumačenje tumačenja \
             stajaliste stajalista guidance",
            "",
            Leaf,
            Guidance,
            Risk::Medium,
        ),
        (
            "propisi zakon zakoni pravilnic pravilnici uredb uredbe odluk odluke akti sluzbeni",
            "",
            Leaf,
            Regulation,
            Risk::Critical,
        ),
        ("index sadržaj sadrzaj pregled content contents", ".", Hub, Index, Risk::Low),
    ];
    let classifier = Classifier::default();
    let mut count = 0;
    for (words, end, node_type, role, freshness_risk) in table {
        for word in words.split_whitespace() {
            let want = || ExpectedClass { node_type, node_role: Some(role), freshness_risk };
            for path in [format!("/{word}{end}"), format!("/A/B/{}{end}x", word.to_uppercase())] {
                assert_eq!(classify(&classifier, &format!("https://x.hr{path}")), want(), "{path}");
            }
            for path in [format!("/x{word}{end}"), format!("/{}{end}", &word[..word.len() - 2])] {
                let class = classify(&classifier, &format!("https://x.hr{path}"));
                assert_ne!(class, want(), "{path} is another word");
            }
            count += 1;
        }
    }
    assert_eq!(count, 62);
}

#[test]
fn each_asset_ending_and_type_is_an_asset() {
    let classifier = Classifier::default();
    for ending in "pdf doc docx xls xlsx ppt pptx odt ods".split(' ') {
        let class = classify(&classifier, &format!("https://x.hr/propisi/a.{ending}"));
        assert_eq!(class.node_type, NodeType::Asset, "{ending}");
        let class = classify(&classifier, &format!("https://x.hr/propisi/a-{ending}"));
        assert_eq!(class.node_type, NodeType::Leaf, "{ending} without a dot");
    }
}

#[test]
fn own_rows_come_before_the_table_but_after_assets() {
    let row = |pattern: &str, node, risk| Row { pattern: pattern.to_owned(), node, role: None, risk };
    let own = vec![
        row("/vijesti/hitno", NodeType::Leaf, Risk::Critical),
        row("/vijesti/", NodeType::Leaf, Risk::Low),
        row("^//special\\.hr/", NodeType::Hub, Risk::High),
    ];
    let classifier = Classifier::new(own).unwrap();
    let table = [
        ("https://x.hr/vijesti/hitno/1", NodeType::Leaf, Risk::Critical, "own row: /vijesti/hitno"),
        ("https://x.hr/vijesti/1", NodeType::Leaf, Risk::Low, "own row: /vijesti/"),
        ("https://special.hr/vijesti", NodeType::Hub, Risk::High, "own row: ^//special\\.hr/"),
        (
            "https://x.hr/tenders",
            NodeType::Hub,
            Risk::High,
            "default row: /(natjecaji|tenders|javna-nabava|pozivi)",
        ),
        ("https://x.hr/vijesti/1.pdf", NodeType::Asset, Risk::Medium, "asset: path ends in .pdf"),
        ("https://x.hr/a", NodeType::Leaf, Risk::Medium, "no row matches"),
    ];
    for (url, node_type, risk, reason) in table {
        let class = classifier.classify(&url.parse().unwrap(), None);
        assert_eq!((class.node_type, class.freshness_risk), (node_type, risk), "{url}");
        assert_eq!(class.reasons.iter().map(ToString::to_string).collect::<Vec<_>>(), [reason], "{url}");
    }
    assert!(Classifier::new(vec![row("(", NodeType::Hub, Risk::Low)]).is_err());
    assert!(Classifier::new(vec![row("(a{1000}){1000}", NodeType::Hub, Risk::Low)]).is_err(), "too large");
}

#[test]
fn an_inherited_risk_is_a_further_reason() {
    let classifier = Classifier::default();
    let class = classifier.classify(&"https://x.hr/d".parse().unwrap(), Some("application/PDF"));
    let reasons = class.on_page_of(Risk::Critical).reasons;
    assert_eq!(reasons, [Reason::AssetType("pdf"), Reason::AssetOnCriticalPage]);
}

#[test]
fn risks_have_an_order_a_factor_and_a_name() {
    let names = Risk::ALL.map(|risk| (risk.as_str(), risk.factor().to_string()));
    let want = [("LOW", "0.5"), ("MEDIUM", "1"), ("HIGH", "2"), ("CRITICAL", "4")];
    assert_eq!(names, want.map(|(name, factor)| (name, factor.to_owned())));
    assert!(Risk::ALL.is_sorted());
}

#[test]
fn every_case_has_its_velocity() {
    for (file, at_least) in [("sentinel", 9), ("more-sentinel", 15)] {
        for VelocityCase { current, scan_count, changed, expected } in cases(file, "velocity", at_least) {
            let after = current.after_scan(scan_count, changed);
            assert!(
                is_close(after, expected),
                "{current:?}, scan {scan_count}, {changed}: {after:?}, not {expected}"
            );
        }
    }
}

#[test]
fn five_stable_scans_and_one_change_follow_the_formula_not_the_document() {
    let table = [(0.5, 0.295_245, 0.65), (0.8, 0.472_392, 0.86), (0.1, 0.059_049, 0.37)];
    for (start, stable, changed) in table {
        let after_five = (0..5).fold(velocity(start), |current, _| current.after_scan(3, false));
        assert!(is_close(after_five, stable), "{start} after five stable scans: {after_five:?}");
        let woken = velocity(start).after_scan(3, true);
        assert!(is_close(woken, changed), "{start} after one change: {woken:?}");
    }
}

#[test]
fn evidence_grows_with_each_scan_and_remembers_the_last_change() {
    let scans = [
        // changed, velocity after, last change after
        ("the first scan ever is never a change", true, 0.5, None),
        ("a change while warming up moves no velocity", true, 0.5, Some("2h")),
        ("a stable scan keeps the time of the change", false, 0.5, Some("2h")),
        ("the fourth scan is the first to count", true, 0.65, Some("4h")),
        ("stable", false, 0.585, Some("4h")),
        ("changed", true, 0.7095, Some("6h")),
    ];
    let mut evidence = Evidence::default();
    for (hours, (name, changed, velocity, last_changed)) in (1..).zip(scans) {
        evidence = evidence.after_scan(changed, after(&format!("{hours}h")));
        assert!(is_close(evidence.velocity, velocity), "{name}: {evidence:?}");
        assert_eq!(evidence.scan_count, hours, "{name}");
        assert_eq!(evidence.last_changed_at, last_changed.map(after), "{name}");
    }
}

#[test]
fn a_velocity_is_a_number_from_0_to_1() {
    for value in [f64::NAN, f64::INFINITY, -0.01, 1.01] {
        assert_eq!(Velocity::new(value), None, "{value}");
    }
    assert!(serde_json::from_str::<Velocity>("0.5").is_ok());
    let error = serde_json::from_str::<Velocity>("1.5").unwrap_err().to_string();
    assert!(error.starts_with("1.5 is not a number from 0 to 1"), "{error}");
}

proptest! {
    #[test]
    fn a_velocity_stays_within_its_bounds(
        current in 0.0..=1.0_f64,
        scans in prop::collection::vec(any::<bool>(), 1..40),
    ) {
        let mut evidence = Evidence { velocity: velocity(current), ..Evidence::default() };
        for changed in scans {
            let before = evidence;
            evidence = evidence.after_scan(changed, now());
            prop_assert!((Velocity::MIN..=Velocity::MAX).contains(&evidence.velocity), "{evidence:?}");
            if before.scan_count < 3 {
                prop_assert!(is_close(evidence.velocity, 0.5));
            } else if changed {
                prop_assert!(evidence.velocity >= before.velocity);
            } else {
                prop_assert!(evidence.velocity <= before.velocity);
            }
        }
    }

    #[test]
    fn every_url_has_a_class_and_one_reason(
        path in "[a-zšć%0-9/.-]{0,20}",
        content_type in prop::option::of(any::<String>()),
    ) {
        static CLASSIFIER: std::sync::LazyLock<Classifier> = std::sync::LazyLock::new(Classifier::default);
        let url: FetchUrl = format!("https://x.hr/{path}").parse().unwrap();
        let class = CLASSIFIER.classify(&url, content_type.as_deref());
        prop_assert_eq!(class.reasons.len(), 1);
        let is_asset = matches!(class.reasons[0], Reason::AssetEnding(_) | Reason::AssetType(_));
        prop_assert_eq!(class.node_type == NodeType::Asset, is_asset);
        prop_assert_eq!(class.node_role.is_some(), matches!(class.reasons[0], Reason::DefaultRow(_)));
    }
}
