//! Draws the dashboards with the data of the run, one SVG each. The drawings resemble Grafana, so that the
//! documents need no Grafana.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use crate::files::{DASHBOARDS, Panel, panels};
use crate::run::{Seen, points};

const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/pictures");
/// Width of one of the 24 columns, and height of one grid row.
const COLUMN: f64 = 50.0;
const ROW: f64 = 30.0;
const GAP: f64 = 6.0;
const COLOURS: [&str; 8] = [
    "#73bf69", "#f2cc0c", "#5794f2", "#ff780a", "#f2495c", "#b877d9", "#37872d", "#8ab8ff",
];
/// Maximum number of legend lines or table rows.
const LINES: usize = 8;

/// Draws the pictures if `DASHBOARD_PICTURES=write` is set.
pub(crate) async fn draw_if_asked(seen: &Seen) {
    if std::env::var("DASHBOARD_PICTURES").as_deref() != Ok("write") {
        return;
    }
    std::fs::create_dir_all(DIRECTORY).unwrap();
    for (name, text) in DASHBOARDS {
        let path = Path::new(DIRECTORY).join(format!("{name}.svg"));
        std::fs::write(&path, picture(seen, &panels(text)).await).unwrap();
        println!("wrote docs/pictures/{name}.svg");
    }
}

async fn picture(seen: &Seen, panels: &[Panel]) -> String {
    let bottom = panels.iter().map(|panel| panel.place[1] + panel.place[3]);
    let (width, height) = (24.0 * COLUMN, bottom.fold(0.0, f64::max) * ROW);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"#111217\"/>\n"
    );
    for panel in panels {
        let mut lines = Vec::new();
        for (expression, legend) in &panel.queries {
            for series in seen.range(expression).await.unwrap() {
                let points = points(&series);
                if !points.is_empty() {
                    let legend = legend_of(legend, &series["metric"]);
                    let legend = if legend.is_empty() {
                        panel.title.clone()
                    } else {
                        legend
                    };
                    lines.push((legend, points));
                }
            }
        }
        // Highest first, because the legend shows only some of many.
        let most = |line: &Line| line.1.iter().fold(0.0_f64, |most, point| most.max(point.1));
        lines.sort_by(|a, b| most(b).total_cmp(&most(a)));
        svg += &drawn(panel, &lines);
    }
    svg + "</svg>\n"
}

type Line = (String, Vec<(f64, f64)>);

/// Fills the labels into a legend.
fn legend_of(form: &str, labels: &Value) -> String {
    let mut legend = if form == "__auto" {
        String::new()
    } else {
        form.to_owned()
    };
    for (label, value) in labels.as_object().into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        if form == "__auto" {
            let _ = write!(legend, "{}{value}", if legend.is_empty() { "" } else { " " });
        }
        legend = legend.replace(&format!("{{{{{label}}}}}"), value);
    }
    // Grafana shows nothing for a missing label.
    let kept: Vec<&str> = legend.split(' ').filter(|word| !word.starts_with("{{")).collect();
    kept.join(" ")
}

fn drawn(panel: &Panel, lines: &[Line]) -> String {
    let [x, y, w, h] = panel.place;
    let (x, y, w, h) = (x * COLUMN, y * ROW, w * COLUMN, h * ROW);
    let title = escaped(&panel.title);
    if panel.kind == "row" {
        return format!(
            "<text x=\"{}\" y=\"{}\" fill=\"#ccccdc\" font-size=\"15\" font-weight=\"bold\">{title}</text>\n",
            x + GAP,
            y + h - 9.0
        );
    }
    let frame = format!(
        "<g transform=\"translate({x} {y})\"><rect x=\"{a}\" y=\"{a}\" width=\"{}\" height=\"{}\" rx=\"2\" \
         fill=\"#181b1f\" stroke=\"#2c3235\"/><text x=\"12\" y=\"20\" fill=\"#ccccdc\" font-size=\"12\">{title}</text>",
        w - GAP,
        h - GAP,
        a = GAP / 2.0
    );
    let inside = match panel.kind.as_str() {
        "stat" => stat(panel, lines, w, h),
        "table" => table(lines, w),
        _ => chart(panel, lines, w, h),
    };
    format!("{frame}{inside}</g>\n")
}

fn last(line: &Line) -> f64 {
    line.1.last().map_or(0.0, |point| point.1)
}

