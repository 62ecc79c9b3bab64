//! Runs kubectl and checks its output.

use operator_tests::{Fleet, SOON};
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
}

impl Terminal<'_> {
    /// Runs a command, words separated by blanks, and returns its output.
    pub(crate) fn run(&self, command: &str) -> String {
        let words: Vec<&str> = command.split(' ').collect();
        self.fleet.kubectl(&words, "")
    }

    /// Runs `kubectl apply -f` with a manifest.
    pub(crate) fn apply(&self, manifest: &str) -> String {
        self.fleet.kubectl(&["apply", "-f", "-"], manifest)
    }

    /// Runs a command and parses its YAML output.
    pub(crate) fn yaml(&self, command: &str) -> serde_json::Value {
        serde_saphyr::from_str(&self.run(command)).unwrap()
    }

    /// Repeats a command until its table has this header and these rows; rows omit the age, the last cell.
    pub(crate) async fn shows(&self, command: &str, header: &str, rows: &[&str]) {
        eventually(SOON, || async {
            let printed = self.run(command);
            let mut lines = printed.lines();
            let head = cells(lines.next().unwrap_or_default()).join(" ");
            let found: Vec<String> = lines
                .map(|line| {
                    let mut cells = cells(line);
                    cells.pop();
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

    /// Waits until `kubectl get hookrun` shows this many, all in this phase. Returns the instance ids in
    /// their names.
    pub(crate) async fn shows_runs(&self, count: usize, phase: &str) -> Vec<String> {
        eventually(SOON, || async {
            let printed = self.run("get hookrun");
            let mut lines = printed.lines();
            let head = cells(lines.next().unwrap_or_default()).join(" ");
            let rows: Vec<Vec<String>> = lines.map(cells).collect();
            let good = head == "NAME PHASE AGE"
                && rows.len() == count
                && rows
                    .iter()
                    .all(|row| row.len() == 3 && row.get(1).is_some_and(|cell| cell == phase));
            if good {
                Ok(rows.iter().map(|row| instance(&row[0])).collect())
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
            let named = rows.iter().all(|row| is_pod(&row[0]));
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

fn is_pod(name: &str) -> bool {
    name.strip_prefix("test-gamedeployment-")
        .is_some_and(|id| is_random(id, 5))
}

/// Returns the instance id in `pre-delete-hook-test-gamedeployment-67864c6f65-s9rbp-test`.
fn instance(run: &str) -> String {
    let middle = run
        .strip_prefix("pre-delete-hook-test-gamedeployment-")
        .and_then(|rest| rest.strip_suffix("-test"));
    let (revision, id) = middle
        .and_then(|middle| middle.split_once('-'))
        .unwrap_or_else(|| panic!("{run}"));
    assert!(
        !revision.is_empty() && revision.len() <= 10 && is_random(revision, revision.len()),
        "{run}"
    );
    assert!(is_random(id, 5), "{run}");
    id.to_owned()
}
