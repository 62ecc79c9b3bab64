//! `kubectl game undo` and `set image`: change the template, which updates the pods.

use clap::Args;
use gamedeployment_core::template::Template;
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::ResourceExt;
use serde_json::{Value, json};
use shared_api::GameDeployment;

use super::outlook::{Answer, Outlook, Target};
use super::{DONE, Outcome, print_answer};
use crate::cluster::{Failure, Flags, name_of};
use crate::view::revision::{images, template_of};
use crate::view::state::undo_target;

/// Restores an older template.
#[derive(Debug, Clone, Args)]
pub(crate) struct Undo {
    /// Name of the GameDeployment
    name: String,

    /// Revision to roll back to, as shown by history [default: the last completed revision during a rollout, otherwise
    /// the previous revision]
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
        _ => Err(format!("{text:?} must have the form CONTAINER=IMAGE")),
    }
}

impl Undo {
    pub(crate) async fn main(&self) -> Outcome {
        let cluster = self.flags.cluster().await?;
        let name = name_of::<GameDeployment>(&self.name)?;
        let revisions = cluster.revisions(name).await?;
        let answer = cluster
            .replace(name, |game: &GameDeployment| {
                undo(game, &revisions, self.to_revision, &cluster.flags)
            })
            .await?;
        print_answer(&answer.message, &answer.next);
        DONE
    }
}

impl SetImage {
    pub(crate) async fn main(&self) -> Outcome {
        let cluster = self.flags.cluster().await?;
        let name = name_of::<GameDeployment>(&self.name)?;
        let answer = cluster
            .replace(name, |game: &GameDeployment| {
                set_images(game, &self.images, &cluster.flags)
            })
            .await?;
        print_answer(&answer.message, &answer.next);
        DONE
    }
}

/// Returns the patch that restores the template of an older revision, and what happens then.
fn undo(
    game: &GameDeployment,
    revisions: &[ControllerRevision],
    number: Option<i64>,
    flags: &str,
) -> Result<(Vec<Value>, Answer), Failure> {
    let name = game.name_any();
    let present = Template::read(&game.spec.template.value());
    let back = undo_target(game);
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
            Some(number) => format!(
                "{name} has no revision {number}; available revisions: {}",
                numbers.join(", ")
            ),
            None => format!("{name} has no other revision to roll back to"),
        }));
    };
    if Template::read(&template).is_equivalent(&present) {
        let words = format!(
            "{name} already uses the template of revision {}",
            revision.revision
        );
        return Err(Failure::Refused(words));
    }
    let target = revision.name_any();
    let sentence = format!(
        "{name}: restored spec.template from revision {} ({target}, {}).",
        revision.revision,
        images(&template).join(" "),
    );
    let answer = Outlook::of(game, flags).undo(&target).after(&sentence);
    Ok((
        vec![json!({ "op": "replace", "path": "/spec/template", "value": template })],
        answer,
    ))
}

