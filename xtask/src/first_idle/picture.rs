//! `docs/pictures/first-idle.svg`: the pods left over time, with `Ranked` and with `FirstIdle`.

use std::fmt::Write as _;

use super::{Point, Policy, Results, Row};

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 400.0;
/// Edges of the plot.
const LEFT: f64 = 64.0;
const RIGHT: f64 = 736.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 344.0;
/// Minutes between two lines of the grid.
const STEP: u32 = 20;
/// Number of lines of the grid above the pods that stay.
const LINES: u32 = 5;

/// Colours for light and dark pages, which the viewer selects. The background is transparent.
const STYLE: &str = "\
text{fill:#1f2328}.grid{stroke:#d1d9e0}.line{fill:none;stroke-width:2}.band{stroke:none;fill-opacity:.22}
.line.ranked{stroke:#bc4c00}.band.ranked{fill:#bc4c00}.line.first-idle{stroke:#0969da}.band.first-idle{fill:#0969da}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.grid{stroke:#3d444d}
.line.ranked{stroke:#f0883e}.band.ranked{fill:#f0883e}.line.first-idle{stroke:#58a6ff}.band.first-idle{fill:#58a6ff}}
";

/// Maps minutes and pods to the plot.
struct Scale {
    minutes: f64,
    least: f64,
    most: f64,
}

impl Scale {
    fn x(&self, minutes: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * minutes / self.minutes
    }

    fn y(&self, pods: f64) -> f64 {
        BOTTOM - (BOTTOM - TOP) * (pods - self.least) / (self.most - self.least)
    }

    fn point(&self, point: &Point, pods: f64) -> String {
        format!(
            "{:.1},{:.1}",
            self.x(f64::from(point.second) / 60.0),
            self.y(pods)
        )
    }
}

/// Draws the picture.
pub(super) fn draw(results: &Results) -> Result<String, String> {
    let shown = [(Policy::Ranked, "ranked"), (Policy::FirstIdle, "first-idle")];
    let mut rows = Vec::new();
    for (policy, class) in shown {
        let row = results.row(policy);
        rows.push((
            row.ok_or_else(|| format!("there are no results of {policy:?}"))?,
            class,
        ));
    }
    let points = rows.iter().flat_map(|(row, _)| &row.curve);
    let end = points.map(|point| point.second.div_ceil(60)).max().unwrap_or(0);
    let minutes = end.div_ceil(STEP).max(1) * STEP;
    #[expect(clippy::cast_precision_loss, reason = "few pods")]
    let (most, least) = (results.pods as f64, (results.pods - results.pods / 2) as f64);
    let scale = Scale {
        minutes: f64::from(minutes),
        least,
        most,
    };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"13\" role=\"img\">\n\
         <title>Pods left after replicas is lowered from {most} to {least}: Ranked and FirstIdle</title>\n\
         <style>\n{STYLE}</style>\n"
    );
    grid(&mut svg, &scale, minutes);
    for (row, class) in &rows {
        curve(&mut svg, &scale, row, class);
    }
    for (place, (row, class)) in (0_u8..).zip(&rows) {
        legend(&mut svg, f64::from(place), row, class, results.seeds);
    }
    svg.push_str("</svg>\n");
    Ok(svg)
}

fn grid(svg: &mut String, scale: &Scale, minutes: u32) {
    for line in 0..=LINES {
        let pods = scale.least + (scale.most - scale.least) * f64::from(line) / f64::from(LINES);
        let (y, label) = (scale.y(pods), LEFT - 8.0);
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text x=\"{label}\" y=\"{:.1}\" text-anchor=\"end\">{pods:.0}</text>",
            y + 4.0
        );
    }
    for minute in (0..=minutes).step_by(STEP as usize) {
        let (x, label) = (scale.x(f64::from(minute)), BOTTOM + 20.0);
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{BOTTOM}\"/>\
             <text x=\"{x:.1}\" y=\"{label}\" text-anchor=\"middle\">{minute}</text>"
        );
    }
    let (middle, under, beside) = (
        f64::midpoint(LEFT, RIGHT),
        BOTTOM + 42.0,
        f64::midpoint(TOP, BOTTOM),
    );
    let _ = writeln!(
        svg,
        "<text x=\"{middle}\" y=\"{under}\" text-anchor=\"middle\">minutes since replicas was lowered</text>\n\
         <text transform=\"translate(16 {beside}) rotate(-90)\" text-anchor=\"middle\">pods left</text>"
    );
}

/// Draws the mean as a line, and the range as a band.
fn curve(svg: &mut String, scale: &Scale, row: &Row, class: &str) {
    let points = |pods: fn(&Point) -> f64| -> Vec<String> {
        let points = row.curve.iter();
        points.map(|point| scale.point(point, pods(point))).collect()
    };
    let mut band = points(|point| point.left.max);
    band.extend(points(|point| point.left.min).into_iter().rev());
    let mean = points(|point| point.left.mean);
    let _ = writeln!(
        svg,
        "<polygon class=\"band {class}\" points=\"{}\"/>\n<polyline class=\"line {class}\" points=\"{}\"/>",
        band.join(" "),
        mean.join(" ")
    );
}

/// Names the line at a place of the upper right corner, which no line reaches.
fn legend(svg: &mut String, place: f64, row: &Row, class: &str, seeds: usize) {
    let (x, y) = (LEFT + 250.0, TOP + 24.0 + 24.0 * place);
    let name = match row.policy {
        Policy::Ranked => "Ranked",
        Policy::FirstIdle => "FirstIdle",
        Policy::NoHook => "no hook",
    };
    let _ = writeln!(
        svg,
        "<line class=\"line {class}\" x1=\"{x}\" x2=\"{}\" y1=\"{}\" y2=\"{}\"/>\
         <text x=\"{}\" y=\"{y}\">{name}: the last pod is gone after {} min, {seeds} seeds</text>",
        x + 24.0,
        y - 4.0,
        y - 4.0,
        x + 32.0,
        row.all_gone
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::first_idle::tests::sample;

    #[test]
    fn both_policies_are_drawn_within_the_plot() {
        let svg = draw(&sample()).unwrap();
        for class in ["ranked", "first-idle"] {
            let line = format!("<polyline class=\"line {class}\" points=\"");
            let points = svg.split_once(&line).unwrap().1.split('"').next().unwrap();
            let points: Vec<(f64, f64)> = points
                .split(' ')
                .map(|point| point.split_once(',').unwrap())
                .map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap()))
                .collect();
            assert_eq!(points.len(), 3, "{class}");
            assert_eq!(points[0], (LEFT, TOP), "all pods are left at first");
            let is_inside = |(x, y): &(f64, f64)| (LEFT..=RIGHT).contains(x) && (TOP..=BOTTOM).contains(y);
            assert!(points.iter().all(is_inside), "{points:?}");
            assert!(
                points.is_sorted_by(|one, other| one.0 < other.0 && one.1 < other.1),
                "{points:?}"
            );
        }
        assert!(
            svg.contains("Ranked: the last pod is gone after 79 (78 to 80) min"),
            "{svg}"
        );
    }

    #[test]
    fn a_policy_without_results_is_an_error() {
        let mut results = sample();
        results.rows.truncate(1);
        assert!(draw(&results).is_err());
    }
}
