//! Generates, measures and demonstrates: `cargo xtask COMMAND`.
//!
//! | command | job |
//! | --- | --- |
//! | `demo` | game servers that leave only when their hook says so, live and checked (also `cargo demo`) |
//! | `bench SCENARIO` | loads, told as a table |
//! | `prove [--quick]` | all that can go wrong, and what was counted; fails if a promise was broken |
//! | `node-test` | pods of a real node: containerd, runc, the kubelet; needs root |
//! | `dashboards` | draws the dashboards with what a real run has measured |
//! | `gen [--check]` | writes what is generated from code |
//! | `mutants` | seeds bugs one at a time, and sees that the suite finds each |
//! | `parity DIR` | compares our languages with tables of what the Go libraries say |
//!
//! Each command is a module with an `Args` and a `run`; this file only chooses between them.

mod bench;
mod dashboards;
mod demo;
mod gate_page;
mod generate;
mod mutants;
mod node_test;
mod operator;
mod parity;
mod prove;

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
    /// Draw the dashboards with what a real run has measured, into docs/pictures
    Dashboards(dashboards::Args),
    /// Try to make the operators break a promise: crashes, faults, two leaders, hostile tenants
    Prove(prove::Args),
    /// Check what a real kubelet and real containers do, in namespaces of their own; needs root
    NodeTest(node_test::Args),
    /// Write what is generated from code: the CRDs, the drawing of the gate
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
        Command::Dashboards(args) => dashboards::run(&args),
        Command::Prove(args) => prove::run(&args),
        Command::NodeTest(args) => node_test::run(&args),
        Command::Mutants(args) => mutants::run(&args),
        Command::Hooks(args) => operator::hooks(args),
        Command::Workloads(args) => operator::workloads(args),
        Command::Generate(args) => generate::run(&args),
        Command::Parity(args) => parity::run(&args),
    }
}
