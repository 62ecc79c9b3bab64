//! World, and one step of it. Each step draws its events from its own number: a list of numbers is a story,
//! and so is a story with steps left out.

use std::collections::BTreeMap;

use fastrand::Rng;
use gamedeployment_core::plan;
use gamedeployment_driver::store::{Store, StoredObject};
use gamedeployment_driver::{CallLimits, DriverLimits};
use jiff::{SignedDuration, Timestamp};
use shared_api::HookTemplateSpec;
use shared_api::hook_run::HookRunSpec;

use crate::endpoint::{Behaviour, Call};
use crate::evictions::Attendant;
use crate::fault_profile::FaultProfile;
use crate::games::{Games, KINDS};
use crate::kubelet::Machine;
use crate::network::Flight;
use crate::nodes::{Silence, Unreported};
use crate::objects::{Object, PodObject, key};
use crate::process::{GAMES, HOOKS, Process, Work};
use crate::questions::{notice, question};
use crate::referee::Referee;
use crate::server::Server;
use crate::server::table::Table;
use crate::setup::{NAMES, NOTICE, workload};
use crate::totals::Totals;

mod work;

/// Start time.
pub const EPOCH: Timestamp = Timestamp::constant(1_700_000_000, 0);
/// Number of processes of each operator.
const PROCESSES: usize = 2;
/// Name of the workload.
pub const FLEET: &str = "fleet";

/// Complete state.
#[derive(Debug)]
pub struct World {
    pub now: Timestamp,
    pub server: Server,
    pub machines: BTreeMap<String, Machine>,
    pub behaviours: BTreeMap<String, Behaviour>,
    pub canary_behaviour: Behaviour,
    pub every_image_exists: bool,
    /// Whether every pod on a node ends at once.
    pub pods_end_at_once: bool,
    pub processes: Vec<Process>,
    pub flights: Vec<Flight>,
    pub calls: Vec<Call>,
    pub profile: FaultProfile,
    pub referee: Referee,
    /// Number of changes to pods, nodes and the workload by anyone but the operators.
    pub foreign: u64,
    /// Removed nodes that may register again.
    pub lost_nodes: Vec<String>,
    /// Silent kubelets, by node.
    pub silences: BTreeMap<String, Silence>,
    /// Pods that a kubelet has not reported since its silence, by UID.
    pub unreported: BTreeMap<String, Unreported>,
    /// Evictions whose pod is gone, by UID, and the time at which their controller noticed it.
    pub gone_targets: BTreeMap<String, Timestamp>,
    /// Leaders that are able to report to active Evictions, by the UID of the Eviction.
    pub attendants: BTreeMap<String, Attendant>,
    /// Specs that a forger restores once they are measured, by UID of the run.
    pub disguises: BTreeMap<String, HookRunSpec>,
    pub totals: Totals,
    /// One line for every event, if requested.
    pub story: Option<Vec<String>>,
    /// Seed of the games' initial state.
    endpoint_seed: u64,
    pub code: [u8; 8],
    /// Limits of the drivers, per plan and for concurrent calls.
    pub limits: DriverLimits,
    /// Whether gamedeployment-operator watches nodes.
    pub watches_nodes: bool,
}

impl World {
    /// Builds a world from its seed.
    pub fn new(seed: u64) -> Self {
        let mut dice = Rng::with_seed(seed);
        let code = dice.u64(..).to_le_bytes();
        let profile = FaultProfile::any(&mut dice);
        let endpoint_seed = dice.u64(..);
        let mut world = Self::empty(code, profile, endpoint_seed, limits(&mut dice));
        for name in NAMES {
            world.server.put_template(name, template_of(name, dice.u8(..)));
        }
        world.server.guards = endpoint_seed.is_multiple_of(2);
        world.server.create_workload(workload(code), EPOCH);
        world
    }

