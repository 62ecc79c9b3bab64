//! Pods that wait for their hooks, and the judgement that they keep their HookRuns.
//!
//! The hook has two metrics. `drain` asks the game server once, with a POST, to take no more players: two such
//! requests for one HookRun would be one too many. `players` asks for their number until there are none.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::ListParams;
use operator_tests::fleet::pod_of;
use operator_tests::{Fleet, SOON};
use serde_json::{Value, json};
use shared_api::names::hook_run_annotation::QUESTION;
use shared_api::{HookRun, Phase};
use test_kit::eventually;

/// Path to which the metric `drain` posts.
const DRAIN: &str = "/drain";
/// Field of a game server's answer that says whether it drains.
const DRAINS: &str = "drains";

/// Builds the spec of the hook.
pub(crate) fn hook() -> Value {
    let url = "http://{{ args.PodIP }}:9091";
    json!({
        "args": [{ "name": "PodIP" }],
        "metrics": [
            {
                "name": "drain", "successCondition": "result == \"yes\"",
                "provider": { "web": {
                    "method": "POST", "url": format!("{url}{DRAIN}"), "jsonPath": format!("{{$.{DRAINS}}}")
                } }
            },
            {
                "name": "players", "interval": "100ms", "successfulLimit": 1,
                "successCondition": "asInt(result) == 0",
                "provider": { "web": { "url": url, "jsonPath": "{$.players}" } }
            }
        ]
    })
}

/// Answer of the game servers to a request to drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// They drain: the HookRun goes on until there are no players.
    Yes,
    /// They refuse: the HookRun fails, and the pod is held until a retry.
    No,
}

impl Answer {
    /// Sets the answer of all game servers.
    pub(crate) fn set(self, fleet: &Fleet<'_>) {
        let text = match self {
            Self::Yes => "yes",
            Self::No => "no",
        };
        fleet.nodes.every_pod().set(DRAINS, json!(text));
    }

    /// Whether a HookRun got this answer, and nothing is in flight that could be lost with a process.
    fn is_recorded(self, run: &HookRun) -> bool {
        let Some(status) = &run.status else { return false };
        let drain = status.metric_results.iter().find(|result| result.name == "drain");
        let Some(drain) = drain else { return false };
        let found = (status.phase, drain.successful, drain.failed);
        match self {
            Self::Yes => found == (Phase::Running, 1, 0),
            Self::No => found == (Phase::Failed, 0, 1),
        }
    }
}

/// Returns the number of requests to drain that a pod's game server has received.
pub(crate) fn drains(fleet: &Fleet<'_>, pod: &str) -> usize {
    fleet.nodes.pod(pod).counts(DRAIN).received
}

/// Returns the image of a pod's first container.
pub(crate) fn image(pod: &Pod) -> Option<&str> {
    let spec = pod.spec.as_ref()?;
    spec.containers.first()?.image.as_deref()
}

/// Returns the HookRuns of a namespace.
async fn runs(fleet: &Fleet<'_>) -> Vec<HookRun> {
    fleet.runs().list(&ListParams::default()).await.unwrap().items
}

/// Pod that waits for its hook, as it was when the hook had begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) pod: String,
    pod_uid: Option<String>,
    image: Option<String>,
    /// Name of its HookRun.
    pub(crate) run: String,
    run_uid: Option<String>,
    phase: Phase,
    /// Question that the HookRun names; the older build names none.
    pub(crate) question: Option<String>,
    /// Number of requests to drain.
    pub(crate) drains: usize,
}

impl Held {
    /// Waits until a HookRun about none of these pods has this answer.
    pub(crate) async fn next(fleet: &Fleet<'_>, known: &BTreeSet<String>, answer: Answer) -> Self {
        Self::until(fleet, answer, |run| !known.contains(&pod_of(run))).await
    }

    /// Waits until another HookRun about the same pod has this answer.
    pub(crate) async fn asked_again(&self, fleet: &Fleet<'_>, answer: Answer) -> Self {
        let is_other = |run: &HookRun| pod_of(run) == self.pod && run.uid() != self.run_uid;
        Self::until(fleet, answer, is_other).await
    }

    async fn until(fleet: &Fleet<'_>, answer: Answer, is_wanted: impl Fn(&HookRun) -> bool) -> Self {
        let run = eventually(SOON, || async {
            let runs = runs(fleet).await;
            let found = runs.iter().find(|run| is_wanted(run) && answer.is_recorded(run));
            found
                .cloned()
                .ok_or_else(|| format!("{:?}", runs.iter().map(seen).collect::<Vec<_>>()))
        })
        .await;
        let name = pod_of(&run);
        let pod = fleet.pods().get(&name).await.unwrap();
        Self {
            pod_uid: pod.uid(),
            image: image(&pod).map(str::to_owned),
            drains: drains(fleet, &name),
            pod: name,
            run: run.name_any(),
            run_uid: run.uid(),
            phase: run.status.as_ref().map(|status| status.phase).unwrap_or_default(),
            question: run.annotations().get(QUESTION).cloned(),
        }
    }

    /// Checks that the pod is as it was, and that it has the same HookRun in the same phase, and no other.
    ///
    /// # Panics
    /// If something has changed.
    pub(crate) async fn assert_kept(&self, fleet: &Fleet<'_>) {
        let pod = fleet.pods().get_opt(&self.pod).await.unwrap();
        let pod = pod.unwrap_or_else(|| panic!("pod {} is lost", self.pod));
        assert_eq!(pod.uid(), self.pod_uid, "another pod has the name {}", self.pod);
        assert_eq!(pod.metadata.deletion_timestamp, None, "{} is deleted", self.pod);
        assert_eq!(image(&pod), self.image.as_deref(), "{} is updated", self.pod);
        let runs = runs(fleet).await;
        let own = runs.iter().filter(|run| pod_of(run) == self.pod);
        let found: Vec<_> = own.map(seen).collect();
        let expected = (self.run.clone(), self.run_uid.clone(), Some(self.phase));
        assert_eq!(found, [expected], "{} was asked again", self.pod);
        let drains = drains(fleet, &self.pod);
        assert_eq!(drains, self.drains, "{} was asked again to drain", self.pod);
    }
}

/// Returns name, UID and phase of a HookRun.
fn seen(run: &HookRun) -> (String, Option<String>, Option<Phase>) {
    let phase = run.status.as_ref().map(|status| status.phase);
    (run.name_any(), run.uid(), phase)
}
