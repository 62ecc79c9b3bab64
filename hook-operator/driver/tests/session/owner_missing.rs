//! A workload's run that has lost its owner, as after a restore from a backup.

use std::sync::Arc;

use hook_core::resolve::resolve_run;
use hook_driver::{Session, SessionInput, SessionOutput, StoreError};
use serde_json::json;
use shared_api::names::hook_run_annotation::INTENT;
use shared_api::{HookRun, HookRunStatus, Phase};

use crate::at;

/// Returns a run of a workload, at this version.
fn run(version: u64, is_owned: bool) -> HookRun {
    let owner =
        json!([{ "apiVersion": "v1", "kind": "Game", "name": "arena", "uid": "g", "controller": true }]);
    let run = json!({
        "apiVersion": "tkex.tencent.com/v1alpha1",
        "kind": "HookRun",
        "metadata": {
            "namespace": "games", "name": "run", "uid": "r", "resourceVersion": version.to_string(), "generation": 1,
            "annotations": { (INTENT): "delete" },
            "ownerReferences": if is_owned { owner } else { json!([]) },
        },
        "spec": { "metrics": [{ "name": "players", "provider": { "web": { "url": "http://game/" } } }] },
    });
    serde_json::from_value(run).unwrap()
}

/// Plays a minute of a session. `record` answers the writes of statuses, and the run that is read has an owner. Returns
/// the names of the metrics that are measured.
fn play(
    session: &mut Session,
    mut record: impl FnMut(HookRunStatus) -> Result<Arc<HookRun>, StoreError>,
) -> Vec<String> {
    let mut measured = Vec::new();
    for second in 2..60 {
        while let Some(output) = session.poll(at(second)) {
            let answer = match output {
                SessionOutput::Resolve(run) => SessionInput::Resolved(Arc::new(resolve_run(&run.spec))),
                SessionOutput::Record(_, status) => SessionInput::Recorded(record(*status)),
                SessionOutput::Read(_) => SessionInput::Read(Ok(Arc::new(run(20, true)))),
                SessionOutput::Measure(_, key, ..) => {
                    measured.push(key.metric);
                    continue;
                }
                SessionOutput::StatusWritten(_) | SessionOutput::Verdict(..) | SessionOutput::End(_) => {
                    continue;
                }
                other => panic!("{other:?}"),
            };
            session.handle(answer, at(second));
        }
    }
    measured
}

/// Records a status, as the API server does.
fn store(is_owned: bool, status: HookRunStatus) -> Arc<HookRun> {
    let mut stored = run(30, is_owned);
    stored.status = Some(status);
    Arc::new(stored)
}

#[test]
fn it_ends_before_its_first_measurement() {
    let mut recorded = Vec::new();
    let mut session = Session::new(Arc::new(run(10, false)), at(1));
    let measured = play(&mut session, |status| {
        recorded.push((status.phase, status.reason.clone().unwrap_or_default()));
        Ok(store(false, status))
    });
    assert_eq!(measured, [] as [&str; 0]);
    assert_eq!(recorded, [(Phase::Error, "OwnerMissing".to_owned())]);
}

#[test]
fn with_an_owner_it_is_measured() {
    let mut session = Session::new(Arc::new(run(10, true)), at(1));
    let measured = play(&mut session, |status| Ok(store(true, status)));
    assert_eq!(measured, ["players"]);
}

/// Somebody gives it an owner at the same time.
#[test]
fn an_owner_that_comes_before_the_verdict_lets_it_be_measured() {
    let mut session = Session::new(Arc::new(run(10, false)), at(1));
    let mut ends = 0;
    let measured = play(&mut session, |status| {
        if status.phase == Phase::Error {
            ends += 1;
            return Err(StoreError::Conflict);
        }
        Ok(store(true, status))
    });
    assert_eq!((measured, ends), (vec!["players".to_owned()], 1));
}
