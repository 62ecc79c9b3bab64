//! HookTemplates as the watch of one process has shown them, which is all that its decisions know of them.

use std::collections::BTreeSet;

use gamedeployment_driver::watch_event::{Event, Template};

/// Names of the HookTemplates that the watch shows. A process that starts anew knows none.
#[derive(Debug, Clone, Default)]
pub struct KnownTemplates {
    shown: BTreeSet<String>,
    /// Names in the list that is being read.
    listed: BTreeSet<String>,
}

impl KnownTemplates {
    pub fn contains(&self, name: &str) -> bool {
        self.shown.contains(name)
    }

    /// Applies an event of the watch.
    pub(super) fn learn(&mut self, event: &Event<Template>) {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply((_, name), _) | Event::Apply((_, name), _) => {
                self.listed.insert(name.clone());
                self.shown.insert(name.clone());
            }
            Event::Delete((_, name), _) => {
                self.shown.remove(name);
            }
            Event::InitDone => self.shown.retain(|name| self.listed.contains(name)),
        }
    }
}
