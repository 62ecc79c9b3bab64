//! `kubectl game undo` and `set image`: change the template, which updates the pods.

use clap::Args;
use gamedeployment_core::hook_kind::HookKind;
use gamedeployment_core::template::Template;
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::ResourceExt;
use serde_json::{Value, json};
use shared_api::GameDeployment;

use super::{DONE, Outcome, print_answer};
use crate::cluster::{Failure, Flags, name_of};
use crate::rollout_state::strategy;
use crate::view::revision::{images, template_of};
use crate::view::state::{rollback, unseen};
use crate::view::status_of;
use crate::why::is_paused;

/// Restores an older template.
#[derive(Debug, Clone, Args)]
pub(crate) struct Undo {
    /// Name of the GameDeployment
    name: String,

    /// Revision to roll back to, as shown by history [default: the previous revision]
    #[arg(long, value_name = "NUMBER")]
    to_revision: Option<i64>,

    #[command(flatten)]
    flags: Flags,
}

/// Sets images of containers.
#[derive(Debug, Clone, Args)]
pub(crate) struct SetImage {
    /// Name of the GameDeployment
    name: String,

    /// Container and its new image; * selects all containers except init containers
    #[arg(required = true, value_name = "CONTAINER=IMAGE", value_parser = pair)]
    images: Vec<(String, String)>,

    #[command(flatten)]
    flags: Flags,
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((container, image)) if !container.is_empty() && !image.is_empty() => {
            Ok((container.to_owned(), image.to_owned()))
        }
        _ => Err(format!("{text:?} is not CONTAINER=IMAGE")),
    }
}

impl Undo {
    pub(crate) async fn main(&self) -> Outcome {
        let cluster = self.flags.cluster().await?;
        let name = name_of::<GameDeployment>(&self.name)?;
        let revisions = cluster.revisions(name).await?;
        let told = cluster
            .replace(name, |game: &GameDeployment| {
                undo(game, &revisions, self.to_revision)
            })
            .await?;
        print_answer(&told, &[format!("kubectl game status {name}{}", cluster.flags)]);
        DONE
    }
}

impl SetImage {
    pub(crate) async fn main(&self) -> Outcome {
        let cluster = self.flags.cluster().await?;
        let name = name_of::<GameDeployment>(&self.name)?;
        let told = cluster
            .replace(name, |game: &GameDeployment| set_images(game, &self.images))
            .await?;
        print_answer(&told, &[format!("kubectl game status {name}{}", cluster.flags)]);
        DONE
    }
}

/// Returns the patch that restores the template of an older revision.
fn undo(
    game: &GameDeployment,
    revisions: &[ControllerRevision],
    number: Option<i64>,
) -> Result<(Vec<Value>, String), Failure> {
    let name = game.name_any();
    let present = Template::read(&game.spec.template.value());
    let back = rolled_back_to(game);
    let mut known = revisions
        .iter()
        .rev()
        .filter_map(|revision| Some((revision, template_of(revision)?)));
    let found = match number {
        Some(number) => known.find(|(revision, _)| revision.revision == number),
        None => known.find(|(revision, template)| {
            let is_wanted = back.as_ref().is_none_or(|back| *back == revision.name_any());
            is_wanted && !Template::read(template).is_equivalent(&present)
        }),
    };
    let Some((revision, template)) = found else {
        let numbers: Vec<String> = revisions
            .iter()
            .map(|revision| revision.revision.to_string())
            .collect();
        return Err(Failure::Refused(match number {
            Some(number) => format!("{name} has no revision {number}; there is {}", numbers.join(", ")),
            None => format!("{name} has no other revision to go back to"),
        }));
    };
    if Template::read(&template).is_equivalent(&present) {
        let words = format!(
            "{name} has the template of revision {} already",
            revision.revision
        );
        return Err(Failure::Refused(words));
    }
    let told = format!(
        "{name} goes back to revision {} ({}), {}. {}",
        revision.revision,
        revision.name_any(),
        images(&template).join(" "),
        consequence(game)
    );
    Ok((
        vec![json!({ "op": "replace", "path": "/spec/template", "value": template })],
        told,
    ))
}

/// Returns the revision that pods go back to, if the rollout of the present template is aborted.
fn rolled_back_to(game: &GameDeployment) -> Option<String> {
    let status = status_of(game);
    let rollback = rollback(&status).filter(|_| unseen(game).is_none())?;
    Some(rollback.to_revision.clone())
}

fn set_images(game: &GameDeployment, wanted: &[(String, String)]) -> Result<(Vec<Value>, String), Failure> {
    let name = game.name_any();
    let template = game.spec.template.value();
    let mut operations = Vec::new();
    let mut told = Vec::new();
    for (container, image) in wanted {
        let mut found = false;
        for field in ["containers", "initContainers"] {
            let containers = template["spec"][field].as_array().into_iter().flatten();
            for (place, known) in containers.enumerate() {
                let own = known["name"].as_str().unwrap_or_default();
                let meant = own == container || container == "*" && field == "containers";
                found |= meant;
                if meant && known["image"].as_str() != Some(image) {
                    let path = format!("/spec/template/spec/{field}/{place}/image");
                    operations.push(json!({ "op": "add", "path": path, "value": image }));
                    told.push(format!(
                        "{own} {} → {image}",
                        known["image"].as_str().unwrap_or("none")
                    ));
                }
            }
        }
        if !found {
            return Err(Failure::Refused(no_container(&name, &template, container)));
        }
    }
    if operations.is_empty() {
        return Err(Failure::Refused(format!("{name} has these images already")));
    }
    Ok((
        operations,
        format!("{name}: {}. {}", told.join(", "), consequence(game)),
    ))
}

