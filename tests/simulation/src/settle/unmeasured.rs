//! Scenario without hook-operator: conditions report waiting HookRuns in time, and the workload continues
//! once it runs again.

use std::collections::BTreeMap;

use fastrand::Rng;
use gamedeployment_core::hook_kind::HookKind;
use gamedeployment_core::workload::Workload;
use jiff::{SignedDuration, Timestamp};
use shared_api::reason::WorkloadReason;

use crate::process::HOOKS;
use crate::referee::{is_notice, is_scout};
use crate::world::{FLEET, World};

/// Duration without hook-operator, in seconds.
const AWAY: usize = 150;
/// Age in seconds at which a condition reports a HookRun without a status.
const UNTOUCHED: i64 = 40;
/// The same for a HookRun with a status: it may first wait for the interval and the timeout of a measurement.
const MEASURED: i64 = 100;

/// Seconds after the creation of the last scout at which a condition reports a search: a pod is selected when no scout
/// is taken up, and its own HookRun is reported.
const SEARCHED: i64 = 2 * UNTOUCHED;
/// Seconds for which a notice delays the HookRun of a selected pod.
const NOTIFIED: i64 = UNTOUCHED;

/// Time when each version of a run was first seen on the server.
type Known = BTreeMap<(String, String), Timestamp>;

impl World {
    /// Ends both processes of hook-operator, and starts them again later.
    pub fn settle_without_measurements(&mut self) {
        self.repair();
        let mut dice = Rng::with_seed(3);
        for process in &mut self.processes {
            if process.operator == HOOKS {
                process.end(self.now, SignedDuration::from_hours(24));
            }
        }
        self.tell(|| "hook-operator ends".to_owned());
        let fewer = |spec: &mut shared_api::GameDeploymentSpec| {
            spec.replicas = spec.replicas.map(|replicas| (replicas - 1).max(0));
        };
        self.edit(fewer, || "one replica less".to_owned());
        let (mut known, mut silent) = (Known::new(), BTreeMap::new());
        for _ in 0..AWAY {
            self.round(&mut dice, false);
            self.check_told(&mut known);
            self.check_waits_for_notices(&mut silent);
        }
        for process in &mut self.processes {
            if process.operator == HOOKS {
                process.starts_at = Some(self.now);
            }
        }
    }

    /// Checks that a condition reports every run that has been unchanged for long, by reason and name.
    fn check_told(&mut self, known: &mut Known) {
        let Some(object) = self.server.workloads.get(FLEET) else {
            return;
        };
        let is_deleting = self.is_deleting();
        let is_ending = object.api.metadata.deletion_timestamp.is_some();
        if Workload::read(&object.api).is_err() || is_ending && !is_deleting {
            return;
        }
        let status = object.api.status.clone().unwrap_or_default();
        let hooks = [
            &status.pre_delete_hook_condition,
            &status.pre_inplace_hook_condition,
            &status.post_inplace_hook_condition,
        ];
        let bad = |kind: &str| ["ScaleBlocked", "UpdateBlocked"].contains(&kind);
        let bad: Vec<_> = status
            .conditions
            .iter()
            .filter(|known| bad(&known.type_) && known.status == "True")
            .collect();
        // A rollout that has exceeded its time is stopped: it does not wait for its runs.
        let is_stopped = bad
            .iter()
            .any(|known| known.reason == WorkloadReason::ProgressDeadlineExceeded.as_str());
        let notified = if self.has_notice() { NOTIFIED } else { 0 };
        // Few candidates at a time are tried one after the other.
        let mut scouts = self.server.runs.iter().filter(|run| is_scout(run));
        let is_searching = scouts.any(|scout| {
            let created = scout.read.created.unwrap();
            self.now.duration_since(created) < SignedDuration::from_secs(SEARCHED + notified)
        });
        for run in self.server.runs.iter() {
            let is_for_deletion = run.read.kind == Some(HookKind::PreDelete);
            // No pod waits for its notice that long.
            let is_notice = is_notice(&run.api.metadata);
            if is_notice || is_stopped && run.read.rollout.is_some() || is_deleting && !is_for_deletion {
                continue;
            }
            let of_fleet = run.id.owner.as_deref() == Some(object.uid());
            if !of_fleet || run.api.metadata.deletion_timestamp.is_some() || run.read.phase.is_final() {
                continue;
            }
            let version = (run.id.uid.clone(), run.id.version.clone());
            let since = *known.entry(version).or_insert(self.now);
            let most = if run.api.status.is_none() {
                UNTOUCHED
            } else {
                MEASURED
            };
            // A pod is selected when its scout is not taken up, and then its own HookRun is not.
            let most = most + if is_scout(run) { UNTOUCHED + notified } else { 0 };
            let is_young = self.now.duration_since(since) < SignedDuration::from_secs(most);
            if is_young || is_scout(run) && is_searching {
                continue;
            }
            self.totals.unmeasured += 1;
            let name = &run.id.name;
            let names = |text: &str| text.contains(name) && text.contains("hook-operator");
            let mut entries = hooks.into_iter().flatten();
            let said = entries.any(|entry| names(entry.message.as_deref().unwrap_or_default()))
                || run.read.rollout.is_some() && status.conditions.iter().any(|known| names(&known.message));
            // The status reports the HookRuns of selected pods.
            assert!(
                said || is_scout(run),
                "nobody measures {name}, and that is not said: {status:#?}"
            );
            // Another reason may take precedence.
            assert!(
                !bad.is_empty(),
                "nobody measures {name}, and no condition says so: {status:#?}"
            );
        }
    }
}
