//! Recording of scrapes of real processes, in the time of the rules.
//!
//! A run of seconds stands for an hour or more: one answer of a process may be the sample of many scrapes. Nothing
//! happens meanwhile, so counters stand still. A process that does not answer leaves a gap, as in Prometheus: `up` is
//! 0, and its series end with a staleness marker.
//!
//! Gauges whose names end in `_timestamp_seconds` are times of the run. They are moved to the time of the rules, which
//! promtool begins at 0: see [`Recording::moved`].

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use futures::future::join_all;
use jiff::Timestamp;
use serde_json::{Value, json};

/// Interval of scrapes, in s.
pub(crate) const INTERVAL: usize = 30;
/// Time within which a process answers a scrape.
const ANSWER: Duration = Duration::from_secs(2);
/// Namespace of the release, unless a case has two.
const NAMESPACE: &str = "hookgate";

/// Returns the number of scrapes in this time.
pub(crate) const fn minutes(count: usize) -> usize {
    count * 60 / INTERVAL
}

/// Process that is scraped, with the labels that the chart's monitors give to its series.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) component: &'static str,
    namespace: &'static str,
    pod: String,
    address: SocketAddr,
}

impl Target {
    pub(crate) fn new(component: &'static str, pod: &str, address: SocketAddr) -> Self {
        Self {
            component,
            namespace: NAMESPACE,
            pod: pod.to_owned(),
            address,
        }
    }

    /// Returns the same process as one of a release in another namespace.
    pub(crate) fn of_release(&self, namespace: &'static str) -> Self {
        Self {
            namespace,
            ..self.clone()
        }
    }

    /// Returns the text of `/metrics`; `None` without an answer.
    async fn read(&self) -> Option<String> {
        let client = test_kit::http_client().ok()?;
        let request = client.get(format!("http://{}/metrics", self.address));
        let answer = async {
            let answer = request.send().await?.error_for_status()?;
            answer.text().await
        };
        tokio::time::timeout(ANSWER, answer).await.ok()?.ok()
    }

    /// Returns a series with the labels of the target. Its own namespace takes precedence, as with `honor_labels`.
    fn series(&self, name: &str, own: &str) -> String {
        let Self { component, pod, .. } = self;
        let target =
            format!("container=\"{component}\",instance=\"{pod}:8080\",job=\"{component}\",pod=\"{pod}\"");
        let has_namespace = own.starts_with("namespace=") || own.contains(",namespace=");
        let namespace = format!("namespace=\"{}\"", self.namespace);
        let mut labels = vec![own, target.as_str()];
        labels.extend((!has_namespace).then_some(namespace.as_str()));
        labels.retain(|labels| !labels.is_empty());
        format!("{name}{{{}}}", labels.join(","))
    }

    /// Returns series and value of a line.
    fn sample(&self, line: &str) -> Option<(String, f64)> {
        let (series, value) = line.rsplit_once(' ')?;
        let value = value.parse::<f64>().ok().filter(|value| value.is_finite())?;
        let (name, own) = series
            .strip_suffix('}')
            .and_then(|series| series.split_once('{'))
            .unwrap_or((series, ""));
        Some((self.series(name, own), value))
    }
}

/// Scrape that has taken place.
#[derive(Debug, Clone, Copy)]
struct Scrape {
    /// Time of the run, in seconds since 1970.
    at: f64,
    /// Time of the rules, in s.
    rule_time: f64,
}

/// Samples of all series so far.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    series: BTreeMap<String, Vec<Option<f64>>>,
    /// Number of samples so far.
    length: usize,
    scrapes: Vec<Scrape>,
}

impl Recording {
    /// Scrapes these processes. The answers are the samples of as many scrapes. Processes that are not
    /// named are no targets.
    pub(crate) async fn scrape(&mut self, targets: &[&Target], times: usize) {
        let answers = join_all(targets.iter().map(|target| target.read())).await;
        self.scrapes.push(Scrape {
            at: Timestamp::now().as_duration().as_secs_f64(),
            rule_time: seconds(self.length),
        });
        for (target, answer) in targets.iter().zip(answers) {
            let up = if answer.is_some() { 1.0 } else { 0.0 };
            self.add(target.series("up", ""), up, times);
            let text = answer.unwrap_or_default();
            let lines = text.lines().filter(|line| !line.starts_with('#'));
            for (series, value) in lines.filter_map(|line| target.sample(line)) {
                self.add(series, value, times);
            }
        }
        self.length += times;
    }

    fn add(&mut self, series: String, value: f64, times: usize) {
        let samples = self.series.entry(series).or_default();
        samples.resize(self.length, None);
        samples.resize(self.length + times, Some(value));
    }

