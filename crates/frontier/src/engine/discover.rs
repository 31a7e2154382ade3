use crate::engine::Tx;
use crate::error::Result;
use crate::moment::Moment;
use crate::verbs::{Discovery, Page};
pub(crate) fn discover<T: Tx>(_tx: &mut T, _pages: &[Page], _now: Moment) -> Result<Vec<Discovery>> { todo!() }
