//! Bytes that are no UTF-8, which the API server stores and sends where it keeps JSON as it came, hold up nobody else.

use crate::api::{Id, Kind};
use crate::json_text::with_text;
use crate::manifests::manifest;
use crate::world::World;
use operator_tests::alone;

/// Text in a manifest that stands for a byte that begins no character.
const MARK: &str = "@byte@";

/// Replaces the marks in an object.
fn with_bytes(object: &str) -> Vec<u8> {
    let parts: Vec<&[u8]> = object.split(MARK).map(str::as_bytes).collect();
    parts.join(&0xff_u8)
}

/// Creates an object. Returns whether the API server sends it as it came.
async fn keeps(world: &World<'_>, id: &Id, object: &str) -> bool {
    world.api.create(id.kind, &id.namespace, with_bytes(object)).await;
    let sent = world.api.try_read(id).await.unwrap();
    let keeps = std::str::from_utf8(&sent.body).is_err();
    if !keeps {
        println!("the API server sends a {} as UTF-8", id.kind.name());
    }
    keeps
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_that_are_no_utf8_hold_up_nobody_else() {
    let control_plane = alone().await;
    let mut world = World::on(&control_plane).await;
    world.launch_brisk().await;
    let mut kept = Vec::new();
    for (kind, pointer, field) in [
        (
            Kind::Pod,
            "/metadata/managedFields",
            r#"[{"manager":"tenant","operation":"Update","apiVersion":"v1","time":"2026-01-01T00:00:00Z",
                "fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:@byte@":{}}}}]"#,
        ),
        (Kind::ControllerRevision, "/data", r#"{"text":"@byte@"}"#),
    ] {
        let object = with_text(manifest(kind, "bytes", ""), pointer, field);
        let id = Id::new(kind, &world.hostile, "bytes");
        kept.extend(keeps(&world, &id, &object).await.then_some(kind));
        world.goes_on().await;
    }
    // Newer API servers may send UTF-8 only; the oldest does not.
    assert!(
        control_plane.minor_version() > 20 || kept.len() == 2,
        "only {kept:?} are sent as they came"
    );
    world.restart().await;
    world.goes_on().await;
}
