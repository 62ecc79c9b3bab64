//! `kubectl game drain`: drains a node. The hook of each guarded pod runs before the pod is removed.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;

use super::status::time;
use super::{DONE, Outcome, complain};
use crate::cluster::{ClusterConnection, Failure, Flags, interrupted, quoted};

mod plan;
mod progress;
mod request;
mod run;
mod undo;
mod workload;

use plan::{Permits, Plan, PlannedPod, Treatment, count_pods};
use progress::Progress;
use run::{Drainer, show};

/// Exit code: pods are left on the node after the timeout.
const TIMEOUT: u8 = 3;

/// Kinds of `kind/NAME`.
const ALIASES: [&str; 3] = ["no", "node", "nodes"];

/// Drains a node.
#[derive(Debug, Clone, Args)]
pub(crate) struct Drain {
    /// Name of the node
    node: String,

    /// Time to wait before giving up, for example 90s or 10m; 0 means no limit [default: no limit]
    #[arg(short = 't', long, value_name = "TIME", value_parser = time)]
    timeout: Option<Duration>,

    /// Remove only pods that match this label selector
    #[arg(long, value_name = "SELECTOR")]
    pod_selector: Option<String>,

    #[command(flatten)]
    permits: Permits,

    /// Show what would be done; nothing is changed
    #[arg(long)]
    dry_run: bool,

    /// Uncordon the node, and withdraw the removal requests of its pods that you have made with this command
    #[arg(long, conflicts_with_all = [
        "timeout", "pod_selector", "evict_unguarded", "force", "delete_emptydir_data",
    ])]
    undo: bool,

    #[command(flatten)]
    flags: Flags,
}

/// Formats a pod as `namespace/name`.
fn label(pod: &Pod) -> String {
    format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any())
}

impl Drain {
    pub(crate) async fn main(&self) -> Outcome {
        let name = node_name(&self.node)?;
        let cluster = self.flags.cluster().await?;
        if self.undo {
            return undo::undo(&cluster, name, self.dry_run).await;
        }
        let is_cordoned = is_cordoned(&cluster.node(name).await?);
        let mut drainer = Drainer {
            cluster: &cluster,
            node: name,
            selector: self.pod_selector.as_deref(),
            permits: self.permits,
            requester: String::new(),
        };
        let (plan, _) = drainer.survey(None).await?;
        drainer.check(&plan, &format!("node/{name} cannot be drained"))?;
        if self.dry_run {
            show(preview(name, is_cordoned, &plan));
            return DONE;
        }
        drainer.requester = cluster.who().await;
        if is_cordoned {
            show([format!("node/{name} is already cordoned")]);
        } else {
            cluster.set_cordoned(name, true).await?;
            show([format!("node/{name} cordoned")]);
        }
        self.remove(&drainer, &plan).await
    }

    /// Removes the pods of a cordoned node.
    async fn remove(&self, drainer: &Drainer<'_>, plan: &Plan) -> Outcome {
        let (cluster, node) = (drainer.cluster, drainer.node);
        let mut progress = Progress::default();
        progress.take(plan);
        let emptied = async {
            let emptied = drainer.until_empty(&mut progress);
            match self.timeout.filter(|timeout| !timeout.is_zero()) {
                None => Some(emptied.await),
                Some(timeout) => tokio::time::timeout(timeout, emptied).await.ok(),
            }
        };
        let emptied = tokio::select! {
            emptied = emptied => emptied,
            () = interrupted() => Some(Err(Failure::Other("interrupted".to_owned()))),
        };
        match emptied {
            Some(Ok(skipped)) => {
                let summary = progress.summary(node, skipped.as_deref());
                let back = format!(
                    "to make it schedulable again: kubectl uncordon {node}{}",
                    cluster.cluster_flags
                );
                show([summary, back]);
                DONE
            }
            Some(Err(failure)) => {
                complain(&format!("node/{node} stays cordoned; {}", go_back(cluster, node)));
                Err(failure)
            }
            None => {
                complain(&self.late(cluster, node, &progress));
                Ok(ExitCode::from(TIMEOUT))
            }
        }
    }

    /// Describes the pods that are left after the timeout, and how to go on.
    fn late(&self, cluster: &ClusterConnection, node: &str, progress: &Progress) -> String {
        let left = progress.left();
        let (pods, are) = match left.len() {
            1 => ("1 pod".to_owned(), "is"),
            count => (count_pods(count), "are"),
        };
        let timeout = go_duration::display(self.timeout.unwrap_or_default());
        let mut lines = vec![format!("not drained after {timeout}; {pods} {are} left:")];
        lines.extend(left);
        if progress.has_requests() {
            lines.push(
                "removal requests that are not repeated expire, and their pods are then kept".to_owned(),
            );
        }
        lines.push(format!(
            "to continue: {}; {}",
            self.command(node, &cluster.cluster_flags),
            go_back(cluster, node)
        ));
        lines.join("\n")
    }

    /// Returns the command that continues the drain.
    fn command(&self, node: &str, flags: &str) -> String {
        let Permits {
            evict_unguarded,
            force,
            delete_emptydir_data,
        } = self.permits;
        let switches = [
            (evict_unguarded, " --evict-unguarded"),
            (force, " --force"),
            (delete_emptydir_data, " --delete-emptydir-data"),
        ];
        let mut words = format!("kubectl game drain {node}");
        words.extend(
            switches
                .into_iter()
                .filter_map(|(is_set, flag)| is_set.then_some(flag)),
        );
        if let Some(selector) = &self.pod_selector {
            words.push_str(" --pod-selector ");
            words.push_str(&quoted(selector));
        }
        words + flags
    }
}

