//! What was measured: counts, which do not vary, and times, which are told as ratios to the floor of the same run.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use test_kit::usage::Usage;

use super::baseline::Counts;
use super::harness::{Requests, writes};

/// One for each object by design. How many others there are depends on what comes together.
const STEADY: [&str; 5] = [
    "create hookruns",
    "create pods",
    "delete pods",
    "patch hookruns/status",
    "patch pods",
];

/// One figure.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    scenario: String,
    size: usize,
    figure: String,
    /// As a number, where it is one.
    value: Option<f64>,
    /// For people.
    text: String,
    goal: Option<String>,
    /// Whether the goal is reached, where there is one.
    reached: Option<bool>,
    /// Whether it is the same in every run.
    exact: bool,
}

/// All figures.
#[derive(Debug, Default)]
pub(super) struct Report {
    counts_only: bool,
    scenario: String,
    size: usize,
    rows: Vec<Row>,
}

impl Report {
    /// A report that leaves out whatever is not the same in every run, so that nothing needs to be measured for it.
    pub(super) fn of_counts() -> Self {
        Self {
            counts_only: true,
            ..Self::default()
        }
    }

    /// Whether times are left out.
    pub(super) fn counts_only(&self) -> bool {
        self.counts_only
    }

    /// What follows is about this scenario.
    pub(super) fn begin(&mut self, scenario: &str, size: usize) {
        scenario.clone_into(&mut self.scenario);
        self.size = size;
    }

    /// Whether the hook of each of so many pods was asked exactly once, by the count of each.
    pub(super) fn asked_once(&mut self, pods: usize, asked: &[usize]) {
        let once = asked.len() == pods && asked.iter().all(|times| *times == 1);
        let seen = format!(
            "{} pods, asked {} times",
            asked.len(),
            asked.iter().sum::<usize>()
        );
        self.fact("every pod's hook was asked exactly once", once, &seen);
    }

    /// Something that must be so.
    pub(super) fn fact(&mut self, figure: &str, holds: bool, text: &str) {
        self.add(
            figure,
            None,
            text.to_owned(),
            Some("must be".to_owned()),
            Some(holds),
            true,
        );
    }

    /// A count for each object, with the most that it may be.
    pub(super) fn count(&mut self, figure: &str, value: f64, most: Option<f64>) {
        // A small size has its share of what is written for a whole workload.
        let most = most.filter(|_| !self.counts_only);
        let goal = most.map(|most| format!("at most {most}"));
        let reached = most.map(|most| value <= most);
        self.add(figure, Some(value), number(value), goal, reached, true);
    }

    /// Writes for each object. Those that met a newer version and were made again count, but are not the same in every
    /// run.
    pub(super) fn writes(&mut self, figure: &str, requests: &[&Requests], objects: usize, most: Option<f64>) {
        let conflicts = !self.counts_only;
        let all = requests.iter().map(|requests| writes(requests, conflicts)).sum();
        self.count(figure, ratio(all, objects), most);
    }

    /// A time, with the floor of the same run and the greatest ratio to it, if there is one.
    pub(super) fn time(&mut self, figure: &str, took: Duration, floor: Option<(Duration, Option<f64>)>) {
        let seconds = took.as_secs_f64();
        let (text, goal, reached) = match floor {
            None => (format!("{seconds:.1} s"), None, None),
            Some((floor, most)) => {
                let ratio = seconds / floor.as_secs_f64();
                let text = format!(
                    "{seconds:.1} s, {ratio:.2} x the floor of {:.1} s",
                    floor.as_secs_f64()
                );
                let goal = most.map(|most| format!("at most {most} x"));
                (text, goal, most.map(|most| ratio <= most))
            }
        };
        self.add(figure, Some(seconds), text, goal, reached, false);
    }

    /// A figure that is not the same in every run.
    pub(super) fn measured(&mut self, figure: &str, value: f64, unit: &str, most: Option<f64>) {
        let in_unit = |number: String| format!("{number} {unit}").trim_end().to_owned();
        let text = if value < 1.0 {
            number(value)
        } else {
            format!("{value:.1}")
        };
        let goal = most.map(|most| in_unit(format!("at most {most}")));
        self.add(
            figure,
            Some(value),
            in_unit(text),
            goal,
            most.map(|most| value <= most),
            false,
        );
    }

