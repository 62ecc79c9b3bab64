//! End of all faults. With successful hooks, everything converges within a bound and stays so. With hooks
//! that always fail, the status gives a reason for every waiting pod, and these pods block nothing else.

use std::collections::BTreeSet;
use std::fmt::Write;

use fastrand::Rng;
use gamedeployment_core::hook_kind::HookKind;
use gamedeployment_core::workload::{UpdateType, Workload};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use shared_api::names::pod as names;
use shared_api::names::workload::{ASK_BEFORE_REMOVAL, RETRY_REQUESTED};
use shared_api::removal_request::RemovalType;
use shared_api::{GameDeploymentSpec, Phase};

use crate::endpoint::Behaviour;
use crate::fault_profile::FaultProfile;
use crate::games::KINDS;
use crate::objects::{RunObject, WorkloadObject};
use crate::process::{GAMES, Work};
use crate::questions::question;
use crate::server::Refuses;
use crate::setup::{Look, NAMES, strategy_of, template, workload};
use crate::world::{FLEET, World, url};

mod round;
mod unmeasured;

/// Maximum number of rounds of about a second until everything has settled.
const ROUNDS: usize = 1500;
/// Seconds without a write that count as rest, unless something wakes up later.
const QUIET: usize = 45;

impl World {
    /// Ends all faults; users tend to whatever needs them.
    pub fn settle(&mut self) {
        self.repair();
        self.give_up_a_node();
        let mut dice = Rng::with_seed(1);
        self.dismiss_behaviours(Behaviour::YES);
        self.come_to_rest(&mut dice, true);
        self.check_end();
        let trouble: Option<fn(&mut Self, &mut Rng)> = match self.code[0] % 5 {
            0 => Some(Self::live_on_with_a_template_that_is_refused),
            1 => Some(Self::live_on_while_writes_are_refused),
            2 => Some(Self::live_on_while_pods_end_at_once),
            3 => Some(Self::live_on_after_a_restore),
            _ => Some(Self::live_on_while_writes_are_altered),
        };
        if let Some(live_on) = trouble {
            live_on(self, &mut dice);
            self.come_to_rest(&mut dice, true);
            self.check_end();
        }
        if self.is_guarded() {
            self.live_on_while_removals_are_requested(&mut dice);
            self.come_to_rest(&mut dice, true);
            self.check_end();
            if self.watches_nodes {
                self.live_on_while_nodes_are_cordoned(&mut dice);
                self.come_to_rest(&mut dice, true);
                self.check_end();
            }
            // In half of the worlds.
            if self.server.serves_evictions && self.code[4].is_multiple_of(2) {
                self.live_on_while_evictions_are_active(&mut dice);
                self.come_to_rest(&mut dice, true);
                self.check_end();
            }
        }
        self.totals.converged += 1;
    }

    /// Lets the hooks of some pods fail forever.
    pub fn settle_with_refusals(&mut self, bits: u8) {
        self.repair();
        let mut dice = Rng::with_seed(2);
        self.dismiss_behaviours(Behaviour::YES);
        self.shorten_requests();
        let one_pod = self.code[2].is_multiple_of(2);
        let leave_idle = self.deletes_idle_first() && !self.code[1].is_multiple_of(4);
        if one_pod {
            self.edit(|spec| spec.replicas = Some(5), || "replicas 5".to_owned());
            self.come_to_rest(&mut dice, true);
        } else {
            self.give_up_a_node();
        }
        let pods: Vec<_> = self.server.pods.iter().cloned().collect();
        for (at, pod) in pods
            .iter()
            .enumerate()
            .filter(|(at, _)| bits >> (at % 8) & 1 == 1)
        {
            let manner = [Behaviour::NO, Behaviour::any(&mut dice)][at % 2];
            self.behaviours.insert(pod.id.uid.clone(), manner);
            if !one_pod && self.is_guarded() {
                self.request_removal(&pod.id.name, "admin", RemovalType::Manual);
            }
        }
        if one_pod && leave_idle {
            self.leave_two_pods(&mut dice);
        } else if one_pod {
            self.update_one_pod();
        }
        self.come_to_rest(&mut dice, false);
        self.check_words();
        self.check_hooks();
        self.delete_runs_that_a_finalizer_keeps();
        self.come_to_rest(&mut dice, false);
        self.check_words();
        self.check_kept_runs();
        self.retry();
        self.come_to_rest(&mut dice, false);
        self.check_words();
        self.check_kept_runs();
    }

