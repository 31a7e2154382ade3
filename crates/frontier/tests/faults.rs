//! What goes wrong with disks and folders: each is told clearly, and nothing acknowledged is lost.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::calls::{Call, Caller, sequence};
use common::{close, is_sound, new_folder, open, setting, try_open, wait};
use forager_core::scope::{Profile, Seed};
use forager_frontier::catalog::{Change, CollectionSpec, Kind};
use forager_frontier::verbs::{Link, ListFilter, Page};
use forager_frontier::{Embedded, Error, Frontier, Memory, Settings};
use jiff::Timestamp;

const HOME: &str = "https://a.example/";

fn now() -> Timestamp {
    "2024-06-15T08:00:00Z".parse().unwrap()
}

fn begin(store: &Embedded) {
    let seed = Seed { url: HOME.into(), profiles: vec!["p".into()], enabled: true };
    let changes = [
        Change::AddCollection(CollectionSpec::new("c", Kind::Planned)),
        Change::AddProfile(Box::new(Profile::new("p", "c"))),
        Change::AddSeed(seed),
    ];
    wait(store.configure(&changes, now())).unwrap();
}

/// Adds so many pages with numbers from `from` on.
fn add(store: &Embedded, from: usize, count: usize) -> forager_frontier::Result<()> {
    let links = (from..from + count).map(|number| Link {
        url: format!("https://a.example/{number}/{}", "x".repeat(60)),
        ..Link::default()
    });
    let page =
        Page { collection: "c".into(), seed: Some(HOME.into()), links: links.collect(), ..Page::default() };
    wait(store.discover(&[page], now())).map(|_| ())
}

fn count(store: &Embedded) -> usize {
    let stats = wait(store.stats(Some("c"), now())).unwrap().remove(0);
    let all = ListFilter { limit: usize::MAX, ..ListFilter::default() };
    let listed = wait(store.list(&all, now())).unwrap().entries.len();
    assert_eq!(stats.queued, listed as u64, "counts equal a scan");
    is_sound(store);
    listed
}

/// The error tells which folder it is about.
fn names_folder(error: &Error, folder: &Path) {
    let (text, folder) = (error.to_string(), folder.display().to_string());
    assert!(text.contains(&folder), "{text:?} does not name {folder}");
}

/// Runs a test of this file once more where it may mount what it likes; whatever it mounts goes with it.
/// Returns whether this is that run.
fn has_mounts_of_its_own(test: &str) -> bool {
    const INSIDE: &str = "FORAGER_MOUNTS";
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let ways = [&["--mount"][..], &["--map-root-user", "--mount"][..]];
    let works = |way: &&&[&str]| {
        let tried = Command::new("unshare").args(**way).arg("true").stderr(Stdio::null()).status();
        tried.is_ok_and(|status| status.success())
    };
    let way =
        ways.iter().find(works).expect("this test needs `unshare --mount`, as root or with user namespaces");
    let status = Command::new("unshare")
        .args(*way)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .status()
        .unwrap();
    assert!(status.success(), "{test} failed, see above");
    false
}

fn mount(arguments: &[&str], folder: &Path) {
    let status = Command::new("mount").args(arguments).arg(folder).status().unwrap();
    assert!(status.success(), "mount {arguments:?} {}", folder.display());
}

#[test]
fn a_full_disk_is_told_and_nothing_acknowledged_is_lost() {
    if !has_mounts_of_its_own("a_full_disk_is_told_and_nothing_acknowledged_is_lost") {
        return;
    }
    let disk = new_folder();
    mount(&["-t", "tmpfs", "-o", "size=3m", "tmpfs"], disk.path());
    let folder = disk.path().join("store");
    let store = open(&folder, Settings::default());
    begin(&store);
    let mut acknowledged = 0;
    let error = loop {
        match add(&store, acknowledged, 100) {
            Ok(()) => acknowledged += 100,
            Err(error) => break error,
        }
        assert!(acknowledged < 1_000_000, "the disk never fills");
    };
    assert!(acknowledged > 0);
    names_folder(&error, &folder);
    let text = error.to_string();
    assert!(text.to_lowercase().contains("no space left"), "{text}");
    // Nothing more is accepted, so that nobody builds on what is not there.
    let again = add(&store, 0, 1).unwrap_err();
    assert!(matches!(again, Error::Stopped { .. }), "{again}");
    drop(store);

    // While the disk is full it opens with all there is, or says why not.
    match try_open(&folder, Settings::default()) {
        Ok(store) => assert!(count(&store) >= acknowledged),
        Err(error) => names_folder(&error, &folder),
    }
    mount(&["-o", "remount,size=64m"], disk.path());
    let store = open(&folder, Settings::default());
    let found = count(&store);
    assert!(
        (acknowledged..=acknowledged + 100).contains(&found),
        "{acknowledged} acknowledged, {found} found"
    );
    assert!(found == acknowledged || found == acknowledged + 100, "half a call: {found}");
    add(&store, 0, acknowledged + 200).unwrap();
    assert_eq!(count(&store), acknowledged + 200, "and it goes on");
    close(store);
    drop(open(&folder, Settings::default()));
    let status = Command::new("umount").arg(disk.path()).status().unwrap();
    assert!(status.success());
}

