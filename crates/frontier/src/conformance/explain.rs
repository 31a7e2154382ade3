//! Why a URL is, or is not, fetched now.

use forager_core::order::Order;
use forager_core::scope::Profile;

use super::World;
use super::world::*;
use crate::catalog::{Change, Limits};
use crate::error::Error;
use crate::explain::Explanation;
use crate::host::{Gate, HostSettings};
use crate::moment::Moment;
use crate::verbs::{NewJob, Steer};

const HOME: &str = "https://a.example/";

async fn site(mut world: World, order: Order) -> World {
    world.harvest("c", order, HOME).await;
    world.start_seed(HOME).await;
    world
}

fn needs(explanation: &Explanation, what: &str) {
    let found = explanation.would_need.iter().any(|need| need.contains(what));
    assert!(found, "{what:?} is not in {:?}", explanation.would_need);
}

fn closed(explanation: &Explanation) -> Vec<(Gate, Option<Moment>)> {
    let shut = explanation.gates.iter().filter(|gate| !gate.is_open);
    shut.map(|gate| (gate.gate, gate.opens)).collect()
}

pub async fn a_url_is_shown_in_all_its_forms(world: World) {
    let mut world = site(world, Order::Hierarchy).await;
    let given = "HTTPS://www.A.example:443/b/../c?x=1#top";
    let forms = world.explain("c", given).await.forms;
    assert_eq!(forms.given, given);
    assert_eq!(forms.fetch, "https://www.a.example/c?x=1");
    assert_eq!(forms.identity, "https://www.a.example/c?x=1");
    assert_eq!(forms.surt, "http://(example,a,www,)/c?x=1");
    assert_eq!(forms.host, "www.a.example");
}

pub async fn what_is_next_needs_nothing(world: World) {
    let mut world = site(world, Order::Hierarchy).await;
    let told = world.explain("c", HOME).await;
    assert_eq!((told.verdict.as_str(), told.would_need.len()), ("next at its host", 0));
    assert_eq!(
        (told.scope.action.as_str(), told.scope.rule.as_str()),
        ("fetch", "7: in scope (c: scope domain)")
    );
    assert_eq!((told.scope.seed.as_deref(), told.scope.depth), (Some(HOME), Some(0)));
    assert_eq!((told.place_in_queue, told.queue_length), (Some(1), 1));
    assert_eq!(closed(&told), []);
    let due = told.due.unwrap();
    assert!(due.is_due && due.at == world.moment(), "{due:?}");
    assert_eq!(told.entry, world.entry("c", HOME).await);
    assert_eq!(world.lease_urls(1).await, [HOME], "and it is");
}

pub async fn what_others_go_before_knows_its_place(world: World) {
    let mut world = site(world, Order::Hierarchy).await;
    world.find("c", HOME, ["https://a.example/1", "https://a.example/2"]).await;
    let told = world.explain("c", "https://a.example/2").await;
    assert_eq!((told.place_in_queue, told.queue_length), (Some(3), 3));
    needs(&told, "2 others");
    world.lease(1).await;
    assert_eq!(world.explain("c", "https://a.example/2").await.place_in_queue, Some(2));
}

pub async fn what_a_worker_has_waits_for_the_worker(world: World) {
    let mut world = site(world, Order::Hierarchy).await;
    world.lease(1).await;
    let told = world.explain("c", HOME).await;
    assert_eq!((told.verdict.as_str(), told.place_in_queue), ("a worker has it", None));
    needs(&told, "worker");
}

pub async fn what_is_not_due_says_when_and_why(world: World) {
    let mut world = site(world, Order::Hierarchy).await;
    let due = world.fetch("x").await.due.unwrap();
    world.pass("1h");
    let told = world.explain("c", HOME).await;
    let shown = told.due.clone().unwrap();
    assert_eq!((shown.at, shown.is_due), (due, false));
    assert!(!shown.because.is_empty());
    needs(&told, &due.to_string());
    let evidence = told.evidence.unwrap();
    assert_eq!((evidence.velocity, evidence.scans, evidence.interval.as_str()), (0.5, 1, "8h"));
    assert!(evidence.reasons[0].contains("velocity and MEDIUM risk give 8h"), "{:?}", evidence.reasons);
}

