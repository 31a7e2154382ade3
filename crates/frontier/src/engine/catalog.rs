use crate::catalog::Change;
use crate::engine::Tx;
use crate::error::Result;
use crate::moment::Moment;
use crate::verbs::{Started, Target};
pub(crate) fn configure<T: Tx>(_tx: &mut T, _changes: &[Change], _now: Moment) -> Result<()> { todo!() }
pub(crate) fn start<T: Tx>(_tx: &mut T, _targets: &[Target], _now: Moment) -> Result<Vec<Started>> { todo!() }
