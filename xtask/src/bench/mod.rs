//! `cargo xtask bench [SCENARIO…]`: load tests on the real control plane with simulated nodes, and the cost
//! of the pure cores.
//!
//! The scenarios of removals are models in which the cores decide; they need no control plane.
//!
//! Counts are exact and must not grow. Times depend on the machine, and are reported relative to the floor of
//! the same run: the time of a bare loop for the same writes.

mod baseline;
mod cold_start;
mod cores;
mod create;
pub(crate) mod first_idle;
mod floor;
mod hanging;
mod harness;
mod hook_runs;
mod idle;
mod in_place;
mod many_games;
mod report;
mod scale_down;
mod watched;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum as _;
use test_kit::assets::Profile;

use report::Report;

/// Share of the full size at which counts are compared. Counts per object are the same at any size.
const SMALL: f64 = 0.05;

/// Flags of `bench`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Scenarios to run [default: all]
    #[arg(value_enum, value_name = "SCENARIO")]
    scenarios: Vec<Scenario>,
    /// Share of the full size [default: 1, with --counts 0.05]
    #[arg(long, value_name = "SHARE")]
    size: Option<f64>,
    /// Measure only reproducible counts, at a small size and with debug builds, and compare them with the
    /// recorded ones
    #[arg(long)]
    counts: bool,
    /// Record these counts as the new baseline
    #[arg(long)]
    record: bool,
    /// Directory of the report, as Markdown and JSON
    #[arg(long, default_value = "target/bench", value_name = "DIRECTORY")]
    output: PathBuf,
    /// Measure the programs in this directory [default: those of this checkout, built if necessary]
    #[arg(long, value_name = "DIRECTORY")]
    programs: Option<PathBuf>,
}

/// Available scenarios.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Scenario {
    /// Gated scale-down of 1,000 pods
    ScaleDown,
    /// Creation of 5,000 pods
    Create,
    /// Gated in-place update of 2,000 pods
    InPlace,
    /// 10,000 HookRuns at an interval of 30 s
    HookRuns,
    /// 10,000 pods without changes
    Idle,
    /// 1,000 games of 10 pods, all scaled at once
    ManyGames,
    /// 10,000 hanging webhooks next to responsive ones
    Hanging,
    /// Sizes of the programs, and their time until ready
    ColdStart,
    /// Decisions about 10,000 pods and the hook languages, without a cluster: time and allocations
    Cores,
    /// All measurements of removals: first-idle
    Removals,
    /// Model of a scale-down of 1,000 game servers to 500 during matches: in deletion order, and idle pods first
    FirstIdle,
}

/// Scenarios that `removals` stands for.
const REMOVALS: [Scenario; 1] = [Scenario::FirstIdle];

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

impl Scenario {
    fn full_size(self) -> u32 {
        match self {
            Self::ColdStart => 1,
            Self::ScaleDown | Self::ManyGames => 1_000,
            Self::Removals | Self::FirstIdle => first_idle::PODS.into(),
            Self::InPlace => 2_000,
            Self::Create => 5_000,
            Self::HookRuns | Self::Idle | Self::Hanging | Self::Cores => 10_000,
        }
    }

    /// Returns whether the scenario has reproducible counts.
    fn counts(self) -> bool {
        !matches!(self, Self::Hanging | Self::ColdStart) && self.needs_programs()
    }

    /// Returns whether the operators' programs must be built.
    fn needs_programs(self) -> bool {
        !matches!(self, Self::Removals | Self::FirstIdle)
    }

    /// Returns the scenarios to play for those on the command line, each once.
    fn expand(named: &[Self]) -> Vec<Self> {
        let mut expanded = Vec::new();
        for scenario in named {
            let parts: &[Self] = match scenario {
                Self::Removals => &REMOVALS,
                other => std::slice::from_ref(other),
            };
            for part in parts {
                if !expanded.contains(part) {
                    expanded.push(*part);
                }
            }
        }
        expanded
    }

    async fn play(self, report: &mut Report, size: usize) -> Outcome<()> {
        match self {
            Self::ScaleDown => Box::pin(scale_down::play(report, size)).await,
            Self::Create => create::play(report, size).await,
            Self::InPlace => in_place::play(report, size).await,
            Self::HookRuns => hook_runs::play(report, size).await,
            Self::Idle => idle::play(report, size).await,
            Self::ManyGames => many_games::play(report, size).await,
            Self::Hanging => hanging::play(report, size).await,
            Self::ColdStart => cold_start::play(report).await,
            Self::Cores => cores::play(report, size),
            Self::Removals | Self::FirstIdle => first_idle::play(report, size),
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> ExitCode {
    match measure(args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(args: &Args) -> Outcome<bool> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut chosen = args.scenarios.clone();
    if chosen.is_empty() {
        chosen.extend(Scenario::value_variants());
    }
    let profile = if args.counts {
        Profile::Debug
    } else {
        Profile::Release
    };
    let mut chosen = Scenario::expand(&chosen);
    if chosen.iter().any(|scenario| scenario.needs_programs()) {
        match &args.programs {
            Some(programs) => harness::measure_those_in(programs.clone()),
            None => harness::measure_those_in(harness::built(profile)?),
        }
    }
    let (mut report, share) = if args.counts {
        chosen.retain(|scenario| scenario.counts());
        (Report::of_counts(), args.size.unwrap_or(SMALL))
    } else {
        (Report::of_all(args.record), args.size.unwrap_or(1.0))
    };
    for scenario in chosen {
        let name = scenario
            .to_possible_value()
            .map(|value| value.get_name().to_owned())
            .unwrap_or_default();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a size for people"
        )]
        let size = (f64::from(scenario.full_size()) * share).round().max(10.0) as usize;
        println!("\n== {name}: {size}");
        report.begin(&name, size);
        runtime.block_on(scenario.play(&mut report, size))?;
    }
    report.write(&args.output)?;
    let counts = report.counts();
    if args.record {
        baseline::record(counts)?;
        return Ok(report.well());
    }
    let grown = baseline::grown(&baseline::recorded()?, &counts);
    for line in &grown {
        println!("GROWN   {line}");
    }
    Ok(report.well() && grown.is_empty())
}
