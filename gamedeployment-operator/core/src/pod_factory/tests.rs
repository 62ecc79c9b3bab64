use super::*;
use crate::cluster::{FoundTemplate, Node};
use crate::pod::Pod;
use crate::samples::{FakeCluster, template, workload};

fn strings(list: &[&str]) -> BTreeSet<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}

fn named(name: &str) -> Workload {
    workload(&[("/metadata/name", json!(name))])
}

fn indexed() -> Workload {
    let at = |key: &str| format!("/metadata/annotations/tkex.bkbcs.tencent.com~1gamedeployment-index-{key}");
    let range = json!(r#"{"podStartIndex":4,"podEndIndex":7}"#);
    workload(&[
        (&at("on"), json!("true")),
        (&at("range"), range),
        ("/spec/replicas", json!(3)),
    ])
}

fn some(
    workload: &Workload,
    around: &FakeCluster,
    count: usize,
    taken: &[&str],
    indexes: &[i64],
) -> Vec<NewPod> {
    let mut factory = PodFactory::new(
        workload,
        around,
        strings(taken),
        indexes.iter().copied().collect(),
    );
    let template = Template::read(&template("game:v1"));
    (0..count).map_while(|_| factory.pod("new", &template)).collect()
}

fn names(pods: &[NewPod]) -> Vec<&str> {
    pods.iter().map(|pod| pod.name.as_str()).collect()
}

fn id(name: &str) -> &str {
    name.rsplit('-').next().unwrap()
}

#[test]
fn the_same_decision_taken_twice_asks_for_the_same_pods() {
    let (workload, around) = (named("fleet"), FakeCluster::default());
    let first = some(&workload, &around, 50, &[], &[]);
    assert_eq!(first, some(&workload, &around, 50, &[], &[]));
    let different: BTreeSet<&str> = names(&first).into_iter().collect();
    assert_eq!(different.len(), 50);
}

#[test]
fn another_generation_and_another_workload_have_other_names() {
    let around = FakeCluster::default();
    let base = some(&named("fleet"), &around, 1, &[], &[]);
    for (path, value) in [
        ("/metadata/generation", json!(2)),
        ("/metadata/uid", json!("other")),
    ] {
        let other = some(&workload(&[(path, value)]), &around, 1, &[], &[]);
        assert_ne!(names(&base), names(&other), "{path}");
    }
}

#[test]
fn names_are_the_workloads_with_five_characters_that_make_no_words() {
    for pod in some(&named("fleet"), &FakeCluster::default(), 500, &[], &[]) {
        let id = pod.name.strip_prefix("fleet-").unwrap();
        assert_eq!(id.len(), 5);
        assert!(id.chars().all(|char| ALPHABET.contains(&char)), "{id}");
        assert_eq!(pod.manifest["metadata"]["labels"][label::INSTANCE], id);
        assert_eq!(pod.manifest["metadata"]["labels"][label::REVISION], "new");
        assert_eq!(pod.manifest["metadata"]["name"], pod.name);
    }
}

#[test]
fn an_id_or_a_name_that_is_in_use_is_left_out_and_the_others_stay_the_same() {
    let (workload, free) = (named("fleet"), FakeCluster::default());
    let all = some(&workload, &free, 4, &[], &[]);
    let of_a_run = id(&all[0].name);
    let of_a_pod = FakeCluster {
        pods: vec![all[2].name.clone()],
        ..FakeCluster::default()
    };
    let rest = some(&workload, &of_a_pod, 2, &[of_a_run], &[]);
    assert_eq!(names(&rest), [all[1].name.as_str(), &all[3].name]);
}

#[test]
fn a_long_name_is_cut_so_that_the_pods_can_be_a_host_name() {
    let table = [
        ("a".repeat(57), "a".repeat(57)),
        ("a".repeat(58), "a".repeat(57)),
        (format!("{}-{}", "a".repeat(56), "b".repeat(20)), "a".repeat(56)),
        (format!("{}.-{}", "a".repeat(55), "b".repeat(20)), "a".repeat(55)),
    ];
    for (workload, wanted) in table {
        assert_eq!(prefix(&workload), wanted);
        let pods = some(&named(&workload), &FakeCluster::default(), 1, &[], &[]);
        assert!(pods[0].name.len() <= MAX_NAME_LEN, "{}", pods[0].name);
    }
}

#[test]
fn pods_get_the_lowest_free_index_and_none_beyond_the_range() {
    let around = FakeCluster::default();
    let index = |pod: &NewPod| pod.manifest["metadata"]["annotations"][label::INDEX].clone();
    let pods = some(&indexed(), &around, 9, &[], &[]);
    assert_eq!(pods.iter().map(index).collect::<Vec<_>>(), ["4", "5", "6"]);
    let pods = some(&indexed(), &around, 9, &[], &[4, 6, 90]);
    assert_eq!(pods.iter().map(index).collect::<Vec<_>>(), ["5"]);
    let pods = some(&named("fleet"), &around, 1, &[], &[]);
    assert_eq!(pods[0].manifest["metadata"].get("annotations"), None);
}

#[test]
fn every_container_knows_its_pods_index_before_its_other_variables() {
    let around = FakeCluster::default();
    let raw = json!({
        "metadata": {"labels": {"app": "game"}, "annotations": {"note": "kept"}},
        "spec": {"containers": [
            {"name": "game", "env": [{"name": "POD_INDEX", "value": "9"}, {"name": "PORT", "value": "80$(POD_INDEX)"}]},
            {"name": "side"},
        ]},
    });
    let workload = indexed();
    let mut factory = PodFactory::new(&workload, &around, BTreeSet::new(), BTreeSet::new());
    let pod = factory.pod("new", &Template::read(&raw)).unwrap().manifest;
    let index = json!({"name": "POD_INDEX", "value": "4"});
    let port = json!({"name": "PORT", "value": "80$(POD_INDEX)"});
    assert_eq!(pod["spec"]["containers"][0]["env"], json!([index, port]));
    assert_eq!(pod["spec"]["containers"][1]["env"], json!([index]));
    assert_eq!(pod["metadata"]["annotations"]["note"], "kept");
}

#[test]
fn a_pod_is_its_template_with_owner_and_readiness_gate_and_keeps_unknown_fields() {
    let around = FakeCluster::default();
    let raw = json!({
        "metadata": {"labels": {"app": "game"}, "finalizers": ["game/wait"]},
        "spec": {"containers": [{"name": "game"}], "newField": {"x": 1}, "readinessGates": [{"conditionType": "db"}]},
    });
    let make = |workload: &Workload| {
        let mut factory = PodFactory::new(workload, &around, BTreeSet::new(), BTreeSet::new());
        factory.pod("new", &Template::read(&raw)).unwrap().manifest
    };
    let pod = make(&named("fleet"));
    assert_eq!(pod["spec"]["newField"], json!({"x": 1}));
    assert_eq!(pod["metadata"]["finalizers"], json!(["game/wait"]));
    assert_eq!(pod["metadata"]["namespace"], "games");
    let owner = &pod["metadata"]["ownerReferences"][0];
    assert_eq!(
        (&owner["uid"], &owner["controller"]),
        (&json!("gd-uid"), &json!(true))
    );
    let gates = json!([{"conditionType": "db"}, {"conditionType": "InPlaceUpdateReady"}]);
    assert_eq!(pod["spec"]["readinessGates"], gates);
    let without = make(&workload(&[("/spec/disableReadinessGate", json!(true))]));
    assert_eq!(
        without["spec"]["readinessGates"],
        json!([{"conditionType": "db"}])
    );
}

/// A cluster whose API server serves Evictions.
struct ServesEvictions(FakeCluster);

impl Cluster for ServesEvictions {
    fn template(&self, name: &str) -> FoundTemplate<'_> {
        self.0.template(name)
    }

    fn node(&self, name: &str) -> Node {
        self.0.node(name)
    }

    fn serves_evictions(&self) -> bool {
        true
    }

    fn node_cost(&self, name: &str) -> Option<f64> {
        self.0.node_cost(name)
    }

    fn is_new_question(&self, pod: &Pod) -> bool {
        self.0.is_new_question(pod)
    }

    fn has_run(&self, namespace: &str, name: &str) -> bool {
        self.0.has_run(namespace, name)
    }

    fn has_pod(&self, name: &str) -> bool {
        self.0.has_pod(name)
    }
}

