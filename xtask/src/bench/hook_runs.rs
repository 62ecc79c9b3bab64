//! Many HookRuns, each measured several times at an interval, against one sample server.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::json;
use shared_api::hook_run::{HookRunSpec, Measurement};
use shared_api::{HookRun, Phase};
use test_kit::wait::within;
use test_kit::{Answer, ControlPlane, Options, Process, Program, Webhook, assets, http_client};

use super::table::{Table, percentile};

/// Flags of the scenario.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many HookRuns
    #[arg(long, default_value_t = 1000)]
    runs: usize,
    /// Seconds between two measurements of a run
    #[arg(long, default_value_t = 5)]
    interval: u64,
    /// Measurements of each run
    #[arg(long, default_value_t = 5)]
    count: usize,
}

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Requests that create runs at a time.
const CREATE_AT_ONCE: usize = 16;

pub(super) fn run(args: &Args) -> Outcome<()> {
    let operator = assets::built("hook-operator", assets::Profile::Release)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let crds = shared_api::crd::all();
        let control_plane = ControlPlane::start(Options {
            crds,
            ..Options::default()
        })
        .await?;
        let namespace = control_plane.namespace("bench").await;
        let game = Webhook::start()?;
        game.on("/", Answer::json(json!({ "players": 0 })));
        let address = std::net::TcpListener::bind("127.0.0.1:0")?
            .local_addr()?
            .to_string();
        let program = Program::new(operator)
            .env("KUBECONFIG", control_plane.kubeconfig_path())
            .args([
                "--namespace",
                &namespace,
                "--listen",
                &address,
                "--egress-allow-loopback",
                "--log",
                "warn",
            ]);
        let process = Process::start(program)?;
        ready(&address).await?;

        let runs: Api<HookRun> = Api::namespaced(control_plane.client(), &namespace);
        let since = Instant::now();
        create(&runs, args, &game).await?;
        let created = since.elapsed();
        let ended = all_ended(&runs, args).await?;
        let took = since.elapsed();
        let scraped = http_client()?
            .get(format!("http://{address}/metrics"))
            .send()
            .await?
            .text()
            .await?;
        report(
            args,
            &Measured {
                ended,
                scraped,
                created,
                took,
                asked: game.counts("/").received,
                process: &process,
            },
        )
    })
}

async fn ready(address: &str) -> Outcome<()> {
    let client = http_client()?;
    within(Duration::from_mins(1), || async {
        let answer = client.get(format!("http://{address}/readyz")).send().await.ok()?;
        answer.status().is_success().then_some(())
    })
    .await?;
    Ok(())
}

async fn create(runs: &Api<HookRun>, args: &Args, game: &Webhook) -> Outcome<()> {
    let spec: HookRunSpec = serde_json::from_value(json!({ "metrics": [{
        "name": "players", "interval": format!("{}s", args.interval), "count": args.count,
        "successCondition": "asInt(result) == 0",
        "provider": { "web": { "url": game.url("/"), "jsonPath": "{$.players}" } }
    }]}))?;
    let create = |number: usize| {
        let run = HookRun::new(&format!("run-{number}"), spec.clone());
        async move { runs.create(&PostParams::default(), &run).await.map(drop) }
    };
    let created = stream::iter((0..args.runs).map(create))
        .buffer_unordered(CREATE_AT_ONCE)
        .collect::<Vec<_>>()
        .await;
    created.into_iter().collect::<Result<(), _>>()?;
    Ok(())
}

async fn all_ended(runs: &Api<HookRun>, args: &Args) -> Outcome<Vec<HookRun>> {
    let patience = Duration::from_secs(120 + 2 * args.interval * u64::try_from(args.count)?);
    let mut pause = tokio::time::interval(Duration::from_secs(2));
    let deadline = Instant::now() + patience;
    loop {
        pause.tick().await;
        // From the API server's cache: looking on must not become part of the load.
        let list = runs.list(&ListParams::default().match_any()).await?.items;
        let ended = list
            .iter()
            .filter(|run| run.status.as_ref().is_some_and(|status| status.phase.is_final()))
            .count();
        if ended == args.runs {
            return Ok(list);
        }
        if Instant::now() > deadline {
            return Err(format!(
                "{ended} of {} runs ended within {} s",
                args.runs,
                patience.as_secs()
            )
            .into());
        }
    }
}

