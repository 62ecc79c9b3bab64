//! Names that the shells' files look for in `operator-runtime`, which cannot be had without a runtime.

/// Namespace and name, as in `operator_runtime::watch`.
pub type Key = (String, String);
