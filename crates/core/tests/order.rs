//! The orders of profiles.

#![allow(missing_docs, clippy::unwrap_used, reason = "the names say it, and a test that cannot go on fails")]

use forager_core::order::Order;
use forager_core::scope::{Collection, Profile, ScopeOptions, Scopes, Seed};
use forager_core::select::{SelectConfig, Selector};
use forager_core::url::{FetchUrl, Identity};

#[test]
fn every_order_is_read_by_the_name_it_is_written_by() {
    for order in Order::ALL {
        assert_eq!(order.as_str().parse(), Ok(order));
        assert_eq!(serde_json::to_value(order).unwrap(), order.as_str());
    }
    let error = "random".parse::<Order>().unwrap_err();
    assert_eq!(
        error.to_string(),
        r#""random" is not an order; take fifo, hierarchy, linked, score, risk or services"#
    );
}

#[test]
fn the_first_profile_of_a_seed_in_a_collection_says_the_order() {
    let collection = |id: &str| Collection { id: id.to_owned(), enabled: true };
    let profile = |id: &str, collection: &str, order| Profile { order, ..Profile::new(id, collection) };
    let scopes = Scopes::new(
        &[collection("news"), collection("law")],
        &[
            profile("daily", "news", Order::Score),
            profile("watch", "law", Order::Risk),
            profile("also", "news", Order::Fifo),
        ],
        &[Seed {
            url: "https://a.example/".to_owned(),
            profiles: vec!["watch".to_owned(), "daily".to_owned(), "also".to_owned()],
            enabled: true,
        }],
        ScopeOptions::default(),
    )
    .unwrap();
    let seed = Identity::parse("https://a.example/").unwrap();
    let stranger = Identity::parse("https://b.example/").unwrap();
    assert_eq!(scopes.order("news", &seed), Order::Score);
    assert_eq!(scopes.order("law", &seed), Order::Risk);
    assert_eq!(scopes.order("sports", &seed), Order::default());
    assert_eq!(scopes.order("news", &stranger), Order::default());
}

#[test]
fn a_page_alone_scores_as_among_others() {
    let selector = Selector::new(SelectConfig::default()).unwrap();
    let score = |path: &str, text: &str| {
        let url = FetchUrl::parse(&format!("https://acme.example{path}")).unwrap();
        selector.score(&url, text, "")
    };
    assert_eq!(score("/services/alarm-installation", ""), 100);
    assert_eq!(score("/about", ""), 75);
    assert_eq!(score("/what-we-do", "Our Services"), 50);
    assert_eq!(score("/what-we-do", ""), 0);
    assert_eq!(score("/locations/services", ""), 0, "a service area");
}
