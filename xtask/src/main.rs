//! Generates, measures and demonstrates.
fn main() {}
