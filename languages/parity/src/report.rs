//! Counts and prints verdicts. Judges nothing.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Judged;

/// Verdicts on one table.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    same: usize,
    outside: usize,
    newer: usize,
    documented: BTreeMap<&'static str, usize>,
    unexplained: Vec<String>,
    dangerous: Vec<String>,
    malformed: Vec<String>,
    /// Number of rows that strict evaluation closes, by rule.
    closed: BTreeMap<&'static str, usize>,
    /// Rows that strict evaluation changes in a way that is not allowed.
    opened: Vec<String>,
}

impl Tally {
    /// Adds the change that strict evaluation makes to a row.
    pub(crate) fn add_strict(&mut self, id: &str, change: Result<Option<&'static str>, String>) {
        match change {
            Ok(None) => {}
            Ok(Some(rule)) => *self.closed.entry(rule).or_default() += 1,
            Err(words) => self.opened.push(format!("{id}  {words}")),
        }
    }

    pub(crate) fn add(&mut self, id: &str, judged: Judged) {
        match judged {
            Judged::Same => self.same += 1,
            Judged::Outside => self.outside += 1,
            Judged::Newer => self.newer += 1,
            Judged::Documented(rule) => *self.documented.entry(rule).or_default() += 1,
            Judged::Unexplained(words) => self.unexplained.push(format!("{id}  {words}")),
            Judged::Unsafe(words) => self.dangerous.push(format!("{id}  {words}")),
            Judged::Malformed(words) => self.malformed.push(format!("{id}  {words}")),
        }
    }

    fn differences(&self) -> usize {
        self.documented.values().sum()
    }

    fn compared(&self) -> usize {
        self.same + self.newer + self.differences() + self.unexplained.len() + self.dangerous.len()
    }

    fn rows(&self) -> usize {
        self.compared() + self.outside + self.malformed.len()
    }

    /// Returns whether the table is within its limits. A table without any compared row is not.
    pub(crate) fn passes(&self, limit: u32) -> bool {
        let within = |count: usize| count * 100 <= self.compared() * usize::try_from(limit).unwrap_or(0);
        let within = within(self.differences()) && within(self.newer);
        let compared = self.compared() > 0 || self.malformed.is_empty();
        let explained = self.unexplained.is_empty() && self.dangerous.is_empty() && self.opened.is_empty();
        explained && within && compared
    }

    /// Renders the report of the table, with at most `shown` rows of each list.
    pub(crate) fn render(&self, file: &str, limit: u32, shown: usize) -> String {
        let (rows, compared) = (self.rows(), self.compared());
        let mut output = format!(
            "{file}: {}\n",
            if self.passes(limit) { "passed" } else { "FAILED" }
        );
        let mut line = |label: &str, count: usize, note: &str| {
            let _ = writeln!(output, "    {label:<24} {count:>6}  {note}");
        };
        line("rows", rows, "");
        line(
            "same",
            self.same,
            &format!("{} of what is compared", percent(self.same, compared)),
        );
        let note = format!(
            "{} of what is compared, limit {limit} %",
            percent(self.differences(), compared)
        );
        line("documented differences", self.differences(), &note);
        for (rule, count) in &self.documented {
            line(&format!("  {rule}"), *count, &percent(*count, compared));
        }
        line("as expr 1.17 says", self.newer, &percent(self.newer, compared));
        line("unexplained", self.unexplained.len(), "");
        line("unsafe", self.dangerous.len(), "");
        line("outside the comparison", self.outside, "");
        line("malformed", self.malformed.len(), "");
        let closed = self.closed.values().sum();
        line("closed by strict rules", closed, &percent(closed, compared));
        for (rule, count) in &self.closed {
            line(&format!("  {rule}"), *count, &percent(*count, compared));
        }
        line("opened by strict rules", self.opened.len(), "");
        for (label, rows) in [
            ("unsafe", &self.dangerous),
            ("unexplained", &self.unexplained),
            ("malformed", &self.malformed),
            ("opened", &self.opened),
        ] {
            for row in rows.iter().take(shown) {
                let _ = writeln!(output, "    {label}: {row}");
            }
            if rows.len() > shown {
                let _ = writeln!(
                    output,
                    "    {label}: {} more; list them with --all",
                    rows.len() - shown
                );
            }
        }
        output
    }
}

fn percent(part: usize, whole: usize) -> String {
    match (part * 1_000).checked_div(whole) {
        Some(tenths) => format!("{}.{} %", tenths / 10, tenths % 10),
        None => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(same: usize, documented: usize) -> Tally {
        let mut tally = Tally {
            same,
            ..Tally::default()
        };
        for index in 0..documented {
            tally.add(&format!("row {index}"), Judged::Documented("a-rule"));
        }
        tally
    }

    #[test]
    fn a_table_passes_up_to_its_limit() {
        assert!(tally(96, 4).passes(4));
        assert!(!tally(95, 5).passes(4));
        assert!(tally(0, 0).passes(4));
    }

    #[test]
    fn the_limit_is_of_the_rows_that_are_compared() {
        let mut tally = tally(95, 5);
        for row in 0..100 {
            tally.add(&format!("row {row}"), Judged::Outside);
        }
        assert!(!tally.passes(4));
    }

    #[test]
    fn one_unexplained_or_unsafe_row_fails_a_table() {
        for judged in [Judged::Unexplained(String::new()), Judged::Unsafe(String::new())] {
            let mut tally = tally(100, 0);
            tally.add("x", judged);
            assert!(!tally.passes(4));
        }
    }

    #[test]
    fn malformed_rows_are_reported_and_fail_only_a_table_without_any_other() {
        let mut some = tally(1, 0);
        some.add("line 7", Judged::Malformed("not JSON".to_owned()));
        assert!(some.passes(4));
        assert!(some.render("t.jsonl", 4, 20).contains("line 7  not JSON"));
        let mut none = tally(0, 0);
        none.add("line 1", Judged::Malformed("not JSON".to_owned()));
        assert!(!none.passes(4));
    }

    #[test]
    fn long_lists_are_cut() {
        let mut tally = tally(0, 0);
        for index in 0..25 {
            tally.add(&format!("id-{index}"), Judged::Unsafe("x".to_owned()));
        }
        let report = tally.render("t.jsonl", 4, 20);
        assert!(report.contains("id-19") && !report.contains("id-20") && report.contains("5 more"));
        assert!(tally.render("t.jsonl", 4, usize::MAX).contains("id-24"));
    }
}
