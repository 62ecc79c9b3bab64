//! Removal guard: deletions that are repeated many times in a short time, as by the scheduler.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, GetParams};
use kube::core::Status;
use operator_tests::SOON;
use shared_api::names::pod::REMOVAL_REQUESTED;
use test_kit::eventually;

use super::{DELETION, Games, installed, status};
use crate::installation::Replica;

/// Number of reviews of a deletion that are answered with 403 before the client must wait.
const MAX_FORBIDDEN: u64 = 100;
/// Maximum number of requesters that try.
const REQUESTERS: usize = 5;
/// Labels of the metric for denied deletions of pods.
const DENIED: [&str; 3] = ["kind=\"Pod\"", "operation=\"delete\"", "outcome=\"refused\""];

/// Deletions of a pod by one requester, up to the first response that is not 403.
struct Repeated {
    requester: String,
    last: Status,
    /// Number of reviews, including those of the last deletion.
    reviews: u64,
}

impl Repeated {
    async fn new(games: &Games<'_>, replica: &Replica, requester: String) -> Self {
        let reviews = || replica.metric("hookgate_admission_requests_total", &DENIED);
        let (pods, before) = (games.pods(&requester), reviews().await);
        let delete = || async {
            let deleted = pods.delete("arena-0", &DeleteParams::default()).await;
            deleted.map(drop).map_err(status).unwrap_err()
        };
        let mut last = delete().await;
        await_cached(&pods, &requester).await;
        for _ in 0..MAX_FORBIDDEN {
            if last.code != 403 {
                break;
            }
            last = delete().await;
        }
        Self {
            requester,
            last,
            reviews: reviews().await - before,
        }
    }

    /// Returns whether the machine was too slow: only the denials within 15 s count.
    fn is_late(&self) -> bool {
        self.last.code == 403 || self.reviews > MAX_FORBIDDEN + 2
    }
}

/// Waits until the watch cache shows the request. The API server takes the pod for a review from there; without the
/// request, the webhook would look the pod up and count anew.
async fn await_cached(pods: &Api<Pod>, requester: &str) {
    eventually(SOON, || async {
        let pod = pods.get_with("arena-0", &GetParams::any()).await.unwrap();
        let annotations = pod.metadata.annotations.unwrap_or_default();
        match annotations.get(REMOVAL_REQUESTED) {
            Some(text) if text.contains(requester) => Ok(()),
            other => Err(other.cloned()),
        }
    })
    .await;
}

#[tokio::test]
async fn a_user_who_repeats_a_deletion_too_often_must_wait_and_others_need_not() {
    let (installation, replica) = installed().await;
    let games = Games::new(&installation, &installation.namespace).await;
    games.run(&games.pod("arena-0")).await;
    let mut number = 0;
    let repeated = loop {
        number += 1;
        let repeated = Repeated::new(&games, &replica, format!("scheduler-{number}")).await;
        if !repeated.is_late() || number == REQUESTERS {
            break repeated;
        }
    };
    let Repeated {
        requester,
        last: error,
        reviews,
    } = repeated;
    assert_eq!((error.code, error.reason.as_str()), (429, "TooManyRequests"));
    assert_eq!(error.details.unwrap().retry_after_seconds, 5);
    // Kubernetes 1.20 reviews each denied deletion twice, and later versions may: see
    // `a_denied_deletion_succeeds_if_a_second_review_of_the_request_allows_it`.
    let expected = match installation.control_plane.minor_version() {
        ..=20 => MAX_FORBIDDEN + 2..=MAX_FORBIDDEN + 2,
        21..36 => MAX_FORBIDDEN + 1..=MAX_FORBIDDEN + 2,
        36.. => MAX_FORBIDDEN + 1..=MAX_FORBIDDEN + 1,
    };
    assert!(expected.contains(&reviews), "429 after {reviews} reviews");
    let kept = games.kept("arena-0");
    let message = format!(
        "{DELETION}{kept}. The request is recorded, and expires within 15m unless it is repeated. This deletion was \
         denied at least {MAX_FORBIDDEN} times within 15s; wait 5s before you repeat it"
    );
    assert_eq!(error.message, message);
    let dry_run = DeleteParams {
        dry_run: true,
        ..DeleteParams::default()
    };
    for (user, params) in [("other", DeleteParams::default()), (requester.as_str(), dry_run)] {
        let error = games.delete(user, "arena-0", &params).await.unwrap_err();
        assert_eq!(error.code, 403, "{user}: {}", error.message);
    }
    let requests = games.requests("arena-0").await;
    let recorded = requests.iter().filter(|request| request.requester == requester);
    assert_eq!(recorded.count(), 1, "{requests:?}");
}
