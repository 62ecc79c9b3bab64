//! Answer of Prometheus' instant query API (<https://prometheus.io/docs/prometheus/latest/querying/api/>).

use serde_json::Value;

use super::{
    AnswerHead, MeasurementFailure, MeasurementReason, ProviderResponse, check_size,
    excerpt::{Shown, refused_status},
    is_success, malformed,
};
use crate::{request::PrometheusRequest, value::MetricValue};

/// Longest explanation of a server that a message quotes, in characters.
const EXPLANATION_CHARS: usize = 300;

/// Extracts the numbers from a Prometheus server's answer. `body` is decompressed and at most one byte longer
/// than [`super::MAX_ANSWER_BYTES`].
///
/// # Errors
/// `QueryFailed` if the server reports an error, with its message; `Status` if a proxy in between answered;
/// `MalformedAnswer` if the answer is too large, does not have the API's shape, or holds no numbers (a range
/// vector, a string, native histograms); `PartialAnswer` if the server reports an incomplete answer, unless
/// the request accepts it and it is not empty.
pub fn interpret_prometheus(
    request: &PrometheusRequest,
    head: AnswerHead,
    body: &[u8],
) -> Result<ProviderResponse, MeasurementFailure> {
    let size = check_size(body);
    let document = if size.is_ok() {
        plain_json::from_slice::<Value>(body).ok()
    } else {
        None
    };
    let shown = || Shown::new(&request.redactor, &request.address, &request.headers);
    if let Some(words) = document.as_ref().and_then(refused_query) {
        let words = shown().excerpt(": ", "its error", &words, EXPLANATION_CHARS);
        let message = format!("Prometheus rejected the query{words}");
        return Err(MeasurementFailure::new(MeasurementReason::QueryFailed, message));
    }
    if !is_success(head.code) {
        return Err(refused_status(head.code, body, &shown()));
    }
    size?;
    let document = document.ok_or_else(|| {
        let page = shown().body("; the response begins with: ", body);
        malformed(format!(
            "the response is not JSON, so the address may not point to a Prometheus server{page}"
        ))
    })?;
    if document.get("status").and_then(Value::as_str) != Some("success") {
        return Err(malformed(
            "the response has no status \"success\"; does the address point to a Prometheus server?",
        ));
    }
    let origin = Some(head.origin());
    let result = numbers(&document)?;
    let empty = matches!(&result, MetricValue::Vector(samples) if samples.is_empty());
    // An incomplete answer without series is never a measurement: the missing series may be the only ones.
    if let Some(words) = incomplete(&document).filter(|_| empty || !request.accept_partial) {
        let words = shown().excerpt(": ", "the warning", &words, EXPLANATION_CHARS);
        let message = format!("the response is incomplete{words}");
        return Err(MeasurementFailure::new(MeasurementReason::PartialAnswer, message));
    }
    if empty {
        return Ok(ProviderResponse::NoData {
            message: "the query matched no series".into(),
            result,
            origin,
        });
    }
    Ok(ProviderResponse::Value { result, origin })
}

/// Returns the error that the server itself reports; it does so with a 4xx or 5xx status.
fn refused_query(document: &Value) -> Option<String> {
    if document.get("status").and_then(Value::as_str) != Some("error") {
        return None;
    }
    let words: Vec<&str> = ["errorType", "error"]
        .iter()
        .filter_map(|key| document.get(key).and_then(Value::as_str))
        .collect();
    Some(words.join(": "))
}

