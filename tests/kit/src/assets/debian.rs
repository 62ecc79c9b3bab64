//! Builds programs from Debian packages: once, locked against other processes, with visible progress.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::Error;
use super::build_once::{io_error, lock, say};
use crate::keeper::{self, Kept};

const HEARTBEAT: Duration = Duration::from_secs(30);
const TAIL_LINES: usize = 25;
/// Common beginning of every script.
const APT: &str = include_str!("../../assets/debian-apt.sh");

/// Build recipe for a set of programs.
pub(super) struct Recipe {
    pub(super) what: &'static str,
    pub(super) estimate: &'static str,
    pub(super) directory: PathBuf,
    pub(super) script: &'static str,
    pub(super) tools: &'static [&'static str],
    pub(super) disk_bytes: u64,
}

impl Recipe {
    /// Returns the directory of the finished programs.
    pub(super) fn programs(&self) -> PathBuf {
        self.directory.join("bin")
    }

    /// Builds the missing programs among `wanted`. `arguments` maps them to the script's arguments.
    ///
    /// The script renames a finished program into place, so the presence of the file is its stamp;
    /// `.complete` marks the end of a first build.
    pub(super) fn provide<'a>(
        &self,
        wanted: &[&'a str],
        arguments: impl Fn(&[&'a str]) -> Vec<&'a str>,
    ) -> Result<(), Error> {
        if self.missing(wanted).is_empty() {
            return Ok(());
        }
        fs::create_dir_all(self.programs())
            .map_err(io_error(|| format!("create {}", self.programs().display())))?;
        let _locked = lock(&self.directory, self.what)?;
        let missing = self.missing(wanted);
        if missing.is_empty() {
            return Ok(());
        }
        self.check_machine()?;
        self.make(&arguments(&missing))?;
        let stamp = self.stamp();
        File::create(&stamp)
            .map(drop)
            .map_err(io_error(|| format!("write {}", stamp.display())))
    }

    fn stamp(&self) -> PathBuf {
        self.programs().join(".complete")
    }

    fn missing<'a>(&self, wanted: &[&'a str]) -> Vec<&'a str> {
        let complete = self.stamp().exists();
        let absent = |program: &&str| !complete || !self.programs().join(program).is_file();
        wanted.iter().copied().filter(absent).collect()
    }

    fn check_machine(&self) -> Result<(), Error> {
        let unsuitable = |obstacle| {
            Err(Error::Unsuitable {
                what: self.what,
                obstacle,
            })
        };
        let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
        if !release.lines().any(|line| line == "VERSION_CODENAME=bookworm") {
            return unsuitable("it is made from the packages of Debian 12 (bookworm)".to_owned());
        }
        for tool in ["bash", "apt-get", "dpkg-deb"].iter().chain(self.tools) {
            if !on_path(tool) {
                return unsuitable(format!("the program {tool} is missing"));
            }
        }
        let free = keeper::free_bytes(&self.directory).map_err(io_error(|| {
            format!("measure the disk of {}", self.directory.display())
        }))?;
        if free < self.disk_bytes {
            let (have, need) = (free >> 20, self.disk_bytes >> 20);
            let place = self.directory.display();
            return unsuitable(format!(
                "{place} has {have} MiB free and needs {need} MiB for a while"
            ));
        }
        Ok(())
    }

    fn make(&self, arguments: &[&str]) -> Result<(), Error> {
        let log = self.directory.join("build.log");
        say(format_args!(
            "making {} in {}: {}",
            self.what,
            self.directory.display(),
            self.estimate
        ));
        let started = Instant::now();
        let build = self
            .spawn(arguments, &log)
            .map_err(io_error(|| format!("start making {}", self.what)))?;
        report(&lines_of(&build), started);
        let status = loop {
            match build
                .try_wait()
                .map_err(io_error(|| "wait for the build".to_owned()))?
            {
                Some(status) => break status,
                // The output has ended, so the process exits in an instant.
                None => thread::yield_now(),
            }
        };
        if !status.success() {
            return Err(Error::Build {
                what: self.what,
                tail: tail(&log),
                log,
            });
        }
        say(format_args!(
            "made {} in {} s",
            self.what,
            started.elapsed().as_secs()
        ));
        Ok(())
    }

    fn spawn(&self, arguments: &[&str], log: &Path) -> io::Result<Kept> {
        let mut command = keeper::gated(Path::new("bash"));
        let script = format!("{APT}{}", self.script);
        command.args(["-c", &script, "build"]);
        command.arg(&self.directory).args(arguments);
        command.stdout(Stdio::piped()).stderr(File::create(log)?);
        keeper::spawn(command)
    }
}

fn lines_of(build: &Kept) -> Receiver<String> {
    let (sender, receiver) = channel();
    if let Some(output) = build.take_stdout() {
        thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            // The receiver is gone only when this process is about to exit.
            lines.for_each(|line| drop(sender.send(line)));
        });
    }
    receiver
}

/// Prints the steps of the build and a heartbeat during long ones, until the output ends.
fn report(lines: &Receiver<String>, started: Instant) {
    let mut current = String::new();
    loop {
        let elapsed = || started.elapsed().as_secs();
        match lines.recv_timeout(HEARTBEAT) {
            Ok(line) => {
                if let Some(step) = line.strip_prefix("step: ") {
                    say(format_args!("{:>4} s  {step}", elapsed()));
                    step.clone_into(&mut current);
                }
            }
            Err(RecvTimeoutError::Timeout) => say(format_args!("{:>4} s  … still {current}", elapsed())),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn tail(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

fn on_path(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(tool).is_file())
}
