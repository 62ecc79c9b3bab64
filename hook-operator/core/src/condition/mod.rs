//! The condition language (in work).
