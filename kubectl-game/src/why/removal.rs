//! Explains removal requests: who made them, when they end, what they lead to, and how to withdraw them.

use gamedeployment_core::pod::Pod;
use gamedeployment_core::workload::Workload;
use redact::printable;
use shared_api::removal_request::UnrecordedType;

use super::Explanation;
use super::next::{Next, keep, list_eviction_requests, look, quoted};
use crate::cluster::Snapshot;
use crate::view::removal::{RemovalView, prospect};
use crate::view::waits::some;

/// Purpose of the command for an annotation that cannot be parsed.
const CLEAR: &str = "remove the annotation";

/// Pod with its removal requests.
type Requested = (String, RemovalView);

/// Explains the requests of one pod.
pub(super) fn explain_pod(snapshot: &Snapshot, pod: &Pod, answer: &mut Explanation) {
    let Some(removal) = RemovalView::of(snapshot, pod) else {
        return;
    };
    for request in &removal.requests {
        let because = removal.ignored_because.as_ref();
        let effect = match because.filter(|_| request.unrecorded.is_none()) {
            Some(because) => format!("ignored, because {because}"),
            None => request.end(snapshot.now),
        };
        answer.say(&format!(
            "Removal requested by {} {}; {effect}.",
            request.author(),
            request.age(snapshot.now)
        ));
    }
    let recorded = removal.recorded().count();
    if let Some(because) = removal.ignored_because.as_ref().filter(|_| recorded == 0) {
        let has_others = removal.unrecorded().next().is_some();
        let which = if has_others { "recorded " } else { "" };
        answer.say(&format!(
            "Its {which}removal requests are ignored, because {because}."
        ));
        answer.add_before_skips(keep(snapshot, &pod.name, CLEAR));
    }
    if !removal.is_effective() {
        return;
    }
    let (workload, _) = Workload::examine(&snapshot.game);
    let (prospect, end, remedy) = (prospect(&workload), end(&removal), remedy(&removal));
    answer.say(&format!("The pod {prospect}. It is kept if {end}.{remedy}"));
    let releases = removal.unrecorded();
    for next in releases.filter_map(|(_, type_)| release(snapshot, pod, type_)) {
        answer.add_before_skips(next);
    }
    if recorded > 0 {
        answer.add_before_skips(keep(snapshot, &pod.name, withdraw(recorded == 1)));
    }
}

/// Describes when a pod with these requests is kept.
fn end(removal: &RemovalView) -> String {
    let (mut node, mut requesters) = (None, Vec::new());
    for (request, type_) in removal.unrecorded() {
        match type_ {
            UnrecordedType::Cordon => {
                node = Some(
                    "the node is uncordoned and has no taint of an autoscaler, or spec.disruption.onCordon is set to \
                     Ignore",
                );
            }
            UnrecordedType::Taint => node = Some("the taint is removed from the node"),
            UnrecordedType::EvictionRequest => requesters.push(printable(&request.requester)),
        }
    }
    let evictions = (!requesters.is_empty()).then(|| {
        let are_withdrawn = if node.is_some() {
            "must also be withdrawn"
        } else {
            "are withdrawn"
        };
        format!("the EvictionRequests of {} {are_withdrawn}", some(&requesters))
    });
    let is_alone = node.is_none() && evictions.is_none();
    let recorded = match (removal.recorded().count(), is_alone) {
        (0, _) => None,
        (1, true) => Some("the request expires or is withdrawn"),
        (_, true) => Some("all requests expire or are withdrawn"),
        (1, false) => Some("the other request must also expire or be withdrawn"),
        (_, false) => Some("all other requests must also expire or be withdrawn"),
    };
    let conditions = [node.map(str::to_owned), evictions, recorded.map(str::to_owned)];
    let conditions: Vec<String> = conditions.into_iter().flatten().collect();
    conditions.join("; ")
}

/// Describes how to withdraw `EvictionRequest`s, with a leading space; empty without any.
fn remedy(removal: &RemovalView) -> &'static str {
    if has_eviction_requests(removal) {
        " To withdraw an EvictionRequest, set its spec.intent to Withdrawn."
    } else {
        ""
    }
}

fn has_eviction_requests(removal: &RemovalView) -> bool {
    removal
        .unrecorded()
        .any(|(_, type_)| type_ == UnrecordedType::EvictionRequest)
}

