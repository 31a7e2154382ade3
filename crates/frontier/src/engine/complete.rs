use forager_core::time::Interval;
use crate::engine::Tx;
use crate::entry::Token;
use crate::error::Result;
use crate::moment::Moment;
use crate::verbs::{Completed, LeaseChange, Report};
pub(crate) fn complete<T: Tx>(_tx: &mut T, _reports: &[Report], _now: Moment) -> Result<Vec<Completed>> { todo!() }
pub(crate) fn extend<T: Tx>(_tx: &mut T, _tokens: &[Token], _hold: Interval, _now: Moment) -> Result<Vec<LeaseChange>> { todo!() }
pub(crate) fn release<T: Tx>(_tx: &mut T, _tokens: &[Token], _now: Moment) -> Result<Vec<LeaseChange>> { todo!() }
pub(crate) fn settle<T: Tx>(_tx: &mut T, _now: Moment) -> Result<()> { todo!() }
