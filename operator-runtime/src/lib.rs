//! What the shells of both operators share: client, health, telemetry, events, shutdown.