    /// Leaves two pods, the busy ones if possible. In some worlds other pods are selected first, in deletion order.
    fn leave_two_pods(&mut self, dice: &mut Rng) {
        let set_policy = |world: &mut Self, policy: &str| {
            let policy = policy.to_owned();
            let words = format!("replicas 2 and the selection policy {policy}");
            let change = |spec: &mut GameDeploymentSpec| {
                spec.replicas = Some(2);
                spec.scale_strategy.get_or_insert_default().selection_policy = Some(policy);
            };
            world.edit(change, || words);
        };
        if self.code[5].is_multiple_of(2) {
            set_policy(self, "Ranked");
            self.come_to_rest(dice, false);
            self.check_words();
        }
        set_policy(self, "FirstIdle");
    }

    /// Rolls out another image beside a partition that leaves one pod to update.
    fn update_one_pod(&mut self) {
        let another = |spec: &mut GameDeploymentSpec| {
            let look = Look {
                game: 9,
                ..Look::default()
            };
            spec.template = template(look).into();
            let one_less = (spec.replicas.unwrap_or(1) - 1).max(0);
            let strategy = spec.update_strategy.get_or_insert_default();
            strategy.partition = Some(IntOrString::Int(one_less));
            (strategy.canary, strategy.paused) = (None, None);
            if matches!(strategy.type_.as_deref(), Some("OnDelete" | "Recreate")) {
                strategy.type_ = None;
            }
        };
        self.edit(another, || "another image, for one pod".to_owned());
    }

    /// Checks that HookRuns that a finalizer keeps are reported on the workload, and that no retry waits for
    /// them.
    fn check_kept_runs(&self) {
        let Some(object) = self.server.workloads.get(FLEET) else {
            return;
        };
        let mut spec = object.api.spec.clone();
        let mut kinds = HookKind::ALL.into_iter();
        let waits = kinds.any(|kind| {
            let strategy = strategy_of(&mut spec, kind).as_ref();
            strategy.is_some_and(|strategy| strategy.retry == Some(true))
        });
        assert!(!waits, "a retry has no end: {}", self.describe());
        // A deletion of the workload waits for one kind of hook.
        let matters = |run: &RunObject| {
            let is_own = run.id.owner.as_deref() == Some(object.uid());
            is_own && (!self.is_deleting() || run.read.kind == Some(HookKind::PreDelete))
        };
        let mut runs = self.server.runs.iter();
        if runs.any(|run| run.read.terminating && matters(run)) {
            let mut conditions = object.api.status.iter().flat_map(|status| &status.conditions);
            assert!(
                conditions.any(|known| known.message.contains("stuck terminating because of")),
                "runs are kept in silence: {}",
                self.describe()
            );
        }
    }

    /// Deletes every HookRun while a finalizer keeps them.
    fn delete_runs_that_a_finalizer_keeps(&mut self) {
        let names: Vec<_> = self.server.runs.iter().map(|run| run.id.name.clone()).collect();
        for name in names {
            self.server.keep_run(&name);
            let _ = self.server.delete_run(&name, None, None);
            self.tell(|| format!("somebody deletes run {name}, and a finalizer keeps it"));
        }
    }

    /// Gives every game the same state, now and later.
    fn dismiss_behaviours(&mut self, behaviour: Behaviour) {
        self.canary_behaviour = behaviour;
        self.behaviours.clear();
        let uids: Vec<_> = self.server.pods.iter().map(|pod| pod.id.uid.clone()).collect();
        self.behaviours
            .extend(uids.into_iter().map(|uid| (uid, behaviour)));
    }

    fn repair(&mut self) {
        self.tell(|| "from here on everything works".to_owned());
        self.profile = FaultProfile::fine();
        self.server.quota = None;
        self.server.refuses = Refuses {
            collections: self.code[3].is_multiple_of(4),
            ..Refuses::default()
        };
        self.server.release_runs();
        self.every_image_exists = true;
        self.pods_end_at_once = false;
        for name in NAMES {
            self.server.put_template(name, question(0, url(name)));
        }
        for process in &mut self.processes {
            process.paused_until = self.now;
            process.frozen = [self.now; KINDS];
        }
        for machine in self.machines.values_mut() {
            machine.sick = false;
            machine.pulled_at = self.now;
        }
        self.end_silences();
        self.release_nodes();
        while self.server.nodes.len() < 2 {
            self.server.add_node(self.now);
        }
        let ending = |world: &Self| {
            let object = world.server.workloads.get(FLEET);
            let is_ending = |object: &WorkloadObject| object.api.metadata.deletion_timestamp.is_some();
            object.is_some_and(|object| is_ending(object) && !object.has_finalizer(ASK_BEFORE_REMOVAL))
        };
        for _ in 0..200 {
            self.collect_pods();
            let pods: Vec<_> = self
                .server
                .pods
                .iter()
                .filter(|pod| pod.read.terminating)
                .cloned()
                .collect();
            for pod in pods {
                self.kubelet(&pod);
            }
            if !self.server.collect_garbage(self.now) && !ending(self) {
                break;
            }
        }
        self.recreate();
        self.retry();
    }

