//! `kubectl game keep`: withdraws the removal requests of a pod.

use clap::Args;
use gamedeployment_core::deletion;
use gamedeployment_core::workload::{DisruptionPolicy, Workload};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::{Value, json};
use shared_api::GameDeployment;
use shared_api::names::pod::REMOVAL_REQUESTED;
use shared_api::removal_request::{RemovalRequest, RemovalRequests, RemovalType, UnrecordedType};

use super::outlook::Answer;
use super::skip::check_same;
use super::why::owner_of;
use super::{DONE, Outcome, print_answer};
use crate::cluster::{Failure, Flags, name_of};
use crate::view::removal::{UNGUARDED, UnrecordedRequest, author, prospect};
use crate::why::{Next, list_eviction_requests};

/// Withdraws removal requests of a pod.
#[derive(Debug, Clone, Args)]
pub(crate) struct Keep {
    /// Name of the pod
    pod: String,

    /// Withdraw only the request of this user or component
    #[arg(long, value_name = "NAME")]
    requester: Option<String>,

    #[command(flatten)]
    flags: Flags,
}

/// Requests that a command withdraws.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Withdrawal {
    /// Some or all requests.
    Requests {
        withdrawn: Vec<RemovalRequest>,
        left: RemovalRequests,
    },
    /// An annotation that cannot be parsed, with the reason.
    Unparsed(String),
}

impl Keep {
    pub(crate) async fn main(&self) -> Outcome {
        let cluster = self.flags.cluster().await?;
        let name = name_of::<Pod>(&self.pod)?;
        let requester = self.requester.as_deref();
        let pod: Pod = cluster.get(name).await?;
        // The GameDeployment of a terminating pod may be gone.
        check_not_terminating(&pod)?;
        let game: GameDeployment = cluster.get(&owner_of(&pod)?).await?;
        check_lasting(&pod, &game)?;
        let uid = pod.uid().unwrap_or_default();
        let unrecorded = UnrecordedRequest::of(&game, &uid);
        let withdrawal = cluster
            .change(name, |now: &Pod| {
                check_same(now, &uid)?;
                withdraw(now, requester, &unrecorded)
            })
            .await?;
        let answer = withdrawal.answer(&pod, &game, Timestamp::now(), &cluster.flags);
        print_answer(&answer.message, &answer.next);
        DONE
    }
}

/// Fails if the pod is deleted with its workload, whoever requests its removal.
fn check_lasting(pod: &Pod, game: &GameDeployment) -> Result<(), Failure> {
    if !deletion::is_requested(game) {
        return Ok(());
    }
    Err(Failure::Refused(format!(
        "pod {} cannot be kept, because GameDeployment {} is being deleted; a deletion cannot be cancelled",
        pod.name_any(),
        game.name_any()
    )))
}

/// Fails if the pod is terminating.
fn check_not_terminating(pod: &Pod) -> Result<(), Failure> {
    if pod.metadata.deletion_timestamp.is_none() {
        return Ok(());
    }
    Err(Failure::Refused(format!(
        "pod {} is already terminating and can no longer be kept",
        pod.name_any()
    )))
}

