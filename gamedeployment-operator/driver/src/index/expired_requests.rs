//! Removal requests that have already expired, by the clock of this process, when they are first seen: the clocks
//! differ, or the watch of pods was interrupted for longer than they are valid.

use std::sync::Arc;

use gamedeployment_core::gate::PodRef;
use gamedeployment_core::plan::Warning;
use gamedeployment_core::pod::Pod;
use gamedeployment_core::workload::DisruptionPolicy;
use jiff::{SignedDuration, Timestamp};
use shared_api::GameDeployment;
use shared_api::names::pod::REMOVAL_REQUESTED;
use shared_api::reason::WorkloadReason;
use shared_api::removal_request::{DEFAULT_EXPIRATION_SECONDS, RemovalRequests};

use super::Index;
use crate::NamespacedName;
use crate::watch_event::Event;

impl Index {
    /// Returns the warning about the first removal requests of a pod, if this event shows them and all have expired, and
    /// the workload of the pod. Such requests have no effect, and the status never lists them. Repetitions, which may
    /// expire as well, cause no further warning.
    pub(crate) fn expired_request(
        &self,
        event: &Event<Pod>,
        now: Timestamp,
    ) -> Option<(&NamespacedName, Arc<GameDeployment>, Warning)> {
        let (Event::Apply(key, pod) | Event::InitApply(key, pod)) = event else {
            return None;
        };
        let known = self.pods.get(key)?;
        let is_first = known.uid == pod.uid && known.annotation(REMOVAL_REQUESTED).is_none();
        let text = pod.annotation(REMOVAL_REQUESTED).filter(|_| is_first)?;
        let requests = RemovalRequests::parse(text).ok()?;
        let workload = self.by_uid.get(pod.controller.as_ref()?)?;
        let object = self.workloads.get(workload)?.object.as_ref().ok()?;
        let disruption = object.spec.disruption.as_ref();
        let disruption =
            disruption.filter(|spec| DisruptionPolicy::read(Some(spec)) == Some(DisruptionPolicy::Ask))?;
        let seconds = disruption.request_expiration_seconds;
        let valid_for = SignedDuration::from_secs(seconds.unwrap_or(DEFAULT_EXPIRATION_SECONDS).into());
        if requests.iter().any(|request| request.expires(valid_for) > now) {
            return None;
        }
        let last = requests.iter().max_by_key(|request| request.last_repetition())?;
        let message = format!(
            "the removal request of {} was recorded at {}, but it is {} by the clock of gamedeployment-operator, so the \
             request has already expired, and pod {} is kept; either gamedeployment-operator could not watch the pod \
             in the meantime, or its clock and that of hookgate-admission differ",
            last.requester,
            last.last_repetition().timestamp(),
            Timestamp::from_second(now.as_second()).unwrap_or(now),
            pod.name
        );
        let warning = Warning {
            pod: Some(PodRef::of(pod)),
            reason: WorkloadReason::RemovalRequestExpired,
            message,
        };
        Some((workload, object.clone(), warning))
    }
}
