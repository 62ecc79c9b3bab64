//! `kubectl game hook evaluate`: what a given answer would yield, and why. Nothing is asked of anyone.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use hook_core::answer::{Answer, MeasurementFailure, interpret_prometheus, interpret_web};
use hook_core::render::{References, references, render};
use hook_core::request::Request;
use hook_core::resolve::ResolvedMetric;
use hook_core::value::{MetricValue, Response};
use hook_core::verdict::{Rules, Verdict, judge};
use jiff::Timestamp;
use serde_json::Value;
use shared_api::Phase;

use super::exit_code;
use super::input::{Chosen, Input, how_to_supply};
use crate::paint::Paint;

/// Judge a given answer.
#[derive(Debug, Args)]
pub(crate) struct Evaluate {
    #[command(flatten)]
    input: Input,

    /// The answer's body; @FILE reads it from a file. For Prometheus also a number or a list of numbers
    #[arg(long)]
    result: String,

    /// The answer's HTTP status
    #[arg(long, default_value_t = 200)]
    code: u16,

    /// Judge this metric only
    #[arg(long)]
    metric: Option<String>,

    /// No colours
    #[arg(long)]
    no_color: bool,
}

impl Evaluate {
    pub(super) fn main(&self) -> Result<ExitCode, Box<dyn std::error::Error>> {
        let chosen = self.input.choose()?;
        let body = match self.result.strip_prefix('@') {
            Some(file) => {
                std::fs::read_to_string(file).map_err(|error| format!("failed to read {file}: {error}"))?
            }
            None => self.result.clone(),
        };
        let wanted = |metric: &&ResolvedMetric| self.metric.as_ref().is_none_or(|name| *name == metric.name);
        let metrics: Vec<_> = chosen.resolved.metrics.iter().filter(wanted).collect();
        if metrics.is_empty() {
            let name = self.metric.clone().unwrap_or_default();
            return Err(format!("{} has no metric named {name:?}", chosen.name).into());
        }
        let paint = Paint::new(self.no_color);
        let mut worst = Phase::Successful;
        for metric in metrics {
            let verdict = self.judge(&chosen, metric, &body);
            let value = verdict
                .value
                .map(|value| format!("value \"{value}\"  "))
                .unwrap_or_default();
            let message = verdict.message.unwrap_or_default();
            println!("{} {}  {value}{message}", paint.phase(verdict.phase), metric.name);
            worst = worse(worst, verdict.phase);
        }
        Ok(exit_code(worst))
    }

    fn judge(&self, chosen: &Chosen, metric: &ResolvedMetric, body: &str) -> Verdict {
        let given = self.input.references();
        let mut values = References::new();
        for reference in references(metric, &chosen.resolved.arguments) {
            // A text that is only sent need not be known here; one that stands in a condition must.
            let text = given
                .get(&reference)
                .cloned()
                .unwrap_or_else(|| how_to_supply(&reference));
            values.insert(reference, text);
        }
        let rendered = match render(metric, &chosen.resolved.arguments, &values) {
            Ok(rendered) => rendered,
            Err(failure) => return error(&failure),
        };
        let response = Response {
            code: self.code,
            latency: Duration::ZERO,
        };
        let outcome = answer(&rendered.request, response, body);
        let rules = Rules {
            success: rendered.success.as_ref(),
            failure: rendered.failure.as_ref(),
            on_no_data: metric.on_no_data,
        };
        judge(&rules, &outcome, Timestamp::now(), &|text| {
            rendered.redactor.clean(text)
        })
    }
}

/// The answer that this body stands for.
fn answer(request: &Request, response: Response, body: &str) -> Result<Answer, MeasurementFailure> {
    match request {
        Request::Web(request) => interpret_web(request, response.code, response.latency, body.as_bytes()),
        Request::Prometheus(request) => match serde_json::from_str::<Value>(body) {
            Ok(Value::Number(number)) => {
                let result = MetricValue::Scalar(number.as_f64().unwrap_or(f64::NAN));
                Ok(Answer::Value {
                    result,
                    response: Some(response),
                })
            }
            Ok(Value::Array(numbers)) if !numbers.is_empty() && numbers.iter().all(Value::is_number) => {
                let result = MetricValue::Vector(numbers.iter().filter_map(Value::as_f64).collect());
                Ok(Answer::Value {
                    result,
                    response: Some(response),
                })
            }
            Ok(Value::Array(numbers)) if numbers.is_empty() => Ok(Answer::NoData {
                message: "the vector is empty".to_owned(),
                result: MetricValue::Vector(vec![]),
                response: Some(response),
            }),
            _ => interpret_prometheus(request, response.code, response.latency, body.as_bytes()),
        },
    }
}

fn error(failure: &MeasurementFailure) -> Verdict {
    Verdict {
        phase: Phase::Error,
        value: None,
        message: Some(failure.message.clone()),
    }
}

fn worse(one: Phase, other: Phase) -> Phase {
    let rank = |phase| Phase::FINAL.iter().position(|known| *known == phase);
    if rank(other) > rank(one) { other } else { one }
}
