//! Rows of a name, a figure and, where there is one, the goal beside it.

/// A table that grows row by row.
#[derive(Default)]
pub(super) struct Table(Vec<[String; 3]>);

impl Table {
    /// Adds a row.
    pub(super) fn row(&mut self, name: &str, figure: impl ToString, goal: &str) {
        self.0
            .push([name.to_owned(), figure.to_string(), goal.to_owned()]);
    }

    /// Prints it in Markdown, aligned for a terminal.
    pub(super) fn print(&self) {
        let header = ["figure", "measured", "goal"].map(str::to_owned);
        let width = |column: usize| {
            let cells = self.0.iter().chain([&header]).filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
        };
        let widths = [width(0), width(1), width(2)];
        let line = |[name, figure, goal]: &[String; 3]| {
            let [first, second, third] = widths;
            println!("| {name:<first$} | {figure:>second$} | {goal:<third$} |");
        };
        line(&header);
        let [first, second, third] = widths.map(|width| "-".repeat(width));
        println!("| {first} | {second} | {third} |");
        self.0.iter().for_each(line);
    }
}

/// The value below which this share of the sorted values lies.
pub(super) fn percentile(sorted: &[f64], share: f64) -> f64 {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an index"
    )]
    let index = ((sorted.len() as f64 * share).ceil() as usize).saturating_sub(1);
    sorted.get(index).copied().unwrap_or(f64::NAN)
}
