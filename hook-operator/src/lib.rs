//! Turns HookTemplates into measured HookRuns.
