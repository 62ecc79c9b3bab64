//! The hookgate-admission program.

fn main() -> std::process::ExitCode {
    admission::main()
}
