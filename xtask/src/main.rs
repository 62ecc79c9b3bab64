//! Developer commands: `cargo xtask COMMAND`.
//!
//! | command | job |
//! | --- | --- |
//! | `demo` | game servers that are deleted only after their hook succeeds (also `cargo demo`) |
//! | `bench SCENARIO` | load tests, reported as a table |
//! | `prove [--quick]` | all fault tests, with their counts; fails if a guarantee was violated |
//! | `node-test` | pods of a real node: containerd, runc, the kubelet; needs root |
//! | `image` | the operators as container images in one file, without a container engine |
//! | `in-cluster` | the chart and the images on a real node: the demo while leaders are killed; needs root |
//! | `pictures` | generates the documents' pictures from real runs: a drain, the dashboards, and a model of scale-downs |
//! | `gen [--check]` | generates files from code |
//! | `mutants` | seeds bugs one at a time, and checks that the test suite finds each |
//! | `parity DIR` | compares our languages with tables of results of the Go libraries |
//!
//! Each command is a module with an `Args` and a `run`; this file only dispatches.

mod bench;
mod crates_drawing;
mod demo;
mod enclosed;
mod first_idle;
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
mod removal_guard;

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
    /// Run the demo: game servers that are deleted only after their hook succeeds, on a real control plane
    Demo(demo::Args),
    /// Run load tests on the real control plane
    Bench(bench::Args),
    /// Generate the pictures of the documents from real runs: a drain, the dashboards
    Pictures(pictures::Args),
    /// Try to break the operators' guarantees: crashes, faults, two leaders, hostile tenants
    Prove(prove::Args),
    /// Test the behaviour of a real kubelet and real containers in separate namespaces; needs root
    NodeTest(node_test::Args),
    /// Write the operators' container images to one file, without a container engine
    Image(image::Args),
    /// Install the chart with the images on a real node, and run the demo while leaders are killed; needs
    /// root
    InCluster(in_cluster::Args),
    /// Generate files from code: CRDs, plain manifests, the diagram of the gate, the reference
    #[command(name = "gen")]
    Generate(generate::Args),
    /// Seed bugs in a copy of the tree, one at a time, and check that the test suite finds each
    Mutants(mutants::Args),
    #[command(name = operator::HOOKS, hide = true)]
    Hooks(operator::Args),
    #[command(name = operator::WORKLOADS, hide = true)]
    Workloads(operator::Args),
    #[command(name = operator::ADMISSION, hide = true)]
    Admission(operator::Args),
    /// Compare conditions, JSON paths, templates and durations with tables of results of the Go libraries
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
        Command::Admission(args) => operator::admission(args),
        Command::Generate(args) => generate::run(&args),
        Command::Parity(args) => parity::run(&args),
    }
}
