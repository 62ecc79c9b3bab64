//! The walls of the house: what may depend on what, and that what is generated is up to date.

mod walls;
