//! Plans, for clients that ask each range of a container by themselves.

use dayfly_model::Result;
use dayfly_sql::plan::Feature;
use dayfly_sql::{Request, SyntaxError};

use crate::databases::CHARGE_LOOK_RU;
use crate::operation::PlanQuery;
use crate::reply::{Reply, Success};
use crate::scope::Opened;

/// Says how a client carries out a query.
pub(crate) fn plan(opened: &Opened, asked: &PlanQuery) -> Result<Reply> {
    let request = Request::read(&asked.query)?;
    let definition = opened.container.definition();
    let plan = dayfly_sql::plan::plan(
        &request.query,
        &request.parameters,
        &definition.partition_key,
        &definition.embeddings,
        &Feature::read_list(&asked.features),
    )
    .map_err(SyntaxError::into_error)?;
    let success = Success::new(200, plan.to_json().to_string());
    Ok(Reply::ok(success, opened.now(), CHARGE_LOOK_RU).at(opened.place()))
}
