//! How many request units a second a database or container is given.
//!
//! | header                                                  | given          | allowed                        |
//! |---------------------------------------------------------|----------------|--------------------------------|
//! | `x-ms-offer-throughput: 400`                            | a fixed number | 400 to 1,000,000, in hundreds  |
//! | `x-ms-cosmos-offer-autopilot-settings: {"maxThroughput":4000}` | a maximum; it scales from a tenth of it | 1,000 to 1,000,000, in thousands |
//!
//! | `x-ms-offer-type: S2`                                   | what a level of old gave: 250, 1,000, 2,500 | `S1`, `S2`, `S3` |
//!
//! Two of them together are refused; none is none of its own.

use serde_json::{Map, Value, json};

use crate::epk;
use crate::error::{Error, Result};

/// The least a fixed throughput can be.
pub const MANUAL_MIN: u32 = 400;
/// The least a maximum can be.
pub const AUTOSCALE_MIN: u32 = 1_000;
/// The most that either can be.
pub const MAX: u32 = 1_000_000;

const MANUAL_STEP: u32 = 100;
const AUTOSCALE_STEP: u32 = 1_000;

/// So many containers share a throughput before it has to grow with them.
const SHARING_FREE: u32 = 25;

/// The service's sentence for an offer that scales where one with a number is.
const NO_AUTOPILOT: &str = "x-ms-cosmos-migrate-offer-to-autopilot must be supplied and \
    offercontent must not contain autopilotSettings for migration from manual throughput to \
    autoscale.";

/// The same for the other way.
const NO_MANUAL: &str = "x-ms-cosmos-migrate-offer-to-manual-throughput must be supplied and \
    offercontent must contain autopilotSettings for migration from autoscale to manual \
    throughput.";

/// A throughput of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throughput {
    /// Always this much.
    Manual(u32),
    /// From a tenth of `max` up to `max`.
    Autoscale {
        /// The most it scales to.
        max: u32,
        /// By how many percent the service would raise the maximum; only kept.
        increment: Option<u32>,
    },
    /// What a level of old gave.
    Level(Level),
}

/// A change between a fixed throughput and one that scales.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Migration {
    /// It scales from now on.
    ToAutoscale,
    /// It is fixed from now on.
    ToManual,
}

/// What an offer has been and is for, which it can not go below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Floor {
    /// The most that was ever given.
    pub ever: u32,
    /// What is alive in it.
    pub gigabytes: u32,
    /// How many containers share it; none if it is a container's own.
    pub sharing: u32,
}

/// A level that could be chosen before throughput was a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// 250 request units a second.
    S1,
    /// 1,000.
    S2,
    /// 2,500.
    S3,
}

impl Level {
    const ALL: [Level; 3] = [Level::S1, Level::S2, Level::S3];

    /// As clients write it.
    pub fn name(self) -> &'static str {
        match self {
            Level::S1 => "S1",
            Level::S2 => "S2",
            Level::S3 => "S3",
        }
    }

    fn throughput(self) -> u32 {
        match self {
            Level::S1 => 250,
            Level::S2 => 1000,
            Level::S3 => 2500,
        }
    }

    /// Reads `x-ms-offer-type`. `Invalid` is what an offer without a level says.
    fn parse(text: &str) -> Result<Option<Level>> {
        if text.is_empty() || text.eq_ignore_ascii_case("Invalid") {
            return Ok(None);
        }
        let level = Level::ALL.into_iter().find(|level| text.eq_ignore_ascii_case(level.name()));
        level.map(Some).ok_or_else(|| {
            Error::bad_request(format!("The offer type '{text}' is not 'S1', 'S2' or 'S3'."))
        })
    }
}

impl Throughput {
    /// Reads the three headers.
    pub fn parse(
        manual: Option<&str>,
        autoscale: Option<&str>,
        level: Option<&str>,
    ) -> Result<Option<Throughput>> {
        match (manual, autoscale, level.map(Level::parse).transpose()?.flatten()) {
            (None, None, level) => Ok(level.map(Throughput::Level)),
            (Some(text), None, None) => Throughput::manual(text).map(Some),
            (None, Some(text), None) => Throughput::autoscale(text).map(Some),
            (Some(_), Some(_), _) => Err(Error::bad_request(
                "A throughput and autopilot settings were given; give one of them.",
            )),
            (_, _, Some(level)) => Err(Error::bad_request(format!(
                "A throughput and the offer type '{}' were given; give one of them.",
                level.name()
            ))),
        }
    }

