//! Sizes of the programs, and time until each is ready on an empty cluster.

use std::fs;
use std::time::Instant;

use test_kit::process::output_of;

use super::Outcome;
use super::harness::{Operator, program_path};
use super::hook_runs::control_plane;
use super::report::Report;

/// Manifests required by admission: its Secret and the configuration that it completes.
const ADMISSION: &str = include_str!("../../../deploy/admission.yaml");
const STARTS: usize = 5;

pub(super) async fn play(report: &mut Report) -> Outcome<()> {
    let control_plane = control_plane().await?;
    let applied = output_of(control_plane.kubectl().args(["apply", "-f", "-"]), ADMISSION)?;
    if !applied.status.success() {
        let said = String::from_utf8_lossy(&applied.stderr);
        return Err(format!("kubectl could not apply deploy/admission.yaml: {said}").into());
    }
    let alone: &[&str] = &["--leader-election", "false"];
    let in_namespace: &[&str] = &["--namespace", "hookgate", "--listen-tls", "127.0.0.1:0"];
    for (program, flags) in [
        ("hook-operator", alone),
        ("gamedeployment-operator", alone),
        ("hookgate-admission", in_namespace),
    ] {
        #[expect(clippy::cast_precision_loss, reason = "bytes far below 2^52")]
        let megabytes = fs::metadata(program_path(program)?)?.len() as f64 / 1e6;
        report.measured(&format!("size of {program}"), megabytes, "MB", Some(20.0));
        let mut took = Vec::new();
        for _ in 0..STARTS {
            let begun = Instant::now();
            let ready = Operator::launch(program, &control_plane, flags).await?;
            took.push(begun.elapsed().as_secs_f64());
            drop(ready);
        }
        took.sort_by(f64::total_cmp);
        report.measured(
            &format!("{program} is ready after, median of {STARTS}"),
            took[STARTS / 2] * 1000.0,
            "ms",
            Some(1000.0),
        );
    }
    Ok(())
}
