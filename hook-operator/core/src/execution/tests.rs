use std::time::Duration;

use serde_json::{Value, json};
use shared_api::{ExecutionHookSpec, HookAction};

use super::*;

fn hook(spec: Value) -> Result<ResolvedHook, String> {
    let spec: ExecutionHookSpec = serde_json::from_value(spec).map_err(|error| error.to_string())?;
    resolve_hook(&spec).map_err(|errors| errors.to_string())
}

fn action(fields: Value) -> Result<ResolvedAction, String> {
    let mut action = json!({ "metadata": { "uid": "u", "generation": 1 } });
    let fields = fields.as_object().into_iter().flatten();
    for (name, value) in fields {
        action[name] = value.clone();
    }
    let action: HookAction = serde_json::from_value(action).map_err(|error| error.to_string())?;
    resolve_action(&action).map_err(|errors| errors.to_string())
}

#[test]
fn the_defaults_of_a_hook_and_its_action_are_those_of_the_reference() {
    let resolved =
        hook(json!({ "actionName": "a", "podSelection": { "podContainerNamesList": [{ "podName": "p" }] } }));
    let resolved = resolved.unwrap();
    assert_eq!(
        (resolved.parallelism, resolved.time_to_live.as_secs()),
        (64, 3600)
    );
    let resolved = action(json!({ "action": { "exec": { "command": ["sync"] } } })).unwrap();
    assert_eq!(
        (resolved.action_timeout, resolved.call_timeout.as_secs()),
        (None, 30)
    );
    assert!(!resolved.shows_output);
}

#[test]
fn every_problem_of_a_hook_is_named_with_its_remedy() {
    let named =
        |names: Value| json!({ "actionName": "a", "podSelection": { "podContainerNamesList": names } });
    let labelled =
        |selector: Value| json!({ "actionName": "a", "podSelection": { "podContainerSelector": selector } });
    let many: Vec<Value> = (0..1001)
        .map(|pod| json!({ "podName": format!("p{pod}") }))
        .collect();
    for (spec, wanted) in [
        (
            json!({ "actionName": "", "podSelection": {} }),
            "spec.actionName: must be set to the name of a HookAction in this namespace; spec.podSelection: one of \
             podContainerNamesList and podContainerSelector must be set",
        ),
        (
            json!({ "actionName": "a", "podSelection": {}, "hookActionName": "b", "terminat": true, "parallelism": 0,
                "ttlSecondsAfterFinished": -1 }),
            "spec.hookActionName: unknown field; known fields: actionName, ",
        ),
        (
            json!({ "actionName": "a", "podSelection": {}, "terminat": true }),
            "spec.terminat: unknown field; did you mean terminate?",
        ),
        (
            json!({ "actionName": "a", "podSelection": {}, "parallelism": 1025 }),
            "spec.parallelism: 1025 must be between 1 and 1024",
        ),
        (
            named(json!([])),
            "one of podContainerNamesList and podContainerSelector must be set",
        ),
        (
            named(json!([{ "podName": "p", "containerName": "c" }])),
            "podContainerNamesList[0].containerName: unknown field; did you mean containerNames?",
        ),
        (
            named(json!([{ "podName": "p" }, { "podName": "p" }])),
            "podContainerNamesList[1].podName: duplicate pod \"p\"; list all of its containers in one entry",
        ),
        (
            named(json!([{ "podName": "p", "containerNames": ["c", "c"] }])),
            "containerNames[1]: duplicate container \"c\"",
        ),
        (
            named(json!(many)),
            "selects at least 1001 containers, but the limit is 1000",
        ),
        (
            labelled(json!({ "podSelector": {} })),
            "podSelector: must not be empty",
        ),
        (
            labelled(json!({ "podSelector": { "matchLabels": {}, "matchExpressions": [] } })),
            "podSelector: must not be empty",
        ),
        (
            labelled(json!({ "podSelector": { "matchLabels": { "a": "b" } }, "containers": ["c"] })),
            "podContainerSelector.containers: unknown field",
        ),
        (
            labelled(json!({ "podSelector": { "matchLabels": { "a": "b" } }, "containerList": ["", "a/b"] })),
            "containerList[0]: \"\" is not a valid container name; use lowercase letters, digits and dashes; \
             spec.podSelection.podContainerSelector.containerList[1]: \"a/b\" is not a valid container name",
        ),
        (
            named(json!([{ "podName": "p/log?follow=true" }])),
            "podContainerNamesList[0].podName: \"p/log?follow=true\" is not a valid pod name",
        ),
        (
            json!({ "actionName": "../other", "podSelection": {} }),
            "spec.actionName: \"../other\" is not a valid HookAction name",
        ),
    ] {
        let errors = hook(spec.clone()).unwrap_err();
        assert!(errors.contains(wanted), "{spec}: {errors}");
    }
    let both = json!({ "actionName": "a", "podSelection": {
        "podContainerNamesList": [{ "podName": "p" }], "podContainerSelector": { "podSelector": {} } } });
    assert!(matches!(
        hook(both.clone()).unwrap().selection,
        Selection::Names(_)
    ));
    let warnings = hook_warnings(&serde_json::from_value(both).unwrap());
    assert_eq!(
        warnings[0].to_string(),
        "spec.podSelection.podContainerSelector: is ignored, because podContainerNamesList is also set; remove \
         one of them"
    );
}

