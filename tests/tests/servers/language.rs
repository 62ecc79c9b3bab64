//! Builds the samples, each with the toolchain of its language and outside the source tree.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use test_kit::Program;

/// Language of samples.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Language {
    CSharp,
    Cpp,
    Go,
    Node,
}

/// Kind of samples. Each language has one of each.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Samples {
    WithoutSidecar,
    WithSidecar,
}

/// Sample that is ready to run.
#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) program: Program,
    /// Results of the build, removed on drop.
    _directory: TempDir,
}

/// Returns the directory of all samples.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/servers")
}

impl Samples {
    fn name(self) -> &'static str {
        match self {
            Self::WithoutSidecar => "without-sidecar",
            Self::WithSidecar => "with-sidecar",
        }
    }
}

impl Language {
    pub(crate) const ALL: [Self; 4] = [Self::CSharp, Self::Cpp, Self::Go, Self::Node];

    /// Returns the source file of a sample, relative to the directory of all samples.
    pub(crate) fn source(self, samples: Samples) -> String {
        let name = samples.name();
        match self {
            Self::CSharp => format!("csharp/{name}/Program.cs"),
            Self::Cpp => format!("cpp/{name}.cpp"),
            Self::Go => format!("go/{name}/main.go"),
            Self::Node => format!("node/{name}.mjs"),
        }
    }

    fn tool(self) -> &'static str {
        match self {
            Self::CSharp => "dotnet",
            Self::Cpp => "g++",
            Self::Go => "go",
            Self::Node => "node",
        }
    }

    /// Builds a sample. Returns `None` if the toolchain is missing.
    pub(crate) fn build(self, samples: Samples) -> Option<Built> {
        let tool = self.tool();
        if !is_in_path(tool) {
            assert!(std::env::var_os("REQUIRE_TOOLCHAINS").is_none(), "no {tool}");
            eprintln!("skipped: no {tool}");
            return None;
        }
        // A directory of its own, because other tests build the same samples at the same time.
        let directory = tempfile::Builder::new()
            .prefix("servers-")
            .tempdir_in(env!("CARGO_TARGET_TMPDIR"))
            .unwrap();
        let program = self.build_in(directory.path(), samples);
        Some(Built {
            program,
            _directory: directory,
        })
    }

    fn build_in(self, directory: &Path, samples: Samples) -> Program {
        let source = folder().join(self.source(samples));
        let result = directory.join("game-server");
        let mut build = Command::new(self.tool());
        match self {
            Self::CSharp => {
                // The build writes beside the project, so it gets a copy.
                copy_files(source.parent().unwrap(), directory);
                let result = directory.join("bin/app");
                build
                    .args(["build", "--configuration", "Release", "--output"])
                    .arg(&result)
                    .current_dir(directory)
                    .envs([("DOTNET_NOLOGO", "1"), ("DOTNET_CLI_TELEMETRY_OPTOUT", "1")]);
                succeed(&mut build);
                Program::new("dotnet").arg(result.join("game-server.dll"))
            }
            Self::Cpp => {
                let flags = [
                    "-std=c++17",
                    "-O2",
                    "-Wall",
                    "-Wextra",
                    "-Werror",
                    "-pthread",
                    "-o",
                ];
                succeed(build.args(flags).arg(&result).arg(&source));
                Program::new(result)
            }
            Self::Go => {
                build
                    .args(["build", "-o"])
                    .arg(&result)
                    .arg(format!("./{}", samples.name()))
                    .current_dir(folder().join("go"))
                    // Builds offline, and also in a repository of another user.
                    .envs([
                        ("GOFLAGS", "-mod=mod -buildvcs=false"),
                        ("GOTOOLCHAIN", "local"),
                        ("GOPROXY", "off"),
                    ]);
                succeed(&mut build);
                Program::new(result)
            }
            Self::Node => Program::new("node").arg(source),
        }
    }
}

fn is_in_path(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(tool).is_file())
}

/// Copies the files of a directory, but not its subdirectories: those are results of other builds.
fn copy_files(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

fn succeed(build: &mut Command) {
    let output = build.output().unwrap();
    assert!(
        output.status.success(),
        "{build:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
