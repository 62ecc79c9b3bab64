//! hookgate-admission, built with the tests so that they always run the code beside them.

fn main() -> std::process::ExitCode {
    admission::main()
}
