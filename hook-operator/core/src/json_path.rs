//! JSON path (in work).
