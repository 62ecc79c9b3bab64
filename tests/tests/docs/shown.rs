//! Compares printed output with the output that a page shows.
//!
//! | in a page | matches |
//! | --- | --- |
//! | a line `...` | any lines |
//! | `[..]` | any text within a line |
//! | a duration, a time, an IPv4 address | any other one |
//! | `-x7k2p`: random letters with a digit among them | the same random letters everywhere on the page |
//! | blanks | any number of blanks |
//! | `1 (67s ago)` restarts, as kubectl from 1.22 on prints them | `1` |
//! | terminal symbols, such as `✔` | their replacement letters elsewhere |
//!
//! Rows may come in another order, because they are sorted by random names. Sentences may break elsewhere,
//! because a page is not as wide as a terminal.

use std::cell::Cell;
use std::collections::BTreeMap;

use regex::Regex;

/// Letters of Kubernetes' random names.
const LETTERS: &str = "bcdfghjklmnpqrstvwxz2456789";

/// Maximum number of lines that are compared before a search gives up.
const PATIENCE: u32 = 20_000;

/// Random letters of the page, and their counterparts in the harness.
type Names = BTreeMap<String, String>;

/// Output of a command: its lines on the page and its printed lines, [squeezed](squeeze) and without blank ones.
#[derive(Debug)]
struct Output {
    shown: Vec<String>,
    printed: Vec<String>,
}

impl Output {
    fn new(shown: &[String], printed: &str) -> Self {
        let squeezed = |line: &str| Some(squeeze(line)).filter(|line| !line.is_empty());
        Self {
            shown: shown.iter().filter_map(|line| squeezed(line)).collect(),
            printed: printed.lines().filter_map(squeezed).collect(),
        }
    }
}

/// Output of a page so far, and the matching names of the harness.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    names: Names,
    /// Typed names, which are fixed.
    typed: Names,
    seen: Vec<Output>,
}

impl Memory {
    /// Whether the output matches the page. Similar rows of a list may be confused at first; when a later
    /// output distinguishes them, all earlier output is compared again.
    pub(crate) fn fits(&mut self, shown: &[String], printed: &str) -> bool {
        let newest = Output::new(shown, printed);
        let known = Search::new().all(&[&newest], &self.names);
        let names = known.or_else(|| {
            let outputs: Vec<&Output> = std::iter::once(&newest).chain(&self.seen).collect();
            Search::new().all(&outputs, &self.typed)
        });
        let Some(names) = names else {
            return false;
        };
        self.names = names;
        self.seen.push(newest);
        true
    }

    /// Returns a command with the names of the harness.
    pub(crate) fn in_the_world(&mut self, command: &str) -> String {
        let mut command = command.to_owned();
        for (shown, real) in &self.names {
            let word = Regex::new(&format!(r"\b{shown}\b")).unwrap();
            if word.is_match(&command) {
                self.typed.insert(shown.clone(), real.clone());
                command = word.replace_all(&command, real.as_str()).into_owned();
            }
        }
        command
    }
}

/// Continues a search with the names of a match. Returns the names of the whole, or `None` to try the next match.
type Continue<'a> = &'a dyn Fn(&Names) -> Option<Names>;

/// Backtracking search for names with which outputs match the page.
struct Search {
    /// Number of lines that may still be compared.
    patience: Cell<u32>,
}

impl Search {
    const fn new() -> Self {
        Self {
            patience: Cell::new(PATIENCE),
        }
    }

    /// Returns names with which all outputs match; `None` if there are none.
    fn all(&self, outputs: &[&Output], names: &Names) -> Option<Names> {
        match outputs {
            [] => Some(names.clone()),
            [first, rest @ ..] => self.output(first, names, &|names| self.all(rest, names)),
        }
    }

    fn output(&self, output: &Output, names: &Names, then: Continue<'_>) -> Option<Names> {
        let shown: Vec<&str> = output.shown.iter().map(String::as_str).collect();
        let printed: Vec<&str> = output.printed.iter().map(String::as_str).collect();
        self.in_order(&shown, &printed, names, then)
            .or_else(|| self.rows(&shown, &printed, names, then))
            .or_else(|| {
                let shown = shown.join(" ").replace("...", "[..]");
                then(&self.line(&Line::read(&shown, names), &printed.join(" "), names)?)
            })
    }

    /// Compares a line; `None` also if patience is at its end.
    fn line(&self, wanted: &Line, line: &str, names: &Names) -> Option<Names> {
        self.patience.set(self.patience.get().checked_sub(1)?);
        wanted.fits(line, names)
    }

