//! The story: two templates, two runs; one game server empties and may go, the other is busy and stays.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use shared_api::hook_run::{HookRunSpec, MetricResult};
use shared_api::metric::Argument;
use shared_api::{HookRun, HookRunStatus, HookTemplate, Phase};
use test_kit::wait::within;
use test_kit::{Answer, ControlPlane, Webhook};

use super::Outcome;
use super::teller::Teller;

/// How long anything may take on a busy machine.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);

/// The stage and who tells what happens on it.
pub(super) struct Scene<'a> {
    pub(super) control_plane: &'a ControlPlane,
    pub(super) namespace: &'a str,
    pub(super) game: &'a Webhook,
    pub(super) teller: &'a Teller,
}

impl Scene<'_> {
    pub(super) async fn play(&self) -> Outcome<()> {
        let players = |number: i64| Answer::json(json!({ "players": number }));
        self.game.on(
            "/game-a",
            players(3).times(1).then(players(1).times(1)).then(players(0)),
        );
        self.game.on("/game-b", players(12));

        self.teller
            .chapter("Two templates: \"ask until nobody plays\", and \"three times, no more\"");
        self.apply(&self.template(
            "drain",
            json!({
                "interval": "1s", "successfulLimit": 1, "successCondition": "asInt(result) == 0"
            }),
        ))?;
        self.apply(&self.template(
            "idle-now",
            json!({
                "interval": "1s", "count": 3, "failureLimit": 2, "successCondition": "asInt(result) == 0"
            }),
        ))?;
        self.templates_valid(&["drain", "idle-now"]).await?;

        self.teller.chapter("Two runs, measured for real");
        for (run, template, server) in [("game-a", "drain", "game-a"), ("game-b", "idle-now", "game-b")] {
            self.start(run, template, server).await?;
        }
        let (a, b) = tokio::join!(self.follow("game-a"), self.follow("game-b"));
        let (a, b) = (a?, b?);

        self.teller.chapter("What kubectl shows");
        self.kubectl(&["get", "hookruns"], None)?;
        let path = "jsonpath={.status.message}{\"\\n\"}";
        self.kubectl(&["get", "hookrun", "game-b", "-o", path], None)?;
        self.kubectl(
            &["get", "events", "--field-selector", "involvedObject.kind=HookRun"],
            None,
        )?;
        self.check(&a, &b)
    }

    fn template(&self, name: &str, metric: Value) -> Value {
        let url = format!("http://{}/{{{{ args.Server }}}}", self.game.address());
        let mut whole = json!({
            "name": "players", "provider": { "web": { "url": url, "jsonPath": "{$.players}", "timeoutSeconds": 2 } }
        });
        if let (Some(whole), Value::Object(metric)) = (whole.as_object_mut(), metric) {
            whole.extend(metric);
        }
        json!({
            "apiVersion": "tkex.tencent.com/v1alpha1",
            "kind": "HookTemplate",
            "metadata": { "name": name, "namespace": self.namespace },
            "spec": { "args": [{ "name": "Server" }], "metrics": [whole] }
        })
    }

    fn apply(&self, manifest: &Value) -> Outcome<()> {
        let text = serde_saphyr::to_string(&manifest)?;
        self.kubectl(&["apply", "-f", "-"], Some(&text))
    }

    /// Runs the real kubectl and shows what it prints.
    fn kubectl(&self, arguments: &[&str], input: Option<&str>) -> Outcome<()> {
        let mut command = self.control_plane.kubectl();
        command.args(["--namespace", self.namespace]).args(arguments);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.unwrap_or_default().as_bytes())?;
        }
        let output = child.wait_with_output()?;
        let text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        self.teller
            .command(&format!("kubectl {}", arguments.join(" ")), &text);
        if output.status.success() {
            Ok(())
        } else {
            Err(format!("kubectl {arguments:?} failed").into())
        }
    }

    async fn templates_valid(&self, names: &[&str]) -> Outcome<()> {
        let templates: Api<HookTemplate> = Api::namespaced(self.control_plane.client(), self.namespace);
        for name in names {
            let message = within(PATIENCE, || async {
                let template = templates.get(name).await.ok()?;
                let conditions = template.status?.conditions;
                conditions
                    .into_iter()
                    .find(|condition| condition.type_ == "Valid" && condition.status == "True")
            });
            let message = message.await?.message;
            self.teller.say(&format!("template {name} is valid: {message}"));
        }
        Ok(())
    }

    /// Makes a run from a template, as a workload would.
    async fn start(&self, name: &str, template: &str, server: &str) -> Outcome<()> {
        let templates: Api<HookTemplate> = Api::namespaced(self.control_plane.client(), self.namespace);
        let template = templates.get(template).await?;
        let spec = HookRunSpec {
            metrics: template.spec.metrics,
            args: Some(vec![Argument {
                name: "Server".into(),
                value: Some(server.into()),
                value_from: None,
            }]),
            ..HookRunSpec::default()
        };
        let runs: Api<HookRun> = Api::namespaced(self.control_plane.client(), self.namespace);
        runs.create(&PostParams::default(), &HookRun::new(name, spec))
            .await?;
        self.teller.say(&format!("run {name} created: may {server} go?"));
        Ok(())
    }

    /// Tells every measurement of a run until its verdict.
    async fn follow(&self, name: &str) -> Outcome<HookRunStatus> {
        let runs: Api<HookRun> = Api::namespaced(self.control_plane.client(), self.namespace);
        let mut told = 0;
        loop {
            let status = within(PATIENCE, || async {
                let status = runs
                    .get(name)
                    .await
                    .map_err(|error| error.to_string())?
                    .status
                    .unwrap_or_default();
                let news = measured(&status) > told || status.phase.is_final();
                if news {
                    Ok(status)
                } else {
                    Err(format!("no news of {name}"))
                }
            });
            let status = status.await?;
            told = self.tell(name, &status, told);
            if status.phase.is_final() {
                let message = status.message.as_deref().unwrap_or_default();
                self.teller.say(&format!(
                    "run {name} is {}: {message}",
                    self.teller.phase(status.phase)
                ));
                return Ok(status);
            }
        }
    }

    fn tell(&self, name: &str, status: &HookRunStatus, told: usize) -> usize {
        let Some(MetricResult { measurements, .. }) = status.metric_results.first() else {
            return told;
        };
        for (number, measurement) in measurements.iter().enumerate().skip(told) {
            let value = measurement.value.as_deref().unwrap_or("-");
            let phase = self.teller.phase(measurement.phase);
            self.teller.say(&format!(
                "run {name}, measurement {}: players = {value}  {phase}",
                number + 1
            ));
        }
        measurements.len()
    }

    /// The demo is a check, too: what was told must be what should have happened.
    fn check(&self, a: &HookRunStatus, b: &HookRunStatus) -> Outcome<()> {
        self.teller.chapter("Checked");
        let message = b.message.as_deref().unwrap_or_default();
        let facts = [
            (
                "game-a was asked until nobody played, then Successful",
                a.phase == Phase::Successful,
            ),
            (
                "game-a was asked 3 times",
                self.game.counts("/game-a").received == 3,
            ),
            ("game-b is Failed: its pod would stay", b.phase == Phase::Failed),
            (
                "game-b was asked 3 times, then no more",
                self.game.counts("/game-b").received == 3,
            ),
            (
                "game-b's status says why",
                message.contains("\"12\" does not satisfy asInt(result) == 0"),
            ),
        ];
        for (fact, holds) in facts {
            self.teller
                .say(&format!("{} {fact}", if holds { "ok " } else { "NOT" }));
        }
        match facts.iter().find(|(_, holds)| !holds) {
            None => Ok(()),
            Some((fact, _)) => Err(format!("this should hold and does not: {fact}").into()),
        }
    }
}

fn measured(status: &HookRunStatus) -> usize {
    status
        .metric_results
        .first()
        .map_or(0, |result| result.measurements.len())
}
