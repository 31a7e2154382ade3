use crate::engine::Tx;
use crate::entry::EntryId;
use crate::error::Result;
use crate::moment::Moment;
use crate::verbs::Image;
pub(crate) fn export<T: Tx>(_tx: &mut T, _collection: &str, _after: Option<EntryId>, _limit: usize, _now: Moment) -> Result<Vec<Image>> { todo!() }
pub(crate) fn import<T: Tx>(_tx: &mut T, _collection: &str, _images: &[Image], _now: Moment) -> Result<Vec<bool>> { todo!() }
