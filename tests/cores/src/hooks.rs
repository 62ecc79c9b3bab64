//! Work of hook-core for each HookRun and each measurement.

use std::hint::black_box;
use std::time::Duration;

use expr_conditions::{Condition, EvalInput, Input, Origin, Response};
use hook_core::answer::{AnswerHead, ContentType, interpret_web};
use hook_core::decide::{DecisionInput, MeasurementKey, MeasurementOutcome, RunPlan, decide};
use hook_core::judge::MeasurementResult;
use hook_core::render::{References, render};
use hook_core::request::{HttpRequest, ProviderRequest};
use hook_core::resolve::{ResolvedRun, resolve_run};
use jiff::{SignedDuration, Timestamp};
use json_path::JsonPath;
use placeholder::Template;
use serde_json::{Value, json};
use shared_api::Phase;
use shared_api::hook_run::{HookRunSpec, HookRunStatus};

use crate::meter::Meter;
use crate::{Outcome, manifests};

const SHORT: &str = "asInt(result) == 0";
const LONG: &str = r#"len(result.servers) > 0 && all(result.servers, #.state in ["idle", "ended"] && #.players == 0) && not (result.version matches "^v1\\.[0-9]+-(alpha|beta)$") && response.code == 200 && response.latencyMs < 2000"#;
const LONG_PATH: &str = r#"{.servers[?(@.state == "playing")].players}"#;

pub(crate) fn measure(meter: &Meter) -> Outcome<()> {
    conditions(meter)?;
    paths(meter)?;
    placeholders(meter)?;
    runs(meter)
}

/// Builds a game server's report of all its sessions: a list of about 100 bytes each.
fn answer(sessions: usize, playing: usize) -> Value {
    let session = |number: usize| {
        json!({
            "id": format!("session-{number:06}"), "state": if number < playing { "playing" } else { "idle" },
            "players": 0, "map": "harbour", "mode": "ranked", "region": "eu-1",
        })
    };
    let servers: Vec<Value> = (0..sessions).map(session).collect();
    json!({ "version": "v1.4.2", "servers": servers, "players": 0 })
}

fn conditions(meter: &Meter) -> Outcome<()> {
    let now = at(0)?;
    let number = json!("0");
    let small = answer(3, 0);
    let origin = Some(Origin::Exchange(Response {
        code: 200,
        latency: Duration::from_millis(12),
    }));
    for (name, text, result) in [("short", SHORT, &number), ("long", LONG, &small)] {
        meter.cost(&format!("compile a {name} condition"), None, || {
            Condition::compile(black_box(text))
        })?;
        let input = EvalInput {
            result: Input::Json(result),
            origin: origin.as_ref(),
            now,
        };
        let condition = Condition::compile(text)?;
        let holds = condition.evaluate(&input);
        let figure = format!("evaluate a {name} condition");
        meter.fact(
            &format!("{figure}: is true"),
            holds == Ok(true),
            &format!("{holds:?}"),
        )?;
        meter.cost(&figure, None, || condition.evaluate(black_box(&input)))?;
        meter.cost(
            &format!("compile a {name} condition, and evaluate it once"),
            None,
            || Condition::compile(black_box(text)).and_then(|condition| condition.evaluate(&input)),
        )?;
    }
    Ok(())
}

fn paths(meter: &Meter) -> Outcome<()> {
    let (small, large) = (answer(3, 1), answer(1000, 1));
    let bytes = large.to_string().len();
    meter.fact(
        "the large answer has about 100 kB",
        (95_000..115_000).contains(&bytes),
        &format!("{bytes} bytes"),
    )?;
    for (name, text) in [("short", "{$.players}"), ("long", LONG_PATH)] {
        meter.cost(&format!("compile a {name} JSON path"), None, || {
            JsonPath::parse(black_box(text))
        })?;
        let path = JsonPath::parse(text)?;
        for (of, document) in [("a small answer", &small), ("an answer of 100 kB", &large)] {
            let figure = format!("find a {name} JSON path in {of}");
            let found = path.find(document);
            meter.fact(
                &format!("{figure}: is found"),
                found.is_ok(),
                &format!("{found:?}"),
            )?;
            meter.cost(&figure, None, || path.find(black_box(document)))?;
        }
    }
    let run = resolved()?;
    let ProviderRequest::Http(HttpRequest::Web(request)) = requested(&run)? else {
        return Err("a web request was asked for".into());
    };
    for (of, document) in [("a small answer", small), ("an answer of 100 kB", large)] {
        let body = document.to_string();
        let head = AnswerHead {
            code: 200,
            latency: Duration::from_millis(12),
            content_type: ContentType::Json,
        };
        meter.cost(&format!("read {of}, and find the value in it"), None, || {
            interpret_web(&request, head, black_box(body.as_bytes()))
        })?;
    }
    Ok(())
}

