//! Deletions of objects that are deep, large or ambiguous. The guard opens for nothing that a plain reader of
//! JSON, which takes the last of repeated keys, would keep.

use operator_tests::assert_has;
use operator_tests::fleet::game;
use serde_json::{Value, json};
use shared_api::names::workload::DELETION_ALLOW;

use super::{
    Caller, NAME, Review, UID, apart, assert_answered, assert_names_the_way_out, beginning, keys, list,
    list_of, lists, objects, review, template, with_text,
};
use crate::deletion::goes_with_its_namespace;
use crate::installation::{Installation, run};
use crate::shared;

/// User whose deletions need no label.
const ROBOT: &str = "system:serviceaccount:kube-system:generic-garbage-collector";
const EXEMPT: &str = r#"{"username":"system:serviceaccount:kube-system:generic-garbage-collector"}"#;
/// The label that allows a deletion, as a member of an object.
const ALWAYS: &str = r#""io.tencent.bcs.dev/deletion-allow":"Always""#;
const CASCADING: &str = r#""io.tencent.bcs.dev/deletion-allow":"Cascading""#;

/// Returns the review of a deletion.
fn delete(namespace: &str, kind: &'static str, old: impl Into<String>) -> Review {
    Review::of(namespace, kind, "DELETE").old(old)
}

