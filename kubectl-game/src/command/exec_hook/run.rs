//! `kubectl game exec-hook run`: creates an ExecutionHook and follows it.

use std::hash::{BuildHasher, RandomState};
use std::process::ExitCode;
use std::time::Duration;

use clap::{ArgAction, ArgGroup, Args};
use hook_core::execution::resolve_hook;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use shared_api::execution_hook::{PodContainerNames, PodContainerSelector, PodSelection};
use shared_api::{ExecutionHook, ExecutionHookSpec, HookAction};

use super::follow::{Followed, LiveHook, follow};
use super::selector;
use crate::cluster::{ClusterConnection, Failure, Flags, LiveList, name_of};
use crate::command::status::time;
use crate::command::{Outcome, print};
use crate::draw::document;
use crate::paint::Paint;

/// Longest name of an object.
const MAX_NAME: usize = 253;
/// Number of random characters at the end of a name.
const SUFFIX: usize = 5;
/// Characters that Kubernetes uses for random parts of names: none of them form words.
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// Most names that are tried.
const ATTEMPTS: usize = 5;

/// Runs a HookAction in containers.
#[derive(Debug, Clone, Args)]
#[command(
    group = ArgGroup::new("pods").required(true).args(["selector", "pod"]),
    override_usage = "kubectl game exec-hook run <ACTION> <-l SELECTOR|--pod POD...> [OPTIONS]"
)]
pub(crate) struct Run {
    /// Name of the HookAction; if it does not exist, the ExecutionHook waits for it
    action: String,

    /// Select pods by label, as in kubectl, for example app=arena,zone in (a,b),!canary
    #[arg(short = 'l', long, value_name = "SELECTOR", value_parser = selector::parse)]
    selector: Option<LabelSelector>,

    /// Select pods by name; can be repeated
    #[arg(long, value_name = "POD", num_args = 1..)]
    pod: Vec<String>,

    /// Select only containers with this name; can be repeated [default: all except init containers]
    #[arg(short = 'c', long, value_name = "NAME", num_args = 1..)]
    container: Vec<String>,

    /// Maximum number of containers in which the action runs at the same time [default: 64]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(i32).range(1..=1024))]
    parallelism: Option<i32>,

    /// Time to keep the ExecutionHook after it completes, in seconds [default: 3600]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(i32).range(0..=604_800))]
    ttl: Option<i32>,

    /// Name of the ExecutionHook [default: ACTION followed by five random characters]
    #[arg(long)]
    name: Option<String>,

    /// Follow the ExecutionHook until it is complete; with --wait=false, only create it
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set,
        num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    wait: bool,

    /// Time to wait before giving up, for example 90s or 10m [default: no limit]
    #[arg(short = 't', long, value_name = "TIME", value_parser = time)]
    timeout: Option<Duration>,

    #[command(flatten)]
    flags: Flags,
}

impl Run {
    pub(crate) async fn main(&self) -> Outcome {
        if !self.wait && self.timeout.is_some() {
            let words = "--timeout must not be set together with --wait=false; remove one of them";
            return Err(Failure::Refused(words.to_owned()));
        }
        let spec = self.spec()?;
        let cluster = self.flags.cluster().await?;
        let (name, uid, live) = self.create(&cluster, &spec).await?;
        print(&document::name::<ExecutionHook>(&name));
        match live {
            Some(live) => {
                let followed = Followed { name, uid, live };
                follow(&cluster, followed, self.timeout, Paint::new(false)).await
            }
            None => Ok(ExitCode::SUCCESS),
        }
    }

    /// Creates the hook, and returns its name, its UID and a live view of it.
    async fn create(
        &self,
        cluster: &ClusterConnection,
        spec: &ExecutionHookSpec,
    ) -> Result<(String, Option<String>, Option<LiveHook>), Failure> {
        let mut attempt = 1;
        loop {
            let name = match &self.name {
                Some(name) => name_of::<ExecutionHook>(name)?.to_owned(),
                None => random_name(&spec.action_name, RandomState::new().hash_one(attempt)),
            };
            // Without permission to list it, nothing is created. The end of a hook deleted at once is seen, too.
            let live = if self.wait {
                let mut live = LiveList::of(cluster, false, Some(&name)).await?;
                live.ready().await?;
                Some(live)
            } else {
                None
            };
            match cluster.create(&ExecutionHook::new(&name, spec.clone())).await {
                Ok(created) => return Ok((name, created.metadata.uid, live)),
                Err(Failure::Conflict(_)) if self.name.is_none() && attempt < ATTEMPTS => attempt += 1,
                Err(failure) => return Err(failure),
            }
        }
    }

