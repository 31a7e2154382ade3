//! The configuration: its layers, and what is said about slips.

use crate::common::{Ran, forager, run_command};
use tempfile::TempDir;

fn folder_with(text: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("forager.toml"), text).unwrap();
    folder
}

fn config(subcommand: &str, text: &str, variables: &[(&str, &str)]) -> Ran {
    let folder = folder_with(text);
    let mut command = forager();
    command.args(["config", subcommand]).current_dir(&folder).envs(variables.iter().copied());
    run_command(&mut command, "")
}

#[test]
fn a_slip_names_the_key_the_line_and_the_nearest_key() {
    let cases = [
        (
            "[select]\npage_cpa = 3",
            "forager.toml:2: unknown key \"page_cpa\" in [select]; did you mean \"page_cap\"?",
        ),
        ("\n[selekt]\npage_cap = 3", "forager.toml:2: unknown key \"selekt\"; did you mean \"select\"?"),
        (
            "[select.scores]\nabsolut = 3",
            "forager.toml:2: unknown key \"absolut\" in [select.scores]; did you mean \"absolute\"?",
        ),
        (
            "[[profiles]]\nid = \"p\"\ncollection = \"c\"\n\n[[profiles]]\nid = \"q\"\ncollection = \"c\"\ndept = 2",
            "forager.toml:8: unknown key \"dept\" in [profiles[1]]; did you mean \"depth\"?",
        ),
        (
            "classify = { rows = [{ patern = \"x\" }] }",
            "forager.toml:1: unknown key \"patern\" in [classify.rows[0]]; did you mean \"pattern\"?",
        ),
        (
            "[manifest]\nxyzzy = 1",
            "forager.toml:2: unknown key \"xyzzy\" in [manifest]; the keys here are limit, reserved_percent",
        ),
    ];
    for (text, problem) in cases {
        let ran = config("check", text, &[]);
        assert_eq!((ran.status, ran.stderr), (2, format!("forager: {problem}\n")), "{text}");
    }
}

#[test]
fn what_no_database_could_be_used_with_is_refused_where_it_stands() {
    let cases = [
        ("connections = 0", "connections", "0 is less than 1"),
        ("statement_timeout = \"0s\"", "statement_timeout", "a statement needs a millisecond at least"),
        ("hold = \"0s\"", "hold", "0s is too short to fetch anything"),
        (
            "schema = \"information_schema\"",
            "schema",
            "\"information_schema\": the server keeps this name for itself",
        ),
        ("schema = \"pg_own\"", "schema", "\"pg_own\": the server keeps this name for itself"),
    ];
    for (line, key, problem) in cases {
        let ran = config("check", &format!("[store.postgres]\n{line}\n"), &[]);
        let told = format!("forager: forager.toml:2: store.postgres.{key}: {problem}\n");
        assert_eq!((ran.status, ran.stderr), (2, told), "{line}");
    }
    let ran = config("check", "", &[("FORAGER_STORE__POSTGRES__CONNECTIONS", "0")]);
    assert!(ran.stderr.contains("FORAGER_STORE__POSTGRES__CONNECTIONS") && ran.status == 2, "{}", ran.stderr);
    let ran = config("check", "[store.postgres]\npatience = \"0s\"\n", &[]);
    assert_eq!(ran.status, 0, "who has none does not wait: {}", ran.stderr);
}

#[test]
fn the_names_of_hosts_are_not_taken_for_slips() {
    type Case<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], &'a str);
    let file = "[fetch]\nresolve = { \"a.test\" = [\"127.0.0.2\"] }\n";
    let variable = ("FORAGER_FETCH__RESOLVE", "{ \"a.test\" = [\"127.0.0.3\"] }");
    let cases: [Case<'_>; 2] = [
        ("a file", file, &[], "fetch.resolve.a.test = [\"127.0.0.2\"] # forager.toml:2"),
        (
            "a variable",
            "",
            &[variable],
            "fetch.resolve.a.test = [\"127.0.0.3\"] # environment FORAGER_FETCH__RESOLVE",
        ),
    ];
    for (name, text, variables, want) in cases {
        let ran = config("show", text, variables);
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{name}");
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(ran.stdout.lines().any(|line| words(line) == want), "{name}: {}", ran.stdout);
    }
}

