//! What a fetch teaches: of a page, and of the sitemap that spoke of it.

use super::super::Tx;
use super::{Done, FetchResult};
use crate::catalog::Kind;
use crate::entry::{Record, Standing, Validators, Visit};
use crate::moment::Moment;
use crate::verbs::Presence;

impl Done<'_, '_> {
    /// Whether a page that was there is gone, or one that was gone is there again. Clients of a plain collection count
    /// nothing, so that this cannot be told there.
    pub(super) fn presence(&self, before: &Record) -> Option<Presence> {
        let is_known = before.scans > 0 && self.collection.spec.kind == Kind::Planned;
        match self.result {
            FetchResult::NotFound if is_known && before.not_found == 0 => Some(Presence::Gone),
            FetchResult::Page { .. } if is_known && before.not_found > 0 => Some(Presence::Back),
            _ => None,
        }
    }

    /// Takes over what the fetch has taught. Returns whether the page had changed; one that is gone has, but that
    /// teaches nothing of how often its content does.
    pub(super) fn learn(&self, record: &mut Record, presence: Option<Presence>) -> bool {
        record.abandoned = 0;
        record.due_because = None;
        let FetchResult::Page { is_same } = self.result else {
            self.remember(record, presence.is_some());
            return presence.is_some();
        };
        let given = self.report.fingerprint.as_deref().filter(|_| !is_same).map(bounded);
        let differs = matches!((&given, &record.fingerprint), (Some(new), Some(old)) if new != old);
        let changed = !is_same && record.scans > 0 && self.report.changed.unwrap_or(differs);
        record.learn(record.evidence().after_scan(changed, self.now.timestamp()));
        record.fingerprint = given.or_else(|| record.fingerprint.take());
        record.validators = validators_after(&record.validators, &self.report.validators, is_same);
        let changed = changed || presence.is_some();
        self.remember(record, changed);
        changed
    }

    /// Whether a sitemap that said the page had changed was right.
    pub(super) fn judge_dates<T: Tx>(
        &self,
        tx: &mut T,
        standing: &Standing,
        record: &mut Record,
        changed: bool,
    ) {
        if !matches!(self.result, FetchResult::Page { .. }) || record.said_to_change.take().is_none() {
            return;
        }
        let (_, id) = tx.queue_parts(standing.queue);
        let mut host = tx.host(id).clone();
        host.sitemap_dates = host.sitemap_dates.after(changed);
        tx.set_host(id, host);
    }

    fn remember(&self, record: &mut Record, changed: bool) {
        let at = Moment::from_second(self.now.second());
        record.remember(Visit { at, result: self.words(), changed });
    }
}

/// How much of a fingerprint is kept.
const FINGERPRINT_CHARS: usize = 128;

fn bounded(fingerprint: &str) -> String {
    fingerprint.chars().take(FINGERPRINT_CHARS).collect()
}

/// The longest validator that is shown to a server again; a longer one is as good as none.
const VALIDATOR_BYTES: usize = 512;

/// What the version that a server has now is known by. A 304 need not repeat what has not changed: what it does not
/// name stays.
fn validators_after(before: &Validators, given: &Validators, is_same: bool) -> Validators {
    let next = |before: &Option<String>, given: &Option<String>| match given {
        Some(text) => Some(text).filter(|text| text.len() <= VALIDATOR_BYTES).cloned(),
        None => before.clone().filter(|_| is_same),
    };
    Validators {
        etag: next(&before.etag, &given.etag),
        last_modified: next(&before.last_modified, &given.last_modified),
    }
}
