//! The chart, installed by Helm.

use std::fs;
use std::process::Command;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use shared_api::HookTemplate;
use test_kit::wait::within;
use test_kit::{RealNode, assets};

use crate::demo::story::PATIENCE;
use crate::demo::teller::Teller;
use crate::enclosed::Outcome;

const NAMESPACE: &str = "hookgate";
/// Components with a leader election.
pub(super) const OPERATORS: [&str; 2] = ["gamedeployment-operator", "hook-operator"];
const ADMISSION: &str = "hookgate-admission";
const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../helm");

/// An installed release, and access to it.
pub(super) struct Release<'a> {
    node: &'a RealNode,
    teller: &'a Teller,
    helm: std::path::PathBuf,
}

impl<'a> Release<'a> {
    pub(super) fn new(node: &'a RealNode, teller: &'a Teller) -> Outcome<Self> {
        let helm = assets::helm()?;
        Ok(Self { node, teller, helm })
    }

    pub(super) fn install(&self) -> Outcome<()> {
        self.helm(&[
            "install",
            "hookgate",
            CHART,
            "--create-namespace",
            "--set",
            "admission.enabled=true",
        ])
    }

    /// Upgrades with different values, so that every pod is replaced.
    pub(super) fn upgrade(&self) -> Outcome<()> {
        self.helm(&[
            "upgrade",
            "hookgate",
            CHART,
            "--reuse-values",
            "--set",
            "log.level=debug",
        ])
    }

