//! Replacements for commands that a reader runs and this test cannot, each with its reason. An unused entry
//! is an error.

use std::collections::BTreeSet;

/// Command, or part of one, that the test does not run as shown.
pub(crate) struct StandIn {
    /// Text that identifies it: the beginning of a command, or words in it.
    pub(crate) shown: &'static str,
    pub(crate) instead: Instead,
    #[expect(dead_code, reason = "for people")]
    pub(crate) reason: &'static str,
}

/// Replacement of a command.
pub(crate) enum Instead {
    /// No command: the harness is already in the resulting state.
    Nothing,
    /// These words replace the others.
    Words(&'static str),
}

use Instead::{Nothing, Words};

/// All replacements.
pub(crate) const ALL: &[StandIn] = &[
    StandIn {
        shown: "kind create cluster",
        instead: Nothing,
        reason: "needs a container runtime; the API server of the kit is there",
    },
    StandIn {
        shown: "kind delete cluster",
        instead: Nothing,
        reason: "the same",
    },
    StandIn {
        shown: "cargo xtask image",
        instead: Nothing,
        reason: "compiles for minutes; `cargo xtask in-cluster` makes images and runs them",
    },
    StandIn {
        shown: "kind load image-archive",
        instead: Nothing,
        reason: "there is no kind cluster",
    },
    StandIn {
        shown: "kubectl apply --server-side -f deploy/install.yaml",
        instead: Nothing,
        reason: "runs images that are not published; both operators run already, with the rights of deploy/rbac.yaml",
    },
    StandIn {
        shown: "kubectl delete -f deploy/install.yaml",
        instead: Nothing,
        reason: "other pages need the rights in it; the suite `chart` plays it",
    },
    StandIn {
        shown: "kubectl delete -f deploy/admission.yaml",
        instead: Nothing,
        reason: "it was not installed",
    },
    StandIn {
        shown: "helm install hookgate",
        instead: Nothing,
        reason: "the same",
    },
    StandIn {
        shown: "helm upgrade hookgate",
        instead: Nothing,
        reason: "there is no release; the suite `chart` plays a release's life",
    },
    StandIn {
        shown: "helm uninstall hookgate",
        instead: Nothing,
        reason: "the same",
    },
    StandIn {
        shown: "kubectl wait --namespace hookgate",
        instead: Nothing,
        reason: "the operators are processes of the test, and ready",
    },
    StandIn {
        shown: "cargo install --path kubectl-game",
        instead: Nothing,
        reason: "the program is built with the test, and in the PATH",
    },
    StandIn {
        shown: "cargo install --path sidecar",
        instead: Nothing,
        reason: "the same",
    },
    StandIn {
        shown: "cargo run -q -p kubectl-game --",
        instead: Words("kubectl-game"),
        reason: "the same",
    },
    StandIn {
        shown: " -w",
        instead: Words(""),
        reason: "does not end; what it shows last is compared",
    },
    StandIn {
        shown: "kubectl apply -f deploy/admission.yaml",
        instead: Words("kubectl apply --dry-run=server -f deploy/admission.yaml"),
        reason: "its images are not published, and without them it would stop the deletions of other pages",
    },
    StandIn {
        shown: "kubectl delete validatingwebhookconfiguration hookgate-admission",
        instead: Nothing,
        reason: "it was not installed; what the page shows of it is shown by one for the page's namespace alone",
    },
    StandIn {
        shown: "127.0.0.1",
        instead: Words(OWN_ADDRESS),
        reason: "another test may listen there",
    },
];

/// Placeholder for this process's own loopback address.
pub(crate) const OWN_ADDRESS: &str = "$OWN_ADDRESS";

/// Returns the command to run, if any, and records the entries used.
pub(crate) fn instead_of(command: &str, used: &mut BTreeSet<&'static str>) -> Option<String> {
    let mut command = command.to_owned();
    for entry in ALL {
        let program = entry
            .shown
            .starts_with(|letter: char| letter.is_ascii_lowercase());
        let found = if program {
            command.starts_with(entry.shown)
        } else {
            command.contains(entry.shown)
        };
        if !found {
            continue;
        }
        if entry.shown == " -w" && !watches(&command) {
            continue;
        }
        used.insert(entry.shown);
        match entry.instead {
            Nothing => return None,
            Words(words) => command = command.replace(entry.shown, words),
        }
    }
    Some(command)
}

/// Whether `-w` means watching.
fn watches(command: &str) -> bool {
    command.starts_with("kubectl ") && command.split_whitespace().any(|word| word == "-w")
}

/// Returns the unused entries.
pub(crate) fn stale(used: &BTreeSet<&'static str>) -> Vec<&'static str> {
    let shown = ALL.iter().map(|entry| entry.shown);
    shown.filter(|shown| !used.contains(shown)).collect()
}
