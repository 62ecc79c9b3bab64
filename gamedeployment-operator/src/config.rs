//! Flags and environment.

use clap::Parser;
use operator_runtime::flags::{OperatorArgs, variable};
use operator_runtime::leader::LeaderArgs;

/// Runs GameDeployments: workloads whose pods are deleted or updated only after their hook succeeded.
#[derive(Debug, Clone, Parser)]
#[command(name = "gamedeployment-operator", version, about, max_term_width = 100)]
#[command(mut_args(|flag| variable("gamedeployment-operator", flag)))]
pub struct Config {
    #[command(flatten)]
    #[expect(missing_docs, reason = "the text would stand in front of every flag's own")]
    pub operator: OperatorArgs,

    /// Do not watch nodes. Node deletion costs are then ignored, and hooks also run for pods whose node is gone, and for
    /// pods that never started once their kubelet has not reported for 30s
    #[arg(long)]
    pub ignore_nodes: bool,

    /// Respond to Evictions of guarded pods (API lifecycle.k8s.io/v1alpha1 of Kubernetes 1.37, alpha): such a pod is
    /// deleted once its PreDelete hook has succeeded, and its Eviction shows the reason why it stays
    #[arg(long)]
    pub eviction_responder: bool,

    #[command(flatten)]
    #[expect(missing_docs, reason = "the text would stand in front of every flag's own")]
    pub leader: LeaderArgs,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_flags_are_consistent() {
        super::Config::command().debug_assert();
    }
}