    /// Returns the length in s.
    pub(crate) fn seconds(&self) -> usize {
        self.length * INTERVAL
    }

    /// Returns all series, as promtool reads them.
    pub(crate) fn input_series(&self) -> Vec<Value> {
        let series = self.series.iter().map(|(series, samples)| {
            let mut samples = samples.clone();
            samples.resize(self.length, None);
            let name = series.split('{').next().unwrap_or_default();
            if name.ends_with("_timestamp_seconds") {
                for time in samples.iter_mut().flatten() {
                    *time = self.moved(*time);
                }
            }
            json!({ "series": series, "values": notation(&samples) })
        });
        series.collect()
    }

    /// Moves a time of the run to the time of the rules. Between two scrapes, it keeps its proportion; after the last
    /// one, its distance, as the expiry of a certificate. Times before the first one become 1 s, since 0 and below mean
    /// that there is none.
    fn moved(&self, time: f64) -> f64 {
        if time <= 0.0 {
            return 0.0;
        }
        let after = self.scrapes.iter().position(|scrape| scrape.at >= time);
        let after = after.unwrap_or(self.scrapes.len());
        let (before, next) = (
            after.checked_sub(1).and_then(|at| self.scrapes.get(at)),
            self.scrapes.get(after),
        );
        let moved = match (before, next) {
            (None, _) => 0.0,
            (Some(last), None) => last.rule_time + time - last.at,
            (Some(before), Some(next)) => {
                let part = (time - before.at) / (next.at - before.at);
                before.rule_time + part * (next.rule_time - before.rule_time)
            }
        };
        moved.max(1.0)
    }
}

fn seconds(scrapes: usize) -> f64 {
    f64::from(u32::try_from(scrapes * INTERVAL).unwrap())
}

/// Writes samples in the notation of promtool: `1x2` is `1 1 1`, `_x2` is two gaps. The first sample of a gap is a
/// staleness marker.
fn notation(samples: &[Option<f64>]) -> String {
    let mut words = Vec::new();
    for (place, run) in samples.chunk_by(|one, other| one == other).enumerate() {
        let gap = match run {
            [Some(value), ..] => {
                words.push(format!("{value}x{}", run.len() - 1));
                0
            }
            // Before the first sample, there is nothing to end.
            _ if place == 0 => run.len(),
            _ => {
                words.push("stale".to_owned());
                run.len() - 1
            }
        };
        words.extend((gap > 0).then(|| format!("_x{gap}")));
    }
    words.join(" ")
}

#[test]
fn runs_of_samples_and_gaps_are_written_shortly() {
    let mut samples = vec![None, None, Some(1.0), Some(1.0), Some(1.0), Some(2.5)];
    samples.extend([None, Some(0.0), None, None, None]);
    assert_eq!(notation(&samples), "_x2 1x2 2.5x0 stale 0x0 stale _x2");
}

#[test]
fn series_get_the_labels_of_their_target() {
    let target = Target::new("hook-operator", "a", ([127, 0, 0, 1], 8080).into());
    let labels = "container=\"hook-operator\",instance=\"a:8080\",job=\"hook-operator\",pod=\"a\"";
    let line = "hookgate_leader{component=\"hook-operator\"} 1";
    let series = format!("hookgate_leader{{component=\"hook-operator\",{labels},namespace=\"hookgate\"}}");
    assert_eq!(target.sample(line), Some((series, 1.0)));
    let line = "hookgate_gamedeployment_blocked{namespace=\"games\",condition=\"InvalidSpec\"} 0";
    let series =
        format!("hookgate_gamedeployment_blocked{{namespace=\"games\",condition=\"InvalidSpec\",{labels}}}");
    assert_eq!(target.sample(line), Some((series, 0.0)));
    let series = format!("up{{{labels},namespace=\"hookgate\"}}");
    assert_eq!(target.sample("up 1"), Some((series, 1.0)));
    assert_eq!(target.sample("up NaN"), None);
}

#[test]
fn times_of_the_run_become_times_of_the_rules() {
    let scrape = |at, rule_time| Scrape { at, rule_time };
    let recording = Recording {
        scrapes: vec![scrape(5000.0, 0.0), scrape(5001.0, 30.0), scrape(5003.0, 630.0)],
        ..Recording::default()
    };
    let moved = [0.0, 4000.0, 5000.0, 5001.0, 5002.0, 5013.0].map(|time| recording.moved(time));
    let expected = [0.0, 1.0, 1.0, 30.0, 330.0, 640.0];
    for (moved, expected) in moved.into_iter().zip(expected) {
        assert!((moved - expected).abs() < 1e-6, "{moved} is not {expected}");
    }
}