/// Builds the command that ends a request that is not recorded on the pod, or shows its cause.
fn release(snapshot: &Snapshot, pod: &Pod, type_: UnrecordedType) -> Option<Next> {
    let flags = &snapshot.flags;
    let (command, purpose) = match type_ {
        UnrecordedType::Cordon => ("uncordon", "if the node must not be drained"),
        UnrecordedType::Taint => ("describe node", "show its taints"),
        UnrecordedType::EvictionRequest => return Some(list_eviction_requests(flags)),
    };
    let node = quoted(pod.node.as_deref()?);
    Some(Next::new(format!("kubectl {command} {node}{flags}"), purpose))
}

/// Explains the requests of all pods.
pub(super) fn explain(snapshot: &Snapshot, answer: &mut Explanation) {
    let requested = |pod: Pod| Some((pod.name.clone(), RemovalView::of(snapshot, &pod)?));
    let pods = snapshot.pods.iter().map(Pod::read).filter_map(requested);
    let (effective, ignored): (Vec<Requested>, Vec<Requested>) =
        pods.partition(|(_, removal)| removal.is_effective());
    explain_effective(snapshot, &effective, answer);
    explain_ignored(snapshot, &ignored, answer);
}

fn explain_effective(snapshot: &Snapshot, pods: &[Requested], answer: &mut Explanation) {
    let requests = pods.iter().flat_map(|(_, removal)| &removal.requests);
    let count = requests.clone().count();
    let Some(oldest) = requests.min_by_key(|request| request.request_time) else {
        return;
    };
    let names: Vec<String> = pods.iter().map(|(name, _)| name.clone()).collect();
    let (author, age) = (oldest.author(), oldest.age(snapshot.now));
    let whose = if count == 1 {
        format!(" by {author} {age}")
    } else {
        format!("; the oldest request is by {author}, {age}")
    };
    let each = if names.len() == 1 { "The pod" } else { "Each pod" };
    let (workload, _) = Workload::examine(&snapshot.game);
    answer.say(&format!(
        "Removal requested of {}{whose}. {each} {}.",
        subject(&names),
        prospect(&workload)
    ));
    if let Some(first) = names.first() {
        let is_only = names.len() == 1;
        answer.add_before_skips(look(snapshot, first, is_only));
        if pods.iter().any(|(_, removal)| has_eviction_requests(removal)) {
            answer.add_before_skips(list_eviction_requests(&snapshot.flags));
        }
        let recorded = pods.iter().flat_map(|(_, removal)| removal.recorded()).count();
        if is_only && recorded > 0 {
            answer.add_before_skips(keep(snapshot, first, withdraw(recorded == 1)));
        }
    }
}

/// Explains requests without effect: each reason once, with its pods.
fn explain_ignored(snapshot: &Snapshot, pods: &[Requested], answer: &mut Explanation) {
    let mut reasons: Vec<(&str, bool, Vec<String>)> = Vec::new();
    for (name, removal) in pods {
        let because = removal.ignored_because.as_deref().unwrap_or_default();
        match reasons.iter_mut().find(|(known, _, _)| *known == because) {
            Some((_, _, names)) => names.push(name.clone()),
            None => reasons.push((because, removal.requests.is_empty(), vec![name.clone()])),
        }
    }
    for (because, is_invalid, names) in reasons {
        let Some(first) = names.first() else { continue };
        // The operator reports annotations that cannot be parsed in a condition.
        let reported = format!("removal requests of pod {first} are ignored");
        if !answer.paragraphs.iter().any(|text| text.contains(&reported)) {
            answer.say(&format!(
                "The removal requests of {} are ignored, because {because}.",
                subject(&names)
            ));
        }
        if is_invalid {
            answer.add_before_skips(keep(snapshot, first, CLEAR));
        }
    }
}

/// Names one or several pods.
fn subject(names: &[String]) -> String {
    match names {
        [pod] => format!("pod {pod}"),
        pods => format!("{} pods ({})", pods.len(), some(pods)),
    }
}

/// Returns the purpose of the command that withdraws one or several requests.
fn withdraw(is_only: bool) -> &'static str {
    if is_only {
        "withdraw the removal request"
    } else {
        "withdraw the removal requests"
    }
}

#[cfg(test)]
mod tests {
    use kube::ResourceExt;
    use shared_api::removal_request::RemovalType;

    use super::*;
    use crate::view::samples::{
        self, removal_requests, with_eviction_request, with_node_request, with_removal,
    };

    const WAITING: &str = "arena-x7k2p";
    const OTHER: &str = "arena-b4n8c";

    /// Returns the explanation of a pod: its paragraphs after the first one, and its commands.
    fn of_pod(snapshot: &Snapshot, name: &str) -> (Vec<String>, Vec<String>) {
        let pod = snapshot.pods.iter().find(|pod| pod.name_any() == name).unwrap();
        let Explanation { paragraphs, next, .. } = crate::why::pod(snapshot, pod);
        let next = next.iter().map(ToString::to_string).collect();
        (paragraphs.into_iter().skip(1).collect(), next)
    }

