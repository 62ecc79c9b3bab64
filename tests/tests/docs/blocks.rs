//! Checks everything that is neither prose nor a command: manifests are accepted, documents parse, programs
//! compile. An unknown language is an error, so that nothing goes unchecked by accident.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use test_kit::ControlPlane;
use test_kit::process::output_of;

use crate::harness::quick;
use crate::page::{self, Block, FOR_THE_TEST};

/// Foreign kinds whose CRDs are not on the test's API server.
const FOREIGN: [&str; 6] = [
    "CloneSet",
    "PodMonitor",
    "PrometheusRule",
    "Rollout",
    "ScaledObject",
    "ServiceMonitor",
];

/// First words of a drawing.
const DRAWINGS: [&str; 3] = ["stateDiagram-v2", "flowchart", "sequenceDiagram"];

#[tokio::test]
async fn every_block_is_what_it_says() {
    let control_plane = crate::shared().await;
    let namespace = control_plane.namespace("docs-blocks").await;
    let mut mistakes = Vec::new();
    for page in page::all() {
        for block in &page.blocks {
            let checked = match block.language.as_str() {
                "rust" => compiled(&page.path),
                _ => check(control_plane, &namespace, block),
            };
            if let Err(why) = checked {
                mistakes.push(format!(
                    "{}:{}: {}: {why}",
                    page.path.display(),
                    block.line,
                    block.language
                ));
            }
        }
    }
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}

/// Checks that the page is crate documentation, whose blocks `cargo test --doc` compiles and runs.
fn compiled(page: &Path) -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let library = root.join(page).with_file_name("src").join("lib.rs");
    let text = std::fs::read_to_string(&library).unwrap_or_default();
    if text.contains("#![doc = include_str!(\"../README.md\")]") {
        Ok(())
    } else {
        Err("no crate has this page as its documentation, so nobody compiles it".to_owned())
    }
}

fn check(control_plane: &ControlPlane, namespace: &str, block: &Block) -> Result<(), String> {
    let text = block.text.as_str();
    match block.language.as_str() {
        // `commands` covers these; or they are program output or text drawings.
        "console" | FOR_THE_TEST | "text" => Ok(()),
        "yaml" => yaml(control_plane, namespace, text),
        "json" => serde_json::from_str::<Value>(text)
            .map(drop)
            .map_err(|error| error.to_string()),
        "python" => run(
            Command::new("python3").args(["-c", "import sys; compile(sys.stdin.read(), 'page', 'exec')"]),
            text,
        ),
        "sh" => run(Command::new("bash").arg("-n"), text),
        "promql" => promql(text),
        "mermaid" if DRAWINGS.iter().any(|drawing| text.starts_with(drawing)) => Ok(()),
        "mermaid" => Err("no drawing that is known".to_owned()),
        "indented" => Err("indented text; put it between ``` and name its language".to_owned()),
        "" => Err("no language".to_owned()),
        _ => Err("an unknown language".to_owned()),
    }
}

fn run(command: &mut Command, input: &str) -> Result<(), String> {
    let output = output_of(command, input).map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// Checks that brackets are closed. The metrics tests check the names.
fn promql(text: &str) -> Result<(), String> {
    let mut open = Vec::new();
    for letter in text.chars() {
        match letter {
            '(' => open.push(')'),
            '{' => open.push('}'),
            '[' => open.push(']'),
            ')' | '}' | ']' if open.pop() != Some(letter) => return Err(format!("{letter} closes nothing")),
            _ => {}
        }
    }
    if open.is_empty() && !text.trim().is_empty() {
        Ok(())
    } else {
        Err("a bracket is open".to_owned())
    }
}

fn yaml(control_plane: &ControlPlane, namespace: &str, text: &str) -> Result<(), String> {
    let text = control_plane.in_its_versions(&quick(text, "http://127.0.0.1:1"));
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).map_err(|error| error.to_string())?;
    for document in documents {
        let kind = document["kind"].as_str().unwrap_or_default().to_owned();
        if FOREIGN.contains(&kind.as_str()) {
            continue;
        }
        let whole = if kind.is_empty() {
            around(document)?
        } else {
            document
        };
        let verb = if whole["metadata"]["generateName"].is_null() {
            "apply"
        } else {
            "create"
        };
        let mut kubectl = control_plane.kubectl();
        kubectl.args([
            "--namespace",
            namespace,
            verb,
            "--dry-run=server",
            "--validate=true",
            "--filename=-",
        ]);
        run(&mut kubectl, &whole.to_string())?;
    }
    Ok(())
}

/// Completes a fragment to its object.
fn around(part: Value) -> Result<Value, String> {
    let mut fields = part.as_object().cloned().ok_or("not an object")?;
    let workload = [
        "updateStrategy",
        "scaleStrategy",
        "preDeleteUpdateStrategy",
        "preInplaceUpdateStrategy",
    ];
    let workload = workload.iter().any(|field| fields.contains_key(*field));
    let template = ["metrics", "args"]
        .iter()
        .any(|field| fields.contains_key(*field));
    let kind = match (workload, template) {
        (true, false) => "GameDeployment",
        (false, true) => "HookTemplate",
        _ => return Err("a part of nothing that is known".to_owned()),
    };
    if workload {
        fields
            .entry("selector")
            .or_insert(json!({ "matchLabels": { "app": "x" } }));
        let pod = json!({ "metadata": { "labels": { "app": "x" } },
            "spec": { "containers": [{ "name": "game", "image": "game:v1" }] } });
        fields.entry("template").or_insert(pod);
    }
    Ok(
        json!({ "apiVersion": "tkex.tencent.com/v1alpha1", "kind": kind, "metadata": { "name": "part" }, "spec": fields }),
    )
}
