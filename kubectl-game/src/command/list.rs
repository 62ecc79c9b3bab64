//! `kubectl game list`: lists the workloads of one namespace or of all namespaces.

use clap::Args;
use kube::api::ListParams;
use shared_api::GameDeployment;

use super::follow::{Picture, Source, follow};
use super::{DONE, DisplayArgs, Outcome, complain, none_found, print, print_lines};
use crate::cluster::{Failure, ListResult, LiveList, News};
use crate::draw::document;
use crate::draw::{Style, lists, screen};

/// Lists workloads.
#[derive(Debug, Clone, Args)]
pub(crate) struct List {
    /// List GameDeployments in all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,

    /// Watch for changes until Ctrl-C
    #[arg(short = 'w', long, conflicts_with = "output")]
    watch: bool,

    #[command(flatten)]
    display: DisplayArgs,
}

/// Live view of the table.
struct GameTable {
    live: LiveList<GameDeployment>,
    everywhere: bool,
}

struct GameListing {
    listed: ListResult<GameDeployment>,
    everywhere: bool,
}

impl List {
    pub(crate) async fn main(&self) -> Outcome {
        let cluster = self.display.flags.cluster().await?;
        let everywhere = self.all_namespaces;
        let paint = self.display.paint();
        if self.watch {
            let live = LiveList::of(&cluster, everywhere, None).await?;
            follow(GameTable { live, everywhere }, paint).await?;
            return DONE;
        }
        let listed: ListResult<GameDeployment> = cluster.list(everywhere, &ListParams::default()).await?;
        if let Some(output) = self.display.output() {
            print(&document::list(&listed.objects, output)?);
        } else if listed.objects.is_empty() && listed.unreadable.is_empty() {
            complain(&none_found("GameDeployments", everywhere, &cluster.namespace));
        } else {
            print_lines(&lists::games(&listed, everywhere, screen::whole(paint)));
        }
        DONE
    }
}

impl Source for GameTable {
    async fn news(&mut self) -> News {
        self.live.news().await
    }

    fn picture(&self) -> Option<Result<Box<dyn Picture>, Failure>> {
        let (listed, everywhere) = (self.live.listed()?, self.everywhere);
        Some(Ok(Box::new(GameListing { listed, everywhere })))
    }
}

impl Picture for GameListing {
    fn lines(&self, style: Style) -> Vec<String> {
        lists::games(&self.listed, self.everywhere, style)
    }
}