#[test]
fn a_selector_that_api_servers_refuse_is_refused() {
    let labelled = |selector: Value| {
        let selector = json!({ "podSelector": selector });
        json!({ "actionName": "a", "podSelection": { "podContainerSelector": selector } })
    };
    let expression = |expression: Value| labelled(json!({ "matchExpressions": [expression] }));
    for (spec, wanted) in [
        (
            labelled(json!({ "matchLabels": { "a": "b,c" } })),
            "podSelector.matchLabels: a=b,c is not a valid label",
        ),
        (
            expression(json!({ "key": "a", "operator": "Foo" })),
            "matchExpressions[0].operator: must be one of In, NotIn, Exists, DoesNotExist, not \"Foo\"",
        ),
        (
            expression(json!({ "key": "a", "operator": "In", "values": [] })),
            "matchExpressions[0].values: must be set when operator is In",
        ),
        (
            expression(json!({ "key": "a b", "operator": "Exists", "values": ["c)"] })),
            "matchExpressions[0].key: \"a b\" is not a valid label key; spec.podSelection.podContainerSelector.\
             podSelector.matchExpressions[0].values: \"c)\" is not a valid label value; spec.podSelection.\
             podContainerSelector.podSelector.matchExpressions[0].values: must be empty when operator is Exists",
        ),
    ] {
        let errors = hook(spec.clone()).unwrap_err();
        assert!(errors.contains(wanted), "{spec}: {errors}");
    }
    for ok in [
        json!({ "matchLabels": { "app.kubernetes.io/name": "arena", "empty": "" } }),
        json!({ "matchExpressions": [{ "key": "a", "operator": "NotIn", "values": ["b", ""] }] }),
    ] {
        assert!(hook(labelled(ok)).is_ok());
    }
}

