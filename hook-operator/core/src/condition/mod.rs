//! The condition language (in work).
use crate::value::{MetricValue, Response};
#[derive(Debug, Clone)]
pub struct Condition(String);
pub struct Facts<'a> { pub result: &'a MetricValue, pub response: Option<Response>, pub now: jiff::Timestamp }
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ConditionError { pub message: String }
impl Condition {
    pub fn compile(source: &str) -> Result<Condition, ConditionError> { Ok(Condition(source.to_owned())) }
    pub fn source(&self) -> &str { &self.0 }
    pub fn mentions_is_nan(&self) -> bool { false }
    pub fn handles_empty(&self) -> bool { false }
    pub fn evaluate(&self, _facts: &Facts<'_>) -> Result<bool, ConditionError> { Ok(true) }
}
