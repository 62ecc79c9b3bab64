//! HookRuns whose content is unknown: the watch cannot parse them, or they cannot be read back after a write.

use serde_json::json;
use shared_api::{GameDeployment, HookRun};

use super::*;
use crate::gate::Run;
use crate::samples::{self, names, object, pod};

const WHY: &str = "cannot be parsed: invalid offset in a date-time";

fn fleet(retry: bool) -> GameDeployment {
    object(&[
        ("/spec/replicas", json!(0)),
        (
            "/spec/preDeleteUpdateStrategy",
            json!({ "hook": { "templateName": "ask" }, "retry": retry }),
        ),
    ])
}

fn selected(name: &str) -> Pod {
    let annotations = json!({
        "io.tencent.bcs.dev/game-pod-deleting": "true",
        "tkex.tencent.com/chosen-for": "delete@2024-05-01T00:00:00Z",
    });
    pod(name, &[("/metadata/annotations", annotations)])
}

/// Runs that the decision creates.
fn created(plan: &Plan) -> Vec<HookRun> {
    let runs = plan.actions.iter().filter_map(|action| match action {
        Action::CreateRun(new) => Some(new.render()),
        _ => None,
    });
    runs.collect()
}

#[test]
fn a_run_that_cannot_be_read_holds_its_pod_alone_and_is_named() {
    let pods = [selected("fleet-a"), selected("fleet-b")];
    let asked = created(&samples::decided(&fleet(false), &pods, &[]));
    assert_eq!(asked.len(), 2);
    let asked = &asked[0];
    let name = asked.metadata.name.clone().unwrap();
    let mut metadata = asked.metadata.clone();
    metadata.uid = Some("run".to_owned());
    let cached = Run::read(asked).unreadable(WHY.to_owned());
    let owner = &metadata.owner_references.as_ref().unwrap()[0].uid;
    let unknown = Run::unknown(&name, owner).unreadable(WHY.to_owned());
    for run in [Run::of_metadata(&metadata, WHY.to_owned()), cached, unknown] {
        let plan = samples::decided(&fleet(false), &pods, &[run]);
        assert_eq!(names(&plan), ["create_hook_run"], "only for the other pod");
        let status = plan.status.unwrap();
        let mut conditions = status.conditions.iter();
        let blocked = conditions.find(|known| known.type_ == "ScaleBlocked").unwrap();
        assert_eq!(blocked.reason, "HookRunNameInvalid");
        let wanted = format!("HookRun {name} already exists but {WHY}");
        assert!(blocked.message.contains(&wanted), "{}", blocked.message);
    }
}

#[test]
fn a_retry_deletes_a_run_that_cannot_be_read() {
    let pods = [selected("fleet-a")];
    let asked = created(&samples::decided(&fleet(false), &pods, &[])).remove(0);
    let mut metadata = asked.metadata;
    metadata.uid = Some("run".to_owned());
    let run = Run::of_metadata(&metadata, WHY.to_owned());
    let plan = samples::decided(&fleet(true), &pods, std::slice::from_ref(&run));
    assert_eq!(names(&plan), ["delete_hook_run", "reset_retry"]);
    // Its pod is gone.
    let plan = samples::decided(&fleet(false), &[], std::slice::from_ref(&run));
    assert_eq!(names(&plan), ["delete_hook_run"]);
}

#[test]
fn a_success_that_cannot_be_read_any_more_opens_no_gate() {
    let pods = [selected("fleet-a")];
    let mut run = created(&samples::decided(&fleet(false), &pods, &[])).remove(0);
    samples::finish(&mut run, "healthy", shared_api::Phase::Successful, 1);
    let mut run = Run::read(&run);
    run.completed = Some(samples::now());
    let plan = samples::decided(&fleet(false), &pods, std::slice::from_ref(&run));
    assert_eq!(names(&plan), ["delete_pod"]);
    let plan = samples::decided(&fleet(false), &pods, &[run.unreadable(WHY.to_owned())]);
    assert_eq!(names(&plan), [] as [&str; 0]);
}
