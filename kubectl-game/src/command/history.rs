//! `kubectl game history`: shows the revisions of a workload, or the template of one revision.

use clap::Args;
use shared_api::GameDeployment;

use super::{DONE, DisplayArgs, Outcome, print, print_lines};
use crate::cluster::{Failure, Snapshot, name_of};
use crate::draw::document::{self, OutputFormat};
use crate::draw::{lists, screen};
use crate::view::revision;

/// Shows the revisions of a workload.
#[derive(Debug, Clone, Args)]
pub(crate) struct History {
    /// Name of the GameDeployment
    name: String,

    /// Show the template of this revision
    #[arg(long, value_name = "NUMBER")]
    revision: Option<i64>,

    #[command(flatten)]
    display: DisplayArgs,
}

impl History {
    pub(crate) async fn main(&self) -> Outcome {
        let cluster = self.display.flags.cluster().await?;
        let name = name_of::<GameDeployment>(&self.name)?;
        let snapshot = cluster.snapshot(name).await?;
        if let Some(number) = self.revision {
            return self.one(&snapshot, number);
        }
        match self.display.output() {
            None => {
                let style = screen::whole(self.display.paint());
                print_lines(&lists::history(&revision::history(&snapshot), style));
            }
            Some(output) => print(&document::list(&snapshot.revisions, output)?),
        }
        DONE
    }

    fn one(&self, snapshot: &Snapshot, number: i64) -> Outcome {
        let found = snapshot
            .revisions
            .iter()
            .find(|revision| revision.revision == number);
        let Some(found) = found else {
            let known: Vec<String> = snapshot
                .revisions
                .iter()
                .map(|revision| revision.revision.to_string())
                .collect();
            let message = format!(
                "{} has no revision {number}; available revisions: {}",
                self.name,
                known.join(", ")
            );
            return Err(Failure::Refused(message));
        };
        match self.display.output() {
            Some(OutputFormat::Name) => print(&document::object(found, OutputFormat::Name)?),
            output => {
                let template = revision::template_of(found).unwrap_or_default();
                print(&document::structured(
                    &template,
                    output.unwrap_or(OutputFormat::Yaml),
                )?);
            }
        }
        DONE
    }
}