/// A workload with this policy and a `PreDelete` hook.
fn with_policy(policy: &str) -> Workload {
    let hook = json!({ "hook": { "templateName": "ask" } });
    workload(&[
        ("/spec/disruption/policy", json!(policy)),
        ("/spec/preDeleteUpdateStrategy", hook),
    ])
}

/// Returns the responders of two new pods of a template with these fields of its spec, or null if they have none.
fn responders(cluster: &dyn Cluster, workload: &Workload, fields: &Value) -> [Value; 2] {
    let mut raw = template("game:v1");
    for (field, value) in fields.as_object().unwrap() {
        raw["spec"][field] = value.clone();
    }
    let template = Template::read(&raw);
    let mut factory = PodFactory::new(workload, cluster, BTreeSet::new(), BTreeSet::new());
    let mut pod = || factory.pod("new", &template).unwrap().manifest;
    let manifests = [pod(), pod()];
    manifests.map(|pod| pod["spec"]["evictionResponders"].clone())
}

fn own_responder() -> Value {
    json!({ "name": "hookgate.tkex.tencent.com/gate", "priority": 10000 })
}

/// Returns this many responders of others.
fn other_responders(count: usize) -> Vec<Value> {
    let responders = (0..count).map(|at| json!({ "name": format!("acme.io/{at}"), "priority": 1000 }));
    responders.collect()
}