    fn spec(&self) -> Result<ExecutionHookSpec, Failure> {
        let containers = (!self.container.is_empty()).then(|| self.container.clone());
        let names = |pod: &String| {
            Ok(PodContainerNames {
                pod_name: name_of::<Pod>(pod)?.to_owned(),
                container_names: containers.clone(),
                ..PodContainerNames::default()
            })
        };
        let pods = self.pod.iter().map(names).collect::<Result<Vec<_>, Failure>>()?;
        let selector = self.selector.clone().map(|pod_selector| PodContainerSelector {
            pod_selector,
            container_list: containers.clone(),
            ..PodContainerSelector::default()
        });
        let spec = ExecutionHookSpec {
            action_name: name_of::<HookAction>(&self.action)?.to_owned(),
            pod_selection: PodSelection {
                pod_container_names_list: (!pods.is_empty()).then_some(pods),
                pod_container_selector: selector,
                ..PodSelection::default()
            },
            parallelism: self.parallelism,
            ttl_seconds_after_finished: self.ttl,
            ..ExecutionHookSpec::default()
        };
        match resolve_hook(&spec) {
            Ok(_) => Ok(spec),
            Err(errors) => Err(Failure::Refused(errors.to_string())),
        }
    }
}

/// Returns the name of a hook: that of its action, and random characters.
fn random_name(action: &str, random: u64) -> String {
    let room = MAX_NAME - SUFFIX - 1;
    let mut action = action.to_owned();
    // Names are ASCII; the API server refuses others.
    while action.len() > room {
        action.pop();
    }
    let action = action.trim_end_matches(['-', '.']);
    let mut rest = random;
    let letter = |_| {
        let place = usize::try_from(rest % 27).unwrap_or_default();
        rest /= 27;
        LETTERS.get(place).copied().map(char::from)
    };
    let suffix: String = (0..SUFFIX).filter_map(letter).collect();
    format!("{action}-{suffix}")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Returns the spec of a command line.
    fn spec(words: &str) -> Result<Value, String> {
        let words = ["game", "exec-hook", "run"].into_iter().chain(words.split(' '));
        let matches = crate::described().try_get_matches_from(words);
        let matches = matches.map_err(|error| error.to_string())?;
        let run = matches.subcommand().and_then(|(_, group)| group.subcommand());
        let (_, matches) = run.ok_or("no subcommand")?;
        let run = <Run as clap::FromArgMatches>::from_arg_matches(matches);
        let spec = run.map_err(|error| error.to_string())?.spec();
        let spec = spec.map_err(|failure| failure.to_string())?;
        serde_json::to_value(spec).map_err(|error| error.to_string())
    }

    #[test]
    fn pods_and_containers_are_selected_as_the_flags_say() {
        let labels = json!({ "matchLabels": { "app": "arena" } });
        assert_eq!(
            spec("freeze -l app=arena -c game --parallelism 4 --ttl 0").unwrap(),
            json!({
                "actionName": "freeze", "parallelism": 4, "ttlSecondsAfterFinished": 0,
                "podSelection": { "podContainerSelector": { "podSelector": labels, "containerList": ["game"] } }
            })
        );
        let names = json!([
            { "podName": "a", "containerNames": ["game", "log"] },
            { "podName": "b", "containerNames": ["game", "log"] },
        ]);
        assert_eq!(
            spec("ha/freeze --pod pod/a b --container game --container log").unwrap(),
            json!({ "actionName": "freeze", "podSelection": { "podContainerNamesList": names } })
        );
    }

    #[test]
    fn flags_that_select_nothing_or_too_much_are_refused_with_the_remedy() {
        for (words, said) in [
            ("freeze", "<--selector <SELECTOR>|--pod <POD>...>"),
            ("freeze -l app=a --pod b", "cannot be used with"),
            (
                "freeze -l ",
                "would select all pods in the namespace; specify a label",
            ),
            ("freeze -l app=a --parallelism 0", "0 is not in 1..=1024"),
            ("freeze --pod a a", "duplicate pod \"a\""),
            ("freeze --pod deploy/a", "not of kind Pod; use po/NAME or NAME"),
        ] {
            let refused = spec(words).unwrap_err();
            assert!(refused.contains(said), "{words}: {refused}");
        }
    }

    #[test]
    fn a_name_is_that_of_the_action_with_five_characters() {
        assert_eq!(random_name("freeze", 0), "freeze-bbbbb");
        assert_eq!(random_name("freeze", u64::MAX).len(), "freeze-".len() + SUFFIX);
        let long = random_name(&format!("{}-{}", "a".repeat(246), "b".repeat(6)), 1);
        assert_eq!(long, format!("{}-cbbbb", "a".repeat(246)));
        assert!(random_name(&"a".repeat(253), 7).len() == MAX_NAME);
    }
}