    /// Builds a world with nodes and no other objects.
    pub(crate) fn empty(
        code: [u8; 8],
        profile: FaultProfile,
        endpoint_seed: u64,
        limits: DriverLimits,
    ) -> Self {
        let processes = [HOOKS, GAMES]
            .into_iter()
            .flat_map(|operator| (0..PROCESSES).map(move |number| Process::new(operator, number, EPOCH)));
        let mut world = Self {
            now: EPOCH,
            server: Server::default(),
            machines: BTreeMap::new(),
            behaviours: BTreeMap::new(),
            canary_behaviour: Behaviour::YES,
            every_image_exists: false,
            pods_end_at_once: false,
            processes: processes.collect(),
            flights: Vec::new(),
            calls: Vec::new(),
            profile,
            referee: Referee::default(),
            foreign: 0,
            lost_nodes: Vec::new(),
            silences: BTreeMap::new(),
            unreported: BTreeMap::new(),
            gone_targets: BTreeMap::new(),
            attendants: BTreeMap::new(),
            disguises: BTreeMap::new(),
            totals: Totals {
                seeds: 1,
                ..Totals::default()
            },
            story: None,
            endpoint_seed,
            code,
            limits,
            watches_nodes: endpoint_seed % 8 != 1,
        };
        world.server.serves_evictions = endpoint_seed / 8 % 4 != 3;
        for _ in 0..3 {
            world.server.add_node(EPOCH - SignedDuration::from_hours(1));
        }
        world
    }

    /// Adds a line to the story, if there is one.
    pub fn tell(&mut self, words: impl FnOnce() -> String) {
        if let Some(story) = &mut self.story {
            let after = self.now.duration_since(EPOCH).as_millis();
            story.push(format!("{:>5}.{:03}  {}", after / 1000, after % 1000, words()));
        }
    }

    /// Returns the state of a pod's game: explicitly set, or else drawn from the seed.
    pub fn behaviour(&self, uid: &str) -> Behaviour {
        if let Some(behaviour) = self.behaviours.get(uid) {
            return *behaviour;
        }
        let bytes = uid.bytes().fold(self.endpoint_seed, |sum, byte| {
            sum.wrapping_mul(31).wrapping_add(byte.into())
        });
        // Some change with every measurement.
        let times = if bytes.is_multiple_of(3) {
            self.totals.measurements
        } else {
            0
        };
        Behaviour::any(&mut Rng::with_seed(bytes.wrapping_add(times)))
    }

    /// Plays one step.
    pub fn step(&mut self, number: u64) {
        let mut dice = Rng::with_seed(number);
        self.totals.steps += 1;
        let longest = if dice.u8(..30) == 0 { 15_000 } else { 40 };
        self.pass(SignedDuration::from_millis(dice.i64(1..=longest)), &mut dice);
        let FaultProfile {
            processes,
            people,
            trouble,
            ..
        } = self.profile;
        let rare = dice.u16(..1000);
        if rare < processes {
            self.strike(&mut dice);
        } else if rare < processes + people {
            self.totals.edits += 1;
            self.somebody_acts(&mut dice);
        } else if rare < processes + people + trouble {
            self.trouble(&mut dice);
        } else {
            self.go_on(&mut dice);
        }
    }

    /// Performs one of the ordinary activities.
    fn go_on(&mut self, dice: &mut Rng) {
        let first = dice.u8(..16);
        for turn in 0..16 {
            let done = match (first + turn) % 16 {
                0..=4 => self.let_work(dice),
                5..=8 => self.show(dice),
                9..=11 => self.arrive(dice),
                12 => self.some_call(dice),
                13 | 14 => self.some_kubelet(dice),
                _ => self.server.collect_garbage(self.now) && self.changed(),
            };
            if done {
                return;
            }
        }
        // Nothing to do: let time pass.
        self.pass(SignedDuration::from_millis(dice.i64(100..3000)), dice);
    }

    /// Counts a change by others.
    fn changed(&mut self) -> bool {
        self.foreign += 1;
        true
    }

    /// Lets time pass, with the leader election, and then tends the nodes and Evictions and abandons overdue requests.
    pub fn pass(&mut self, time: SignedDuration, dice: &mut Rng) {
        let end = self.now + time;
        while self.now < end {
            self.now = end.min(self.now + SignedDuration::from_millis(700));
            self.elect(dice);
        }
        self.tend_nodes();
        self.tend_evictions();
        self.give_up();
    }

    /// Delivers a watch item to a working process.
    fn show(&mut self, dice: &mut Rng) -> bool {
        let Some(at) = self.pick(dice, |process, _| process.works()) else {
            return false;
        };
        let kind = dice.usize(..KINDS);
        for turn in 0..KINDS {
            let kind = (kind + turn) % KINDS;
            if self.processes[at].frozen[kind] > self.now {
                continue;
            }
            if self.show_kind(at, kind) {
                if !self.profile.lag {
                    while self.show_kind(at, kind) {}
                }
                return true;
            }
        }
        false
    }

