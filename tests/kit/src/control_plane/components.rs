//! Command lines of the components, for Kubernetes 1.20 and newer.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Options;
use super::pki::Pki;
use crate::process::Program;

/// Inputs of the command lines.
pub(super) struct Setting<'a> {
    pub(super) directory: &'a Path,
    pub(super) pki: &'a Pki,
    pub(super) ports: Ports,
    pub(super) kubeconfig: &'a Path,
    pub(super) options: &'a Options,
}

/// Ports of the components on 127.0.0.1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ports {
    pub(super) etcd: u16,
    pub(super) etcd_peers: u16,
    pub(super) api_server: u16,
    pub(super) controller_manager: u16,
    pub(super) scheduler: u16,
}

impl Setting<'_> {
    pub(super) fn etcd(&self, path: PathBuf) -> Program {
        let url = |port| format!("http://127.0.0.1:{port}");
        let (clients, peers) = (url(self.ports.etcd), url(self.ports.etcd_peers));
        let can_skip_sync = answer(&path, "--help").contains("unsafe-no-fsync");
        Program::new(path)
            .arg("--name=test")
            .arg(format!("--data-dir={}", self.directory.join("etcd").display()))
            .arg(format!("--listen-client-urls={clients}"))
            .arg(format!("--advertise-client-urls={clients}"))
            .arg(format!("--listen-peer-urls={peers}"))
            .arg(format!("--initial-advertise-peer-urls={peers}"))
            .arg(format!("--initial-cluster=test={peers}"))
            .arg("--quota-backend-bytes=8589934592")
            .args(can_skip_sync.then_some("--unsafe-no-fsync"))
    }

    pub(super) fn api_server(&self, path: PathBuf) -> Program {
        let file = |name| self.pki.file(name).display().to_string();
        let mut program = Program::new(path)
            .arg(format!("--etcd-servers=http://127.0.0.1:{}", self.ports.etcd))
            .args(["--bind-address=127.0.0.1", "--advertise-address=127.0.0.1"])
            .arg(format!("--secure-port={}", self.ports.api_server))
            .arg("--endpoint-reconciler-type=none")
            .arg(format!("--cert-dir={}", self.directory.display()))
            .arg(format!("--tls-cert-file={}", file("apiserver.crt")))
            .arg(format!("--tls-private-key-file={}", file("apiserver.key")))
            .arg(format!("--client-ca-file={}", file("ca.crt")))
            .arg("--authorization-mode=Node,RBAC")
            .arg("--kubelet-preferred-address-types=InternalIP,Hostname")
            .arg(format!("--kubelet-client-certificate={}", file("admin.crt")))
            .arg(format!("--kubelet-client-key={}", file("admin.key")))
            .args([
                "--service-cluster-ip-range=10.0.0.0/16",
                "--allow-privileged=true",
            ])
            .arg(format!(
                "--service-account-key-file={}",
                file("service-accounts.pub")
            ))
            .arg(format!(
                "--service-account-signing-key-file={}",
                file("service-accounts.key")
            ))
            .arg("--service-account-issuer=https://kubernetes.default.svc")
            .arg("--api-audiences=https://kubernetes.default.svc")
            .args([
                "--max-requests-inflight=3000",
                "--max-mutating-requests-inflight=1500",
            ])
            .arg("--profiling=false");
        if !self.options.controller_manager {
            // Without service accounts, the plugin would refuse every pod.
            program = program.arg("--disable-admission-plugins=ServiceAccount");
        }
        if self.options.audit {
            program = program
                .arg(format!(
                    "--audit-policy-file={}",
                    self.directory.join("audit-policy.yaml").display()
                ))
                .arg(format!(
                    "--audit-log-path={}",
                    self.directory.join("audit.log").display()
                ))
                // Disables rotation, because tests read the log as one file; blocking mode keeps every
                // response in it.
                .args(["--audit-log-maxsize=1000000", "--audit-log-mode=blocking"]);
        }
        program.args(&self.options.api_server_arguments)
    }

    pub(super) fn controller_manager(&self, path: PathBuf) -> Program {
        self.client_of_api_server(path, self.ports.controller_manager)
            .arg(format!(
                "--service-account-private-key-file={}",
                self.pki.file("service-accounts.key").display()
            ))
            .arg(format!("--root-ca-file={}", self.pki.file("ca.crt").display()))
            .args([
                "--kube-api-qps=500",
                "--kube-api-burst=1000",
                "--concurrent-gc-syncs=20",
                // One identity per controller, as in every real cluster: it shows which controller deletes a
                // pod.
                "--use-service-account-credentials",
                // Disables the controller that deletes pods of a lost node within a minute. Tests decide the
                // fate of those pods.
                "--controllers=*,-podgc",
            ])
            .args(&self.options.controller_manager_arguments)
    }

    pub(super) fn scheduler(&self, path: PathBuf) -> Program {
        self.client_of_api_server(path, self.ports.scheduler)
    }

    fn client_of_api_server(&self, path: PathBuf, port: u16) -> Program {
        // Old versions also open a fixed unencrypted port unless it is disabled.
        let version = answer(&path, "--version");
        let has_plain_port = ["v1.20.", "v1.21.", "v1.22.", "v1.23."]
            .iter()
            .any(|old| version.contains(old));
        let name = path.file_name().unwrap_or_default().display().to_string();
        Program::new(path)
            .arg(format!("--kubeconfig={}", self.kubeconfig.display()))
            .args([
                "--leader-elect=false",
                "--bind-address=127.0.0.1",
                "--profiling=false",
            ])
            .arg(format!("--secure-port={port}"))
            .arg(format!("--cert-dir={}", self.directory.join(name).display()))
            .args(has_plain_port.then_some("--port=0"))
    }
}

/// Records writes with their user and time, except writes of events, leases and reviews. Omits reads.
/// Includes request and response only for kinds that hold no secrets.
pub(super) const AUDIT_POLICY: &str = r#"{
  "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
  "rules": [
    {"level": "None", "verbs": ["get", "list", "watch"]},
    {"level": "None", "resources": [
      {"group": "", "resources": ["events"]},
      {"group": "events.k8s.io"},
      {"group": "coordination.k8s.io"},
      {"group": "authentication.k8s.io"},
      {"group": "authorization.k8s.io"}
    ]},
    {"level": "RequestResponse", "resources": [
      {"group": "", "resources": ["pods", "pods/*", "nodes", "nodes/*"]},
      {"group": "apps", "resources": ["controllerrevisions"]},
      {"group": "tkex.tencent.com", "resources": [
        "gamedeployments", "gamedeployments/*", "hookruns", "hookruns/*", "hooktemplates", "hooktemplates/*",
        "executionhooks", "executionhooks/*", "hookactions"
      ]}
    ]},
    {"level": "Metadata"}
  ]
}"#;

/// Returns the program's answer to a flag, stdout and stderr together.
fn answer(program: &Path, question: &str) -> String {
    let both = Command::new(program)
        .arg(question)
        .output()
        .map(|output| [output.stdout, output.stderr].concat());
    both.map(|text| String::from_utf8_lossy(&text).into_owned())
        .unwrap_or_default()
}