#[test]
fn guarded_pods_register_the_operator_as_a_responder() {
    let serves = ServesEvictions(FakeCluster::default());
    let ask = with_policy("Ask");
    let added = |fields: &Value| responders(&serves, &ask, fields);
    let own = json!([own_responder()]);
    assert_eq!(added(&json!({})), [own.clone(), own.clone()]);
    assert_eq!(
        added(&json!({ "evictionResponders": null })),
        [own.clone(), own.clone()]
    );
    assert_eq!(added(&json!({ "evictionResponders": [] })), [own.clone(), own]);
    let mut all = other_responders(9);
    let fields = json!({ "evictionResponders": all });
    all.push(own_responder());
    assert_eq!(added(&fields), [json!(all), json!(all)]);
}

#[test]
fn other_pods_keep_the_responders_of_the_template() {
    let serves = ServesEvictions(FakeCluster::default());
    let without = FakeCluster::default();
    let without_hook = workload(&[("/spec/disruption/policy", json!("Ask"))]);
    let (ask, unguarded) = (with_policy("Ask"), with_policy("Unguarded"));
    let group = json!({ "podGroupName": "match" });
    let table: [(&dyn Cluster, &Workload, Value); 4] = [
        (&without, &ask, json!({})),
        (&serves, &unguarded, json!({})),
        (&serves, &without_hook, json!({})),
        // The API does not support pods in a group.
        (&serves, &ask, json!({ "schedulingGroup": group })),
    ];
    for (cluster, workload, mut fields) in table {
        let none = [Value::Null, Value::Null];
        assert_eq!(responders(cluster, workload, &fields), none, "{fields}");
        let others = json!(other_responders(10));
        fields["evictionResponders"] = others.clone();
        let kept = [others.clone(), others];
        assert_eq!(responders(cluster, workload, &fields), kept, "{fields}");
    }
}

/// Such a template may have been recorded before the policy was set, and its pods are still replaced.
#[test]
fn pods_of_a_template_without_room_for_the_operator_are_valid() {
    let serves = ServesEvictions(FakeCluster::default());
    let ask = with_policy("Ask");
    let full = other_responders(10);
    let mut with_own = other_responders(2);
    with_own.push(json!({ "name": "hookgate.tkex.tencent.com/gate", "priority": 500 }));
    for kept in [full, with_own] {
        let fields = json!({ "evictionResponders": kept });
        assert_eq!(responders(&serves, &ask, &fields), [json!(kept), json!(kept)]);
    }
}

/// Returns the annotations of a new pod whose template has these annotations, or null if it has none.
fn annotations(workload: &Workload, template_annotations: &Value) -> Value {
    let mut raw = template("game:v1");
    raw["metadata"]["annotations"] = template_annotations.clone();
    let around = FakeCluster::default();
    let mut factory = PodFactory::new(workload, &around, BTreeSet::new(), BTreeSet::new());
    let pod = factory.pod("new", &Template::read(&raw)).unwrap().manifest;
    pod["metadata"]["annotations"].clone()
}

#[test]
fn new_pods_have_the_annotations_of_autoscalers_and_a_marker_for_those_of_the_operator() {
    const FIELD: &str = "/spec/disruption/autoscalerAnnotations";
    let hook = json!({ "hook": { "templateName": "ask" } });
    let managed = workload(&[
        (FIELD, json!("Managed")),
        ("/spec/preDeleteUpdateStrategy", hook.clone()),
    ]);
    let (first, second) = (label::SAFE_TO_EVICT, label::DO_NOT_DISRUPT);
    let both = format!("{first},{second}");
    let marker = label::AUTOSCALER_ANNOTATIONS;
    for (of_template, expected) in [
        (
            json!(null),
            json!({ first: "false", second: "true", marker: both }),
        ),
        (
            json!({ "note": "x" }),
            json!({ "note": "x", first: "false", second: "true", marker: both }),
        ),
        (
            json!({ first: "false" }),
            json!({ first: "false", second: "true", marker: second }),
        ),
        (
            json!({ first: "false", second: "true" }),
            json!({ first: "false", second: "true" }),
        ),
        // The template was recorded before the field was set.
        (
            json!({ first: "true", second: "true" }),
            json!({ first: "false", second: "true", marker: first }),
        ),
    ] {
        assert_eq!(annotations(&managed, &of_template), expected, "{of_template}");
    }
    let without_hook = workload(&[(FIELD, json!("Managed"))]);
    let unmanaged = workload(&[("/spec/preDeleteUpdateStrategy", hook)]);
    for workload in [without_hook, unmanaged] {
        for of_template in [json!(null), json!({ first: "true" })] {
            assert_eq!(annotations(&workload, &of_template), of_template);
        }
    }
}