pub async fn a_failure_is_why_it_is_due_when_it_is(world: World) {
    let mut world = site(world, Order::Hierarchy).await;
    world.fetch_status(503).await;
    let told = world.explain("c", HOME).await;
    let because = &told.due.as_ref().unwrap().because;
    assert!(because.contains("503"), "{because}");
    assert!(closed(&told).iter().any(|(gate, opens)| *gate == Gate::BackOff && opens.is_some()));
    needs(&told, "back-off");
}

pub async fn what_is_through_says_so(mut world: World) {
    let once = |profile: &mut Profile| profile.length = Some(1);
    world.configure([planned("c"), profile("c", "c", once), seed(HOME, ["c"])]).await;
    world.start_seed(HOME).await;
    world.fetch("x").await;
    let told = world.explain("c", HOME).await;
    assert_eq!((told.verdict.as_str(), told.due), ("fetched as often as asked", None));
    assert!(told.would_need[0].contains("started again"), "{:?}", told.would_need);

    let mut world = world.another();
    world.configure([planned("c"), profile("c", "c", once), seed(HOME, ["c"])]).await;
    world.start_seed(HOME).await;
    world.fetch_status(403).await;
    let told = world.explain("c", HOME).await;
    assert_eq!(told.verdict, "given up: 403");
    needs(&told, "started again");
}

pub async fn a_url_never_seen_would_be_added_or_ignored(world: World) {
    let mut world = site(world, Order::Risk).await;
    let told = world.explain("c", "https://a.example/zakon/x").await;
    assert_eq!((told.scope.action.as_str(), told.scope.rule.as_str()), ("add", "in scope (c: scope domain)"));
    assert_eq!((told.entry, told.due, told.place_in_queue, told.priority.value), (None, None, None, None));
    let class = told.class.unwrap();
    assert_eq!((class.node_type.as_str(), class.risk.as_str()), ("LEAF", "CRITICAL"));
    assert_eq!(class.node_role.as_deref(), Some("REGULATION"));
    assert_eq!(told.priority.order, "risk");
    assert!(told.verdict.starts_with("never seen"), "{}", told.verdict);
    assert!(!told.would_need.is_empty());

    let told = world.explain("c", "https://b.example/").await;
    assert_eq!(
        (told.scope.action.as_str(), told.scope.rule.as_str()),
        ("ignore", "out of scope (c: not in scope domain)")
    );
    needs(&told, "not in scope domain");
    assert_eq!(world.stats("c").await.queued, 1, "asking adds nothing");
}

pub async fn a_stranger_at_a_host_that_is_known_is_shown_its_gates(world: World) {
    let mut world = site(world.with(delay("10s")), Order::Hierarchy).await;
    world.lease(1).await;
    let told = world.explain("c", "https://a.example/never-seen").await;
    assert_eq!(closed(&told), [(Gate::Delay, Some(world.later("10s")))]);
}

pub async fn every_closed_gate_is_shown(world: World) {
    let mut world = site(world.with(delay("10s")), Order::Hierarchy).await;
    world.find("c", HOME, ["https://a.example/x"]).await;
    world.lease(1).await;
    let until = world.later("1h");
    let settings = HostSettings { blocked_until: Some(until), in_flight: Some(1), ..HostSettings::default() };
    world.set_host("a.example", settings).await;
    let told = world.explain("c", "https://a.example/x").await;
    assert_eq!(told.gates.len(), 6, "open ones too");
    let shut = closed(&told);
    assert!(shut.contains(&(Gate::Delay, Some(world.later("10s")))), "{shut:?}");
    assert!(shut.contains(&(Gate::Blocked, Some(until))), "{shut:?}");
    assert!(shut.iter().any(|(gate, _)| *gate == Gate::InFlight), "{shut:?}");
    needs(&told, "blocked");
    let never = HostSettings { blocked_until: Some(Moment::NEVER), ..HostSettings::default() };
    world.set_host("a.example", never).await;
    let told = world.explain("c", "https://a.example/x").await;
    assert!(closed(&told).contains(&(Gate::Blocked, None)));
}

