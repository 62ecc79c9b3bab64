//! A namespace whose webhooks all hang, next to one whose webhooks respond. The first must not affect the
//! second.

use std::time::Duration;

use kube::Api;
use serde_json::json;
use shared_api::HookRun;
use test_kit::{Answer, Webhook};

use super::Outcome;
use super::harness::Operator;
use super::hook_runs::{control_plane, create, ended, lags, spec};
use super::report::{Report, percentile};

const HEALTHY: usize = 50;
const INTERVAL: Duration = Duration::from_secs(1);
const COUNT: usize = 20;

pub(super) async fn play(report: &mut Report, hanging: usize) -> Outcome<()> {
    let control_plane = control_plane().await?;
    let good = Webhook::start()?;
    good.on("/", Answer::json(json!({ "players": 0 })));
    let bad = Webhook::start()?;
    bad.on("/", Answer::never());
    let hooks = Operator::start("hook-operator", &control_plane, &["--egress-allow-loopback"]).await?;
    let alone: Api<HookRun> =
        Api::namespaced(control_plane.client(), &control_plane.namespace("alone").await);
    let beside: Api<HookRun> =
        Api::namespaced(control_plane.client(), &control_plane.namespace("beside").await);
    let crowd: Api<HookRun> =
        Api::namespaced(control_plane.client(), &control_plane.namespace("hanging").await);

    let healthy = spec(&good.url("/"), INTERVAL, COUNT)?;
    create(&alone, "run", HEALTHY, &healthy).await?;
    let lag_alone = percentile(&lags(&ended(&alone, HEALTHY).await?, INTERVAL), 0.99);
    create(&crowd, "run", hanging, &spec(&bad.url("/"), INTERVAL, COUNT)?).await?;
    create(&beside, "run", HEALTHY, &healthy).await?;
    let lag_beside = percentile(&lags(&ended(&beside, HEALTHY).await?, INTERVAL), 0.99);
    report.measured("schedule lag alone, 99 %", lag_alone, "ms", None);
    report.measured("schedule lag beside the crowd, 99 %", lag_beside, "ms", None);
    // Ratios below a few milliseconds are meaningless.
    let times = lag_beside / lag_alone.max(5.0);
    report.measured("times as long", times, "x", Some(2.0));
    report.usage("hook-operator", hooks.usage());
    Ok(())
}