    /// An operator's requests for each object, by verb and resource.
    pub(super) fn requests(&mut self, who: &str, requests: &Requests, objects: usize) {
        // How often a watch is ended is the API server's own affair.
        for (name, count) in requests.iter().filter(|(name, _)| !name.starts_with("watch ")) {
            let (figure, value) = (format!("  {who}: {name}"), ratio(*count, objects));
            if STEADY.contains(&name.as_str()) {
                self.count(&figure, value, None);
            } else {
                self.add(&figure, Some(value), number(value), None, None, false);
            }
        }
    }

    /// CPU time and memory of a process.
    pub(super) fn usage(&mut self, who: &str, usage: Usage) {
        self.measured(&format!("CPU time of {who}"), usage.cpu_seconds, "s", None);
        self.measured(
            &format!("most memory of {who}"),
            mib(usage.peak_rss_bytes),
            "MiB",
            None,
        );
    }

    fn add(
        &mut self,
        figure: &str,
        value: Option<f64>,
        text: String,
        goal: Option<String>,
        reached: Option<bool>,
        exact: bool,
    ) {
        if self.counts_only && !exact {
            return;
        }
        let row = Row {
            scenario: self.scenario.clone(),
            size: self.size,
            figure: figure.to_owned(),
            value,
            text,
            goal,
            reached,
            exact,
        };
        println!(
            "{:8}{}: {}{}",
            mark(row.reached),
            row.figure,
            row.text,
            row.goal
                .as_ref()
                .map(|goal| format!(" ({goal})"))
                .unwrap_or_default()
        );
        self.rows.push(row);
    }

    /// Writes it, as `bench.md` and `bench.json`.
    pub(super) fn write(&self, directory: &Path) -> std::io::Result<()> {
        fs::create_dir_all(directory)?;
        let mut text = String::from(
            "| scenario | figure | measured | goal | reached |\n| --- | --- | --- | --- | --- |\n",
        );
        for row in &self.rows {
            let goal = row.goal.as_deref().unwrap_or_default();
            let reached = match row.reached {
                None => "",
                Some(true) => "yes",
                Some(false) => "no",
            };
            let (scenario, size) = (&row.scenario, row.size);
            let _ = writeln!(
                text,
                "| {scenario} {size} | {} | {} | {goal} | {reached} |",
                row.figure, row.text
            );
        }
        fs::write(directory.join("bench.md"), text)?;
        fs::write(
            directory.join("bench.json"),
            serde_json::to_vec_pretty(&self.rows)?,
        )?;
        println!("\nwritten to {}", directory.display());
        Ok(())
    }

    /// The counts by what they are of.
    pub(super) fn counts(&self) -> Counts {
        let exact = self.rows.iter().filter(|row| row.exact);
        exact
            .filter_map(|row| {
                let name = format!("{} {}: {}", row.scenario, row.size, row.figure.trim());
                Some((name, row.value?))
            })
            .collect()
    }

    /// Whether every goal is reached.
    pub(super) fn well(&self) -> bool {
        self.rows.iter().all(|row| row.reached != Some(false))
    }
}

#[expect(clippy::cast_precision_loss, reason = "bytes far below 2^52")]
pub(super) fn mib(bytes: u64) -> f64 {
    bytes as f64 / 1_048_576.0
}

fn number(value: f64) -> String {
    if value.fract() == 0.0 {
        format!("{value}")
    } else {
        format!("{value:.3}")
    }
}

fn mark(reached: Option<bool>) -> &'static str {
    match reached {
        None => "",
        Some(true) => "ok",
        Some(false) => "MISSED",
    }
}

/// So many for each object.
#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
pub(super) fn ratio(count: u64, objects: usize) -> f64 {
    count as f64 / objects as f64
}

/// The value below which this share of the sorted values lies.
pub(super) fn percentile(sorted: &[f64], share: f64) -> f64 {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an index"
    )]
    let index = ((sorted.len() as f64 * share).ceil() as usize).saturating_sub(1);
    sorted.get(index).copied().unwrap_or(f64::NAN)
}