    /// Creates the workload if it is gone.
    fn recreate(&mut self) {
        if self.server.workloads.is_empty() {
            self.server.create_workload(workload(self.code), self.now);
            self.foreign += 1;
            self.tell(|| "somebody creates the workload".to_owned());
        }
    }

    fn retry(&mut self) {
        let ask_again = |spec: &mut shared_api::GameDeploymentSpec| {
            for kind in HookKind::ALL {
                if let Some(strategy) = strategy_of(spec, kind) {
                    strategy.retry = Some(true);
                }
            }
        };
        self.edit(ask_again, || "retry of every hook".to_owned());
    }

    /// Requests a retry of every hook if the status reports an unsuccessful one and no retry is pending.
    fn ask_again(&mut self) {
        let Some(object) = self.server.workloads.get(FLEET).cloned() else {
            return;
        };
        let Some(status) = &object.api.status else { return };
        let annotations = object.api.metadata.annotations.as_ref();
        let asked = annotations.and_then(|annotations| annotations.get(RETRY_REQUESTED));
        if let Some(rollback) = &status.rollback
            && (rollback.last_handled_retry.as_ref() == asked
                || !asked.is_some_and(|asked| asked.starts_with("rollout=")))
        {
            return self.begin_rollout_again();
        }
        let is_exceeded = |known: &Condition| {
            known.type_ == "UpdateBlocked"
                && known.reason == "ProgressDeadlineExceeded"
                && !known.message.contains("NotInPlaceUpdatable: ")
        };
        if let Some(timer) = &status.rollout_timer
            && timer.last_handled_retry.as_ref() == asked
            && status.conditions.iter().any(is_exceeded)
        {
            return self.begin_rollout_again();
        }
        let mut hooks = status.lifecycle_hooks.iter();
        if let Some(entry) = hooks.find(|entry| entry.phase.is_aborted()) {
            return self.retry_lifecycle_hook(&entry.name);
        }
        let hooks = [
            &status.pre_delete_hook_condition,
            &status.pre_inplace_hook_condition,
            &status.post_inplace_hook_condition,
        ];
        let bad = |phase: Phase| phase.is_final() && phase != Phase::Successful;
        let mut spec = object.api.spec.clone();
        let mut kinds = HookKind::ALL.into_iter();
        let asked = kinds.any(|kind| {
            strategy_of(&mut spec, kind)
                .as_ref()
                .is_some_and(|known| known.retry == Some(true))
        });
        if !asked && hooks.into_iter().flatten().any(|entry| bad(entry.phase)) {
            self.retry();
        }
    }

    /// Runs rounds of everything until nothing happens any more, now or later.
    pub(crate) fn come_to_rest(&mut self, dice: &mut Rng, tends: bool) {
        let mut quiet = 0;
        for round in 0.. {
            assert!(round < ROUNDS, "no end:\n{}", self.describe());
            let before = self.totals.writes;
            let foreign = self.foreign;
            self.round(dice, tends);
            let busy = self.totals.writes > before || self.foreign > foreign || !self.flights.is_empty();
            quiet = if busy { 0 } else { quiet + 1 };
            if quiet >= QUIET && !self.wakes_soon() {
                break;
            }
        }
        self.check_rest(tends);
    }

    /// Whether a leader of gamedeployment-operator has work at a later time.
    fn wakes_soon(&self) -> bool {
        let object = self.server.workloads.get(FLEET).map(|object| &*object.api);
        let leader = self.processes.iter().find_map(|process| match &process.work {
            Work::Games(games) => Some(games.is_synced() && games.wakes(object, self.now)),
            _ => None,
        });
        leader.unwrap_or(true)
    }

