//! The pure core of gamedeployment-operator.
//!
//! | module | job |
//! | --- | --- |
//! | [`template`] | a pod template by its meaning: what the API server would make of it |
//! | [`revision`] | names, data and history of ControllerRevisions |
//! | [`in_place`] | whether one revision becomes another without a new pod, what to write, and when it is done |
//! | [`image`] | names of images as container runtimes read them |
//!
//! Nothing here has a client, a runtime, a clock, randomness, an environment or a log.

pub mod image;
pub mod in_place;
pub mod revision;
pub mod template;