    /// Delivers one item of a kind's watch.
    pub fn show_kind(&mut self, at: usize, kind: usize) -> bool {
        let process = &mut self.processes[at];
        let (any, expired) = match &mut process.work {
            Work::Hooks(hooks) if kind == 3 => hooks.learn(&self.server, self.now),
            Work::None | Work::Hooks(_) => (false, false),
            Work::Games(games) => {
                let shown = games.learn(&self.server, kind, self.now);
                (shown.any, shown.expired)
            }
        };
        self.totals.relists += u64::from(expired);
        any
    }

    /// Picks a running process that matches, from a random position on.
    fn pick(&self, dice: &mut Rng, such: impl Fn(&Process, Timestamp) -> bool) -> Option<usize> {
        let first = dice.usize(..self.processes.len());
        let mut places = (0..self.processes.len()).map(|turn| (first + turn) % self.processes.len());
        places.find(|at| self.processes[*at].runs(self.now) && such(&self.processes[*at], self.now))
    }

    /// Delivers a request to the API server.
    fn arrive(&mut self, dice: &mut Rng) -> bool {
        if self.flights.is_empty() {
            return false;
        }
        let at = dice.usize(..self.flights.len());
        self.land(at, dice)
    }

    fn some_call(&mut self, dice: &mut Rng) -> bool {
        if self.calls.is_empty() {
            return false;
        }
        let before = self.calls.len();
        self.answer(dice.usize(..before));
        self.calls.len() < before
    }

    fn some_kubelet(&mut self, dice: &mut Rng) -> bool {
        let at = dice.usize(..8);
        let Some(pod) = self.server.pods.nth(at).cloned() else {
            return false;
        };
        self.kubelet(&pod)
    }

    /// Whether a pod really serves and has done so for long enough at this time.
    pub fn serves(&self, pod: &PodObject, wait: i32, at: Timestamp) -> bool {
        let read = &pod.read;
        let ready = read.ready_since.filter(|_| read.is_ready() && read.is_active());
        ready.is_some_and(|since| since + SignedDuration::from_secs(wait.into()) <= at)
            && read.in_place.as_ref().is_none_or(|condition| condition.ready)
            && self
                .machines
                .get(&pod.id.uid)
                .is_some_and(|machine| machine.runs_its_images(&pod.api))
    }
}

impl World {
    /// Whether a pod has served and may do so again by itself: it serves, or is only interrupted.
    pub fn may_serve(&self, pod: &PodObject) -> bool {
        let read = &pod.read;
        let machine = self.machines.get(&pod.id.uid);
        read.is_active()
            && read.in_place.as_ref().is_none_or(|condition| condition.ready)
            && machine.is_some_and(|machine| {
                (read.is_ready() || machine.served) && machine.keeps_its_images(&pod.api)
            })
    }
}

/// Draws the limits. Fleets are small here, so some worlds have small limits.
fn limits(dice: &mut Rng) -> DriverLimits {
    if dice.bool() {
        return DriverLimits::default();
    }
    DriverLimits {
        plan: plan::PlanLimits {
            creations: dice.usize(1..4),
            changes: dice.usize(1..5),
            removals: dice.usize(1..4),
        },
        calls: CallLimits {
            at_once: dice.usize(1..4),
            together: dice.usize(1..4),
            many: dice.usize(1..3),
        },
    }
}

/// Returns the URL of a template's metric.
pub fn url(name: &str) -> &'static str {
    if name == "canary" {
        "http://canary/players"
    } else {
        "http://{{args.PodIP}}:8080/players"
    }
}

/// Returns a template of this name, of one of several kinds.
pub fn template_of(name: &str, code: u8) -> HookTemplateSpec {
    if name == NOTICE {
        notice(code, url(name))
    } else {
        question(code, url(name))
    }
}

/// Whether a process's caches are up to date.
fn is_fresh(games: &Games, server: &Server) -> bool {
    fn same<T: Object, K: StoredObject>(table: &Table<T>, store: &Store<K>) -> bool {
        store.iter().count() == table.len()
            && table.iter().all(|object| {
                let id = object.id();
                let is = |known: &K| {
                    (known.uid(), known.version(), known.owner())
                        == (id.uid.as_str(), id.version.as_str(), id.owner.as_deref())
                };
                store.get(&key(&id.name)).is_some_and(is)
            })
    }
    let index = games.index();
    same(&server.workloads, &index.workloads)
        && same(&server.pods, &index.pods)
        && same(&server.runs, &index.runs)
        && same(&server.revisions, &index.revisions)
        && (!games.watches_nodes || server.nodes.len() == index.nodes.shown().count())
        && index.nodes.shown().all(|name| server.nodes.get(name).is_some())
}