    fn in_order(&self, shown: &[&str], printed: &[&str], names: &Names, then: Continue<'_>) -> Option<Names> {
        match shown {
            [] => printed.is_empty().then(|| then(names))?,
            ["...", rest @ ..] => {
                (0..=printed.len()).find_map(|skip| self.in_order(rest, &printed[skip..], names, then))
            }
            [first, rest @ ..] => {
                let (line, others) = printed.split_first()?;
                let names = self.line(&Line::read(first, names), line, names)?;
                self.in_order(rest, others, &names, then)
            }
        }
    }

    /// Compares rows in any order.
    fn rows(&self, shown: &[&str], printed: &[&str], names: &Names, then: Continue<'_>) -> Option<Names> {
        let mut rows: Vec<&str> = shown.iter().copied().filter(|line| *line != "...").collect();
        let fits = rows.len() == printed.len() || (rows.len() < shown.len() && rows.len() <= printed.len());
        // Rows with the fewest unknown names come first.
        rows.sort_by_cached_key(|row| Line::read(row, names).open.len());
        fits.then(|| self.in_any_order(&rows, printed, names, then))?
    }

    fn in_any_order(
        &self,
        rows: &[&str],
        printed: &[&str],
        names: &Names,
        then: Continue<'_>,
    ) -> Option<Names> {
        let Some((first, rest)) = rows.split_first() else {
            return then(names);
        };
        let wanted = Line::read(first, names);
        for (place, line) in printed.iter().enumerate() {
            if let Some(names) = self.line(&wanted, line, names) {
                let mut others = printed.to_vec();
                others.remove(place);
                if let Some(found) = self.in_any_order(rest, &others, &names, then) {
                    return Some(found);
                }
            }
        }
        None
    }
}

/// Shown line as a pattern.
struct Line {
    pattern: Regex,
    /// Unknown random letters, in the order of the pattern's groups.
    open: Vec<String>,
}

impl Line {
    fn read(line: &str, names: &Names) -> Self {
        let (mut pattern, mut open, mut end) = ("^".to_owned(), Vec::new(), 0);
        for special in specials().captures_iter(line) {
            let whole = special.get(0).unwrap();
            pattern.push_str(&regex::escape(&line[end..whole.start()]));
            end = whole.end();
            let text = whole.as_str();
            if let Some(random) = special.name("random") {
                let random = random.as_str();
                let of_a_name = line[..whole.start()].ends_with('-')
                    && random.chars().any(|letter| letter.is_ascii_digit());
                match names.get(random) {
                    Some(real) => pattern.push_str(&regex::escape(real)),
                    None if of_a_name => {
                        let length = if random.len() == 5 { "{5}" } else { "{6,10}" };
                        pattern.extend(["([", LETTERS, "]", length, ")"]);
                        open.push(random.to_owned());
                    }
                    None => pattern.push_str(random),
                }
            } else if text == "[..]" {
                pattern.push_str(".*");
            } else {
                let same_kind = KINDS
                    .iter()
                    .find(|kind| Regex::new(&format!("^{kind}$")).unwrap().is_match(text));
                pattern.push_str(same_kind.unwrap());
            }
        }
        pattern.push_str(&regex::escape(&line[end..]));
        pattern.push('$');
        Self {
            pattern: Regex::new(&pattern).unwrap(),
            open,
        }
    }

    fn fits(&self, line: &str, names: &Names) -> Option<Names> {
        let found = self.pattern.captures(line)?;
        let mut names = names.clone();
        for (shown, real) in self.open.iter().zip(found.iter().skip(1).flatten()) {
            let real = real.as_str();
            if names.get(shown).is_some_and(|known| known != real)
                || names.iter().any(|(other, known)| other != shown && known == real)
            {
                return None;
            }
            names.insert(shown.clone(), real.to_owned());
        }
        Some(names)
    }
}

/// Patterns of values that differ between runs.
const KINDS: [&str; 5] = [
    r"\d\d:\d\d:\d\d",
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z",
    r"\d+\.\d+\.\d+\.\d+",
    r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+",
    r"\d+ (?:ms|s)",
];

fn specials() -> Regex {
    let kinds = KINDS.join(r"\b|\b");
    Regex::new(&format!(
        r"\[\.\.\]|\b{kinds}\b|\b(?<random>[{LETTERS}]{{5,10}})\b"
    ))
    .unwrap()
}

/// Merges blanks into one. Replaces terminal symbols by the plugin's plain letters.
fn squeeze(line: &str) -> String {
    let plain = |letter: char| {
        SIGNS
            .iter()
            .find(|(sign, _)| *sign == letter)
            .map_or(letter, |(_, plain)| *plain)
    };
    let line: String = line.chars().map(plain).collect();
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = since_restart().replace_all(&line, "");
    // A row's branch in a tree depends on the order of the rows.
    let mut row = &*line;
    while let Some(rest) = ["|-", "`-", "|", " "]
        .iter()
        .find_map(|branch| row.strip_prefix(branch))
    {
        row = rest;
    }
    row.to_owned()
}

