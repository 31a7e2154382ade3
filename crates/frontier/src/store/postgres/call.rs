//! One call: tried, run until it has seen all it asked for, committed, and tried again if others were in its way.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use deadpool_postgres::PoolError;

use super::alone::Tries;
use super::failure::{Failure, is_about_tables, is_conflict, said};
use super::load::Opened;
use super::loaded::Loaded;
use super::numbers::Taken;
use super::session::Session;
use super::view::View;
use super::wake::ByItself;
use super::wants::Wants;
use super::{Begun, Postgres, flush, load};
use crate::catalog::Catalog;
use crate::entry::HostId;
use crate::error::{Error, Result};
use crate::host::first_turn;
use crate::moment::Moment;
use crate::settings::Settings;

/// How a call is to be run.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) settings: &'a Settings,
    pub(super) catalog: &'a Catalog,
    pub(super) is_alone: bool,
    /// Whether it begins by waiting for others.
    pub(super) waits_for_others: bool,
    /// Whether it runs again when others are at what could be claimed.
    pub(super) minds_others: bool,
    pub(super) log_lock: i64,
    /// The place in line that all queues are before which can be claimed.
    pub(super) open_before: i64,
}

/// What was learned by earlier tries of a call.
#[derive(Debug, Default)]
pub(super) struct Attempt {
    pub(super) locks: BTreeSet<HostId>,
    pub(super) is_alone: bool,
    /// It is not earlier than this.
    not_before: Moment,
    /// How often others were at what could be claimed.
    pub(super) waits: u32,
    /// Failures in a row that time may mend.
    pub(super) failures: u32,
    pub(super) since: Option<std::time::Instant>,
    /// How often it tried to be alone.
    pub(super) alone: Tries,
}

/// What a call asks for that knows nothing yet, by the catalog that it was asked with.
struct First {
    wants: Wants,
    catalog: Arc<Catalog>,
}

/// The place in line after all that is open by then.
pub(super) fn place_after(now: Moment) -> i64 {
    i64::try_from(first_turn(now.after_millis(1))).unwrap_or(i64::MAX)
}

/// How often a call that others get in the way of is tried again.
const MOST_TRIES: u32 = 50;

impl Postgres {
    /// One try of a call.
    pub(super) async fn attempt<R: Send>(
        &self,
        now: Option<Moment>,
        attempt: &Attempt,
        call: &(impl Fn(&mut View, Moment) -> Result<R> + Send + Sync),
    ) -> Result<R, Failure> {
        let (now, turn) = self.advance(now);
        let now = now.max(attempt.not_before);
        let mut session = self.shared.session().await?;
        let mut numbers = Taken::new(&self.numbers);
        let first = self.first_wants((now, turn), call, &numbers);
        let run = self.run(&mut session, (now, turn), attempt, call, (first, &mut numbers)).await;
        let (view, result) = match run {
            Ok(run) => run,
            Err(failure) => {
                if !failure.is_loss() {
                    session.roll_back().await?;
                }
                return Err(failure);
            }
        };
        let has_read_logs = view.loaded.events.is_some() || view.loaded.fetches.is_some();
        if view.changes.are_none() && !has_read_logs {
            if numbers.has_new() {
                session.commit().await?;
                numbers.committed(view.changes.used);
            } else {
                session.roll_back().await?;
            }
            return Ok(result);
        }
        let receipt = self.receipts.take();
        let is_news = match flush::flush(&mut session, &view, &BTreeSet::new(), Some(&receipt)).await {
            Err(failure) if !matches!(failure, Failure::Unheard(_)) => {
                // Nobody asked for a commit.
                if !failure.is_loss() {
                    session.roll_back().await?;
                }
                return Err(failure);
            }
            flushed => {
                // Others wait for a connection for the same reason, if it is lost.
                drop(session);
                if let Ok(is_news) = flushed {
                    numbers.committed(view.changes.used);
                    is_news
                } else {
                    numbers.forget();
                    if !self.is_committed(&receipt).await? {
                        return Err(Failure::Unsure);
                    }
                    true
                }
            }
        };
        self.gave_turn(view.last_turn);
        if is_news || view.changes.queues_something() {
            self.shared.bell.send_modify(|count| *count += 1);
        }
        if is_news {
            self.shared.heard.fetch_add(1, Ordering::Relaxed);
            self.shared.news.notify_one();
        }
        Ok(result)
    }

    /// What a call asks for that knows nothing yet.
    fn first_wants<R>(
        &self,
        (now, turn): (Moment, u64),
        call: &impl Fn(&mut View, Moment) -> Result<R>,
        numbers: &Taken<'_>,
    ) -> First {
        let catalog = self.known().catalog;
        let mut view = self.view(now, turn, &catalog, Loaded::default(), numbers);
        drop(call(&mut view, now));
        First { wants: view.take_wants(), catalog }
    }

