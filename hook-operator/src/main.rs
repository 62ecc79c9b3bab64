//! The hook-operator program.

fn main() -> std::process::ExitCode {
    hook_operator::main()
}
