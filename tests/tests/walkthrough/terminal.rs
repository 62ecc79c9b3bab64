//! Runs kubectl and checks its output.

use operator_tests::{Fleet, SOON};
use tempfile::TempDir;
use test_kit::eventually;

/// Name of the document's workload.
pub(crate) const GAME: &str = "test-gamedeployment";
/// Outputs of kubectl for it.
pub(crate) const CREATED: &str = "gamedeployment.tkex.tencent.com/test-gamedeployment created\n";
pub(crate) const SCALED: &str = "gamedeployment.tkex.tencent.com/test-gamedeployment scaled\n";
pub(crate) const PATCHED: &str = "gamedeployment.tkex.tencent.com/test-gamedeployment patched\n";

/// Terminal of the reader.
pub(crate) struct Terminal<'f> {
    pub(crate) fleet: &'f Fleet<'f>,
    /// Working directory with the document's files.
    pub(crate) directory: TempDir,
}

impl Terminal<'_> {
    /// Runs a command, words separated by blanks, and returns its output.
    pub(crate) fn run(&self, command: &str) -> String {
        let words: Vec<&str> = command.split(' ').collect();
        self.fleet.kubectl(&words, "")
    }

    /// Runs `kubectl apply -f` with a file of the document.
    pub(crate) fn apply(&self, file: &str, manifest: &str) -> String {
        let directory = self.directory.path();
        std::fs::write(directory.join(file), manifest).unwrap();
        let mut kubectl = self.fleet.control_plane.kubectl();
        kubectl.current_dir(directory);
        kubectl.args(["--namespace", &self.fleet.namespace, "apply", "-f", file]);
        let output = kubectl.output().unwrap();
        let printed = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(output.status.success(), "{printed}");
        printed
    }

    /// Returns the hash of the update revision, as in the names of HookRuns.
    pub(crate) fn revision(&self) -> String {
        let command = format!("get gamedeployment {GAME} -o jsonpath={{.status.updateRevision}}");
        let revision = self.run(&command);
        let hash = revision.strip_prefix("test-gamedeployment-");
        let hash = hash.unwrap_or_else(|| panic!("{revision}"));
        assert!(
            !hash.is_empty() && hash.len() <= 10 && is_random(hash, hash.len()),
            "{revision}"
        );
        hash.to_owned()
    }

    /// Runs a command and parses its YAML output.
    pub(crate) fn yaml(&self, command: &str) -> serde_json::Value {
        serde_saphyr::from_str(&self.run(command)).unwrap()
    }

    /// Repeats a command until its table has this header and these rows. `rows` omit the last cell, which must be an
    /// age.
    pub(crate) async fn shows(&self, command: &str, header: &str, rows: &[&str]) {
        eventually(SOON, || async {
            let printed = self.run(command);
            let mut lines = printed.lines();
            let head = cells(lines.next().unwrap_or_default()).join(" ");
            let found: Vec<String> = lines
                .map(|line| {
                    let mut cells = cells(line);
                    cells.pop_if(|age| is_age(age));
                    cells.join(" ")
                })
                .collect();
            if head == header && found == rows {
                Ok(())
            } else {
                Err(printed)
            }
        })
        .await;
    }

    /// Waits until `kubectl get gamedeployment` shows these numbers.
    pub(crate) async fn shows_game(&self, numbers: &str) {
        let header = "NAME DESIRED UPDATED UPDATED_READY READY TOTAL AGE";
        self.shows("get gamedeployment", header, &[&format!("{GAME} {numbers}")])
            .await;
    }

    /// Waits until `kubectl get hookrun` shows this many, all in this phase and for pods of this revision. Returns the
    /// instance ids in their names.
    pub(crate) async fn shows_runs(&self, count: usize, phase: &str, revision: &str) -> Vec<String> {
        eventually(SOON, || async {
            let printed = self.run("get hookrun");
            let mut lines = printed.lines();
            let head = cells(lines.next().unwrap_or_default()).join(" ");
            let rows: Vec<Vec<String>> = lines.map(cells).collect();
            let good = head == "NAME PHASE AGE"
                && rows.len() == count
                && rows
                    .iter()
                    .all(|row| row.len() == 3 && row[1] == phase && is_age(&row[2]));
            if good {
                Ok(rows.iter().map(|row| instance(&row[0], revision)).collect())
            } else {
                Err(printed)
            }
        })
        .await
    }

    /// Waits until `kubectl get hookrun` finds nothing.
    pub(crate) async fn shows_no_runs(&self) {
        eventually(SOON, || async {
            let printed = self.run("get hookrun");
            if printed == "No resources found in default namespace.\n" {
                Ok(())
            } else {
                Err(printed)
            }
        })
        .await;
    }

    /// Waits until `kubectl get pod` shows these pods: READY, STATUS and RESTARTS of each, in any order.
    pub(crate) async fn shows_pods(&self, expected: &[&str]) {
        let mut expected: Vec<&str> = expected.to_vec();
        expected.sort_unstable();
        eventually(SOON, || async {
            let printed = self.run("get pod");
            let mut lines = printed.lines();
            let head = cells(lines.next().unwrap_or_default()).join(" ");
            let rows: Vec<Vec<String>> = lines.map(cells).collect();
            let mut found: Vec<String> = rows.iter().map(|row| row[1..row.len() - 1].join(" ")).collect();
            found.sort_unstable();
            let named = rows
                .iter()
                .all(|row| is_pod(&row[0]) && is_age(&row[row.len() - 1]));
            if head == "NAME READY STATUS RESTARTS AGE" && named && found == expected {
                Ok(())
            } else {
                Err(printed)
            }
        })
        .await;
    }
}

