//! hookgate-sidecar, built with the tests so that they always run the code beside them.

fn main() -> std::process::ExitCode {
    sidecar::main()
}