/// Matches the age that newer kubectls print after a number of restarts.
fn since_restart() -> Regex {
    Regex::new(r" \((?:\d+[smhd])+ ago\)").unwrap()
}

const SIGNS: [(char, char); 13] = [
    ('✔', '+'),
    ('✖', 'x'),
    ('⚠', '!'),
    ('◌', '-'),
    ('‖', '='),
    ('⟳', '@'),
    ('□', 'o'),
    ('◇', '*'),
    ('├', '|'),
    ('└', '`'),
    ('│', '|'),
    ('─', '-'),
    ('·', '.'),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    fn shows(shown: &str, printed: &str, names: &Names) -> Option<Names> {
        let output = Output::new(&lines(shown), printed);
        Search::new().all(&[&output], names)
    }

    #[test]
    fn random_letters_are_learned_and_then_the_same() {
        let none = Names::new();
        let names = shows(
            "NAME AGE\narena-x7k2p 2s",
            "NAME      AGE\narena-q4q4q   1m2s\n",
            &none,
        )
        .unwrap();
        assert_eq!(names["x7k2p"], "q4q4q");
        assert!(shows("pod/arena-x7k2p", "pod/arena-zzzz2", &names).is_none());
        assert!(
            shows("a-x7k2p a-b2b2b", "a-q4q4q a-q4q4q", &none).is_none(),
            "two names are two pods"
        );
    }

    #[test]
    fn rows_may_come_in_another_order_and_lines_may_be_left_out() {
        let none = Names::new();
        let printed = "NAME\na-44444 Running\na-55555 Gone\n";
        assert!(shows("NAME\na-x7k2p Gone\na-b4n8c Running", printed, &none).is_some());
        assert!(shows("NAME\n...\na-x7k2p Gone", printed, &none).is_some());
        assert!(shows("NAME\na-x7k2p Gone", printed, &none).is_none());
        assert!(shows("NAME\n[..] Running\n[..] Running", printed, &none).is_none());
    }

    #[test]
    fn restarts_are_a_number_whatever_kubectl_says_besides() {
        let none = Names::new();
        assert!(shows("p 1/1 Running 1 46m", "p 1/1 Running 1 (2m7s ago) 47m", &none).is_some());
        assert!(shows("p 1/1 Running 1 46m", "p 1/1 Running 2 (67s ago) 47m", &none).is_none());
    }

    #[test]
    fn which_of_two_it_was_may_show_later() {
        let mut memory = Memory::default();
        assert!(memory.fits(&lines("a-x7k2p up\na-b4n8c up"), "a-44444 up\na-55555 up"));
        assert_eq!(memory.names["x7k2p"], "44444");
        assert!(memory.fits(&lines("run-x7k2p"), "run-55555"));
        assert_eq!(
            memory.in_the_world("why a-x7k2p -l i=x7k2p"),
            "why a-55555 -l i=55555"
        );
        assert!(
            !memory.fits(&lines("run-x7k2p"), "run-44444"),
            "it was typed as the other"
        );
    }

    #[test]
    fn outputs_that_are_compared_again_take_no_name_from_one_another() {
        let mut memory = Memory::default();
        // `q9w5d` is off, and then on again.
        assert!(memory.fits(&lines("a-b4n8c on\na-q9w5d off"), "a-44444 off\na-55555 on"));
        assert!(memory.fits(&lines("a-b4n8c on\na-q9w5d on"), "a-44444 on\na-55555 on"));
        // Two pods are confused, and a later output distinguishes them.
        assert!(memory.fits(&lines("c-d6h2k on\nc-z4r9j on"), "c-66666 on\nc-77777 on"));
        assert!(memory.fits(&lines("c-d6h2k off\nc-z4r9j on"), "c-66666 on\nc-77777 off"));
        assert_eq!(memory.names["q9w5d"], "44444");
        assert_eq!(memory.names["d6h2k"], "77777");
        // `d6h2k` has another name.
        assert!(!memory.fits(&lines("a-q9w5d c-d6h2k"), "a-44444 c-66666"));
    }

    #[test]
    fn what_is_no_duration_has_to_be_the_same() {
        let none = Names::new();
        assert!(
            shows(
                "at 2026-11-21T15:57:50Z by 10.0.0.12",
                "at 2027-01-01T00:00:00Z by 127.3.4.5",
                &none
            )
            .is_some()
        );
        assert!(shows("3 pods", "4 pods", &none).is_none());
        assert!(
            shows(
                "\"3\" does not satisfy (1 failed > 0)",
                "\"3\" does not satisfy (1 failed > 0)",
                &none
            )
            .is_some()
        );
    }
}