fn stat(panel: &Panel, lines: &[Line], w: f64, h: f64) -> String {
    let value = lines.first().map_or(0.0, last);
    let reached = panel.steps.iter().rfind(|(from, _)| value >= *from);
    let colour = match reached.map(|(_, colour)| colour.as_str()) {
        Some("red") => COLOURS[4],
        Some("orange") => COLOURS[3],
        _ => COLOURS[0],
    };
    format!(
        "<text x=\"{}\" y=\"{}\" fill=\"{}\" font-size=\"36\" text-anchor=\"middle\">{}</text>",
        w / 2.0,
        h / 2.0 + 22.0,
        colour,
        amount(value, &panel.unit)
    )
}

fn table(lines: &[Line], w: f64) -> String {
    let mut text = String::new();
    let mut sorted: Vec<&Line> = lines.iter().collect();
    sorted.sort_by(|a, b| last(b).total_cmp(&last(a)));
    for (place, line) in sorted.into_iter().take(LINES + 2).enumerate() {
        let y = 40.0 + 18.0 * f64::from(u32::try_from(place).unwrap());
        let _ = write!(
            text,
            "<text x=\"12\" y=\"{y}\" fill=\"#ccccdc\">{}</text><text x=\"{}\" y=\"{y}\" fill=\"#ccccdc\" \
             text-anchor=\"end\">{}</text>",
            escaped(&line.0),
            w - 16.0,
            amount(last(line), "short")
        );
    }
    text
}

fn chart(panel: &Panel, lines: &[Line], w: f64, h: f64) -> String {
    let shown = lines.len().min(LINES);
    let legend = f64::from(u32::try_from(shown.div_ceil(2)).unwrap()) * 14.0;
    let (left, top, right, bottom) = (52.0, 30.0, w - 14.0, h - legend - 24.0);
    let all = || lines.iter().flat_map(|line| &line.1);
    let (begin, end) = all().fold((f64::MAX, f64::MIN), |(a, b), point| {
        (a.min(point.0), b.max(point.0))
    });
    let most = all().fold(0.0_f64, |most, point| most.max(point.1));
    let most = if most > 0.0 { most * 1.1 } else { 1.0 };
    let place = |&(at, value): &(f64, f64)| {
        let x = left + (right - left) * (at - begin) / (end - begin).max(1.0);
        (x, bottom - (bottom - top) * value / most)
    };
    let mut svg = String::new();
    for quarter in [0.0, 0.5, 1.0] {
        let y = bottom - (bottom - top) * quarter;
        let _ = write!(
            svg,
            "<path d=\"M{left} {y:.1}H{right}\" stroke=\"#2c3235\"/><text x=\"{}\" y=\"{:.1}\" fill=\"#8e8e99\" \
             text-anchor=\"end\">{}</text>",
            left - 5.0,
            y + 4.0,
            amount(most * quarter, &panel.unit)
        );
    }
    let _ = write!(
        svg,
        "<text x=\"{left}\" y=\"{y}\" fill=\"#8e8e99\">0 s</text><text x=\"{right}\" y=\"{y}\" fill=\"#8e8e99\" \
         text-anchor=\"end\">{:.0} s</text>",
        end - begin,
        y = bottom + 14.0
    );
    for (number, line) in lines.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let path: Vec<String> = line
            .1
            .iter()
            .map(place)
            .map(|(x, y)| format!("{x:.1} {y:.1}"))
            .collect();
        let _ = write!(
            svg,
            "<path d=\"M{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>",
            path.join("L")
        );
        if number < LINES {
            let column = f64::from(u32::try_from(number % 2).unwrap()) * (w - 20.0) / 2.0;
            let y = bottom + 30.0 + f64::from(u32::try_from(number / 2).unwrap()) * 14.0;
            let _ = write!(
                svg,
                "<rect x=\"{}\" y=\"{}\" width=\"10\" height=\"3\" fill=\"{colour}\"/><text x=\"{}\" y=\"{y}\" \
                 fill=\"#ccccdc\">{}</text>",
                column + 12.0,
                y - 5.0,
                column + 27.0,
                escaped(&line.0)
            );
        }
    }
    svg
}

/// Formats a number with its unit, as short as possible.
fn amount(value: f64, unit: &str) -> String {
    let number = |value: f64| {
        if value >= 100.0 || value.fract() == 0.0 {
            format!("{value:.0}")
        } else if value >= 1.0 {
            format!("{value:.1}")
        } else {
            format!("{value:.2}")
        }
    };
    match unit {
        "s" if value > 0.0 && value < 1.0 => format!("{} ms", number(value * 1000.0)),
        "s" => format!("{} s", number(value)),
        "percentunit" => format!("{} %", number(value * 100.0)),
        "reqps" | "ops" | "wps" => format!("{}/s", number(value)),
        _ => number(value),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
