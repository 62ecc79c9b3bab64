//! `kubectl game skip`: skips the hooks of one pod. The reason is recorded.

use std::io::{BufRead, IsTerminal, Write};

use clap::Args;
use gamedeployment_core::hook_kind::HookKind;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::json;
use shared_api::names::pod::{DELETING, SKIP_HOOK, SKIP_HOOK_BY, SKIP_HOOK_REASON};

use super::why::owner_of;
use super::{DONE, Outcome, print_answer};
use crate::cluster::{Failure, Flags, Snapshot, name_of};
use crate::view::pod::waiting;
use crate::view::search::Search;
use crate::view::{hook_name, status_of};
use crate::why::{Next, is_old};

/// Skips the hooks of one pod.
#[derive(Debug, Clone, Args)]
pub(crate) struct Skip {
    /// Name of the pod
    pod: String,

    /// Reason for skipping the hooks; recorded on the pod, in an event and in the log
    #[arg(long, value_name = "TEXT")]
    reason: String,

    /// Do not ask for confirmation
    #[arg(short = 'y', long)]
    yes: bool,

    #[command(flatten)]
    flags: Flags,
}

impl Skip {
    pub(crate) async fn main(&self) -> Outcome {
        if self.reason.trim().is_empty() {
            return Err(Failure::Refused(
                "--reason must not be empty; state why the hooks are skipped".to_owned(),
            ));
        }
        let cluster = self.flags.cluster().await?;
        let name = name_of::<Pod>(&self.pod)?;
        let pod: Pod = cluster.get(name).await?;
        let snapshot = Snapshot::alone(cluster.get(&owner_of(&pod)?).await?);
        let uid = pod.uid().unwrap_or_default();
        if pod.annotations().get(SKIP_HOOK) == Some(&uid) {
            let text = format!("The hooks of {name} are already skipped.");
            print_answer(&text, &[undo(name, &cluster.flags)]);
            return DONE;
        }
        let what = consequence(&snapshot, &pod);
        if !self.yes {
            confirm(&what)?;
        }
        let by = cluster.who().await;
        cluster
            .change(name, |now: &Pod| {
                check_same(now, &uid)?;
                let annotations = json!({ SKIP_HOOK: uid, SKIP_HOOK_REASON: self.reason, SKIP_HOOK_BY: by });
                Ok((json!({ "metadata": { "annotations": annotations } }), ()))
            })
            .await?;
        let text =
            format!("{what} A Warning event HookSkipped will record the pod, the reason and your user name.");
        print_answer(&text, &[undo(name, &cluster.flags)]);
        DONE
    }
}

/// Checks that a pod is still the one with this UID.
pub(super) fn check_same(now: &Pod, uid: &str) -> Result<(), Failure> {
    if now.uid().as_deref() == Some(uid) {
        return Ok(());
    }
    Err(Failure::Conflict(format!(
        "pod {} was replaced by a new pod with the same name; check it, then run the command again",
        now.name_any()
    )))
}

/// Returns the command that reverts the skip.
fn undo(pod: &str, flags: &str) -> Next {
    Next::new(
        format!("kubectl annotate pod {pod} {SKIP_HOOK}- {SKIP_HOOK_REASON}- {SKIP_HOOK_BY}-{flags}"),
        "undo the skip",
    )
}

/// Returns the consequence for the pod.
fn consequence(snapshot: &Snapshot, pod: &Pod) -> String {
    let name = pod.name_any();
    let now = match waiting(snapshot, &name) {
        Some((kind @ HookKind::PreDelete, _)) => format!(
            "{name} is waiting for its {} hook: it will be deleted or updated without the hook, and players on it will \
             be disconnected.",
            hook_name(kind)
        ),
        Some((kind @ HookKind::PreInplace, _)) => format!(
            "{name} is waiting for its {} hook: its containers will be restarted without the hook, and players on it \
             will be disconnected.",
            hook_name(kind)
        ),
        Some((kind @ HookKind::PostInplace, _)) => format!(
            "{name} is waiting for its {} hook: its update will be treated as confirmed, and the next pods will be \
             updated.",
            hook_name(kind)
        ),
        None => unlisted(snapshot, pod),
    };
    format!("{now} Later hooks of this pod will be skipped until annotation {SKIP_HOOK} is removed.")
}

