//! A person on call: a workload waits. One command, `kubectl game why`, names the cause, and the command that it prints
//! first ends the wait or shows its details.
//!
//! | file | scope |
//! | --- | --- |
//! | `no_answer` | an endpoint that refuses connections, hangs, or answers again |
//! | `answers` | answers that bring no success: 404, a wrong path, no series, a measured no |
//! | `templates` | templates that are wrong or missing, and a HookRun in the way |
//! | `pods` | pods without a node, and images that cannot be pulled |
//! | `rollout` | a partition, and the failed hook of a canary step |
//! | `cluster` | a finalizer, and hook-operator without processes |
//! | `harness` | the workload, and a shell for the printed command |
//! | `explanation` | printed explanations, and the rules for all of them |

mod answers;
mod cluster;
mod explanation;
mod harness;
mod no_answer;
mod pods;
mod rollout;
mod templates;