/// Adds labels to the text of an object, at the beginning of its metadata.
fn labelled(object: &str, labels: &str) -> String {
    let metadata = format!(r#""metadata":{{"labels":{{{labels}}},"generation":3,"#);
    object.replacen(r#""metadata":{"#, &metadata, 1)
}

/// Builds a workload with a field like this in its pod template, and no label.
fn workload(replicas: usize, comment: &str) -> String {
    let mut game = game(replicas, json!({}));
    game["metadata"] = json!({ "name": NAME });
    game["status"] = json!({ "replicas": replicas, "observedGeneration": 3 });
    with_text(game, "/spec/template/spec/comment", comment)
}

#[tokio::test]
async fn the_label_decides_at_any_depth_and_any_size() {
    let (installation, replica) = Installation::running(shared().await, &[]).await;
    let caller = Caller::keeping(&installation, &replica).await;
    let namespace = &installation.namespace;
    for (about, comment) in [
        ("125 lists", lists(125)),
        ("10000 lists", lists(10_000)),
        ("10000 objects", objects(10_000)),
        ("300000 zeros", list_of("0", 300_000)),
        ("a text of 1 MiB", format!("\"{}\"", "x".repeat(1 << 20))),
        ("100000 keys", keys("{}", 100_000 * 14)),
    ] {
        let templates = [template(&comment)];
        let workloads = [0, 3].map(|replicas| workload(replicas, &comment));
        let templates = templates.iter().map(|object| ("HookTemplate", object));
        let workloads = workloads.iter().map(|object| ("GameDeployment", object));
        for (kind, object) in templates.chain(workloads) {
            let message = caller
                .refused("/guard", &delete(namespace, kind, object), 403, about)
                .await;
            assert_names_the_way_out(&message, &kind.to_ascii_lowercase(), namespace);
            assert_has(&message, "it has no label io.tencent.bcs.dev/deletion-allow");
            let other = ALWAYS.replace("Always", "Never");
            let review = delete(namespace, kind, labelled(object, &other));
            let message = caller.refused("/guard", &review, 403, about).await;
            assert_has(
                &message,
                "its label io.tencent.bcs.dev/deletion-allow is \"Never\"",
            );
            let review = delete(namespace, kind, labelled(object, ALWAYS));
            caller.allowed("/guard", &review, about).await;
            let review = delete(namespace, kind, object).user(EXEMPT);
            caller.allowed("/guard", &review, about).await;
            let ending = object.replacen(
                r#""metadata":{"#,
                r#""metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z","#,
                1,
            );
            caller
                .allowed("/guard", &delete(namespace, kind, ending), about)
                .await;
        }
        for (replicas, open) in [(0, true), (3, false)] {
            let object = labelled(&workload(replicas, &comment), CASCADING);
            let review = delete(namespace, "GameDeployment", object);
            if open {
                caller.allowed("/guard", &review, about).await;
            } else {
                let message = caller.refused("/guard", &review, 403, about).await;
                assert_has(&message, "(spec.replicas 3, status.replicas 3)");
            }
        }
        // All of this beside or in front of the label.
        let crowded = labelled(&template(&comment), &format!(r#""other":{comment},{ALWAYS}"#));
        caller
            .allowed("/guard", &delete(namespace, "HookTemplate", crowded), about)
            .await;
    }
}

#[tokio::test]
async fn a_definition_is_kept_however_many_versions_it_has() {
    let (installation, replica) = Installation::running(shared().await, &[]).await;
    let caller = Caller::keeping(&installation, &replica).await;
    let of = |group: &str, label: &str, versions: &str| {
        let metadata = format!(r#"{{"name":"{NAME}","labels":{{{label}}}}}"#);
        let names = r#"{"plural":"hookruns","kind":"HookRun"}"#;
        let spec = format!(r#"{{"versions":{versions},"names":{names},"group":"{group}"}}"#);
        let mut review = delete("", "CustomResourceDefinition", "");
        review.group = "apiextensions.k8s.io";
        review.old = format!(r#"{{"metadata":{metadata},"spec":{spec}}}"#);
        review
    };
    for versions in [
        list_of(r#"{"name":"v1alpha1","served":true}"#, 1),
        list_of(r#"{"served":false}"#, 50_000),
        list_of("0", 300_000),
        list_of("{}", 300_000),
        lists(10_000),
        list(
            r#"{"name":"v1alpha1","served":true,"schema":{"a":[[[{}]]]}}"#,
            1 << 20,
        ),
    ] {
        let about = &beginning(&versions);
        for label in ["", r#""io.tencent.bcs.dev/deletion-allow":"always""#] {
            let review = of("tkex.tencent.com", label, &versions);
            let message = caller.refused("/guard", &review, 403, about).await;
            assert_has(&message, "all objects of this kind would be deleted");
            assert_has(
                &message,
                &format!("kubectl label customresourcedefinition {NAME} "),
            );
        }
        let review = of("tkex.tencent.com", ALWAYS, &versions);
        caller.allowed("/guard", &review, about).await;
        let review = of("another.example", "", &versions);
        caller.allowed("/guard", &review, about).await;
    }
    for spec in [
        r#""group":"another.example","group":"tkex.tencent.com""#,
        r#""group":"another.example","gr\u006fup":"tkex.tencent.com""#,
        r#""names":{"group":"another.example"},"group":"tkex.tencent.com""#,
    ] {
        let mut review = of("tkex.tencent.com", "", "[]");
        review.old = format!(r#"{{"metadata":{{}},"spec":{{{spec}}}}}"#);
        assert_kept(&caller, &review.text()).await;
    }
}

/// Checks that a deletion is not allowed, in whatever words.
async fn assert_kept(caller: &Caller, body: &[u8]) {
    let answer = caller.post("/guard", body.to_vec()).await.unwrap();
    let about = String::from_utf8_lossy(body).into_owned();
    assert_answered(&about, &answer);
    let seen: Value = serde_json::from_str(&answer.1).unwrap_or_default();
    let is_allowed = answer.0 == 200 && seen["response"]["allowed"] == true;
    assert!(
        !is_allowed,
        "allowed: {}",
        about.chars().take(3000).collect::<String>()
    );
}

/// Returns whether a plain reader lets an object go: it reads everything, and of repeated keys the last one
/// counts.
fn opens(body: &[u8]) -> bool {
    let review: Value = serde_json::from_slice(body).unwrap();
    let (request, old) = (&review["request"], &review["request"]["oldObject"]);
    let part = request["subResource"].as_str().unwrap_or_default();
    let user = &request["userInfo"]["username"];
    if request["operation"] != "DELETE" || !part.is_empty() || user == ROBOT {
        return true;
    }
    let kind = (
        request["kind"]["group"].as_str(),
        request["kind"]["kind"].as_str(),
    );
    let is_workload = kind == (Some(super::GROUP), Some("GameDeployment"));
    if !is_workload && kind != (Some(super::GROUP), Some("HookTemplate")) {
        return true;
    }
    let (metadata, status) = (&old["metadata"], &old["status"]);
    let label = &metadata["labels"][DELETION_ALLOW];
    let seen = !metadata["generation"].is_null() && metadata["generation"] == status["observedGeneration"];
    let pods = status["replicas"].as_i64().unwrap_or_default();
    let is_empty = seen && old["spec"]["replicas"] == 0 && pods == 0;
    !metadata["deletionTimestamp"].is_null()
        || label == "Always"
        || (label == "Cascading" && is_workload && is_empty)
}

/// Builds an object with this metadata.
fn metadata(members: &str) -> String {
    format!(r#"{{"metadata":{{{members}}}}}"#)
}

/// Old objects of a template whose labels do not allow the deletion.
fn closed_labels() -> Vec<String> {
    let labels = |members: &str| metadata(&format!(r#""labels":{{{members}}}"#));
    let key = DELETION_ALLOW;
    let mut all: Vec<String> = [
        "1",
        "true",
        "null",
        r#"["Always"]"#,
        r#"{"Always":"Always"}"#,
        r#""always""#,
        r#""ALWAYS""#,
        r#""Always ""#,
        r#"" Always""#,
        r#""Always\u0000""#,
        r#""Always\n""#,
        r#""\u0041lway""#,
        r#""""#,
    ]
    .iter()
    .map(|value| labels(&format!(r#""{key}":{value}"#)))
    .collect();
    // Another key, although it looks like the one.
    for other in [
        "Deletion-allow",
        "deletion-allow ",
        "deletion-allow\\u0000",
        "deletion_allow",
    ] {
        all.push(labels(&format!(r#""io.tencent.bcs.dev/{other}":"Always""#)));
    }
    // The last key counts, however it is written.
    for last in [
        key,
        r"\u0069o.tencent.bcs.dev/deletion-allow",
        r"io.tencent.bcs.dev\/deletion-allow",
    ] {
        for value in [r#""Never""#, "null", "{}", r#"["Always"]"#] {
            all.push(labels(&format!(r#"{ALWAYS},"{last}":{value}"#)));
        }
    }
    all
}

/// Old objects of a template with metadata or labels twice. The last one counts.
fn closed_repetitions() -> Vec<String> {
    let allowed = format!(r#""labels":{{{ALWAYS}}}"#);
    let mut all = Vec::new();
    for last in ["labels", r"l\u0061bels", r"\u006c\u0061\u0062\u0065\u006C\u0073"] {
        for value in ["{}", "null", "[]", r#""Always""#, r#"{"a":"b"}"#] {
            all.push(metadata(&format!(r#"{allowed},"{last}":{value}"#)));
        }
    }
    for last in ["metadata", r"me\u0074adata", r"metadat\u0061"] {
        for value in ["{}", "null", "[]", "0", r#"{"name":"a"}"#, r#"{"labels":{}}"#] {
            all.push(format!(r#"{{"metadata":{{{allowed}}},"{last}":{value}}}"#));
            let deep = lists(100);
            all.push(format!(
                r#"{{"spec":{{"a":{deep}}},"metadata":{{{allowed}}},"b":{deep},"{last}":{value}}}"#
            ));
        }
    }
    let since = r#""deletionTimestamp":"2026-01-01T00:00:00Z""#;
    all.extend([
        metadata(r#""deletionTimestamp":null"#),
        metadata(&format!(r#"{since},"deletionTimestamp":null"#)),
        metadata(&format!(r#"{since},"deletion\u0054imestamp":null"#)),
        metadata(&format!(r#""labels":{{{since}}}"#)),
        format!(r#"{{"metadata":{{}},{since}}}"#),
        format!(r#"{{"metadata":{{{since}}},"metadata":{{}}}}"#),
        format!(r#"{{"metadata":{{}},"spec":{{{since}}}}}"#),
    ]);
    all
}

/// Old objects of a template with the label in the wrong place.
fn closed_places() -> Vec<String> {
    let allowed = format!(r#""labels":{{{ALWAYS}}}"#);
    let quoted = json!(metadata(&allowed)).to_string();
    vec![
        metadata(&format!(r#""annotations":{{{ALWAYS}}}"#)),
        metadata(&format!(r#""Labels":{{{ALWAYS}}}"#)),
        metadata(&format!(r#""metadata":{{{allowed}}}"#)),
        metadata(&format!(r#""labels":{{"labels":{{{ALWAYS}}}}}"#)),
        metadata(&format!(r#""labels":[{{{ALWAYS}}}]"#)),
        metadata(&format!(r#""annotations":{{"last-applied":{quoted}}}"#)),
        metadata(&format!(r#""managedFields":[{{"fieldsV1":{{{allowed}}}}}]"#)),
        metadata(ALWAYS),
        format!(r#"{{"Metadata":{{{allowed}}}}}"#),
        format!(r#"{{"metadata":[{{{allowed}}}]}}"#),
        format!(r#"{{"metadata":{quoted}}}"#),
        ["{", &allowed, "}"].concat(),
        format!(r#"{{"labels":{{{ALWAYS}}},"metadata":{{}}}}"#),
        format!(r#"{{"spec":{{"template":{{"metadata":{{{allowed}}}}}}},"metadata":{{"name":"a"}}}}"#),
        format!(r#"{{"spec":{{"metadata":{{{allowed}}}}}}}"#),
        format!(r#"{{"metadata":{{}},"spec":{{"metadata":{{{allowed}}}}}}}"#),
        format!(r#"[{{"metadata":{{{allowed}}}}}]"#),
        quoted,
        "null".to_owned(),
        "{}".to_owned(),
    ]
}

/// Old objects of a workload that a plain reader keeps, with the label `Cascading`.
fn closed_workloads() -> Vec<String> {
    let object = |generation: &str, spec: &str, status: &str| {
        let metadata = format!(r#""labels":{{{CASCADING}}},"generation":{generation}"#);
        format!(r#"{{"metadata":{{{metadata}}},"spec":{{{spec}}},"status":{{{status}}}}}"#)
    };
    let (none, seen) = (r#""replicas":0"#, r#""observedGeneration":3,"replicas":0"#);
    let mut all = Vec::new();
    for number in [
        "0.0", "-0", "0e0", "0E5", "\"0\"", "null", "false", "[]", "{}", "[0]", "\"\"", "-1", "1",
    ] {
        all.push(object("3", &format!(r#""replicas":{number}"#), seen));
        all.push(object("3", &format!(r#"{none},"replic\u0061s":{number}"#), seen));
    }
    for spec in [
        "",
        r#""Replicas":0"#,
        r#""template":{"spec":{"replicas":0}}"#,
        r#""spec":{"replicas":0}"#,
        r#""replicas":3,"template":{"replicas":0}"#,
        r#""replicas":0,"replicas":3"#,
    ] {
        all.push(object("3", spec, seen));
    }
    for status in [
        "",
        none,
        r#""observedGeneration":2,"replicas":0"#,
        r#""observedGeneration":3.0,"replicas":0"#,
        r#""observedGeneration":"3","replicas":0"#,
        r#""observedGeneration":null,"replicas":0"#,
        r#""observedGeneration":3,"observedGeneration":2,"replicas":0"#,
        r#""observedGeneration":3,"replicas":2"#,
        r#""observedGeneration":3,"replicas":0,"replicas":2"#,
        r#""observedGeneration":3,"replicas":0,"\u0072eplicas":2"#,
        r#""conditions":[{"observedGeneration":3}],"replicas":0"#,
        r#""a":{"observedGeneration":3},"replicas":0"#,
    ] {
        all.push(object("3", none, status));
    }
    for generation in [
        "null",
        "4",
        "3.0",
        r#""3""#,
        r#"3,"generation":4"#,
        r#"3,"generation":null"#,
    ] {
        all.push(object(generation, none, seen));
    }
    all.push(object("null", none, r#""observedGeneration":null,"replicas":0"#));
    let open = object("3", none, seen);
    for last in [
        r#""spec":{}"#,
        r#""spec":null"#,
        r#""status":{}"#,
        r#""st\u0061tus":null"#,
        r#""spec":0"#,
    ] {
        all.push(format!("{},{last}}}", &open[..open.len() - 1]));
    }
    all
}

#[tokio::test]
async fn what_a_plain_reader_keeps_is_kept() {
    let (installation, replica) = Installation::running(shared().await, &[]).await;
    let caller = Caller::keeping(&installation, &replica).await;
    let namespace = &installation.namespace;
    let templates = [closed_labels(), closed_repetitions(), closed_places()].concat();
    let templates = templates.into_iter().map(|old| ("HookTemplate", old));
    let workloads = closed_workloads().into_iter().map(|old| ("GameDeployment", old));
    for (kind, old) in templates.chain(workloads) {
        let body = delete(namespace, kind, old).text();
        assert!(!opens(&body), "{}", String::from_utf8_lossy(&body));
        assert_kept(&caller, &body).await;
    }
    // The same objects in their plain form are let go.
    let cascading = labelled(&workload(0, "0"), CASCADING);
    for (kind, old) in [
        ("HookTemplate", labelled(&template("0"), ALWAYS)),
        ("GameDeployment", labelled(&workload(3, "0"), ALWAYS)),
        ("GameDeployment", cascading),
    ] {
        let review = delete(namespace, kind, old);
        assert!(opens(&review.text()));
        caller.allowed("/guard", &review, kind).await;
    }
}

#[tokio::test]
async fn of_repeated_members_of_a_review_the_last_one_counts() {
    let (installation, replica) = Installation::running(shared().await, &[]).await;
    let caller = Caller::keeping(&installation, &replica).await;
    let namespace = &installation.namespace;
    let open = labelled(&template("0"), ALWAYS);
    let kept = delete(namespace, "HookTemplate", template("0"));
    let with = |more: String| kept.clone().more(more).text();
    let of_apps = r#"{"group":"apps","version":"v1","kind":"Deployment"}"#;
    let other_kind = r#"{"group":"tkex.tencent.com","kind":"HookRun"}"#;
    let mut bodies = vec![
        with(format!(r#""oldObject":{open},"#)),
        with(format!(r#""oldObj\u0065ct":{open},"#)),
        with(format!(r#""old_object":{open},"OldObject":{open},"#)),
        with(format!(r#""options":{{"oldObject":{open}}},"#)),
        with(r#""operation":"UPDATE","#.to_owned()),
        with(r#""operation":"CREATE","oper\u0061tion":"CONNECT","#.to_owned()),
        with(r#""subResource":"status","subResource":"","#.to_owned()),
        with(r#""subResource":"status","sub\u0052esource":null,"#.to_owned()),
        with(r#""subresource":"status","SubResource":"status","sub_resource":"status","#.to_owned()),
        with(format!(r#""userInfo":{EXEMPT},"#)),
        with(format!(
            r#""user_info":{EXEMPT},"options":{{"userInfo":{EXEMPT}}},"#
        )),
        with(format!(r#""kind":{of_apps},"#)),
        with(format!(r#""kind":{other_kind},"requestKind":{other_kind},"#)),
        with(r#""namespace":"kube-system","name":"a","#.to_owned()),
        kept.clone().object(open.clone()).text(),
        kept.clone()
            .user(format!(
                r#"{{"username":"a","groups":["{ROBOT}"],"extra":{{"username":["{ROBOT}"]}}}}"#
            ))
            .text(),
        kept.clone()
            .user(format!(r#"{},"username":"jane"}}"#, &EXEMPT[..EXEMPT.len() - 1]))
            .text(),
        kept.clone()
            .user(format!(
                r#"{},"us\u0065rname":null}}"#,
                &EXEMPT[..EXEMPT.len() - 1]
            ))
            .text(),
    ];
    let opened = delete(namespace, "HookTemplate", open).request();
    let plain = kept.request();
    for key in ["request", r"requ\u0065st"] {
        bodies.push(review(&format!(r#""request":{opened},"{key}":{plain}"#)));
    }
    for beside in ["Request", "requestKind", "response", "object"] {
        bodies.push(review(&format!(r#""{beside}":{opened},"request":{plain}"#)));
        bodies.push(review(&format!(r#""request":{plain},"{beside}":{opened}"#)));
    }
    for body in bodies {
        assert!(!opens(&body), "{}", String::from_utf8_lossy(&body));
        assert_kept(&caller, &body).await;
    }
    // Readers may dispute whether these are reviews. They open nothing.
    for last in ["null", "{}", "[]", "0"] {
        assert_kept(
            &caller,
            &review(&format!(r#""request":{opened},"request":{last}"#)),
        )
        .await;
    }
    for more in [r#","more":1"#, "{}", "]", " x", "\u{0}"] {
        let mut body = delete(namespace, "HookTemplate", template("0")).text();
        body.extend_from_slice(more.as_bytes());
        assert_kept(&caller, &body).await;
    }
}

/// Random texts of a review with few keys, so that keys are often repeated or in the wrong place.
struct Random(fastrand::Rng);

impl Random {
    fn choice<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.0.usize(..of.len())]
    }

    /// Writes a key, sometimes with escapes.
    fn key(&mut self, key: &str) -> String {
        let is_escaped = self.0.u8(..4) == 0;
        let letters = key.chars().map(|letter| {
            if is_escaped && self.0.bool() {
                format!("\\u{:04x}", u32::from(letter))
            } else {
                letter.to_string()
            }
        });
        letters.collect()
    }

    /// Writes an object with these members in a random order.
    fn object(&mut self, mut members: Vec<(&str, String)>) -> String {
        self.0.shuffle(&mut members);
        let members = members
            .into_iter()
            .map(|(key, value)| format!(r#""{}":{value}"#, self.key(key)))
            .collect::<Vec<_>>();
        format!("{{{}}}", members.join(","))
    }

    fn labels(&mut self) -> String {
        if self.0.u8(..8) == 0 {
            return self.choice(&["null", "[]", r#""Always""#, "{}"]).to_owned();
        }
        let mut members = Vec::new();
        for _ in 0..self.0.usize(..4) {
            let key = self.choice(&[DELETION_ALLOW, DELETION_ALLOW, "app", "labels"]);
            let values = [
                r#""Always""#,
                r#""Always""#,
                r#""Cascading""#,
                r#""Cascading""#,
                r#""Never""#,
                "null",
                r#"["Always"]"#,
                r#"{"labels":{}}"#,
            ];
            members.push((key, self.choice(&values).to_owned()));
        }
        self.object(members)
    }

    fn metadata(&mut self) -> String {
        if self.0.u8(..10) == 0 {
            return self.choice(&["null", "[]", "{}"]).to_owned();
        }
        let mut members = vec![("generation", "3".to_owned())];
        for _ in 0..self.0.usize(1..3) {
            members.push(("labels", self.labels()));
        }
        match self.0.u8(..12) {
            0 => members.push((
                "deletionTimestamp",
                self.choice(&["null", r#""2026""#]).to_owned(),
            )),
            1 => members.push(("generation", self.choice(&["null", "3.0", "4"]).to_owned())),
            2 => members.push(("annotations", self.labels())),
            3 => members.push(("metadata", self.labels())),
            _ => {}
        }
        self.object(members)
    }

    fn replicas(&mut self) -> String {
        let number = self.choice(&["0", "0", "0", "0", "0.0", "-0", "null", "\"0\"", "2", "[]"]);
        number.to_owned()
    }

    fn old_object(&mut self) -> String {
        let metadata = self.metadata();
        let replicas = self.replicas();
        let template = self.object(vec![("metadata", metadata), ("replicas", replicas)]);
        let mut members = Vec::new();
        for _ in 0..self.0.usize(1..3) {
            members.push(("metadata", self.metadata()));
        }
        for _ in 0..self.0.usize(1..3) {
            let mut spec = vec![("template", template.clone())];
            for _ in 0..self.0.usize(1..3) {
                spec.push(("replicas", self.replicas()));
            }
            members.push(("spec", self.object(spec)));
        }
        let mut status = vec![("replicas", self.replicas())];
        let generation = self.choice(&["3", "3", "3", "2", "3.0", "null"]);
        status.push(("observedGeneration", generation.to_owned()));
        members.push(("status", self.object(status)));
        self.object(members)
    }

    fn body(&mut self, namespace: &str) -> Vec<u8> {
        let kind = self.choice(&["HookTemplate", "GameDeployment", "GameDeployment"]);
        let kind = format!(r#"{{"kind":"{kind}","group":"{}"}}"#, super::GROUP);
        let text = |text: &str| format!(r#""{text}""#);
        let mut members = vec![
            ("uid", text(UID)),
            ("kind", kind),
            ("name", text(NAME)),
            ("namespace", text(namespace)),
            ("operation", text("DELETE")),
            ("userInfo", r#"{"username":"jane"}"#.to_owned()),
        ];
        for _ in 0..self.0.usize(1..3) {
            members.push(("oldObject", self.old_object()));
        }
        match self.0.u8(..12) {
            0 => members.push(("operation", text("UPDATE"))),
            1 => members.push(("subResource", text("status"))),
            2 => members.push(("userInfo", EXEMPT.to_owned())),
            3 => members.push(("object", self.old_object())),
            _ => {}
        }
        let request = self.object(members);
        review(&format!(r#""{}":{request}"#, self.key("request")))
    }
}

#[tokio::test]
async fn random_reviews_open_nothing_that_a_plain_reader_keeps() {
    let (installation, replica) = Installation::running(shared().await, &[]).await;
    let caller = Caller::keeping(&installation, &replica).await;
    let mut random = Random(fastrand::Rng::with_seed(19));
    let (mut kept, mut open) = (0, 0);
    for _ in 0..500 {
        let body = random.body(&installation.namespace);
        if opens(&body) {
            open += 1;
            let answer = caller.post("/guard", body.clone()).await.unwrap();
            assert_answered(&String::from_utf8_lossy(&body), &answer);
        } else {
            kept += 1;
            assert_kept(&caller, &body).await;
        }
    }
    assert!(kept > 100 && open > 50, "{kept} kept, {open} open");
}

/// Objects that were stored before the component was installed can be deleted, with their label.
#[tokio::test]
async fn a_deep_object_that_is_stored_already_goes_with_its_label_or_its_namespace() {
    let control_plane = apart().await;
    let installation = Installation::new(control_plane).await;
    let other = control_plane.namespace("admission-ends").await;
    let kubectl = |arguments: &[&str], input: &str| {
        let mut command = control_plane.kubectl();
        command.args(["--namespace", &other]).args(arguments);
        run(command, input)
    };
    let make = ["create", "--validate=false", "--filename", "-"];
    let named = |name: &str, text: &str| text.replace(NAME, name);
    let (deep, deeper) = (template(&lists(120)), template(&lists(125)));
    installation.must(&make, &named("kept", &deep));
    installation.must(&make, &named("labelled", &labelled(&deeper, ALWAYS)));
    kubectl(&make, &named("kept", &deep)).unwrap();
    kubectl(&make, &named("deeper", &deeper)).unwrap();
    let replica = installation.replica(&[]);
    installation.configure(replica.tls, &json!({})).await;
    replica.ready().await;
    installation.asked().await;
    installation.watch_over(&other).await;

    let delete = ["delete", "hooktemplate", "kept"];
    let refusal = installation.refused(&delete, "");
    assert_has(&refusal, "deletion of HookTemplate kept is refused: ");
    assert_has(&refusal, "so their gates would stay closed");
    let all = ["delete", "hooktemplates", "--all"];
    assert!(installation.kubectl(&all, "").is_err());
    let left = installation.must(&["get", "hooktemplates", "--output=name"], "");
    assert!(left.ends_with("/kept\n") && left.lines().count() == 1, "{left}");
    allow(&installation, &refusal);
    installation.must(&delete, "");

    goes_with_its_namespace(kubectl, &other, ["hooktemplate", "kept"]).await;
}

/// Runs the kubectl command at the end of a refusal. If the label cannot be set because the object is too
/// deep, sets it together with the repair.
fn allow(installation: &Installation<'_>, refusal: &str) {
    let (_, command) = refusal.rsplit_once(": kubectl ").unwrap();
    let mut kubectl = installation.control_plane.kubectl();
    kubectl.args(command.split(' '));
    if let Err(said) = run(kubectl, "") {
        assert_has(&said, "nested more than 64 levels deep");
        let repair = json!([
            { "op": "remove", "path": "/spec/comment" },
            { "op": "add", "path": "/metadata/labels", "value": { DELETION_ALLOW: "Always" } }
        ]);
        let patch = [
            "patch",
            "hooktemplate",
            "kept",
            "--type=json",
            "--patch",
            &repair.to_string(),
        ];
        installation.must(&patch, "");
    }
}
