//! Checks the rendered chart: an API server accepts it, the programs know their flags, and pods have no
//! unnecessary permissions.

use clap::Parser as _;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use test_kit::ControlPlane;

use crate::{NAMESPACE, of_kind, rendered, value_sets};

#[tokio::test]
async fn an_api_server_takes_what_every_set_of_values_renders() {
    let control_plane = ControlPlane::shared(shared_api::crd::all).await;
    let namespace = control_plane.namespace("chart").await;
    let version = format!("1.{}.0", control_plane.minor_version());
    let mut seen = 0;
    for set in value_sets() {
        for mut document in rendered(&["--values", set.to_str().unwrap(), "--kube-version", &version]) {
            // Their CRDs belong to the Prometheus operator.
            if document["apiVersion"] == "monitoring.coreos.com/v1" {
                continue;
            }
            if document["metadata"]["namespace"] == NAMESPACE {
                document["metadata"]["namespace"] = json!(namespace);
            }
            let taken = apply_dry(control_plane.client(), &document).await;
            taken.unwrap_or_else(|error| panic!("{}: {document}: {error}", set.display()));
            seen += 1;
        }
    }
    assert!(seen > 100, "{seen} documents");
}

/// Applies a document server-side as a dry run.
async fn apply_dry(client: Client, document: &Value) -> kube::Result<DynamicObject> {
    let object: DynamicObject = serde_json::from_value(document.clone()).map_err(kube::Error::SerdeError)?;
    let types = object.types.clone().unwrap_or_default();
    let (group, version) = types
        .api_version
        .split_once('/')
        .unwrap_or(("", &types.api_version));
    let plural = types.kind.to_lowercase() + "s";
    let plural = plural
        .strip_suffix("ys")
        .map_or(plural.clone(), |stem| format!("{stem}ies"));
    let kind =
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, &types.kind), &plural);
    let objects: Api<DynamicObject> = match object.namespace() {
        Some(namespace) => Api::namespaced_with(client, &namespace, &kind),
        None => Api::all_with(client, &kind),
    };
    let dry = PatchParams::apply("chart").force().dry_run();
    objects
        .patch(&object.name_any(), &dry, &Patch::Apply(&object))
        .await
}

#[test]
fn the_programs_know_their_flags() {
    for set in value_sets() {
        let documents = rendered(&["--values", set.to_str().unwrap()]);
        for deployment in of_kind(&documents, "Deployment") {
            let container = &deployment["spec"]["template"]["spec"]["containers"][0];
            let name = container["name"].as_str().unwrap();
            let flags: Vec<&str> = container["args"]
                .as_array()
                .unwrap()
                .iter()
                .map(|flag| flag.as_str().unwrap())
                .collect();
            let all = [name].into_iter().chain(flags);
            let parsed = match name {
                "hook-operator" => hook_operator::config::Config::try_parse_from(all).map(drop),
                "gamedeployment-operator" => {
                    gamedeployment_operator::config::Config::try_parse_from(all).map(drop)
                }
                "hookgate-admission" => admission::config::Config::try_parse_from(all).map(drop),
                other => panic!("{other}"),
            };
            parsed.unwrap_or_else(|error| panic!("{}: {error}", set.display()));
        }
    }
}

