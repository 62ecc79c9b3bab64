//! HookTemplates that a GameDeployment names: large ones, deep ones, many of them.

use futures::future::join_all;
use futures::stream::{self, StreamExt as _};
use kube::api::{Api, PostParams};
use operator_tests::assert_has;
use operator_tests::fleet::game;
use operator_tests::proof::Extent;
use serde_json::{Value, json};
use shared_api::HookTemplate;

use super::{Caller, NAME, Review, TURN, apart, assert_small, hook_template, list_of, lists, with_text};
use crate::installation::{Installation, Replica, hook};

/// Returns the number of large templates in the namespace.
fn large() -> usize {
    usize::try_from(Extent::asked().of(4, 20, 20)).unwrap()
}

const JSON_BODY: &str = "/spec/metrics/0/provider/web/jsonBody";

/// Starts a replica that the API server calls. It has not judged the objects that are stored already.
async fn started(installation: &Installation<'_>) -> Replica {
    let replica = installation.replica(&[]);
    installation.configure(replica.tls, &json!({})).await;
    replica.ready().await;
    installation.asked().await;
    replica
}

/// Stores a template with this value at a field.
fn store(installation: &Installation<'_>, name: &str, field: &str, value: &str) {
    let mut template = hook_template();
    template["metadata"]["name"] = json!(name);
    if field == JSON_BODY {
        template["spec"]["metrics"][0]["provider"]["web"]["method"] = json!("POST");
    }
    let text = with_text(template, field, value);
    installation.must(&["create", "--validate=false", "--filename", "-"], &text);
}

/// Builds a workload whose hooks name these templates.
fn naming(name: &str, templates: &[&str]) -> Value {
    let step = |index: usize| json!({ "hook": { "templateName": templates[index % templates.len()] } });
    let mut game = game(
        1,
        json!({
            "preDeleteUpdateStrategy": step(0),
            "preInplaceUpdateStrategy": step(1),
            "postInplaceUpdateStrategy": step(2),
            "updateStrategy": { "canary": { "steps": [{ "partition": 0 }, step(3)] } },
        }),
    );
    game["metadata"]["name"] = json!(name);
    game
}

/// Creates a workload and returns the warnings.
fn warnings(installation: &Installation<'_>, game: &Value) -> Vec<String> {
    let said = installation.must(&["create", "--filename", "-"], &game.to_string());
    assert_has(&said, " created");
    let warnings = said.lines().filter(|line| line.starts_with("Warning"));
    warnings.map(str::to_owned).collect()
}

#[tokio::test]
async fn a_template_that_is_too_large_or_too_deep_is_a_warning() {
    let _turn = TURN.lock().await;
    let installation = Installation::new(apart().await).await;
    // The oldest API server takes seconds to store each.
    let count = usize::try_from(Extent::asked().of(150_000, 600_000, 600_000)).unwrap();
    let zeros = list_of("0", count);
    let text = format!("\"{}\"", "x".repeat(1_400_000));
    let levels = lists(125);
    let (zeros, text, levels) = (zeros.as_str(), text.as_str(), levels.as_str());
    let kinds = [
        ("zeros", "/spec/comment", zeros, true),
        ("zeros-in-a-body", JSON_BODY, zeros, true),
        ("levels", "/spec/comment", levels, true),
        ("levels-in-a-body", JSON_BODY, levels, true),
        ("text", "/spec/comment", text, false),
        ("text-in-a-body", JSON_BODY, text, false),
    ];
    for (name, field, value, _) in kinds {
        store(&installation, name, field, value);
    }
    let names: Vec<String> = (0..large()).map(|number| format!("large-{number:02}")).collect();
    for name in &names {
        store(&installation, name, "/spec/comment", zeros);
    }
    let replica = started(&installation).await;
    for (name, _, _, is_unchecked) in kinds {
        let said = warnings(&installation, &naming(&format!("game-{name}"), &[name])).join("\n");
        if is_unchecked {
            assert_has(&said, "cannot be parsed: it ");
        }
    }
    assert_small(&replica, "one template at a time");

    // Each review names four of them, and many reviews come at once.
    let caller = Caller::connecting_from([127, 0, 0, 1], &installation, &replica).await;
    let posts = (0..48).map(|number: usize| {
        let four = [0, 1, 2, 3].map(|more| names[(number + more * 5) % names.len()].as_str());
        let game = naming(&format!("crowd-{number}"), &four).to_string();
        let review = Review::of(&installation.namespace, "GameDeployment", "CREATE").object(game);
        let caller = &caller;
        async move { caller.allowed("/validate", &review, "four large templates").await }
    });
    join_all(posts).await;
    assert_small(&replica, "large templates");
    caller.assert_at_work(&installation.namespace).await;
}

