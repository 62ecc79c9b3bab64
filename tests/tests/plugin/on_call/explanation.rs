//! Explanations as `kubectl game why` prints them, and the rules for all of them.

/// Beginning of the links to the runbook.
const RUNBOOK: &str = "Runbook: https://github.com/hookgate/hookgate/blob/main/docs/runbook.md#";

/// Printed command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Printed {
    /// Text for a shell, without its purpose.
    pub(crate) command: String,
    /// Text after the `#`; empty if there is none.
    pub(crate) purpose: String,
}

/// Printed explanation.
#[derive(Debug, Clone)]
pub(crate) struct Explanation {
    /// Complete output.
    pub(crate) out: String,
    /// Commands below `Next:`.
    pub(crate) commands: Vec<Printed>,
}

impl Printed {
    fn read(line: &str) -> Self {
        let (command, purpose) = line.split_once(" # ").unwrap_or((line, ""));
        Self {
            command: command.trim().to_owned(),
            purpose: purpose.trim().to_owned(),
        }
    }

    /// Whether the command skips hooks.
    pub(crate) fn skips(&self) -> bool {
        self.command.starts_with("kubectl game skip ")
    }

    /// Returns the words that the reader would have to replace. A reason is the only one that nobody else can know.
    fn placeholders(&self) -> Vec<String> {
        let command = self.command.replace("--reason 'WHY'", "");
        let words = command.split(|c: char| !c.is_ascii_alphanumeric());
        let is_placeholder = |word: &&str| word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase());
        words.filter(is_placeholder).map(str::to_owned).collect()
    }
}

impl Explanation {
    /// Parses an output.
    pub(crate) fn read(out: String) -> Self {
        let below = out.split_once("\nNext:\n").map_or("", |(_, below)| below);
        let lines = below.lines().take_while(|line| line.starts_with(' '));
        let commands = lines.map(Printed::read).collect();
        Self { out, commands }
    }

    /// Returns the command that is printed first.
    #[track_caller]
    pub(crate) fn first(&self) -> &Printed {
        let first = self.commands.first();
        first.unwrap_or_else(|| panic!("no command: {}", self.out))
    }

    /// Whether a command with this beginning is printed.
    pub(crate) fn has(&self, command: &str) -> bool {
        self.commands
            .iter()
            .any(|known| known.command.starts_with(command))
    }

    /// Returns the section of the runbook that the last line links to; empty if there is none.
    pub(crate) fn runbook(&self) -> &str {
        let last = self.out.trim_end().lines().last().unwrap_or_default();
        last.strip_prefix(RUNBOOK).unwrap_or_default()
    }

    /// Checks the rules: commands can be run as printed, and a skip comes last, with its consequence.
    #[track_caller]
    pub(crate) fn check(&self) {
        let out = &self.out;
        let last = self.commands.len().saturating_sub(1);
        for (place, printed) in self.commands.iter().enumerate() {
            assert!(printed.command.starts_with("kubectl "), "{printed:?}: {out}");
            assert_eq!(printed.placeholders(), [""; 0], "{printed:?}: {out}");
            if printed.skips() {
                assert!(place == last && place > 0, "a skip comes last: {out}");
                assert!(printed.purpose.contains("disconnects"), "its consequence: {out}");
            }
        }
    }
}

#[test]
fn commands_purposes_and_the_link_are_separated() {
    let out = "It waits # still.\n\nNext:\n  kubectl edit hooktemplate empty -n a  # if 10.0.0.7:9091 is wrong\n  \
               kubectl game skip p --reason 'WHY'\n\nRunbook: \
               https://github.com/hookgate/hookgate/blob/main/docs/runbook.md#hookerrors\n";
    let explanation = Explanation::read(out.to_owned());
    let printed = |command: &str, purpose: &str| Printed {
        command: command.to_owned(),
        purpose: purpose.to_owned(),
    };
    let expected = [
        printed(
            "kubectl edit hooktemplate empty -n a",
            "if 10.0.0.7:9091 is wrong",
        ),
        printed("kubectl game skip p --reason 'WHY'", ""),
    ];
    assert_eq!(explanation.commands, expected);
    assert_eq!(explanation.runbook(), "hookerrors");
    assert!(explanation.has("kubectl game skip ") && !explanation.has("kubectl game retry "));
    let quiet = Explanation::read("arena does not wait.\n".to_owned());
    assert_eq!((quiet.commands.len(), quiet.runbook()), (0, ""));
}

#[test]
fn placeholders_are_words_in_upper_case() {
    let table: [(&str, &[&str]); 5] = [
        ("kubectl game skip arena-x --reason 'WHY' -n games", &[]),
        ("kubectl get pods -A -l app.kubernetes.io/name=hook-operator", &[]),
        ("kubectl apply -f TEMPLATE.yaml", &["TEMPLATE"]),
        (
            "kubectl game set image arena CONTAINER=IMAGE",
            &["CONTAINER", "IMAGE"],
        ),
        ("kubectl describe pod/POD -n games", &["POD"]),
    ];
    for (command, expected) in table {
        assert_eq!(Printed::read(command).placeholders(), expected, "{command}");
    }
}
