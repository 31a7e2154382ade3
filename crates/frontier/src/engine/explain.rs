use crate::engine::Tx;
use crate::error::Result;
use crate::explain::Explanation;
use crate::moment::Moment;
pub(crate) fn explain<T: Tx>(_tx: &mut T, _collection: &str, _url: &str, _now: Moment) -> Result<Explanation> { todo!() }