#[test]
fn a_folder_that_cannot_be_written_is_told() {
    if !has_mounts_of_its_own("a_folder_that_cannot_be_written_is_told") {
        return;
    }
    let disk = new_folder();
    mount(&["-t", "tmpfs", "-o", "size=64m", "tmpfs"], disk.path());
    let folder = disk.path().join("store");
    let store = open(&folder, Settings::default());
    begin(&store);
    add(&store, 0, 10).unwrap();
    close(store);
    mount(&["-o", "remount,ro"], disk.path());
    for folder in [&folder, &disk.path().join("new")] {
        let error = try_open(folder, Settings::default()).unwrap_err();
        names_folder(&error, folder);
        assert!(matches!(error, Error::Storage { .. }), "{error:?}");
        assert!(error.to_string().contains("Read-only"), "{error}");
    }
    mount(&["-o", "remount,rw"], disk.path());
    let store = open(&folder, Settings::default());
    assert_eq!(count(&store), 10);
    close(store);
    let status = Command::new("umount").arg(disk.path()).status().unwrap();
    assert!(status.success());
}

#[test]
fn what_is_no_folder_of_ours_is_told_and_left_alone() {
    let base = new_folder();
    let file = base.path().join("file");
    fs::write(&file, "not a folder").unwrap();
    let strange = base.path().join("strange");
    fs::create_dir(&strange).unwrap();
    fs::write(strange.join("holiday.jpg"), "a picture").unwrap();
    for (path, what, is_unfit) in [
        (file.clone(), "a file", true),
        (file.join("below"), "below a file", false),
        (PathBuf::from("/proc/forager"), "where no folder can be made", false),
        (strange.clone(), "a folder of something else", true),
    ] {
        let Err(error) = try_open(&path, Settings::default()) else { panic!("{what} was opened") };
        names_folder(&error, &path);
        let is_told = if is_unfit {
            matches!(error, Error::Unfit { .. })
        } else {
            matches!(error, Error::Storage { .. })
        };
        assert!(is_told, "no backup would help: {what}: {error:?}");
        assert!(error.to_string().ends_with("with --data"), "{what}: {error}");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "not a folder");
    let left: Vec<_> = fs::read_dir(&strange).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left, ["holiday.jpg"], "nothing was added");
}

#[test]
fn an_empty_folder_becomes_a_store() {
    let folder = new_folder();
    let store = open(folder.path(), Settings::default());
    begin(&store);
    close(store);
}

/// Not a test of its own: opens a folder, and says what came of it.
#[test]
fn second() {
    let Ok(folder) = std::env::var("FORAGER_SECOND") else { return };
    let told = match try_open(Path::new(&folder), Settings::default()) {
        Ok(_) => "opened".to_owned(),
        Err(error) => error.to_string(),
    };
    std::io::stdout().write_all(format!("@{told}\n").as_bytes()).unwrap();
}

#[test]
fn a_second_process_is_turned_away() {
    let folder = new_folder();
    let ask = || {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "second", "--nocapture"])
            .env("FORAGER_SECOND", folder.path())
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().find_map(|line| Some(line.split_once('@')?.1.to_owned())).expect("an answer")
    };
    let store = open(folder.path(), Settings::default());
    begin(&store);
    let told = ask();
    assert!(told.contains("is open in another process"), "{told}");
    assert!(told.contains(&folder.path().display().to_string()), "{told}");
    let here = try_open(folder.path(), Settings::default()).unwrap_err();
    assert!(matches!(here, Error::Locked { .. }), "in the same process too: {here:?}");
    add(&store, 0, 10).unwrap();
    assert_eq!(count(&store), 10, "the first one works on");
    close(store);
    assert_eq!(ask(), "opened", "and when it has ended, the next one may");
}

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let folder = new_folder();
    let store = open(folder.path(), Settings::default());
    begin(&store);
    add(&store, 0, 5).unwrap();
    close(store);
    let write_format = |format: u32| {
        let database = fjall::Database::builder(folder.path()).open().unwrap();
        let meta = database.keyspace("meta", fjall::KeyspaceCreateOptions::default).unwrap();
        let before = meta.get("format").unwrap().expect("a format is written from the start");
        meta.insert("format", postcard::to_stdvec(&format).unwrap()).unwrap();
        drop(meta);
        // Whoever wrote this would have left a seal of its own.
        let _ = fs::remove_file(folder.path().join("clean"));
        postcard::from_bytes::<u32>(&before).unwrap()
    };
    let known = write_format(4_000_000);
    let error = try_open(folder.path(), Settings::default()).unwrap_err();
    names_folder(&error, folder.path());
    assert!(
        matches!(error, Error::NewerFormat { found: 4_000_000, known: told, .. } if told == known),
        "{error:?}"
    );
    write_format(known);
    assert_eq!(count(&open(folder.path(), Settings::default())), 5, "nothing was touched");
}

