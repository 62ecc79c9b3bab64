//! Tests that each trouble of a hook has the right remedy first, and a skip last.

use serde_json::json;
use shared_api::HookRun;
use shared_api::reason::MeasurementReason;

use super::trouble::{Advice, Diagnosis, Trouble};
use super::*;
use crate::view::samples;

const EDIT: &str = "kubectl edit hooktemplate empty";
const RETRY: &str = "kubectl game retry arena --hook pre-delete";
const SKIP: &str = "kubectl game skip arena-x7k2p --reason 'WHY'";

/// Returns the explanation of the waiting pod.
fn of_pod(snapshot: &Snapshot) -> Explanation {
    let pod = snapshot
        .pods
        .iter()
        .find(|pod| pod.metadata.name.as_deref() == Some("arena-x7k2p"));
    super::pod(snapshot, pod.unwrap())
}

/// Returns the trouble of the only run.
fn trouble(run: &HookRun) -> Option<Trouble> {
    Diagnosis::of(run).map(|diagnosis| diagnosis.trouble)
}

/// Returns the workload with each trouble, by its name.
fn all() -> Vec<(String, Snapshot)> {
    let mut all = vec![
        ("refused".to_owned(), samples::refused()),
        ("endless".to_owned(), samples::endless()),
        ("invalid".to_owned(), invalid()),
    ];
    for reason in MeasurementReason::ALL {
        let name = reason.as_str();
        all.push((
            format!("{name}, ended"),
            samples::ended_in_error(name, "no answer"),
        ));
        for run in ["Measuring", "HookErrors"] {
            all.push((
                format!("{name}, {run}"),
                samples::erroring(run, name, "no answer"),
            ));
        }
    }
    all
}

/// Builds a snapshot whose hook has an invalid spec.
fn invalid() -> Snapshot {
    let said = "hook spec invalid: metrics[0].successCondition: unexpected `=`; did you mean `==`? (1:15)";
    let mut snapshot = samples::ended("Error", "InvalidSpec", said, json!({ "name": "players" }));
    snapshot.runs[0].spec.metrics[0].success_condition = Some("asInt(result) = 0".to_owned());
    snapshot
}

/// Checks the commands of an explanation: real names, and a skip with its consequence at the end.
fn check(name: &str, answer: &Explanation) {
    let count = answer.next.len();
    assert!(count > 0, "{name}: {answer:?}");
    for (place, next) in answer.next.iter().enumerate() {
        let Next { command, purpose } = next;
        assert!(command.starts_with("kubectl "), "{name}: {command}");
        let command = command.replace("--reason 'WHY'", "");
        let mut words = command.split(|c: char| !c.is_ascii_alphanumeric());
        let placeholder = words.find(|word| word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase()));
        assert_eq!(placeholder, None, "{name}: {command}");
        if command.starts_with("kubectl game skip ") {
            assert!(place > 0 && place == count - 1, "{name}: {answer:?}");
            assert!(purpose.contains("disconnects the players"), "{name}: {purpose}");
        }
    }
}

#[test]
fn commands_have_real_names_and_a_skip_comes_last() {
    for (name, snapshot) in all() {
        check(&name, &of_pod(&snapshot));
        check(&name, &super::game(&snapshot));
        check(&name, &super::game(&samples::many(snapshot, 6)));
    }
    for reason in [
        "HookTemplateMissing",
        "HookTemplateInvalid",
        "HookArgumentsUnresolved",
        "HookRunNameInvalid",
        "PodAddressMissing",
        "HookNotTakenUp",
        "HookRunTerminating",
    ] {
        let snapshot = samples::because(reason, "its hook cannot run, because something is wrong");
        check(reason, &of_pod(&snapshot));
        check(reason, &super::game(&snapshot));
        check(reason, &super::game(&samples::unresolved(reason)));
    }
}

