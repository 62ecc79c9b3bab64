//! Durations (in work).
