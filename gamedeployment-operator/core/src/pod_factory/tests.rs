use super::*;
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
