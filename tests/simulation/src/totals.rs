//! Counts of events: a simulation without events proves nothing.

use std::fmt;
use std::ops::AddAssign;

macro_rules! totals {
    ($($name:ident: $text:literal),+ $(,)?) => {
        /// Counts.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct Totals { $(pub $name: u64),+ }

        impl Totals {
            /// Returns each count with its name.
            pub fn all(&self) -> Vec<(&'static str, u64)> {
                vec![$(($text, self.$name)),+]
            }
        }

        impl AddAssign for Totals {
            fn add_assign(&mut self, other: Self) {
                $(self.$name += other.$name;)+
            }
        }
    };
}

totals! {
    seeds: "seeds",
    steps: "steps",
    decisions: "decisions",
    stale: "decisions on a stale view",
    writes: "writes",
    conflicts: "conflicts",
    refused: "refused writes",
    lost: "lost answers",
    late: "writes after their sender gave them up",
    lapsed: "writes that lapsed before their turn",
    fenced: "writes kept back by the fence",
    together: "deletions of several runs by one call",
    overdue: "reads of what no watch had shown in time",
    crashes: "crashes",
    pauses: "pauses",
    leaders: "leadership changes",
    relists: "lists after a lost watch",
    measurements: "measurements",
    recorded: "measurements recorded",
    verdicts: "verdicts",
    successes: "successful verdicts",
    approvals: "approvals used",
    deletions: "pods deleted",
    scouts: "scouts",
    scouts_of_updates: "of these, scouts that only an update needs",
    idle: "successful verdicts of scouts",
    exchanged: "selections cleared while idle pods were searched for",
    notices: "notices",
    notices_again: "of these, notices to pods that were selected again",
    failed_notices: "notices that ended without a success",
    after_notices: "hooks that ran after their notice was measured or had ended",
    after_waits: "hooks that ran although their notice was not measured in time",
    without_notices: "hooks that ran without a notice because it had no template",
    requests: "removal requests",
    requests_of_nodes: "removal requests of nodes",
    requested: "pods deleted on request",
    requested_by_nodes: "of these, at the request of their node",
    requested_by_evictions: "of these, at the request of their Eviction",
    annotated: "pods that got autoscaler annotations",
    released: "pods whose autoscaler annotations were removed",
    drained: "pods that got draining labels",
    undrained: "pods that got their former labels back",
    relabelled: "corrections of draining or outdated labels",
    called_off: "of these, after an update in place was cancelled",
    outdated: "pods that got outdated labels",
    outdated_in_place: "of these, before an update in place",
    evictions: "Evictions",
    canceled: "of these, canceled because all requesters withdrew",
    passed_on: "of these, passed on to the next responder",
    completed: "of these, completed after their pod was deleted",
    reports: "reports to Evictions",
    in_place: "pods updated in place",
    confirmations: "updates confirmed",
    created: "pods created",
    edits: "edits by people",
    retries: "retries reset",
    lifecycle: "verdicts of lifecycle hooks",
    exceeded: "rollouts that exceeded their time",
    rollbacks: "rollouts rolled back",
    went_back: "pods that went back",
    workloads: "workloads deleted",
    guarded: "of these, deletions that run hooks",
    left_before: "pods deleted before their workload",
    emptied: "finalizers removed from workloads without pods",
    unmeasured: "looks at runs that nobody measures",
    silences: "kubelets that fell silent",
    not_ready: "nodes of silent kubelets marked as not Ready",
    altered: "writes that were stored otherwise",
    restores: "restores of etcd from a backup",
    never_started: "writes to pods that never started",
    young_reports: "of these, writes where nodes are not watched",
    unnoticed: "of these, writes that no one could know to be too late",
    doubted: "hooks asked because a node was not Ready",
    forged: "forged runs",
    restored: "forged runs with the real spec restored",
    converged: "worlds that converged",
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, count) in self.all() {
            writeln!(f, "{count:>12} {name}")?;
        }
        Ok(())
    }
}
