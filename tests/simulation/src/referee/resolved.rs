//! Checks that the status reports unusable hooks before anything waits for them.

use gamedeployment_core::hook_kind::HookKind;
use gamedeployment_core::workload::Workload;

use super::notices::notice_of;
use crate::setup::strategy_of;
use crate::world::{FLEET, World};

impl World {
    /// Checks the condition against the server's templates.
    pub fn check_hooks(&self) {
        let Some(object) = self.server.workloads.get(FLEET) else {
            return;
        };
        if Workload::read(&object.api).is_err() {
            return;
        }
        let mut spec = object.api.spec.clone();
        let named = HookKind::ALL.into_iter().filter_map(|kind| {
            let strategy = strategy_of(&mut spec, kind).as_ref()?;
            Some(strategy.hook.as_ref()?.template_name.clone())
        });
        let mut named: Vec<String> = named.collect();
        let notice = notice_of(&object.api.spec);
        named.extend(notice.map(|notice| notice.template_name.clone()));
        if named.is_empty() {
            return;
        }
        let status = object.api.status.clone().unwrap_or_default();
        let mut conditions = status.conditions.iter();
        let said = conditions.find(|known| known.type_ == "HooksResolved");
        let resolved = named.iter().all(|name| self.server.templates.get(name).is_some());
        let said = said.map(|known| known.status == "True");
        assert_eq!(said, Some(resolved), "{named:?}: {status:#?}");
    }
}
