//! Verdict of a Job, and the reason why its pods do not run.

use expr_conditions::{Job as Counts, Origin};
use k8s_openapi::api::batch::v1::{Job, JobStatus};
use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod};
use k8s_openapi::jiff::Timestamp;

use super::json_or_text::{value_of, without_mark};
use super::{HIDDEN, MeasurementFailure, ProviderResponse, malformed, to_judge};
use crate::request::JobRequest;
use crate::value::counted;

/// Bytes shown of the end of a container's message.
const MESSAGE_END_BYTES: usize = 512;

/// End of a Job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobEnd {
    /// Reason of the Job controller if the Job failed; `None` if it is complete.
    pub failure: Option<String>,
    /// Time of the end, by the clock of the Job controller.
    pub at: Option<Timestamp>,
}

impl JobEnd {
    /// Reads the conditions of a Job; `None` while it is active. A Job that is said to be both has failed.
    pub fn of(job: &Job) -> Option<Self> {
        let status = job.status.as_ref()?;
        let is_true = |type_: &str| {
            let mut conditions = status.conditions.iter().flatten();
            conditions.find(|condition| condition.type_ == type_ && condition.status == "True")
        };
        if let Some(failed) = is_true("Failed") {
            let reason = failed.reason.as_deref().filter(|reason| !reason.is_empty());
            let message = failed.message.as_deref().filter(|message| !message.is_empty());
            let reason = reason.unwrap_or("no reason given");
            return Some(Self {
                failure: Some(
                    message.map_or_else(|| reason.to_owned(), |message| format!("{reason}: {message}")),
                ),
                at: failed.last_transition_time.as_ref().map(|at| at.0),
            });
        }
        is_true("Complete").map(|_| Self {
            failure: None,
            at: status.completion_time.as_ref().map(|at| at.0),
        })
    }
}

/// Interprets a Job that has ended, and its pods. Those of a complete Job matter only if a condition judges its result.
///
/// # Errors
/// If a condition judges the result, and no pod that succeeded has the result's container with a message that can be
/// read.
pub fn interpret_job(
    request: &JobRequest,
    job: &Job,
    end: &JobEnd,
    pods: &[Pod],
) -> Result<ProviderResponse, MeasurementFailure> {
    let name = job.metadata.name.as_deref().unwrap_or_default();
    match (&end.failure, &request.result_container) {
        (Some(reason), _) => {
            let container = last_failure(pods)
                .map_or_else(String::new, |failure| failure.describe(request.shows_messages));
            Ok(ProviderResponse::Decided {
                successful: false,
                message: format!("Job {name} failed: {reason}{container}"),
                value: None,
            })
        }
        (None, None) => Ok(ProviderResponse::Decided {
            successful: true,
            message: format!("Job {name} is complete"),
            value: None,
        }),
        (None, Some(container)) => result(name, job, pods, container),
    }
}

/// Returns the termination message of a container as the value to judge.
fn result(
    name: &str,
    job: &Job,
    pods: &[Pod],
    container: &str,
) -> Result<ProviderResponse, MeasurementFailure> {
    // A container may have ended well in a pod that failed, whose work another pod did again.
    let succeeded =
        |pod: &&Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Succeeded");
    let ended = pods
        .iter()
        .filter(succeeded)
        .flat_map(statuses)
        .filter(|status| status.name == container)
        .find_map(|status| terminated(status).filter(|ended| ended.exit_code == 0));
    let Some(ended) = ended else {
        let message = format!(
            "Job {name} is complete, but container {container} exited with code 0 in none of its remaining succeeded pods"
        );
        return Err(malformed(message));
    };
    let count = |of: fn(&JobStatus) -> Option<i32>| job.status.as_ref().and_then(of).unwrap_or_default();
    let counts = Counts {
        succeeded: count(|status| status.succeeded),
        failed: count(|status| status.failed),
    };
    interpret_message(container, ended.message.as_deref().unwrap_or_default(), counts)
}

/// Interprets the termination message of a container of a complete Job: as JSON, or as text without whitespace around
/// it.
///
/// # Errors
/// If it is neither JSON nor a text that cannot be mistaken for it.
pub fn interpret_message(
    container: &str,
    message: &str,
    counts: Counts,
) -> Result<ProviderResponse, MeasurementFailure> {
    let about = format!("the termination message of container {container}");
    let value = value_of(without_mark(message.as_bytes()), &about)?;
    let is_unset = value.as_str().is_some_and(str::is_empty);
    Ok(to_judge(value, Some(Origin::Job(counts)), |kind| {
        if is_unset {
            format!(
                "container {container} wrote no termination message; have it write its result to its \
                 terminationMessagePath"
            )
        } else {
            format!("{about} is {kind}")
        }
    }))
}

