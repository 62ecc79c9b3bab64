//! A user drains a node: guarded pods leave once their hooks succeed, others are evicted.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{Api, ResourceExt};
use operator_tests::fleet::{GAME, game, hooked, until_empty};
use operator_tests::{Fleet, assert_has, merge};
use serde_json::{Value, json};
use shared_api::crd;
use shared_api::names::pod::REMOVAL_REQUESTED;
use shared_api::removal_request::{RemovalRequests, RemovalType};
use test_kit::ControlPlane;
use test_kit::node::Options;

use crate::PROGRAMS;
use crate::plugin::Plugin;

/// A workload on the first of two nodes.
struct OnNode {
    fleet: Fleet<'static>,
    node: String,
    /// Names of the pods.
    pods: BTreeSet<String>,
}

impl OnNode {
    /// Launches a workload with this policy on the first node. No player is on its pods.
    async fn launch(replicas: usize, policy: &str) -> Self {
        let options = Options {
            nodes: 2,
            ..Options::default()
        };
        let control_plane = ControlPlane::shared(crd::all).await;
        let fleet = Fleet::with(control_plane, PROGRAMS, "plugin", options).await;
        fleet.hook("empty", until_empty()).await;
        let [node, other]: [String; 2] = fleet.nodes.node_names().try_into().unwrap();
        let mut spec = hooked("empty");
        merge(
            &mut spec,
            json!({ "disruption": { "policy": policy }, "updateStrategy": { "maxUnavailable": replicas } }),
        );
        let _ = fleet.kubectl(&["cordon", &other], "");
        fleet.launch(&game(replicas, spec)).await;
        let _ = fleet.kubectl(&["uncordon", &other], "");
        let pods = fleet.names().await;
        Self { fleet, node, pods }
    }

    fn plugin(&self) -> Plugin<'_> {
        Plugin { fleet: &self.fleet }
    }

    /// Formats a pod as the command does.
    fn label(&self, pod: &str) -> String {
        format!("{}/{pod}", self.fleet.namespace)
    }

    async fn is_cordoned(&self) -> bool {
        let nodes: Api<Node> = Api::all(self.fleet.client());
        let node = nodes.get(&self.node).await.unwrap();
        node.spec.and_then(|spec| spec.unschedulable).unwrap_or_default()
    }

    /// Returns the types of the removal requests of a pod.
    async fn requests(&self, pod: &str) -> Vec<RemovalType> {
        let pod = self.fleet.pods().get(pod).await.unwrap();
        let text = pod.annotations().get(REMOVAL_REQUESTED);
        let requests = text.map(|text| RemovalRequests::parse(text).unwrap());
        let requests = requests.unwrap_or_default();
        requests.iter().map(|request| request.type_).collect()
    }

    /// Ends all matches once no request is left. Checks that no pod was deleted, and that nothing is left to do.
    async fn assert_kept(&self) {
        self.fleet
            .until(|status| status.removal_requests.is_empty())
            .await;
        self.fleet.nodes.every_pod().set_players(0);
        self.fleet.settled(self.pods.len()).await;
        assert_eq!(self.fleet.names().await, self.pods);
        assert_eq!(self.fleet.nodes.terminated_pods(), BTreeSet::new());
    }
}