    /// Reads the `content` of an offer, as [`Throughput::to_content`] writes it.
    pub fn of_content(content: &Value) -> Option<Throughput> {
        let number = |value: &Value| value.as_u64().and_then(|ru| u32::try_from(ru).ok());
        match content.get("offerAutopilotSettings") {
            Some(settings) => Some(Throughput::Autoscale {
                max: number(settings.get("maxThroughput")?)?,
                increment: settings.pointer(INCREMENT).and_then(number),
            }),
            None => content.get("offerThroughput").and_then(number).map(Throughput::Manual),
        }
    }

    /// What becomes of it when a client puts back an offer with this content. Whether it
    /// scales is changed only by a client that says so, and then the numbers that it sends
    /// do not count. Autopilot settings win over a throughput: some clients send both.
    pub fn replaced(
        self,
        content: &Value,
        migration: Option<Migration>,
        floor: Floor,
    ) -> Result<Throughput> {
        let settings = content.get("offerAutopilotSettings").filter(|given| given.is_object());
        let manual = content.get("offerThroughput").filter(|given| !given.is_null());
        let scales = matches!(self, Throughput::Autoscale { .. });
        match (migration, scales) {
            (None, false) => match (settings, manual) {
                (Some(_), _) => Err(Error::bad_request(NO_AUTOPILOT)),
                (None, Some(wanted)) => self.changed(wanted, None, floor),
                (None, None) => Err(no_throughput(content)),
            },
            (None, true) => match (settings, manual) {
                (Some(settings), _) => {
                    let max = settings.get("maxThroughput").unwrap_or(&Value::Null);
                    self.changed(max, settings.pointer(INCREMENT), floor)
                }
                (None, Some(_)) => Err(Error::bad_request(NO_MANUAL)),
                (None, None) => Err(no_throughput(content)),
            },
            (Some(Migration::ToAutoscale), false) if manual.is_some() && settings.is_none() => {
                let least = Throughput::Autoscale { max: 0, increment: None }.least(floor);
                let max = least.max(self.max().next_multiple_of(AUTOSCALE_STEP));
                Ok(Throughput::Autoscale { max, increment: None })
            }
            (Some(Migration::ToAutoscale), false) => Err(Error::bad_request(NO_AUTOPILOT)),
            (Some(Migration::ToManual), true) if settings.is_some() => {
                Ok(Throughput::Manual(self.max()))
            }
            (Some(Migration::ToManual), true) => Err(Error::bad_request(NO_MANUAL)),
            (Some(Migration::ToAutoscale), true) => {
                Err(Error::bad_request("The throughput of this offer scales already."))
            }
            (Some(Migration::ToManual), false) => {
                Err(Error::bad_request("The throughput of this offer is a fixed one already."))
            }
        }
    }

    /// The same kind of throughput with another number.
    fn changed(
        self,
        wanted: &Value,
        increment: Option<&Value>,
        floor: Floor,
    ) -> Result<Throughput> {
        let (least, step) = (self.least(floor), self.step());
        let wanted = wanted.as_u64().and_then(|ru| u32::try_from(ru).ok());
        let wanted = wanted.filter(|ru| is_step(*ru, least, step));
        let ru = wanted.ok_or_else(|| out_of_range(least, step))?;
        Ok(match self {
            Throughput::Autoscale { increment: old, .. } => {
                let increment = increment.map_or(Ok(old), |given| percent(given).map(Some));
                let increment = increment.map_err(|()| out_of_range(least, step))?;
                Throughput::Autoscale { max: ru, increment }
            }
            Throughput::Manual(_) | Throughput::Level(_) => Throughput::Manual(ru),
        })
    }

    fn step(self) -> u32 {
        match self {
            Throughput::Autoscale { .. } => AUTOSCALE_STEP,
            Throughput::Manual(_) | Throughput::Level(_) => MANUAL_STEP,
        }
    }