#[test]
fn a_hook_that_ended_in_error_is_corrected_or_run_again() {
    let corrected = [
        ("InvalidRequest", "its Secrets and ConfigMaps are correct"),
        ("Forbidden", "the egress policy allows the address"),
        ("Unreachable", "10.0.0.7:9091 responds"),
        ("Status", "http://10.0.0.7:9091 returns 2xx"),
        ("MalformedAnswer", "the response is correct"),
        ("PathNotFound", "the response is correct"),
        ("QueryFailed", "the response is correct"),
        ("ConditionFailed", "the response is correct"),
        ("NoData", "the response has data"),
        ("SomethingNew", "the cause is fixed"),
    ];
    for (reason, purpose) in corrected {
        let answer = of_pod(&samples::ended_in_error(reason, "no answer"));
        let commands = answer.commands();
        assert_eq!(commands[..2], [EDIT, RETRY], "{reason}");
        assert_eq!(commands.last(), Some(&SKIP), "{reason}");
        let edit = &answer.next[0].purpose;
        assert!(edit.ends_with(": the hook is then rerun automatically"), "{edit}");
        let purpose = format!("rerun the hook once {purpose}");
        assert_eq!(answer.next[1].purpose, purpose, "{reason}");
    }
    let retried = [
        "Timeout",
        "PartialAnswer",
        "AnswerDropped",
        "JobRefused",
        "JobLost",
        "ApiRefused",
        "ObjectGone",
        "CommandNotRun",
        "CommandLost",
        "NotAsked",
    ];
    for reason in retried {
        let answer = of_pod(&samples::ended_in_error(reason, "no answer"));
        let commands = answer.commands();
        assert_eq!(commands[..2], [RETRY, EDIT], "{reason}");
        assert_eq!(commands.last(), Some(&SKIP), "{reason}");
    }
    assert_eq!(corrected.len() + retried.len(), MeasurementReason::ALL.len() + 1);
}

#[test]
fn a_hook_that_runs_needs_no_retry() {
    for reason in MeasurementReason::ALL {
        let answer = of_pod(&samples::erroring("HookErrors", reason.as_str(), "no answer"));
        let commands = answer.commands();
        assert_eq!((commands[0], commands.last()), (EDIT, Some(&SKIP)), "{reason}");
        let is_retry = |command: &&str| command.starts_with("kubectl game retry");
        assert!(!commands.iter().any(is_retry), "{reason}: {commands:?}");
        let text = answer.text();
        let words = "If you fix HookTemplate empty, the hook is rerun automatically.";
        assert!(text.ends_with(words), "{text}");
    }
}

#[test]
fn a_measured_failure_is_retried_before_it_is_skipped() {
    let answer = of_pod(&samples::refused());
    let commands = answer.commands();
    assert_eq!((commands[0], commands[commands.len() - 1]), (RETRY, SKIP));
    assert!(!commands.contains(&EDIT), "{commands:?}");
    assert_eq!(
        super::game(&samples::refused()).commands(),
        [
            "kubectl game retry arena",
            "kubectl game why pod/arena-x7k2p",
            SKIP
        ]
    );
}

#[test]
fn an_invalid_spec_is_corrected_because_a_retry_cannot_help() {
    let answer = of_pod(&invalid());
    assert_eq!(answer.commands()[0], EDIT);
    let text = answer.text();
    assert!(
        text.contains("its PreDelete hook cannot be measured. HookTemplate empty: hook spec"),
        "{text}"
    );
    assert!(
        text.contains("unexpected `=`; did you mean `==`? (1:15)"),
        "{text}"
    );
    assert!(!answer.commands().contains(&RETRY), "{answer:?}");
}

#[test]
fn a_hook_that_cannot_succeed_is_named_so() {
    for snapshot in [
        samples::endless(),
        samples::erroring(
            "HookCannotSucceed",
            "Forbidden",
            "127.0.0.1 is a loopback address",
        ),
    ] {
        let answer = super::game(&snapshot);
        let text = answer.text();
        assert!(
            text.contains("is blocked and needs attention (HookCannotSucceed)"),
            "{text}"
        );
        assert!(
            text.contains("The PreDelete hook of arena-x7k2p cannot succeed."),
            "{text}"
        );
        assert!(!text.contains("still measuring"), "{text}");
        assert_eq!(answer.commands()[0], EDIT);
    }
    assert_eq!(
        trouble(&samples::endless().runs[0]),
        Some(Trouble::NoSuccessLimit)
    );
}

