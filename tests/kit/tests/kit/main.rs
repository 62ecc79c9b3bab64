//! The kit against the real programs.

mod control_plane;
// mod life;