#[tokio::test]
async fn idle_pods_leave_at_once_and_the_busy_one_when_its_match_ends() {
    let on_node = OnNode::launch(3, "Ask").await;
    let OnNode { fleet, node, pods } = &on_node;
    let busy = pods.first().unwrap();
    fleet.nodes.pod(busy).set_players(2);
    let plugin = on_node.plugin();
    let preview = plugin.ok(&format!("drain {node} --dry-run")).await;
    assert_has(&preview, &format!("node/{node} would be cordoned\n"));
    let words = "removal would be requested; the pod is deleted once its PreDelete hook succeeds\n";
    assert_has(&preview, &format!("{}: {words}", on_node.label(busy)));
    assert!(!on_node.is_cordoned().await && on_node.requests(busy).await.is_empty());

    let words = format!("drain node/{node}");
    let match_ends = async {
        let only_busy = |pod: &&String| *pod == busy;
        fleet
            .until_pods(|now| {
                let left: Vec<&String> = pods.iter().filter(|pod| now.contains_key(*pod)).collect();
                left.len() == 1 && left.iter().all(only_busy)
            })
            .await;
        assert_eq!(on_node.requests(busy).await, [RemovalType::Manual]);
        fleet.nodes.pod(busy).set_players(0);
    };
    let (said, ()) = tokio::join!(plugin.ok(&words), match_ends);
    assert!(said.starts_with(&format!("node/{node} cordoned\n")), "{said}");
    for pod in pods {
        let label = on_node.label(pod);
        assert_has(&said, &format!("{label}: removal requested\n"));
        assert_eq!(said.matches(&format!("{label}: removed\n")).count(), 1, "{said}");
    }
    assert_has(&said, &format!("\nnode/{node} drained: 3 pods removed\n"));
    assert_has(&said, &format!("kubectl uncordon {node}\n"));
    assert!(on_node.is_cordoned().await);
    fleet.settled(3).await;
    assert_eq!(&fleet.nodes.terminated_pods(), pods);
    let successors = fleet.nodes.pods().into_iter();
    let mut hosts = successors
        .filter(|pod| !pods.contains(&pod.name))
        .map(|pod| pod.node);
    assert!(hosts.all(|host| host.is_some_and(|host| host != *node)));

    let again = plugin.ok(&format!("drain {node}")).await;
    assert_has(&again, &format!("node/{node} is already cordoned\n"));
    assert_has(&again, &format!("node/{node} drained: 0 pods removed\n"));
}

#[tokio::test]
async fn a_drain_that_times_out_lists_the_pods_and_is_undone() {
    let on_node = OnNode::launch(2, "Ask").await;
    let OnNode { fleet, node, pods } = &on_node;
    fleet.nodes.every_pod().set_players(1);
    let plugin = on_node.plugin();
    let late = plugin.run(&format!("drain {node} --timeout 10s")).await;
    assert_eq!(late.code, 3, "{late:?}");
    assert_has(&late.err, "not drained after 10s; 2 pods are left:\n");
    let next = format!(
        "to continue: kubectl game drain {node}; to undo the drain: kubectl game drain {node} --undo\n"
    );
    assert_has(&late.err, &next);
    fleet
        .until(|status| {
            let requests = status.removal_requests.iter();
            requests.filter(|request| request.message.is_some()).count() == 2
        })
        .await;
    let late = plugin.run(&format!("drain {node} -t 10s")).await;
    assert_eq!(late.code, 3, "{late:?}");
    for pod in pods {
        let waiting = format!("{}: waiting for the verdict of HookRun ", on_node.label(pod));
        assert_eq!(late.out.matches(&waiting).count(), 1, "{late:?}");
        assert_has(&late.err, &waiting);
        assert_eq!(on_node.requests(pod).await, [RemovalType::Manual]);
    }
    assert_has(&late.err, "removal requests that are not repeated expire");

    let preview = plugin.ok(&format!("drain {node} --undo --dry-run")).await;
    assert_has(&preview, &format!("node/{node} would be uncordoned\n"));
    assert_eq!(
        preview
            .matches(": the removal request would be withdrawn\n")
            .count(),
        2
    );
    assert!(on_node.is_cordoned().await);
    let undone = plugin.ok(&format!("drain {node} --undo")).await;
    assert!(
        undone.starts_with(&format!("node/{node} uncordoned\n")),
        "{undone}"
    );
    for pod in pods {
        let withdrawn = format!("{}: removal request withdrawn\n", on_node.label(pod));
        assert_has(&undone, &withdrawn);
        assert!(on_node.requests(pod).await.is_empty());
    }
    assert!(!on_node.is_cordoned().await);
    on_node.assert_kept().await;
    let nothing = plugin.ok(&format!("drain {node} --undo")).await;
    assert_has(&nothing, &format!("node/{node} is not cordoned\n"));
    assert_has(&nothing, "no removal requests of ");
}

