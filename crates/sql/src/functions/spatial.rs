//! Shapes on the earth or on a plane, written as `GeoJSON`.
//!
//! What is not a valid shape makes measures and relations undefined; whether and
//! why it is not valid is told by functions of their own.

mod earth;
mod place;
mod plane;
mod relate;
mod shape;
mod surface;
mod vector;

use dayfly_model::value::Value;

use self::earth::Earth;
use self::plane::Plane;
use self::shape::Shape;
use self::surface::Surface;
use super::{Arguments, Body, Family, Setting};

/// The functions of this family.
pub(super) const FUNCTIONS: &Family = &[
    (
        "ST_AREA",
        Body::Set(|setting, given| on(setting, given, area::<Plane>, area::<Earth>).into()),
    ),
    (
        "ST_DISTANCE",
        Body::Set(|setting, given| on(setting, given, distance::<Plane>, distance::<Earth>).into()),
    ),
    (
        "ST_INTERSECTS",
        Body::Set(|setting, given| {
            on(setting, given, intersects::<Plane>, intersects::<Earth>).into()
        }),
    ),
    (
        "ST_ISVALID",
        Body::Set(|setting, given| on(setting, given, is_valid::<Plane>, is_valid::<Earth>).into()),
    ),
    (
        "ST_ISVALIDDETAILED",
        Body::Set(|setting, given| on(setting, given, detailed::<Plane>, detailed::<Earth>)),
    ),
    (
        "ST_WITHIN",
        Body::Set(|setting, given| on(setting, given, within::<Plane>, within::<Earth>).into()),
    ),
];

/// The function for the surface that shapes lie on.
fn on<T>(
    setting: &Setting,
    given: &Arguments<'_>,
    plane: fn(&Arguments<'_>) -> T,
    earth: fn(&Arguments<'_>) -> T,
) -> T {
    if setting.plane { plane(given) } else { earth(given) }
}

fn area<S: Surface>(given: &Arguments<'_>) -> Option<f64> {
    Some(shape::<S>(given, 0)?.area())
}

fn distance<S: Surface>(given: &Arguments<'_>) -> Option<f64> {
    relate::distance(&shape::<S>(given, 0)?, &shape(given, 1)?)
}

fn intersects<S: Surface>(given: &Arguments<'_>) -> Option<bool> {
    Some(relate::intersect(&shape::<S>(given, 0)?, &shape(given, 1)?))
}

fn within<S: Surface>(given: &Arguments<'_>) -> Option<bool> {
    relate::within(&shape::<S>(given, 0)?, &shape(given, 1)?)
}

fn is_valid<S: Surface>(given: &Arguments<'_>) -> bool {
    shape::<S>(given, 0).is_some()
}

/// `{"valid": true}`, or the reason why it is not.
fn detailed<S: Surface>(given: &Arguments<'_>) -> Value {
    let Some(value) = given.first() else { return Value::Undefined };
    let reason = Shape::<S>::read(value).err();
    let valid = ("valid".to_owned(), Value::Bool(reason.is_none()));
    let reason = reason.map(|reason| ("reason".to_owned(), Value::String(reason)));
    Value::Object([Some(valid), reason].into_iter().flatten().collect())
}

fn shape<S: Surface>(given: &Arguments<'_>, place: usize) -> Option<Shape<S>> {
    Shape::read(given.get(place)?).ok()
}

#[cfg(test)]
mod tests;
