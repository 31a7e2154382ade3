use crate::engine::Tx;
use crate::error::Result;
use crate::moment::Moment;
use crate::verbs::{EntryView, ListFilter, ListPage, PlanFilter, Planned, Stats};
pub(crate) fn entry<T: Tx>(_tx: &mut T, _collection: &str, _url: &str, _now: Moment) -> Result<Option<EntryView>> { todo!() }
pub(crate) fn list<T: Tx>(_tx: &mut T, _filter: &ListFilter, _now: Moment) -> Result<ListPage> { todo!() }
pub(crate) fn plan<T: Tx>(_tx: &mut T, _filter: &PlanFilter, _now: Moment) -> Result<Vec<Planned>> { todo!() }
pub(crate) fn stats<T: Tx>(_tx: &mut T, _collection: Option<&str>, _now: Moment) -> Result<Vec<Stats>> { todo!() }