/// Returns the consequence for a pod that the status does not list as waiting. A status lists at most 100 pods for each
/// hook.
fn unlisted(snapshot: &Snapshot, pod: &Pod) -> String {
    let (name, status) = (pod.name_any(), status_of(&snapshot.game));
    if pod
        .annotations()
        .get(DELETING)
        .is_some_and(|value| value == "true")
    {
        return format!(
            "{name} is selected for deletion: it will be deleted without its hook, and players on it will be \
             disconnected."
        );
    }
    let is_old = is_old(&status, &gamedeployment_core::pod::Pod::read(pod));
    let is_searching = |search: &Search| search.progress(&status).is_some();
    match Search::ALL.into_iter().find(is_searching) {
        Some(Search::Scale) => format!(
            "{name} is not selected for deletion, but a search for idle pods to delete is in progress: without its hook, it \
             may be selected and deleted next, and players on it will be disconnected."
        ),
        Some(Search::Update) if is_old => format!(
            "{name} is not selected for the update, but a search for idle pods to update is in progress: without its hook, \
             it may be selected and updated next, and players on it will be disconnected."
        ),
        Some(Search::Update) | None => format!("{name} is not waiting for a hook."),
    }
}

fn confirm(what: &str) -> Result<(), Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::Refused(format!(
            "{what} Confirmation is required, but stdin is not a terminal; run the command again with --yes"
        )));
    }
    let mut out = std::io::stderr().lock();
    let _ = write!(out, "{what}\nType yes to continue: ");
    let _ = out.flush();
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    match read {
        Ok(_) if answer.trim() == "yes" => Ok(()),
        _ => Err(Failure::Refused("nothing was changed".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::samples;

    /// Returns the consequence for the pod with this name.
    fn of(snapshot: &Snapshot, name: &str) -> String {
        let mut pods = snapshot.pods.iter();
        consequence(snapshot, pods.find(|pod| pod.name_any() == name).unwrap())
    }

    #[test]
    fn the_consequence_is_named_before_the_skip() {
        let words = of(&samples::refused(), "arena-x7k2p");
        assert!(
            words.starts_with("arena-x7k2p is waiting for its PreDelete hook: it will be deleted"),
            "{words}"
        );
        let words = of(&samples::refused(), "arena-b4n8c");
        assert!(
            words.starts_with("arena-b4n8c is not waiting for a hook."),
            "{words}"
        );
    }

    #[test]
    fn a_selected_pod_is_deleted_although_the_status_does_not_list_it() {
        let mut snapshot = samples::refused();
        let status = snapshot.game.status.as_mut().unwrap();
        status.pre_delete_hook_condition.clear();
        let words = of(&snapshot, "arena-x7k2p");
        assert!(
            words.starts_with("arena-x7k2p is selected for deletion: it will be deleted without its hook"),
            "{words}"
        );
    }

    #[test]
    fn a_pod_without_its_hook_may_be_selected_by_a_search() {
        let words = of(&samples::searching(), "arena-b4n8c");
        assert!(
            words.starts_with("arena-b4n8c is not selected for deletion, but a search for idle pods to delete is in progress"),
            "{words}"
        );
        let update = samples::searching_to_update();
        let words = of(&update, "arena-b4n8c");
        assert!(
            words
                .starts_with("arena-b4n8c is not selected for the update, but a search for idle pods to update is in progress"),
            "{words}"
        );
        let words = of(&update, "arena-x7k2p");
        assert!(
            words.starts_with("arena-x7k2p is not waiting for a hook."),
            "it is updated: {words}"
        );
    }
}