/// A folder as it is while a process has it open: what a crash at this moment leaves.
fn copied(from: &Path) -> tempfile::TempDir {
    let to = new_folder();
    // Journals are long and mostly holes.
    let status =
        Command::new("cp").args(["-r", "--sparse=always"]).arg(from.join(".")).arg(to.path()).status();
    assert!(status.unwrap().success());
    to
}

/// The newest journal, and where its last byte that is not zero stands.
fn journal(folder: &Path) -> (PathBuf, u64) {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let journals = files.filter(|path| path.extension().is_some_and(|extension| extension == "jnl"));
    let newest = journals.max().expect("a journal");
    let mut bytes = Vec::new();
    // It is as long as it may ever get; what is written stands at its start.
    fs::File::open(&newest).unwrap().take(1024 * 1024).read_to_end(&mut bytes).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).expect("something in it") + 1;
    (newest, end as u64)
}

fn write_at(file: &Path, offset: u64, change: impl FnOnce(u8) -> u8) {
    let mut file = fs::OpenOptions::new().read(true).write(true).open(file).unwrap();
    let mut byte = [0];
    file.seek(SeekFrom::Start(offset)).unwrap();
    file.read_exact(&mut byte).unwrap();
    file.seek(SeekFrom::Start(offset)).unwrap();
    file.write_all(&[change(byte[0])]).unwrap();
}

/// A store that has lived through some calls.
struct Lived {
    folder: tempfile::TempDir,
    caller: Caller,
    calls: Vec<Call>,
    store: Embedded,
}

/// How far back it is looked for a state that a damaged store has gone back to.
const LOOK_BACK: usize = 20;

fn lived(count: usize) -> Lived {
    let folder = new_folder();
    let store = open(folder.path(), Settings::default());
    let mut caller = Caller::default();
    wait(caller.set_up(&store));
    let calls = sequence(3, count);
    for call in &calls {
        wait(caller.make(&store, call));
    }
    Lived { folder, caller, calls, store }
}

/// What the plain model shows now if only the first calls were made.
fn seen_after(caller: &Caller, calls: &[Call]) -> Vec<String> {
    let memory = Memory::new(Settings::default()).unwrap();
    let mut again = Caller::default();
    wait(again.set_up(&memory));
    for call in calls {
        wait(again.make(&memory, call));
    }
    wait(caller.see_all(&memory))
}

#[test]
fn a_torn_write_takes_back_the_last_call_and_nothing_else() {
    let lived = lived(60);
    let all = lived.calls.len();
    let states: Vec<_> =
        (0..LOOK_BACK).map(|back| seen_after(&lived.caller, &lived.calls[..all - back])).collect();
    for torn in [1, 2, 3, 7, 16, 40, 200] {
        let copy = copied(lived.folder.path());
        let (journal, end) = journal(copy.path());
        let file = fs::OpenOptions::new().write(true).open(&journal).unwrap();
        file.set_len(end - torn).unwrap();
        drop(file);
        // A call writes a hundred bytes or more.
        let lost = usize::try_from(torn / 100 + 1).unwrap();
        recovers(&lived, &states, copy.path(), lost, &format!("{torn} bytes torn off"));
    }
    for back in [1, 5, 20, 60] {
        let copy = copied(lived.folder.path());
        let (journal, end) = journal(copy.path());
        write_at(&journal, end - back, |byte| byte ^ 0x55);
        if let Err(error) = try_open(copy.path(), Settings::default()) {
            names_folder(&error, copy.path());
            continue;
        }
        recovers(&lived, &states, copy.path(), 1, &format!("the byte {back} before the end flipped"));
    }
}

/// The folder opens as it was before the last few calls, and can be written on.
fn recovers(lived: &Lived, states: &[Vec<String>], folder: &Path, lost_at_most: usize, what: &str) {
    let store = try_open(folder, Settings::default()).unwrap_or_else(|error| panic!("{what}: {error}"));
    is_sound(&store);
    let found = wait(lived.caller.see_all(&store));
    let back = states.iter().position(|state| *state == found);
    let Some(back) = back else { panic!("{what}: no state that there ever was") };
    // Calls that write nothing leave no trace, so that more may seem to be gone.
    let gone = &lived.calls[lived.calls.len() - back..];
    let lost =
        gone.iter().filter(|call| !matches!(call, Call::Pass(_) | Call::Back(_) | Call::Look(..))).count();
    assert!(lost <= lost_at_most + 3, "{what}: {lost} calls are gone");
    add_anything(&store, lived);
    close(store);
    drop(open(folder, Settings::default()));
}

