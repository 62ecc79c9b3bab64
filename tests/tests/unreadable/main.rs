//! Objects of one tenant that parsers cannot follow, nested too deep or odd in another way, hold up nobody else.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end so")]

mod api;
mod boundary;
mod broken;
mod cure;
mod gates;
mod json_text;
mod managed_fields;
mod manifests;
mod not_utf8;
mod odd_json;
mod private_keys;
mod story;
mod tenants;
mod world;
