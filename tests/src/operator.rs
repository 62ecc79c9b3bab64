//! Operator as a process: starts it and reads its endpoints.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use test_kit::{Process, Program, eventually};

use crate::{SOON, fail};

/// Number of log lines that a failed test shows of an operator.
const TAIL: usize = 40;

/// Operator process and the address of its endpoints.
#[derive(Debug)]
pub struct Operator {
    /// Process.
    pub process: Process,
    /// Address of its health and metrics endpoint.
    pub address: SocketAddr,
}

/// Start options of an operator.
#[derive(Debug, Clone)]
pub struct Start {
    program: PathBuf,
    kubeconfig: PathBuf,
    namespace: Option<String>,
    flags: Vec<String>,
    environment: Vec<(String, String)>,
    elects: bool,
}

impl Start {
    /// Returns options to run `program` in one namespace.
    pub fn new(program: &str, kubeconfig: &Path, namespace: &str) -> Self {
        Self {
            program: program.into(),
            kubeconfig: kubeconfig.into(),
            namespace: Some(namespace.to_owned()),
            flags: vec!["--egress-allow-loopback".to_owned()],
            environment: Vec::new(),
            elects: false,
        }
    }

    /// Returns options to run `program` in all namespaces. Use it only on a control plane that no other test
    /// uses.
    pub fn everywhere(program: &str, kubeconfig: &Path) -> Self {
        Self {
            namespace: None,
            ..Self::new(program, kubeconfig, "")
        }
    }

    /// Selects all namespaces, or a shard of them. Use it only on a control plane that no other test uses.
    #[must_use]
    pub fn in_all_namespaces(mut self) -> Self {
        self.namespace = None;
        self
    }

    /// Makes it one of several candidates for leader. By default it works at once, so that the successor of a
    /// killed operator does not wait for its lease to expire.
    #[must_use]
    pub fn elects(mut self) -> Self {
        self.elects = true;
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Replaces the program.
    #[must_use]
    pub fn program(mut self, program: &Path) -> Self {
        program.clone_into(&mut self.program);
        self
    }

    /// Replaces the kubeconfig.
    #[must_use]
    pub fn kubeconfig(mut self, kubeconfig: &Path) -> Self {
        kubeconfig.clone_into(&mut self.kubeconfig);
        self
    }

    /// Replaces the default flag `--egress-allow-loopback`.
    #[must_use]
    pub fn flags(mut self, flags: &[&str]) -> Self {
        self.flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        self
    }
}

impl Operator {
    /// Starts an operator without waiting for it.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(start: &Start) -> Self {
        let address = free_address();
        let program = Program::new(&start.program)
            .env("KUBECONFIG", &start.kubeconfig)
            .args([
                "--listen",
                &address.to_string(),
                "--log",
                "debug,hyper=info",
                "--leader-election",
                if start.elects { "true" } else { "false" },
            ])
            .args(
                start
                    .namespace
                    .iter()
                    .flat_map(|namespace| ["--namespace", namespace]),
            )
            .args(&start.flags);
        let variables = start.environment.iter();
        let program = variables.fold(program, |program, (name, value)| program.env(name, value));
        let process = Process::start(program).unwrap_or_else(|error| fail(&format!("the operator: {error}")));
        Self { process, address }
    }

    /// Waits until the operator reports ready.
    pub async fn ready(&self) {
        eventually(SOON, || async {
            if let Ok(Some(status)) = self.process.exit_status() {
                fail(&format!(
                    "the operator has ended, {status}:\n{}",
                    self.process.tail(TAIL)
                ));
            }
            let (status, text) = self.ask("/readyz").await?;
            if status == 200 { Ok(()) } else { Err(text) }
        })
        .await;
    }

    /// Returns status and text of one of its endpoints, or an error while it does not listen.
    pub async fn ask(&self, path: &str) -> Result<(u16, String), String> {
        let answer = http().get(self.url(path)).send().await;
        let answer = answer.map_err(|error| error.to_string())?;
        Ok((answer.status().as_u16(), answer.text().await.unwrap_or_default()))
    }

    /// Returns the text of one of its endpoints.
    ///
    /// # Panics
    /// If it does not answer.
    pub async fn get(&self, path: &str) -> String {
        let answer = self.ask(path).await;
        answer.unwrap_or_else(|error| fail(&format!("{path}: {error}"))).1
    }

    /// Returns the sum of a counter or gauge over all series whose labels contain `labels`.
    pub async fn metric(&self, name: &str, labels: &str) -> u64 {
        let text = self.get("/metrics").await;
        let lines = text
            .lines()
            .filter(|line| line.starts_with(name) && line.contains(labels));
        lines
            .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
            .sum()
    }

    /// Prints the last log lines of the operator if the test has failed.
    pub(crate) fn speak_if_a_test_fails(&self) {
        if std::thread::panicking() {
            let (address, tail) = (self.address, self.process.tail(TAIL));
            eprintln!("the last lines of the operator at {address}:\n{tail}\n");
        }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// Returns a free loopback address.
pub fn free_address() -> SocketAddr {
    test_kit::free_address().unwrap_or_else(|error| fail(&format!("no free address: {error}")))
}

fn http() -> reqwest::Client {
    test_kit::http_client().unwrap_or_else(|error| fail(&error.to_string()))
}
