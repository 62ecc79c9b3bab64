//! Provider `exec`: a command in a container of the run's pod, with open placeholders.

use std::time::Duration;

use placeholder::Template;
use shared_api::defaults::EXEC_TIMEOUT;
use shared_api::metric::ExecProvider;

use super::kubernetes::{check_secrets, name_of_pod};
use super::provider::Parser;

/// Most items of a command; the CRD's schema has the same limit.
const MAX_ITEMS: usize = 64;
/// Longest name of a container, in bytes.
const MAX_NAME_BYTES: usize = 63;

/// Command with open placeholders.
#[derive(Debug, Clone)]
pub struct ResolvedExec {
    /// Name of the pod.
    pub pod: Template,
    /// Container.
    pub container: String,
    /// Command and its arguments.
    pub command: Vec<Template>,
    /// Timeout of the whole measurement.
    pub timeout: Duration,
}

pub(super) fn resolve(path: &str, exec: &ExecProvider, parser: &mut Parser<'_>) -> Option<ResolvedExec> {
    let ExecProvider {
        container,
        command,
        timeout_seconds,
        unknown: _,
    } = exec;
    let timeout = parser.timeout(path, *timeout_seconds, EXEC_TIMEOUT);
    if !is_container_name(container) {
        let message = if container.is_empty() {
            "must be set to the name of a container in the pod".to_owned()
        } else {
            format!("{container:?} is not a valid container name; use lowercase letters, digits and dashes")
        };
        parser.errors.add(format!("{path}.container"), message);
    }
    if command.first().is_none_or(String::is_empty) {
        let message = "must be set; list the program and each of its arguments as a separate item";
        parser.errors.add(format!("{path}.command"), message);
    }
    if command.len() > MAX_ITEMS {
        let message = format!("has {} items; the limit is {MAX_ITEMS}", command.len());
        parser.errors.add(format!("{path}.command"), message);
    }
    let mut items = Vec::new();
    for (index, item) in command.iter().enumerate().take(MAX_ITEMS) {
        let path = format!("{path}.command[{index}]");
        if let Some(template) = parser.template(&path, item) {
            check_secrets(&path, &template, parser);
            items.push(template);
        }
    }
    let pod = name_of_pod(path, "exec runs commands only in the pod of the run", parser)?;
    Some(ResolvedExec {
        pod,
        container: container.clone(),
        command: items,
        timeout,
    })
}