/// Container that ended with an exit code other than 0.
struct ContainerFailure<'a> {
    pod: &'a str,
    container: &'a str,
    ended: &'a ContainerStateTerminated,
}

impl ContainerFailure<'_> {
    fn describe(&self, shows_message: bool) -> String {
        let Self {
            pod,
            container,
            ended,
        } = self;
        let how = match ended.signal.filter(|signal| *signal != 0) {
            Some(signal) => format!("was killed by signal {signal}"),
            None => format!("exited with code {}", ended.exit_code),
        };
        let reason = ended
            .reason
            .as_deref()
            .filter(|reason| !matches!(*reason, "" | "Error"));
        let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
        let message = match ended
            .message
            .as_deref()
            .map(str::trim)
            .filter(|text| !text.is_empty())
        {
            None => String::new(),
            Some(text) if shows_message => format!(": {}", end_of(text)),
            Some(text) => {
                let length = counted(text.len(), "byte", "bytes");
                format!("; its termination message ({length}) is {HIDDEN}")
            }
        };
        format!("; container {container} of pod {pod} {how}{reason}{message}")
    }
}

fn end_of(text: &str) -> &str {
    let start = text.ceil_char_boundary(text.len().saturating_sub(MESSAGE_END_BYTES));
    text.get(start..).unwrap_or_default()
}

/// Returns the container that failed last, in any pod and any of its restarts.
fn last_failure(pods: &[Pod]) -> Option<ContainerFailure<'_>> {
    let failures = pods.iter().flat_map(|pod| {
        statuses(pod).filter_map(move |status| {
            let ended = terminated(status).filter(|ended| ended.exit_code != 0)?;
            Some(ContainerFailure {
                pod: pod.metadata.name.as_deref().unwrap_or_default(),
                container: &status.name,
                ended,
            })
        })
    });
    let time = |failure: &ContainerFailure<'_>| {
        failure
            .ended
            .finished_at
            .as_ref()
            .map_or(Timestamp::MIN, |at| at.0)
    };
    failures.max_by_key(time)
}

fn statuses(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    let status = pod.status.iter();
    status.flat_map(|status| {
        let containers = [&status.init_container_statuses, &status.container_statuses];
        containers.into_iter().flatten().flatten()
    })
}

/// Returns how a container ended, now or before its last restart.
fn terminated(status: &ContainerStatus) -> Option<&ContainerStateTerminated> {
    let now_and_before = [status.state.as_ref(), status.last_state.as_ref()];
    now_and_before
        .into_iter()
        .flatten()
        .find_map(|state| state.terminated.as_ref())
}

/// Describes why the pods of an active Job do not run, or that they do.
pub fn pod_state(pods: &[Pod]) -> String {
    pods.iter().find_map(trouble).unwrap_or_else(|| match pods {
        [] => "no pods have been created yet".to_owned(),
        [pod] => format!(
            "pod {} is running",
            pod.metadata.name.as_deref().unwrap_or_default()
        ),
        pods => format!("{} pods are running", pods.len()),
    })
}

/// Returns the reason why a pod does not run, if it does not.
fn trouble(pod: &Pod) -> Option<String> {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let reason = |reason: Option<&String>, message: Option<&String>| {
        let texts = [reason, message]
            .into_iter()
            .flatten()
            .filter(|text| !text.is_empty());
        let texts: Vec<&str> = texts.map(String::as_str).collect();
        if texts.is_empty() {
            String::new()
        } else {
            format!(" ({})", texts.join(": "))
        }
    };
    let waiting = statuses(pod).find_map(|status| {
        let waiting = status.state.as_ref()?.waiting.as_ref()?;
        let usual = matches!(
            waiting.reason.as_deref(),
            Some("ContainerCreating" | "PodInitializing")
        );
        (!usual).then(|| {
            format!(
                "container {} of pod {name} is waiting{}",
                status.name,
                reason(waiting.reason.as_ref(), waiting.message.as_ref())
            )
        })
    });
    let unscheduled = || {
        let conditions = pod.status.as_ref()?.conditions.as_ref()?;
        let condition = conditions
            .iter()
            .find(|condition| condition.type_ == "PodScheduled" && condition.status == "False")?;
        Some(format!(
            "pod {name} is not scheduled{}",
            reason(condition.reason.as_ref(), condition.message.as_ref())
        ))
    };
    waiting.or_else(unscheduled)
}

