//! kubectl-game, built with the tests so that they always run the code beside them.

fn main() -> std::process::ExitCode {
    kubectl_game::main()
}