/// Checks the level `restricted` of the pod security standards.
#[test]
fn pods_are_restricted_and_apart() {
    for set in value_sets() {
        let documents = rendered(&["--values", set.to_str().unwrap()]);
        for deployment in of_kind(&documents, "Deployment") {
            let (name, spec) = (
                &deployment["metadata"]["name"],
                &deployment["spec"]["template"]["spec"],
            );
            assert_eq!(spec["securityContext"]["runAsNonRoot"], true, "{name}");
            assert_eq!(
                spec["securityContext"]["seccompProfile"]["type"], "RuntimeDefault",
                "{name}"
            );
            // OpenShift refuses a user outside of the range of the namespace; the images name one.
            for field in ["runAsUser", "runAsGroup", "fsGroup"] {
                assert_eq!(spec["securityContext"][field], Value::Null, "{name} {field}");
            }
            assert!(spec["affinity"]["podAntiAffinity"].is_object(), "{name}");
            assert_eq!(
                spec["serviceAccountName"], spec["containers"][0]["name"],
                "{name}"
            );
            for field in ["hostNetwork", "hostPID", "hostIPC", "volumes"] {
                assert_eq!(spec[field], Value::Null, "{name} {field}");
            }
            let [container] = &spec["containers"].as_array().unwrap()[..] else {
                panic!("{name} has one container");
            };
            let rights = json!({
                "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": { "drop": ["ALL"] }
            });
            assert_eq!(container["securityContext"], rights, "{name}");
            assert!(container["resources"]["requests"]["memory"].is_string(), "{name}");
            assert_eq!(
                container["readinessProbe"]["httpGet"]["path"], "/readyz",
                "{name}"
            );
        }
    }
}

#[test]
fn a_namespaced_release_asks_for_nothing_outside() {
    let documents = rendered(&[
        "--set",
        "namespaced=true,crds.install=false,networkPolicy.enabled=true",
    ]);
    assert!(documents.len() > 10);
    for document in &documents {
        assert_eq!(document["metadata"]["namespace"], NAMESPACE, "{document}");
    }
    for deployment in of_kind(&documents, "Deployment") {
        let flags = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
            .as_array()
            .unwrap();
        assert!(
            flags.contains(&json!(format!("--namespace={NAMESPACE}"))),
            "{flags:?}"
        );
    }
}

#[test]
fn budgets_have_the_version_that_the_cluster_knows() {
    let version = |kubernetes: &str| {
        let documents = rendered(&["--kube-version", kubernetes]);
        of_kind(&documents, "PodDisruptionBudget")[0]["apiVersion"].clone()
    };
    assert_eq!(version("1.20.15"), "policy/v1beta1");
    assert_eq!(version("1.21.0"), "policy/v1");
    assert_eq!(version("1.35.1"), "policy/v1");
}

/// The garbage collector needs no label for its deletions, whichever other users are exempt.
#[test]
fn naming_an_exempt_user_keeps_the_garbage_collector_exempt() {
    let documents = rendered(&[
        "--set",
        "admission.enabled=true,admission.guardExemptUsers={alice}",
    ]);
    let deployments = of_kind(&documents, "Deployment");
    let admission = deployments
        .iter()
        .find(|one| one["metadata"]["name"] == "hookgate-admission")
        .unwrap();
    let flags = admission["spec"]["template"]["spec"]["containers"][0]["args"].to_string();
    assert!(flags.contains("--guard-exempt-user=alice"), "{flags}");
    assert!(flags.contains("generic-garbage-collector"), "{flags}");
}

/// Whether all these labels are among the others.
fn within(wanted: &Value, given: &Value) -> bool {
    { wanted.as_object().unwrap().iter() }.all(|(name, value)| given[name] == *value)
}