/// Returns what the server reports as missing: `warnings` (Prometheus, Thanos, Cortex, Mimir) and `isPartial`
/// (`VictoriaMetrics`). `infos` are only remarks about the query. A mark in an unknown form counts too.
fn incomplete(document: &Value) -> Option<String> {
    let parts = [Some(document), document.get("data")];
    let mut parts = parts.into_iter().flatten();
    parts.find_map(|part| {
        let words = match part.get("warnings") {
            None | Some(Value::Null) => None,
            Some(Value::Array(words)) if words.is_empty() => None,
            Some(Value::Array(words)) => Some(words.iter().map(text_of).collect::<Vec<_>>().join("; ")),
            Some(other) => Some(text_of(other)),
        };
        words.or_else(|| match part.get("isPartial") {
            None | Some(Value::Null | Value::Bool(false)) => None,
            Some(_) => Some("the server reported isPartial".to_owned()),
        })
    })
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn numbers(document: &Value) -> Result<MetricValue, MeasurementFailure> {
    let data = document.get("data");
    let kind = data
        .and_then(|data| data.get("resultType"))
        .and_then(Value::as_str);
    let result = data.and_then(|data| data.get("result"));
    match (kind, result) {
        (Some("scalar"), Some(point)) => number(point).map(MetricValue::Scalar),
        (Some("vector"), Some(Value::Array(samples))) => {
            let numbers: Result<Vec<f64>, _> = samples.iter().map(sample).collect();
            numbers.map(MetricValue::Vector)
        }
        (Some("matrix"), _) => Err(malformed(
            "Prometheus returned a matrix; for an instant query, remove the range selector or wrap it in a function \
             such as rate()",
        )),
        (Some("string"), _) => Err(malformed(
            "Prometheus returned a string; use an instant query that returns numbers",
        )),
        _ => Err(malformed(
            "the response contains neither a scalar nor a vector; does the address point to a Prometheus server?",
        )),
    }
}

fn sample(sample: &Value) -> Result<f64, MeasurementFailure> {
    match sample.get("value") {
        Some(point) => number(point),
        None if sample.get("histogram").is_some() => Err(malformed(
            "Prometheus returned native histograms; wrap the query in histogram_quantile(), histogram_count() or \
             another function that returns numbers",
        )),
        None => Err(malformed("a sample in the response has no value")),
    }
}

/// Parses the number in `[time, "text"]`. Rejects text that is not a number and numbers out of range: an
/// infinity counts only if the server sends it as such.
fn number(point: &Value) -> Result<f64, MeasurementFailure> {
    let text = point.get(1).and_then(Value::as_str);
    let number = match text {
        Some("NaN") => Some(f64::NAN),
        Some("+Inf" | "Inf") => Some(f64::INFINITY),
        Some("-Inf") => Some(f64::NEG_INFINITY),
        Some(text) => text.parse().ok().filter(|number: &f64| number.is_finite()),
        None => None,
    };
    number.ok_or_else(|| malformed("a value in the response is not a number"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::ContentType;
    use super::*;
    use crate::request::Tls;
    use redact::Redactor;

    fn request() -> PrometheusRequest {
        PrometheusRequest {
            accept_partial: false,
            address: "http://prometheus:9090".into(),
            query: "up".into(),
            headers: vec![("Authorization".into(), "Bearer hush-hush".into())],
            timeout: Duration::from_secs(1),
            tls: Tls::default(),
            redactor: Redactor::default(),
        }
    }

    fn head(code: u16) -> AnswerHead {
        AnswerHead {
            code,
            latency: Duration::ZERO,
            content_type: ContentType::Json,
        }
    }

    fn interpret(code: u16, body: &str) -> Result<ProviderResponse, MeasurementFailure> {
        interpret_prometheus(&request(), head(code), body.as_bytes())
    }

    /// Returns the value's text for a `data` object.
    fn value(data: &str) -> Result<String, MeasurementFailure> {
        match interpret(200, &format!(r#"{{"status":"success","data":{data}}}"#))? {
            ProviderResponse::Value { result, .. } => Ok(result.text()),
            ProviderResponse::NoData { message, result, .. } => Ok(format!("{message}: {}", result.text())),
            ProviderResponse::Decided { message, .. } => panic!("{message}"),
        }
    }

    fn typed(kind: &str, result: &str) -> String {
        format!(r#"{{"resultType":"{kind}","result":{result}}}"#)
    }

    #[test]
    fn scalars_and_vectors_are_numbers_in_server_order() {
        let three = r#"[{"metric":{"a":"z"},"value":[1,"3"]},{"metric":{"a":"b"},"value":[1,"NaN"]},
            {"metric":{},"value":[1,"1.5"]}]"#;
        let cases = [
            ("scalar", r#"[1435781451.781,"0.99"]"#, "0.99"),
            ("scalar", r#"[1,"1e+06"]"#, "1000000"),
            ("scalar", r#"[1,"-2.5e-3"]"#, "-0.0025"),
            ("scalar", r#"[1,"NaN"]"#, "NaN"),
            ("scalar", r#"[1,"+Inf"]"#, "+Inf"),
            ("scalar", r#"[1,"-Inf"]"#, "-Inf"),
            ("vector", three, "[3,NaN,1.5]"),
            ("vector", "[]", "the query matched no series: []"),
        ];
        for (kind, result, text) in cases {
            assert_eq!(value(&typed(kind, result)).as_deref(), Ok(text), "{result}");
        }
    }

    #[test]
    fn an_answer_of_another_shape_is_refused_with_the_remedy() {
        let histogram = r#"[{"metric":{},"histogram":[1,{}]}]"#;
        let cases = [
            ("matrix", "[]", "Prometheus returned a matrix; "),
            ("string", r#"[1,"a"]"#, "Prometheus returned a string; "),
            ("vector", histogram, "Prometheus returned native histograms; "),
            ("vector", r#"[{"metric":{}}]"#, "a sample in "),
            ("vector", "null", "the response contains neither "),
            ("scalar", "[1,0.5]", "a value in "),
            ("scalar", r#"[1,"infinity"]"#, "a value in "),
            ("scalar", r#"[1,"1e999"]"#, "a value in "),
            ("scalar", r#"[1,""]"#, "a value in "),
            ("scalar", "[1]", "a value in "),
        ];
        let cases = cases.map(|(kind, result, message)| (typed(kind, result), message));
        let untyped = ["{}", "[]"].map(|data| (data.to_owned(), "the response contains neither "));
        for (data, message) in cases.into_iter().chain(untyped) {
            let failure = value(&data).unwrap_err();
            assert_eq!(failure.kind, MeasurementReason::MalformedAnswer, "{data}");
            assert!(failure.message.starts_with(message), "{data}: {failure}");
        }
        for body in ["", "<html>", "45", "{}", r#"{"status":"ok"}"#, "null"] {
            let failure = interpret(200, body).unwrap_err();
            assert_eq!(failure.kind, MeasurementReason::MalformedAnswer, "{body}");
            assert!(
                failure.message.contains("point to a Prometheus server"),
                "{failure}"
            );
        }
    }

    #[test]
    fn the_servers_own_words_explain_a_refused_query() {
        let body =
            r#"{"status":"error","errorType":"bad_data","error":"1:5: parse error:\n unexpected hush-hush"}"#;
        for code in [200, 400, 422, 503] {
            assert_eq!(
                interpret(code, body).unwrap_err(),
                MeasurementFailure::new(
                    MeasurementReason::QueryFailed,
                    "Prometheus rejected the query: bad_data: 1:5: parse error: unexpected *****"
                )
            );
        }
    }

    const NOTHING: &str = r#""data":{"resultType":"vector","result":[]}"#;
    const ZERO: &str = r#""data":{"resultType":"vector","result":[{"metric":{},"value":[1,"0"]}]}"#;

    #[test]
    fn an_incomplete_answer_is_no_value() {
        let thanos = r#""warnings":["No StoreAPIs matched: store-gateway:10901 Unavailable"]"#;
        for data in [NOTHING, ZERO] {
            for mark in [
                thanos,
                r#""isPartial":true"#,
                r#""isPartial":"true""#,
                r#""warnings":"a store is down""#,
                r#""warnings":[],"isPartial":true"#,
            ] {
                let body = format!(r#"{{"status":"success",{mark},{data}}}"#);
                let failure = interpret(200, &body).unwrap_err();
                assert!(
                    failure.message.starts_with("the response is incomplete: "),
                    "{mark}: {failure}"
                );
            }
        }
        let body = format!(r#"{{"status":"success",{thanos},{ZERO}}}"#);
        let words = interpret(200, &body).unwrap_err().message;
        assert!(words.contains("store-gateway:10901 Unavailable"), "{words}");
    }

    #[test]
    fn an_incomplete_answer_that_is_accepted_is_a_value_unless_it_is_empty() {
        let request = PrometheusRequest {
            accept_partial: true,
            ..request()
        };
        let ask = |data: &str| {
            let body = format!(r#"{{"status":"success","isPartial":true,{data}}}"#);
            interpret_prometheus(&request, head(200), body.as_bytes())
        };
        assert!(matches!(ask(ZERO), Ok(ProviderResponse::Value { .. })));
        assert_eq!(ask(NOTHING).unwrap_err().kind, MeasurementReason::PartialAnswer);
    }

    #[test]
    fn a_complete_answer_is_a_value_whatever_else_the_server_remarks() {
        for mark in [
            r#""warnings":[]"#,
            r#""warnings":null,"isPartial":null"#,
            r#""isPartial":false"#,
            r#""infos":["PromQL info: metric might not be a counter"]"#,
        ] {
            let body = format!(r#"{{"status":"success",{mark},{ZERO}}}"#);
            assert!(interpret(200, &body).is_ok(), "{mark}");
        }
    }

    #[test]
    fn a_refusal_by_something_in_between_is_a_status() {
        for body in [
            "no upstream",
            r#"{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}"#,
        ] {
            let failure = interpret(502, body).unwrap_err();
            assert_eq!(failure.kind, MeasurementReason::Status);
            assert!(failure.message.starts_with("received status 502: "), "{failure}");
        }
    }
}