/// Both write the annotations of the same pods at the same time.
#[tokio::test]
async fn two_users_drain_a_node_and_each_withdraws_the_own_requests() {
    let on_node = OnNode::launch(4, "Ask").await;
    let OnNode { fleet, node, pods } = &on_node;
    fleet.nodes.every_pod().set_players(1);
    let plugin = on_node.plugin();
    let jane = "--as jane --as-group system:masters";
    let one = format!("drain {node} --timeout 15s");
    let other = format!("{one} {jane}");
    let (one, other) = tokio::join!(plugin.run(&one), plugin.run(&other));
    assert_eq!((one.code, other.code), (3, 3), "{one:?} {other:?}");
    assert_has(
        &other.err,
        &format!("kubectl game drain {node} --undo --as jane\n"),
    );
    for pod in pods {
        assert_eq!(on_node.requests(pod).await, [RemovalType::Manual; 2]);
    }
    let undone = plugin.ok(&format!("drain {node} --undo {jane}")).await;
    let left = ": removal request withdrawn; requests of others are left: ";
    assert_eq!(undone.matches(left).count(), 4, "{undone}");
    for pod in pods {
        assert_eq!(on_node.requests(pod).await, [RemovalType::Manual]);
    }
    let undone = plugin.ok(&format!("drain {node} --undo")).await;
    assert_eq!(
        undone.matches(": removal request withdrawn\n").count(),
        4,
        "{undone}"
    );
    on_node.assert_kept().await;
}

/// Returns a pod on a node, without a controller and with a volume whose data is lost with it.
fn bare_pod(node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "bare" },
        "spec": {
            "nodeName": node,
            "containers": [{ "name": "main", "image": "main:v1" }],
            "volumes": [{ "name": "cache", "emptyDir": {} }]
        }
    })
}

#[tokio::test]
async fn pods_that_would_be_lost_without_a_hook_are_refused_before_the_cordon() {
    let on_node = OnNode::launch(2, "Unguarded").await;
    let OnNode { fleet, node, pods } = &on_node;
    fleet.nodes.every_pod().set_players(1);
    fleet.apply(&bare_pod(node));
    let is_running = |pod: &Pod| {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        phase == Some("Running")
    };
    fleet
        .until_pods(|pods| pods.get("bare").is_some_and(is_running))
        .await;
    let namespace = &fleet.namespace;
    let plugin = on_node.plugin();
    let refused = plugin.refused(&format!("drain {node}")).await;
    assert_has(
        &refused,
        &format!("error: node/{node} cannot be drained, because"),
    );
    let unguarded =
        format!("- 2 pods of GameDeployment {namespace}/{GAME}: spec.disruption.policy is Unguarded;");
    assert_has(&refused, &unguarded);
    assert_has(&refused, "- 1 pod without a controller, ");
    assert_has(&refused, "- 1 pod with emptyDir volumes, ");
    let flags = "--force --delete-emptydir-data";
    let refused = plugin.refused(&format!("drain {node} {flags} --dry-run")).await;
    assert_has(&refused, &unguarded);
    assert!(!refused.contains("emptyDir"), "{refused}");
    assert!(!on_node.is_cordoned().await);
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::new());

    let refused = plugin.refused(&format!("drain {node} --as jane")).await;
    assert_has(
        &refused,
        "\"jane\" is not allowed to get nodes; ask an administrator",
    );
    let unknown = plugin.refused("drain nowhere").await;
    assert_has(
        &unknown,
        "no Node named \"nowhere\"; to list the nodes: kubectl get nodes",
    );

    let said = plugin
        .ok(&format!("drain {node} {flags} --evict-unguarded"))
        .await;
    for pod in pods.iter().map(String::as_str).chain(["bare"]) {
        assert_has(&said, &format!("{}: evicted\n", on_node.label(pod)));
        assert_has(&said, &format!("{}: removed\n", on_node.label(pod)));
    }
    assert_has(&said, &format!("node/{node} drained: 3 pods removed\n"));
    fleet.settled(2).await;
    assert!(pods.is_subset(&fleet.nodes.terminated_pods()));
}