    /// Uninstalls, and returns when the operators' pods are gone. The definitions must remain.
    pub(super) async fn uninstall(&self) -> Outcome<()> {
        self.helm(&["uninstall", "hookgate"])?;
        within(PATIENCE, || async {
            let pods = self
                .pods()
                .list(&ListParams::default())
                .await
                .map_err(|error| error.to_string())?;
            if pods.items.is_empty() {
                Ok(())
            } else {
                Err(format!("{} pods are left", pods.items.len()))
            }
        })
        .await?;
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client());
        for definition in shared_api::crd::all() {
            let found = definitions.get(&definition.name_any()).await?;
            if found.metadata.deletion_timestamp.is_some() {
                return Err(format!("{} is being deleted", found.name_any()).into());
            }
        }
        Ok(())
    }

    /// Waits until two replicas of each component are ready and up to date, and each operator has a leader.
    pub(super) async fn await_ready(&self) -> Outcome<()> {
        let deployments: Api<Deployment> = Api::namespaced(self.client(), NAMESPACE);
        for name in OPERATORS.into_iter().chain([ADMISSION]) {
            within(PATIENCE, || async {
                let found = deployments.get(name).await.map_err(|error| error.to_string())?;
                let status = found.status.unwrap_or_default();
                let observed = status.observed_generation == found.metadata.generation;
                let counts = [status.ready_replicas, status.updated_replicas, status.replicas];
                if observed && counts == [Some(2); 3] {
                    Ok(())
                } else {
                    Err(format!("{name}: {status:?}"))
                }
            })
            .await?;
        }
        for name in OPERATORS {
            let leader = self.leader(name).await?;
            self.teller
                .say(&format!("two replicas of {name} are ready; {leader} leads"));
        }
        Ok(())
    }

    /// Returns the name of the leader's pod.
    pub(super) async fn leader(&self, operator: &str) -> Outcome<String> {
        let leases: Api<Lease> = Api::namespaced(self.client(), NAMESPACE);
        let leader = within(PATIENCE, || async {
            let lease = leases.get(operator).await.map_err(|error| error.to_string())?;
            let holder = lease
                .spec
                .and_then(|spec| spec.holder_identity)
                .unwrap_or_default();
            let pods = self
                .pods()
                .list(&ListParams::default())
                .await
                .map_err(|error| error.to_string())?;
            let mut names = pods.items.iter().map(ResourceExt::name_any);
            // The holder's name is the pod's name with a random suffix.
            names
                .find(|name| holder.starts_with(name.as_str()))
                .ok_or(format!("{holder:?} holds the lease"))
        });
        Ok(leader.await?)
    }

    /// Kills the leader's process without warning, so that its lease expires.
    pub(super) async fn kill_leader(&self, operator: &str) -> Outcome<()> {
        let leader = self.leader(operator).await?;
        let pod = self.pods().get(&leader).await?;
        let process = process_of(&pod.uid().unwrap_or_default(), operator)?;
        let killed = Command::new("kill").args(["-KILL", &process]).status()?;
        if !killed.success() {
            return Err(format!("kill -KILL {process}: {killed}").into());
        }
        self.teller
            .say(&format!("killed the process of {leader}, which led"));
        Ok(())
    }

    /// Deletes the leader's pod.
    pub(super) async fn delete_leader(&self, operator: &str) -> Outcome<()> {
        let leader = self.leader(operator).await?;
        let now = DeleteParams::default().grace_period(0);
        self.pods().delete(&leader, &now).await?;
        self.teller.say(&format!("deleted the pod {leader}, which led"));
        Ok(())
    }

    /// Waits until the admission component rejects a wrong manifest.
    pub(super) async fn wrong_manifests_are_refused(&self) -> Outcome<()> {
        let templates: Api<HookTemplate> = Api::default_namespaced(self.client());
        let wrong: HookTemplate = serde_json::from_value(json!({
            "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "HookTemplate", "metadata": { "name": "wrong" },
            "spec": { "metrics": [{
                "name": "players", "successCondition": "asInt(result) =< 0",
                "provider": { "web": { "url": "http://{{ args.PodIP }}", "jsonPath": "{$.players}" } }
            }] }
        }))?;
        let dry = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let refusal = within(PATIENCE, || async {
            match templates.create(&dry, &wrong).await {
                Err(kube::Error::Api(status)) if status.message.contains("successCondition") => {
                    Ok(status.message)
                }
                other => Err(format!("{other:?}")),
            }
        });
        self.teller
            .say(&format!("a wrong manifest is refused: {}", refusal.await?));
        Ok(())
    }

    /// Prints diagnostics after a failure.
    pub(super) fn last_words(&self) {
        let names = format!(
            "app.kubernetes.io/name in ({},{},{ADMISSION})",
            OPERATORS[0], OPERATORS[1]
        );
        let logs = ["logs", "--tail=40", "--prefix", "--selector", &names];
        for arguments in [
            &["describe", "pods"][..],
            &["get", "pods,leases,events", "-o", "wide"],
            &logs,
        ] {
            let mut kubectl = self.node.control_plane().kubectl();
            kubectl.args(["--namespace", NAMESPACE]).args(arguments);
            println!("--- kubectl {}\n{}", arguments.join(" "), said(&mut kubectl));
        }
    }

    pub(super) fn client(&self) -> kube::Client {
        self.node.control_plane().client()
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client(), NAMESPACE)
    }

    fn helm(&self, arguments: &[&str]) -> Outcome<()> {
        let mut helm = Command::new(&self.helm);
        helm.env("KUBECONFIG", self.node.control_plane().kubeconfig_path());
        helm.args(arguments).args(["--namespace", NAMESPACE]);
        let output = helm.output()?;
        let text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        self.teller.command(
            &format!("helm {}", arguments.join(" ").replace(CHART, "./helm")),
            &text,
        );
        if output.status.success() {
            Ok(())
        } else {
            Err("helm failed".into())
        }
    }
}

/// Returns the host's PID of a program in a pod. The pod's UID is part of the name of its control group.
fn process_of(pod: &str, program: &str) -> Outcome<String> {
    for entry in fs::read_dir("/proc")? {
        let path = entry?.path();
        let read = |name: &str| fs::read_to_string(path.join(name)).unwrap_or_default();
        // The kernel truncates the name to 15 bytes.
        let name = read("comm");
        if read("cgroup").contains(pod) && !name.trim().is_empty() && program.starts_with(name.trim()) {
            let number = path.file_name().unwrap_or_default();
            return Ok(number.to_string_lossy().into_owned());
        }
    }
    Err(format!("no process of {program} in the pod {pod}").into())
}

fn said(command: &mut Command) -> String {
    command.output().map_or_else(
        |error| error.to_string(),
        |output| {
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
        },
    )
}
