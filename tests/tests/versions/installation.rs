//! Two processes of each operator, which rolling updates replace by those of another build.

use operator_tests::fleet::Who;
use operator_tests::{Fleet, Operator, SOON, allow_election};
use test_kit::{ControlPlane, eventually};

use crate::PROGRAMS;
use crate::builds::{Build, Builds};

/// Processes of each operator.
const REPLICAS: usize = 2;

/// Process of an operator.
struct Candidate {
    who: Who,
    build: Build,
    operator: Operator,
}

impl Candidate {
    async fn start(fleet: &Fleet<'_>, builds: &Builds, who: Who, build: Build) -> Self {
        let operator = Operator::start(&builds.start(fleet, who, build));
        operator.ready().await;
        Self { who, build, operator }
    }

    /// Asks the process to end, as a kubelet does, and waits until it has.
    async fn end(self) {
        let process = &self.operator.process;
        let status = process.terminate(SOON).await.unwrap();
        assert!(status.success(), "{status}: {}", process.tail(10));
    }
}

impl Drop for Candidate {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let (who, build, tail) = (self.who.name(), self.build, self.operator.process.tail(40));
            eprintln!("the last lines of {who}, {build:?}:\n{tail}\n");
        }
    }
}

/// Both operators of a fleet.
pub(crate) struct Installation {
    builds: Builds,
    workloads: Vec<Candidate>,
    hooks: Vec<Candidate>,
}

/// Returns a fleet with the older build of both operators; `None` if this copy of the repository lacks its commit.
pub(crate) async fn installed(name: &str) -> Option<(Fleet<'static>, Installation)> {
    let builds = Builds::find()?;
    let control_plane = ControlPlane::shared(shared_api::crd::all).await;
    let mut fleet = Fleet::on(control_plane, PROGRAMS, name).await;
    (fleet.workloads, fleet.hooks) = (None, None);
    fleet.with_older = true;
    allow_election(control_plane, &fleet.namespace);
    let mut installation = Installation {
        builds,
        workloads: Vec::new(),
        hooks: Vec::new(),
    };
    for who in [Who::Workloads, Who::Hooks] {
        for _ in 0..REPLICAS {
            installation.add(&fleet, who, Build::Older).await;
        }
        installation.until_one_leads(who).await;
    }
    Some((fleet, installation))
}

impl Installation {
    fn candidates(&self, who: Who) -> &[Candidate] {
        match who {
            Who::Workloads => &self.workloads,
            Who::Hooks => &self.hooks,
        }
    }

    fn candidates_mut(&mut self, who: Who) -> &mut Vec<Candidate> {
        match who {
            Who::Workloads => &mut self.workloads,
            Who::Hooks => &mut self.hooks,
        }
    }

    async fn add(&mut self, fleet: &Fleet<'_>, who: Who, build: Build) {
        let candidate = Candidate::start(fleet, &self.builds, who, build).await;
        self.candidates_mut(who).push(candidate);
    }

    /// Updates both operators in this order, each as a Deployment does: it starts one process of the new build, and
    /// ends one of the old build once the new one is ready. Waits until the new leaders have decided.
    pub(crate) async fn roll(&mut self, fleet: &Fleet<'_>, to: Build, order: [Who; 2]) {
        for who in order {
            for _ in 0..REPLICAS {
                self.add(fleet, who, to).await;
                let old = self.candidates_mut(who).remove(0);
                assert_ne!(old.build, to);
                old.end().await;
            }
            self.until_one_leads(who).await;
        }
        eventually(SOON, || async {
            let decisions = self
                .sum(Who::Workloads, "hookgate_gamedeployment_decisions_total")
                .await;
            (decisions > 0).then_some(())
        })
        .await;
    }

    async fn until_one_leads(&self, who: Who) {
        eventually(SOON, || async {
            let leaders = self.sum(who, "hookgate_leader{").await;
            if leaders == 1 {
                Ok(())
            } else {
                Err(format!("{leaders} processes of {} lead", who.name()))
            }
        })
        .await;
    }

    /// Returns the sum of a metric over the processes of an operator.
    async fn sum(&self, who: Who, metric: &str) -> u64 {
        let mut sum = 0;
        for candidate in self.candidates(who) {
            sum += candidate.operator.metric(metric, "").await;
        }
        sum
    }
}
