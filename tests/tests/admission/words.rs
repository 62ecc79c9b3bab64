//! Bad objects are rejected with the operators' own messages, and good ones are stored.

use std::path::Path;

use operator_tests::fleet::{GAME, condition, game};
use operator_tests::{Fleet, SOON, assert_ended};
use serde_json::{Value, json};
use shared_api::Phase;
use test_kit::eventually;

use crate::installation::{Installation, bad_template, hook};
use crate::{OPERATORS, shared};

/// Builds bad GameDeployments; the last is unreadable, if the API server stores such an object.
fn bad_games(wide_integers: bool) -> Vec<Value> {
    let several =
        json!({ "minReadySeconds": -3, "updateStrategy": { "partition": "x", "maxUnavailable": 0 } });
    let selector = json!({ "selector": { "matchLabels": { "app": "another" } } });
    let step = json!({ "updateStrategy": { "canary": { "steps": [{ "partition": 1 }, {}] } } });
    let unreadable = json!({ "minReadySeconds": 5_000_000_000_i64 });
    [several, selector, step]
        .into_iter()
        .chain(wide_integers.then_some(unreadable))
        .map(|wrong| game(1, wrong))
        .collect()
}

/// Builds bad HookRuns and HookTemplates.
fn bad_hooks(kind: &str, wide_integers: bool) -> Vec<Value> {
    let several = json!({ "policy": "Parallel", "timeoutSeconds": 0, "metrics": [{
        "name": "m", "interval": "60", "initialDelay": "-1s", "failureCondition": "noSuchFunction(result)",
        "provider": { "web": { "url": "ftp://game", "jsonPath": "{$.age" } }
    }] });
    let relative = json!({ "metrics": [{ "name": "m", "provider": { "prometheus": { "address": "prometheus:9090", "query": "up" } } }] });
    let too_large = json!({ "metrics": [{
        "name": "m", "count": 5_000_000_000_i64, "interval": "1s", "provider": { "web": { "url": "http://game" } }
    }] });
    let specs = [several, relative].into_iter();
    let mut all: Vec<Value> = specs
        .chain(wide_integers.then_some(too_large))
        .map(|spec| {
            let mut bad = hook(kind, "bad", "true");
            bad["spec"] = spec;
            bad
        })
        .collect();
    all.push(hook(kind, "bad", "result >"));
    all
}

/// Returns the operators' message about an object.
async fn said_by_operators(fleet: &Fleet<'_>, object: &Value) -> String {
    let kind = object["kind"].as_str().unwrap();
    let name = object["metadata"]["name"].as_str().unwrap();
    let _ = fleet.kubectl(
        &["create", "--validate=false", "--filename", "-"],
        &object.to_string(),
    );
    let said = eventually(SOON, || async {
        let text = fleet.kubectl(&["get", kind, name, "--output=json"], "");
        let status = serde_json::from_str::<Value>(&text).unwrap()["status"].take();
        let conditions = status["conditions"].as_array().into_iter().flatten();
        let found = match kind {
            "HookRun" if status["phase"] == "Error" => status["message"].as_str(),
            "HookTemplate" => { conditions }
                .find(|condition| condition["type"] == "Valid" && condition["status"] == "False")
                .and_then(|condition| condition["message"].as_str()),
            _ => { conditions }
                .find(|condition| condition["type"] == "InvalidSpec" && condition["status"] == "True")
                .and_then(|condition| condition["message"].as_str()),
        };
        found.map(str::to_owned).ok_or_else(|| status.to_string())
    })
    .await;
    let _ = fleet.kubectl(&["delete", kind, name], "");
    said
}

#[tokio::test]
async fn what_is_wrong_is_refused_in_the_operators_words() {
    let control_plane = shared().await;
    let fleet = Fleet::on(control_plane, OPERATORS, "admission").await;
    let wide = operator_tests::stores_wide_integers(control_plane, &fleet.namespace);
    let mut bad = bad_games(wide);
    bad.extend(bad_hooks("HookTemplate", wide));
    bad.extend(bad_hooks("HookRun", wide));
    let mut operators = Vec::new();
    for object in &bad {
        operators.push(said_by_operators(&fleet, object).await);
    }
    let installation = Installation::within(control_plane, fleet.namespace.clone()).await;
    let replica = installation.replica(&[]);
    installation.configure(replica.tls, &json!({})).await;
    replica.ready().await;
    installation.asked().await;
    for (object, said) in bad.iter().zip(&operators) {
        let create = ["create", "--validate=false", "--filename", "-"];
        assert_eq!(&installation.refused(&create, &object.to_string()), said);
    }
    let stored = installation.must(&["get", "gd,ht,hr", "--output=name"], "");
    assert_eq!(stored, "", "nothing is stored");
}

