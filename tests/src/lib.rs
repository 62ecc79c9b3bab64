//! The suites that run against a real API server.
