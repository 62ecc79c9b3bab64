//! Recipes for the programs that we build, and their location in the cache.

use std::path::{Path, PathBuf};

use super::debian::Recipe;
use super::{Component, Error, Programs};

const GIB: u64 = 1 << 30;

/// Builds Kubernetes with at least these components. Skips the ones that are already in the cache.
pub fn kubernetes(components: &[Component]) -> Result<Programs, Error> {
    let recipe = Recipe {
        what: "Kubernetes 1.20.2",
        estimate: "3 to 6 minutes, 150 MB to download, once",
        directory: cache()?.join("kubernetes-1.20.2"),
        script: include_str!("../../assets/build-kubernetes.sh"),
        tools: &["tar", "xz", "patch", "grep", "sed"],
        disk_bytes: 5 * GIB,
    };
    let programs: Vec<&str> = components.iter().map(|component| component.program()).collect();
    let built = |program: &&str| *program != Component::Etcd.program();
    recipe.provide(&programs, |missing| {
        missing.iter().copied().filter(built).collect()
    })?;
    Ok(Programs {
        directory: recipe.programs(),
    })
}

/// Returns the path of Debian's Prometheus.
pub fn prometheus() -> Result<PathBuf, Error> {
    of_prometheus("prometheus")
}

/// Returns the path of Debian's promtool, which checks and tests rules.
pub fn promtool() -> Result<PathBuf, Error> {
    of_prometheus("promtool")
}

fn of_prometheus(program: &str) -> Result<PathBuf, Error> {
    let recipe = Recipe {
        what: "Prometheus",
        estimate: "half a minute, 30 MB to download, once",
        directory: cache()?.join("prometheus"),
        script: include_str!("../../assets/fetch-prometheus.sh"),
        tools: &["sed"],
        disk_bytes: GIB,
    };
    // One program at a time: a cache from an older version may lack one of them, and the build replaces
    // existing files.
    recipe.provide(&[program], |_| Vec::new())?;
    Ok(recipe.programs().join(program))
}

/// Returns the path of Helm.
pub fn helm() -> Result<PathBuf, Error> {
    let recipe = Recipe {
        what: "Helm",
        estimate: "some seconds, 17 MB to download, once",
        directory: cache()?.join("helm-3.17.3"),
        script: include_str!("../../assets/fetch-helm.sh"),
        tools: &["python3"],
        disk_bytes: GIB,
    };
    recipe.provide(&["helm"], |_| Vec::new())?;
    Ok(recipe.programs().join("helm"))
}

/// Returns the path of one file with the certificates of all authorities that Debian trusts. Authorities that
/// only this machine trusts are not in it.
pub fn ca_certificates() -> Result<PathBuf, Error> {
    let recipe = Recipe {
        what: "certificates of public authorities",
        estimate: "some seconds, once",
        directory: cache()?.join("ca-certificates"),
        script: include_str!("../../assets/fetch-ca-certificates.sh"),
        tools: &["sed"],
        disk_bytes: GIB,
    };
    recipe.provide(&["ca-certificates.crt"], |_| Vec::new())?;
    Ok(recipe.programs().join("ca-certificates.crt"))
}

/// Returns the directory of Debian's container runtime: containerd and its shim, ctr, runc, CNI plugins and a
/// static busybox.
pub fn container_runtime() -> Result<PathBuf, Error> {
    let recipe = Recipe {
        what: "a container runtime",
        estimate: "half a minute, 40 MB to download, once",
        directory: cache()?.join("container-runtime"),
        script: include_str!("../../assets/fetch-container-runtime.sh"),
        tools: &["sed"],
        disk_bytes: GIB,
    };
    let programs = [
        "containerd",
        "containerd-shim-runc-v2",
        "ctr",
        "runc",
        "bridge",
        "host-local",
        "loopback",
        "busybox",
    ];
    recipe.provide(&programs, |_| Vec::new())?;
    Ok(recipe.programs())
}

fn cache() -> Result<PathBuf, Error> {
    let absolute = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let base = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
    base.as_deref()
        .map(|base: &Path| base.join("hookgate"))
        .ok_or_else(|| Error::Unsuitable {
            what: "test programs",
            obstacle: "there is no place to keep them: neither XDG_CACHE_HOME nor HOME is set".to_owned(),
        })
}
