//! `kubectl game hook run`: executes a whole run on this machine with the operator's own session.

use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use hook_providers::flags::Measuring;
use hook_session::SessionRunner;
use hook_session::measure::Measurer;
use shared_api::{HookRun, HookRunStatus};
use tokio::sync::watch;

use super::exit_code;
use super::input::Input;
use super::local::LocalBackend;
use crate::command::ColorArgs;
use crate::draw::document::{OutputFormat, structured};
use crate::draw::text::clean;
use crate::paint::Paint;

/// Executes a hook.
#[derive(Debug, Args)]
pub(crate) struct LocalRun {
    #[command(flatten)]
    input: Input,

    /// Print the final status in this format instead of live output
    #[arg(short = 'o', long = "output", value_enum)]
    output: Option<RunFormat>,

    #[command(flatten)]
    color: ColorArgs,

    #[command(flatten)]
    measuring: Measuring,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RunFormat {
    Json,
    Yaml,
}

impl LocalRun {
    pub(super) fn main(&self) -> Result<ExitCode, Box<dyn std::error::Error>> {
        let chosen = self.input.choose()?;
        let mut metrics = chosen.resolved.metrics.iter();
        if let Some(metric) = metrics.find(|metric| metric.provider.acts_in_the_cluster()) {
            return Err(format!(
                "metric {} uses provider {}, which works only in a cluster; use kubectl game hook evaluate --result \
                 TEXT, or create a HookRun",
                metric.name,
                metric.provider.name()
            )
            .into());
        }
        let paint = self.color.paint();
        let live = self.output.is_none();
        if live {
            for metric in &chosen.resolved.metrics {
                let request = format!("metric {}: {}", metric.name, chosen.request_of(metric));
                println!("{}", paint.faint(&clean(&request)));
            }
        }
        let _ = rustls::crypto::ring::default_provider().install_default();
        let schedules = chosen
            .resolved
            .metrics
            .iter()
            .map(|metric| (metric.name.clone(), metric.schedule))
            .collect();
        let backend = Arc::new(LocalBackend::new(chosen.given, schedules, paint, live));
        // The machine belongs to the caller, so the caller may send requests to its loopback addresses.
        let measuring = Measuring {
            egress_allow_loopback: true,
            ..self.measuring.clone()
        };
        let providers = measuring.providers();
        let measurer = Measurer {
            backend: backend.clone(),
            providers,
            observer: Arc::new(()),
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let mut run = HookRun::new(&chosen.name, chosen.spec);
        run.metadata.generation = Some(1);
        runtime.block_on(async {
            let (_alive, updates) = watch::channel(Arc::new(run));
            SessionRunner::new(measurer, updates).drive().await
        });
        let status = backend.status();
        self.report(&chosen.name, &status, paint)?;
        Ok(exit_code(status.phase))
    }

    fn report(
        &self,
        name: &str,
        status: &HookRunStatus,
        paint: Paint,
    ) -> Result<(), Box<dyn std::error::Error>> {
        match self.output {
            Some(RunFormat::Json) => print!("{}", structured(status, OutputFormat::Json)?),
            Some(RunFormat::Yaml) => print!("{}", structured(status, OutputFormat::Yaml)?),
            None => {
                let message = clean(status.message.as_deref().unwrap_or_default());
                println!("{} {}\n  {message}", paint.phase(status.phase), clean(name));
            }
        }
        Ok(())
    }
}
