use crate::engine::Tx;
use crate::error::Result;
use crate::moment::Moment;
use crate::verbs::{HostChange, HostFilter, HostView};
pub(crate) fn set_hosts<T: Tx>(_tx: &mut T, _changes: &[HostChange], _now: Moment) -> Result<Vec<HostView>> { todo!() }
pub(crate) fn hosts<T: Tx>(_tx: &mut T, _filter: &HostFilter, _now: Moment) -> Result<Vec<HostView>> { todo!() }