pub async fn what_is_disabled_says_what_has_to_be_enabled(world: World) {
    for (disable, rule) in [
        (Change::EnableCollection("c".into(), false), "collection"),
        (Change::EnableSeed(HOME.into(), false), "seed disabled"),
        (Change::EnableProfile("c".into(), false), "disabled profiles"),
    ] {
        let mut world = site(world.another(), Order::Hierarchy).await;
        world.configure([disable]).await;
        let told = world.explain("c", HOME).await;
        assert_eq!(told.scope.action, "postpone", "{rule}");
        needs(&told, rule);
    }
}

pub async fn what_is_out_of_scope_by_now_says_so(world: World) {
    let mut world = site(world, Order::Hierarchy).await;
    world.configure([changed_profile("c", "c", |profile| profile.exclude = vec!["a.example".into()])]).await;
    let told = world.explain("c", HOME).await;
    assert_eq!(told.scope.action, "remove");
    needs(&told, "excluded by a.example");
}

pub async fn a_paused_job_has_to_be_resumed(mut world: World) {
    let profile = profile_value("j", "j", |_| {});
    let job = NewJob { id: "j".into(), urls: vec![HOME.into()], profile, limits: Limits::default() };
    world.frontier().start_job(&job, world.now).await.unwrap();
    world.frontier().steer_job("j", Steer::Pause, world.now).await.unwrap();
    let told = world.explain("j", HOME).await;
    assert_eq!(told.verdict, "queued; not handed out now");
    needs(&told, "resumed");
}

pub async fn a_score_is_shown_term_by_term(world: World) {
    let mut world = site(world, Order::Score).await;
    let told = world.explain("c", HOME).await;
    assert_eq!((told.priority.order.as_str(), told.priority.value), ("score", Some(0.73)));
    let terms = ["50 to start with", "+15 Not visited in 7+ days", "+8 topic relevance", "= 73 of 100"];
    assert_eq!(told.priority.terms, terms);
    world.fetch("x").await;
    let told = world.explain("c", HOME).await;
    assert_eq!((told.priority.value, told.priority.next_step), (Some(0.28), Some(world.later("1h"))));
    world.pass("1h");
    let told = world.explain("c", HOME).await;
    assert_eq!(told.priority.value, Some(0.48), "as it is now, whoever asked before");
}

pub async fn every_order_has_its_terms(world: World) {
    for order in Order::ALL {
        let mut world = site(world.another(), order).await;
        let told = world.explain("c", HOME).await;
        assert_eq!(told.priority.order, order.as_str());
        assert!(!told.priority.terms.is_empty() && told.priority.value.is_some(), "{order}");
    }
}

pub async fn asking_about_what_cannot_be_is_an_error(world: World) {
    let mut world = site(world, Order::Hierarchy).await;
    let error = world.frontier().explain("nowhere", None, HOME, world.now).await.unwrap_err();
    assert!(matches!(error, Error::NotFound { kind: "collection", .. }), "{error}");
    let error = world.frontier().explain("c", None, "mailto:x", world.now).await.unwrap_err();
    assert!(error.to_string().contains("mailto:x"), "{error}");
}

pub async fn what_was_postponed_says_why(world: World) {
    let mut world = site(world, Order::Hierarchy).await;
    world.configure([Change::EnableProfile("c".into(), false)]).await;
    assert_eq!(world.lease(1).await, []);
    let at = world.moment();
    world.pass("10m");
    world.configure([Change::EnableProfile("c".into(), true)]).await;
    assert_eq!(world.lease(1).await, [], "it waits for the time that it was given");
    world.reopen();
    let due = world.explain("c", HOME).await.due.unwrap();
    assert_eq!(due.because, format!("postponed at {at}: 6: only in scope of disabled profiles (c)"));
    world.pass_until(due.at);
    world.fetch("x").await;
    let because = world.explain("c", HOME).await.due.unwrap().because;
    assert!(because.starts_with("it was fetched at "), "{because}");
}
