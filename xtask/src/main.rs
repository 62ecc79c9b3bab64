//! Generates, measures and demonstrates: `cargo xtask COMMAND`.
//!
//! | command | job |
//! | --- | --- |
//! | `demo` | game servers that leave only when their hook says so, live and checked (also `cargo demo`) |
//! | `bench SCENARIO` | loads, told as a table |
//! | `prove [--quick]` | all that can go wrong, and what was counted; fails if a promise was broken |
//! | `node-test` | pods of a real node: containerd, runc, the kubelet; needs root |
//! | `image` | the operators as container images in one file, without a container engine |
//! | `in-cluster` | the chart and the images on a real node: the demo's story, while leaders are killed; needs root |
//! | `pictures` | draws the documents' pictures from real runs: a drain, the dashboards |
//! | `gen [--check]` | writes what is generated from code |
//! | `mutants` | seeds bugs one at a time, and sees that the suite finds each |
//! | `parity DIR` | compares our languages with tables of what the Go libraries say |
//!
//! Each command is a module with an `Args` and a `run`; this file only chooses between them.

mod bench;
mod crates_drawing;
mod demo;
mod enclosed;
mod gate_page;
mod generate;
mod image;
mod in_cluster;
mod manifests;
#[cfg(test)]
mod mentioned;
mod mutants;
mod node_test;
mod operator;
mod parity;
mod pictures;
mod prove;
mod reference;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Generates, measures and demonstrates")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show game servers that leave only when their hook says so, on a real control plane, from nothing
    Demo(demo::Args),
    /// Measure under load, on the real control plane
    Bench(bench::Args),
    /// Draw the pictures of the documents from real runs: a drain, the dashboards
    Pictures(pictures::Args),
    /// Try to make the operators break a promise: crashes, faults, two leaders, hostile tenants
    Prove(prove::Args),
    /// Check what a real kubelet and real containers do, in namespaces of their own; needs root
    NodeTest(node_test::Args),
    /// Write the operators' container images into one file, without a container engine
    Image(image::Args),
    /// Install the chart with the images on a real node, and play the demo while leaders are killed; needs root
    InCluster(in_cluster::Args),
    /// Write what is generated from code: CRDs, plain manifests, the drawing of the gate, the reference
    #[command(name = "gen")]
    Generate(generate::Args),
    /// Seed bugs in a copy of the tree, one at a time, and see that the suite finds each
    Mutants(mutants::Args),
    #[command(name = operator::HOOKS, hide = true)]
    Hooks(operator::Args),
    #[command(name = operator::WORKLOADS, hide = true)]
    Workloads(operator::Args),
    /// Compare conditions, JSON paths, templates and durations with tables of what the Go libraries say
    Parity(parity::Args),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Demo(args) => demo::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Pictures(args) => pictures::run(&args),
        Command::Prove(args) => prove::run(&args),
        Command::NodeTest(args) => node_test::run(&args),
        Command::Image(args) => image::run(&args),
        Command::InCluster(args) => in_cluster::run(&args),
        Command::Mutants(args) => mutants::run(&args),
        Command::Hooks(args) => operator::hooks(args),
        Command::Workloads(args) => operator::workloads(args),
        Command::Generate(args) => generate::run(&args),
        Command::Parity(args) => parity::run(&args),
    }
}
