//! Turns `HookTemplates` into measured `HookRuns`.

pub mod provider;
