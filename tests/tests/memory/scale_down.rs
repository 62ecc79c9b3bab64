//! A workload whose HookTemplate is too large keeps all its pods, and says why. One that is just small enough works for
//! two hundred pods.

use std::collections::BTreeSet;

use operator_tests::fleet::{GAME, condition, game, hooked};
use serde_json::{Value, json};
use shared_api::{HookRun, HookTemplateSpec};
use test_kit::eventually;

use crate::api::Kind;
use crate::manifests::asking;
use crate::printer::Rows;
use crate::shapes::{Shape, list};
use crate::world::World;
use crate::{MAX_SPEC, PATIENCE, assert_states, count};

/// Pods that go with a small template.
const FIRST: usize = 10;
/// Longest template of a hook, in bytes of JSON.
const MAX_TEMPLATE: usize = 128 * 1024;
/// Template that is too long for every reader.
const HUGE: &str = "huge";
const HUGE_BYTES: usize = 1_300_000;
/// Template that only hooks of a workload cannot use.
const LARGE: &str = "large";
const LARGE_BYTES: usize = 200_000;
/// Template with one byte too many.
const BEYOND: &str = "beyond";
/// Template without one byte to spare.
const LIMIT: &str = "limit";

/// Number of pods of the workload.
fn pods() -> usize {
    count(60, 200)
}

/// Builds the spec of a template that asks about each pod, at the path of this name.
fn spec(world: &World<'_>, name: &str, more: Value) -> Value {
    let url = world.server.url(&format!("/{name}?pod={{{{ args.PodName }}}}"));
    json!({ "args": [{ "name": "PodName" }], "metrics": [asking(&url, more)] })
}

/// Makes a metric ask until the answer is good. The interval leaves time for the status of two hundred runs.
fn patient() -> Value {
    json!({ "interval": "5s", "successfulLimit": 1 })
}

/// Extends a spec by a text, so that it has exactly this many bytes.
fn filled(mut spec: Value, bytes: usize) -> Value {
    // The API server would add this default.
    spec["policy"] = json!("Parallel");
    spec["metrics"][0]["comment"] = json!("");
    let without: HookTemplateSpec = serde_json::from_value(spec.clone()).unwrap();
    let missing = bytes - serde_json::to_string(&without).unwrap().len();
    spec["metrics"][0]["comment"] = json!("x".repeat(missing));
    spec
}

/// Stores the templates, and launches the workload.
pub(crate) async fn launch(world: &World<'_>) {
    let (fleet, api) = (&world.fleet, &world.api);
    let url = world.server.url(&format!("/{HUGE}"));
    let huge = Shape::Zeros.object(Kind::HookTemplate, HUGE, &url, HUGE_BYTES);
    api.create(Kind::HookTemplate, &fleet.namespace, huge).await;
    let zeros: Value = serde_json::from_str(&list("0", LARGE_BYTES)).unwrap();
    let large = spec(world, LARGE, json!({ "comment": zeros }));
    fleet.hook(LARGE, large).await;
    for (name, bytes) in [(BEYOND, MAX_TEMPLATE + 1), (LIMIT, MAX_TEMPLATE)] {
        let spec = spec(world, name, patient());
        fleet.hook(name, filled(spec, bytes)).await;
    }
    fleet.launch(&game(pods(), hooked(HUGE))).await;
}

/// Scales the workload to zero behind each template that is too large.
pub(crate) async fn is_blocked(world: &World<'_>) {
    world.scale(GAME, 0).await;
    for (template, bytes, limit) in [
        (HUGE, HUGE_BYTES, MAX_SPEC),
        (LARGE, LARGE_BYTES, MAX_TEMPLATE),
        (BEYOND, MAX_TEMPLATE + 1, MAX_TEMPLATE),
    ] {
        world.fleet.set(hooked(template)).await;
        says_why(world, template, bytes, limit).await;
    }
    world.fleet.set(hooked(HUGE)).await;
    stays_blocked(world).await;
}

/// Checks that the workload is held by the template that is too long for every reader.
pub(crate) async fn stays_blocked(world: &World<'_>) {
    says_why(world, HUGE, HUGE_BYTES, MAX_SPEC).await;
    assert_eq!(world.pods_of(GAME).await.len(), pods());
    assert_eq!(world.ended_pods_of(GAME), BTreeSet::new());
    let rows = world
        .printer
        .rows(Kind::HookRun, &world.fleet.namespace)
        .await
        .unwrap();
    assert!(rows.is_empty(), "{rows:?}");
}

