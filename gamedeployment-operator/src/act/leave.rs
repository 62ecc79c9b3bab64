//! Leave is looked at once more right before the write that needs it: plans are carried out in batches, writes wait for
//! their turn, and what opened a gate does not hold for ever.

use std::time::{Duration, Instant};

use gamedeployment_core::gate::Grounds;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use operator_runtime::calls::CallError;

use super::{Effect, Hands, Subject, Trouble};

/// For so long the answer counts that a node does not exist.
const NODE_GONE_FOR: Duration = Duration::from_secs(5);

impl Hands {
    /// Until when a write may be sent that rests on these grounds; none: whenever. That a node is gone is asked now, not
    /// believed: a cache may be late, and a node may have registered again.
    pub(super) async fn leave(
        &self,
        subject: &Subject,
        grounds: &Grounds,
    ) -> Result<Option<Instant>, Trouble> {
        match grounds {
            Grounds::Verdict { until, .. } => Ok(until.map(|until| subject.decided.at(until))),
            Grounds::NodeGone { node } => self.confirm_gone(subject, node).await,
            Grounds::NoHook
            | Grounds::HotPatch
            | Grounds::NotScheduled
            | Grounds::NeverStarted
            | Grounds::Ended
            | Grounds::UnderWay
            | Grounds::Skipped { .. } => Ok(None),
        }
    }

    async fn confirm_gone(&self, subject: &Subject, node: &str) -> Result<Option<Instant>, Trouble> {
        let api: Api<Node> = Api::all(self.client.clone());
        let step = "confirm that a node is gone";
        let error = match self.calls.call(&subject.key.0, step, api.get(node)).await {
            Err(CallError::Gone) => return Ok(Some(Instant::now() + NODE_GONE_FOR)),
            Ok(_) => {
                tracing::warn!(
                    node,
                    "the watch does not show a node that exists; its pods are asked"
                );
                CallError::Conflict
            }
            Err(error) => error,
        };
        Err(Trouble {
            error,
            effect: Some(Effect::NodeNotGone(node.to_owned())),
            collision: false,
        })
    }
}