    /// Checks that a day later there is still nothing to do.
    fn check_rest(&mut self, yes: bool) {
        let Some(object) = self.server.workloads.get(FLEET).cloned() else {
            return;
        };
        let leads = |process: &&crate::process::Process| process.operator == GAMES && process.works();
        let leader = self.processes.iter().find(leads);
        let Some(Work::Games(games)) = leader.map(|leader| &leader.work) else {
            panic!("nobody leads");
        };
        let later = games.decide(&object.api, self.now + SignedDuration::from_hours(24));
        assert!(
            later.is_empty() && later.wake.is_none(),
            "not at rest: {later:#?}\n{}",
            self.describe()
        );
        let open = self.server.runs.iter().find(|run| !run.read.phase.is_final());
        assert!(!yes || open.is_none(), "a run has no end: {open:#?}");
    }

    /// Whether a condition of the workload is True for this reason.
    pub(crate) fn says(&self, condition: &str, reason: &str) -> bool {
        let object = self.server.workloads.get(FLEET).unwrap();
        let mut conditions = object.api.status.iter().flat_map(|status| &status.conditions);
        conditions.any(|known| {
            let found = (known.type_.as_str(), known.status.as_str(), known.reason.as_str());
            found == (condition, "True", reason)
        })
    }

    fn check_end(&self) {
        self.check_finalizer();
        self.check_words();
        self.check_hooks();
        let text = || self.describe();
        let object = self.server.workloads.get(FLEET).unwrap();
        let wanted = Workload::read(&object.api).unwrap();
        let status = object.api.status.clone().unwrap();
        let own =
            |pod: &&std::rc::Rc<crate::objects::PodObject>| pod.id.owner.as_deref() == Some(object.uid());
        let pods: Vec<_> = self.server.pods.iter().filter(own).collect();
        assert_eq!(pods.len(), wanted.replicas, "{}", text());
        let update = status.update_revision.clone().unwrap();
        let meaning = |name: &str| {
            self.server
                .revisions
                .get(name)
                .map(|revision| &revision.read.template)
        };
        let is_old = |name: &str| name != update && meaning(name) != meaning(&update);
        let old = pods.iter().filter(|pod| is_old(pod.read.revision())).count();
        let partition = if wanted.steps.is_empty() {
            wanted.partition.partition(wanted.replicas)
        } else {
            0
        };
        let stuck = status
            .conditions
            .iter()
            .filter(|known| known.type_ == "UpdateBlocked")
            .any(|known| {
                known.reason == "NotInPlaceUpdatable" || known.message.contains("NotInPlaceUpdatable: ")
            });
        let updates = wanted.update != UpdateType::OnDelete && !stuck;
        assert!(
            !updates || old <= partition,
            "{old} of {partition} old pods are left: {}",
            text()
        );
        let wait = object.api.spec.min_ready_seconds.unwrap_or(0);
        let serve = pods.iter().filter(|pod| self.serves(pod, wait, self.now)).count();
        assert_eq!(serve, wanted.replicas, "{}", text());
        let chosen: BTreeSet<_> = pods
            .iter()
            .filter(|pod| pod.read.annotation(names::CHOSEN_FOR).is_some())
            .collect::<Vec<_>>()
            .iter()
            .map(|pod| &pod.id.name)
            .collect();
        assert!(chosen.is_empty(), "{}", text());
        let runs: Vec<_> = self
            .server
            .runs
            .iter()
            .filter(|run| run.id.owner.as_deref() == Some(object.uid()))
            .collect();
        assert!(runs.is_empty(), "runs that nothing rests on: {}", text());
        assert_eq!(status.hook_pending_replicas, 0, "{}", text());
        assert_eq!(status.first_idle, None, "{}", text());
        for known in &status.conditions {
            let bad = ["ScaleBlocked", "UpdateBlocked", "InvalidSpec"].contains(&known.type_.as_str());
            assert!(!bad || stuck, "{}", text());
        }
    }

    /// Describes the whole state, for debugging.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        for process in &self.processes {
            let _ = writeln!(
                text,
                "{} {:?} fence {:?} inbox {}",
                process.name(),
                process.starts_at,
                process.fence,
                process.inbox.len()
            );
            if let Work::Games(games) = &process.work {
                text += &games.describe();
            }
        }
        for object in self.server.workloads.iter() {
            let _ = writeln!(text, "{:?}\nstatus {:#?}", object.api.spec, object.api.status);
        }
        for pod in self.server.pods.iter() {
            let _ = writeln!(text, "{:?}\n{:?}", pod.read, self.machines.get(&pod.id.uid));
        }
        for run in self.server.runs.iter() {
            let _ = writeln!(text, "{:?}\n{:?}", run.read, run.api.status);
        }
        for eviction in self.server.evictions.iter() {
            let _ = writeln!(text, "{eviction:?}");
        }
        text
    }
}