/// Returns the patch that sets images, and what happens then.
fn set_images(
    game: &GameDeployment,
    wanted: &[(String, String)],
    flags: &str,
) -> Result<(Vec<Value>, Answer), Failure> {
    let name = game.name_any();
    let template = game.spec.template.value();
    let mut updated = template.clone();
    let mut operations = Vec::new();
    let mut changes = Vec::new();
    for (container, image) in wanted {
        let mut found = false;
        for field in ["containers", "initContainers"] {
            let containers = template["spec"][field].as_array().into_iter().flatten();
            for (place, known) in containers.enumerate() {
                let own = known["name"].as_str().unwrap_or_default();
                let meant = own == container || container == "*" && field == "containers";
                found |= meant;
                if meant && known["image"].as_str() != Some(image) {
                    let pointer = format!("/spec/{field}/{place}");
                    let path = format!("/spec/template{pointer}/image");
                    operations.push(json!({ "op": "add", "path": path, "value": image }));
                    if let Some(Value::Object(fields)) = updated.pointer_mut(&pointer) {
                        fields.insert("image".to_owned(), json!(image));
                    }
                    changes.push(format!(
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
        return Err(Failure::Refused(format!("{name} already uses these images")));
    }
    let sentence = format!("{name}: {}.", changes.join(", "));
    let answer = Outlook::of(game, flags).update(Target::OfTemplate(&updated));
    Ok((operations, answer.after(&sentence)))
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
    format!("{name} has no container {wanted:?}; available containers: {names}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::samples;

    fn images_of(decided: Result<(Vec<Value>, Answer), Failure>) -> String {
        let (operations, _) = decided.unwrap();
        operations[0]["value"]["spec"]["containers"][0]["image"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    #[test]
    fn undo_finds_the_newest_template_that_means_something_else() {
        let snapshot = samples::refused();
        let undo =
            |revisions: &[ControllerRevision], number| undo(&snapshot.game, revisions, number, " -n games");
        let decided = undo(&snapshot.revisions, None);
        assert_eq!(images_of(decided), "game:v1");
        let template = undo(&snapshot.revisions, Some(1)).unwrap().0[0]["value"].clone();
        assert!(
            template.get("$patch").is_none(),
            "the mark of a patch is no field of a template"
        );
        let words = |number| undo(&snapshot.revisions, number).unwrap_err().to_string();
        assert_eq!(words(Some(2)), "arena already uses the template of revision 2");
        assert_eq!(
            words(Some(7)),
            "arena has no revision 7; available revisions: 1, 2"
        );
        assert_eq!(
            undo(&snapshot.revisions[1..], None).unwrap_err().to_string(),
            "arena has no other revision to roll back to"
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
        let undone = |game: &GameDeployment| images_of(undo(game, &snapshot.revisions, None, ""));
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
    fn during_a_rollout_undo_restores_the_last_complete_revision() {
        let mut snapshot =
            samples::with_condition("Progressing", "True", "RollingOut", "1 of 3 pods is updated");
        // Revision 3 is rolled out now, and revision 2 before it was broken, too.
        let mut broken = snapshot.revisions[1].clone();
        broken.metadata.name = Some("arena-6c8d7f".to_owned());
        let template = &mut broken.data.as_mut().unwrap().0["spec"]["template"];
        template["spec"]["containers"][0]["image"] = json!("game:v9");
        snapshot.revisions[1].revision = 3;
        snapshot.revisions.insert(1, broken);
        let numbers: Vec<i64> = snapshot.revisions.iter().map(|known| known.revision).collect();
        assert_eq!(numbers, [1, 2, 3]);
        let undone = |game: &GameDeployment| images_of(undo(game, &snapshot.revisions, None, ""));
        assert_eq!(undone(&snapshot.game), "game:v9", "the rollout is complete");
        let mut under_way = snapshot.game.clone();
        under_way.status.as_mut().unwrap().current_revision = Some("arena-5f6d8b".to_owned());
        assert_eq!(undone(&under_way), "game:v1");
        let (_, answer) = undo(&under_way, &snapshot.revisions, None, "").unwrap();
        let words = "arena: restored spec.template from revision 1 (arena-5f6d8b, game:v1). ";
        assert!(answer.message.starts_with(words), "{answer:?}");
        assert_eq!(
            images_of(undo(&under_way, &snapshot.revisions, Some(2), "")),
            "game:v9"
        );
        under_way.metadata.generation = Some(4);
        assert_eq!(
            undone(&under_way),
            "game:v9",
            "the status is about an earlier template"
        );
    }

    #[test]
    fn images_are_set_by_container_and_mistakes_name_what_there_is() {
        let game = samples::refused().game;
        let set = |container: &str, image: &str| {
            set_images(&game, &[(container.to_owned(), image.to_owned())], " -n games")
        };
        let (operations, answer) = set("game", "game:v3").unwrap();
        assert_eq!(
            operations,
            [json!({ "op": "add", "path": "/spec/template/spec/containers/0/image", "value": "game:v3" })]
        );
        assert_eq!(
            answer.message,
            "arena: game game:v2 → game:v3. Each pod is updated once its hook succeeds and maxUnavailable allows it."
        );
        let next: Vec<String> = answer.next.iter().map(ToString::to_string).collect();
        assert_eq!(
            next,
            ["kubectl game status arena -n games  # wait until the rollout is complete"]
        );
        assert_eq!(set("*", "game:v3").unwrap().0, operations);
        assert_eq!(
            set("game", "game:v2").unwrap_err().to_string(),
            "arena already uses these images"
        );
        assert_eq!(
            set("gane", "game:v3").unwrap_err().to_string(),
            "arena has no container \"gane\"; available containers: game"
        );
    }
}