fn placeholders(meter: &Meter) -> Outcome<()> {
    let text = "http://{{args.PodIP}}:9091/players?limit={{ args.limit }}&pod={{args.PodName}}";
    let lookup = |name: &str| match name {
        "PodIP" => Some("10.1.2.3".to_owned()),
        "limit" => Some("0".to_owned()),
        "PodName" => Some("arena-00001".to_owned()),
        _ => None,
    };
    meter.cost("parse a template", None, || Template::parse(black_box(text)))?;
    let template = Template::parse(text)?;
    meter.cost("render a URL", None, || template.render_url(&lookup))?;
    meter.cost("render a text", None, || template.render(&lookup))?;
    let run = resolved()?;
    let references = References::new();
    let metric = run.metrics.first().ok_or("the run has no metric")?;
    meter.cost("render a whole measurement", None, || {
        render(black_box(metric), &run.arguments, &references)
    })
}

fn runs(meter: &Meter) -> Outcome<()> {
    let spec = spec()?;
    meter.cost("resolve a run", None, || resolve_run(black_box(&spec)))?;
    let run = resolved()?;
    let mut status = HookRunStatus::default();
    let mut now = 0;
    // No player has left so far: ten measurements are recorded, and the next is due in 30 s.
    for number in 0..10 {
        let outcome = [outcome(number, now)?];
        let plan = decided(&run, &status, &outcome, at(now + 1)?);
        status = plan.record.ok_or("a measurement was to be recorded")?;
        now += 31;
    }
    let (waits, due) = (at(now - 20)?, at(now)?);
    let plan = decided(&run, &status, &[], waits);
    let holds = plan.record.is_none() && plan.start.is_empty() && plan.wake_at.is_some();
    let text = format!("wakes at {:?}", plan.wake_at);
    meter.fact("decide about a run that waits: nothing is done", holds, &text)?;
    meter.cost("decide about a run that waits", None, || {
        decided(black_box(&run), &status, &[], waits)
    })?;
    meter.cost("decide about a run whose measurement is due", None, || {
        decided(black_box(&run), &status, &[], due)
    })?;
    let outcome = [outcome(10, now)?];
    let after = at(now + 1)?;
    meter.cost("decide about a run that was measured", None, || {
        decided(black_box(&run), &status, &outcome, after)
    })
}

fn decided(
    run: &ResolvedRun,
    status: &HookRunStatus,
    outcomes: &[MeasurementOutcome],
    now: Timestamp,
) -> RunPlan {
    let input = DecisionInput {
        spec: Ok(run),
        time_to_live: None,
        generation: Some(1),
        status,
        taken_up_at: status.started_at.map_or(now, shared_api::time::Time::timestamp),
        in_flight: &[],
        outcomes,
        held_up: None,
    };
    decide(&input, now)
}

/// Returns a failed measurement: players are still in the game.
fn outcome(number: i64, second: i64) -> Outcome<MeasurementOutcome> {
    Ok(MeasurementOutcome {
        key: MeasurementKey {
            metric: "players".to_owned(),
            number,
        },
        started_at: at(second)?,
        finished_at: at(second)?,
        verdict: MeasurementResult {
            phase: Phase::Failed,
            reason: None,
            value: Some("7".to_owned()),
            message: Some(format!("\"7\" does not satisfy {SHORT}")),
        },
    })
}

fn at(second: i64) -> Outcome<Timestamp> {
    let begun: Timestamp = "2026-01-01T00:00:00Z".parse()?;
    Ok(begun + SignedDuration::from_secs(second))
}

fn spec() -> Outcome<HookRunSpec> {
    let mut spec = manifests::hook();
    spec["args"] = json!([
        { "name": "PodName", "value": "arena-00001" }, { "name": "PodNamespace", "value": manifests::NAMESPACE },
        { "name": "PodIP", "value": "10.1.2.3" }, { "name": "HostIP", "value": "10.200.0.1" },
        { "name": "PodContainer[0]", "value": "game" }, { "name": "PodContainer[1]", "value": "voice" },
        { "name": "limit", "value": "0" },
    ]);
    Ok(serde_json::from_value(spec)?)
}

fn resolved() -> Outcome<ResolvedRun> {
    resolve_run(&spec()?).map_err(|problems| format!("{problems:?}").into())
}

fn requested(run: &ResolvedRun) -> Outcome<ProviderRequest> {
    let metric = run.metrics.first().ok_or("the run has no metric")?;
    Ok(render(metric, &run.arguments, &References::new())?.request)
}
