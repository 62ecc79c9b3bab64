//! Placeholders: `{{ args.NAME }}` (in work).

/// A parsed text with placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {}