#[test]
fn the_text_names_the_template_the_request_and_the_last_error() {
    let error = "connection refused by 10.0.0.7:9091";
    let cause = "HookTemplate empty, metric players (GET http://10.0.0.7:9091): connection refused by 10.0.0.7:9091 (160 \
                 consecutive errors).";
    let erroring = samples::erroring("HookErrors", "Unreachable", error);
    for answer in [of_pod(&erroring), super::game(&erroring)] {
        let text = answer.text();
        assert!(
            text.contains("keeps failing with errors. ") && text.contains(cause),
            "{text}"
        );
        assert!(answer.runbook.unwrap().ends_with("#hookerrors"));
    }
    let mut secret = erroring;
    let spec = json!({
        "args": [{ "name": "token", "valueFrom": { "secretKeyRef": { "name": "s", "key": "k" } } }],
        "metrics": [{ "name": "players", "provider": { "web": { "url": "http://game/{{ args.token }}" } } }]
    });
    secret.runs[0].spec = serde_json::from_value(spec).unwrap();
    let text = of_pod(&secret).text();
    assert!(text.contains("(GET http://game/{{ args.token }})"), "{text}");
}

#[test]
fn errors_of_a_running_hook_are_named_before_the_operator_reports_them() {
    let snapshot = samples::erroring("Measuring", "Unreachable", "connection refused by 10.0.0.7:9091");
    let answer = super::game(&snapshot);
    let text = answer.text();
    assert!(
        text.contains(
            "The PreDelete hook of arena-x7k2p is running. 3 consecutive errors so far: HookTemplate empty"
        ),
        "{text}"
    );
    assert!(!text.contains("No action needed"), "{text}");
    let watch = "kubectl game get arena -w";
    let expected = [EDIT, "kubectl game why pod/arena-x7k2p", watch];
    assert_eq!(answer.commands(), expected);
    assert_eq!(answer.runbook, None);
    let quiet = super::game(&samples::running());
    assert!(quiet.text().contains("No action needed"), "{quiet:?}");
    assert_eq!(quiet.commands(), [watch]);
}

#[test]
fn a_cause_of_many_pods_is_named_once_with_the_pods() {
    let list = "arena-0, arena-1, arena-2, arena-3, arena-4 and 1 more";
    let error = "connection refused by 10.0.0.7:9091";
    let erroring = samples::many(samples::erroring("HookErrors", "Unreachable", error), 6);
    let answer = super::game(&erroring);
    let text = answer.text();
    assert_eq!(text.matches(error).count(), 1, "{text}");
    let words = format!(
        "The PreDelete hooks of 6 pods ({list}) keep failing with errors. For example, pod arena-0: HookTemplate empty"
    );
    assert!(text.contains(&words), "{text}");
    assert!(
        text.contains("The pods keep running and stay in service."),
        "{text}"
    );
    assert_eq!(answer.commands(), [EDIT, "kubectl game why pod/arena-0"]);
    assert!(
        answer.next[0]
            .purpose
            .starts_with("fix the request if it is wrong"),
        "{answer:?}"
    );

    let missing = super::game(&samples::many(samples::blocked(), 6));
    let text = missing.text();
    assert_eq!(text.matches("does not exist").count(), 1, "{text}");
    assert!(
        text.contains(&format!(
            "6 pods ({list}) are waiting for their PreDelete hooks. "
        )),
        "{text}"
    );
}