    fn drained() -> String {
        removal_requests(&[("system:admin", RemovalType::Eviction, 180)])
    }

    #[test]
    fn a_request_has_its_requester_its_expiration_and_its_end() {
        let snapshot = with_removal(samples::running(), "Ask", WAITING, drained());
        let (paragraphs, next) = of_pod(&snapshot, WAITING);
        assert_eq!(
            paragraphs,
            [
                "Removal requested by system:admin (Eviction) 3m ago; expires in 12m unless repeated.",
                "The pod will be deleted and replaced once its PreDelete hook succeeds. It is kept if the request \
                 expires or is withdrawn."
            ]
        );
        assert_eq!(
            next.last().unwrap(),
            "kubectl game keep pod/arena-x7k2p  # withdraw the removal request"
        );
    }

    #[test]
    fn a_skip_stays_the_last_command() {
        let snapshot = with_removal(samples::refused(), "Ask", WAITING, drained());
        let (_, next) = of_pod(&snapshot, WAITING);
        let (last, others) = next.split_last().unwrap();
        assert!(last.starts_with("kubectl game skip "), "{next:?}");
        assert!(
            others.last().unwrap().starts_with("kubectl game keep "),
            "{next:?}"
        );
        let next = crate::why::game(&snapshot).next;
        let (last, others) = next.split_last().unwrap();
        assert!(last.is_skip(), "{next:?}");
        let keep = "kubectl game keep pod/arena-x7k2p";
        assert!(others.iter().any(|next| next.command == keep), "{next:?}");
    }

    #[test]
    fn a_pod_that_is_not_selected_yet_is_waiting() {
        let made = [
            ("ci", RemovalType::Manual, 60),
            ("drain", RemovalType::Delete, 30),
        ];
        let snapshot = with_removal(samples::complete(), "Ask", OTHER, removal_requests(&made));
        let pod = snapshot.pods.iter().find(|pod| pod.name_any() == OTHER).unwrap();
        let explanation = crate::why::pod(&snapshot, pod);
        assert_eq!(
            explanation.paragraphs,
            [
                "Pod arena-b4n8c is waiting: its removal is requested, but gamedeployment-operator has not selected it \
                 for deletion yet.",
                "Removal requested by ci (Manual) 60s ago; expires in 14m unless repeated.",
                "Removal requested by drain (Delete) 30s ago; expires in 14m unless repeated.",
                "The pod will be deleted and replaced once its PreDelete hook succeeds. It is kept if all requests \
                 expire or are withdrawn."
            ]
        );
        assert_eq!(
            explanation.commands(),
            ["kubectl game get arena -w", "kubectl game keep pod/arena-b4n8c"]
        );
    }

    #[test]
    fn requests_without_effect_are_not_a_wait() {
        let snapshot = with_removal(samples::complete(), "Unguarded", OTHER, drained());
        let ignored = "ignored, because spec.disruption.policy is Unguarded.";
        let paragraph = format!("Removal requested by system:admin (Eviction) 3m ago; {ignored}");
        assert_eq!(of_pod(&snapshot, OTHER), (vec![paragraph], vec![]));
        let explanation = crate::why::game(&snapshot);
        assert_eq!(
            explanation.paragraphs,
            [
                "arena is not waiting: all pods are at the update revision.".to_owned(),
                format!("The removal requests of pod arena-b4n8c are {ignored}")
            ]
        );
        assert_eq!(explanation.next, []);
    }

    /// Returns the snapshot of a guarded workload, one of whose pods has this annotation of removal requests, if any.
    fn guarded(text: Option<String>) -> Snapshot {
        let is_bare = text.is_none();
        let mut snapshot = with_removal(samples::complete(), "Ask", OTHER, text.unwrap_or_default());
        let mut pods = snapshot.pods.iter_mut();
        let pod = pods.find(|pod| pod.name_any() == OTHER).unwrap();
        if is_bare {
            pod.metadata.annotations = None;
        }
        snapshot
    }

