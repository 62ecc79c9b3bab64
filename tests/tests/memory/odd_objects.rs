//! Large GameDeployments and ExecutionHooks, HookRuns that are large in another way than by an unknown field, and a
//! status that is large.

use operator_tests::alone;
use serde_json::json;

use crate::api::{Id, Kind};
use crate::json_text::{field, with_text};
use crate::manifests::{manifest, named_game};
use crate::pods::store;
use crate::shapes::{OBJECT, Shape, list};
use crate::world::World;
use crate::{MACHINE, MAX_SPEC, PATIENCE, assert_states, count};

const LONG_BYTES: usize = 1_400_000;
/// Number of workloads with a list of small objects, among those that are too long.
const LONG_DENSE: usize = 1;
/// Workloads that are short enough.
const SHORT: usize = 2;
const SHORT_BYTES: usize = 200_000;
const EXECUTIONS: usize = 5;
const BYTES: usize = 600_000;
/// Runs, by shape.
const RUNS: [(Shape, usize); 2] = [(Shape::Arguments, 2), (Shape::Deep, 1)];
/// Bytes of measurements in a status.
const STATUS: usize = 600_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_objects_of_other_kinds_exhaust_no_memory() {
    let _turn = MACHINE.read().await;
    let control_plane = alone().await;
    let mut world = World::without_operators(&control_plane).await;
    world.allow_executions().await;
    let long = count(6, 20);
    let workloads = (0..long).map(long_workload);
    let others = (0..SHORT).map(short_workload);
    let executions = (0..EXECUTIONS).map(execution);
    store(&world, workloads.chain(others).chain(executions)).await;
    store(&world, runs(&world)).await;
    has_a_large_status(&world).await;
    world.start().await;
    world.launch_brisk().await;
    world.goes_on().await;
    are_served(&world, long).await;
    world.is_small("after lists of large objects");
    let later = [long_workload(long), execution(EXECUTIONS)];
    store(&world, later.into_iter()).await;
    is_refused(&world, long).await;
    world.goes_on().await;
    world.is_small("after watches of large objects");
}

/// Builds a workload without pods whose template has a long unknown field.
fn workload(name: &str, comment: &str) -> (Kind, String) {
    let game = named_game(name, 0, json!({}));
    let object = with_text(game, "/spec/template/spec/comment", comment);
    (Kind::GameDeployment, object)
}

fn long_workload(number: usize) -> (Kind, String) {
    let comment = if number < LONG_DENSE {
        list(OBJECT, LONG_BYTES)
    } else {
        json!("x".repeat(LONG_BYTES)).to_string()
    };
    workload(&format!("long-{number}"), &comment)
}

fn short_workload(number: usize) -> (Kind, String) {
    let item = if number.is_multiple_of(2) { "0" } else { OBJECT };
    workload(&format!("short-{number}"), &list(item, SHORT_BYTES))
}

fn execution(number: usize) -> (Kind, String) {
    let name = format!("execution-{number}");
    let comment = if number == 0 {
        list("0", BYTES)
    } else {
        json!("x".repeat(BYTES)).to_string()
    };
    let kind = Kind::ExecutionHook;
    (
        kind,
        with_text(manifest(kind, &name, ""), "/spec/comment", &comment),
    )
}

fn run_names() -> impl Iterator<Item = (Shape, String)> {
    RUNS.into_iter().flat_map(|(shape, count)| {
        let name = format!("{shape:?}").to_lowercase();
        (0..count).map(move |number| (shape, format!("{name}-{number}")))
    })
}

fn runs(world: &World<'_>) -> impl Iterator<Item = (Kind, String)> {
    run_names().map(|(shape, name)| {
        let url = world.hostile_server.url(&format!("/{name}"));
        let run = shape.object(Kind::HookRun, &name, &url, BYTES);
        (Kind::HookRun, run)
    })
}

/// Stores a run whose status has as many measurements as a megabyte holds.
async fn has_a_large_status(world: &World<'_>) {
    let url = world.hostile_server.url("/recorded");
    let run = Shape::Text.object(Kind::HookRun, "recorded", &url, 10);
    world.api.create(Kind::HookRun, &world.hostile, run).await;
    let measurements = list("{}", STATUS);
    let result = format!(r#"{{"name":"m0","phase":"Running","measurements":{measurements}}}"#);
    let status = format!(r#"{{"status":{{"phase":"Running","metricResults":[{result}]}}}}"#);
    let id = Id::new(Kind::HookRun, &world.hostile, "recorded");
    world.api.try_merge_status(&id, &status).await.unwrap();
}

/// Waits until runs are measured, and workloads work or are refused with words.
async fn are_served(world: &World<'_>, long: usize) {
    for (_, name) in run_names() {
        let path = format!("/{name}");
        let server = &world.hostile_server;
        server.await_requests(&path, 1, PATIENCE).await.unwrap();
    }
    for number in [0, LONG_DENSE, long - 1] {
        is_refused(world, number).await;
    }
    let kind = Kind::GameDeployment;
    let rows = world.printer.until(kind, &world.hostile, |rows| {
        let short = rows.iter().filter(|(name, _)| name.starts_with("short-"));
        let at_work = short.filter(|(_, row)| !row["STATUS"].is_empty());
        at_work.count() == SHORT
    });
    rows.await;
}

/// Waits until a workload says that it is too long, with its size and the limit.
async fn is_refused(world: &World<'_>, number: usize) {
    let name = format!("long-{number}");
    let id = Id::new(Kind::GameDeployment, &world.hostile, &name);
    let object = world.api.until(&id, |object| invalid(object).is_some()).await;
    assert_states(&invalid(&object).unwrap(), LONG_BYTES, MAX_SPEC);
}

/// Returns the message of the condition `InvalidSpec` of a workload.
fn invalid(object: &str) -> Option<String> {
    let status = field(object, "status");
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    let condition = conditions.find(|condition| condition["type"] == "InvalidSpec")?;
    Some(condition["message"].as_str()?.to_owned())
}
