//! `kubectl game scale`: sets the number of pods, and reports which hook runs before a pod is deleted.

use clap::Args;
use kube::ResourceExt;
use shared_api::GameDeployment;

use super::{DONE, Outcome, print_answer};
use crate::cluster::{Failure, Flags, name_of};

/// Sets the number of pods.
#[derive(Debug, Clone, Args)]
pub(crate) struct Scale {
    /// Name of the GameDeployment
    name: String,

    /// New number of pods
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(..=2_147_483_647))]
    replicas: u32,

    /// Scale only if the current value of spec.replicas is this number
    #[arg(long, value_name = "NUMBER")]
    current_replicas: Option<u32>,

    #[command(flatten)]
    flags: Flags,
}

impl Scale {
    pub(crate) async fn main(&self) -> Outcome {
        let cluster = self.flags.cluster().await?;
        let name = name_of::<GameDeployment>(&self.name)?;
        let told = cluster
            .scale(name, |game: &GameDeployment| self.decide(game))
            .await?;
        print_answer(&told, &[format!("kubectl game status {name}{}", cluster.flags)]);
        DONE
    }

    fn decide(&self, game: &GameDeployment) -> Result<(u32, String), Failure> {
        let name = game.name_any();
        let now = u32::try_from(game.spec.replicas.unwrap_or(1)).unwrap_or_default();
        if self.current_replicas.is_some_and(|expected| expected != now) {
            let words = format!("{name} has spec.replicas {now} now; nothing was changed");
            return Err(Failure::Refused(words));
        }
        if now == self.replicas {
            return Err(Failure::Refused(format!(
                "{name} has spec.replicas {now} already"
            )));
        }
        let told = format!(
            "{name}: {now} → {} pods. {}",
            self.replicas,
            consequence(game, now, self.replicas)
        );
        Ok((self.replicas, told))
    }
}

fn consequence(game: &GameDeployment, now: u32, then: u32) -> String {
    let Some(fewer) = now.checked_sub(then).filter(|fewer| *fewer > 0) else {
        return "Pods that were chosen to go stay; more are created if that is not enough.".to_owned();
    };
    let hook = game
        .spec
        .pre_delete_update_strategy
        .as_ref()
        .and_then(|strategy| strategy.hook.as_ref());
    let (pods, each) = if fewer == 1 {
        ("1 pod goes".to_owned(), "")
    } else {
        (format!("{fewer} pods go"), ", each")
    };
    match hook {
        Some(hook) => format!(
            "{pods}{each} when the PreDelete hook {} says yes about it.",
            hook.template_name
        ),
        None => format!("There is no PreDelete hook: {pods} without being asked."),
    }
}
