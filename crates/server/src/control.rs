//! Calls that steer what is handed out.

use forager_core::time::Interval;
use forager_frontier::Moment;
use forager_frontier::host::Setting;
use forager_frontier::verbs::{ACTIVE_NOTE, HostChange, HostView, Note};
use tonic::Status;

use crate::names;
use crate::proto::{Active, BlockQueueParams, CrawlLimitParams, QueueDelayParams};
use crate::put;
use crate::shared::Shared;
use crate::status;

/// Where it is written down how long queues wait that have no delay of their own.
const DELAY: &str = "urlfrontier delay";

/// What holds for all queues. It is kept in the queue, so that it outlives the process, and so that servers that share
/// a queue agree.
pub(crate) struct Settings {
    pub(crate) is_active: bool,
    /// Between two turns of a queue without a delay of its own; that of the queue's own rules if there is none.
    pub(crate) delay: Option<Interval>,
}

/// What holds for all queues now.
pub(crate) async fn settings(shared: &Shared) -> Result<Settings, Status> {
    let keys = [ACTIVE_NOTE.to_owned(), DELAY.to_owned()];
    let noted = shared.frontier.noted(&keys).await.map_err(|error| status::of(&error))?;
    let text = |index: usize| std::str::from_utf8(noted.get(index)?.as_deref()?).ok();
    let delay = text(1).and_then(|text| text.parse().ok());
    Ok(Settings { is_active: text(0) != Some("false"), delay: delay.map(seconds) })
}

/// `SetActive`
pub(crate) async fn set_active(shared: &Shared, active: Active) -> Result<(), Status> {
    note(shared, ACTIVE_NOTE, active.state.to_string()).await
}

/// `SetDelay`. Without a key it holds for all queues that have no delay of their own.
pub(crate) async fn set_delay(shared: &Shared, params: QueueDelayParams) -> Result<(), Status> {
    if params.key.is_empty() {
        return set_general_delay(shared, params.delay_requestable).await;
    }
    let setting = Setting::Delay(Some(seconds(params.delay_requestable)));
    set(shared, params.key, &params.crawl_id, setting).await.map(drop)
}

async fn set_general_delay(shared: &Shared, delay: u32) -> Result<(), Status> {
    // Clients say it whenever they begin, most often what holds already; queues need be gone through only for another.
    if settings(shared).await?.delay == Some(seconds(delay)) {
        return Ok(());
    }
    // Noted last: a client that was not told that it is done says it again, and then it is.
    let paced = shared.frontier.pace(seconds(delay), shared.now()).await;
    paced.map_err(|error| status::of(&error))?;
    note(shared, DELAY, delay.to_string()).await
}

/// `BlockQueueUntil`. The second that is named is the last one.
pub(crate) async fn block(shared: &Shared, params: BlockQueueParams) -> Result<(), Status> {
    let until = put::moment(params.time.saturating_add(1));
    let until = Some(until).filter(|until| *until > Moment::of(shared.now()));
    set(shared, params.key, &params.crawl_id, Setting::BlockedUntil(until)).await.map(drop)
}

/// `SetCrawlLimit`. The one call that complains of a queue that is not there.
pub(crate) async fn set_limit(shared: &Shared, params: CrawlLimitParams) -> Result<(), Status> {
    let limit = Some(u64::from(params.limit)).filter(|limit| *limit > 0);
    let complaint = format!("there is no queue {:?}", params.key);
    let set = set(shared, params.key, &params.crawl_id, Setting::FetchLimit(limit)).await?;
    set.map(drop).ok_or_else(|| Status::unknown(complaint))
}

/// Sets something for a queue that is there; none if it is not.
async fn set(
    shared: &Shared,
    key: String,
    crawl: &str,
    setting: Setting,
) -> Result<Option<HostView>, Status> {
    let collection = names::crawl(crawl);
    let is_plain = shared.is_plain(collection).await.map_err(|error| status::of(&error))?;
    let change = HostChange {
        key,
        collection: is_plain.then(|| collection.to_owned()),
        sets: vec![setting],
        only_known: true,
    };
    let answer = status::or_none(shared.frontier.set_hosts(&[change], shared.now()).await)?;
    Ok(answer.and_then(|mut views| views.pop()).flatten())
}

async fn note(shared: &Shared, key: &str, text: String) -> Result<(), Status> {
    let note = Note::Keep(key.to_owned(), Some(text.into_bytes()));
    shared.frontier.note(&[note], shared.now()).await.map_err(|error| status::of(&error))
}

fn seconds(seconds: u32) -> Interval {
    Interval::from_secs_f64(f64::from(seconds))
}
