//! `kubectl game hook evaluate`: judges a given response, and explains the verdict. Sends no requests.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use expr_conditions::{Condition, EvalInput, Job};
use hook_core::answer::{
    AnswerHead, ContentType, MeasurementFailure, ProviderResponse, annotated, interpret_fields,
    interpret_message, interpret_prometheus, interpret_stdout, interpret_web,
};
use hook_core::judge::{MeasurementResult, Rules, judge};
use hook_core::render::{References, references, render};
use hook_core::request::{HttpRequest, JobRequest, ProviderRequest};
use hook_core::resolve::ResolvedMetric;
use hook_core::value::{MetricValue, cut};
use jiff::Timestamp;
use serde_json::{Value, json};
use shared_api::Phase;

use super::exit_code;
use super::input::{Chosen, Input, how_to_supply};
use crate::command::ColorArgs;
use crate::draw::text::clean;

/// Maximum length of a displayed value, in bytes.
const MAX_VALUE_BYTES: usize = 400;

/// Judges a given response.
#[derive(Debug, Args)]
pub(crate) struct Evaluate {
    #[command(flatten)]
    input: Input,

    /// Body of the response; @FILE reads it from a file. For Prometheus, a number or a list is also
    /// accepted: 0.5, [1, NaN], []
    #[arg(long, value_name = "BODY")]
    result: String,

    /// HTTP status code of the response
    #[arg(long, value_name = "STATUS", default_value_t = 200)]
    code: u16,

    /// Evaluate only this metric [default: all metrics, with the same response]
    #[arg(long, value_name = "NAME")]
    metric: Option<String>,

    #[command(flatten)]
    color: ColorArgs,
}

impl Evaluate {
    pub(super) fn main(&self) -> Result<ExitCode, Box<dyn std::error::Error>> {
        let chosen = self.input.choose_to_judge()?;
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
            let known: Vec<_> = chosen
                .resolved
                .metrics
                .iter()
                .map(|metric| metric.name.as_str())
                .collect();
            let known = known.join(", ");
            return Err(format!("{} has no metric {name:?}; available: {known}", chosen.name).into());
        }
        let paint = self.color.paint();
        let mut worst = Phase::Successful;
        for metric in metrics {
            let (verdict, steps) = self.judge(&chosen, metric, &body);
            let message = verdict.message.unwrap_or_default();
            let line = clean(&format!("{}: {message}", metric.name));
            println!("{} {line}", paint.phase(verdict.phase));
            for step in steps {
                println!("  {}", paint.faint(&clean(&step)));
            }
            if verdict.phase.badness() > worst.badness() {
                worst = verdict.phase;
            }
        }
        Ok(exit_code(worst))
    }

    /// Returns the verdict, and the steps that led to it.
    fn judge(
        &self,
        chosen: &Chosen,
        metric: &ResolvedMetric,
        body: &str,
    ) -> (MeasurementResult, Vec<String>) {
        let mut values = References::new();
        for reference in references(metric, &chosen.resolved.arguments) {
            // A hint on how to supply an unknown value stands in for it. That is enough for a value that is
            // only sent, but a condition needs the real one.
            let text = chosen
                .given
                .get(&reference)
                .cloned()
                .unwrap_or_else(|| how_to_supply(&reference));
            values.insert(reference, text);
        }
        let rendered = match render(metric, &chosen.resolved.arguments, &values) {
            Ok(rendered) => rendered,
            Err(failure) => return (error(&failure), vec![]),
        };
        let head = AnswerHead {
            code: self.code,
            latency: Duration::ZERO,
            content_type: ContentType::Other,
        };
        let outcome = answer(&rendered.request, head, body);
        let rules = Rules {
            success: rendered.rules.success.as_ref(),
            failure: rendered.rules.failure.as_ref(),
            on_no_data: metric.on_no_data,
        };
        let redactor = &rendered.rules.redactor;
        let now = Timestamp::now();
        let mut steps = steps(&rules, &outcome, now);
        for step in &mut steps {
            *step = redactor.clean(step);
        }
        (judge(&rules, &outcome, now, redactor), steps)
    }
}