/// Returns the cells of a row, without the age that newer kubectls print after a number of restarts:
/// `1 (67s ago)`.
fn cells(line: &str) -> Vec<String> {
    let cells = line.split_whitespace();
    let plain = cells.filter(|cell| !cell.starts_with('(') && !cell.ends_with(')'));
    plain.map(str::to_owned).collect()
}

/// Whether the text consists of this many letters and digits of Kubernetes' random names.
fn is_random(text: &str, length: usize) -> bool {
    text.len() == length
        && text
            .chars()
            .all(|letter| "bcdfghjklmnpqrstvwxz2456789".contains(letter))
}

/// Whether a cell is an age as kubectl prints it: `73s`, `4m33s`, `46m`, `2d3h`.
fn is_age(cell: &str) -> bool {
    let mut rest = cell;
    while let Some((number, more)) = rest.split_once(|letter: char| !letter.is_ascii_digit()) {
        let unit = &rest[number.len()..rest.len() - more.len()];
        if number.is_empty() || !matches!(unit, "s" | "m" | "h" | "d" | "y") {
            return false;
        }
        rest = more;
    }
    rest.is_empty() && !cell.is_empty()
}

fn is_pod(name: &str) -> bool {
    name.strip_prefix("test-gamedeployment-")
        .is_some_and(|id| is_random(id, 5))
}

/// Returns the instance id in `pre-delete-hook-test-gamedeployment-67864c6f65-s9rbp-test`, where `67864c6f65` is the
/// revision.
fn instance(run: &str, revision: &str) -> String {
    let id = run
        .strip_prefix(&format!("pre-delete-hook-{GAME}-{revision}-"))
        .and_then(|rest| rest.strip_suffix("-test"))
        .unwrap_or_else(|| panic!("{run} is not for a pod of revision {revision}"));
    assert!(is_random(id, 5), "{run}");
    id.to_owned()
}

#[test]
fn an_age_is_told_from_other_cells() {
    for age in ["0s", "73s", "4m33s", "46m", "2d3h", "1y20d"] {
        assert!(is_age(age), "{age}");
    }
    for other in ["", "s", "5", "0", "Running", "5x", "s5", "<unknown>", "1.5s"] {
        assert!(!is_age(other), "{other}");
    }
}
