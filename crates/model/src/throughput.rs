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

    /// Reads the `content` of an offer that is put back: autopilot settings
    /// win, as clients send both.
    pub fn from_content(content: &Value) -> Result<Throughput> {
        match content.get("offerAutopilotSettings") {
            Some(settings @ Value::Object(_)) => Throughput::autoscale(&settings.to_string()),
            _ => match content.get("offerThroughput") {
                Some(throughput) => Throughput::manual(&throughput.to_string()),
                None => Err(Error::bad_request(format!(
                    "The offer content '{content}' has no throughput."
                ))),
            },
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

    /// The least that it can be lowered to: a hundredth, for autoscale a tenth,
    /// and what every offer has at least.
    pub fn least(self) -> u32 {
        match self {
            Throughput::Manual(throughput) => MANUAL_MIN.max(throughput.div_ceil(10_000) * 100),
            Throughput::Autoscale { max, .. } => AUTOSCALE_MIN.max(max.div_ceil(10_000) * 1_000),
            Throughput::Level(_) => MANUAL_MIN,
        }
    }

    /// How many partition key ranges a container with it has.
    pub fn ranges(self) -> usize {
        epk::range_count(self.max())
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
        let throughput = text.trim().parse().ok().filter(|ru| is_step(*ru, MANUAL_MIN, 100));
        throughput.map(Throughput::Manual).ok_or_else(|| {
            Error::bad_request(format!(
                "The offer throughput '{text}' is invalid. Give a number from {MANUAL_MIN} to \
                 {MAX}, in steps of 100."
            ))
        })
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
        let max = max.filter(|max| is_step(*max, AUTOSCALE_MIN, 1_000));
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
            assert!(error.message.starts_with(&format!("The offer throughput '{manual}' is")));
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
            assert_eq!(Throughput::from_content(&throughput.to_content()), Ok(throughput));
        }
        assert!(Throughput::from_content(&json!({})).is_err());
        assert!(Throughput::from_content(&json!({"offerThroughput": 401})).is_err());
    }

    #[test]
    fn autoscale_counts_its_maximum() {
        assert_eq!(Manual(10_000).ranges(), 1);
        assert_eq!(Manual(10_100).ranges(), 2);
        assert_eq!(Autoscale { max: 30_000, increment: None }.ranges(), 5);
    }
}
