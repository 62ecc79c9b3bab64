//! `kubectl game get`: shows the tree of a workload, once or live.

use clap::Args;
use kube::ResourceExt;
use shared_api::GameDeployment;

use super::follow::{Picture, Source, follow};
use super::{DONE, DisplayArgs, Outcome, print, print_lines};
use crate::cluster::{Failure, Live, News, name_of};
use crate::draw::document::{self, OutputFormat};
use crate::draw::{Style, game, screen};
use crate::view::GameView;

/// Shows the tree of a workload.
#[derive(Debug, Clone, Args)]
pub(crate) struct Get {
    /// Name of the GameDeployment
    name: String,

    /// Watch for changes until Ctrl-C
    #[arg(short = 'w', long, conflicts_with = "output")]
    watch: bool,

    #[command(flatten)]
    display: DisplayArgs,
}

impl Get {
    pub(crate) async fn main(&self) -> Outcome {
        let cluster = self.display.flags.cluster().await?;
        let name = name_of::<GameDeployment>(&self.name)?;
        let paint = self.display.paint();
        if self.watch {
            follow(Live::of(&cluster, name).await?, paint).await?;
            return DONE;
        }
        let snapshot = cluster.snapshot(name).await?;
        let view = GameView::of(&snapshot);
        match self.display.output() {
            None => print_lines(&game::lines(&view, screen::style(paint))),
            Some(OutputFormat::Name) => print(&document::name::<GameDeployment>(&snapshot.game.name_any())),
            Some(output) => print(&document::structured(&view, output)?),
        }
        DONE
    }
}

impl Source for Live {
    async fn news(&mut self) -> News {
        Live::news(self).await
    }

    fn picture(&self) -> Option<Result<Box<dyn Picture>, Failure>> {
        let snapshot = self.snapshot()?;
        Some(snapshot.map(|snapshot| Box::new(GameView::of(&snapshot)) as Box<dyn Picture>))
    }
}

impl Picture for GameView {
    fn lines(&self, style: Style) -> Vec<String> {
        game::lines(self, style)
    }
}