fn no_container(name: &str, template: &Value, wanted: &str) -> String {
    let names = |field: &str| {
        let containers = template["spec"][field].as_array().into_iter().flatten();
        containers
            .filter_map(|known| known["name"].as_str())
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let names = [names("containers"), names("initContainers")].concat().join(", ");
    format!("{name} has no container {wanted:?}; there is {names}")
}

/// Returns the type of update that the spec names.
pub(super) fn update_type(game: &GameDeployment) -> Option<&str> {
    game.spec.update_strategy.as_ref()?.type_.as_deref()
}

/// Returns the consequence of the new template.
pub(super) fn consequence(game: &GameDeployment) -> String {
    if is_paused(game) {
        return format!(
            "It is paused, so no pod is updated until: kubectl game resume {}",
            game.name_any()
        );
    }
    match update_type(game) {
        Some("OnDelete") => "With OnDelete each pod changes when somebody deletes it.".to_owned(),
        Some("Recreate") => {
            "All old pods are deleted, each through its hook if it has one; then the first new one is created.".to_owned()
        }
        Some("HotPatchUpdate") => "Its pods are patched at once; no hook is asked.".to_owned(),
        _ if HookKind::ALL
            .iter()
            .all(|kind| strategy(game, *kind).is_none_or(|found| found.hook.is_none())) =>
        {
            "There is no hook: each pod changes unasked, as soon as enough others are available.".to_owned()
        }
        _ => "Each pod changes when its hook says yes and enough others are available.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::samples;

    fn images_of(decided: Result<(Vec<Value>, String), Failure>) -> String {
        let (operations, _) = decided.unwrap();
        operations[0]["value"]["spec"]["containers"][0]["image"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    #[test]
    fn undo_finds_the_newest_template_that_means_something_else() {
        let snapshot = samples::refused();
        let decided = undo(&snapshot.game, &snapshot.revisions, None);
        assert_eq!(images_of(decided), "game:v1");
        let template = undo(&snapshot.game, &snapshot.revisions, Some(1)).unwrap().0[0]["value"].clone();
        assert!(
            template.get("$patch").is_none(),
            "the mark of a patch is no field of a template"
        );
        let words = |number| {
            undo(&snapshot.game, &snapshot.revisions, number)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(words(Some(2)), "arena has the template of revision 2 already");
        assert_eq!(words(Some(7)), "arena has no revision 7; there is 1, 2");
        assert_eq!(
            undo(&snapshot.game, &snapshot.revisions[1..], None)
                .unwrap_err()
                .to_string(),
            "arena has no other revision to go back to"
        );
    }

    #[test]
    fn after_an_abort_undo_restores_the_revision_that_pods_go_back_to() {
        let mut snapshot = samples::rolled_back();
        let mut aborted_before = snapshot.revisions[1].clone();
        aborted_before.metadata.name = Some("arena-6c8d7f".to_owned());
        aborted_before.revision = 3;
        let template = &mut aborted_before.data.as_mut().unwrap().0["spec"]["template"];
        template["spec"]["containers"][0]["image"] = json!("game:v9");
        snapshot.revisions.push(aborted_before);
        let undone = |game: &GameDeployment| images_of(undo(game, &snapshot.revisions, None));
        assert_eq!(undone(&snapshot.game), "game:v1");
        let mut changed = snapshot.game.clone();
        changed.metadata.generation = Some(4);
        assert_eq!(
            undone(&changed),
            "game:v9",
            "the status is about an earlier template"
        );
        assert_eq!(undone(&samples::complete().game), "game:v9");
    }

    #[test]
    fn images_are_set_by_container_and_mistakes_name_what_there_is() {
        let game = samples::refused().game;
        let set =
            |container: &str, image: &str| set_images(&game, &[(container.to_owned(), image.to_owned())]);
        let (operations, told) = set("game", "game:v3").unwrap();
        assert_eq!(
            operations,
            [json!({ "op": "add", "path": "/spec/template/spec/containers/0/image", "value": "game:v3" })]
        );
        assert!(
            told.starts_with("arena: game game:v2 → game:v3. Each pod changes when"),
            "{told}"
        );
        assert_eq!(set("*", "game:v3").unwrap().0, operations);
        assert_eq!(
            set("game", "game:v2").unwrap_err().to_string(),
            "arena has these images already"
        );
        assert_eq!(
            set("gane", "game:v3").unwrap_err().to_string(),
            "arena has no container \"gane\"; there is game"
        );
    }
}
