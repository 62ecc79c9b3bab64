//! Harness of a page: a namespace with both operators and simulated nodes, a copy of the repository's
//! manifests, and a shell with the real `kubectl`, `kubectl game` and `hookgate-sidecar`.
//!
//! | difference from a reader's cluster | reason |
//! | --- | --- |
//! | the output shows the namespace `default` | each page has its own |
//! | minutes in `examples/` are 6 s, seconds 1 s | quick, but slow enough to see on a busy machine |
//! | addresses of Prometheus and of the matchmaker point to a sample server | there is none |
//! | `kubectl exec POD -- … '{"players":3}' …` sets the simulated response | nothing can be executed |
//! | `autoscaling/v2`, `policy/v1` become beta versions where the API server lacks them | it may be old |

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use operator_tests::Fleet;
use operator_tests::identity::WORKLOADS_USER;
use regex::Regex;
use serde_json::{Value, json};
use shared_api::names::namespace::REMOVAL_GUARD_ENABLED;
use shared_api::names::pod::REMOVAL_GUARD;
use test_kit::node::{Behaviour, Options, PodSelector, Timing};
use test_kit::{Answer, ControlPlane, Webhook};

use crate::installation::{Installation, Replica};
use crate::page::root;
use crate::shell::{Said, Shell};
use crate::stand_ins::OWN_ADDRESS;

/// Directories that a page's commands may read.
const COPIED: [&str; 4] = ["examples", "deploy", "shared-api/crds", "docs"];

/// Number of harnesses so far: each has its own address.
static PAGES: AtomicU8 = AtomicU8::new(0);

/// Harness of a page.
pub(crate) struct PageHarness {
    pub(crate) fleet: Fleet<'static>,
    shell: Shell,
    directory: PathBuf,
    own_address: String,
    /// Prometheus and matchmaker.
    _server: Webhook,
    /// Admission component, if the page installs it.
    admission: Option<Replica>,
}

impl PageHarness {
    /// Returns a harness with the name of its page.
    pub(crate) async fn new(page: &Path) -> Self {
        let plain = |letter: char| {
            if letter.is_ascii_alphanumeric() {
                letter
            } else {
                '-'
            }
        };
        let name: String = page.to_string_lossy().chars().map(plain).collect();
        let name = format!("docs-{}", name.to_lowercase());
        let control_plane = crate::shared().await;
        // A game server takes a moment to end, so that the output shows it as Terminating.
        let timing = Timing {
            stop: Duration::from_secs(1),
            ..Timing::default()
        };
        let options = Options {
            timing,
            // A pod that leaves one node can go to the other.
            nodes: 2,
            ..Options::default()
        };
        let fleet = Fleet::with(control_plane, crate::PROGRAMS, &name, options).await;
        let server = Webhook::start().unwrap();
        server.otherwise(Answer::json(json!({
            "accepted": true, "pending": 0,
            "status": "success",
            "data": { "resultType": "vector", "result": [{ "metric": {}, "value": [0, "0"] }] },
        })));
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(&name);
        let _ = std::fs::remove_dir_all(&directory);
        let address = server.url("");
        for folder in COPIED {
            copy(
                control_plane,
                &root().join(folder),
                &directory.join("repository").join(folder),
                &address,
            );
        }
        let environment = environment(&fleet, &directory);
        let shell = Shell::start(
            &directory.join("repository"),
            &directory.join("typed"),
            &environment,
        );
        let process = std::process::id() % 250;
        let own_address = format!("127.8.{process}.{}", PAGES.fetch_add(1, Ordering::Relaxed) + 1);
        Self {
            fleet,
            shell,
            directory,
            own_address,
            _server: server,
            admission: None,
        }
    }

    /// Types a command. Its output shows the namespace `default`.
    pub(crate) async fn types(&mut self, command: &str) -> Result<Said, String> {
        let command = command.replace(OWN_ADDRESS, &self.own_address);
        let mut said = self.shell.run(&command).await?;
        said.printed = said.printed.replace(&self.fleet.namespace, "default");
        self.executes();
        Ok(said)
    }

    /// Carries out the recorded `kubectl exec` commands.
    fn executes(&self) {
        let file = self.directory.join("orders");
        let orders = std::fs::read_to_string(&file).unwrap_or_default();
        let _ = std::fs::remove_file(file);
        let document = Regex::new(r"\{.*\}").unwrap();
        for order in orders.lines() {
            let words: Vec<&str> = order.trim_end().split('\t').collect();
            let pod = words.iter().find(|word| !word.starts_with('-')).unwrap();
            let pod = pod.trim_start_matches("pod/");
            let fields = words
                .last()
                .and_then(|last| {
                    document
                        .find(&last.replace('\\', ""))
                        .map(|found| found.as_str().to_owned())
                })
                .unwrap_or_else(|| panic!("kubectl exec {order}: no answer of a game server in it"));
            let fields: Value = serde_json::from_str(&fields).unwrap();
            for (field, value) in fields.as_object().unwrap() {
                self.fleet.nodes.pod(pod).set(field, value.clone());
            }
        }
    }

