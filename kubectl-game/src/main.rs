//! The kubectl-game program.

fn main() -> std::process::ExitCode {
    kubectl_game::main()
}
