//! `cargo xtask in-cluster`: installs the chart and the images on a real node, and runs the demo with them
//! while leaders are killed.
//!
//! Helm installs the chart as users would, with the admission component. Two replicas of each operator run as
//! pods with their own service accounts, from the images of `cargo xtask image`. Finally the release is
//! upgraded and uninstalled, which must not affect the games.

mod release;
mod servers;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use test_kit::assets::{self, Profile};
use test_kit::real_node::{Inside, RealNode, Setup};

use crate::demo::story::Harness;
use crate::demo::teller::Teller;
use crate::enclosed::{self, Flags, Outcome};
use crate::image;
use release::Release;
use servers::RealServers;

/// Flags of `in-cluster`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    flags: Flags,
    /// Use debug images: faster to build
    #[arg(long)]
    debug: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> ExitCode {
    let prepare = || {
        let profile = if args.debug {
            Profile::Debug
        } else {
            Profile::Release
        };
        for name in image::write(&images(), image::REGISTRY, image::VERSION, profile)? {
            println!("in-cluster: made the image {name}");
        }
        assets::helm()?;
        Ok(())
    };
    enclosed::run("in-cluster", &args.flags, prepare, async |inside| {
        play(inside, args).await
    })
}

/// Path of the images, shared by the outer and the inner process.
fn images() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/in-cluster/images.tar")
}

async fn play(inside: &Inside, args: &Args) -> Outcome<bool> {
    let teller = Teller::new();
    teller.chapter("A control plane and a real node: containerd, runc, the kubelet");
    let setup = Setup {
        archives: vec![images()],
        ..Setup::default()
    };
    let node = RealNode::start(inside, setup).await?;
    let release = Release::new(&node, &teller)?;
    let outcome = story(&node, &release, &teller).await;
    if let Err(error) = &outcome {
        println!("\nThis did not go as it should: {error}");
        release.last_words();
    }
    enclosed::keep(&args.flags, &node).await;
    Ok(outcome.is_ok())
}

async fn story(node: &RealNode, release: &Release<'_>, teller: &Teller) -> Outcome<()> {
    teller.chapter("helm install: both operators and the admission component, two replicas each");
    release.install()?;
    release.await_ready().await?;
    release.wrong_manifests_are_refused().await?;
    let servers = RealServers::new(node, release, "games").await?;
    let harness = Harness {
        control_plane: node.control_plane(),
        namespace: servers.namespace(),
        servers: &servers,
        teller,
    };
    harness.play().await?;
    teller.say(&format!(
        "ok  all that, while {} leaders were lost",
        servers.lost()
    ));
    teller.chapter("helm upgrade and helm uninstall: the games do not notice");
    let before = servers.pods().await?;
    release.upgrade()?;
    release.await_ready().await?;
    release.uninstall().await?;
    if servers.pods().await? != before {
        return Err("the games have changed".into());
    }
    teller.say("ok  definitions, games and their pods are as they were");
    Ok(())
}