    /// The most it gives in a second.
    pub fn max(self) -> u32 {
        match self {
            Throughput::Manual(throughput) => throughput,
            Throughput::Autoscale { max, .. } => max,
            Throughput::Level(level) => level.throughput(),
        }
    }

    /// What it gives when nothing is going on.
    pub fn min(self) -> u32 {
        match self {
            Throughput::Manual(throughput) => throughput,
            Throughput::Autoscale { max, .. } => max / 10,
            Throughput::Level(level) => level.throughput(),
        }
    }

    /// The least that it can be lowered to.
    pub fn least(self, floor: Floor) -> u32 {
        let crowd = floor.sharing.saturating_sub(SHARING_FREE);
        let (least, parts) = match self {
            Throughput::Manual(_) | Throughput::Level(_) => {
                (MANUAL_MIN, [floor.gigabytes, floor.ever / 100, MANUAL_MIN + 100 * crowd])
            }
            Throughput::Autoscale { .. } => (
                AUTOSCALE_MIN,
                [
                    floor.gigabytes.saturating_mul(10),
                    floor.ever / 10,
                    AUTOSCALE_MIN + 1_000 * crowd,
                ],
            ),
        };
        let least = parts.into_iter().fold(least, u32::max);
        least.checked_next_multiple_of(self.step()).unwrap_or(MAX).min(MAX)
    }

    /// How many partition key ranges a new container with it has.
    pub fn ranges(self) -> usize {
        epk::range_count(self.max())
    }

    /// How many a container has at least that was raised to it.
    pub fn raised_ranges(self) -> usize {
        epk::raised_range_count(self.max())
    }

    /// The level, if it is one.
    pub fn level(self) -> Option<Level> {
        match self {
            Throughput::Level(level) => Some(level),
            Throughput::Manual(_) | Throughput::Autoscale { .. } => None,
        }
    }

    /// The `content` of the offer.
    pub fn to_content(self) -> Value {
        let mut content = Map::new();
        content.insert("offerThroughput".to_owned(), json!(self.min()));
        content.insert("offerIsRUPerMinuteThroughputEnabled".to_owned(), json!(false));
        content.insert(
            "offerMinimumThroughputParameters".to_owned(),
            json!({
                "maxThroughputEverProvisioned": self.max(),
                "maxConsumedStorageEverInKB": 0,
            }),
        );
        if let Throughput::Autoscale { max, increment } = self {
            let mut settings = json!({
                "tier": 0,
                "maximumTierThroughput": max,
                "autoUpgrade": false,
                "maxThroughput": max,
            });
            if let (Some(percent), Value::Object(settings)) = (increment, &mut settings) {
                let policy = json!({"throughputPolicy": {"incrementPercent": percent}});
                settings.insert("autoUpgradePolicy".to_owned(), policy);
            }
            content.insert("offerAutopilotSettings".to_owned(), settings);
        }
        Value::Object(content)
    }

    fn manual(text: &str) -> Result<Throughput> {
        let throughput =
            text.trim().parse().ok().filter(|ru| is_step(*ru, MANUAL_MIN, MANUAL_STEP));
        throughput.map(Throughput::Manual).ok_or_else(|| out_of_range(MANUAL_MIN, MANUAL_STEP))
    }

    fn autoscale(text: &str) -> Result<Throughput> {
        let settings: Value = serde_json::from_str(text).unwrap_or_default();
        let asked = settings.get("maxThroughput").and_then(Value::as_i64);
        if let Some(low) = asked.filter(|asked| *asked < i64::from(AUTOSCALE_MIN)) {
            return Err(Error::bad_request(format!(
                "Requested throughput {low} is less than required minimum throughput \
                 {AUTOSCALE_MIN}."
            )));
        }
        let max = asked.and_then(|asked| u32::try_from(asked).ok());
        let max = max.filter(|max| is_step(*max, AUTOSCALE_MIN, AUTOSCALE_STEP));
        let increment = settings.pointer(INCREMENT).map(percent).transpose().ok();
        let read = max.zip(increment);
        read.map(|(max, increment)| Throughput::Autoscale { max, increment }).ok_or_else(|| {
            Error::bad_request(format!(
                "The autopilot settings '{text}' are invalid. Give a maxThroughput from \
                 {AUTOSCALE_MIN} to {MAX}, in steps of 1000, and an incrementPercent, if any, \
                 that is a number from 0 on."
            ))
        })
    }
}

