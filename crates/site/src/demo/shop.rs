//! A small business: header navigation, service pages, areas, a blog.

use super::with_robots;
use super::words::Words;
use crate::site::{Asked, Host};
use crate::{Answer, Markup, listing};

const NAV: [(&str, &str); 6] = [
    ("/", "Home"),
    ("/services/", "Services"),
    ("/about/", "About us"),
    ("/blog/", "Blog"),
    ("/contact", "Contact"),
    ("/cart", "Cart"),
];

const SERVICES: [(&str, &str); 10] = [
    ("fire-alarm-installation", "Fire alarm installation"),
    ("fire-alarm-inspection", "Fire alarm inspection"),
    ("fire-sprinklers", "Fire sprinklers"),
    ("extinguisher-maintenance", "Extinguisher maintenance"),
    ("emergency-lighting", "Emergency lighting"),
    ("smoke-detectors", "Smoke detectors"),
    ("evacuation-plans", "Evacuation plans"),
    ("monitoring", "Monitoring around the clock"),
    ("repairs", "Repairs"),
    ("training", "Training"),
];

const TOWNS: [&str; 8] =
    ["ashford", "brookside", "castleton", "dunmore", "eastfield", "fairview", "glenwood", "hillcrest"];

/// Pages that only the sitemap knows.
const HIDDEN: [&str; 4] = ["/offers/spring", "/offers/schools", "/guides/landlords", "/guides/restaurants"];

const POSTS: usize = 14;

pub(super) fn host(seed: u64) -> Host {
    let page = |path: &str, title: &str| {
        let mut words = Words::of(seed, path);
        let page = Markup::new(title).nav(NAV).text(&words.paragraph()).text(&words.paragraph());
        page.footer([("/privacy", "Privacy"), ("/account/login", "Log in")])
    };
    let mut host = with_robots(Host::new("shop.demo"), "/sitemap.xml");
    let mut listed = Vec::new();
    let mut add = |path: String, markup: Markup| {
        listed.push(path.clone());
        host = std::mem::take(&mut host).page(path, Answer::html(markup.finish()));
    };
    for (name, title) in SERVICES {
        let path = format!("/services/{name}");
        let markup =
            page(&path, title).links([("/contact", "Ask for an offer"), ("/services/", "All services")]);
        add(path, markup);
    }
    for town in TOWNS {
        let path = format!("/service-area/{town}");
        add(path.clone(), page(&path, &format!("Fire safety in {town}")));
    }
    for path in HIDDEN {
        add(path.to_owned(), page(path, path.rsplit('/').next().unwrap_or(path)));
    }
    for number in 1..=POSTS {
        let path = format!("/blog/{number}");
        let title = format!("On {}", Words::of(seed, &path).subject());
        let next = format!("/blog/{}", number % POSTS + 1);
        add(path.clone(), page(&path, &title).links([(next, "Next post")]));
    }
    let services = SERVICES.map(|(name, title)| (format!("/services/{name}"), title));
    // The old address of a service, which moved.
    let services = services.into_iter().chain([("/services/sprinklers".to_owned(), "Sprinklers")]);
    add("/services/".to_owned(), page("/services/", "Services").links(services));
    let about = [("/about/team", "Team"), ("/about/history", "History"), ("/about/jobs", "Jobs")];
    add("/about/".to_owned(), page("/about/", "About us").links(about));
    for (path, title) in about {
        add(path.to_owned(), page(path, title));
    }
    let posts = (1..=POSTS).map(|number| (format!("/blog/{number}"), format!("Post {number}")));
    add("/blog/".to_owned(), page("/blog/", "Blog").links(posts));
    add("/contact".to_owned(), page("/contact", "Contact"));
    add("/privacy".to_owned(), page("/privacy", "Privacy"));
    let areas = TOWNS.map(|town| (format!("/service-area/{town}"), town));
    let home = page("/", "Brand & Sons, fire safety").links(areas).finish();
    listed.push("/".to_owned());
    host.made("/", move |asked| home_page(&home, asked))
        .page("/services/sprinklers", Answer::redirect(301, "/services/fire-sprinklers"))
        .page("/cart", Answer::html(Markup::new("Your cart").finish()))
        .page("/account/login", Answer::html(Markup::new("Log in").finish()))
        .made("/sitemap.xml", move |asked| sitemap(&listed, asked))
}

/// The home page, with links to other hosts.
fn home_page(page: &str, asked: &Asked<'_>) -> Answer {
    // Nobody crawls the last one, so that there is always a link out of scope; the others may be in the queue by themselves.
    let elsewhere = [
        ("news.demo", "In the news"),
        ("ured.demo", "The rules that we work by"),
        ("guild.demo", "Our guild"),
    ];
    let links = elsewhere.map(|(host, text)| format!("<a href=\"{}\">{text}</a>", asked.url(host, "/")));
    Answer::html(page.replace("</main>", &format!("{}</main>", links.join("\n")))).etag("home")
}

fn sitemap(paths: &[String], asked: &Asked<'_>) -> Answer {
    Answer::xml(listing::sitemap(paths.iter().map(|path| (asked.url(asked.host, path), None))))
}