/// Each shard occurs once, with its own budget; the Service and the network policy cover all of them.
#[test]
fn shards_share_everything_but_their_pods() {
    let documents = rendered(&["--set", "hookOperator.shards=3,networkPolicy.enabled=true"]);
    let deployments = of_kind(&documents, "Deployment");
    let template = |deployment: &Value| deployment["spec"]["template"].clone();
    let shards = |deployment: &Value| {
        let flags = template(deployment)["spec"]["containers"][0]["args"].clone();
        let flags: Vec<String> = serde_json::from_value(flags).unwrap();
        flags
            .into_iter()
            .filter(|flag| flag.starts_with("--shard"))
            .collect::<Vec<_>>()
    };
    let all: Vec<(String, Vec<String>)> = deployments
        .iter()
        .map(|one| (one["metadata"]["name"].as_str().unwrap().to_owned(), shards(one)))
        .collect();
    let shard = |index| {
        (
            format!("hook-operator-shard-{index}"),
            vec![format!("--shard={index}/3")],
        )
    };
    assert_eq!(
        all,
        [
            ("gamedeployment-operator".to_owned(), vec![]),
            shard(0),
            shard(1),
            shard(2)
        ]
    );
    let found = |selector: &Value| {
        let labels = |one: &&&Value| within(selector, &template(one)["metadata"]["labels"]);
        deployments.iter().filter(labels).count()
    };
    for deployment in &deployments {
        assert_eq!(
            found(&deployment["spec"]["selector"]["matchLabels"]),
            1,
            "{deployment}"
        );
    }
    let budgets = of_kind(&documents, "PodDisruptionBudget");
    assert_eq!(budgets.len(), 4);
    for budget in budgets {
        assert_eq!(found(&budget["spec"]["selector"]["matchLabels"]), 1, "{budget}");
    }
    for (kind, selector) in [
        ("Service", "/spec/selector"),
        ("NetworkPolicy", "/spec/podSelector/matchLabels"),
    ] {
        let counts = of_kind(&documents, kind)
            .into_iter()
            .map(|one| found(one.pointer(selector).unwrap()));
        assert_eq!(counts.sum::<usize>(), 4, "{kind}");
    }
}

/// A Service selects its pods, and the monitor selects the Services.
#[test]
fn metrics_are_found() {
    let documents = rendered(&[
        "--set",
        "admission.enabled=true,monitoring.serviceMonitor.enabled=true",
    ]);
    let monitor = of_kind(&documents, "ServiceMonitor")[0];
    let services = of_kind(&documents, "Service");
    assert_eq!(services.len(), 3);
    for service in services {
        assert!(
            within(
                &monitor["spec"]["selector"]["matchLabels"],
                &service["metadata"]["labels"]
            ),
            "{service}"
        );
        let ports = service["spec"]["ports"].as_array().unwrap();
        assert!(
            ports
                .iter()
                .any(|port| port["name"] == monitor["spec"]["endpoints"][0]["port"]),
            "{service}"
        );
        let found = of_kind(&documents, "Deployment")
            .into_iter()
            .filter(|deployment| {
                within(
                    &service["spec"]["selector"],
                    &deployment["spec"]["template"]["metadata"]["labels"],
                )
            });
        assert_eq!(found.count(), 1, "{service}");
    }
}

/// Returns the flags of hook-operator that begin with one of these texts.
fn flags_of_hooks(documents: &[Value], beginnings: &[&str]) -> Vec<String> {
    let deployments = of_kind(documents, "Deployment");
    let hooks = deployments
        .iter()
        .find(|one| one["metadata"]["name"] == "hook-operator");
    let flags = hooks.unwrap()["spec"]["template"]["spec"]["containers"][0]["args"].clone();
    let flags: Vec<String> = serde_json::from_value(flags).unwrap();
    let is_wanted = |flag: &String| beginnings.iter().any(|beginning| flag.starts_with(beginning));
    flags.into_iter().filter(is_wanted).collect()
}

