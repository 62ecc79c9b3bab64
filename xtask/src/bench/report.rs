//! Results: counts, which are reproducible, and times, which are reported relative to the floor of the same
//! run.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use test_kit::usage::Usage;

use super::baseline::Counts;
use super::harness::{Requests, writes};

/// Requests that occur once per object by design. The number of other requests depends on timing.
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
    /// Numeric value, if any.
    value: Option<f64>,
    /// Text for the reader.
    text: String,
    goal: Option<String>,
    /// Whether the goal is reached, if there is one.
    reached: Option<bool>,
    /// Whether the value is reproducible.
    exact: bool,
}

/// All figures.
#[derive(Debug, Default)]
pub(super) struct Report {
    counts_only: bool,
    /// Whether results other than counts are recorded, too.
    records: bool,
    scenario: String,
    size: usize,
    rows: Vec<Row>,
}

impl Report {
    /// Creates a report that omits everything that is not reproducible, so that it need not be measured.
    pub(super) fn of_counts() -> Self {
        Self {
            counts_only: true,
            ..Self::default()
        }
    }

    /// Creates a report of everything. `records`: scenarios record their results.
    pub(super) fn of_all(records: bool) -> Self {
        Self {
            records,
            ..Self::default()
        }
    }

    /// Returns whether scenarios record their results.
    pub(super) fn records(&self) -> bool {
        self.records
    }

    /// Returns whether times are omitted.
    pub(super) fn counts_only(&self) -> bool {
        self.counts_only
    }

    /// Starts a scenario.
    pub(super) fn begin(&mut self, scenario: &str, size: usize) {
        scenario.clone_into(&mut self.scenario);
        self.size = size;
    }

    /// Records whether the hook of each pod ran exactly once.
    pub(super) fn asked_once(&mut self, pods: usize, asked: &[usize]) {
        let once = asked.len() == pods && asked.iter().all(|times| *times == 1);
        let seen = format!(
            "{} pods, asked {} times",
            asked.len(),
            asked.iter().sum::<usize>()
        );
        self.fact("every pod's hook was asked exactly once", once, &seen);
    }

    /// Records a fact that must hold.
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

    /// Records a count per object, with its maximum.
    pub(super) fn count(&mut self, figure: &str, value: f64, most: Option<f64>) {
        // At a small size, writes per workload have a larger share, so the maximum does not apply.
        let most = most.filter(|_| !self.counts_only);
        let goal = most.map(|most| format!("at most {most}"));
        let reached = most.map(|most| value <= most);
        self.add(figure, Some(value), number(value), goal, reached, true);
    }

    /// Records writes per object. Writes repeated after a conflict count, but are not reproducible.
    pub(super) fn writes(&mut self, figure: &str, requests: &[&Requests], objects: usize, most: Option<f64>) {
        let conflicts = !self.counts_only;
        let all = requests.iter().map(|requests| writes(requests, conflicts)).sum();
        self.count(figure, ratio(all, objects), most);
    }

    /// Records a time, with the floor of the same run and the maximum ratio, if any.
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

    /// Records a value that is not reproducible.
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

    /// Records an operator's requests per object, by verb and resource.
    pub(super) fn requests(&mut self, who: &str, requests: &Requests, objects: usize) {
        // The API server decides how often it ends a watch.
        for (name, count) in requests.iter().filter(|(name, _)| !name.starts_with("watch ")) {
            let (figure, value) = (format!("  {who}: {name}"), ratio(*count, objects));
            if STEADY.contains(&name.as_str()) {
                self.count(&figure, value, None);
            } else {
                self.add(&figure, Some(value), number(value), None, None, false);
            }
        }
    }

    /// Records CPU time and memory of a process.
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

    /// Writes the report as `bench.md` and `bench.json`.
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

    /// Returns the counts by name.
    pub(super) fn counts(&self) -> Counts {
        let exact = self.rows.iter().filter(|row| row.exact);
        exact
            .filter_map(|row| {
                let name = format!("{} {}: {}", row.scenario, row.size, row.figure.trim());
                Some((name, row.value?))
            })
            .collect()
    }

    /// Returns whether all goals are reached.
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

/// Returns the count per object.
#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
pub(super) fn ratio(count: u64, objects: usize) -> f64 {
    count as f64 / objects as f64
}

/// Returns the value below which this share of the sorted values lies.
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