/// Returns whether the name is a DNS label (RFC 1123).
pub(crate) fn is_container_name(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=MAX_NAME_BYTES).contains(&name.len())
        && name.bytes().all(inner)
        && !name.starts_with('-')
        && !name.ends_with('-')
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use shared_api::hook_run::HookRunSpec;

    use crate::render::{Rendered, references, render};
    use crate::request::{ExecRequest, OutputReads, ProviderRequest};
    use crate::resolve::{OptionalProviders, resolve_run, run_warnings};

    fn spec(exec: &Value, more: Value) -> HookRunSpec {
        let mut metric = json!({ "name": "m", "provider": { "exec": exec } });
        for (field, value) in more.as_object().unwrap() {
            metric[field] = value.clone();
        }
        let args = json!([
            { "name": "PodName", "value": "arena-x" },
            { "name": "token", "valueFrom": { "secretKeyRef": { "name": "s", "key": "k" } } },
            { "name": "map", "valueFrom": { "configMapKeyRef": { "name": "c", "key": "k" } } },
        ]);
        serde_json::from_value(json!({ "metrics": [metric], "args": args })).unwrap()
    }

    fn players() -> Value {
        json!({ "container": "game", "command": ["game-server", "players", "{{ args.PodName }}"] })
    }

    fn with(field: &str, value: Value) -> Value {
        let mut exec = players();
        exec[field] = value;
        exec
    }

    fn rendered(exec: &Value, more: Value, map: &str) -> (ExecRequest, bool) {
        let run = resolve_run(&spec(exec, more)).unwrap();
        let references = references(&run.metrics[0], &run.arguments).into_iter();
        let texts = references.map(|reference| (reference, map.to_owned())).collect();
        let Rendered { request, rules } = render(&run.metrics[0], &run.arguments, &texts).unwrap();
        match request {
            ProviderRequest::Exec(request) => (request, rules.redactor.hides()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_command_without_a_container_or_with_a_secret_is_refused_by_its_path() {
        for (exec, wanted) in [
            (with("container", json!("")), "exec.container: must be set"),
            (
                with("container", json!("game/x")),
                "exec.container: \"game/x\" is not a valid container name",
            ),
            (with("command", json!([])), "exec.command: must be set"),
            (with("command", json!(["", "a"])), "exec.command: must be set"),
            (
                with("command", json!(vec!["a"; 65])),
                "exec.command: has 65 items; the limit is 64",
            ),
            (
                with("command", json!(["a", "{{ args.token }}"])),
                "exec.command[1]: args.token comes from a Secret",
            ),
            (
                with("command", json!(["a", "{{ args.nobody }}"])),
                "exec.command[1]: args.nobody not supplied",
            ),
            (
                with("timeoutSeconds", json!(3601)),
                "exec.timeoutSeconds: 3601 must be less than or equal to 3600",
            ),
            (
                with("timeoutSeconds", json!(-1)),
                "exec.timeoutSeconds: -1 must be greater than or equal to 0",
            ),
            (
                with("comand", json!([])),
                "exec.comand: unknown field; did you mean command?",
            ),
        ] {
            let errors = resolve_run(&spec(&exec, json!({}))).unwrap_err().to_string();
            assert!(errors.contains(wanted), "{exec}: {errors}");
        }
        let mut run = spec(&players(), json!({}));
        run.args = None;
        run.metrics[0].provider.exec.as_mut().unwrap().command.pop();
        let errors = resolve_run(&run).unwrap_err().to_string();
        assert!(
            errors.contains("exec: the run has no pod, because argument PodName is not set; exec runs"),
            "{errors}"
        );
        let off = OptionalProviders::default().resolve_run(&spec(&players(), json!({})));
        assert!(
            off.unwrap_err()
                .to_string()
                .contains("provider.exec: is disabled; start hook-operator with --provider-exec")
        );
    }

    #[test]
    fn a_command_is_filled_in_item_by_item_and_its_output_is_hidden() {
        let command = json!(["save", "{{ args.map }}", "--pod={{ args.PodName }}"]);
        let (request, hides) = rendered(&with("command", command), json!({}), "a b; rm -rf /");
        assert_eq!(request.command, ["save", "a b; rm -rf /", "--pod=arena-x"]);
        assert!(hides && !request.shows_output && request.pod.is_pod_of_run);
        assert_eq!((request.container.as_str(), request.reads), ("game", None));
        let (request, hides) = rendered(&players(), json!({ "quoteAnswers": true }), "");
        assert!(!hides && request.shows_output);
        let conditions =
            json!({ "successCondition": "result == 0", "failureCondition": "exec.exitCode > 1" });
        let reads = rendered(&players(), conditions, "").0.reads;
        let both = OutputReads {
            result: true,
            exit_code: false,
            stderr: false,
        };
        assert_eq!(reads, Some(both));
        let conditions = json!({ "successCondition": "exec.exitCode in [0, 3]" });
        let reads = rendered(&players(), conditions, "").0.reads.unwrap();
        assert!(reads.exit_code && !reads.result);
    }

    #[test]
    fn a_command_that_no_program_can_get_is_refused_when_it_is_filled_in() {
        for (command, map, wanted) in [
            (
                json!(["a", "{{ args.map }}"]),
                "x\0y".to_owned(),
                "contains a NUL character",
            ),
            (
                json!(["{{ args.map }}"]),
                String::new(),
                "command[0]: must be set to the program to run",
            ),
            (
                json!(["a", "{{ args.map }}"]),
                "x".repeat(33_000),
                "is 33001 bytes long; the limit is 32768",
            ),
        ] {
            let run = resolve_run(&spec(&with("command", command), json!({}))).unwrap();
            let texts = references(&run.metrics[0], &run.arguments).into_iter();
            let texts = texts.map(|reference| (reference, map.clone())).collect();
            let failure = render(&run.metrics[0], &run.arguments, &texts).unwrap_err();
            assert!(failure.message.contains(wanted), "{failure}");
        }
    }

    #[test]
    fn a_placeholder_in_a_script_is_warned_of() {
        let said = |command: Value| run_warnings(&spec(&with("command", command), json!({}))).len();
        assert_eq!(said(json!(["sh", "-c", "save {{ args.PodName }}"])), 1);
        assert_eq!(said(json!(["/bin/bash", "-ec", "save {{ args.PodName }}"])), 1);
        assert_eq!(
            said(json!(["sh", "-c", "save \"$1\"", "sh", "{{ args.PodName }}"])),
            0
        );
        assert_eq!(said(json!(["save", "-c", "{{ args.PodName }}"])), 0);
    }
}
