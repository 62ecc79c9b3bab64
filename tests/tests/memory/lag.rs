//! Time that the work of another tenant takes: from the moment at which the API server has stored a HookRun to the
//! request at its endpoint, and from a new number of replicas to the pod.

use std::cell::Cell;
use std::time::{Duration, Instant};

use operator_tests::SOON;
use operator_tests::proof::played;
use serde_json::json;

use crate::api::{Id, Kind};
use crate::arrivals::{Arrivals, RUNS};
use crate::manifests::named_game;
use crate::world::{World, are_optimized};

/// HookRuns and pods of one sample at least.
const SAMPLE: usize = 10;
/// Time between two of them at least.
const PACE: Duration = Duration::from_millis(100);
/// Workload of another tenant, which gets one pod after another.
const GROWING: &str = "growing";

/// Returns the time that the specs of another tenant may add.
fn added() -> Duration {
    Duration::from_millis(if are_optimized() { 250 } else { 750 })
}

/// Times of a sample.
#[derive(Debug)]
pub(crate) struct Lag {
    /// From the answer of the API server that stored a run to the question.
    question: Times,
    /// hook-operator's part of it: from the time at which the run arrives at any client to the question.
    own: Times,
    /// From the answer of the API server that stored a number of replicas to the new pod's arrival at any client.
    pod: Times,
}

/// Times, sorted.
#[derive(Debug)]
struct Times(Vec<Duration>);

impl Times {
    fn median(&self) -> Duration {
        self.0[self.0.len() / 2]
    }

    fn slowest(&self) -> Duration {
        self.0[self.0.len() - 1]
    }

    fn is_as_before(&self, before: &Self) -> bool {
        self.slowest() < before.slowest() + added()
    }
}

impl FromIterator<Duration> for Times {
    fn from_iter<I: IntoIterator<Item = Duration>>(times: I) -> Self {
        let mut times: Vec<Duration> = times.into_iter().collect();
        times.sort();
        Self(times)
    }
}

impl World<'_> {
    /// Creates the workload that grows.
    pub(crate) async fn launch_growing(&self) {
        let game = named_game(GROWING, 0, json!({})).to_string();
        self.api.create(Kind::GameDeployment, &self.runs, game).await;
    }

    /// Creates small runs and pods of another tenant, one after another.
    pub(crate) async fn lag(&self) -> Lag {
        self.lag_during(std::future::ready(())).await.1
    }

    /// Creates small runs and pods of another tenant, one after another, until this work is done.
    pub(crate) async fn lag_during<T>(&self, work: impl Future<Output = T>) -> (T, Lag) {
        let done = Cell::new(false);
        let work = async {
            let result = work.await;
            done.set(true);
            result
        };
        tokio::join!(work, self.lag_until(&done))
    }

    async fn lag_until(&self, done: &Cell<bool>) -> Lag {
        let runs = Arrivals::watch(self.fleet.control_plane, RUNS).await;
        let pods = format!("/api/v1/namespaces/{}/pods", self.runs);
        let pods = Arrivals::watch(self.fleet.control_plane, &pods).await;
        let (mut questions, mut new) = (Vec::new(), Vec::new());
        let mut pace = tokio::time::interval(PACE);
        while new.len() < SAMPLE || !done.get() {
            pace.tick().await;
            questions.push(self.lag_of_question(&runs).await);
            new.push(self.lag_of_pod(&pods, new.len() + 1).await);
        }
        Lag {
            question: questions.iter().map(|(all, _)| *all).collect(),
            own: questions.iter().map(|(_, own)| *own).collect(),
            pod: new.into_iter().collect(),
        }
    }

    /// Returns the whole time of a run, and the operator's part.
    async fn lag_of_question(&self, arrivals: &Arrivals) -> (Duration, Duration) {
        let name = self.new_name("quick");
        let path = format!("/{name}");
        self.create_run(&name, &path, json!({})).await;
        let stored = Instant::now();
        let asked = self.server.await_requests(&path, 1, SOON).await.unwrap()[0].at;
        let arrived = arrivals.of(&name).await;
        (
            asked.saturating_duration_since(stored),
            asked.saturating_duration_since(arrived),
        )
    }

    /// Returns the time of a new pod, which will be this many of those that arrive.
    async fn lag_of_pod(&self, arrivals: &Arrivals, count: usize) -> Duration {
        self.grown.set(self.grown.get() + 1);
        let replicas = json!({ "spec": { "replicas": self.grown.get() } }).to_string();
        let game = Id::new(Kind::GameDeployment, &self.runs, GROWING);
        self.api.merge(&game, &replicas).await;
        let stored = Instant::now();
        arrivals.of_all(count).await.saturating_duration_since(stored)
    }

    /// Checks that runs and pods of another tenant come at once, as they did before there were large objects.
    pub(crate) async fn is_on_time(&self, before: &Lag, about: &str) {
        let beside = self.lag().await;
        operator_is_on_time(before, &beside, about);
        assert!(
            beside.question.is_as_before(&before.question) && beside.pod.is_as_before(&before.pod),
            "{about}: {beside:?} beside them, {before:?} without them"
        );
    }
}

/// Checks that hook-operator's part of the time is as short as before, if it is optimized: otherwise, it takes seconds to
/// parse large objects. While the API server stores such objects, it sends events to every client seconds late.
pub(crate) fn operator_is_on_time(before: &Lag, beside: &Lag, about: &str) {
    let ms = |time: Duration| time.as_millis();
    played(
        "fairness",
        &format!("runs and pods of another tenant, {about}"),
        &[
            ("runs, and as many pods", &beside.pod.0.len()),
            (
                "ms to the slowest question before",
                &ms(before.question.slowest()),
            ),
            ("ms to a question in the median", &ms(beside.question.median())),
            ("ms to the slowest question", &ms(beside.question.slowest())),
            ("ms of hook-operator at most", &ms(beside.own.slowest())),
            ("ms to the slowest pod before", &ms(before.pod.slowest())),
            ("ms to a pod in the median", &ms(beside.pod.median())),
            ("ms to the slowest pod", &ms(beside.pod.slowest())),
        ],
    );
    assert!(
        !are_optimized() || beside.own.is_as_before(&before.own),
        "{about}: {beside:?} beside them, {before:?} without them"
    );
}
