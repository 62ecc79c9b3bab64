//! JSON that the API server stores and that parsers choke on, in all places that a tenant has, holds up nobody else.

use operator_tests::alone;
use serde_json::json;

use crate::api::{Id, Kind};
use crate::broken::PLACES;
use crate::json_text::{lists, with_text};
use crate::manifests::manifest;
use crate::world::World;

/// Values, one a line.
const VALUES: &str = r#"
    9223372036854775808
    18446744073709551616
    123456789012345678901234567890
    -9223372036854775809
    1e308
    1e309
    1e-400
    5e-324
    -0
    -0.0
    1E+2
    null
    ""
    "a\u0000b"
    "\u0001\u001b[31m\u202e\u2028"
    "\ud800"
    "\udc00x"
    "\udc00\ud800"
    {"\ud800":1}
    {"\u0000":1}
    {"":{"":1}}
    {".":1}
    {"a":1,"a":{"a":2}}
    {"$patch":"delete"}
    {"__proto__":{"$ref":1}}
    {"apiVersion":"v1","kind":"List","metadata":{"name":""},"items":null}
"#;

/// Fields of specs, by kind and pointer, with types that the oldest API server does not check, or empty.
const FIELDS: &str = r#"
    HookRun /spec/metrics/0/count 5000000000
    HookRun /spec/metrics/0/count 5e9
    HookRun /spec/metrics/0/failureLimit 2147483648
    HookRun /spec/metrics/0/interval null
    HookRun /spec/metrics/0/interval ""
    HookRun /spec/metrics/0/initialDelay "9999999999h"
    HookRun /spec/metrics []
    HookRun /spec/args null
    HookRun /spec/policy null
    HookRun /spec/timeoutSeconds 9223372036854775807
    HookRun /spec/ttlSecondsAfterFinished -9223372036854775808
    HookTemplate /spec/metrics/0/count 5000000000
    HookTemplate /spec/metrics/0/provider/web/timeoutSeconds 9223372036854775807
    HookTemplate /spec/args []
    GameDeployment /spec/minReadySeconds 5000000000
    GameDeployment /spec/template {"spec":null}
    GameDeployment /spec/template {"metadata":{"labels":null,"creationTimestamp":""},"spec":{"containers":null}}
    GameDeployment /spec/template []
"#;

/// Times, which the API server checks or not.
const TIMES: [&str; 8] = [
    "",
    "0000-01-01T00:00:00Z",
    "0001-01-01T00:00:00Z",
    "0000-01-01T00:00:00+01:00",
    "9999-12-31T23:59:59-01:00",
    "2020-01-01T00:00:00+24:00",
    "2020-01-01t00:00:00z",
    "2016-12-31T23:59:60Z",
];

/// Counts what the API server stores, and prints what it refuses.
#[derive(Default)]
struct Stored(usize);

impl Stored {
    fn note<T>(&mut self, about: &str, answer: Result<T, String>) {
        match answer {
            Ok(_) => self.0 += 1,
            Err(refusal) => println!("{about}: {refusal}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn json_that_is_odd_holds_up_nobody_else() {
    let control_plane = alone().await;
    let mut world = World::on(&control_plane).await;
    world.launch_brisk().await;
    let mut stored = Stored::default();
    values(&world, &mut stored).await;
    world.goes_on().await;
    fields(&world, &mut stored).await;
    world.goes_on().await;
    times(&world, &mut stored).await;
    world.goes_on().await;
    assert!(stored.0 > 120, "only {} objects are stored", stored.0);
    world.restart().await;
    world.goes_on().await;
}

async fn create(world: &World<'_>, stored: &mut Stored, kind: Kind, object: String, about: &str) {
    let answer = world.api.try_create(kind, &world.hostile, object).await;
    stored.note(&format!("a {} with {about}", kind.name()), answer);
}

/// Stores each value in each place.
async fn values(world: &World<'_>, stored: &mut Stored) {
    let url = world.server.url("/odd");
    // A key that is part of the path of what is too deep.
    let long_key = format!(r#"{{"{}":{}}}"#, "k".repeat(600_000), lists(500));
    for value in VALUES.trim().lines().map(str::trim).chain([long_key.as_str()]) {
        let about: String = value.chars().take(60).collect();
        for place in PLACES {
            let object = manifest(place.kind, &world.new_name("value"), &url);
            let object = with_text(object, place.pointer, &format!("[{value}]"));
            create(world, stored, place.kind, object, &about).await;
        }
        let kind = Kind::ControllerRevision;
        let object = manifest(kind, &world.new_name("value"), "");
        let data = format!(r#"{{"spec":{{"template":{{"spec":{value}}}}}}}"#);
        create(world, stored, kind, with_text(object, "/data", &data), &about).await;
    }
}

/// Stores each field.
async fn fields(world: &World<'_>, stored: &mut Stored) {
    let url = world.server.url("/odd");
    for line in FIELDS.trim().lines() {
        let mut parts = line.trim().splitn(3, ' ');
        let mut part = || parts.next().unwrap();
        let (kind, pointer, value) = (part(), part(), part());
        let kinds = [Kind::HookRun, Kind::HookTemplate, Kind::GameDeployment];
        let kind = kinds.into_iter().find(|known| known.name() == kind).unwrap();
        let object = manifest(kind, &world.new_name("field"), &url);
        create(world, stored, kind, with_text(object, pointer, value), line).await;
    }
}

/// Stores each time in the managed fields of a pod and in each status.
async fn times(world: &World<'_>, stored: &mut Stored) {
    for time in TIMES {
        let entry = json!([{ "manager": "tenant", "operation": "Update", "apiVersion": "v1", "time": time,
            "fieldsType": "FieldsV1", "fieldsV1": { "f:metadata": {} } }]);
        let pod = manifest(Kind::Pod, &world.new_name("time"), "");
        let pod = with_text(pod, "/metadata/managedFields", &entry.to_string());
        create(world, stored, Kind::Pod, pod, time).await;

        let condition = json!({ "type": "Valid", "status": "True", "reason": "Odd", "message": "odd",
            "lastTransitionTime": time });
        let conditions = json!({ "status": { "conditions": [condition] } });
        let started = json!({ "status": { "startedAt": time, "phase": "Running" } });
        for (kind, status) in [
            (Kind::HookRun, &started),
            (Kind::HookTemplate, &conditions),
            (Kind::GameDeployment, &conditions),
        ] {
            let id = Id::new(kind, &world.hostile, &world.new_name("time"));
            let object = manifest(kind, &id.name, &world.server.url("/odd"));
            create(world, stored, kind, object.to_string(), time).await;
            let answer = world.api.try_merge_status(&id, &status.to_string()).await;
            stored.note(&format!("the status of a {} with {time:?}", kind.name()), answer);
        }
    }
}
