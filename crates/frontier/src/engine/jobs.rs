use crate::engine::Tx;
use crate::error::Result;
use crate::moment::Moment;
use crate::verbs::{JobView, NewJob, Steer};
pub(crate) fn start_job<T: Tx>(_tx: &mut T, _job: &NewJob, _now: Moment) -> Result<JobView> { todo!() }
pub(crate) fn steer_job<T: Tx>(_tx: &mut T, _id: &str, _steer: Steer, _now: Moment) -> Result<JobView> { todo!() }
pub(crate) fn jobs<T: Tx>(_tx: &mut T, _now: Moment) -> Result<Vec<JobView>> { todo!() }