#[test]
fn every_problem_of_an_action_is_named_with_its_remedy() {
    let exec = |exec: Value| json!({ "action": { "exec": exec } });
    for (fields, wanted) in [
        (
            json!({}),
            "action: one of exec, httpGet and tcpSocket must be set",
        ),
        (
            json!({ "action": { "exec": { "command": ["a"] }, "actionTimeoutSeconds": 10 } }),
            "action.actionTimeoutSeconds: must be at the top level, next to action",
        ),
        (
            json!({ "Action": { "exec": { "command": ["a"] } } }),
            "Action: unknown field; did you mean action?; action: one of exec, httpGet and tcpSocket must be set",
        ),
        (exec(json!({})), "action.exec.command: must be set"),
        (
            exec(json!({ "command": [""] })),
            "action.exec.command: must be set",
        ),
        (
            exec(json!({ "command": vec!["a"; 65] })),
            "has 65 items; the limit is 64",
        ),
        (
            exec(json!({ "command": ["a", "é".repeat(9_000)] })),
            "bytes long when URL-encoded; the limit is 49152",
        ),
        (
            exec(json!({ "command": ["a"], "comand": ["b"] })),
            "action.exec.comand: unknown field; did you mean command?",
        ),
        (
            json!({ "action": { "exec": { "command": ["a"] } }, "actionTimeoutSeconds": 0, "callTimeoutSeconds": 3601 }),
            "actionTimeoutSeconds: 0 must be between 1 and 604800; callTimeoutSeconds: 3601 must be between 1 and 3600",
        ),
    ] {
        let errors = action(fields.clone()).unwrap_err();
        assert!(errors.contains(wanted), "{fields}: {errors}");
    }
}

#[test]
fn every_problem_of_a_call_is_named_with_its_remedy() {
    let get = |get: Value| json!({ "action": { "httpGet": get } });
    let socket = |socket: Value| json!({ "action": { "tcpSocket": socket } });
    for (fields, wanted) in [
        (
            json!({ "action": { "exec": { "command": ["a"] }, "tcpSocket": { "port": 1 } } }),
            "action: exec, httpGet and tcpSocket are mutually exclusive; keep one",
        ),
        (
            json!({ "action": { "httpGet": { "port": 1 }, "tcpSocket": { "port": 1 } } }),
            "action: exec, httpGet and tcpSocket are mutually exclusive; keep one",
        ),
        (
            get(json!({ "port": 0 })),
            "action.httpGet.port: 0 is not a valid port; use a number from 1 to 65535",
        ),
        (
            get(json!({ "port": "65536" })),
            "action.httpGet.port: \"65536\" is not a valid port",
        ),
        (
            get(json!({ "port": "Admin" })),
            "action.httpGet.port: \"Admin\" is not a valid port",
        ),
        (
            socket(json!({ "port": -1 })),
            "action.tcpSocket.port: -1 is not a valid port",
        ),
        (
            socket(json!({ "port": 1, "host": "a" })),
            "action.tcpSocket.host: unknown field; known fields: port",
        ),
        (
            get(json!({ "port": 1, "host": "10.0.0.1" })),
            "action.httpGet.host: is not supported, because the request is sent to the IP of the selected pod; \
             remove it",
        ),
        (
            get(json!({ "port": 1, "path": "reload" })),
            "action.httpGet.path: \"reload\" is not a valid path; it must start with /",
        ),
        (get(json!({ "port": 1, "path": "/a#b" })), "is not a valid path"),
        (get(json!({ "port": 1, "path": "/a\nb" })), "is not a valid path"),
        (
            get(json!({ "port": 1, "path": format!("/{}", "a".repeat(4096)) })),
            "is 4097 bytes long; the limit is 4096",
        ),
        (
            get(json!({ "port": 1, "scheme": "https" })),
            "action.httpGet.scheme: must be HTTP or HTTPS, not \"https\"",
        ),
        (
            get(json!({ "port": 1, "httpHeaders": [{ "name": "a b", "value": "c" }] })),
            "action.httpGet.httpHeaders[0].name: \"a b\" is not a valid header name",
        ),
        (
            get(json!({ "port": 1, "httpHeaders": [{ "name": "Content-Length", "value": "9" }] })),
            "action.httpGet.httpHeaders[0].name: hooks must not set header Content-Length",
        ),
        (
            get(json!({ "port": 1, "httpHeaders": [{ "name": "a", "value": "c\r\nd: e" }] })),
            "action.httpGet.httpHeaders[0].value: must not contain line breaks",
        ),
        (
            get(json!({ "port": 1, "httpHeaders": vec![json!({ "name": "a", "value": "b" }); 33] })),
            "too many headers: 33; the limit is 32",
        ),
        (
            get(json!({ "port": 5_000_000_000_i64 })),
            "action.httpGet.port: 5000000000 is not a valid port",
        ),
        (
            get(json!({ "port": 1.5 })),
            "action.httpGet.port: 1.5 is not a valid port",
        ),
        (
            get(json!({ "port": 1, "httpHeaders": [{ "name": "a", "value": "b" }, { "name": "A" }] })),
            "action.httpGet.httpHeaders[1].name: duplicate header \"A\"",
        ),
        (
            get(json!({ "port": 1, "httpHeaders": [{ "name": "a", "value": "b".repeat(16_384) }] })),
            "action.httpGet.httpHeaders: is 16385 bytes long in total; the limit is 16384",
        ),
        (
            get(json!({ "port": 1, "httpHeader": [] })),
            "action.httpGet.httpHeader: unknown field; did you mean httpHeaders?",
        ),
    ] {
        let errors = action(fields.clone()).unwrap_err();
        assert!(errors.contains(wanted), "{fields}: {errors}");
    }
}

