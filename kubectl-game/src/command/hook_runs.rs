//! `kubectl game hook get`, `list` and `terminate`: work with HookRuns of the cluster.

use clap::Args;
use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::json;
use shared_api::HookRun;

use super::follow::{Picture, Source, follow};
use super::{DONE, DisplayArgs, Outcome, complain, none_found, print, print_answer, print_lines};
use crate::cluster::{Failure, Flags, ListResult, LiveList, News, UnreadableObject, name_of};
use crate::draw::document;
use crate::draw::{Style, lists, run, screen};
use crate::view::run::{RunView, is_notice};

/// Shows one HookRun.
#[derive(Debug, Clone, Args)]
pub(crate) struct Get {
    /// Name of the HookRun
    name: String,

    /// Watch for changes until the HookRun has a verdict, or until Ctrl-C
    #[arg(short = 'w', long, conflicts_with = "output")]
    watch: bool,

    #[command(flatten)]
    display: DisplayArgs,
}

/// Lists HookRuns.
#[derive(Debug, Clone, Args)]
pub(crate) struct List {
    /// List only HookRuns that did not succeed, cannot succeed, or keep failing with errors
    #[arg(long)]
    failing: bool,

    /// List HookRuns in all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,

    /// Watch for changes until Ctrl-C
    #[arg(short = 'w', long, conflicts_with = "output")]
    watch: bool,

    #[command(flatten)]
    display: DisplayArgs,
}

/// Terminates a HookRun.
#[derive(Debug, Clone, Args)]
pub(crate) struct Terminate {
    /// Name of the HookRun
    name: String,

    #[command(flatten)]
    flags: Flags,
}

impl Get {
    pub(crate) async fn main(&self) -> Outcome {
        let cluster = self.display.flags.cluster().await?;
        let name = name_of::<HookRun>(&self.name)?;
        let found: HookRun = cluster.get(name).await?;
        let paint = self.display.paint();
        if self.watch {
            let live = LiveList::of(&cluster, false, Some(name)).await?;
            let name = name.to_owned();
            follow(One { live, name }, paint).await?;
            return DONE;
        }
        match self.display.output() {
            None => print_lines(&run::lines(&RunView::of(&found), screen::style(paint))),
            Some(output) => print(&document::object(&found, output)?),
        }
        DONE
    }
}

impl List {
    pub(crate) async fn main(&self) -> Outcome {
        let cluster = self.display.flags.cluster().await?;
        let (everywhere, failing) = (self.all_namespaces, self.failing);
        let paint = self.display.paint();
        if self.watch {
            let live = LiveList::of(&cluster, everywhere, None).await?;
            follow(
                RunTable {
                    live,
                    everywhere,
                    failing,
                },
                paint,
            )
            .await?;
            return DONE;
        }
        let listed = choose(cluster.list(everywhere, &ListParams::default()).await?, failing);
        if let Some(output) = self.display.output() {
            print(&document::list(&listed.objects, output)?);
        } else if listed.objects.is_empty() && listed.unreadable.is_empty() {
            let which = if failing { "failing HookRuns" } else { "HookRuns" };
            complain(&none_found(which, everywhere, &cluster.namespace));
        } else {
            print_lines(&RunListing::of(listed, everywhere).lines(screen::whole(paint)));
        }
        DONE
    }
}

fn choose(mut listed: ListResult<HookRun>, failing: bool) -> ListResult<HookRun> {
    listed.objects.retain(|run| !failing || lists::is_failing(run));
    listed
}

impl Terminate {
    pub(crate) async fn main(&self) -> Outcome {
        let cluster = self.flags.cluster().await?;
        let name = name_of::<HookRun>(&self.name)?;
        let is_notice = cluster
            .change(name, |run: &HookRun| {
                let phase = run.status.as_ref().map(|status| status.phase).unwrap_or_default();
                if phase.is_final() {
                    let message = format!("{} is already {phase}, and its verdict is final", run.name_any());
                    return Err(Failure::Refused(message));
                }
                Ok((json!({ "spec": { "terminate": true } }), is_notice(run)))
            })
            .await?;
        let consequence = if is_notice {
            "It is a notice, so the hook of the pod runs nevertheless."
        } else {
            "The gate stays closed, and the pod is kept."
        };
        let text = format!(
            "{name} is being terminated: metrics without a verdict will become Inconclusive. {consequence}"
        );
        print_answer(&text, &[format!("kubectl game hook get {name}{}", cluster.flags)]);
        DONE
    }
}

/// Live view of one run.
struct One {
    live: LiveList<HookRun>,
    name: String,
}

impl Source for One {
    async fn news(&mut self) -> News {
        self.live.news().await
    }

    fn picture(&self) -> Option<Result<Box<dyn Picture>, Failure>> {
        let found = self.live.listed()?.objects.into_iter().next();
        Some(match found {
            Some(found) => Ok(Box::new(RunView::of(&found))),
            None => Err(Failure::NotFound(format!(
                "HookRun {} no longer exists: its verdict has been processed, or its pod is no longer selected or a \
                 candidate",
                self.name
            ))),
        })
    }
}

impl Picture for RunView {
    fn lines(&self, style: Style) -> Vec<String> {
        run::lines(self, style)
    }

    fn is_final(&self) -> bool {
        self.phase.is_final()
    }
}

/// Live view of all runs.
struct RunTable {
    live: LiveList<HookRun>,
    everywhere: bool,
    failing: bool,
}

/// All runs at one point in time.
struct RunListing {
    runs: Vec<RunView>,
    unreadable: Vec<UnreadableObject>,
    everywhere: bool,
}

impl RunListing {
    fn of(listed: ListResult<HookRun>, everywhere: bool) -> Self {
        Self {
            runs: listed.objects.iter().map(RunView::of).collect(),
            unreadable: listed.unreadable,
            everywhere,
        }
    }
}

impl Source for RunTable {
    async fn news(&mut self) -> News {
        self.live.news().await
    }

    fn picture(&self) -> Option<Result<Box<dyn Picture>, Failure>> {
        let listed = choose(self.live.listed()?, self.failing);
        Some(Ok(Box::new(RunListing::of(listed, self.everywhere))))
    }
}

impl Picture for RunListing {
    fn lines(&self, style: Style) -> Vec<String> {
        lists::runs(&self.runs, &self.unreadable, self.everywhere, style)
    }
}