#[test]
fn every_slip_of_a_file_is_named_at_once() {
    let ran = config("check", "[select]\npage_cpa = 3\n[manifest]\nlimt = 3\n", &[]);
    let lines: Vec<_> = ran.stderr.lines().map(|line| line.split(": ").nth(1).unwrap()).collect();
    assert_eq!(lines, ["forager.toml:2", "forager.toml:4"]);
}

#[test]
fn a_bad_value_names_its_key_and_line() {
    let profile = "[[profiles]]\nid = \"p\"\ncollection = \"c\"\n";
    let cases = [
        ("[select]\npage_cap = \"five\"", "forager.toml:2: select.page_cap: invalid type: string \"five\""),
        ("[select]\npage_cap = -1", "forager.toml:2: select.page_cap: "),
        ("select = 1", "forager.toml:1: select: invalid type: integer `1`, expected a section"),
        (
            "[select]\ndisallowed_paths = [\"impressum\"]",
            "forager.toml:2: select.disallowed_paths: disallowed_paths holds \"impressum\"",
        ),
        ("[sentinel]\njitter = 1.5", "forager.toml:2: sentinel.jitter: 1.5 is not a share"),
        (
            "[sentinel]\npreset = \"centinel\"",
            "forager.toml:2: sentinel.preset: unknown variant `centinel`, expected `sentinel`",
        ),
        (
            "[manifest]\nreserved_percent = 101",
            "forager.toml:2: manifest.reserved_percent: 101 is not from 0 to 100",
        ),
        (
            "[sentinel.max_interval]\ncritical = \"soon\"",
            "forager.toml:2: sentinel.max_interval.critical: \"soon\" is not a length of time",
        ),
        (
            "[sentinel.max_interval]\nlow = \"0s\"",
            "forager.toml:2: sentinel.max_interval.low: 0s is too short; take at least 1m",
        ),
        (&format!("{profile}every = \"1 month\""), "forager.toml:4: profiles[0].every: "),
        (
            &format!("{profile}scope = \"planet\""),
            "forager.toml:4: profiles[0].scope: unknown variant `planet`, expected one of `page`",
        ),
        (
            &format!("{profile}exclude = [\"(\"]"),
            "forager.toml:4: profiles[0].exclude: profile \"p\": exclude: regex parse error",
        ),
        (
            &format!("{profile}schemes = [\"ftp\"]"),
            "forager.toml:4: profiles[0].schemes: profile \"p\": scheme \"ftp\"",
        ),
        (&format!("{profile}{profile}"), "forager.toml:5: profiles[1].id: profile \"p\" is there twice"),
        ("[[seeds]]\nurl = \"x\"\nprofiles = []", "forager.toml:2: seeds[0].url: seed \"x\": "),
        (
            "[[seeds]]\nurl = \"http://a.example\"\nprofiles = []\n[[seeds]]\nurl = \"https://a.example/\"\nprofiles = []",
            "forager.toml:5: seeds[1].url: seed \"https://a.example/\" is there twice",
        ),
        ("[[seeds]]\nurl = \"http://a.example\"", "forager.toml:1: seeds[0]: missing field `profiles`"),
        (
            "[[classify.rows]]\npattern = \"(\"\nnode = \"HUB\"\nrisk = \"LOW\"",
            "forager.toml:2: classify.rows[0].pattern: regex parse error",
        ),
        ("[select]\nurl_terms = [\"\"]", "forager.toml:2: select.url_terms: url_terms holds an empty text"),
        (
            "[fetch]\nuser_agent = \"(Example) me@a.example\"",
            "forager.toml:2: fetch.user_agent: it does not begin with a word by which robots.txt could address us",
        ),
        ("[fetch]\ntimeout = \"0s\"", "forager.toml:2: fetch.timeout: 0s is too short to fetch anything"),
        ("[fetch]\nanswer_timeout = \"0s\"", "forager.toml:2: fetch.answer_timeout: 0s is too short"),
        ("[fetch]\nconnect_timeout = \"0m\"", "forager.toml:2: fetch.connect_timeout: 0s is too short"),
        ("[fetch]\nmax_bytes = 0", "forager.toml:2: fetch.max_bytes: with 0 bytes nothing can be read"),
        ("[fetch]\nat_once = 0", "forager.toml:2: fetch.at_once: 0 is not between 1 and 10000"),
        ("[politeness]\nin_flight = 0", "forager.toml:2: politeness.in_flight: 0 is less than 1"),
        ("[select]\n\npage_cap = = 3", "forager.toml:3: "),
    ];
    for (text, problem) in cases {
        let ran = config("check", text, &[]);
        assert!(ran.stderr.starts_with(&format!("forager: {problem}")), "{text}\n{}", ran.stderr);
        assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{text}");
    }
}