/// Waits until two conditions of the workload state the size of a template, and the limit.
async fn says_why(world: &World<'_>, template: &str, bytes: usize, limit: usize) {
    let words = format!("HookTemplate {template} ");
    for kind in ["HooksResolved", "ScaleBlocked"] {
        let message = world.fleet.until_message(kind, &words).await;
        assert_states(&message, bytes, limit);
    }
    let (status, reason, _) = condition(&world.fleet.status().await, "HooksResolved").unwrap();
    assert_eq!(status, "False", "{reason}");
    assert!(
        ["HookTemplateInvalid", "HookTemplateMissing"].contains(&reason.as_str()),
        "{reason}"
    );
}

/// Returns the pods that were asked about at the path of a template.
fn asked(world: &World<'_>, template: &str) -> BTreeSet<String> {
    let questions = world.questions(&format!("/{template}"), 0).into_iter();
    let pods = questions.filter_map(|query| Some(query.strip_prefix("pod=")?.to_owned()));
    pods.collect()
}

/// Waits until this many pods have been asked about at the path of a template.
async fn until_asked(world: &World<'_>, template: &str, count: usize) {
    eventually(PATIENCE, || async {
        let asked = asked(world, template).len();
        if asked == count {
            Ok(())
        } else {
            Err(format!("{asked} of {count}"))
        }
    })
    .await;
}

/// Waits until this many pods exist, including those that are terminating.
async fn until_pods(world: &World<'_>, count: usize) {
    eventually(PATIENCE, || async {
        let pods = world.fleet.all_pods().await.len();
        if pods == count {
            Ok(())
        } else {
            Err(format!("{pods} pods instead of {count}"))
        }
    })
    .await;
}

/// Replaces the template by a small one: pods go once the server has allowed it, and none before.
pub(crate) async fn goes_with_a_small_one(world: &World<'_>) {
    world.scale(GAME, pods() - FIRST).await;
    // The operator knows the number of pods before it sees the template.
    world.fleet.until(|_| true).await;
    world.refuse(&format!("/{HUGE}"));
    let small = spec(world, HUGE, patient());
    world.fleet.change_hook(HUGE, small).await;
    until_asked(world, HUGE, FIRST).await;
    assert_eq!(world.ended_pods_of(GAME), BTreeSet::new());
    world.allow(&format!("/{HUGE}"));
    until_pods(world, pods() - FIRST).await;
    assert_eq!(world.ended_pods_of(GAME), asked(world, HUGE));
}

/// Scales the workload down behind the longest template that works: each pod has a run with a copy of it.
pub(crate) async fn goes_at_the_limit(world: &World<'_>) {
    let (fleet, path) = (&world.fleet, format!("/{LIMIT}"));
    let count = count(20, 190);
    world.refuse(&path);
    fleet.set(hooked(LIMIT)).await;
    world.scale(GAME, pods() - FIRST - count).await;
    until_asked(world, LIMIT, count).await;
    assert_eq!(world.pods_of(GAME).await.len(), pods() - FIRST);
    hold_the_whole_spec(world, count).await;
    world.allow(&path);
    until_pods(world, pods() - FIRST - count).await;
    let mut all = asked(world, HUGE);
    all.extend(asked(world, LIMIT));
    assert_eq!(all.len(), FIRST + count);
    assert_eq!(world.ended_pods_of(GAME), all);
    let kind = Kind::HookRun;
    world.printer.until(kind, &fleet.namespace, Rows::is_empty).await;
}

/// Checks that there is a run for each pod, and that runs have the long text of their template.
async fn hold_the_whole_spec(world: &World<'_>, count: usize) {
    let fleet = &world.fleet;
    let comment = |metrics: &Value| metrics[0]["comment"].as_str().unwrap_or_default().to_owned();
    let template = fleet.templates().get(LIMIT).await.unwrap();
    let text = comment(&json!(template.spec.metrics));
    assert!(text.len() > MAX_TEMPLATE / 2, "{} bytes", text.len());
    let rows = world.printer.rows(Kind::HookRun, &fleet.namespace).await.unwrap();
    assert_eq!(rows.len(), count);
    for name in rows.keys().step_by(15) {
        let run: HookRun = fleet.runs().get(name).await.unwrap();
        assert_eq!(comment(&json!(run.spec.metrics)), text, "{name}");
    }
}