#[test]
fn pods_with_different_causes_are_explained_one_by_one() {
    let mut snapshot = samples::many(
        samples::erroring("HookErrors", "Unreachable", "connection refused"),
        2,
    );
    let status = snapshot.runs[1].status.as_mut().unwrap();
    let last = status.metric_results[0].measurements.last_mut().unwrap();
    (last.reason, last.message) = (Some("Status".to_owned()), Some("404 Not Found".to_owned()));
    let text = super::game(&snapshot).text();
    for words in [
        "hook of arena-0 keeps failing with errors",
        "hook of arena-1 keeps failing with errors",
        "404 Not Found",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn the_verdict_of_a_run_decides_on_its_trouble() {
    let table = [
        (
            "Failed",
            "FailureLimitExceeded",
            Some("NoData"),
            Trouble::NotMeasured(MeasurementReason::NoData),
        ),
        ("Failed", "FailureLimitExceeded", None, Trouble::Measured),
        ("Failed", "SuccessLimitNotReached", None, Trouble::Measured),
        (
            "Inconclusive",
            "InconclusiveLimitExceeded",
            None,
            Trouble::Measured,
        ),
        ("Inconclusive", "Terminated", None, Trouble::Terminated),
        ("Error", "TimedOut", None, Trouble::UnknownError),
        (
            "Error",
            "TimedOut",
            Some("Timeout"),
            Trouble::NotMeasured(MeasurementReason::Timeout),
        ),
        ("Error", "ErrorLimitExceeded", None, Trouble::UnknownError),
        ("Error", "InvalidSpec", None, Trouble::InvalidSpec),
        (
            "Error",
            "SomethingNew",
            Some("Status"),
            Trouble::NotMeasured(MeasurementReason::Status),
        ),
        ("Failed", "SomethingNew", None, Trouble::Measured),
        ("Successful", "AllMetricsSuccessful", None, Trouble::Unproven),
    ];
    for (phase, reason, measurement, expected) in table {
        let metric = json!({ "name": "players", "phase": phase, "measurements": [{ "phase": phase, "reason": measurement }] });
        let snapshot = samples::ended(phase, reason, "the words of the run", metric);
        assert_eq!(
            trouble(&snapshot.runs[0]),
            Some(expected),
            "{phase} {reason} {measurement:?}"
        );
    }
    let timed_out = samples::ended(
        "Error",
        "TimedOut",
        "run timed out",
        json!({ "name": "players", "phase": "Error" }),
    );
    assert_eq!(trouble(&timed_out.runs[0]), Some(Trouble::TimedOut));
    assert_eq!(trouble(&samples::running().runs[0]), None);
}

#[test]
fn a_hook_of_the_rollout_shows_its_errors_too() {
    let mut snapshot = samples::canary("PausedByStepBasedHook", false);
    let mut run = samples::erroring("Measuring", "Unreachable", "connection refused")
        .runs
        .remove(0);
    let labels = run.metadata.labels.as_mut().unwrap();
    labels.remove("tkex.tencent.com/pod-uid");
    labels.insert("canary-step-index".to_owned(), "1".to_owned());
    run.metadata.name = Some("canary-arena-7d4b9c-1-no-alerts".to_owned());
    let canary = json!({ "currentStepHookRun": run.metadata.name });
    snapshot.game.status.as_mut().unwrap().canary = serde_json::from_value(canary).unwrap();
    let strategy = snapshot.game.spec.update_strategy.as_mut().unwrap();
    let steps = json!({ "steps": [{ "partition": 2 }, { "hook": { "templateName": "no-alerts" } }] });
    strategy.canary = serde_json::from_value(steps).unwrap();
    snapshot.runs = vec![run];
    let answer = super::game(&snapshot);
    let words = "HookRun canary-arena-7d4b9c-1-no-alerts of the canary step is running. 3 consecutive errors so far: \
                 HookTemplate no-alerts, metric players";
    assert!(answer.text().contains(words), "{answer:?}");
    assert_eq!(answer.commands()[0], "kubectl edit hooktemplate no-alerts");
}

#[test]
fn an_attempt_of_a_lifecycle_hook_keeps_its_spec() {
    let mut snapshot = samples::smoke_test();
    let mut run = samples::erroring("HookErrors", "Unreachable", "connection refused")
        .runs
        .remove(0);
    let labels = run.metadata.labels.as_mut().unwrap();
    labels.remove("tkex.tencent.com/pod-uid");
    labels.insert(
        "tkex.tencent.com/lifecycle-hook".to_owned(),
        "smoke-test".to_owned(),
    );
    run.metadata.name = Some("lifecycle-arena-7d4b9c-2-smoke-test-1".to_owned());
    snapshot.runs = vec![run];
    let status = snapshot.game.status.as_mut().unwrap();
    let blocked = json!({
        "type": "UpdateBlocked", "status": "True", "reason": "HookErrors", "lastTransitionTime": "2026-01-02T09:58:00Z",
        "message": "lifecycle hook smoke-test: HookRun lifecycle-arena-7d4b9c-2-smoke-test-1 keeps failing with errors"
    });
    status.conditions.push(serde_json::from_value(blocked).unwrap());
    let answer = super::game(&snapshot);
    let words = "HookRun lifecycle-arena-7d4b9c-2-smoke-test-1 does not pick up changes: fix HookTemplate empty, then \
                 delete";
    assert!(answer.text().contains(words), "{answer:?}");
    let delete = "kubectl delete hookrun lifecycle-arena-7d4b9c-2-smoke-test-1";
    assert_eq!(answer.commands()[..2], [EDIT, delete]);
    assert!(
        answer.next[0].purpose.ends_with(", then delete the HookRun"),
        "{answer:?}"
    );
}

#[test]
fn an_address_that_a_shell_would_run_stands_in_no_command() {
    for host in [
        "10.0.0.7;reboot",
        "$(reboot)",
        "`reboot`",
        "a&reboot",
        "a|sh",
        "a'b",
        "a!b",
    ] {
        let url = format!("http://{host}:9091/players?room=1");
        for reason in MeasurementReason::ALL {
            let Advice { edit, retry, .. } = Trouble::NotMeasured(*reason).advice(Some(&url));
            let purposes = [edit, retry].into_iter().flatten().collect::<String>();
            assert!(!purposes.contains(host), "{reason}: {purposes}");
        }
    }
    let plain =
        Trouble::NotMeasured(MeasurementReason::Status).advice(Some("http://[fd00::7]:9091/players?room=1"));
    let retry = plain.retry.unwrap();
    assert_eq!(
        retry,
        "rerun the hook once http://[fd00::7]:9091/players?room=1 returns 2xx"
    );
}

#[test]
fn hook_operator_is_looked_up_in_the_same_cluster() {
    let mut snapshot = samples::because("HookNotTakenUp", "hook-operator has recorded nothing");
    snapshot.flags = " -n games --context prod --as alice".to_owned();
    let look = "kubectl get deploy,pods -A -l app.kubernetes.io/name=hook-operator -n games --context prod --as alice";
    for answer in [super::game(&snapshot), of_pod(&snapshot)] {
        assert_eq!(answer.commands()[0], look);
    }
}

#[test]
fn a_run_that_a_finalizer_keeps_is_freed_on_a_condition() {
    let message = "its hook cannot run, because HookRun pre-delete-hook-arena-7d4b9c-x7k2p-empty is stuck terminating; \
                   fix the controller that owns its finalizers, or remove the finalizers";
    let mut snapshot = samples::because("HookRunTerminating", message);
    let mut run = samples::run(samples::players(json!({})), json!({}));
    run.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
        samples::now(),
    ));
    run.metadata.finalizers = Some(vec![
        "foregroundDeletion".to_owned(),
        "example.com/audit".to_owned(),
    ]);
    snapshot.runs = vec![run];
    let name = "pre-delete-hook-arena-7d4b9c-x7k2p-empty";
    let patch = format!(
        "kubectl patch hookrun {name} --type=merge -p '{{\"metadata\":{{\"finalizers\":null}}}}'  # remove the \
         finalizer, if no controller does"
    );
    let waiting = snapshot
        .pods
        .iter()
        .find(|pod| pod.metadata.name.as_deref() == Some("arena-x7k2p"));
    for answer in [super::game(&snapshot), super::pod(&snapshot, waiting.unwrap())] {
        let text = answer.text();
        let words = format!("HookRun {name} is stuck terminating (finalizer example.com/audit). ");
        assert!(text.contains(&words), "{text}");
        assert!(!text.contains("controller that owns"), "{text}");
        let words = "Fix the controller responsible for the finalizer, or remove the finalizer if no such controller \
                     exists.";
        assert!(text.ends_with(words), "{text}");
        assert_eq!(answer.next[0].to_string(), patch);
        assert_eq!(
            answer.commands()[1],
            format!("kubectl get hookrun {name} -o yaml")
        );
        assert!(answer.runbook.unwrap().ends_with("#hookrunterminating"));
    }
}
