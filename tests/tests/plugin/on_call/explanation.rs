//! Explanations as `kubectl game why` prints them, and the rules for all of them.

/// Lines and columns of a small terminal.
const SCREEN: (usize, usize) = (24, 80);

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

    /// Returns whether the command skips hooks.
    pub(crate) fn skips(&self) -> bool {
        self.command.starts_with("kubectl game skip ")
    }

    /// Returns whether only the reader knows the image that the command sets.
    fn sets_image(&self) -> bool {
        self.command.starts_with("kubectl game set image ") && self.command.contains("=IMAGE")
    }

    /// Returns the words that the reader would have to replace, except for those that only the reader can know: a
    /// reason, and a new image.
    fn placeholders(&self) -> Vec<String> {
        let mut command = self.command.replace("--reason 'WHY'", "");
        if self.sets_image() {
            command = command.replace("=IMAGE", "");
        }
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

    /// Returns whether a command with this beginning is printed.
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

    /// Returns the text on the first screen of a small terminal, in one line.
    fn first_screen(&self) -> String {
        let (lines, columns) = SCREEN;
        let rows = self.out.lines().flat_map(|line| wrapped(line, columns));
        rows.take(lines).collect::<Vec<String>>().join(" ")
    }

    /// Checks the rules: commands can be run as printed, a skip comes last, with its consequence, and the first screen
    /// has these facts and the first command.
    #[track_caller]
    pub(crate) fn check(&self, facts: &[&str]) {
        let out = &self.out;
        let first = self.commands.first();
        assert!(first.is_none_or(|first| !first.sets_image()), "as printed: {out}");
        let screen = self.first_screen();
        let first = first.map(|first| first.command.as_str());
        for words in facts.iter().copied().chain(first) {
            let squeezed = words.split_whitespace().collect::<Vec<&str>>().join(" ");
            assert!(
                screen.contains(&squeezed),
                "{words:?} is not on the first screen: {out}"
            );
        }
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

/// Wraps a line at its blanks. A word that is longer than a row has one of its own.
fn wrapped(line: &str, columns: usize) -> Vec<String> {
    let mut rows = vec![String::new()];
    for word in line.split_whitespace() {
        let row = rows.last_mut().unwrap();
        if row.is_empty() {
            row.push_str(word);
        } else if row.chars().count() + 1 + word.chars().count() <= columns {
            row.push(' ');
            row.push_str(word);
        } else {
            rows.push(word.to_owned());
        }
    }
    rows
}

#[test]
fn the_first_screen_ends_after_its_last_line() {
    assert_eq!(wrapped("aa bb  cccc d", 5), ["aa bb", "cccc", "d"]);
    assert_eq!(wrapped("", 5), [""]);
    let cause = "the cause\n";
    let next = "\nNext:\n  kubectl game retry arena  # now\n";
    let of = Explanation::read;
    assert!(
        of(format!("{}{cause}{next}", "a\n".repeat(20)))
            .first_screen()
            .ends_with("kubectl game retry arena # now")
    );
    let late = of(format!("{}{cause}{next}", "a\n".repeat(21)));
    assert!(late.first_screen().contains("the cause"));
    assert!(!late.first_screen().contains("kubectl game retry"));
    assert!(
        !of(format!("{} {cause}", "a word ".repeat(300)))
            .first_screen()
            .contains("cause")
    );
}

#[test]
fn commands_purposes_and_the_link_are_separated() {
    let out = "It waits # still.\n\nNext:\n  kubectl edit hooktemplate empty -n a  # fix the URL if 10.0.0.7:9091 is \
               wrong\n  kubectl game skip p --reason 'WHY'\n\nRunbook: \
               https://github.com/hookgate/hookgate/blob/main/docs/runbook.md#hookerrors\n";
    let explanation = Explanation::read(out.to_owned());
    let printed = |command: &str, purpose: &str| Printed {
        command: command.to_owned(),
        purpose: purpose.to_owned(),
    };
    let expected = [
        printed(
            "kubectl edit hooktemplate empty -n a",
            "fix the URL if 10.0.0.7:9091 is wrong",
        ),
        printed("kubectl game skip p --reason 'WHY'", ""),
    ];
    assert_eq!(explanation.commands, expected);
    assert_eq!(explanation.runbook(), "hookerrors");
    assert!(explanation.has("kubectl game skip ") && !explanation.has("kubectl game retry "));
    let quiet = Explanation::read("arena is not waiting.\n".to_owned());
    assert_eq!((quiet.commands.len(), quiet.runbook()), (0, ""));
}

#[test]
fn placeholders_are_words_in_upper_case() {
    let table: [(&str, &[&str]); 6] = [
        ("kubectl game skip arena-x --reason 'WHY' -n games", &[]),
        ("kubectl get pods -A -l app.kubernetes.io/name=hook-operator", &[]),
        ("kubectl apply -f TEMPLATE.yaml", &["TEMPLATE"]),
        ("kubectl game set image arena CONTAINER=IMAGE", &["CONTAINER"]),
        ("kubectl game set image arena game=IMAGE", &[]),
        ("kubectl describe pod/POD -n games", &["POD"]),
    ];
    for (command, expected) in table {
        assert_eq!(Printed::read(command).placeholders(), expected, "{command}");
    }
}
