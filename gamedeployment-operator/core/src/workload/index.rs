//! Pod indexes: a unique number for each pod, from a range in the workload's annotations.

use std::collections::BTreeMap;

use serde::Deserialize;
use shared_api::names::workload::{INDEX_ON, INDEX_RANGE};

use super::FieldError;
use crate::plural::indexes;

/// Indexes from `start` (inclusive) to `end` (exclusive).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IndexRange {
    /// First index.
    #[serde(rename = "podStartIndex")]
    pub start: i64,
    /// One past the last index.
    #[serde(rename = "podEndIndex")]
    pub end: i64,
}

impl IndexRange {
    /// Number of indexes.
    pub fn size(self) -> usize {
        usize::try_from(self.end.saturating_sub(self.start)).unwrap_or(0)
    }
}

pub(super) fn read(
    annotations: &BTreeMap<String, String>,
    replicas: usize,
    problems: &mut Vec<FieldError>,
) -> Option<IndexRange> {
    if annotations.get(INDEX_ON).is_none_or(|on| on != "true") {
        return None;
    }
    let path = format!("metadata.annotations[{INDEX_RANGE}]");
    let Some(text) = annotations.get(INDEX_RANGE) else {
        return Some(IndexRange {
            start: 0,
            end: i64::MAX,
        });
    };
    match serde_json::from_str::<IndexRange>(text) {
        Ok(range) if range.start >= 0 && range.end > range.start => {
            if range.size() < replicas {
                let remedy = format!(
                    "has {}, but there are {replicas} replicas; widen the range",
                    indexes(range.size())
                );
                problems.push(FieldError::new(&path, text, remedy));
            }
            Some(range)
        }
        Ok(_) | Err(_) => {
            let remedy = "must be {\"podStartIndex\":S,\"podEndIndex\":E} with 0 <= S < E";
            problems.push(FieldError::new(&path, text, remedy));
            None
        }
    }
}
