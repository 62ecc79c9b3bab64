//! Timestamps in the API's format: RFC 3339, UTC, with milliseconds if there are any.
//!
//! Kubernetes' own `metav1.Time` truncates to whole seconds, but intervals here may be shorter than one
//! second.

use std::borrow::Cow;

use jiff::{Timestamp, Unit};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A point in time, rounded down to the millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(Timestamp);

impl Time {
    /// Rounds down to the millisecond, so that a written time equals the time read back.
    pub fn new(at: Timestamp) -> Self {
        let round = jiff::TimestampRound::new()
            .smallest(Unit::Millisecond)
            .mode(jiff::RoundMode::Floor);
        Self(at.round(round).unwrap_or(at))
    }

    /// Returns the point in time.
    pub fn timestamp(self) -> Timestamp {
        self.0
    }
}

impl From<Timestamp> for Time {
    fn from(at: Timestamp) -> Self {
        Self::new(at)
    }
}

impl JsonSchema for Time {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_written_with_milliseconds_only_where_there_are_any() {
        let json = |text: &str| serde_json::to_string(&Time::new(text.parse().unwrap())).unwrap();
        assert_eq!(json("2020-11-20T01:46:55Z"), "\"2020-11-20T01:46:55Z\"");
        assert_eq!(json("2020-11-20T01:46:55.1239Z"), "\"2020-11-20T01:46:55.123Z\"");
    }

    #[test]
    fn reads_what_the_original_wrote() {
        let time: Time = serde_json::from_str("\"2020-11-20T01:46:55Z\"").unwrap();
        assert_eq!(time.timestamp().as_second(), 1_605_836_815);
    }
}
