//! The gamedeployment-operator, built with the tests so that they always run the code beside them.

fn main() -> std::process::ExitCode {
    gamedeployment_operator::main()
}