    #[test]
    fn the_request_of_a_node_ends_with_its_cause() {
        let cordoned = with_node_request(guarded(None), "u-b4n8c", "Cordon");
        let (paragraphs, next) = of_pod(&cordoned, OTHER);
        assert_eq!(
            paragraphs,
            [
                "Removal requested by node/node-1 (Cordon) 3m ago; valid while the node is cordoned or an autoscaler \
                 is removing it.",
                "The pod will be deleted and replaced once its PreDelete hook succeeds. It is kept if the node is \
                 uncordoned and has no taint of an autoscaler, or spec.disruption.onCordon is set to Ignore."
            ]
        );
        assert_eq!(
            next.last().unwrap(),
            "kubectl uncordon node-1  # if the node must not be drained"
        );
        let game = crate::why::game(&cordoned);
        assert!(
            game.text().contains(
                "Removal requested of pod arena-b4n8c by node/node-1 (Cordon) 3m ago. The pod will be"
            ),
            "{game:?}"
        );
        assert_eq!(game.commands(), ["kubectl game why pod/arena-b4n8c"]);
        let tainted = with_node_request(guarded(Some(drained())), "u-b4n8c", "Taint");
        let (paragraphs, next) = of_pod(&tainted, OTHER);
        assert_eq!(
            paragraphs,
            [
                "Removal requested by system:admin (Eviction) 3m ago; expires in 12m unless repeated.",
                "Removal requested by node/node-1 (Taint) 3m ago; valid while the node has a NoExecute taint that the \
                 pod does not tolerate.",
                "The pod will be deleted and replaced once its PreDelete hook succeeds. It is kept if the taint is \
                 removed from the node; the other request must also expire or be withdrawn."
            ]
        );
        assert_eq!(
            next[next.len() - 2..],
            [
                "kubectl describe node node-1  # show its taints",
                "kubectl game keep pod/arena-b4n8c  # withdraw the removal request"
            ]
        );
    }

    #[test]
    fn an_eviction_request_ends_once_its_requester_withdraws_it() {
        let snapshot = with_eviction_request(guarded(None), "u-b4n8c", "acme.io/drain");
        let (paragraphs, next) = of_pod(&snapshot, OTHER);
        assert_eq!(
            paragraphs,
            [
                "Removal requested by acme.io/drain (EvictionRequest) 3m ago; valid until the EvictionRequest is \
                 withdrawn.",
                "The pod will be deleted and replaced once its PreDelete hook succeeds. It is kept if the \
                 EvictionRequests of acme.io/drain are withdrawn. To withdraw an EvictionRequest, set its spec.intent \
                 to Withdrawn."
            ]
        );
        let list = "kubectl get evictionrequests.lifecycle.k8s.io";
        let with_purpose = format!("{list}  # find the EvictionRequests to withdraw");
        assert_eq!(next.last().unwrap(), &with_purpose);
        let game = crate::why::game(&snapshot);
        let words =
            "Removal requested of pod arena-b4n8c by acme.io/drain (EvictionRequest) 3m ago. The pod will be";
        assert!(game.text().contains(words), "{game:?}");
        let commands = ["kubectl game why pod/arena-b4n8c", list];
        assert_eq!(game.commands(), commands);
        let shown = crate::why::commands(&snapshot);
        assert!(shown.iter().any(|next| next.command == list), "{shown:?}");

        let ignored = with_eviction_request(guarded(Some("drain".to_owned())), "u-b4n8c", "acme.io/drain");
        let (paragraphs, _) = of_pod(&ignored, OTHER);
        assert!(
            paragraphs[1].starts_with("Its recorded removal requests are ignored, because annotation"),
            "{paragraphs:?}"
        );
        assert!(
            paragraphs[2].ends_with("set its spec.intent to Withdrawn."),
            "{paragraphs:?}"
        );
    }

    #[test]
    fn a_pod_is_kept_once_all_kinds_of_requests_have_ended() {
        let evicted = |snapshot: Snapshot| {
            let snapshot = with_eviction_request(snapshot, "u-b4n8c", "acme.io/drain");
            with_eviction_request(snapshot, "u-b4n8c", "acme.io/scaler")
        };
        let remedy = "To withdraw an EvictionRequest, set its spec.intent to Withdrawn.";
        let snapshot = evicted(guarded(Some(drained())));
        let (paragraphs, _) = of_pod(&snapshot, OTHER);
        let end = "It is kept if the EvictionRequests of acme.io/drain, acme.io/scaler are withdrawn; the other \
                   request must also expire or be withdrawn.";
        let last = paragraphs.last().unwrap();
        assert!(last.ends_with(&format!("{end} {remedy}")), "{last}");

        let snapshot = evicted(with_node_request(guarded(Some(drained())), "u-b4n8c", "Taint"));
        let (paragraphs, next) = of_pod(&snapshot, OTHER);
        let requested: Vec<&str> = paragraphs
            .iter()
            .filter_map(|text| text.strip_prefix("Removal requested by "))
            .filter_map(|text| text.split_once(" 3m ago"))
            .map(|(author, _)| author)
            .collect();
        assert_eq!(
            requested,
            [
                "system:admin (Eviction)",
                "node/node-1 (Taint)",
                "acme.io/drain (EvictionRequest)",
                "acme.io/scaler (EvictionRequest)"
            ]
        );
        let end = "It is kept if the taint is removed from the node; the EvictionRequests of acme.io/drain, \
                   acme.io/scaler must also be withdrawn; the other request must also expire or be withdrawn.";
        let last = paragraphs.last().unwrap();
        assert!(last.ends_with(&format!("{end} {remedy}")), "{last}");
        assert_eq!(
            next[next.len() - 3..],
            [
                "kubectl describe node node-1  # show its taints",
                "kubectl get evictionrequests.lifecycle.k8s.io  # find the EvictionRequests to withdraw",
                "kubectl game keep pod/arena-b4n8c  # withdraw the removal request"
            ]
        );
    }