#[tokio::test]
async fn a_misspelt_name_is_found_among_a_thousand_templates() {
    let installation = Installation::new(apart().await).await;
    let client = installation.control_plane.client();
    let templates: Api<HookTemplate> = Api::namespaced(client, &installation.namespace);
    let names = (0..1000).map(|number| format!("lobby-{number:04}"));
    let create = |name: String| {
        let template = serde_json::from_value(hook("HookTemplate", &name, "result > 1")).unwrap();
        let templates = templates.clone();
        async move { templates.create(&PostParams::default(), &template).await }
    };
    let all = names.chain(["player-check".to_owned()]).map(create);
    let created: Vec<_> = stream::iter(all).buffer_unordered(16).collect().await;
    for created in created {
        created.unwrap();
    }
    let replica = started(&installation).await;
    let said = warnings(&installation, &naming("misspelt", &["player-chek"])).join("\n");
    assert_has(&said, "did you mean player-check?");
    let said = warnings(&installation, &naming("unlike", &["something-else"])).join("\n");
    assert_has(&said, "something-else");
    assert!(!said.contains("did you mean"), "{said}");
    let found = warnings(&installation, &naming("found", &["player-check"]));
    assert!(!found.join("\n").contains("HookTemplate"), "{found:?}");
    assert_small(&replica, "a thousand templates");
}

/// The rights of the manifest suffice to read templates by name.
#[tokio::test]
async fn each_of_four_templates_is_looked_up() {
    let installation = Installation::new(apart().await).await;
    store(&installation, "player-check", "/spec/policy", "\"Ordered\"");
    store(&installation, "room-check", "/spec/policy", "\"Ordered\"");
    store(&installation, "deep", "/spec/comment", &lists(100));
    let replica = started(&installation).await;
    let four = ["player-check", "room-chek", "nowhere", "deep"];
    let said = warnings(&installation, &naming("four", &four));
    let of = |field: &str| {
        let found = said.iter().find(|line| line.contains(field));
        found.unwrap_or_else(|| panic!("{field}: {said:?}"))
    };
    let about = |name: &str| said.iter().any(|line| line.contains(name));
    assert!(!about("player-check"), "{said:?}");
    assert_has(
        of("spec.preInplaceUpdateStrategy.hook"),
        "did you mean room-check?",
    );
    assert_has(
        of("spec.postInplaceUpdateStrategy.hook"),
        "HookTemplate nowhere does not exist",
    );
    assert_has(
        of("spec.updateStrategy.canary.steps[1].hook"),
        "cannot be parsed: it is nested",
    );
    // One template that is named four times is one warning for each place, or one for all.
    let said = warnings(&installation, &naming("same", &["nowhere"]));
    assert!((1..=4).contains(&said.len()), "{said:?}");

    // Names come from the author: they are no paths of the API server.
    let caller = Caller::keeping(&installation, &replica).await;
    let (elsewhere, long) = (format!("../../hookruns/{NAME}"), "x".repeat(100_000));
    for name in [
        "",
        ".",
        "..",
        "a/b",
        "a?limit=1",
        "a%2fb",
        "A b",
        &elsewhere[..],
        &long[..],
    ] {
        let game = naming("named", &[name]).to_string();
        let review = Review::of(&installation.namespace, "GameDeployment", "CREATE").object(game);
        caller.decision("/validate", &review).await;
    }
    caller.assert_at_work(&installation.namespace).await;
}
