//! hookgate-admission reviews large objects: each has an answer with words, within the memory of the component.

use futures::stream::{self, StreamExt as _};
use operator_tests::assert_has;
use operator_tests::proof::played;

use crate::api::{Kind, RawApi};
use crate::footprint::assert_small;
use crate::installation::{Installation, bad_template, hook};
use crate::shapes::Shape;
use crate::{MACHINE, shared};

/// Memory limit in `deploy/admission.yaml`, in bytes.
const LIMIT: u64 = 256 << 20;
const KINDS: [(Kind, usize); 2] = [(Kind::HookTemplate, 1_400_000), (Kind::HookRun, 620_000)];
const SHAPES: [Shape; 5] = [
    Shape::Zeros,
    Shape::Body,
    Shape::Names,
    Shape::Headers,
    Shape::Text,
];
/// Objects that are stored at a time.
const AT_ONCE: usize = 5;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reviews_of_large_specs_are_answered_within_the_memory_limit() {
    let _turn = MACHINE.read().await;
    let (installation, replica) = Installation::running(shared().await, &[]).await;
    let api = RawApi::of(installation.control_plane);
    let objects = KINDS
        .iter()
        .flat_map(|kind| SHAPES.iter().map(move |shape| (*kind, *shape)));
    let objects = objects.enumerate().map(|(number, ((kind, bytes), shape))| {
        let name = format!("large-{number}");
        (
            kind,
            shape,
            shape.object(kind, &name, "http://127.0.0.1:1/", bytes),
        )
    });
    let (api, namespace) = (&api, installation.namespace.as_str());
    let answers = stream::iter(objects).map(|(kind, shape, object)| async move {
        let answer = api.try_create(kind, namespace, object).await;
        (kind, shape, answer)
    });
    let answers: Vec<_> = answers.buffer_unordered(AT_ONCE).collect().await;
    let mut refused = 0;
    for (kind, shape, answer) in &answers {
        if let Err(said) = answer {
            assert!(
                said.contains("denied the request: "),
                "{kind:?} {shape:?}: {said}"
            );
            refused += 1;
        }
    }
    played(
        "fairness",
        "reviews of large objects by hookgate-admission",
        &[("reviews", &answers.len()), ("refused", &refused)],
    );
    assert_small(&replica.process, LIMIT, "hookgate-admission");
    let create = ["create", "--filename", "-"];
    let message = installation.refused(&create, &bad_template("bad").to_string());
    assert_has(&message, "metrics[0].successCondition");
    let good = hook("HookTemplate", "good", "asInt(result) > 30").to_string();
    installation.must(&create, &good);
}
