//! `kubectl game status`: waits until a rollout or a scale change is complete. Intended for scripts.

use std::process::ExitCode;
use std::time::Duration;

use clap::{ArgAction, Args};
use shared_api::GameDeployment;

use super::{Outcome, complain, print};
use crate::cluster::{ClusterConnection, Failure, Flags, LiveList, News, interrupted, name_of};
use crate::draw::text::clean;
use crate::rollout_state::RolloutState;

/// Exit code: a person must act.
const BLOCKED: u8 = 1;
/// Exit code: not complete in time.
const TIMEOUT: u8 = 3;

/// Waits until a workload matches its spec.
#[derive(Debug, Clone, Args)]
pub(crate) struct Status {
    /// Name of the GameDeployment
    name: String,

    /// Wait until the rollout is complete or blocked; with --watch=false, print the current state and exit
    #[arg(short = 'w', long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set,
        num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    watch: bool,

    /// Time to wait before giving up, for example 90s or 10m [default: no limit]
    #[arg(short = 't', long, value_name = "TIME", value_parser = time)]
    timeout: Option<Duration>,

    #[command(flatten)]
    flags: Flags,
}

/// Parses a time such as `90s`.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    go_duration::parse(text).map_err(|error| error.to_string())
}

impl Status {
    pub(crate) async fn main(&self) -> Outcome {
        let cluster = self.flags.cluster().await?;
        let name = name_of::<GameDeployment>(&self.name)?;
        // Reads only the workload, so that a script needs no other permission.
        let game: GameDeployment = cluster.get(name).await?;
        let more = format!("for details: kubectl game why gd/{name}{}", cluster.flags);
        let end = if self.watch {
            self.wait(&cluster, name).await?
        } else {
            say(&RolloutState::of(&game))
        };
        Ok(match end {
            Some(FinalState::Complete) => ExitCode::SUCCESS,
            Some(FinalState::Blocked) => {
                complain(&more);
                ExitCode::from(BLOCKED)
            }
            None => {
                let text = self.timeout.filter(|_| self.watch).map(go_duration::display);
                let when = text.map(|text| format!(" after {text}")).unwrap_or_default();
                complain(&format!("not complete{when}; {more}"));
                ExitCode::from(TIMEOUT)
            }
        })
    }

    /// Waits for a final state; `None` after a timeout.
    async fn wait(&self, cluster: &ClusterConnection, name: &str) -> Result<Option<FinalState>, Failure> {
        let live = LiveList::of(cluster, false, Some(name)).await?;
        let settled = until_settled(live, name);
        match self.timeout {
            None => settled.await.map(Some),
            Some(timeout) => match tokio::time::timeout(timeout, settled).await {
                Ok(end) => end.map(Some),
                Err(_) => Ok(None),
            },
        }
    }
}

/// A final state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FinalState {
    Complete,
    Blocked,
}

/// Prints each new state, until one is final.
async fn until_settled(mut live: LiveList<GameDeployment>, name: &str) -> Result<FinalState, Failure> {
    let mut end = std::pin::pin!(interrupted());
    let mut last = None;
    loop {
        if let Some(listed) = live.listed() {
            let game = listed.objects.first();
            let game =
                game.ok_or_else(|| Failure::NotFound(format!("GameDeployment {name} no longer exists")))?;
            let verdict = RolloutState::of(game);
            if last.as_ref() != Some(&verdict) {
                if let Some(state) = say(&verdict) {
                    return Ok(state);
                }
                last = Some(verdict);
            }
        }
        tokio::select! {
            () = &mut end => return Err(Failure::Other("interrupted".to_owned())),
            news = live.news() => match news {
                News::Changed => {}
                News::Trouble(words) => complain(&format!("{words}; retrying")),
                News::End(failure) => return Err(failure),
            },
        }
    }
}

/// Prints a state, and returns it if it is final.
fn say(verdict: &RolloutState) -> Option<FinalState> {
    let (what, words, end) = match verdict {
        RolloutState::Complete(words) => ("complete", words, Some(FinalState::Complete)),
        RolloutState::Waiting(words) => ("waiting", words, None),
        RolloutState::Blocked(words) => ("blocked", words, Some(FinalState::Blocked)),
    };
    print(&format!("{what}: {}\n", clean(words)));
    end
}