/// Returns the patch that withdraws requests, and these requests; or why there is nothing to withdraw.
fn withdraw(
    pod: &Pod,
    requester: Option<&str>,
    unrecorded: &[UnrecordedRequest<'_>],
) -> Result<(Value, Withdrawal), Failure> {
    check_not_terminating(pod)?;
    let name = pod.name_any();
    let text = pod.annotations().get(REMOVAL_REQUESTED);
    let mut left = match text.map(|text| RemovalRequests::parse(text)) {
        None => RemovalRequests::default(),
        Some(Ok(requests)) => requests,
        Some(Err(invalid)) => {
            let invalid = redact::printable(&invalid.to_string());
            return match requester {
                None => Ok((annotate(None), Withdrawal::Unparsed(invalid))),
                Some(requester) => Err(Failure::Refused(format!(
                    "cannot find the request of {requester}, because annotation {REMOVAL_REQUESTED} of pod {name} \
                     {invalid}. To remove the annotation, run the command without --requester"
                ))),
            };
        }
    };
    let before: Vec<RemovalRequest> = left.iter().cloned().collect();
    match requester {
        None => left = RemovalRequests::default(),
        Some(requester) => {
            left.withdraw(requester);
        }
    }
    let is_withdrawn = |request: &RemovalRequest| left.of(&request.requester).is_none();
    let withdrawn: Vec<RemovalRequest> = before.into_iter().filter(is_withdrawn).collect();
    if withdrawn.is_empty() {
        return Err(Failure::Refused(nothing(&name, requester, &left, unrecorded)));
    }
    Ok((
        annotate(left.annotation()),
        Withdrawal::Requests { withdrawn, left },
    ))
}

/// Returns the patch that sets the annotation, or removes it.
pub(super) fn annotate(text: Option<String>) -> Value {
    json!({ "metadata": { "annotations": { REMOVAL_REQUESTED: text } } })
}

/// Describes that a pod has no request, or none of this requester, or only such that are not recorded on it.
fn nothing(
    pod: &str,
    requester: Option<&str>,
    present: &RemovalRequests,
    unrecorded: &[UnrecordedRequest<'_>],
) -> String {
    let is_unrecorded = unrecorded
        .iter()
        .any(|request| Some(request.requester) == requester);
    if is_unrecorded || present.is_empty() && !unrecorded.is_empty() {
        return format!(
            "nothing to withdraw: the removal of pod {pod} is requested by {}. {}",
            authors_of_unrecorded(unrecorded).join(", "),
            how_to_end(unrecorded).join(". ")
        );
    }
    match requester.filter(|_| !present.is_empty()) {
        Some(requester) => format!(
            "nothing to withdraw: {requester} has not requested the removal of pod {pod}; requested by {}",
            all_authors(present, unrecorded).join(", ")
        ),
        None => format!("nothing to withdraw: the removal of pod {pod} has not been requested"),
    }
}

/// Describes how to end requests that are not recorded on the pod: one sentence for each kind, without a full stop.
fn how_to_end(unrecorded: &[UnrecordedRequest<'_>]) -> Vec<String> {
    let of_node = |remedy: &str| format!("The request of a node cannot be withdrawn; to end it, {remedy}");
    let (mut sentences, mut requesters) = (Vec::new(), Vec::new());
    for request in unrecorded {
        match request.type_ {
            UnrecordedType::Cordon => sentences.push(of_node(
                "uncordon the node and remove the taint of the autoscaler, if it has one, or set \
                 spec.disruption.onCordon to Ignore",
            )),
            UnrecordedType::Taint => sentences.push(of_node("remove the taint from the node")),
            UnrecordedType::EvictionRequest => requesters.push(redact::printable(request.requester)),
        }
    }
    if !requesters.is_empty() {
        sentences.push(format!(
            "EvictionRequests cannot be withdrawn with this command; to withdraw them, set spec.intent to Withdrawn in \
             those of {} for this pod",
            requesters.join(", ")
        ));
    }
    sentences
}

/// Formats the requesters of recorded requests, each with the kind of its request.
fn authors<'r>(requests: impl Iterator<Item = &'r RemovalRequest>) -> Vec<String> {
    requests
        .map(|request| author(&request.requester, request.type_))
        .collect()
}

/// Formats the requesters of requests that are not recorded on the pod, each with the kind of its request.
fn authors_of_unrecorded(unrecorded: &[UnrecordedRequest<'_>]) -> Vec<String> {
    unrecorded.iter().map(UnrecordedRequest::author).collect()
}

/// Formats the requesters of all requests, each with the kind of its request.
fn all_authors(recorded: &RemovalRequests, unrecorded: &[UnrecordedRequest<'_>]) -> Vec<String> {
    [authors(recorded.iter()), authors_of_unrecorded(unrecorded)].concat()
}

impl Withdrawal {
    /// Returns the message, and the commands to run next.
    fn answer(&self, pod: &Pod, game: &GameDeployment, now: Timestamp, flags: &str) -> Answer {
        let name = pod.name_any();
        let unrecorded = UnrecordedRequest::of(game, &pod.uid().unwrap_or_default());
        let (workload, _) = Workload::examine(game);
        let mut next = vec![Next::new(
            format!("kubectl game why pod/{name}{flags}"),
            "show the state of the pod",
        )];
        let (withdrawn, left) = match self {
            Self::Requests { withdrawn, left } => (withdrawn, left),
            Self::Unparsed(invalid) => {
                let mut sentences = vec![format!(
                    "{name}: removed annotation {REMOVAL_REQUESTED}. It had no effect, because it {invalid}."
                )];
                let none = RemovalRequests::default();
                sentences.extend(still_requested(&none, &unrecorded, &workload));
                next.extend(find(&unrecorded, flags));
                return Answer {
                    message: sentences.join(" "),
                    next,
                };
            }
        };
        let requests = if withdrawn.len() == 1 {
            "removal request"
        } else {
            "removal requests"
        };
        let mut sentences = vec![format!(
            "{name}: withdrew the {requests} of {}.",
            authors(withdrawn.iter()).join(", ")
        )];
        let mut valid = left.clone();
        valid.drop_expired(now, workload.disruption.request_expiration);
        let still = still_requested(&valid, &unrecorded, &workload);
        match workload.disruption.policy {
            DisruptionPolicy::Unguarded => {
                sentences.push(format!("Removal requests have no effect, because {UNGUARDED}."));
            }
            DisruptionPolicy::Ask if still.is_empty() => {
                sentences.push(
                    "The pod is kept, unless a scale-down, an update or spec.scaleStrategy.podsToDelete selects it."
                        .to_owned(),
                );
                sentences.extend(repeated(withdrawn).map(str::to_owned));
                next.extend(uncordon(pod, withdrawn, flags));
            }
            DisruptionPolicy::Ask => {
                sentences.extend(still);
                next.extend(find(&unrecorded, flags));
            }
        }
        Answer {
            message: sentences.join(" "),
            next,
        }
    }
}

/// Describes who still requests the removal of a pod, and the effect; empty if there is no request.
fn still_requested(
    valid: &RemovalRequests,
    unrecorded: &[UnrecordedRequest<'_>],
    workload: &Workload,
) -> Vec<String> {
    let all = all_authors(valid, unrecorded);
    if all.is_empty() {
        return Vec::new();
    }
    let first = format!(
        "Its removal is still requested by {}, so the pod {}.",
        all.join(", "),
        prospect(workload)
    );
    let ends = how_to_end(unrecorded);
    let ends = ends.into_iter().map(|sentence| format!("{sentence}."));
    std::iter::once(first).chain(ends).collect()
}

/// Returns the command that lists `EvictionRequest`s, if there are any for the pod.
fn find(unrecorded: &[UnrecordedRequest<'_>], flags: &str) -> Option<Next> {
    let mut types = unrecorded.iter().map(|request| request.type_);
    types
        .any(|type_| type_ == UnrecordedType::EvictionRequest)
        .then(|| list_eviction_requests(flags))
}

/// Returns whether a request has this type.
fn has(requests: &[RemovalRequest], type_: RemovalType) -> bool {
    requests.iter().any(|request| request.type_ == type_)
}

/// Describes how the removal may be requested again.
fn repeated(withdrawn: &[RemovalRequest]) -> Option<&'static str> {
    if has(withdrawn, RemovalType::Eviction) {
        Some(
            "If the eviction is repeated, for example by a drain that is still running or by an autoscaler, the \
             removal will be requested again; stop the drain and uncordon the node.",
        )
    } else if has(withdrawn, RemovalType::Delete) {
        Some("If the deletion is repeated, the removal will be requested again.")
    } else {
        None
    }
}

/// Returns the command that uncordons the node of an evicted pod.
fn uncordon(pod: &Pod, withdrawn: &[RemovalRequest], flags: &str) -> Option<Next> {
    let spec = pod
        .spec
        .as_ref()
        .filter(|_| has(withdrawn, RemovalType::Eviction));
    let node = spec.and_then(|spec| spec.node_name.as_ref())?;
    Some(Next::new(
        format!("kubectl uncordon {node}{flags}"),
        "if the node must not be drained",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Snapshot;
    use crate::view::samples::{self, now, removal_requests, with_eviction_request, with_node_request};

    const POD: &str = "arena-x7k2p";
    const WHY: &str = "kubectl game why pod/arena-x7k2p -n games  # show the state of the pod";

    fn annotated(text: &str) -> Pod {
        samples::pod(POD, "arena-7d4b9c", json!({ REMOVAL_REQUESTED: text }))
    }

    fn requested(made: &[(&str, RemovalType, i64)]) -> Pod {
        annotated(&removal_requests(made))
    }

    fn refused(pod: &Pod, requester: Option<&str>) -> String {
        withdraw(pod, requester, &[]).unwrap_err().to_string()
    }

    /// Withdraws requests from a pod of a workload with this policy. Returns the new annotation, the message and the
    /// commands.
    fn kept(pod: &Pod, requester: Option<&str>, policy: &str) -> (Value, String, Vec<String>) {
        kept_from(&samples::complete(), pod, requester, policy)
    }

    /// Withdraws requests like [`kept`], from a pod of this snapshot.
    fn kept_from(
        snapshot: &Snapshot,
        pod: &Pod,
        requester: Option<&str>,
        policy: &str,
    ) -> (Value, String, Vec<String>) {
        let mut game = snapshot.game.clone();
        game.spec.disruption = serde_json::from_value(json!({ "policy": policy })).unwrap();
        let unrecorded = UnrecordedRequest::of(&game, "u-x7k2p");
        let (patch, withdrawal) = withdraw(pod, requester, &unrecorded).unwrap();
        let Answer { message, next } = withdrawal.answer(pod, &game, now(), " -n games");
        let next = next.iter().map(ToString::to_string).collect();
        let annotation = patch["metadata"]["annotations"][REMOVAL_REQUESTED].clone();
        (annotation, message, next)
    }

    #[test]
    fn all_requests_are_withdrawn() {
        let pod = requested(&[
            ("system:admin", RemovalType::Eviction, 60),
            ("ci", RemovalType::Manual, 30),
        ]);
        let (annotation, message, next) = kept(&pod, None, "Ask");
        assert_eq!(annotation, Value::Null);
        assert_eq!(
            message,
            "arena-x7k2p: withdrew the removal requests of system:admin (Eviction), ci (Manual). The pod is kept, \
             unless a scale-down, an update or spec.scaleStrategy.podsToDelete selects it. If the eviction is \
             repeated, for example by a drain that is still running or by an autoscaler, the removal will be requested \
             again; stop the drain and uncordon the node."
        );
        let uncordon = "kubectl uncordon node-1 -n games  # if the node must not be drained";
        assert_eq!(next, [WHY, uncordon]);
    }

    #[test]
    fn the_request_of_one_requester_is_withdrawn() {
        let pod = requested(&[
            ("system:admin", RemovalType::Eviction, 60),
            ("ci", RemovalType::Manual, 30),
        ]);
        let (annotation, message, next) = kept(&pod, Some("system:admin"), "Ask");
        let left = removal_requests(&[("ci", RemovalType::Manual, 30)]);
        assert_eq!(annotation, json!(left));
        assert_eq!(
            message,
            "arena-x7k2p: withdrew the removal request of system:admin (Eviction). Its removal is still requested \
             by ci (Manual), so the pod will be deleted and replaced once its PreDelete hook succeeds."
        );
        assert_eq!(next, [WHY]);
    }

    #[test]
    fn requests_that_have_expired_keep_no_pod_waiting() {
        let pod = requested(&[
            ("late", RemovalType::Delete, 900),
            ("ci", RemovalType::Delete, 30),
        ]);
        let (annotation, message, _) = kept(&pod, Some("ci"), "Ask");
        assert!(annotation.is_string(), "{annotation}");
        assert!(
            message
                .ends_with("selects it. If the deletion is repeated, the removal will be requested again."),
            "{message}"
        );
    }

    #[test]
    fn requests_without_effect_are_withdrawn_too() {
        let pod = requested(&[("system:admin", RemovalType::Eviction, 60)]);
        let (annotation, message, next) = kept(&pod, None, "Unguarded");
        assert_eq!(annotation, Value::Null);
        assert!(
            message
                .ends_with("Removal requests have no effect, because spec.disruption.policy is Unguarded."),
            "{message}"
        );
        assert_eq!(next, [WHY]);
        let (annotation, message, next) = kept(&annotated("drain"), None, "Ask");
        assert_eq!(annotation, Value::Null);
        assert_eq!(
            message,
            "arena-x7k2p: removed annotation tkex.tencent.com/removal-requested. It had no effect, because it cannot \
             be parsed: expected value at line 1 column 1."
        );
        assert_eq!(next, [WHY]);
    }

    #[test]
    fn pods_of_a_workload_that_is_being_deleted_cannot_be_kept() {
        let pod = requested(&[("drain", RemovalType::Eviction, 60)]);
        let live = samples::complete();
        assert!(check_lasting(&pod, &live.game).is_ok());
        let deleted = samples::being_deleted(live, true).game;
        assert_eq!(
            check_lasting(&pod, &deleted).unwrap_err().to_string(),
            "pod arena-x7k2p cannot be kept, because GameDeployment arena is being deleted; a deletion cannot be \
             cancelled"
        );
    }

    /// Returns a snapshot whose status lists a request of this type by the pod's node.
    fn requested_by_node(type_: &str) -> Snapshot {
        let mut snapshot = with_node_request(samples::complete(), "u-x7k2p", type_);
        snapshot.game.spec.disruption = serde_json::from_value(json!({ "policy": "Ask" })).unwrap();
        snapshot
    }

    #[test]
    fn the_request_of_a_node_cannot_be_withdrawn() {
        let cordon = "The request of a node cannot be withdrawn; to end it, uncordon the node and remove the taint \
                      of the autoscaler, if it has one, or set spec.disruption.onCordon to Ignore";
        let taint = "The request of a node cannot be withdrawn; to end it, remove the taint from the node";
        let bare = samples::pod(POD, "arena-7d4b9c", json!({}));
        let drained = requested(&[("system:admin", RemovalType::Eviction, 60)]);
        for (type_, remedy) in [("Cordon", cordon), ("Taint", taint)] {
            let snapshot = requested_by_node(type_);
            let of_node = UnrecordedRequest::of(&snapshot.game, "u-x7k2p");
            let author = format!("node/node-1 ({type_})");
            let alone = format!(
                "nothing to withdraw: the removal of pod arena-x7k2p is requested by {author}. {remedy}"
            );
            assert_eq!(withdraw(&bare, None, &of_node).unwrap_err().to_string(), alone);
            let named = withdraw(&drained, Some("node/node-1"), &of_node);
            assert_eq!(named.unwrap_err().to_string(), alone);
            let still = format!(
                "Its removal is still requested by {author}, so the pod will be deleted and replaced once its \
                 PreDelete hook succeeds. {remedy}."
            );
            let (annotation, message, next) = kept_from(&snapshot, &drained, None, "Ask");
            assert_eq!(annotation, Value::Null);
            let withdrew = "arena-x7k2p: withdrew the removal request of system:admin (Eviction).";
            assert_eq!(message, format!("{withdrew} {still}"));
            assert_eq!(next, [WHY]);
            let (_, message, _) = kept_from(&snapshot, &annotated("drain"), None, "Ask");
            assert!(message.ends_with(&format!("column 1. {still}")), "{message}");
        }
        let snapshot = requested_by_node("Cordon");
        let both = requested(&[
            ("drain", RemovalType::Eviction, 60),
            ("ci", RemovalType::Manual, 30),
        ]);
        let (_, message, _) = kept_from(&snapshot, &both, Some("drain"), "Ask");
        assert!(
            message
                .contains("Its removal is still requested by ci (Manual), node/node-1 (Cordon), so the pod"),
            "{message}"
        );
        // With this policy, the request of the node has no effect, and the status will soon no longer list it.
        let (_, message, _) = kept_from(&snapshot, &drained, None, "Unguarded");
        assert!(!message.contains("node/node-1"), "{message}");
    }

    #[test]
    fn eviction_requests_of_others_cannot_be_withdrawn() {
        let guarded = |requesters: &[&str], type_: Option<&str>| {
            let mut snapshot = type_.map_or_else(samples::complete, requested_by_node);
            for requester in requesters {
                snapshot = with_eviction_request(snapshot, "u-x7k2p", requester);
            }
            snapshot.game.spec.disruption = serde_json::from_value(json!({ "policy": "Ask" })).unwrap();
            snapshot
        };
        let remedy = |requesters: &str| {
            format!(
                "EvictionRequests cannot be withdrawn with this command; to withdraw them, set spec.intent to \
                 Withdrawn in those of {requesters} for this pod"
            )
        };
        let refused = |snapshot: &Snapshot, pod: &Pod, requester: Option<&str>| {
            let unrecorded = UnrecordedRequest::of(&snapshot.game, "u-x7k2p");
            withdraw(pod, requester, &unrecorded).unwrap_err().to_string()
        };
        let bare = samples::pod(POD, "arena-7d4b9c", json!({}));
        let drained = requested(&[("system:admin", RemovalType::Eviction, 60)]);
        let one = guarded(&["acme.io/drain"], None);
        let alone = format!(
            "nothing to withdraw: the removal of pod arena-x7k2p is requested by acme.io/drain (EvictionRequest). {}",
            remedy("acme.io/drain")
        );
        assert_eq!(refused(&one, &bare, None), alone);
        assert_eq!(refused(&one, &drained, Some("acme.io/drain")), alone);
        assert_eq!(
            refused(&one, &drained, Some("ci")),
            "nothing to withdraw: ci has not requested the removal of pod arena-x7k2p; requested by system:admin \
             (Eviction), acme.io/drain (EvictionRequest)"
        );

        let all = guarded(&["acme.io/drain", "acme.io/scaler"], Some("Taint"));
        let authors =
            "node/node-1 (Taint), acme.io/drain (EvictionRequest), acme.io/scaler (EvictionRequest)";
        let remedies = format!(
            "The request of a node cannot be withdrawn; to end it, remove the taint from the node. {}",
            remedy("acme.io/drain, acme.io/scaler")
        );
        assert_eq!(
            refused(&all, &bare, Some("acme.io/scaler")),
            format!(
                "nothing to withdraw: the removal of pod arena-x7k2p is requested by {authors}. {remedies}"
            )
        );
        let still = format!(
            "Its removal is still requested by {authors}, so the pod will be deleted and replaced once its PreDelete \
             hook succeeds. {remedies}."
        );
        let list =
            "kubectl get evictionrequests.lifecycle.k8s.io -n games  # find the EvictionRequests to withdraw";
        let (annotation, message, next) = kept_from(&all, &drained, None, "Ask");
        assert_eq!(annotation, Value::Null);
        let withdrew = "arena-x7k2p: withdrew the removal request of system:admin (Eviction).";
        assert_eq!(message, format!("{withdrew} {still}"));
        assert_eq!(next, [WHY, list]);
        let (_, message, next) = kept_from(&all, &annotated("drain"), None, "Ask");
        assert!(message.ends_with(&format!("column 1. {still}")), "{message}");
        assert_eq!(next, [WHY, list]);
        let (_, message, next) = kept_from(&all, &drained, None, "Unguarded");
        assert!(!message.contains("acme.io"), "{message}");
        assert_eq!(next, [WHY]);
    }

    #[test]
    fn nothing_to_withdraw_is_refused() {
        let none = samples::pod(POD, "arena-7d4b9c", json!({}));
        let words = "nothing to withdraw: the removal of pod arena-x7k2p has not been requested";
        assert_eq!(refused(&none, None), words);
        assert_eq!(refused(&none, Some("ci")), words);
        let pod = requested(&[("system:admin", RemovalType::Eviction, 60)]);
        assert_eq!(
            refused(&pod, Some("ci")),
            "nothing to withdraw: ci has not requested the removal of pod arena-x7k2p; requested by system:admin \
             (Eviction)"
        );
        let broken = refused(&annotated("drain"), Some("ci"));
        assert!(
            broken.starts_with(
                "cannot find the request of ci, because annotation tkex.tencent.com/removal-requested"
            ),
            "{broken}"
        );
        let mut ending = pod;
        let at = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now());
        ending.metadata.deletion_timestamp = Some(at);
        assert_eq!(
            refused(&ending, None),
            "pod arena-x7k2p is already terminating and can no longer be kept"
        );
    }
}
