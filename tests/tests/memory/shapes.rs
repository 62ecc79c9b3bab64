//! Large HookTemplates and HookRuns, as JSON text. Parsed, a text takes as many bytes as it has characters; a list of
//! numbers takes sixteen times as many, and a list of small objects eighty times.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::api::Kind;
use crate::json_text::with_text;
use crate::manifests::asking;

const FIRST: &str = "/spec/metrics/0";
/// Object of which a list takes eighty times as many bytes when it is parsed.
pub(crate) const OBJECT: &str = r#"{"a":0}"#;
/// Text that stands for a body.
const BODY: &str = "@body@";
/// Metrics with a body, and metrics and headers of each that the definition allows.
const BODIES: usize = 6;
const MAX_ITEMS: usize = 100;
/// Arguments that the definition allows.
const MAX_ARGUMENTS: usize = 1000;
/// Levels of lists within a metric, so that the object has less than one hundred.
const LEVELS: usize = 90;
/// Bytes of short fields at most: each is compared with the names of all fields that there are.
const MAX_NAMES: usize = 100_000;

/// Shape of a spec. Its metrics ask once an hour, until the answer is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One long text in an unknown field.
    Text,
    /// List of zeros in an unknown field.
    Zeros,
    /// List of small objects in an unknown field.
    Objects,
    /// Deep lists, many of them, in an unknown field.
    Deep,
    /// Thousands of short unknown fields, and a long one.
    Names,
    /// One body that is a list of zeros.
    Body,
    /// Metrics with such bodies.
    Bodies,
    /// Job with a list of zeros in its spec.
    Job,
    /// As many arguments as there may be.
    Arguments,
    /// As many metrics as there may be, with as many headers.
    Headers,
}

impl Shape {
    /// Builds an object of this shape whose spec has about this many bytes.
    pub(crate) fn object(self, kind: Kind, name: &str, url: &str, bytes: usize) -> String {
        let head =
            json!({ "apiVersion": kind.api_version(), "kind": kind.name(), "metadata": { "name": name } });
        let of = |spec: Value| {
            let mut object = head.clone();
            object["spec"] = spec;
            object
        };
        let plain = || of(json!({ "metrics": [waiting("m0", url)] }));
        let comment = |text: &str| with_text(plain(), &format!("{FIRST}/comment"), text);
        match self {
            Self::Text => comment(&json!("x".repeat(bytes)).to_string()),
            Self::Zeros => comment(&list("0", bytes)),
            Self::Objects => comment(&list(OBJECT, bytes)),
            Self::Deep => comment(&list(&crate::json_text::lists(LEVELS), bytes)),
            Self::Names => with_text(plain(), &format!("{FIRST}/zz"), &names(bytes)),
            Self::Body => with_text(
                plain(),
                &format!("{FIRST}/provider/web/jsonBody"),
                &list("0", bytes),
            ),
            Self::Bodies => {
                let metrics = (0..BODIES).map(|number| with_body(number, url));
                let object = of(json!({ "metrics": metrics.collect::<Vec<_>>() })).to_string();
                object.replace(&format!("\"{BODY}\""), &list("0", bytes / BODIES))
            }
            Self::Job => {
                let pod = json!({ "restartPolicy": "Never", "containers": [{ "name": "check", "image": "check:v1" }] });
                let job = json!({ "job": { "spec": { "template": { "spec": pod } } } });
                let object = of(json!({ "metrics": [{ "name": "m0", "provider": job }] }));
                let pod = format!("{FIRST}/provider/job/spec/template/spec");
                with_text(object, &format!("{pod}/comment"), &list("0", bytes))
            }
            Self::Arguments => {
                let value = "x".repeat(bytes / MAX_ARGUMENTS);
                let args =
                    (0..MAX_ARGUMENTS).map(|number| json!({ "name": format!("a{number}"), "value": value }));
                let args: Vec<Value> = args.collect();
                of(json!({ "metrics": [waiting("m0", url)], "args": args })).to_string()
            }
            Self::Headers => {
                let metrics = (0..MAX_ITEMS).map(|number| with_headers(number, url));
                of(json!({ "metrics": metrics.collect::<Vec<_>>() })).to_string()
            }
        }
    }
}

/// Returns shapes of which a number are among `dense`, evenly spread, and the others are texts. The API server of
/// Kubernetes 1.20 takes seconds for each object of a million numbers, and nearly nothing for a long text.
pub(crate) fn spread(dense: &[Shape], number: usize, count: usize) -> Vec<Shape> {
    let mut dense = dense.iter().copied().cycle();
    let shapes = (0..count).map(|at| {
        let is_dense = at * number % count < number;
        let shape = is_dense.then(|| dense.next()).flatten();
        shape.unwrap_or(Shape::Text)
    });
    shapes.collect()
}

fn waiting(name: &str, url: &str) -> Value {
    let provider = json!({ "web": { "method": "POST" } });
    let more = json!({ "name": name, "interval": "1h", "successfulLimit": 1, "provider": provider });
    asking(url, more)
}

fn with_body(number: usize, url: &str) -> Value {
    let mut metric = waiting(&format!("m{number}"), url);
    metric["provider"]["web"]["jsonBody"] = json!(BODY);
    metric
}

fn with_headers(number: usize, url: &str) -> Value {
    let headers = (0..MAX_ITEMS).map(|header| json!({ "key": format!("X-{header}"), "value": "v" }));
    let mut metric = waiting(&format!("m{number}"), url);
    metric["provider"]["web"]["headers"] = headers.collect();
    metric
}

/// Builds a list that is as long as this.
pub(crate) fn list(item: &str, bytes: usize) -> String {
    let count = bytes / (item.len() + 1);
    format!("[{}{item}]", format!("{item},").repeat(count.saturating_sub(1)))
}

/// Builds a number, and fields behind it. Their names resemble no field that there is.
fn names(bytes: usize) -> String {
    let mut text = String::from("0");
    let mut number = 0;
    while text.len() < bytes.min(MAX_NAMES) {
        let _ = write!(text, r#","zz{number:x}":0"#);
        number += 1;
    }
    let long = "x".repeat(bytes.saturating_sub(text.len()));
    let _ = write!(text, r#","zzlong":"{long}""#);
    text
}