/// Impersonation is granted only where it is asked for, with the rule of `deploy/rbac-hooks.yaml`.
#[test]
fn optional_providers_are_off_unless_they_are_asked_for() {
    let plain: Vec<Value> =
        serde_saphyr::from_multiple(include_str!("../../../deploy/rbac-hooks.yaml")).unwrap();
    let wanted = &of_kind(&plain, "ClusterRole")[0]["rules"][0];
    assert_eq!(wanted["verbs"], json!(["impersonate"]));
    let is_granted = |documents: &[Value], kind: &str| {
        let roles = of_kind(documents, kind);
        let mut granted = roles.iter().flat_map(|role| role["rules"].as_array().unwrap());
        granted.any(|rule| rule == wanted)
    };
    let (job, kubernetes, exec) = (
        "hookOperator.providerJob=true",
        "hookOperator.providerKubernetes=true",
        "hookOperator.providerExec=true",
    );
    let all = format!("{exec},{job},{kubernetes}");
    for (values, flags) in [
        ("log.level=info", &[][..]),
        (job, &["--provider-job"][..]),
        (kubernetes, &["--provider-kubernetes"][..]),
        (exec, &["--provider-exec"][..]),
        ("hookOperator.executionHooks=true", &["--execution-hooks"][..]),
        (
            all.as_str(),
            &["--provider-job", "--provider-kubernetes", "--provider-exec"][..],
        ),
    ] {
        for (namespaced, kind, other) in [(false, "ClusterRole", "Role"), (true, "Role", "ClusterRole")] {
            let documents = rendered(&["--set", &format!("namespaced={namespaced},{values}")]);
            assert_eq!(
                flags_of_hooks(&documents, &["--provider", "--execution"]),
                flags,
                "{values}"
            );
            assert_eq!(is_granted(&documents, kind), !flags.is_empty(), "{values} {kind}");
            assert!(!is_granted(&documents, other), "{values} {other}");
        }
    }
}

#[test]
fn hooks_may_set_only_the_annotations_that_are_listed() {
    let found = |values: &str| {
        let values = format!("hookOperator.providerKubernetes=true,{values}");
        flags_of_hooks(&rendered(&["--set", &values]), &["--patch"])
    };
    assert_eq!(found("log.level=info"), [""; 0]);
    assert_eq!(
        found("hookOperator.patchAnnotations={games.example.com/,drain}"),
        ["--patch-annotations=games.example.com/,drain"]
    );
}