#[test]
fn ports_are_numbers_or_names_also_as_text() {
    for (port, wanted) in [
        (json!(1), Port::Number(1)),
        (json!("65535"), Port::Number(65_535)),
        (json!("admin-2"), Port::Name("admin-2".to_owned())),
    ] {
        let resolved = action(json!({ "action": { "tcpSocket": { "port": port } } })).unwrap();
        assert_eq!(resolved.operation, Operation::TcpSocket(wanted));
    }
    let all = json!({ "path": "/reload?now=1", "port": "http", "scheme": "HTTPS",
        "httpHeaders": [{ "name": "X-By", "value": "hooks" }] });
    let Operation::HttpGet(get) = action(json!({ "action": { "httpGet": all } })).unwrap().operation else {
        panic!("an HTTP GET");
    };
    let request = get.request("10.0.0.7:443".parse().unwrap(), Duration::from_secs(3), true);
    assert_eq!(request.url, "https://10.0.0.7:443/reload?now=1");
    assert_eq!(request.headers, [("X-By".to_owned(), "hooks".to_owned())]);
    assert!(request.tls.insecure_skip_verify && !request.redactor.hides());
}

#[test]
fn a_digest_changes_with_everything_except_terminate() {
    let spec = |more: Value| -> ExecutionHookSpec {
        let mut spec =
            json!({ "actionName": "a", "podSelection": { "podContainerNamesList": [{ "podName": "p" }] } });
        spec.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        serde_json::from_value(spec).unwrap()
    };
    let digest = |more: Value| digest_of_spec(&spec(more));
    assert_eq!(digest(json!({})), digest(json!({ "terminate": true })));
    for change in [
        json!({ "actionName": "b" }),
        json!({ "parallelism": 64 }),
        json!({ "ttlSecondsAfterFinished": 1 }),
        json!({ "podSelection": { "podContainerNamesList": [{ "podName": "q" }] } }),
    ] {
        assert_ne!(digest(json!({})), digest(change));
    }
}

fn pod(name: &str, containers: &[&str]) -> FoundPod {
    FoundPod {
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        containers: containers.iter().map(|name| (*name).to_owned()).collect(),
        others: vec!["debug".to_owned()],
        has_ended: false,
    }
}

