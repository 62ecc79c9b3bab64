//! `cargo xtask mutants`: seeds one bug after another in a copy of the tree, and checks that the test suite
//! finds each.
//!
//! The bugs are data: `tests/simulation/mutations.yaml`. Each bug is run through the simulation, or through
//! the test that the list names. The copy shares the build directory of the tree, so only the affected crates
//! are recompiled.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Path of the list of bugs.
const LIST: &str = "tests/simulation/mutations.yaml";
/// Seeds simulated for each bug; one seed is about ten thousand steps.
const SEEDS: &str = "0..1500";
/// Seeds with `--quick`.
const QUICK_SEEDS: &str = "0..400";
/// Timeout of the simulation without a bug, which shows how fast this machine is.
const MAX_BASELINE: Duration = Duration::from_mins(30);
/// Timeout of a simulation with a bug, in times of the one without. A longer one counts as found: it has no end.
const MAX_SLOWDOWN: u32 = 4;
/// With `--quick`, every n-th bug is tried.
const QUICK_EVERY: usize = 80;

/// Flags of `mutants`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Try only bugs whose name contains this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,

    /// Try only every 80th bug, with fewer seeds
    #[arg(long)]
    quick: bool,

    /// Run only the simulation, and report all bugs that it does not find as survivors
    #[arg(long)]
    simulation_only: bool,
}

