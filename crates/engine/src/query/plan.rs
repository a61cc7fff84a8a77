//! Plans, for clients that ask each range of a container by themselves.

use dayfly_model::charge::Charge;
use dayfly_model::{Error, Result};
use dayfly_sql::plan::{Feature, Info, Plan};
use dayfly_sql::run::Program;
use dayfly_sql::{Request, SyntaxError};

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
    check_ranges(opened, &request, &plan)?;
    let success = Success::new(200, plan.to_json().to_string());
    Ok(Reply::ok(success, opened.now(), Charge::LOOK).at(opened.container.place(None, None)))
}

/// Refuses a plan whose ranges cannot be merged: a subquery after FROM that groups or
/// tells rows apart sees all items, and a client would run it in each range alone.
/// One that is only counted the client counts itself.
fn check_ranges(opened: &Opened, request: &Request, plan: &Plan) -> Result<()> {
    let counted = matches!(&plan.info, Info::Query(info) if info.d_count_alias.is_some());
    let one_range = opened.container.ranges.len() == 1
        || matches!(plan.ranges.as_slice(), [range] if range.min == range.max);
    if one_range || counted {
        return Ok(());
    }
    let staged = |program: Program| program.has_stages();
    // What cannot be compiled cannot be run in a range either, and is refused there.
    if Program::compile(request, opened.container.computed()?).is_ok_and(staged) {
        return Err(Error::not_yet(
            "The plan of a subquery after FROM that groups or is distinct, over several ranges",
        ));
    }
    Ok(())
}
