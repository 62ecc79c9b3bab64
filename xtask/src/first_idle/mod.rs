//! Results of `cargo xtask bench first-idle`: `xtask/src/bench/first_idle.json`, from which `cargo xtask gen` draws
//! a picture and the table in `docs/performance.md`.

mod picture;

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

const RESULTS: &str = "xtask/src/bench/first_idle.json";
const PICTURE: &str = "docs/pictures/first-idle.svg";
const PAGE: &str = "docs/performance.md";
const BEGIN: &str =
    "<!-- Written by `cargo xtask gen` from `cargo xtask bench first-idle --record`; do not edit. -->\n";
const END: &str = "<!-- End of the results. -->\n";

/// How the pods to delete are selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Policy {
    /// `Ranked`, with a hook.
    Ranked,
    /// `FirstIdle`, with a hook.
    FirstIdle,
    /// `Ranked`, without a hook.
    NoHook,
}

/// Results of all policies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Results {
    /// Pods before the scale-down. Half of them stay.
    pub(crate) pods: usize,
    /// Number of scale-downs of each policy.
    pub(crate) seeds: usize,
    pub(crate) rows: Vec<Row>,
}

/// Results of one policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Row {
    pub(crate) policy: Policy,
    /// Pods with a match at the beginning.
    pub(crate) busy: Spread,
    /// Minutes until this part of the surplus pods was gone.
    pub(crate) half_gone: Spread,
    pub(crate) nine_tenths_gone: Spread,
    pub(crate) all_gone: Spread,
    /// Minutes played in the matches that deletions ended, for all players.
    pub(crate) player_minutes_lost: Spread,
    /// Matches that had to wait for an idle server.
    pub(crate) matches_queued: Spread,
    /// For each deleted pod.
    pub(crate) runs: Spread,
    pub(crate) writes: Spread,
    pub(crate) measurements: Spread,
    /// Pods left over time.
    pub(crate) curve: Vec<Point>,
}

/// Pods left at one time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Point {
    pub(crate) second: u32,
    pub(crate) left: Spread,
}

/// Mean, minimum and maximum over the seeds, rounded to thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spread {
    pub(crate) mean: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// Returns the spread of these values.
    pub(crate) fn of(values: &[f64]) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "few values")]
        let number = values.len().max(1) as f64;
        let (mut sum, mut min, mut max) = (0.0, f64::INFINITY, f64::NEG_INFINITY);
        for value in values {
            sum += value;
            min = value.min(min);
            max = value.max(max);
        }
        let round = |value: f64| (value * 1_000.0).round() / 1_000.0;
        Self {
            mean: round(sum / number),
            min: round(min),
            max: round(max),
        }
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (mean, min, max) = (number(self.mean), number(self.min), number(self.max));
        if min == max {
            f.write_str(&mean)
        } else {
            write!(f, "{mean} ({min} to {max})")
        }
    }
}

fn number(value: f64) -> String {
    if value.fract() == 0.0 || value >= 1_000.0 {
        format!("{value:.0}")
    } else if value < 10.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.1}")
    }
}

impl Policy {
    fn title(self) -> &'static str {
        match self {
            Self::Ranked => "`Ranked`",
            Self::FirstIdle => "`FirstIdle`",
            Self::NoHook => "no hook",
        }
    }
}

impl Results {
    /// Returns the results of a policy.
    pub(crate) fn row(&self, policy: Policy) -> Option<&Row> {
        self.rows.iter().find(|row| row.policy == policy)
    }

    /// Renders the results as a table.
    pub(crate) fn table(&self) -> String {
        let mut table = String::from(
            "| policy | minutes until half of the pods were gone | 90 % | all | player-minutes lost \
             | matches that waited for a server | HookRuns per deleted pod \
             | writes of gamedeployment-operator per deleted pod | measurements per deleted pod |\n\
             | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
        );
        for row in &self.rows {
            let _ = writeln!(
                table,
                "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                row.policy.title(),
                row.half_gone,
                row.nine_tenths_gone,
                row.all_gone,
                row.player_minutes_lost,
                row.matches_queued,
                row.runs,
                row.writes,
                row.measurements
            );
        }
        table
    }

