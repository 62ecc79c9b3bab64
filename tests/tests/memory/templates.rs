//! HookTemplates of 1.4 MB, nearly as long as etcd accepts: each says that it is too long.

use futures::stream::{self, StreamExt as _};
use operator_tests::proof::Extent;

use crate::api::{Id, Kind};
use crate::json_text::field;
use crate::shapes::{Shape, spread};
use crate::world::World;
use crate::{MAX_SPEC, assert_states, count};

const BYTES: usize = 1_400_000;
const DENSE: [Shape; 4] = [Shape::Zeros, Shape::Body, Shape::Names, Shape::Objects];
/// Objects that are stored at a time.
pub(crate) const AT_ONCE: usize = 4;

/// Stores the templates.
pub(crate) async fn store(world: &World<'_>) -> Vec<Id> {
    let dense = usize::try_from(Extent::asked().of(2, 10, 16)).unwrap();
    let url = world.hostile_server.url("/template");
    let shapes = spread(&DENSE, dense, count(6, 20)).into_iter().enumerate();
    let objects = shapes.map(|(number, shape)| {
        let name = format!("template-{number:02}");
        let object = shape.object(Kind::HookTemplate, &name, &url, BYTES);
        (Id::new(Kind::HookTemplate, &world.hostile, &name), object)
    });
    let stored = stream::iter(objects).map(|(id, object)| async move {
        world.api.create(id.kind, &id.namespace, object).await;
        id
    });
    stored.buffer_unordered(AT_ONCE).collect().await
}

/// Waits until each template says that it is too long, with its size and the limit.
pub(crate) async fn are_refused(world: &World<'_>, templates: &[Id]) {
    let kind = Kind::HookTemplate;
    let rows = world.printer.until(kind, &world.hostile, |rows| {
        rows.len() == templates.len() && rows.values().all(|row| row["VALID"] == "False")
    });
    rows.await;
    for template in templates {
        let object = world.api.read(template).await;
        let status = field(&object, "status");
        let mut conditions = status["conditions"].as_array().into_iter().flatten();
        let valid = conditions.find(|condition| condition["type"] == "Valid").unwrap();
        assert_eq!(valid["reason"], "SpecInvalid", "{template:?}");
        assert_states(valid["message"].as_str().unwrap(), BYTES, MAX_SPEC);
    }
    assert_eq!(world.hostile_server.counts("/template").received, 0);
}