#[test]
fn a_good_file_is_counted_and_dangling_names_are_warned_of() {
    let text = "[[collections]]\nid = \"c\"\n[[profiles]]\nid = \"p\"\ncollection = \"gone\"\n[[seeds]]\nurl = \"https://a.example/\"\nprofiles = [\"p\", \"q\"]\n";
    let ran = config("check", text, &[]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "forager.toml: 1 collection, 1 profile, 1 seed\n"));
    let warnings = "forager: warning: profile \"p\" belongs to collection \"gone\", which is not configured\n\
                    forager: warning: seed \"https://a.example/\" names profile \"q\", which is not configured\n";
    assert_eq!(ran.stderr, warnings);
}

#[test]
fn each_value_knows_where_it_came_from() {
    let text = "[select]\npage_cap = 7\nfold_www = true\n[[profiles]]\nid = \"p\"\ncollection = \"c\"\nevery = \"2 days\"\n";
    let ran = config(
        "show",
        text,
        &[("FORAGER_SELECT__PAGE_CAP", "9"), ("FORAGER_SENTINEL__MAX_INTERVAL__CRITICAL", "4h")],
    );
    let shown = |key: &str| {
        let line = ran.stdout.lines().find(|line| line.starts_with(&format!("{key} = "))).unwrap();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(shown("select.page_cap"), "select.page_cap = 9 # environment FORAGER_SELECT__PAGE_CAP");
    assert_eq!(shown("select.fold_www"), "select.fold_www = true # forager.toml:3");
    assert_eq!(shown("select.drop_top_level"), "select.drop_top_level = false # default");
    assert_eq!(shown("profiles[0].every"), "profiles[0].every = \"48h\" # forager.toml:7");
    assert_eq!(shown("profiles[0].depth"), "profiles[0].depth = (not set) # default");
    assert_eq!(
        shown("sentinel.max_interval.critical"),
        "sentinel.max_interval.critical = \"4h\" # environment FORAGER_SENTINEL__MAX_INTERVAL__CRITICAL"
    );
}

#[test]
fn a_preset_says_what_is_left_open_and_nothing_else() {
    let cases = [
        ("", "preset = (not set) # default", "max_interval.critical = (not set) # default"),
        (
            "preset = \"sentinel\"\n",
            "preset = \"sentinel\" # forager.toml:2",
            "max_interval.critical = \"4h\" # sentinel.preset",
        ),
        (
            "preset = \"sentinel\"\nmax_interval.critical = \"1h\"\n",
            "preset = \"sentinel\" # forager.toml:2",
            "max_interval.critical = \"1h\" # forager.toml:3",
        ),
    ];
    for (keys, preset, critical) in cases {
        let ran = config("show", &format!("[sentinel]\n{keys}"), &[]);
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = ran.stdout.lines().map(words).collect();
        for want in [preset, critical, "max_interval.low = (not set) # default"] {
            assert!(lines.contains(&format!("sentinel.{want}")), "{keys}: {want} is not in\n{}", ran.stdout);
        }
    }
}

#[test]
fn variables_are_checked_as_the_file_is() {
    let cases = [
        (
            ("FORAGER_SEEDS__0__URL", "x"),
            "environment FORAGER_SEEDS__0__URL: a list is set as a whole, not element by element",
        ),
        (
            ("FORAGER_PROFILES", "[{ id = \"p\", collection = \"c\", dept = 3 }]"),
            "environment FORAGER_PROFILES: unknown key \"dept\" in [profiles[0]]; did you mean \"depth\"?",
        ),
        (
            ("FORAGER_SELECT__PAGE_CAP", "3\nfoo = 1"),
            "environment FORAGER_SELECT__PAGE_CAP: select.page_cap: invalid type: string",
        ),
        (
            ("FORAGER_SELECT__PAGE_CAPP", "1"),
            "environment FORAGER_SELECT__PAGE_CAPP: unknown key \"page_capp\"; did you mean \"page_cap\"?",
        ),
        (
            ("FORAGER_SELECT_PAGE_CAP", "3"),
            "environment FORAGER_SELECT_PAGE_CAP: unknown key \"select_page_cap\"; ",
        ),
        (
            ("FORAGER_SELECT__PAGE_CAP", "many"),
            "environment FORAGER_SELECT__PAGE_CAP: select.page_cap: invalid type: string \"many\"",
        ),
        (
            ("FORAGER_SELECT__SCORES", "1"),
            "environment FORAGER_SELECT__SCORES: \"select.scores\" is a section, not a key",
        ),
    ];
    for (variable, problem) in cases {
        let ran = config("check", "", &[variable]);
        assert!(ran.stderr.starts_with(&format!("forager: {problem}")), "{}", ran.stderr);
        assert_eq!(ran.status, 2);
    }
}

#[test]
fn a_file_that_is_named_must_be_there() {
    let mut command = forager();
    let ran = run_command(command.args(["config", "check", "--config", "nowhere.toml"]), "");
    assert_eq!(ran.status, 2);
    assert!(
        ran.stderr.starts_with("forager: cannot read the configuration nowhere.toml: "),
        "{}",
        ran.stderr
    );
    let mut command = forager();
    let ran = run_command(command.args(["config", "check"]).env("FORAGER_CONFIG", "elsewhere.toml"), "");
    assert!(ran.stderr.contains("elsewhere.toml"), "{}", ran.stderr);
}

#[test]
fn a_list_in_a_variable_replaces_that_of_the_file() {
    let text = "[[classify.rows]]\npattern = \"/x\"\nnode = \"HUB\"\nrisk = \"LOW\"\n";
    let rows = "[{pattern = \"/y\", node = \"LEAF\", risk = \"HIGH\"}, {pattern = \"/z\", node = \"LEAF\", risk = \"LOW\"}]";
    let ran = config("show", text, &[("FORAGER_CLASSIFY__ROWS", rows)]);
    let lines: Vec<&str> = ran.stdout.lines().filter(|line| line.starts_with("classify.rows[")).collect();
    assert_eq!(lines.len(), 8, "{}", ran.stdout);
    assert!(lines.iter().all(|line| line.ends_with("# environment FORAGER_CLASSIFY__ROWS")), "{lines:?}");
}

#[test]
#[cfg(unix)]
fn only_our_own_variables_must_be_text() {
    use std::os::unix::ffi::OsStrExt as _;
    let mut command = forager();
    command.args(["config", "check"]).env("OTHER", std::ffi::OsStr::from_bytes(b"\xff"));
    assert_eq!(run_command(&mut command, "").status, 0);
    let mut command = forager();
    command.args(["config", "check"]).env("FORAGER_MANIFEST__LIMIT", std::ffi::OsStr::from_bytes(b"\xff"));
    let ran = run_command(&mut command, "");
    assert_eq!(
        (ran.status, ran.stderr.as_str()),
        (2, "forager: environment FORAGER_MANIFEST__LIMIT: not UTF-8\n")
    );
}