/// Returns how to undo the drain.
fn go_back(cluster: &ClusterConnection, node: &str) -> String {
    format!(
        "to undo the drain: kubectl game drain {node} --undo{}",
        cluster.cluster_flags
    )
}

/// Parses `NAME` or `node/NAME`.
fn node_name(word: &str) -> Result<&str, Failure> {
    match word.split_once('/') {
        None => Ok(word),
        Some((kind, name)) if ALIASES.contains(&kind.to_lowercase().as_str()) => Ok(name),
        Some(_) => Err(Failure::Refused(format!(
            "{word} is not of kind Node; use node/NAME or NAME"
        ))),
    }
}

fn is_cordoned(node: &Node) -> bool {
    let spec = node.spec.as_ref();
    spec.and_then(|spec| spec.unschedulable).unwrap_or_default()
}

/// Describes what a drain would do.
fn preview(node: &str, is_cordoned: bool, plan: &Plan) -> Vec<String> {
    let cordon = if is_cordoned {
        format!("node/{node} is already cordoned")
    } else {
        format!("node/{node} would be cordoned")
    };
    let pod = |pod: &PlannedPod| {
        let words = match &pod.treatment {
            Treatment::Skip(_) => return None,
            Treatment::AwaitEnd => "is terminating".to_owned(),
            Treatment::AwaitDeletion(game) => format!("is deleted with GameDeployment {game}"),
            Treatment::Request(_) => {
                "removal would be requested; the pod is deleted once its PreDelete hook succeeds".to_owned()
            }
            Treatment::Evict => "would be evicted".to_owned(),
        };
        Some(format!("{}: {words}", pod.label))
    };
    let skipped = plan.skipped().map(|pods| format!("{pods} would be skipped"));
    let pods = plan.pods.iter().filter_map(pod);
    std::iter::once(cordon).chain(pods).chain(skipped).collect()
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches;

    use super::*;
    use crate::view::samples;
    use plan::tests::{game_pod, guarded, of_daemon_set, of_replica_set, terminating};
    use workload::{OwningGame, OwningGames};

    /// Parses a command line.
    fn parsed(words: &str) -> Result<Drain, String> {
        let words = ["game", "drain"].into_iter().chain(words.split(' '));
        let matches = crate::described().try_get_matches_from(words);
        let matches = matches.map_err(|error| error.to_string())?;
        let (_, matches) = matches.subcommand().ok_or("no subcommand")?;
        Drain::from_arg_matches(matches).map_err(|error| error.to_string())
    }

    #[test]
    fn the_command_that_continues_a_drain_repeats_its_flags() {
        for (typed, repeated) in [
            ("node-1 -t 5m", "node-1"),
            (
                "no/node-1 --force --pod-selector app=arena,!canary",
                "node-1 --force --pod-selector 'app=arena,!canary'",
            ),
            (
                "node-1 --delete-emptydir-data --evict-unguarded -n games",
                "node-1 --evict-unguarded --delete-emptydir-data",
            ),
        ] {
            let drain = parsed(typed).unwrap();
            let node = node_name(&drain.node).unwrap();
            let expected = format!("kubectl game drain {repeated} --context test");
            assert_eq!(drain.command(node, " --context test"), expected);
        }
    }

    #[test]
    fn flags_that_contradict_each_other_are_refused() {
        for flag in [
            "--timeout 5m",
            "--pod-selector app=a",
            "--force",
            "--evict-unguarded",
            "--delete-emptydir-data",
        ] {
            let refused = parsed(&format!("node-1 --undo {flag}")).unwrap_err();
            assert!(refused.contains("cannot be used with"), "{flag}: {refused}");
        }
        assert!(parsed("node-1 --undo --dry-run").is_ok());
        let refused = node_name("pod/arena-x7k2p").unwrap_err().to_string();
        assert_eq!(
            refused,
            "pod/arena-x7k2p is not of kind Node; use node/NAME or NAME"
        );
    }

    #[test]
    fn a_dry_run_shows_each_pod() {
        let pods = vec![
            game_pod("a"),
            of_replica_set("b"),
            terminating(game_pod("c")),
            of_daemon_set("d"),
        ];
        let guarded = OwningGame::read(&guarded("Ask"));
        let games = OwningGames::from([("u-arena".to_owned(), guarded)]);
        let plan = Plan::of(pods, &games, None);
        assert_eq!(
            preview("node-1", false, &plan),
            [
                "node/node-1 would be cordoned",
                "games/a: removal would be requested; the pod is deleted once its PreDelete hook succeeds",
                "games/b: would be evicted",
                "games/c: is terminating",
                "1 pod (1 of DaemonSets) would be skipped",
            ]
        );
        let deleted = OwningGame::read(&samples::being_deleted(samples::complete(), true).game);
        let games = OwningGames::from([("u-arena".to_owned(), deleted)]);
        let plan = Plan::of(vec![game_pod("a")], &games, None);
        assert_eq!(
            preview("node-1", true, &plan),
            [
                "node/node-1 is already cordoned",
                "games/a: is deleted with GameDeployment arena"
            ]
        );
    }
}
