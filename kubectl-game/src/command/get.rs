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

    /// List every pod, even if the list does not fit on the terminal
    #[arg(long, conflicts_with = "output")]
    all_pods: bool,

    #[command(flatten)]
    display: DisplayArgs,
}

/// Live view of the tree.
struct GameTree {
    live: Live,
    all_pods: bool,
}

/// The tree at one point in time.
struct GamePicture {
    view: GameView,
    all_pods: bool,
}

/// Lines of a terminal that the next prompt takes, and the command itself.
const PROMPT_LINES: usize = 2;

impl Get {
    pub(crate) async fn main(&self) -> Outcome {
        let cluster = self.display.flags.cluster().await?;
        let name = name_of::<GameDeployment>(&self.name)?;
        let paint = self.display.paint();
        if self.watch {
            let live = Live::of(&cluster, name).await?;
            let all_pods = self.all_pods;
            follow(GameTree { live, all_pods }, paint).await?;
            return DONE;
        }
        let snapshot = cluster.snapshot(name).await?;
        let view = GameView::of(&snapshot);
        match self.display.output() {
            None => {
                let style = screen::style(paint);
                let height = style.height.filter(|_| !self.all_pods);
                let height = height.map(|height| height.saturating_sub(PROMPT_LINES));
                print_lines(&game::lines(&view, Style { height, ..style }));
            }
            Some(OutputFormat::Name) => print(&document::name::<GameDeployment>(&snapshot.game.name_any())),
            Some(output) => print(&document::structured(&view, output)?),
        }
        DONE
    }
}

impl Source for GameTree {
    async fn news(&mut self) -> News {
        self.live.news().await
    }

    fn picture(&self) -> Option<Result<Box<dyn Picture>, Failure>> {
        let (snapshot, all_pods) = (self.live.snapshot()?, self.all_pods);
        let picture = |snapshot| -> Box<dyn Picture> {
            let view = GameView::of(&snapshot);
            Box::new(GamePicture { view, all_pods })
        };
        Some(snapshot.map(picture))
    }
}

impl Picture for GamePicture {
    fn lines(&self, style: Style) -> Vec<String> {
        let height = style.height.filter(|_| !self.all_pods);
        game::lines(&self.view, Style { height, ..style })
    }
}