#[test]
fn a_selector_selects_the_listed_containers_of_running_pods() {
    let names = |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_owned()).collect() };
    let mut ended = pod("c", &["game"]);
    ended.has_ended = true;
    let pods = [pod("a", &["game", "proxy"]), pod("b", &["game"]), ended.clone()];
    let shown = |containers: &[&str]| -> Result<Vec<String>, String> {
        let selected = select(&pods, &names(containers)).map_err(|error| error.message)?;
        Ok(selected
            .iter()
            .map(|entry| format!("{}/{}", entry.pod_name, entry.container_name))
            .collect())
    };
    assert_eq!(shown(&[]).unwrap(), ["a/game", "a/proxy", "b/game"]);
    assert_eq!(shown(&["proxy"]).unwrap(), ["a/proxy"]);
    assert_eq!(shown(&["debug"]).unwrap(), ["a/debug", "b/debug"]);
    assert_eq!(
        shown(&["game", "gaem"]).unwrap_err(),
        "none of the 2 selected pods has a container gaem; fix containerList"
    );
    assert_eq!(
        select(&pods[1..2], &names(&["gaem"])).unwrap_err().message,
        "the selected pod has no container gaem; fix containerList"
    );
    for none in [select(&[], &[]), select(&[ended], &[])] {
        assert_eq!(
            none.unwrap_err().reason,
            shared_api::reason::ExecutionReason::NothingSelected
        );
    }
    let crowd: Vec<FoundPod> = (0..1001)
        .map(|number| pod(&format!("p{number}"), &["game"]))
        .collect();
    let error = select(&crowd, &[]).unwrap_err();
    assert!(
        error
            .message
            .starts_with("1001 containers are selected, but the limit is 1000"),
        "{}",
        error.message
    );
    assert_eq!(select(&crowd[..1000], &[]).unwrap().len(), 1000);
}

#[test]
fn every_failure_has_its_type() {
    use crate::answer::{MeasurementFailure, MeasurementReason};
    use shared_api::execution_hook::ErrorType;
    for (kind, wanted) in [
        (MeasurementReason::CommandNotRun, ErrorType::Error),
        (MeasurementReason::CommandLost, ErrorType::Error),
        (MeasurementReason::Unreachable, ErrorType::Error),
        (MeasurementReason::MalformedAnswer, ErrorType::Error),
        (MeasurementReason::ApiRefused, ErrorType::Forbidden),
        (MeasurementReason::Timeout, ErrorType::Timeout),
        (MeasurementReason::ObjectGone, ErrorType::NotFound),
    ] {
        let mut status = select(&[pod("a", &["game"])], &[]).unwrap().remove(0);
        let long = format!("begins here {} ends here", "é".repeat(300));
        let failure = MeasurementFailure::new(kind, long);
        outcome_of(Err(failure)).apply(&mut status, jiff::Timestamp::UNIX_EPOCH);
        let error = status.error.unwrap();
        let message = error.message.unwrap();
        assert_eq!((error.error_type, status.attempts), (wanted, 1), "{kind:?}");
        assert!(
            message.starts_with("begins here é") && message.ends_with("é ends here"),
            "{message}"
        );
        assert!(message.len() <= 250, "{}", message.len());
    }
}

#[test]
fn only_progress_in_the_same_pod_is_ahead_of_a_recorded_state() {
    let of = |succeed: Option<bool>, attempts: i32| {
        let mut status = select(&[pod("a", &["game"])], &[]).unwrap().remove(0);
        (status.succeed, status.attempts) = (succeed, attempts);
        status
    };
    for (ours, recorded, wanted) in [
        (of(Some(true), 1), of(None, 0), true),
        (of(None, 2), of(None, 1), true),
        (of(None, 1), of(None, 1), false),
        (of(None, 1), of(None, 2), false),
        // A result that is recorded stays, whatever another process knows.
        (of(Some(true), 3), of(Some(false), 1), false),
        (of(Some(false), 3), of(Some(true), 1), false),
    ] {
        assert_eq!(is_ahead(&ours, &recorded), wanted, "{ours:?} {recorded:?}");
    }
    let mut other = of(None, 0);
    other.pod_uid = Some("another".to_owned());
    assert!(!is_ahead(&of(Some(true), 1), &other));
    other.pod_uid = None;
    assert!(is_ahead(&of(Some(true), 1), &other));
}
