//! A real control plane, sample servers and faults for tests, demo and benches.
