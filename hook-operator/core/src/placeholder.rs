//! Placeholders (in work).
