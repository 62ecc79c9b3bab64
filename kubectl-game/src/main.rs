//! The kubectl plugin of game teams and webhook authors.
fn main() {}