/// A webhook that fails closed must be called only for hooks that act in the cluster. Older API servers cannot select
/// them.
#[test]
fn authors_are_checked_with_failure_closed_where_the_api_server_can_select_hooks() {
    for (kubernetes, policy, conditions) in [
        ("1.20.2", "Ignore", 0),
        ("1.27.9", "Ignore", 0),
        ("1.28.0", "Fail", 3),
    ] {
        let set = "admission.enabled=true,admission.workloadOperatorUsers={a,b}";
        let documents = rendered(&["--kube-version", kubernetes, "--set", set]);
        let configurations = of_kind(&documents, "ValidatingWebhookConfiguration");
        let webhooks = configurations[0]["webhooks"].as_array().unwrap();
        let mut authors = webhooks
            .iter()
            .filter(|webhook| webhook["name"].as_str().unwrap().starts_with("authors."));
        let authors = authors.next().unwrap();
        assert_eq!(authors["failurePolicy"], policy, "{kubernetes}");
        let found = authors["matchConditions"].as_array().map_or(0, Vec::len);
        assert_eq!(found, conditions, "{kubernetes}");
        if conditions > 0 {
            let acts = &authors["matchConditions"][0];
            assert_eq!(acts["name"], "acts-in-the-cluster");
            for provider in [
                "h.jobSpec",
                "h.execNewPod",
                "m.provider.job",
                "m.provider.kubernetes",
                "m.provider.exec",
            ] {
                let expression = acts["expression"].as_str().unwrap();
                assert!(expression.contains(&format!("has({provider})")), "{expression}");
            }
            let users = authors["matchConditions"][2]["expression"].as_str().unwrap();
            assert!(users.contains(r#"in ["a","b"]"#), "{users}");
        }
    }
}

/// Without its own user, gamedeployment-operator could not delete guarded pods.
#[test]
fn the_removal_guard_is_off_unless_enabled_and_always_has_the_user_of_the_operator() {
    let operator = "--removal-operator-user=system:serviceaccount:hookgate:gamedeployment-operator";
    for (values, flags) in [
        ("log.level=info", vec![]),
        (
            "admission.removalGuard.enabled=true",
            vec!["--removal-guard", operator],
        ),
        (
            "admission.removalGuard.enabled=true,admission.workloadOperatorUsers={alice}",
            vec!["--removal-guard", "--workload-operator-user=alice"],
        ),
        (
            "admission.removalGuard.enabled=true,admission.removalGuard.operatorUsers={bob},\
             admission.workloadOperatorUsers={alice}",
            vec![
                "--removal-guard",
                "--removal-operator-user=bob",
                "--workload-operator-user=alice",
            ],
        ),
    ] {
        let documents = rendered(&["--set", &format!("admission.enabled=true,{values}")]);
        let of_admission = |kind: &str| {
            let found = of_kind(&documents, kind).into_iter();
            let mut found = found.filter(|one| one["metadata"]["name"] == "hookgate-admission");
            found.next().unwrap().clone()
        };
        let deployment = of_admission("Deployment");
        let args = &deployment["spec"]["template"]["spec"]["containers"][0]["args"];
        let args: Vec<&str> = args
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let is_guard = |flag: &&str| flag.starts_with("--removal") || flag.starts_with("--workload");
        let found: Vec<&str> = args.into_iter().filter(is_guard).collect();
        assert_eq!(found, flags, "{values}");
        let is_enabled = !flags.is_empty();
        let role = of_admission("ClusterRole")["rules"].to_string();
        assert_eq!(role.contains(r#""resources":["pods"]"#), is_enabled, "{values}");
        let configuration = of_admission("ValidatingWebhookConfiguration");
        let webhooks = configuration["webhooks"].as_array().unwrap().iter();
        let guards = webhooks.filter(|webhook| {
            let path = &webhook["clientConfig"]["service"]["path"];
            path == "/removals" && webhook["failurePolicy"] == "Fail" && webhook["timeoutSeconds"] == 5
        });
        assert_eq!(guards.count(), if is_enabled { 4 } else { 0 }, "{values}");
    }
}

/// Its own deletions need no webhook where the API server can tell them from others.
#[test]
fn the_removal_guard_is_not_called_for_deletions_by_the_operator_and_changes_no_other_check() {
    let users = r#"["system:serviceaccount:hookgate:gamedeployment-operator"]"#;
    for (kubernetes, values, users) in [
        ("1.27.9", "log.level=info", None),
        ("1.28.0", "log.level=info", Some(users)),
        (
            "1.28.0",
            "admission.workloadOperatorUsers={alice}",
            Some(r#"["alice"]"#),
        ),
        (
            "1.28.0",
            "admission.workloadOperatorUsers={alice},admission.removalGuard.operatorUsers={bob,eve}",
            Some(r#"["bob","eve"]"#),
        ),
    ] {
        let webhook = |name: &str, guard: bool| {
            let set = format!("admission.enabled=true,admission.removalGuard.enabled={guard},{values}");
            let documents = rendered(&["--kube-version", kubernetes, "--set", &set]);
            let configurations = of_kind(&documents, "ValidatingWebhookConfiguration");
            let webhooks = configurations[0]["webhooks"].as_array().unwrap();
            let found = webhooks
                .iter()
                .find(|webhook| webhook["name"].as_str().unwrap().starts_with(name));
            found.unwrap().clone()
        };
        let removals = webhook("removals.", true);
        let conditions = removals["matchConditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let by_the_operator = conditions
            .iter()
            .find(|condition| condition["name"] == "is-not-by-the-operator");
        let expression = by_the_operator.map(|condition| condition["expression"].as_str().unwrap());
        let wanted = users.map(|users| {
            format!(
                "!(request.userInfo.username in {users}) || !has(request.options) || \
                 !has(request.options.preconditions) || !has(request.options.preconditions.uid)"
            )
        });
        assert_eq!(expression, wanted.as_deref(), "{kubernetes} {values}");
        assert_eq!(webhook("authors.", true), webhook("authors.", false));
    }
}
