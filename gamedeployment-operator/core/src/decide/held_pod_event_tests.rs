//! Events for held pods: one for each HookRun without success, however often the operator decides.

use shared_api::{GameDeployment, HookRun, Phase};

use super::*;
use crate::gate::Run;
use crate::plan::Warning;
use crate::samples::{self, finish};

/// Returns the warnings about pods, and stores the status.
fn pod_warnings(object: &mut GameDeployment, pod: &Pod, run: &HookRun) -> Vec<Warning> {
    let plan = samples::decided(object, std::slice::from_ref(pod), &[Run::read(run)]);
    if let Some(status) = plan.status {
        object.status = Some(*status);
    }
    let warnings = plan.warnings.into_iter();
    warnings.filter(|warning| warning.pod.is_some()).collect()
}

#[test]
fn a_hook_that_fails_again_within_a_second_is_reported_again() {
    let mut object = samples::emptied();
    let pod = samples::pod_to_delete("pod-1");
    let plan = samples::decided(&object, std::slice::from_ref(&pod), &[]);
    let mut run = samples::created_runs(plan).next().unwrap();
    finish(&mut run, "healthy", Phase::Failed, 0);
    assert_eq!(pod_warnings(&mut object, &pod, &run).len(), 1);
    assert_eq!(pod_warnings(&mut object, &pod, &run), []);
    // The same name, message and second.
    run.metadata.uid = Some("run-2".to_owned());
    assert_eq!(pod_warnings(&mut object, &pod, &run).len(), 1);
    assert_eq!(pod_warnings(&mut object, &pod, &run), []);
    // Earlier releases recorded no UID: an upgrade reports nothing again.
    let status = object.status.as_mut().unwrap();
    status.pre_delete_hook_condition[0].hook_run_uid = None;
    assert_eq!(pod_warnings(&mut object, &pod, &run), []);
}
