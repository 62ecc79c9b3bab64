//! The hookgate-sidecar program.

fn main() -> std::process::ExitCode {
    sidecar::main()
}
