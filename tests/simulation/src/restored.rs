//! Scenario in which etcd is restored from a backup: objects come back or vanish, versions are lower than
//! before, and a watch from a later version shows nothing. Each leader notices it by its Lease, ends and starts
//! anew.

use std::collections::BTreeMap;

use fastrand::Rng;
use shared_api::GameDeploymentSpec;

use crate::endpoint::Behaviour;
use crate::games::KINDS;
use crate::kubelet::Machine;
use crate::process::Work;
use crate::referee::Referee;
use crate::server::Server;
use crate::setup::{Look, template};
use crate::world::World;

/// Seconds within which the operators act on the restored objects.
const SECONDS: usize = 60;

/// State of the cluster at the time of a backup, and what the referee knows about it.
struct Backup {
    server: Server,
    machines: BTreeMap<String, Machine>,
    behaviours: BTreeMap<String, Behaviour>,
    referee: Referee,
}

impl World {
    /// Restores a backup after an update and a change of scale that it does not contain.
    pub fn live_on_after_a_restore(&mut self, dice: &mut Rng) {
        let backup = self.back_up();
        let lost = |spec: &mut GameDeploymentSpec| {
            spec.template = template(Look::unseen(7)).into();
            spec.replicas = Some(spec.replicas.unwrap_or(1) + 2);
        };
        self.edit(lost, || {
            "a new template and two more pods, which will be lost".to_owned()
        });
        self.come_to_rest(dice, true);
        let leaders = self.processes.iter().enumerate().filter(|(_, one)| one.works());
        let leaders: Vec<_> = leaders.map(|(at, one)| (at, one.incarnation)).collect();
        self.restore(backup);
        for _ in 0..SECONDS {
            self.round(dice, true);
        }
        for (at, incarnation) in leaders {
            let process = &self.processes[at];
            assert!(
                process.incarnation > incarnation,
                "{} goes on with what was lost: {}",
                process.name(),
                self.describe()
            );
        }
        self.totals.restores += 1;
    }

    fn back_up(&self) -> Backup {
        Backup {
            server: self.server.clone(),
            machines: self.machines.clone(),
            behaviours: self.behaviours.clone(),
            referee: self.referee.clone(),
        }
    }

    /// Restores the cluster. Watches list anew, or go on and show nothing.
    fn restore(&mut self, backup: Backup) {
        let Backup {
            server,
            machines,
            behaviours,
            referee,
        } = backup;
        self.server.restore(server);
        (self.machines, self.behaviours, self.referee) = (machines, behaviours, referee);
        // The last heartbeats of restored Evictions are old.
        self.attendants.clear();
        if self.code[1].is_multiple_of(2) {
            for process in &mut self.processes {
                match &mut process.work {
                    Work::None => {}
                    Work::Games(games) => (0..KINDS).for_each(|kind| games.lose_watch(kind)),
                    Work::Hooks(hooks) => hooks.lose_watch(),
                }
            }
        }
        self.foreign += 1;
        self.tell(|| "etcd is restored from a backup".to_owned());
    }
}