struct Measured<'a> {
    ended: Vec<HookRun>,
    scraped: String,
    created: Duration,
    took: Duration,
    asked: usize,
    process: &'a Process,
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn report(args: &Args, measured: &Measured<'_>) -> Outcome<()> {
    let mut phases: BTreeMap<Phase, usize> = BTreeMap::new();
    let mut lags = Vec::new();
    for status in measured.ended.iter().filter_map(|run| run.status.as_ref()) {
        *phases.entry(status.phase).or_default() += 1;
        for result in &status.metric_results {
            lags.extend(
                result
                    .measurements
                    .windows(2)
                    .filter_map(|pair| lag(pair, args.interval)),
            );
        }
    }
    lags.sort_by(f64::total_cmp);
    let requests = api_requests(&measured.scraped);
    let total: f64 = requests.values().sum();
    let measurements = args.runs * args.count;
    let mut table = Table::default();
    let phases: Vec<String> = phases
        .iter()
        .map(|(phase, count)| format!("{count} {phase}"))
        .collect();
    table.row("runs", phases.join(", "), &format!("{} Successful", args.runs));
    table.row(
        "requests that the sample server saw",
        measured.asked,
        &measurements.to_string(),
    );
    table.row(
        "API requests per measurement",
        format!("{:.3}", total / measurements as f64),
        "<= 1.2",
    );
    for (request, count) in &requests {
        table.row(&format!("  {request}"), count, "");
    }
    for (name, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)] {
        let goal = if name == "p99" { "< 200 ms" } else { "" };
        table.row(
            &format!("schedule lag {name}"),
            format!("{:.0} ms", percentile(&lags, share)),
            goal,
        );
    }
    table.row(
        "operator CPU",
        format!("{:.2} s", measured.process.cpu_seconds()),
        "",
    );
    let memory = measured.process.peak_rss_bytes() as f64 / f64::from(1 << 20);
    table.row("operator peak RSS", format!("{memory:.1} MiB"), "");
    table.row(
        "creating the runs took",
        format!("{:.1} s", measured.created.as_secs_f64()),
        "",
    );
    table.row(
        "until the last verdict",
        format!("{:.1} s", measured.took.as_secs_f64()),
        "",
    );
    table.print();
    let right = measured.asked == measurements && phases == [format!("{} Successful", args.runs)];
    if right {
        Ok(())
    } else {
        Err("a count is wrong, see the first rows".into())
    }
}

/// Milliseconds between the moment a measurement was due and its start, from what the status records.
fn lag(pair: &[Measurement], interval: u64) -> Option<f64> {
    let [before, after] = pair else { return None };
    let gap = after
        .started_at?
        .timestamp()
        .duration_since(before.finished_at?.timestamp());
    Some(
        gap.as_secs_f64()
            .mul_add(1000.0, -1000.0 * f64::from(u32::try_from(interval).ok()?)),
    )
}

/// The operator's own count of its API requests, by verb and resource.
fn api_requests(scraped: &str) -> BTreeMap<String, f64> {
    let label = |line: &str, name: &str| {
        let (_, rest) = line.split_once(&format!("{name}=\""))?;
        rest.split_once('"').map(|(value, _)| value.to_owned())
    };
    let mut requests = BTreeMap::new();
    for line in scraped
        .lines()
        .filter(|line| line.starts_with("hookgate_api_requests_total"))
    {
        let (verb, resource) = (
            label(line, "verb").unwrap_or_default(),
            label(line, "resource").unwrap_or_default(),
        );
        let count = line
            .rsplit(' ')
            .next()
            .and_then(|text| text.parse::<f64>().ok())
            .unwrap_or_default();
        *requests.entry(format!("{verb} {resource}")).or_default() += count;
    }
    requests
}
