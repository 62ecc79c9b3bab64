//! `cargo xtask node-test`: tests how a real kubelet and real containers handle the operators' changes to
//! pods.

mod checks;
mod harness;
mod pod;
mod suite;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use test_kit::real_node::{Inside, RealNode, Setup};

use crate::enclosed::{self, Flags, Outcome};
use crate::image;

/// Flags of `node-test`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    flags: Flags,
    /// Run only checks whose name contains this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> ExitCode {
    let prepare = || {
        suite::check_selection(args.only.as_deref())?;
        image::write_sidecar(&sidecar())?;
        Ok(())
    };
    enclosed::run("node-test", &args.flags, prepare, async |inside| {
        play(inside, args).await
    })
}

/// Path of the sidecar's image, shared by the outer and the inner process.
fn sidecar() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/node-test/sidecar.tar")
}

async fn play(inside: &Inside, args: &Args) -> Outcome<bool> {
    let started = std::time::Instant::now();
    let setup = Setup {
        crds: shared_api::crd::all(),
        archives: vec![sidecar()],
    };
    let node = RealNode::start(inside, setup).await?;
    let took = started.elapsed().as_secs_f64();
    println!("node-test: a control plane and a node are ready after {took:.1} s");
    let all_well = suite::play(&node, args.only.as_deref()).await;
    enclosed::keep(&args.flags, &node).await;
    Ok(all_well)
}
