//! `kubectl game exec-hook get`: lists ExecutionHooks, or shows one.

use clap::Args;
use kube::api::ListParams;
use shared_api::ExecutionHook;

use super::follow::{Followed, follow as follow_one};
use crate::cluster::{ClusterConnection, Failure, ListResult, LiveList, News, UnreadableObject, name_of};
use crate::command::follow::{Picture, Source, follow};
use crate::command::{DONE, DisplayArgs, Outcome, complain, none_found, print, print_lines};
use crate::draw::{Style, document, execution, screen};
use crate::view::execution::ExecutionView;

/// Shows ExecutionHooks.
#[derive(Debug, Clone, Args)]
pub(crate) struct Get {
    /// Name of the ExecutionHook [default: list all in the namespace]
    name: Option<String>,

    /// List ExecutionHooks in all namespaces
    #[arg(short = 'A', long, conflicts_with = "name")]
    all_namespaces: bool,

    /// Watch for changes until Ctrl-C; with a name, follow the ExecutionHook until it is complete
    #[arg(short = 'w', long, conflicts_with = "output")]
    watch: bool,

    #[command(flatten)]
    display: DisplayArgs,
}

impl Get {
    pub(crate) async fn main(&self) -> Outcome {
        let cluster = self.display.flags.cluster().await?;
        match &self.name {
            Some(name) => self.one(&cluster, name_of::<ExecutionHook>(name)?).await,
            None => self.all(&cluster).await,
        }
    }

    async fn one(&self, cluster: &ClusterConnection, name: &str) -> Outcome {
        let hook: ExecutionHook = cluster.get(name).await?;
        let paint = self.display.paint();
        if self.watch {
            let live = LiveList::of(cluster, false, Some(name)).await?;
            let followed = Followed {
                name: name.to_owned(),
                uid: None,
                live,
            };
            return follow_one(cluster, followed, None, paint).await;
        }
        match self.display.output() {
            None => print_lines(&execution::lines(&ExecutionView::of(&hook), screen::style(paint))),
            Some(output) => print(&document::object(&hook, output)?),
        }
        DONE
    }

    async fn all(&self, cluster: &ClusterConnection) -> Outcome {
        let everywhere = self.all_namespaces;
        let paint = self.display.paint();
        if self.watch {
            let live = LiveList::of(cluster, everywhere, None).await?;
            follow(HookTable { live, everywhere }, paint).await?;
            return DONE;
        }
        let listed: ListResult<ExecutionHook> = cluster.list(everywhere, &ListParams::default()).await?;
        if let Some(output) = self.display.output() {
            print(&document::list(&listed.objects, output)?);
        } else if listed.objects.is_empty() && listed.unreadable.is_empty() {
            complain(&none_found("ExecutionHooks", everywhere, &cluster.namespace));
        } else {
            print_lines(&HookListing::of(listed, everywhere).lines(screen::whole(paint)));
        }
        DONE
    }
}

/// Live view of all hooks.
struct HookTable {
    live: LiveList<ExecutionHook>,
    everywhere: bool,
}

/// All hooks at one point in time.
struct HookListing {
    hooks: Vec<ExecutionView>,
    unreadable: Vec<UnreadableObject>,
    everywhere: bool,
}

impl HookListing {
    fn of(listed: ListResult<ExecutionHook>, everywhere: bool) -> Self {
        Self {
            hooks: listed.objects.iter().map(ExecutionView::of).collect(),
            unreadable: listed.unreadable,
            everywhere,
        }
    }
}

impl Source for HookTable {
    async fn news(&mut self) -> News {
        self.live.news().await
    }

    fn picture(&self) -> Option<Result<Box<dyn Picture>, Failure>> {
        let listing = HookListing::of(self.live.listed()?, self.everywhere);
        Some(Ok(Box::new(listing)))
    }
}

impl Picture for HookListing {
    fn lines(&self, style: Style) -> Vec<String> {
        execution::list(&self.hooks, &self.unreadable, self.everywhere, style)
    }
}
