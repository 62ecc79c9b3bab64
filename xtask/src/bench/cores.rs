//! Cost of one step of the pure cores: time and allocations, as measured by `cores-bench`.

use std::process::{Command, Stdio};

use serde::Deserialize;
use test_kit::assets::{self, Profile};

use super::Outcome;
use super::report::Report;

const PROGRAM: &str = "cores-bench";
/// Nanoseconds per microsecond.
const THOUSAND: f64 = 1e3;

/// One line of the program's output.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Line {
    Cost(Cost),
    Fact {
        figure: String,
        holds: bool,
        text: String,
    },
}

/// Cost of one operation.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Cost {
    figure: String,
    best_ns: f64,
    median_ns: f64,
    most_ns: Option<f64>,
    allocations: f64,
    bytes: f64,
    peak_bytes: f64,
    exact: bool,
}

pub(super) fn play(report: &mut Report, size: usize) -> Outcome<()> {
    // A separate program, because its counting allocator would slow down everything else here.
    let program = if report.counts_only() {
        assets::built(PROGRAM, Profile::Debug)?
    } else {
        assets::tool(PROGRAM)?
    };
    let mut command = Command::new(program);
    if report.counts_only() {
        command.args(["--rounds", "1"]);
    }
    let output = command
        .args(["--size", &size.to_string()])
        .stderr(Stdio::inherit())
        .output()?;
    for line in String::from_utf8(output.stdout)?.lines() {
        match serde_json::from_str(line)? {
            Line::Cost(cost) => add(report, &cost),
            Line::Fact { figure, holds, text } => report.fact(&figure, holds, &text),
        }
    }
    if output.status.success() {
        Ok(())
    } else {
        Err(format!("cores-bench: {}", output.status).into())
    }
}

fn add(report: &mut Report, cost: &Cost) {
    let figure = &cost.figure;
    let most = cost.most_ns.map(|most| most / THOUSAND);
    report.measured(figure, cost.median_ns / THOUSAND, "µs", most);
    report.measured(&format!("{figure}: best"), cost.best_ns / THOUSAND, "µs", None);
    for (what, value) in [
        ("allocations", cost.allocations),
        ("bytes allocated", cost.bytes),
        ("most bytes at once", cost.peak_bytes),
    ] {
        let figure = format!("{figure}: {what}");
        if cost.exact {
            report.count(&figure, value, None);
        } else {
            report.measured(&figure, value, "", None);
        }
    }
}
