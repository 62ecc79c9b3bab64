//! A scale-down: pods wait until their players have left, or are held because their hooks failed.

use std::collections::BTreeSet;

use kube::ResourceExt;
use operator_tests::Fleet;
use operator_tests::fleet::{Who, game, hooked};
use shared_api::names::pod::QUESTION;

use crate::builds::Build;
use crate::held::{Answer, Held, drains, hook};
use crate::installation::installed;

/// Strategy that guards deletions.
const PRE_DELETE: &str = "preDeleteUpdateStrategy";
/// Pods before the scale-down.
const REPLICAS: usize = 10;

/// Workload that is scaled down, one pod after another.
struct ScaleDown<'f> {
    fleet: &'f Fleet<'f>,
    replicas: usize,
    held: Vec<Held>,
    gone: BTreeSet<String>,
}

impl<'f> ScaleDown<'f> {
    /// Launches the workload, with players on all pods.
    async fn launch(fleet: &'f Fleet<'f>) -> Self {
        fleet.nodes.every_pod().set_players(3);
        fleet.hook("drain", hook()).await;
        fleet.launch(&game(REPLICAS, hooked("drain"))).await;
        Self {
            fleet,
            replicas: REPLICAS,
            held: Vec::new(),
            gone: BTreeSet::new(),
        }
    }

    /// Removes one pod more, and waits until its game server has given this answer.
    async fn ask(&mut self, answer: Answer) -> Held {
        answer.set(self.fleet);
        self.replicas -= 1;
        self.fleet.scale(self.replicas);
        let held = self.held.iter().map(|held| held.pod.clone());
        let known: BTreeSet<String> = held.chain(self.gone.iter().cloned()).collect();
        let asked = Held::next(self.fleet, &known, answer).await;
        assert_eq!(asked.drains, 1, "{asked:?}");
        self.held.push(asked.clone());
        self.assert_kept().await;
        asked
    }

    /// Lets the players of a pod leave, and waits until the pod is deleted. It was not asked again for that.
    async fn leave(&mut self, leaver: &Held) {
        self.fleet.nodes.pod(&leaver.pod).set_players(0);
        self.fleet
            .until_pods(|pods| !pods.contains_key(&leaver.pod))
            .await;
        assert_eq!(drains(self.fleet, &leaver.pod), leaver.drains, "{leaver:?}");
        self.held.retain(|held| held.pod != leaver.pod);
        self.gone.insert(leaver.pod.clone());
        self.assert_kept().await;
    }

    /// Waits until another HookRun asks about a pod, which is one request to drain more.
    async fn asked_again(&mut self, pod: &Held) -> Held {
        let again = pod.asked_again(self.fleet, Answer::Yes).await;
        assert_eq!(again.drains, pod.drains + 1, "{again:?}");
        let mut held = self.held.iter_mut();
        let held = held.find(|held| held.pod == again.pod).unwrap();
        *held = again.clone();
        again
    }

    /// Checks that all pods that were asked are kept with their HookRuns, and that no other pod has ended.
    async fn assert_kept(&self) {
        for held in &self.held {
            held.assert_kept(self.fleet).await;
        }
        assert_eq!(self.fleet.nodes.terminated_pods(), self.gone);
    }

    /// Lets all players leave: all pods go that wait for that. Those whose hooks failed are held until a retry.
    async fn finish(mut self, refused: &[Held]) {
        let fleet = self.fleet;
        Answer::Yes.set(fleet);
        fleet.nodes.every_pod().set_players(0);
        let left = self.replicas + refused.len();
        fleet.until_pods(|pods| pods.len() == left).await;
        let is_refused = |held: &Held| refused.iter().any(|other| other.pod == held.pod);
        let (refused, gone): (Vec<Held>, Vec<Held>) = self.held.into_iter().partition(is_refused);
        for held in gone {
            assert_eq!(drains(fleet, &held.pod), held.drains, "{held:?}");
            self.gone.insert(held.pod);
        }
        self.held = refused;
        self.assert_kept().await;
        fleet.retry(PRE_DELETE);
        fleet.settled(self.replicas).await;
        for held in self.held {
            assert_eq!(drains(fleet, &held.pod), 2, "{held:?}");
            self.gone.insert(held.pod);
        }
        assert_eq!(fleet.nodes.terminated_pods(), self.gone);
        for name in fleet.names().await {
            assert_eq!(drains(fleet, &name), 0, "{name} was asked to drain and stays");
        }
    }
}

#[tokio::test]
async fn both_builds_keep_the_questions_of_each_other() {
    let Some((fleet, mut installation)) = installed("versions-scale-down").await else {
        return;
    };
    let mut game = ScaleDown::launch(&fleet).await;
    let mut refused = vec![game.ask(Answer::No).await];
    game.ask(Answer::Yes).await;
    let first = game.ask(Answer::Yes).await;
    assert_eq!(first.question, None, "the older build names none");

    let hooks_first = [Who::Hooks, Who::Workloads];
    installation.roll(&fleet, Build::This, hooks_first).await;
    game.assert_kept().await;
    game.leave(&first).await;
    refused.push(game.ask(Answer::No).await);
    let edited = game.ask(Answer::Yes).await;
    let second = game.ask(Answer::Yes).await;
    assert!(second.question.is_some(), "{second:?}");

    let workloads_first = [Who::Workloads, Who::Hooks];
    installation.roll(&fleet, Build::Older, workloads_first).await;
    game.assert_kept().await;
    game.leave(&second).await;
    refused.push(game.ask(Answer::No).await);
    game.ask(Answer::Yes).await;
    // A user deletes a HookRun, and the older build asks again. Its HookRun names no question, and the pod still shows
    // the earlier one.
    fleet.delete_run(&edited.run).await;
    let edited = game.asked_again(&edited).await;
    assert_eq!(edited.question, None, "the older build names none");
    game.assert_kept().await;

    installation.roll(&fleet, Build::This, workloads_first).await;
    // The one HookRun that does not count: a late deletion, decided on a success of the earlier question, would not
    // conflict with it. So this build asks once more, and names the question that it has noted on the pod.
    let edited = game.asked_again(&edited).await;
    let pod = fleet.pods().get(&edited.pod).await.unwrap();
    assert!(edited.question.is_some(), "{edited:?}");
    assert_eq!(pod.annotations().get(QUESTION), edited.question.as_ref());
    game.assert_kept().await;
    game.finish(&refused).await;
    // The witness judges when the fleet ends; all operators must have ended by then.
    drop(installation);
}
