//! Entries on their way from one store to another.

use forager_core::scope::Place;
use forager_core::url::Identity;

use super::discover::{find_by, fresh, known_by};
use super::lease::seed_text;
use super::plain::count_done;
use super::priority::{prioritise, thousandths};
use super::{NewEntry, Tx, Within, settle};
use crate::catalog::{Catalog, CollectionRow, Kind};
use crate::entry::{DEEPEST, EntryId, Standing, State};
use crate::error::{Error, Result};
use crate::host::Learned;
use crate::moment::Moment;
use crate::verbs::{EventRow, Image, Logged, Tally};

/// Entries of a collection with all that is known of them.
pub(crate) fn export<T: Tx>(
    tx: &mut T,
    collection: &str,
    after: Option<EntryId>,
    limit: usize,
    now: Moment,
) -> Result<Vec<Image>> {
    settle(tx, now)?;
    let catalog = tx.catalog().clone();
    let row = catalog.require_collection(collection)?;
    let found = tx.scan(Within::Collection(row.number), after, limit, &mut |_, _| true);
    let images = found.into_iter().map(|entry| image(tx, &catalog, entry));
    images.filter_map(Result::transpose).collect()
}

fn image<T: Tx>(tx: &T, catalog: &Catalog, entry: EntryId) -> Result<Option<Image>> {
    let Some(standing) = tx.standing(entry) else { return Ok(None) };
    let (url, mut record) = tx.load(entry)?;
    let source = match record.origin.source.take().filter(|source| tx.standing(*source).is_some()) {
        Some(source) => Some(tx.load(source)?.0),
        None => None,
    };
    Ok(Some(Image {
        id: entry,
        url,
        key: tx.host_key(tx.queue_parts(standing.queue).1).0.to_owned(),
        state: if standing.state == State::Leased { State::Queued } else { standing.state },
        seed: seed_text(catalog, &standing),
        depth: standing.place.depth,
        hops_off_domain: standing.place.hops_off_domain,
        priority: standing.priority.thousandths(),
        due: standing.due,
        last_fetch: standing.last_fetch,
        harvest: standing.harvest,
        risk: standing.risk,
        source,
        record,
    }))
}

/// Takes in what a collection has counted elsewhere, and what was learned of its hosts. What is counted here already
/// stays as it is.
pub(crate) fn learn<T: Tx>(
    tx: &mut T,
    collection: &str,
    tally: Tally,
    hosts: &[(String, Learned)],
    now: Moment,
) -> Result<()> {
    settle(tx, now)?;
    let catalog = tx.catalog().clone();
    let row = catalog.require_collection(collection)?;
    if tally != Tally::default() && tx.tally(row.number) == Tally::default() {
        tx.count_up(row.number, tally);
    }
    let owner = (row.spec.kind == Kind::Plain).then_some(row.number);
    for (key, learned) in hosts {
        let id = tx.host_of(owner, key);
        let mut host = tx.host(id).clone();
        host.take_over(learned, owner.is_some());
        tx.set_host(id, host);
    }
    Ok(())
}

/// Takes in what was exported elsewhere. What is known here already stays as it is.
pub(crate) fn import<T: Tx>(
    tx: &mut T,
    collection: &str,
    images: &[Image],
    now: Moment,
) -> Result<Vec<bool>> {
    let catalog = tx.catalog().clone();
    let row = catalog.require_collection(collection)?;
    for image in images {
        check(&catalog, row, image)?;
    }
    settle(tx, now)?;
    images.iter().map(|image| take_in(tx, &catalog, row, image, now)).collect()
}

/// Refuses an image that is no entry of this collection, before any is taken in.
fn check(catalog: &Catalog, row: &CollectionRow, image: &Image) -> Result<()> {
    let problem = |problem: String| Err(Error::Configuration(format!("{:?}: {problem}", image.url)));
    if let Err(cause) = known_by(catalog, row, &image.url) {
        return problem(cause.to_string());
    }
    if row.spec.kind == Kind::Plain {
        return Ok(());
    }
    match &image.seed {
        None => problem("it has no seed".to_owned()),
        Some(seed) => match Identity::parse(seed).ok().and_then(|seed| catalog.seed_number(&seed)) {
            Some(_) => Ok(()),
            None => problem(format!("its seed {seed:?} is not there")),
        },
    }
}

fn take_in<T: Tx>(
    tx: &mut T,
    catalog: &Catalog,
    row: &CollectionRow,
    image: &Image,
    now: Moment,
) -> Result<bool> {
    let is_plain = row.spec.kind == Kind::Plain;
    let invalid = |cause: forager_core::url::UrlError| Error::Configuration(cause.to_string());
    let (own_key, identity) = known_by(catalog, row, &image.url).map_err(invalid)?;
    let key = if is_plain { image.key.clone() } else { own_key };
    let source = match image.source.as_deref().map(|source| known_by(catalog, row, source)) {
        Some(Ok((key, identity))) => find_by(tx, row, &key, &identity)?.map(|(_, source)| source),
        Some(Err(_)) | None => None,
    };
    if let Some((_, entry)) = find_by(tx, row, &key, &identity)? {
        let (_, mut record) = tx.load(entry)?;
        if record.origin.source.is_none() && source.is_some() {
            // The page that it was found on has come later.
            record.origin.source = source;
            tx.set_record(entry, record);
        }
        return Ok(false);
    }
    let mut record = image.record.clone();
    record.origin.source = source;
    let seed = image.seed.as_deref().filter(|_| !is_plain).and_then(|seed| Identity::parse(seed).ok());
    let seed = seed.and_then(|seed| catalog.seed_number(&seed));
    let queue = tx.queue(row.number, &key, is_plain);
    let place = Place { depth: image.depth, hops_off_domain: image.hops_off_domain };
    let hub = forager_core::url::FetchUrl::parse(&image.url)
        .is_ok_and(|url| super::discover::classify(catalog, &url, image.risk).1);
    let mut standing = Standing {
        place: place.min(DEEPEST),
        priority: thousandths(image.priority),
        last_fetch: image.last_fetch,
        state: if image.state == State::Leased { State::Queued } else { image.state },
        risk: image.risk,
        is_hub: hub,
        by_due: is_plain,
        ..fresh(queue, seed, image.harvest, Moment::due(image.due.timestamp(), now))
    };
    if !is_plain {
        let order = catalog.order(&row.spec.id, seed);
        prioritise(catalog, order, &mut standing, &mut record, None, now);
    }
    tx.insert(NewEntry { identity: &identity, url: &image.url, standing, record });
    if is_plain {
        count_done(tx, &standing, State::Queued);
    }
    Ok(true)
}

/// Appends to the logs what they had elsewhere.
pub(crate) fn append<T: Tx>(tx: &mut T, rows: &[Logged], now: Moment) -> Result<()> {
    settle(tx, now)?;
    for row in rows {
        match row {
            // It was waited for where it was made, and its limits are those of then.
            Logged::Fetch(fetch) => tx.log_fetch(fetch.clone()),
            Logged::Event(EventRow { at, collection, subject, event, .. }) => {
                tx.emit(*at, collection, subject, event.clone());
            }
        }
    }
    Ok(())
}
