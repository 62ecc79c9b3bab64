//! Tests of the chart in `helm/` with a real Helm and a real API server: what it rejects, what it renders for
//! each set of values in `helm/ci`, and that games survive every change of a release.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end so")]

mod eviction_responder;
mod flow_schema;
mod images;
mod leases;
mod life;
mod network_policy;
mod plain;
mod render;
mod values;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use test_kit::ControlPlane;

const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../helm");
/// Namespace of the test releases.
const NAMESPACE: &str = "hookgate";

/// Runs Helm and returns its output, or its error.
fn helm(arguments: &[&str]) -> Result<String, String> {
    answer(program().args(arguments))
}

/// Runs Helm with a cluster.
fn helm_on(control_plane: &ControlPlane, arguments: &[&str]) -> Result<String, String> {
    let kubeconfig = control_plane.kubeconfig_path();
    let mut helm = program();
    // By default it sends only five requests a second.
    helm.args(["--qps", "1000", "--burst-limit", "1000"]);
    answer(
        helm.env("KUBECONFIG", kubeconfig)
            .args(["--namespace", NAMESPACE])
            .args(arguments),
    )
}

fn program() -> Command {
    Command::new(test_kit::assets::helm().unwrap())
}

fn answer(helm: &mut Command) -> Result<String, String> {
    let output = helm.output().map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(text(&output.stdout) + &text(&output.stderr))
    }
}

/// Returns the sets of values, by name.
fn value_sets() -> Vec<PathBuf> {
    let mut sets: Vec<PathBuf> = std::fs::read_dir(Path::new(CHART).join("ci"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    sets.sort();
    assert!(sets.len() >= 10, "{sets:?}");
    sets
}

/// Renders the chart as documents: for Kubernetes 1.20 unless another version is given.
fn rendered(arguments: &[&str]) -> Vec<Value> {
    let version = ["--kube-version", "1.20.2"];
    let template = ["template", "hookgate", CHART, "--namespace", NAMESPACE];
    let text = helm(&[&template[..], &version, arguments].concat());
    documents(&text.unwrap_or_else(|complaint| panic!("{arguments:?}: {complaint}")))
}

fn documents(text: &str) -> Vec<Value> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    documents
        .into_iter()
        .filter(|document| !document.is_null())
        .collect()
}

fn of_kind<'a>(documents: &'a [Value], kind: &str) -> Vec<&'a Value> {
    documents
        .iter()
        .filter(|document| document["kind"] == kind)
        .collect()
}