fn add_anything(store: &Embedded, lived: &Lived) {
    let mut caller = lived.caller.clone();
    for call in sequence(4, 20) {
        wait(caller.make(store, &call));
    }
}

/// Whether damage is told, when the folder is opened or checked; if not, all has to be as it was.
fn after_damage(folder: &Path, caller: &Caller, wanted: &[String]) -> Result<bool, String> {
    let opened = std::panic::catch_unwind(|| try_open(folder, Settings::default()));
    let store = match opened.map_err(|_| "opening it panics")? {
        Ok(store) => store,
        Err(error) => {
            names_folder(&error, folder);
            return Ok(true);
        }
    };
    if store.check().map_or(true, |findings| !findings.is_empty()) {
        return Ok(true);
    }
    if wait(caller.see_all(&store)) == wanted {
        Ok(false)
    } else {
        Err("opened, but calls are missing".into())
    }
}

#[test]
fn whatever_file_is_damaged_it_is_told_or_mended_but_never_wrong() {
    let Lived { folder, caller, store, calls } = lived(40);
    let wanted = seen_after(&caller, &calls);
    close(store);
    let (mut files, keyspaces) = (vec![], folder.path().join("keyspaces"));
    collect(folder.path(), &mut files);
    // Key spaces are all alike; the first ones do for every day.
    let is_alike =
        |file: &PathBuf| !(0..2).any(|number| file.starts_with(keyspaces.join(number.to_string())));
    if std::env::var_os("FORAGER_SOAK_ROUNDS").is_none() {
        files.retain(|file| !(file.starts_with(&keyspaces) && is_alike(file)));
    }
    let (mut told, mut wrong) = (0, vec![]);
    for file in &files {
        let relative = file.strip_prefix(folder.path()).unwrap();
        for damage in ["emptied", "halved", "garbage", "gone"] {
            let copy = copied(folder.path());
            spoil(&copy.path().join(relative), damage);
            match after_damage(copy.path(), &caller, &wanted) {
                Ok(is_told) => told += usize::from(is_told),
                Err(problem) => wrong.push(format!("{} {damage}: {problem}", relative.display())),
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(told > 0, "no damage was ever noticed, in {} files", files.len());
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.is_dir() { collect(&path, files) } else { files.push(path) }
    }
}

fn spoil(file: &Path, damage: &str) {
    let length = fs::metadata(file).unwrap().len();
    let cut = |length| fs::OpenOptions::new().write(true).open(file).unwrap().set_len(length).unwrap();
    match damage {
        "emptied" => cut(0),
        "halved" => cut(length / 2),
        "gone" => fs::remove_file(file).unwrap(),
        _ => fs::write(file, "garbage".repeat(usize::try_from(length.min(7000) / 7 + 1).unwrap())).unwrap(),
    }
}

/// Whether a byte of a journal is in the head of a batch, of which fjall 3 takes no checksum: thirteen bytes
/// at the start and after each end mark.
fn is_unguarded(journal: &[u8], offset: u64) -> bool {
    let offset = usize::try_from(offset).unwrap();
    let before = &journal[..offset];
    let mark = before.windows(3).rposition(|bytes| bytes == b"FJL").map_or(0, |mark| mark + 4);
    offset < mark + 13
}

/// Bits that flip in the middle of a journal are no torn write: they must not silently cost what came after.
#[test]
fn a_bit_that_flips_after_a_clean_stop_is_told_or_mended_but_never_wrong() {
    let Lived { folder, caller, store, calls } = lived(60);
    let wanted = seen_after(&caller, &calls);
    close(store);
    let (path, end) = journal(folder.path());
    let mut bytes = vec![0; usize::try_from(end).unwrap()];
    fs::File::open(path).unwrap().read_exact(&mut bytes).unwrap();
    let rounds = setting("FORAGER_SOAK_ROUNDS", 20) as u64;
    let mut wrong = vec![];
    for round in 0..rounds {
        let copy = copied(folder.path());
        let (journal, _) = journal(copy.path());
        let offset = end * round / rounds;
        if is_unguarded(&bytes, offset) {
            continue;
        }
        write_at(&journal, offset, |byte| byte ^ 0x10);
        if let Err(problem) = after_damage(copy.path(), &caller, &wanted) {
            wrong.push(format!("byte {offset} of {end} flipped: {problem}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