/// One seeded bug.
struct Mutation {
    name: String,
    file: String,
    text: String,
    instead: String,
    /// Package and name of the test that finds the bug, if the simulation may not.
    test: Option<(String, String)>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> ExitCode {
    match tried(args) {
        Ok(survivors) if survivors.is_empty() => ExitCode::SUCCESS,
        Ok(survivors) => {
            eprintln!("error: nothing finds: {}", survivors.join("; "));
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Tries the mutations, and returns the survivors.
fn tried(args: &Args) -> Result<Vec<String>, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let list = read(&root.join(LIST))?;
    let all = mutations(&list)?;
    let wanted: Vec<&Mutation> = all
        .iter()
        .enumerate()
        .filter(|(at, _)| !args.quick || at % QUICK_EVERY == 0)
        .map(|(_, mutation)| mutation)
        .filter(|mutation| args.only.as_ref().is_none_or(|text| mutation.name.contains(text)))
        .collect();
    if wanted.is_empty() {
        return Err("there is no such bug".to_owned());
    }
    let bench = Bench::new(&root, if args.quick { QUICK_SEEDS } else { SEEDS })?;
    println!("the tree as it is");
    bench.build()?;
    let began = Instant::now();
    if let Some(found) = bench.simulate(MAX_BASELINE)? {
        return Err(format!("the suite fails without any bug: {found}"));
    }
    let timeout = MAX_SLOWDOWN * began.elapsed();
    let tried = wanted.len();
    let mut survivors = Vec::new();
    let mut table = String::from("| bug | found by | seconds |\n| --- | --- | --- |\n");
    for mutation in wanted {
        let began = Instant::now();
        let found = bench
            .try_one(mutation, args.simulation_only, timeout)
            .unwrap_or_else(|error| {
                println!("{error}");
                None
            });
        let seconds = began.elapsed().as_secs();
        println!(
            "{seconds:>5} s  {}: {}",
            mutation.name,
            found.as_deref().unwrap_or("SURVIVES")
        );
        let by = found.as_deref().unwrap_or("**nothing**");
        let _ = writeln!(table, "| {} | {by} | {seconds} |", mutation.name);
        if found.is_none() {
            survivors.push(mutation.name.clone());
        }
    }
    println!("\n{table}");
    if let Some(path) = std::env::var_os("PROVE_ROWS") {
        let row = format!(
            "mutants\tbugs that are seeded on purpose\tseeded={tried}\tnot found={}\n",
            survivors.len()
        );
        let file = OpenOptions::new().append(true).create(true).open(&path);
        let written = file.and_then(|mut file| file.write_all(row.as_bytes()));
        written.map_err(|error| format!("failed to write {}: {error}", path.display()))?;
    }
    Ok(survivors)
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("failed to read {}: {error}", path.display()))
}

fn mutations(list: &str) -> Result<Vec<Mutation>, String> {
    let all: Vec<Value> = serde_saphyr::from_str(list).map_err(|error| format!("{LIST}: {error}"))?;
    let of = |value: &Value| {
        let field = |name: &str| {
            let text = value.get(name).and_then(Value::as_str);
            text.map(str::to_owned)
                .ok_or_else(|| format!("{LIST}: a bug has no {name}: {value}"))
        };
        Ok(Mutation {
            name: field("name")?,
            file: field("file")?,
            text: field("text")?,
            instead: field("instead")?,
            test: test_of(value)?,
        })
    };
    all.iter().map(of).collect()
}

fn test_of(value: &Value) -> Result<Option<(String, String)>, String> {
    let Some(test) = value.get("test").and_then(Value::as_str) else {
        return Ok(None);
    };
    let (package, name) = test
        .split_once(' ')
        .ok_or_else(|| format!("{LIST}: test: {test}: say a package and the name of a test"))?;
    Ok(Some((package.to_owned(), name.to_owned())))
}

/// A copy of the tree, and its build directory.
struct Bench {
    tree: PathBuf,
    build: PathBuf,
    /// Range of seeds to simulate.
    seeds: &'static str,
}

impl Bench {
    /// Copies all files known to git, including uncommitted changes. Leaves identical files alone, so that
    /// they are not recompiled.
    fn new(root: &Path, seeds: &'static str) -> Result<Self, String> {
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        let bench = Self {
            tree: target.join("mutants/tree"),
            // Third-party crates are already compiled there.
            build: target,
            seeds,
        };
        let known = git(root)?;
        for path in &known {
            let (from, to) = (root.join(path), bench.tree.join(path));
            let Ok(mut new) = std::fs::read(&from) else {
                continue;
            };
            if path == "Cargo.toml" {
                new = renumber(&new);
            }
            if std::fs::read(&to).is_ok_and(|old| old == new) {
                continue;
            }
            let parent = to.parent().unwrap_or(&bench.tree);
            let written = std::fs::create_dir_all(parent).and_then(|()| std::fs::write(&to, new));
            written.map_err(|error| format!("failed to copy {path}: {error}"))?;
        }
        bench.remove_others(&known)?;
        Ok(bench)
    }

    /// Removes sources from the copy that no longer exist in the tree, because cargo would find them as
    /// tests.
    fn remove_others(&self, known: &BTreeSet<String>) -> Result<(), String> {
        let mut rooms = vec![self.tree.clone()];
        while let Some(room) = rooms.pop() {
            let entries = std::fs::read_dir(&room).map_err(|error| format!("{}: {error}", room.display()))?;
            for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
                let name = path
                    .strip_prefix(&self.tree)
                    .unwrap_or(&path)
                    .to_string_lossy()
                    .into_owned();
                if path.is_dir() {
                    rooms.push(path);
                } else if !known.contains(&name) && name != "Cargo.lock" {
                    std::fs::remove_file(&path).map_err(|error| format!("{name}: {error}"))?;
                }
            }
        }
        Ok(())
    }

    fn cargo(&self, arguments: &[&str]) -> Result<Output, String> {
        let mut command = test_kit::assets::cargo();
        command
            .args(arguments)
            .current_dir(&self.tree)
            .env("CARGO_TARGET_DIR", &self.build)
            // Only one file changes at a time.
            .env("CARGO_INCREMENTAL", "1");
        command
            .output()
            .map_err(|error| format!("failed to start cargo: {error}"))
    }

    fn build(&self) -> Result<(), String> {
        let built = self.cargo(&[
            "build",
            "--quiet",
            // With the features of the whole workspace, so that third-party crates are not compiled again.
            "--workspace",
            "--bin",
            "simulate",
        ])?;
        if built.status.success() {
            return Ok(());
        }
        Err(format!(
            "it does not compile:\n{}",
            String::from_utf8_lossy(&built.stderr)
        ))
    }

    /// Returns the finding of the simulation, if any.
    fn simulate(&self, timeout: Duration) -> Result<Option<String>, String> {
        let child = Command::new(self.build.join("debug/simulate"))
            .args(["--seeds", self.seeds, "--short"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let child = child.map_err(|error| format!("failed to start the simulation: {error}"))?;
        let Some(output) = wait(child, timeout)? else {
            return Ok(Some("simulation: it has no end".to_owned()));
        };
        if output.status.success() {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text
            .lines()
            .find(|line| line.starts_with("seed "))
            .unwrap_or("it ends");
        let place = line.split("src/").nth(1).unwrap_or(line);
        let words: String = place.chars().take(90).collect();
        Ok(Some(format!("simulation: {}", words.replace('|', "/"))))
    }

    /// Returns the finding for this bug, if any.
    fn try_one(
        &self,
        mutation: &Mutation,
        simulation_only: bool,
        timeout: Duration,
    ) -> Result<Option<String>, String> {
        let Mutation {
            name,
            file,
            text,
            instead,
            test,
        } = mutation;
        let path = self.tree.join(file);
        let good = read(&path)?;
        let count = good.matches(text.as_str()).count();
        if count != 1 {
            return Err(format!(
                "{name}: its text stands {count} times in {file}, not once"
            ));
        }
        let write = |text: &str| {
            std::fs::write(&path, text).map_err(|error| format!("failed to write {file}: {error}"))
        };
        write(&good.replacen(text.as_str(), instead, 1))?;
        let found = match test.as_ref().filter(|_| !simulation_only) {
            Some((package, test)) => self.own_test(package, test),
            None => self.build().and_then(|()| self.simulate(timeout)),
        };
        write(&good)?;
        found.map_err(|error| format!("{name}: {error}"))
    }

    /// Returns the finding of a package's test, if any. A test that does not exist finds nothing.
    fn own_test(&self, package: &str, test: &str) -> Result<Option<String>, String> {
        let arguments = ["test", "--quiet", "--no-fail-fast", "--package", package, test];
        let tested = self.cargo(&arguments)?;
        let printed = String::from_utf8_lossy(&tested.stdout);
        let failed = printed
            .lines()
            .any(|line| line.starts_with("---- ") && line.contains(test));
        if !tested.status.success() && !failed {
            let words = String::from_utf8_lossy(&tested.stderr);
            return Err(format!("its test does not run:\n{words}"));
        }
        Ok(failed.then(|| format!("test {test}")))
    }
}

/// Waits for a process to end, and kills it after a timeout.
fn wait(mut child: Child, timeout: Duration) -> Result<Option<Output>, String> {
    let began = Instant::now();
    let failed = |error: std::io::Error| error.to_string();
    while child.try_wait().map_err(failed)?.is_none() {
        if began.elapsed() > timeout {
            child.kill().map_err(failed)?;
            child.wait().map_err(failed)?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    child.wait_with_output().map(Some).map_err(failed)
}

/// Changes the version in the copy's manifest, so that cargo treats its packages as different ones. Otherwise
/// cargo would use the builds of the copy, including the bugs, for the tree itself.
fn renumber(manifest: &[u8]) -> Vec<u8> {
    let version = concat!("\nversion = \"", env!("CARGO_PKG_VERSION"));
    let text = String::from_utf8_lossy(manifest);
    text.replacen(version, &format!("{version}-bugs"), 1).into_bytes()
}

/// Returns the files of the tree.
fn git(root: &Path) -> Result<BTreeSet<String>, String> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("failed to start git: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().map(str::to_owned).collect())
}