    /// Runs a call until it has seen all it asked for, and may change all it changes.
    async fn run<R>(
        &self,
        session: &mut Session,
        (now, turn): (Moment, u64),
        attempt: &Attempt,
        call: &(impl Fn(&mut View, Moment) -> Result<R> + Send + Sync),
        (first, numbers): (First, &mut Taken<'_>),
    ) -> Result<(View, R), Failure> {
        let alone = attempt.is_alone.then(|| attempt.alone.next());
        // Who has to wait for somebody does that before anything is claimed.
        let is_free = attempt.locks.is_empty() && attempt.waits == 0;
        let opening = || {
            let how = self.how(attempt, now, &first.catalog);
            if is_free { load::opening(&how, &first.wants) } else { Vec::new() }
        };
        let expires = first.wants.expired;
        let begun = if first.wants.wake {
            self.begin_awake(session, (now, expires), alone, opening).await?
        } else {
            self.begin(session, alone, ByItself { wakes: None, expires }, opening()).await?
        };
        let Begun { known, upcoming, first: opened } = begun;
        let opened = (!opened.is_empty()).then_some(opened);
        let how = self.how(attempt, now, &known.catalog);
        let mut loaded = Loaded { stepping: Some(Vec::new()), ..Loaded::default() };
        if !attempt.is_alone && !attempt.locks.is_empty() {
            load::lock(session, &mut loaded, &attempt.locks).await?;
        }
        if expires.is_some() && !upcoming.is_expiring {
            loaded.expired = Some(Vec::new());
        }
        if Arc::ptr_eq(&first.catalog, &known.catalog) {
            self.load(session, &how, &mut loaded, (first.wants, opened), numbers).await?;
        } else if opened.is_some() {
            return Err(Failure::OtherCatalog);
        }
        loop {
            let mut view = self.view(now, turn, &known.catalog, loaded, numbers);
            let result = call(&mut view, now);
            let wants = view.take_wants();
            if wants.is_empty() {
                let result = result.map_err(Failure::Call)?;
                let unlocked = flush::unlocked(&how, &view)?;
                let is_outdated =
                    view.changes.entries.keys().any(|entry| view.loaded.outdated.contains(entry));
                if unlocked.is_empty() && !is_outdated {
                    let later = view.loaded.advanced(now, how.is_alone);
                    return if later > now { Err(Failure::Behind(later)) } else { Ok((view, result)) };
                }
                loaded = self.lock_and_look_again(session, &how, view.loaded, unlocked).await?;
                continue;
            }
            loaded = view.loaded;
            if wants.are_only_numbers() {
                self.take_numbers(session, numbers, wants.numbers).await?;
            } else {
                self.load(session, &how, &mut loaded, (wants, None), numbers).await?;
            }
        }
    }

    /// How a call is to be run by a catalog.
    fn how<'a>(&'a self, attempt: &Attempt, now: Moment, catalog: &'a Catalog) -> Call<'a> {
        Call {
            settings: &self.settings,
            catalog,
            is_alone: attempt.is_alone,
            waits_for_others: attempt.waits > 0,
            // Not for ever: what others have opened, whose clocks are ahead, may not be open to this one.
            minds_others: !attempt.is_alone && attempt.waits < MOST_TRIES,
            log_lock: self.shared.lock_key("log"),
            open_before: place_after(now),
        }
    }

    /// Reads what is wanted, part of which may be answered already, and sets aside the numbers that will be needed with it.
    async fn load(
        &self,
        session: &Session,
        how: &Call<'_>,
        loaded: &mut Loaded,
        (wants, opened): (Wants, Option<Opened>),
        numbers: &mut Taken<'_>,
    ) -> Result<(), Failure> {
        let wants = Wants { numbers: Default::default(), wake: false, ..wants };
        if wants.is_empty() {
            return Ok(());
        }
        let needed = load::load(session, how, loaded, wants, opened).await?;
        if self.shared.options.number_block > 1 {
            self.take_numbers(session, numbers, numbers.missing(needed)).await?;
        }
        Ok(())
    }

    /// Locks hosts that turned out to be changed, and reads again what was read while they, or others, were not.
    async fn lock_and_look_again(
        &self,
        session: &Session,
        how: &Call<'_>,
        read: Loaded,
        hosts: BTreeSet<HostId>,
    ) -> Result<Loaded, Failure> {
        if !read.can_lock(&hosts) {
            return Err(Failure::NotLocked(read.locked.into_iter().chain(hosts).collect()));
        }
        let mut loaded = Loaded { locked: read.locked, stepping: read.stepping, ..Loaded::default() };
        load::lock(session, &mut loaded, &hosts).await?;
        load::load(session, how, &mut loaded, read.asked, None).await?;
        Ok(loaded)
    }

    /// Decides whether a call is tried again.
    pub(super) async fn retry(&self, attempt: &mut Attempt, failure: Failure) -> Result<()> {
        if let Some(problem) = failure.passing() {
            return self.shared.pause(attempt, &problem).await;
        }
        match failure {
            Failure::Call(error) => Err(error),
            Failure::Damaged(problem) => Err(Error::Database { problem }),
            Failure::NotLocked(hosts) => {
                attempt.locks.extend(hosts);
                Ok(())
            }
            Failure::NotAlone => {
                attempt.is_alone = true;
                Ok(())
            }
            // The latest is known by now.
            Failure::OtherCatalog => Ok(()),
            Failure::NotYetAlone => self.shared.let_others_through(attempt).await,
            Failure::OthersAreAtIt => {
                attempt.waits += 1;
                Ok(())
            }
            Failure::Behind(later) => {
                attempt.not_before = later;
                Ok(())
            }
            Failure::Unsure | Failure::Unheard(_) | Failure::Silent(_) => {
                self.shared.pause(attempt, "the connection was lost").await
            }
            Failure::Database(cause) if is_conflict(&cause) && attempt.failures < MOST_TRIES => {
                attempt.failures += 1;
                Ok(())
            }
            Failure::Database(cause) => {
                if is_about_tables(&cause) {
                    // Another version of the program may have changed them meanwhile.
                    let found = self.shared.version().await?;
                    self.shared.ensure_known(found)?;
                }
                Err(said(&cause))
            }
            Failure::Pool(PoolError::Backend(cause)) => Err(said(&cause)),
            Failure::Pool(cause) => Err(Error::Database { problem: cause.to_string() }),
        }
    }
}
