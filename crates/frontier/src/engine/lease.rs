use crate::engine::Tx;
use crate::error::Result;
use crate::moment::Moment;
use crate::verbs::{LeaseAnswer, LeaseRequest};
pub(crate) fn lease<T: Tx>(_tx: &mut T, _request: &LeaseRequest, _now: Moment) -> Result<LeaseAnswer> { todo!() }
