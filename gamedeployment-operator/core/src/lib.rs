//! The pure core of gamedeployment-operator.
//!
//! | module | job |
//! | --- | --- |
//! | [`decide`] | from what is known of a workload to what is to be done: the order of everything below |
//! | [`view`] | what is known; [`cluster`]: what surrounds it |
//! | [`hook_kind`] | the hooks of a pod's life |
//! | [`workload`] | from a spec as people wrote it to one that can be worked on, or every problem at once |
//! | [`pod`] | what is kept of a pod, and what follows from it |
//! | [`claim`] | which pods are the workload's own |
//! | [`template`] | a pod template by its meaning: what the API server would make of it |
//! | [`revision`] | names, data and history of ControllerRevisions |
//! | [`history`] | which of them counts; [`history_limit`]: which go |
//! | [`canary`] | steps of a rollout: how many pods stay old now |
//! | [`scale`] | how many pods to create and delete; [`headcount`]: what is counted for it; [`rank`]: who goes first |
//! | [`facts`] | what every stage of a decision reads: the workload, its revisions, each of its pods |
//! | [`stages`] | how far the decision on each pod has come: chosen, asked about, granted; each holds the one before |
//! | [`victims`] | which pods are deleted; [`rollout`]: which are updated |
//! | [`gate`] | may this be done to this pod? The only place that makes approvals |
//! | [`budget`] | how many available pods may be taken away; [`grant`]: who gets these slots |
//! | [`trial`] | whether the API server takes new pods, before one goes for an update |
//! | [`in_place`] | whether one revision becomes another without a new pod, and when that is done |
//! | [`progress`] | where an in-place update of one pod stands |
//! | [`steps`] | the next step of every pod |
//! | [`creation`] | pods to create; [`pod_factory`]: what they are; [`ended`]: those that have ended |
//! | [`used_runs`] | which HookRuns are removed: those that nothing rests on |
//! | [`status`] | counts, and a sentence for everything that waits |
//! | [`plan`] | what is to be done, as data; [`refusals`]: what of it waits, because it was refused |
//! | [`image`] | names of images as container runtimes read them |
//!
//! Nothing here has a client, a runtime, a clock, randomness, an environment or a log.

pub mod budget;
pub mod canary;
pub mod claim;
pub mod cluster;
pub mod creation;
pub mod decide;
pub mod digest;
pub mod ended;
pub mod facts;
pub mod gate;
pub mod grant;
pub mod headcount;
pub mod history;
pub mod history_limit;
pub mod hook_kind;
pub mod image;
pub mod in_place;
pub mod plan;
pub mod pod;
pub mod pod_factory;
pub mod progress;
pub mod rank;
pub mod refusals;
pub mod revision;
pub mod rollout;
#[cfg(test)]
mod samples;
pub mod scale;
pub mod stages;
pub mod status;
pub mod steps;
pub mod template;
pub mod trial;
pub mod used_runs;
pub mod victims;
pub mod view;
pub mod workload;
