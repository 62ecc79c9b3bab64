//! Tests of the `FlowSchema`: its version, when it is left out, and which calls an API server serves by it.

use test_kit::{ControlPlane, eventually};

use crate::{CHART, helm, of_kind, rendered};

#[test]
fn it_has_the_version_that_the_cluster_knows() {
    for (kubernetes, version) in [
        ("1.20.2", "v1beta1"),
        ("1.22.9", "v1beta1"),
        ("1.23.0", "v1beta2"),
        ("1.25.9", "v1beta2"),
        ("1.26.0", "v1beta3"),
        ("1.28.9", "v1beta3"),
        ("1.29.0", "v1"),
        ("1.36.1", "v1"),
    ] {
        let documents = rendered(&["--kube-version", kubernetes]);
        let [schema] = of_kind(&documents, "FlowSchema")[..] else {
            panic!("{kubernetes}: one FlowSchema");
        };
        let wanted = format!("flowcontrol.apiserver.k8s.io/{version}");
        assert_eq!(schema["apiVersion"], wanted, "{kubernetes}");
    }
}

/// Without rights on the cluster, one more object of the cluster would make the installation fail.
#[test]
fn it_is_left_out_where_it_cannot_be_created() {
    for values in [
        "flowSchema.enabled=false",
        "namespaced=true,crds.install=false",
        "rbac.create=false",
    ] {
        let documents = rendered(&["--set", values]);
        assert_eq!(of_kind(&documents, "FlowSchema").len(), 0, "{values}");
    }
}

#[tokio::test]
async fn an_api_server_serves_only_leases_at_the_level_of_leader_election() {
    let control_plane = ControlPlane::shared(shared_api::crd::all).await;
    let namespace = control_plane.namespace("flow-schema").await;
    let version = format!("1.{}.0", control_plane.minor_version());
    let template = ["template", "hookgate", CHART, "--namespace", namespace.as_str()];
    let shown = [
        "--kube-version",
        version.as_str(),
        "--show-only",
        "templates/flow-schema.yaml",
    ];
    let text = helm(&[&template[..], &shown].concat()).unwrap();
    // Another test's FlowSchema may have the chart's name.
    let named = text.replace("name: hookgate-leader-election", &format!("name: {namespace}"));
    let _ = operator_tests::kubectl(control_plane, &["apply", "--filename", "-"], &named);

    let uid_of = |kind: &str, name: &str| {
        let ask = ["get", kind, name, "--output", "jsonpath={.metadata.uid}"];
        operator_tests::kubectl(control_plane, &ask, "").trim().to_owned()
    };
    let (schema, level) = (
        uid_of("flowschemas", &namespace),
        uid_of("prioritylevelconfigurations", "leader-election"),
    );
    for operator in ["gamedeployment-operator", "hook-operator"] {
        let served = |path: &str| served_by(control_plane, &namespace, operator, path);
        let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
        eventually(operator_tests::SOON, || async {
            let (found, at) = served(&leases);
            if found == schema && at == level {
                Ok(())
            } else {
                Err(format!(
                    "{operator}: leases are served by {found} at {at}, and not by {schema}"
                ))
            }
        })
        .await;
        let one = served(&format!("{leases}/{operator}"));
        assert_eq!(one, (schema.clone(), level.clone()), "{operator}");
        for other in [
            format!("/api/v1/namespaces/{namespace}/pods"),
            "/apis/coordination.k8s.io/v1/namespaces/default/leases".to_owned(),
        ] {
            let (found, at) = served(&other);
            assert!(
                !found.is_empty() && found != schema && at != level,
                "{operator}: {other}"
            );
        }
    }
    let _ = operator_tests::kubectl(control_plane, &["delete", "flowschemas", &namespace], "");
}

/// Returns the UIDs of the `FlowSchema` and the priority level by which an operator's request is served, even if
/// it is refused.
fn served_by(control_plane: &ControlPlane, namespace: &str, operator: &str, path: &str) -> (String, String) {
    let user = format!("system:serviceaccount:{namespace}:{operator}");
    let groups = ["system:serviceaccounts", "system:authenticated"];
    let kubeconfig = control_plane.kubeconfig_as(&user, &groups).unwrap();
    let output = control_plane
        .kubectl()
        .env("KUBECONFIG", kubeconfig)
        // Prints the headers of the response.
        .args(["get", "--raw", path, "--v=8"])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let header = |name: &str| {
        let value = said
            .lines()
            .find_map(|line| line.split_once(name))
            .map(|(_, uid)| uid.trim().to_owned());
        value.unwrap_or_default()
    };
    (
        header("X-Kubernetes-Pf-Flowschema-Uid: "),
        header("X-Kubernetes-Pf-Prioritylevel-Uid: "),
    )
}
