//! The sidecar beside a game server without HTTP, from its image.

use std::fs;
use std::time::Duration;

use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use shared_api::{HookRun, HookRunStatus, Phase};
use test_kit::http_client;
use test_kit::real_node::samples::GAME_V1;
use test_kit::wait::within;

use crate::enclosed::Outcome;
use crate::image;
use crate::node_test::harness::{Harness, PATIENCE};
use crate::node_test::pod::{GAME, SIDECAR, Seen, ensure};
use crate::node_test::suite::{Check, check};
use crate::operator;

const POD: &str = "silent-0";
const PORT: u16 = 9357;
const ANSWER_IN: Duration = Duration::from_secs(2);
const MAX_RSS_KIB: u64 = 5 * 1_024;

/// Game server that listens on a port, and writes the number in `count` to the file of the sidecar while there
/// is a file `report`.
const GAME_SERVER: &str = "trap exit TERM
busybox httpd -p 7777 -h /hookgate
while :; do
  if [ -f /hookgate/report ]; then
    cat /hookgate/count >/hookgate/new && mv /hookgate/new /hookgate/players
  fi
  sleep 1 & wait $!
done";

pub(super) const CHECKS: [Check; 1] = [check!(
    "sidecar: it answers for a server without HTTP, and not after the server has restarted",
    answers
)];

fn manifest() -> Value {
    let volume = json!([{ "name": "reports", "mountPath": "/hookgate" }]);
    let probe = |path: &str| json!({ "httpGet": { "path": path, "port": PORT }, "periodSeconds": 1 });
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": POD, "labels": { "app": "silent" } },
        "spec": {
            "terminationGracePeriodSeconds": 10,
            "automountServiceAccountToken": false,
            "volumes": [{ "name": "reports", "emptyDir": {} }],
            "containers": [
                { "name": GAME, "image": GAME_V1, "command": ["sh", "-c", GAME_SERVER], "volumeMounts": volume },
                {
                    "name": SIDECAR,
                    "image": format!("{}/sidecar:{}", image::REGISTRY, image::VERSION),
                    "imagePullPolicy": "Never",
                    "args": ["--source=file", "--game-port=7777/tcp", "--fresh-for=5s"],
                    "volumeMounts": volume,
                    "livenessProbe": probe("/healthz"),
                    "readinessProbe": probe("/readyz"),
                    "resources": { "limits": { "memory": "16Mi" } },
                    "securityContext": {
                        "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "runAsNonRoot": true,
                        "capabilities": { "drop": ["ALL"] },
                    },
                },
            ],
        },
    })
}

/// Returns the status code and the document of `/players`.
async fn players(ip: &str) -> Outcome<(u16, Value)> {
    let url = format!("http://{ip}:{PORT}/players");
    let answer = http_client()?.get(url).timeout(ANSWER_IN).send().await?;
    Ok((answer.status().as_u16(), answer.json().await?))
}

/// Waits until the sidecar answers with this status code, and this value of a field.
async fn until(ip: &str, code: u16, field: &str, value: Value) -> Outcome<()> {
    let found = within(PATIENCE, || async {
        let (seen, document) = players(ip).await.map_err(|error| error.to_string())?;
        if seen == code && document[field] == value {
            Ok(())
        } else {
            Err(format!("{seen} {document}"))
        }
    });
    Ok(found.await?)
}

/// Runs a hook that asks the sidecar once.
async fn verdict(harness: &Harness<'_>, name: &str) -> Outcome<HookRunStatus> {
    let web = json!({ "url": "http://{{args.PodIP}}:9357/players", "jsonPath": "{.players}" });
    let metric = json!({ "name": "players", "consecutiveErrorLimit": 0, "successCondition": "asInt(result) == 0",
        "provider": { "web": web } });
    let ip = harness.until(POD, |seen| !seen.ip.is_empty()).await?.ip;
    let spec = json!({ "metrics": [metric], "args": [{ "name": "PodIP", "value": ip }] });
    let runs: Api<HookRun> = Api::namespaced(harness.client(), harness.namespace());
    let run = HookRun::new(name, serde_json::from_value(spec)?);
    runs.create(&PostParams::default(), &run).await?;
    harness.verdict(name).await
}

/// Runs a script in the game's container.
fn in_game(harness: &Harness<'_>, script: &str) -> Outcome<()> {
    let exec = ["exec", POD, "-c", GAME, "--", "sh", "-c", script];
    harness.kubectl(&exec).map(drop)
}

/// Returns the peak resident memory of the sidecar, in KiB.
fn peak_memory() -> Outcome<u64> {
    for entry in fs::read_dir("/proc")? {
        let directory = entry?.path();
        // Processes end while they are listed.
        let name = fs::read_to_string(directory.join("comm")).unwrap_or_default();
        if name.trim() != "hookgate-sideca" {
            continue;
        }
        let status = fs::read_to_string(directory.join("status"))?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|line| line.split_whitespace().next());
        return Ok(peak.ok_or("no VmHWM")?.parse()?);
    }
    Err("no process of the sidecar".into())
}

async fn answers(harness: &Harness<'_>) -> Outcome<()> {
    let _operator = harness.start_operator(operator::HOOKS, &[]).await?;
    harness.create(&manifest()).await?;
    let ip = harness
        .until(POD, |seen| {
            seen.container(GAME).state == "running" && !seen.ip.is_empty()
        })
        .await?
        .ip;
    until(&ip, 503, "reason", json!("Unreadable")).await?;
    let status = verdict(harness, "silent").await?;
    ensure(status.phase == Phase::Error, "a silent server is no success")?;

    in_game(harness, "echo 2 >/hookgate/count; echo >/hookgate/report")?;
    until(&ip, 200, "players", json!(2)).await?;
    harness.until(POD, Seen::is_ready).await?;
    let status = verdict(harness, "busy").await?;
    ensure(
        status.phase == Phase::Failed,
        "a server with players is a failure",
    )?;

    in_game(harness, "echo 0 >/hookgate/count")?;
    until(&ip, 200, "players", json!(0)).await?;
    let status = verdict(harness, "empty").await?;
    ensure(status.phase == Phase::Successful, "an empty server is a success")?;

    // The next server does not report yet, and the file still holds 0.
    in_game(harness, "busybox rm /hookgate/report; kill 1")?;
    harness
        .until(POD, |seen| {
            seen.container(GAME).restarts == 1 && seen.container(GAME).state == "running"
        })
        .await?;
    let (code, document) = players(&ip).await?;
    ensure(
        code == 503,
        format!("a server that has restarted is unknown: {code} {document}"),
    )?;
    until(&ip, 503, "reason", json!("GameRestarted")).await?;
    let status = verdict(harness, "restarted").await?;
    ensure(
        status.phase == Phase::Error,
        "a server that has restarted is no success",
    )?;
    in_game(harness, "echo >/hookgate/report")?;
    until(&ip, 200, "players", json!(0)).await?;

    let peak = peak_memory()?;
    harness.note(format!("peak memory of the sidecar: {peak} KiB"));
    ensure(peak < MAX_RSS_KIB, "the sidecar needs less than 5 MiB")
}