/// Where the percentage stands in the settings.
const INCREMENT: &str = "/autoUpgradePolicy/throughputPolicy/incrementPercent";

fn out_of_range(least: u32, step: u32) -> Error {
    Error::bad_request(format!(
        "The offer should have valid throughput values between {least} and {MAX} inclusive in \
         increments of {step}."
    ))
}

fn no_throughput(content: &Value) -> Error {
    Error::bad_request(format!("The offer content '{content}' has no throughput."))
}

fn percent(value: &Value) -> Result<u32, ()> {
    value.as_u64().and_then(|percent| u32::try_from(percent).ok()).ok_or(())
}

fn is_step(ru: u32, min: u32, step: u32) -> bool {
    (min..=MAX).contains(&ru) && ru.is_multiple_of(step)
}

#[cfg(test)]
mod tests {
    use super::Throughput::{Autoscale, Manual};
    use super::*;

    #[test]
    fn headers_that_are_read() {
        let autopilot = r#"{"maxThroughput":4000,"autoUpgradePolicy":{"throughputPolicy":{"incrementPercent":10}}}"#;
        for (manual, autoscale, expected) in [
            (None, None, None),
            (Some("400"), None, Some(Manual(400))),
            (Some("1000000"), None, Some(Manual(1_000_000))),
            (None, Some(autopilot), Some(Autoscale { max: 4000, increment: Some(10) })),
            (
                None,
                Some(r#"{"maxThroughput":1000}"#),
                Some(Autoscale { max: 1000, increment: None }),
            ),
        ] {
            assert_eq!(Throughput::parse(manual, autoscale, None), Ok(expected));
            assert_eq!(Throughput::parse(manual, autoscale, Some("Invalid")), Ok(expected));
        }
        for (text, level, throughput) in
            [("S1", Level::S1, 250), ("s2", Level::S2, 1000), ("S3", Level::S3, 2500)]
        {
            let read = Throughput::parse(None, None, Some(text)).unwrap().unwrap();
            assert_eq!(
                (read, read.max(), read.ranges()),
                (Throughput::Level(level), throughput, 1)
            );
        }
    }

    #[test]
    fn headers_that_are_refused() {
        for manual in ["", "0", "300", "399", "450", "1000100", "-400", "400.5", "a", "99999999999"]
        {
            let error = Throughput::parse(Some(manual), None, None).unwrap_err();
            assert_eq!(
                error.message,
                "The offer should have valid throughput values between 400 and 1000000 inclusive \
                 in increments of 100."
            );
        }
        for autoscale in [
            "",
            "4000",
            "{}",
            r#"{"maxThroughput":1500}"#,
            r#"{"maxThroughput":1001000}"#,
            r#"{"maxThroughput":"4000"}"#,
            r#"{"maxThroughput":1000,"autoUpgradePolicy":{"throughputPolicy":{"incrementPercent":-1}}}"#,
        ] {
            let error = Throughput::parse(None, Some(autoscale), None).unwrap_err();
            assert!(
                error.message.starts_with(&format!("The autopilot settings '{autoscale}' are"))
            );
        }
        for low in [-200, 0, 500] {
            let settings = json!({"maxThroughput": low}).to_string();
            assert_eq!(
                Throughput::parse(None, Some(&settings), None).unwrap_err().message,
                format!(
                    "Requested throughput {low} is less than required minimum throughput 1000."
                )
            );
        }
        assert!(Throughput::parse(Some("400"), Some(r#"{"maxThroughput":4000}"#), None).is_err());
        assert!(Throughput::parse(Some("400"), None, Some("S1")).is_err());
        assert!(Throughput::parse(None, None, Some("S4")).is_err());
    }

    #[test]
    fn the_content_of_an_offer() {
        assert_eq!(
            Manual(400).to_content().to_string(),
            r#"{"offerThroughput":400,"offerIsRUPerMinuteThroughputEnabled":false,"offerMinimumThroughputParameters":{"maxThroughputEverProvisioned":400,"maxConsumedStorageEverInKB":0}}"#
        );
        assert_eq!(
            Autoscale { max: 4000, increment: None }.to_content().to_string(),
            r#"{"offerThroughput":400,"offerIsRUPerMinuteThroughputEnabled":false,"offerMinimumThroughputParameters":{"maxThroughputEverProvisioned":4000,"maxConsumedStorageEverInKB":0},"offerAutopilotSettings":{"tier":0,"maximumTierThroughput":4000,"autoUpgrade":false,"maxThroughput":4000}}"#
        );
        let raised = Autoscale { max: 5000, increment: Some(0) };
        assert_eq!(
            raised.to_content()["offerAutopilotSettings"]["autoUpgradePolicy"],
            json!({"throughputPolicy": {"incrementPercent": 0}})
        );
        for throughput in [Manual(500), Autoscale { max: 20_000, increment: None }, raised] {
            assert_eq!(Throughput::of_content(&throughput.to_content()), Some(throughput));
        }
        assert_eq!(Throughput::of_content(&json!({})), None);
    }

    #[test]
    fn what_an_offer_can_not_go_below() {
        let (manual, scales) = (Manual(400), Autoscale { max: 1000, increment: None });
        for (ever, gigabytes, sharing, fixed, max) in [
            (400, 0, 0, 400, 1_000),
            (50_000, 0, 0, 500, 5_000),
            (50_100, 0, 0, 600, 6_000),
            (60_000, 601, 0, 700, 7_000),
            (400, 401, 0, 500, 5_000),
            (400, 0, 25, 400, 1_000),
            (400, 0, 30, 900, 6_000),
            (u32::MAX, u32::MAX, 0, MAX, MAX),
        ] {
            let floor = Floor { ever, gigabytes, sharing };
            assert_eq!((manual.least(floor), scales.least(floor)), (fixed, max), "{floor:?}");
        }
    }

    #[test]
    fn what_becomes_of_an_offer() {
        let scales = |max| Autoscale { max, increment: None };
        let number = |ru: i64| json!({ "offerThroughput": ru });
        let settings = |max: i64| json!({"offerAutopilotSettings": {"maxThroughput": max}});
        let (to_autoscale, to_manual) = (Some(Migration::ToAutoscale), Some(Migration::ToManual));
        for (old, content, migration, expected) in [
            (Manual(400), number(500), None, Some(Manual(500))),
            (Throughput::Level(Level::S1), number(500), None, Some(Manual(500))),
            (Manual(400), number(450), None, None),
            (Manual(400), number(300), None, None),
            (Manual(400), number(1_000_100), None, None),
            (Manual(400), json!({"offerThroughput": "500"}), None, None),
            (Manual(400), json!({}), None, None),
            (Manual(400), settings(4000), None, None),
            (Manual(400), number(-1), to_autoscale, Some(scales(1000))),
            (Manual(4500), number(-1), to_autoscale, Some(scales(5000))),
            (Manual(400), settings(4000), to_autoscale, None),
            (Manual(400), number(400), to_manual, None),
            (scales(5000), settings(7000), None, Some(scales(7000))),
            (scales(5000), settings(5500), None, None),
            (scales(5000), settings(900), None, None),
            (scales(5000), number(7000), None, None),
            (scales(4000), settings(-1), to_manual, Some(Manual(4000))),
            (scales(4000), number(-1), to_manual, None),
            (scales(4000), number(-1), to_autoscale, None),
        ] {
            let replaced = old.replaced(&content, migration, Floor::default());
            assert_eq!(replaced.ok(), expected, "{old:?} {content} {migration:?}");
        }
        let both = json!({"offerThroughput": 1, "offerAutopilotSettings": {
            "maxThroughput": 7000, "autoUpgradePolicy": {"throughputPolicy": {"incrementPercent": 20}},
        }});
        let raised = scales(5000).replaced(&both, None, Floor::default());
        assert_eq!(raised, Ok(Autoscale { max: 7000, increment: Some(20) }));
    }

    #[test]
    fn autoscale_counts_its_maximum() {
        assert_eq!(Manual(10_000).ranges(), 1);
        assert_eq!(Manual(10_100).ranges(), 2);
        assert_eq!(Autoscale { max: 30_000, increment: None }.ranges(), 5);
    }
}