    #[test]
    fn an_annotation_that_cannot_be_parsed_does_not_hide_the_request_of_the_node() {
        let snapshot = with_removal(samples::complete(), "Ask", OTHER, "drain".to_owned());
        let snapshot = with_node_request(snapshot, "u-b4n8c", "Cordon");
        let (paragraphs, _) = of_pod(&snapshot, OTHER);
        assert!(
            paragraphs[0].starts_with("Removal requested by node/node-1 (Cordon) 3m ago; valid while"),
            "{paragraphs:?}"
        );
        assert!(
            paragraphs[1].starts_with("Its recorded removal requests are ignored, because annotation"),
            "{paragraphs:?}"
        );
        assert!(
            paragraphs[2].ends_with("of an autoscaler, or spec.disruption.onCordon is set to Ignore."),
            "{paragraphs:?}"
        );
    }

    #[test]
    fn an_annotation_that_cannot_be_parsed_is_named_once() {
        let mut snapshot = with_removal(samples::complete(), "Ask", OTHER, "drain".to_owned());
        let because = "annotation tkex.tencent.com/removal-requested cannot be parsed: expected value at line 1 \
                       column 1";
        let keep = "kubectl game keep pod/arena-b4n8c";
        let (paragraphs, next) = of_pod(&snapshot, OTHER);
        assert_eq!(
            paragraphs,
            [format!("Its removal requests are ignored, because {because}.")]
        );
        assert_eq!(next, [format!("{keep}  # remove the annotation")]);
        let reported = format!("he removal requests of pod {OTHER} are ignored, because");
        let explanation = crate::why::game(&snapshot);
        assert_eq!(
            explanation.text().matches(&reported).count(),
            1,
            "{explanation:?}"
        );
        assert_eq!(explanation.commands(), [keep]);
        let conditions = &mut snapshot.game.status.as_mut().unwrap().conditions;
        let mut progressing = conditions.iter_mut().filter(|found| found.type_ == "Progressing");
        let message = format!("; t{reported} its annotation cannot be parsed; remove it");
        progressing.next().unwrap().message.push_str(&message);
        let explanation = crate::why::game(&snapshot);
        assert_eq!(
            explanation.text().matches(&reported).count(),
            1,
            "{explanation:?}"
        );
    }

    #[test]
    fn a_workload_names_its_pods_and_the_oldest_request() {
        let both = [
            ("late", RemovalType::Delete, 60),
            ("system:admin", RemovalType::Eviction, 180),
        ];
        let mut snapshot = with_removal(samples::complete(), "Ask", OTHER, removal_requests(&both));
        let whose = "the oldest request is by system:admin (Eviction), 3m ago";
        let one = crate::why::game(&snapshot);
        assert_eq!(
            one.paragraphs.last().unwrap(),
            &format!(
                "Removal requested of pod arena-b4n8c; {whose}. The pod will be deleted and replaced once its \
                 PreDelete hook succeeds."
            )
        );
        assert_eq!(
            one.commands(),
            [
                "kubectl game why pod/arena-b4n8c",
                "kubectl game keep pod/arena-b4n8c"
            ]
        );
        snapshot.game.spec.pre_delete_update_strategy = None;
        let snapshot = with_removal(snapshot, "Ask", "arena-q9w5d", removal_requests(&both[..1]));
        let two = crate::why::game(&snapshot);
        assert_eq!(
            two.paragraphs.last().unwrap(),
            &format!(
                "Removal requested of 2 pods (arena-b4n8c, arena-q9w5d); {whose}. Each pod will be deleted and \
                 replaced once enough other pods are available."
            )
        );
        assert_eq!(two.commands(), ["kubectl game why pod/arena-b4n8c"]);
    }
}
