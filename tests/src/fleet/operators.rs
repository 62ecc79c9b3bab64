//! Operators of a fleet: starts, restarts and stops them.

use test_kit::ApiProxy;

use super::Fleet;
use crate::identity::{GROUPS, HOOKS_USER, WORKLOADS_USER};
use crate::{Operator, Start, fail};

/// One of the two operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// gamedeployment-operator.
    Workloads,
    /// hook-operator.
    Hooks,
}

impl Who {
    /// Returns its name, which is also the name of its Lease.
    pub fn name(self) -> &'static str {
        match self {
            Self::Workloads => "gamedeployment-operator",
            Self::Hooks => "hook-operator",
        }
    }
}

impl Fleet<'_> {
    /// Returns the start options of an operator of this fleet, with a direct connection to the API server or
    /// through a proxy.
    ///
    /// # Panics
    /// If its kubeconfig cannot be written.
    pub fn start_of(&self, who: Who, proxy: Option<&ApiProxy>) -> Start {
        let (program, user, straight) = match who {
            Who::Workloads => (
                self.programs.workloads,
                WORKLOADS_USER,
                &self.identities.workloads,
            ),
            Who::Hooks => (self.programs.hooks, HOOKS_USER, &self.identities.hooks),
        };
        let kubeconfig = proxy.map_or_else(
            || straight.clone(),
            |proxy| {
                let written = proxy.kubeconfig_as(user, &GROUPS);
                written.unwrap_or_else(|error| fail(&format!("a kubeconfig: {error}")))
            },
        );
        let start = Start::new(program, &kubeconfig, &self.namespace);
        match who {
            Who::Workloads => start.flags(&[]),
            Who::Hooks => start,
        }
    }

    /// Starts an operator in place of the running one, and waits until it is ready.
    pub async fn start(&mut self, who: Who, start: &Start) {
        self.start_unready(who, start).ready().await;
    }

    /// Starts an operator in place of the running one, without waiting.
    pub fn start_unready(&mut self, who: Who, start: &Start) -> &Operator {
        let place = match who {
            Who::Workloads => &mut self.workloads,
            Who::Hooks => &mut self.hooks,
        };
        // The running one ends first.
        *place = None;
        place.insert(Operator::start(start))
    }

    /// Starts gamedeployment-operator in place of the running one.
    pub async fn start_workloads(&mut self) {
        self.start(Who::Workloads, &self.start_of(Who::Workloads, None))
            .await;
    }

    /// Starts hook-operator in place of the running one.
    pub async fn start_hooks(&mut self) {
        self.start(Who::Hooks, &self.start_of(Who::Hooks, None)).await;
    }

    /// Starts an operator behind a proxy, in place of the running one.
    pub async fn start_behind(&mut self, proxy: &ApiProxy, who: Who) {
        self.start(who, &self.start_of(who, Some(proxy))).await;
    }

    /// Returns the operator, if it is up.
    pub fn operator(&self, who: Who) -> Option<&Operator> {
        match who {
            Who::Workloads => self.workloads.as_ref(),
            Who::Hooks => self.hooks.as_ref(),
        }
    }

    /// Kills gamedeployment-operator, like the loss of its node.
    pub fn kill_workloads(&mut self) {
        self.workloads = None;
    }
}
