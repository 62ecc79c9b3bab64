//! The gamedeployment-operator program.

fn main() -> std::process::ExitCode {
    gamedeployment_operator::main()
}
