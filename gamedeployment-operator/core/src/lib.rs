//! The pure core of gamedeployment-operator.
//!
//! | module | job |
//! | --- | --- |
//! | [`decide`] | turns everything known about a workload into a plan, using all modules below |
//! | [`view`] | inputs of a decision; [`cluster`]: surroundings of the workload |
//! | [`unusable_template`] | HookTemplates that no hook can use, and the limits of their size |
//! | [`hook_kind`] | the hooks of a pod's life cycle |
//! | [`workload`] | validates a spec: a usable workload, or every problem at once |
//! | [`pod`] | the cached part of a pod, and what follows from it |
//! | [`claim`] | the workload's own pods: adoption and release |
//! | [`template`] | semantic equality of pod templates, by what the API server would make of them |
//! | [`revision`] | names, data and history of ControllerRevisions |
//! | [`history`] | the update and current revisions; [`history_limit`]: the revisions to delete |
//! | [`canary`] | steps of a rollout: how many pods stay old now |
//! | [`lifecycle`] | hooks of a rollout: how many pods may be updated now |
//! | [`scale`] | number of pods to create and delete; [`counts`]: its counts; [`rank`]: deletion order |
//! | [`facts`] | input of every stage: the workload, its revisions, each of its pods |
//! | [`stages`] | stages of each pod's decision: selected, assessed, granted; each is built from the last |
//! | [`removal`] | requests of others to remove a pod; [`deletion`]: deletion of the workload itself |
//! | [`guard_check`] | check of the removal guard: whether it is in effect |
//! | [`autoscaler_annotations`] | annotations that keep autoscalers from removing the nodes of pods |
//! | [`scale_down`] | pods to delete; [`rollout`]: pods to update |
//! | [`draining_labels`] | labels of pods that are selected for deletion or an update |
//! | [`gate`] | decides whether an intent may be carried out; only it creates approvals |
//! | [`budget`] | number of available pods that may be taken away; [`grant`]: distribution of these slots |
//! | [`dry_run`] | checks that the API server accepts new pods before one is deleted for an update |
//! | [`in_place`] | whether a revision can become another in place, and when a container has been updated |
//! | [`progress`] | progress of a pod's in-place update |
//! | [`steps`] | the next step of every pod |
//! | [`creation`] | pods to create; [`pod_factory`]: their manifests; [`ended`]: ended pods |
//! | [`run_gc`] | removal of HookRuns that nothing depends on |
//! | [`status`] | counts, and a message for everything that waits |
//! | [`plan`] | actions as data; [`write_backoff`]: delay of actions whose write was rejected |
//! | [`digest`], [`spec_digest`] | digests of recorded values, and of the specs of HookRuns; [`image`]: image names as container runtimes parse them; [`user_text`]: text from annotations |
//!
//! Nothing here has a client, a runtime, a clock, randomness, an environment or a log.

// Every match on actions, phases and reasons lists all variants, so that a new one is considered everywhere.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod autoscaler_annotations;
pub mod budget;
pub mod canary;
pub mod claim;
pub mod cluster;
pub mod counts;
pub mod creation;
pub mod deadline;
pub mod decide;
pub mod deletion;
pub mod digest;
pub mod draining_labels;
pub mod dry_run;
pub mod ended;
pub mod facts;
pub mod first_idle;
pub mod gate;
pub mod grant;
pub mod guard_check;
pub mod history;
pub mod history_limit;
pub mod hook_kind;
pub mod image;
pub mod in_place;
pub mod lifecycle;
pub mod plan;
mod plural;
pub mod pod;
pub mod pod_factory;
pub mod progress;
pub mod rank;
pub mod recreate;
pub mod removal;
pub mod revision;
pub mod rollback;
pub mod rollout;
pub mod run_gc;
#[cfg(test)]
mod samples;
pub mod scale;
pub mod scale_down;
pub mod spec_digest;
pub mod stages;
pub mod status;
pub mod steps;
#[allow(clippy::wildcard_enum_match_arm, reason = "JSON has no other kinds of values")]
pub mod template;
pub mod unusable_template;
pub mod user_text;
pub mod view;
pub mod workload;
pub mod write_backoff;
