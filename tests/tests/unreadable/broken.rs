//! Objects nested too deep, in each place where a tenant can store nesting, and what they must say about themselves.

use operator_tests::assert_has;
use serde_json::Value;

use crate::api::{Id, Kind, RawApi};
use crate::json_text::{field, levels, lists, objects, with_text};
use crate::manifests::manifest;
use crate::world::World;

/// Levels that an object of the group may have, itself included.
pub(crate) const MAX_LEVELS: usize = 100;
/// Levels that the parser of the operators follows in an object of another group.
const PARSED_LEVELS: usize = 127;
pub(crate) const TOO_DEEP: &str = "nested more than 100 levels deep";

/// Place where a tenant can store nesting.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) kind: Kind,
    label: &'static str,
    /// JSON pointer of the field.
    pub(crate) pointer: &'static str,
    /// Name of the field in messages.
    path: &'static str,
    /// Levels of the object around the field.
    pub(crate) around: usize,
}

impl Place {
    const fn comment(kind: Kind) -> Self {
        Self {
            kind,
            label: "comment",
            pointer: "/spec/metrics/0/comment",
            path: "spec.metrics[0].comment",
            around: 4,
        }
    }

    const fn body(kind: Kind) -> Self {
        Self {
            kind,
            label: "body",
            pointer: "/spec/metrics/0/provider/web/jsonBody",
            path: "spec.metrics[0].provider.web.jsonBody",
            around: 6,
        }
    }
}

/// Places in kinds of the group.
pub(crate) const PLACES: [Place; 5] = [
    Place::comment(Kind::HookTemplate),
    Place::body(Kind::HookTemplate),
    Place::comment(Kind::HookRun),
    Place::body(Kind::HookRun),
    Place {
        kind: Kind::GameDeployment,
        label: "template",
        pointer: "/spec/template/spec/comment",
        path: "spec.template.spec.comment",
        around: 4,
    },
];
const REVISION: Place = Place {
    kind: Kind::ControllerRevision,
    label: "data",
    pointer: "/data",
    path: "data",
    around: 1,
};

const EXECUTION: Place = Place {
    kind: Kind::ExecutionHook,
    label: "comment",
    pointer: "/spec/comment",
    path: "spec.comment",
    around: 2,
};

/// Name of a shape of nesting, and its builder.
type Shape = (&'static str, fn(usize) -> String);
pub(crate) const SHAPES: [Shape; 2] = [("lists", lists), ("objects", objects)];

/// Object with a field of this nesting.
#[derive(Debug)]
pub(crate) struct Broken {
    pub(crate) id: Id,
    pub(crate) place: Place,
    /// Levels of the whole object.
    levels: usize,
    text: String,
}

impl Broken {
    /// Builds an object that has this many levels.
    pub(crate) fn new(
        place: Place,
        (shape, nested): Shape,
        (namespace, prefix): (&str, &str),
        levels: usize,
        url: &str,
    ) -> Self {
        let (kind, within) = (place.kind, levels - place.around);
        let name = format!("{prefix}-{}-{}-{shape}-{levels}", kind.name(), place.label);
        let name = name.to_lowercase();
        // Kubernetes 1.20 computes managed fields in a time that doubles with each object within an object, except
        // within lists.
        let nested = match kind {
            Kind::ExecutionHook | Kind::GameDeployment => format!("[{}]", nested(within - 1)),
            _ => nested(within),
        };
        let text = with_text(manifest(kind, &name, url), place.pointer, &nested);
        Self {
            id: Id::new(kind, namespace, &name),
            place,
            levels,
            text,
        }
    }

    /// Stores it, and checks that all of it is stored.
    pub(crate) async fn store(&self, api: &RawApi) {
        let Id { kind, namespace, .. } = &self.id;
        api.create(*kind, namespace, self.text.as_str()).await;
        let stored = levels(&api.read(&self.id).await);
        assert!(stored >= self.levels, "{:?}: {stored} levels", self.id);
    }

    /// Waits until it says by name that it is nested too deep: in its status, and by a warning.
    pub(crate) async fn says_so(&self, api: &RawApi) {
        let Self { id, place, .. } = self;
        let (state, beginning, end) = match id.kind {
            Kind::HookRun => (
                "Error InvalidSpec",
                "hook spec invalid: ",
                "; fix the field and recreate the HookRun",
            ),
            Kind::HookTemplate => ("False SpecInvalid", "the spec cannot be parsed: ", TOO_DEEP),
            Kind::GameDeployment => (
                "True InvalidSpec",
                "the GameDeployment cannot be parsed: ",
                "; fix the field. Its pods are left unchanged until then",
            ),
            Kind::ExecutionHook => return api.warned(id, TOO_DEEP).await,
            kind => {
                assert_eq!(kind, Kind::ControllerRevision);
                // One that is less deep is read, and holds no template.
                if self.levels > PARSED_LEVELS {
                    api.warned(id, "cannot be parsed: ").await;
                }
                return;
            }
        };
        let object = api.until(id, |object| said(id.kind, object).0 == state).await;
        let (_, message) = said(id.kind, &object);
        assert!(message.starts_with(beginning), "{id:?}: {message}");
        assert!(message.ends_with(end), "{id:?}: {message}");
        assert_has(&message, place.path);
        assert_has(&message, TOO_DEEP);
        api.warned(id, TOO_DEEP).await;
    }
}

/// Returns the state and the message that an object of a kind shows; empty if it shows none.
pub(crate) fn said(kind: Kind, object: &str) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let status = field(object, "status");
    if kind == Kind::HookRun {
        let state = format!("{} {}", text(&status["phase"]), text(&status["reason"]));
        return (state, text(&status["message"]));
    }
    let wanted = match kind {
        Kind::HookTemplate => "Valid",
        _ => "InvalidSpec",
    };
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    let condition = conditions.find(|condition| condition["type"] == wanted);
    condition.map_or_else(Default::default, |condition| {
        let state = format!("{} {}", text(&condition["status"]), text(&condition["reason"]));
        if kind == Kind::GameDeployment && state == "True InvalidSpec" {
            let summary = ["phase", "reason"].map(|name| text(&status[name]));
            assert_eq!(summary, ["Blocked", "InvalidSpec"], "{object}");
            assert_eq!(
                status["observedGeneration"], condition["observedGeneration"],
                "{object}"
            );
        }
        (state, text(&condition["message"]))
    })
}

impl World<'_> {
    /// Stores an object of each place and these shapes with this many levels, of the tenant that comes first.
    pub(crate) async fn store_broken(&self, prefix: &str, shapes: &[Shape], levels: usize) -> Vec<Broken> {
        let url = self.server.url("/hostile");
        let mut all = Vec::new();
        for place in PLACES.into_iter().chain([REVISION, EXECUTION]) {
            for shape in shapes {
                let broken = Broken::new(place, *shape, (self.hostile.as_str(), prefix), levels, &url);
                broken.store(&self.api).await;
                all.push(broken);
            }
        }
        all
    }
}