#[cfg(test)]
mod tests {
    use expr_conditions::Condition;
    use redact::Redactor;
    use serde_json::{Value, json};
    use shared_api::Phase;

    use super::*;
    use crate::judge::{MeasurementResult, Rules, judge};

    fn request(condition: bool, shows_messages: bool) -> JobRequest {
        JobRequest {
            labels: std::collections::BTreeMap::new(),
            annotations: std::collections::BTreeMap::new(),
            spec: json!({}),
            result_container: condition.then(|| "check".to_owned()),
            shows_messages,
            bytes: 0,
        }
    }

    fn job(conditions: &Value) -> Job {
        let status = json!({ "conditions": conditions, "succeeded": 1, "failed": 2 });
        serde_json::from_value(json!({ "metadata": { "name": "j" }, "status": status })).unwrap()
    }

    fn complete() -> Job {
        job(
            &json!([{ "type": "SuccessCriteriaMet", "status": "True" }, { "type": "Complete", "status": "True" }]),
        )
    }

    fn failed() -> Job {
        job(
            &json!([{ "type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "too often" }]),
        )
    }

    fn pod(name: &str, state: &Value) -> Pod {
        let phase = match state["terminated"]["exitCode"].as_i64() {
            Some(0) => "Succeeded",
            Some(_) => "Failed",
            None => "Running",
        };
        serde_json::from_value(json!({
            "metadata": { "name": name },
            "status": { "phase": phase, "containerStatuses": [
                { "name": "log", "image": "i", "imageID": "", "ready": false, "restartCount": 0 },
                { "name": "check", "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": state },
            ] },
        }))
        .unwrap()
    }

    fn ended(code: i32, at: &str, message: &str) -> Value {
        json!({ "terminated": { "exitCode": code, "finishedAt": at, "message": message, "reason": "Error" } })
    }

    fn judged(condition: Option<&str>, job: &Job, pods: &[Pod]) -> MeasurementResult {
        let success = condition.map(|condition| Condition::compile(condition).unwrap());
        let rules = Rules {
            success: success.as_ref(),
            failure: None,
            on_no_data: Phase::Error,
        };
        let end = JobEnd::of(job).unwrap();
        let outcome = interpret_job(&request(condition.is_some(), true), job, &end, pods);
        judge(
            &rules,
            &outcome,
            crate::answer::job::Timestamp::UNIX_EPOCH,
            &Redactor::default(),
        )
    }

    #[test]
    fn a_job_has_no_verdict_before_its_controller_says_so() {
        for conditions in [
            json!([]),
            json!([{ "type": "Complete", "status": "False" }, { "type": "Failed", "status": "Unknown" }]),
            json!([{ "type": "SuccessCriteriaMet", "status": "True" }]),
            json!([{ "type": "FailureTarget", "status": "True" }]),
            json!([{ "type": "Suspended", "status": "True" }]),
        ] {
            assert_eq!(JobEnd::of(&job(&conditions)), None, "{conditions}");
        }
        let both =
            job(&json!([{ "type": "Complete", "status": "True" }, { "type": "Failed", "status": "True" }]));
        assert!(JobEnd::of(&both).unwrap().failure.is_some(), "fails closed");
    }

    #[test]
    fn a_complete_job_is_a_success_unless_a_condition_judges_its_message() {
        let pods = |message: &str| {
            [
                pod("a", &ended(3, "2026-11-25T10:00:00Z", "9")),
                pod("b", &ended(0, "2026-11-25T10:01:00Z", message)),
            ]
        };
        for (condition, message, phase, words) in [
            (None, "", Phase::Successful, "Job j is complete"),
            (Some("result == 0"), "0", Phase::Successful, ""),
            (Some("result == 0"), " 0\n", Phase::Successful, ""),
            (
                Some("result.players == 0"),
                r#"{"players": 0}"#,
                Phase::Successful,
                "",
            ),
            (Some("result == 'idle'"), "idle", Phase::Successful, ""),
            (Some("result == 0"), "9", Phase::Failed, ""),
            (
                Some("result.players == 0"),
                r#"{"players": "#,
                Phase::Error,
                "looks like JSON but is not",
            ),
            (
                Some("result != 'busy'"),
                "",
                Phase::Error,
                "no data: container check wrote no termination message; have it write its result",
            ),
            (
                Some("job.succeeded == 1 && job.failed == 2"),
                "",
                Phase::Successful,
                "",
            ),
            (Some("job.failed == 0"), "", Phase::Failed, ""),
        ] {
            let result = judged(condition, &complete(), &pods(message));
            assert_eq!(result.phase, phase, "{condition:?} on {message:?}: {result:?}");
            assert!(
                result.message.unwrap_or_default().contains(words),
                "{condition:?} on {message:?}"
            );
        }
    }

    #[test]
    fn without_the_container_that_succeeded_there_is_no_result() {
        let mut failed = pod("a", &ended(0, "2026-11-25T10:00:00Z", "0"));
        failed.status.as_mut().unwrap().phase = Some("Failed".to_owned());
        let mut sidecar = pod("a", &json!({ "running": {} }));
        sidecar.status.as_mut().unwrap().phase = Some("Succeeded".to_owned());
        let statuses = sidecar.status.as_mut().unwrap().container_statuses.as_mut();
        let of_sidecar = ended(0, "2026-11-25T10:00:00Z", "0");
        statuses.unwrap()[0].state = serde_json::from_value(of_sidecar).unwrap();
        for pods in [
            vec![],
            vec![sidecar],
            vec![failed],
            vec![pod("a", &ended(3, "2026-11-25T10:00:00Z", "0"))],
            vec![pod("a", &json!({}))],
        ] {
            let result = judged(Some("result == 0"), &complete(), &pods);
            assert_eq!(result.phase, Phase::Error, "{pods:?}");
        }
    }

    #[test]
    fn a_failed_job_is_a_failure_whatever_the_condition_says_and_names_the_container_that_failed_last() {
        let pods = [
            pod("late", &ended(3, "2026-11-25T10:01:00Z", "no route")),
            pod("early", &ended(1, "2026-11-25T10:00:00Z", "")),
        ];
        let result = judged(Some("result == 0 || true"), &failed(), &pods);
        assert_eq!(result.phase, Phase::Failed);
        let said = "Job j failed: BackoffLimitExceeded: too often; container check of pod late exited with code 3: \
                    no route";
        assert_eq!(result.message.as_deref(), Some(said));
        let hidden = interpret_job(
            &request(true, false),
            &failed(),
            &JobEnd::of(&failed()).unwrap(),
            &pods,
        )
        .unwrap();
        let ProviderResponse::Decided {
            successful: false,
            message,
            value: None,
        } = hidden
        else {
            panic!("{hidden:?}")
        };
        assert!(
            message.contains("its termination message (8 bytes) is hidden") && !message.contains("no route"),
            "{message}"
        );
        let gone = judged(None, &failed(), &[]);
        assert_eq!(
            gone.message.as_deref(),
            Some("Job j failed: BackoffLimitExceeded: too often")
        );
        let long = format!("{}END", "é".repeat(4000));
        let cut = judged(
            None,
            &failed(),
            &[pod("a", &ended(137, "2026-11-25T10:00:00Z", &long))],
        );
        assert!(cut.message.as_ref().unwrap().ends_with("END"), "{cut:?}");
    }

    #[test]
    fn what_keeps_a_pod_from_running_is_described() {
        let pull =
            json!({ "waiting": { "reason": "ImagePullBackOff", "message": "Back-off pulling image" } });
        let unscheduled: Pod = serde_json::from_value(json!({
            "metadata": { "name": "b" },
            "status": { "conditions": [{
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes" ,
            }] },
        }))
        .unwrap();
        for (pods, wanted) in [
            (vec![], "no pods have been created yet"),
            (vec![pod("a", &json!({ "running": {} }))], "pod a is running"),
            (
                vec![pod("a", &json!({ "waiting": { "reason": "ContainerCreating" } }))],
                "pod a is running",
            ),
            (
                vec![pod("a", &pull)],
                "container check of pod a is waiting (ImagePullBackOff: Back-off pulling image)",
            ),
            (
                vec![unscheduled],
                "pod b is not scheduled (Unschedulable: 0/3 nodes)",
            ),
        ] {
            assert_eq!(pod_state(&pods), wanted);
        }
    }
}
