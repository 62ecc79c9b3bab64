//! Tests of the sample game servers in `examples/servers`: each is built with its own toolchain and run as a
//! real process. The same checks apply to every language.
//!
//! | file | scope |
//! | --- | --- |
//! | `language` | builds the samples |
//! | `server` | a running sample: its ports, its players, requests |
//! | `without_sidecar` | servers that serve the hook endpoint themselves |
//! | `with_sidecar` | servers that report to a real hookgate-sidecar |
//!
//! Languages whose toolchain is missing are skipped. With `REQUIRE_TOOLCHAINS=1` they fail.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end so")]

mod language;
mod server;
mod with_sidecar;
mod without_sidecar;

use std::path::Path;

use language::{Language, Samples};

/// Sidecar of game servers without HTTP.
const SIDECAR: &str = env!("CARGO_BIN_EXE_sidecar-under-test");

#[tokio::test]
async fn csharp_serves_hooks() {
    without_sidecar::check(Language::CSharp).await;
}

#[tokio::test]
async fn csharp_reports_to_the_sidecar() {
    with_sidecar::check(Language::CSharp).await;
}

#[tokio::test]
async fn cpp_serves_hooks() {
    without_sidecar::check(Language::Cpp).await;
}

#[tokio::test]
async fn cpp_reports_to_the_sidecar() {
    with_sidecar::check(Language::Cpp).await;
}

#[tokio::test]
async fn go_serves_hooks() {
    without_sidecar::check(Language::Go).await;
}

#[tokio::test]
async fn go_reports_to_the_sidecar() {
    with_sidecar::check(Language::Go).await;
}

#[tokio::test]
async fn node_serves_hooks() {
    without_sidecar::check(Language::Node).await;
}

#[tokio::test]
async fn node_reports_to_the_sidecar() {
    with_sidecar::check(Language::Node).await;
}

#[test]
fn every_sample_is_in_the_table() {
    let folder = language::folder();
    let table = std::fs::read_to_string(folder.join("README.md")).unwrap();
    for language in Language::ALL {
        for samples in [Samples::WithoutSidecar, Samples::WithSidecar] {
            let source = language.source(samples);
            assert!(folder.join(&source).is_file(), "no {source}");
            let linked = table.contains(&format!("]({source})"));
            assert!(linked, "{source} is not in {}", Path::new("README.md").display());
        }
    }
}