/// Describes the value with its type, and the result of each condition.
fn steps(
    rules: &Rules<'_>,
    outcome: &Result<ProviderResponse, MeasurementFailure>,
    now: Timestamp,
) -> Vec<String> {
    let conditions = [
        ("successCondition", rules.success),
        ("failureCondition", rules.failure),
    ];
    let set = || {
        conditions
            .iter()
            .filter_map(|(name, condition)| Some((*name, (*condition)?)))
    };
    let (result, origin) = match outcome {
        Ok(ProviderResponse::Value { result, origin }) => (result, origin.as_ref()),
        Ok(ProviderResponse::NoData { result, origin, .. })
            if set().any(|(_, condition)| condition.handles_empty()) =>
        {
            (result, origin.as_ref())
        }
        Ok(ProviderResponse::NoData { .. } | ProviderResponse::Decided { .. }) | Err(_) => return vec![],
    };
    let value = cut(&result.text(), MAX_VALUE_BYTES);
    let input = EvalInput {
        result: result.into(),
        origin,
        now,
    };
    let explain = |(name, condition): (&str, &Condition)| match condition.evaluate(&input) {
        Ok(holds) => format!("{name} is {holds}: {}", condition.source()),
        Err(error) => format!("{name} could not be evaluated: {error}"),
    };
    std::iter::once(format!("result is {}: {value}", kind(result)))
        .chain(set().map(explain))
        .collect()
}

/// Names the type of a value, to show for example that `"45"` is not a number.
fn kind(result: &MetricValue) -> String {
    match result {
        MetricValue::Json(Value::Null) => "null".to_owned(),
        MetricValue::Json(Value::Bool(_)) => "a boolean".to_owned(),
        MetricValue::Json(Value::Number(_)) | MetricValue::Scalar(_) => "a number".to_owned(),
        MetricValue::Json(Value::String(_)) => "a string".to_owned(),
        MetricValue::Json(Value::Array(items)) if items.len() == 1 => "a list of 1 item".to_owned(),
        MetricValue::Json(Value::Array(items)) => format!("a list of {} items", items.len()),
        MetricValue::Json(Value::Object(_)) => "an object".to_owned(),
        MetricValue::Vector(numbers) if numbers.len() == 1 => "a list of 1 number".to_owned(),
        MetricValue::Vector(numbers) => format!("a list of {} numbers", numbers.len()),
    }
}

/// Interprets the body as the provider's response to the request.
fn answer(
    request: &ProviderRequest,
    head: AnswerHead,
    body: &str,
) -> Result<ProviderResponse, MeasurementFailure> {
    match request {
        ProviderRequest::Http(HttpRequest::Web(request)) => interpret_web(request, head, body.as_bytes()),
        ProviderRequest::Http(HttpRequest::Prometheus(request)) => {
            let body = samples(body).unwrap_or_else(|| body.to_owned());
            interpret_prometheus(request, head, body.as_bytes())
        }
        ProviderRequest::Job(JobRequest {
            result_container: Some(container),
            ..
        }) => {
            let counts = Job {
                succeeded: 1,
                failed: 0,
            };
            interpret_message(container, body, counts)
        }
        ProviderRequest::Job(_) => Ok(ProviderResponse::Decided {
            successful: true,
            message: "the Job is complete".to_owned(),
            value: None,
        }),
        ProviderRequest::Read(request) => interpret_fields(request, body),
        ProviderRequest::Annotate(request) => Ok(annotated(request)),
        ProviderRequest::Exec(request) => interpret_stdout(request, body),
    }
}

/// Builds the Prometheus response for a number or a list of numbers; `None` for any other text.
fn samples(text: &str) -> Option<String> {
    let text = text.trim();
    let number = |text: &str| {
        let text = text.trim();
        text.parse::<f64>().is_ok().then(|| json!([0, text]))
    };
    let (kind, result) = match text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        Some("") => ("vector", json!([])),
        Some(items) => {
            let samples = items
                .split(',')
                .map(|item| Some(json!({ "value": number(item)? })));
            ("vector", samples.collect::<Option<Value>>()?)
        }
        None => ("scalar", number(text)?),
    };
    let answer = json!({ "status": "success", "data": { "resultType": kind, "result": result } });
    Some(answer.to_string())
}

fn error(failure: &MeasurementFailure) -> MeasurementResult {
    MeasurementResult {
        phase: Phase::Error,
        reason: Some(failure.kind),
        value: None,
        message: Some(failure.message.clone()),
    }
}