    /// Follows an order from a hidden line of a page.
    pub(crate) async fn order(&mut self, words: &str) -> Result<(), String> {
        if words == "admission" {
            self.admission = Some(self.admitted().await);
            return Ok(());
        }
        if words == "admission removal-guard" {
            self.admission = Some(self.guarded().await);
            return Ok(());
        }
        let wrong = |error: &dyn std::fmt::Display| format!("{words}: {error}");
        match words.split_once(' ') {
            Some(("players", count)) => {
                let count = count.parse().map_err(|error| wrong(&error))?;
                self.fleet.nodes.every_pod().set_players(count);
            }
            Some(("document", text)) => {
                let document = serde_json::from_str(text).map_err(|error| wrong(&error))?;
                self.fleet.nodes.every_pod().set_document(document);
            }
            Some(("cannot-pull", image)) => {
                self.fleet
                    .nodes
                    .behave(PodSelector::image(image), Behaviour::CannotPull);
            }
            Some(("never-ready", image)) => {
                self.fleet
                    .nodes
                    .behave(PodSelector::image(image), Behaviour::NeverReady);
            }
            _ => return Err(format!("no order: {words}")),
        }
        Ok(())
    }

    /// Starts the admission component for this namespace alone.
    async fn admitted(&self) -> Replica {
        let namespace = self.fleet.namespace.clone();
        let installation = Installation::within(self.fleet.control_plane, namespace).await;
        let replica = installation.replica(&[]);
        installation.configure(replica.tls, &json!({})).await;
        replica.ready().await;
        installation.asked().await;
        replica
    }

    /// Starts the admission component with the removal guard for this namespace alone, and enables the guard there.
    async fn guarded(&self) -> Replica {
        let namespace = self.fleet.namespace.clone();
        let label = format!("{REMOVAL_GUARD}={REMOVAL_GUARD_ENABLED}");
        let (installation, replica) =
            Installation::with_removal_guard_in(self.fleet.control_plane, namespace.clone(), WORKLOADS_USER)
                .await;
        installation.must(&["label", "namespace", &namespace, &label], "");
        replica
    }

    /// Ends the page's jobs, then the rest of the harness.
    pub(crate) async fn end(self) {
        self.shell.end().await;
    }
}

/// Returns the shell's environment: its kubeconfig, its programs, and the path for orders.
fn environment(fleet: &Fleet<'_>, directory: &Path) -> Vec<(&'static str, String)> {
    let programs = directory.join("bin");
    std::fs::create_dir_all(&programs).unwrap();
    let kubectl = fleet.control_plane.kubectl_file().unwrap();
    std::os::unix::fs::symlink(kubectl, programs.join("kubectl")).unwrap();
    std::os::unix::fs::symlink(crate::PLUGIN, programs.join("kubectl-game")).unwrap();
    std::os::unix::fs::symlink(crate::SIDECAR, programs.join("hookgate-sidecar")).unwrap();
    let kubeconfig = std::fs::read_to_string(fleet.control_plane.kubeconfig_path()).unwrap();
    let mut kubeconfig: Value = serde_saphyr::from_str(&kubeconfig).unwrap();
    for context in kubeconfig["contexts"].as_array_mut().unwrap() {
        context["context"]["namespace"] = json!(fleet.namespace);
    }
    let file = directory.join("kubeconfig");
    std::fs::write(&file, kubeconfig.to_string()).unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    vec![
        ("PATH", format!("{}:{path}", programs.display())),
        ("KUBECONFIG", file.display().to_string()),
        ("ORDERS", directory.join("orders").display().to_string()),
        ("HOME", directory.display().to_string()),
        ("LC_ALL", "C.UTF-8".to_owned()),
        ("NO_COLOR", "1".to_owned()),
    ]
}

fn copy(control_plane: &ControlPlane, from: &Path, to: &Path, server: &str) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().unwrap().is_dir() {
            copy(control_plane, &from, &to, server);
        } else if from.extension().is_some_and(|extension| extension == "yaml") {
            let text = quick(&std::fs::read_to_string(from).unwrap(), server);
            std::fs::write(to, control_plane.in_its_versions(&text)).unwrap();
        } else {
            std::fs::copy(from, to).unwrap();
        }
    }
}

/// Rewrites an example to finish quickly and to use existing servers.
pub(crate) fn quick(example: &str, server: &str) -> String {
    let changes = [
        (
            r"(?m)^(\s*(?:- )?(?:interval|initialDelay):) (?:5|10|15|30)s$",
            "$1 1s",
        ),
        (r"(?m)^(\s*(?:- )?interval:) 60s$", "$1 6s"),
        (
            r"(?m)^(\s*(?:minReadySeconds|gracePeriodSeconds|duration):) \d+$",
            "$1 1",
        ),
        (
            r"http://(?:prometheus\.monitoring|matchmaker\.games)\.svc:\d+",
            server,
        ),
    ];
    changes
        .iter()
        .fold(example.to_owned(), |text, (pattern, instead)| {
            Regex::new(pattern)
                .unwrap()
                .replace_all(&text, *instead)
                .into_owned()
        })
}

#[test]
fn minutes_stay_longer_than_seconds() {
    let example = "      interval: 60s\n    - interval: 15s\n  initialDelay: 5s\n";
    let wanted = "      interval: 6s\n    - interval: 1s\n  initialDelay: 1s\n";
    assert_eq!(quick(example, ""), wanted);
}