#[tokio::test]
async fn examples_are_admitted() {
    let (installation, replica) = Installation::running(shared().await, &[]).await;
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let mut seen = 0;
    for entry in std::fs::read_dir(examples).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let text = std::fs::read_to_string(&path).unwrap();
            let mut objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
            // The webhook does not cover kinds of other projects.
            let ours = |object: &Value| object["apiVersion"] == "tkex.tencent.com/v1alpha1";
            objects.retain(ours);
            // Two examples may use the same name.
            for (number, object) in objects.iter_mut().enumerate() {
                object["metadata"]["name"] = format!("example-{seen}-{number}").into();
            }
            let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects }).to_string();
            let said = installation.must(&["create", "--filename", "-"], &list);
            // The renamed objects do not match the references to them.
            let mut warnings = said.lines().filter(|line| line.starts_with("Warning"));
            let renamed = |line: &str| line.ends_with("does not exist; create it");
            assert!(warnings.all(renamed), "{}: {said}", path.display());
            seen += 1;
        }
    }
    assert!(seen >= 13, "{seen}");
    let allowed = ["operation=\"create\"", "outcome=\"allowed\""];
    assert!(
        replica
            .metric("hookgate_admission_requests_total", &allowed)
            .await
            >= 13
    );
}

/// The webhook looks the hook up when the workload is written, not when a pod waits for it.
#[tokio::test]
async fn a_hook_that_could_not_be_asked_is_a_warning_with_what_was_meant() {
    let (installation, _replica) = Installation::running(shared().await, &[]).await;
    let create = ["create", "--filename", "-"];
    let template = hook("HookTemplate", "player-check", "true").to_string();
    let _ = installation.must(&create, &template);
    let guarded = |template: &str| {
        let strategy = json!({ "hook": { "templateName": template } });
        game(1, json!({ "preDeleteUpdateStrategy": strategy })).to_string()
    };
    let said = installation.must(&create, &guarded("player-chek"));
    let mut warnings = said.lines().filter(|line| line.starts_with("Warning"));
    let named =
        |line: &str| line.contains("spec.preDeleteUpdateStrategy.hook") && line.contains("player-check");
    assert!(warnings.any(named), "{said}");
    let said = installation.must(&["apply", "--filename", "-"], &guarded("player-check"));
    assert!(!said.contains("player-check"), "{said}");
}

/// Without a response the API server stores the objects, and the operators report the same messages.
#[tokio::test]
async fn without_the_component_the_operators_refuse_all_the_same() {
    let control_plane = shared().await;
    let fleet = Fleet::on(control_plane, OPERATORS, "admission").await;
    let installation = Installation::within(control_plane, fleet.namespace.clone()).await;
    let replica = installation.replica(&[]);
    installation.configure(replica.tls, &json!({})).await;
    replica.ready().await;
    installation.asked().await;
    let bad = &bad_games(false)[1];
    let refusal = installation.refused(&["create", "--filename", "-"], &bad.to_string());
    replica.process.kill_hard().unwrap();
    fleet.apply(bad);
    assert_eq!(fleet.says("InvalidSpec", "InvalidSpec").await, refusal);
    fleet.apply(&hook("HookRun", "bad", "result >"));
    let status = eventually(SOON, || async {
        let run = fleet.runs().get("bad").await.map_err(|error| error.to_string())?;
        run.status
            .filter(|status| status.phase.is_final())
            .ok_or_else(|| "not final".to_owned())
    })
    .await;
    assert_ended(&status, Phase::Error, "InvalidSpec");
    fleet.delete_run("bad").await;
    fleet.quiet().await;
    assert_eq!(fleet.all_pods().await.len(), 0);
    // The guard fails closed: without a response, the deletion is refused.
    let said = installation
        .kubectl(&["delete", "gamedeployment", GAME], "")
        .unwrap_err();
    assert!(
        said.contains("failed calling webhook \"guard.hookgate.tkex.tencent.com\""),
        "{said}"
    );
    // A corrected object starts working, still without the component.
    fleet
        .set(json!({ "selector": { "matchLabels": { "app": GAME } } }))
        .await;
    let status = fleet.settled(1).await;
    assert_eq!(condition(&status, "InvalidSpec"), None);
    assert!(
        installation
            .kubectl(
                &["create", "--filename", "-"],
                &bad_template("stored").to_string()
            )
            .is_ok()
    );
}
