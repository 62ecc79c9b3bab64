//! Checks the deletion of a workload: with guarded pods, it is held until no pod is left, unless the policy changes. A
//! workload that is being deleted gets no pod and no revision, and updates none.

use gamedeployment_core::plan::{Action, GatedWrite};
use gamedeployment_core::workload::{UpdateType, Workload};
use shared_api::GameDeployment;
use shared_api::names::workload::ASK_BEFORE_REMOVAL;

use super::Acted;
use super::removal::has_requests;
use crate::objects::{has_finalizer, is_deleting};
use crate::world::{FLEET, World};

/// Adjusts the desired state of a workload that is being deleted: no pod, and no update.
pub(super) fn adjust(wanted: &mut Workload, object: &GameDeployment) {
    if is_deleting(object) {
        (wanted.replicas, wanted.max_surge) = (0, 0);
        wanted.update = UpdateType::OnDelete;
    }
}

/// Checks a write that took effect. One to the workload carried its version, so that the decision knew it as it was.
pub(super) fn check_deletion(action: &Action, acted: &Acted<'_>) {
    let object = acted.seen.object();
    let is_ending = object.metadata.deletion_timestamp.is_some();
    let is_held = has_finalizer(&object.metadata, ASK_BEFORE_REMOVAL);
    let is_guarded = has_requests(&object.spec);
    let continues = match action {
        Action::CreatePod(_)
        | Action::AdoptPod(_)
        | Action::CreateRevision(_)
        | Action::AdoptRevision(_)
        | Action::RenumberRevision(..)
        | Action::AddFinalizer
        | Action::Gated(GatedWrite::SetNotReady(..) | GatedWrite::WriteUpdate(..)) => true,
        // The garbage collector deletes the pods for which no hook runs.
        Action::Gated(GatedWrite::DeletePod(_)) => !is_deleting(object),
        _ => false,
    };
    assert!(
        !(is_ending && continues),
        "a workload that is being deleted is still changed: {action:#?} {:#?}",
        object.metadata
    );
    match action {
        Action::CreatePod(_) => assert!(
            is_held || !is_guarded,
            "a guarded pod of a workload that nothing holds: {action:#?} {:#?}",
            object.metadata
        ),
        Action::CreateRun(new) => {
            let mut owners = new.metadata.owner_references.iter().flatten();
            assert!(
                !is_ending || owners.all(|owner| owner.block_owner_deletion != Some(true)),
                "the garbage collector deletes a run again and again: {new:#?}"
            );
        }
        Action::RemoveFinalizer(_) => {
            let is_left = acted.room.active > 0 && !acted.seen.found_none.get();
            assert!(
                !is_left || !is_guarded,
                "the finalizer is removed although {} pods are left: {action:#?} {:#?}",
                acted.room.active,
                object.metadata
            );
        }
        _ => {}
    }
}

impl World {
    /// Whether the workload is being deleted after its pods.
    pub(crate) fn is_deleting(&self) -> bool {
        let object = self.server.workloads.get(FLEET);
        object.is_some_and(|object| is_deleting(&object.api))
    }

    /// Checks, while nothing happens and every hook succeeds, that no deletion is left, and that the finalizer follows
    /// the policy.
    pub(crate) fn check_finalizer(&self) {
        let object = self.server.workloads.get(FLEET).unwrap();
        assert!(
            object.api.metadata.deletion_timestamp.is_none(),
            "a deletion does not finish: {:#?} {}",
            object.api.metadata,
            self.describe()
        );
        assert_eq!(
            object.has_finalizer(ASK_BEFORE_REMOVAL),
            has_requests(&object.api.spec),
            "{:#?} {}",
            object.api.metadata,
            self.describe()
        );
    }
}
