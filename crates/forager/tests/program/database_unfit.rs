//! Databases that cannot be used as they are: what is said, and whether trying again would help.

use crate::common;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use crate::common::run_command;
use crate::server::{Cluster, Schema};

/// A crawler that is started again by whatever starts it knows whether that is of any use.
#[test]
fn what_stays_as_it_is_has_another_status_than_what_may_pass() {
    let (made, newer, older) = (Schema::new(), Schema::new(), Schema::new());
    newer.sql("INSERT INTO migrations (version, name) VALUES (9999, 'later')");
    older.good(&["db", "down", "--to", "3", "--yes"]);
    let at = |from: &str, to: &str| made.url().replacen(from, to, 1);
    let unreachable = "postgres://forager@127.0.0.1:1/postgres?sslmode=disable".to_owned();
    let table = [
        ("nothing in it yet", Schema::unmade().url(), 4, "run `forager db migrate`"),
        ("of an older version", older.url(), 4, "run `forager db migrate`"),
        ("of a newer version", newer.url(), 4, "made by a newer version"),
        ("no such database", at("/postgres?", "/nowhere?"), 4, "\"nowhere\" does not exist"),
        ("no such role", at("forager@", "nobody@"), 4, "\"nobody\" does not exist"),
        ("no server", unreachable, 8, "the database: "),
        ("as it should be", made.url(), 0, ""),
    ];
    for (name, url, status, want) in table {
        let run = ["run", "--until-idle", "--quiet", "--contact", "a@b.example", "--store", &url];
        let ran = run_command(common::forager().args(run), "");
        assert_eq!(ran.status, status, "{name}: {ran:?}");
        assert!(ran.stderr.contains(want), "{name}: {}", ran.stderr);
    }
}

/// A server that says that it is about to be there. Whoever waits for it is told so, and may stop.
#[test]
fn a_wait_for_a_server_is_told_and_can_be_ended() {
    const STARTING: &[u8] = b"SFATAL\0VFATAL\0C57P03\0Mthe database system is starting up\0\0";
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://forager@{}/postgres?sslmode=disable", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for caller in listener.incoming() {
            let mut caller = caller.unwrap();
            let _ = caller.read(&mut [0; 256]).unwrap();
            let length = u32::try_from(STARTING.len() + 4).unwrap().to_be_bytes();
            caller.write_all(&[&b"E"[..], &length, STARTING].concat()).unwrap();
        }
    });
    let mut command = common::forager();
    command.args(["run", "--contact", "a@b.example", "--store", &url]).stderr(Stdio::piped());
    let mut running = command.spawn().unwrap();
    let mut told = BufReader::new(running.stderr.take().unwrap()).lines().map(Result::unwrap);
    told.find(|line| line.contains("is waited for")).expect("it is told");
    let pid = running.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let rest: Vec<String> = told.collect();
    assert_eq!(running.wait().unwrap().code(), Some(11), "{rest:?}");
    let status = common::forager()
        .args(["queue", "stats", "--store", &url])
        .env("FORAGER_STORE__POSTGRES__PATIENCE", "1s")
        .output()
        .unwrap();
    let told = String::from_utf8(status.stderr).unwrap();
    assert!(told.contains("it could not be used for 1 s"), "{told}");
}

/// Statements that one process keeps prepared are met by the next one, on the connection that a pooler lends it.
#[test]
fn who_forgets_what_a_pooler_needs_is_told() {
    let cluster = Cluster::start();
    let run = |url: &str, args: &[&str]| run_command(common::forager().args(args).args(["--store", url]), "");
    assert_eq!(run(&cluster.url, &["db", "migrate"]).status, 0);
    let pool = cluster.pool();
    let told = (0..5).map(|_| run(&pool, &["collection", "list"])).find(|ran| ran.status != 0);
    let told = told.expect("one meets what another left").stderr;
    assert!(told.contains("prepared statement") && told.contains("prepare=false&listen=false"), "{told}");
    let ran = run(&format!("{pool}&prepare=false&listen=false"), &["collection", "list"]);
    assert_eq!(ran.status, 0, "{ran:?}");
}