    /// Writes the results to the file from which the picture and the table are drawn.
    pub(crate) fn record(&self) -> Result<(), Box<dyn Error>> {
        let mut text = serde_json::to_string(self)?;
        text.push('\n');
        fs::write(root().join(RESULTS), text)?;
        println!("recorded in {RESULTS}; cargo xtask gen draws them");
        Ok(())
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the recorded results, if there are any.
pub(crate) fn recorded() -> Result<Option<Results>, Box<dyn Error>> {
    match fs::read(root().join(RESULTS)) {
        Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{RESULTS}: {error}").into()),
    }
}

/// Returns the files drawn from the recorded results: path in the repository and text.
pub(crate) fn files(root: &Path) -> Result<Vec<(PathBuf, String)>, Box<dyn Error>> {
    let Some(results) = recorded()? else {
        return Ok(Vec::new());
    };
    let page = page(&fs::read_to_string(root.join(PAGE))?, &results)?;
    Ok(vec![
        (PathBuf::from(PICTURE), picture::draw(&results)?),
        (PathBuf::from(PAGE), page),
    ])
}

/// Puts the table into the page.
fn page(page: &str, results: &Results) -> Result<String, String> {
    let (before, rest) = page
        .split_once(BEGIN)
        .ok_or_else(|| format!("{PAGE} does not say where the results begin: {BEGIN}"))?;
    let (_, after) = rest
        .split_once(END)
        .ok_or_else(|| format!("{PAGE} does not say where the results end: {END}"))?;
    Ok(format!("{before}{BEGIN}\n{}\n{END}{after}", results.table()))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns results of two policies.
    pub(crate) fn sample() -> Results {
        let spread = |mean: f64| Spread::of(&[mean - 1.0, mean + 1.0]);
        let row = |policy: Policy, minutes: f64| Row {
            policy,
            busy: spread(425.0),
            half_gone: spread(1.0),
            nine_tenths_gone: spread(minutes / 2.0),
            all_gone: spread(minutes),
            player_minutes_lost: Spread::of(&[0.0]),
            matches_queued: Spread::of(&[0.0]),
            runs: spread(2.0),
            writes: spread(5.0),
            measurements: spread(9.0),
            curve: [(0, 1_000.0), (60, 700.0), (4_800, 501.0)]
                .map(|(second, left)| Point {
                    second,
                    left: spread(left),
                })
                .to_vec(),
        };
        Results {
            pods: 1_000,
            seeds: 2,
            rows: vec![row(Policy::Ranked, 79.0), row(Policy::FirstIdle, 2.0)],
        }
    }

    #[test]
    fn a_spread_shows_its_range_unless_all_values_are_equal() {
        assert_eq!(Spread::of(&[1.0, 2.0, 4.5]).to_string(), "2.50 (1 to 4.50)");
        assert_eq!(Spread::of(&[0.0, 0.0]).to_string(), "0");
        assert_eq!(Spread::of(&[81.26]).to_string(), "81.3");
    }

    #[test]
    fn results_survive_their_file() {
        let results = sample();
        let text = serde_json::to_string(&results).unwrap();
        assert_eq!(serde_json::from_str::<Results>(&text).unwrap(), results);
    }

    #[test]
    fn the_table_replaces_the_one_of_the_page() {
        let before = format!("before\n{BEGIN}\nearlier\n\n{END}after\n");
        let after = page(&before, &sample()).unwrap();
        assert!(
            after.starts_with("before\n") && after.ends_with("after\n"),
            "{after}"
        );
        assert!(after.contains("| `FirstIdle` | 1 (0 to 2) |"), "{after}");
        assert!(!after.contains("earlier"), "{after}");
        assert_eq!(page(&after, &sample()).unwrap(), after);
        assert!(page("no marks", &sample()).is_err());
    }
}
