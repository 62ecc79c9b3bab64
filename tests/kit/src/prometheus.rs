//! Real Prometheus on loopback.

use std::fs;
use std::io;
use std::time::Duration;

use serde_json::{Value, json};

use crate::http_client::http_client;
use crate::keeper::KeptDirectory;
use crate::process::{self, Process, Program};
use crate::wait::{TimedOut, within};
use crate::{assets, ports};

const READY_IN: Duration = Duration::from_secs(30);
const START_ATTEMPTS: u32 = 3;

/// Error from starting or querying Prometheus.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program is missing.
    #[error("failed to find Prometheus")]
    Assets(#[from] assets::Error),
    /// Failed to write a file or find a port.
    #[error("failed to prepare Prometheus' files")]
    Prepare(#[from] io::Error),
    /// Failed to start.
    #[error("failed to start Prometheus")]
    Process(#[from] process::Error),
    /// Started, but ended or was not ready in time.
    #[error("failed to see Prometheus ready; its last output:\n{tail}")]
    NotReady {
        /// Last lines of its output.
        tail: String,
        /// Last observed state.
        source: TimedOut,
    },
    /// Failed to send a query or read its response.
    #[error("failed to query Prometheus")]
    Query(#[from] reqwest::Error),
    /// A query returned an error.
    #[error("Prometheus refused the query {query}: {answer}")]
    Refused {
        /// Expression.
        query: String,
        /// Response.
        answer: Value,
    },
}

/// Scrape configuration: jobs with their targets.
#[derive(Debug, Clone)]
pub struct Scrape {
    every: Duration,
    jobs: Vec<Value>,
    rules: Vec<String>,
}

impl Scrape {
    /// Returns a configuration without jobs and an interval of 100 milliseconds.
    pub fn nothing() -> Self {
        Self {
            every: Duration::from_millis(100),
            jobs: Vec::new(),
            rules: Vec::new(),
        }
    }

    /// Adds a job that scrapes `/metrics` of its targets (`HOST:PORT`).
    #[must_use]
    pub fn job<T: ToString>(mut self, name: &str, targets: impl IntoIterator<Item = T>) -> Self {
        let targets: Vec<String> = targets.into_iter().map(|target| target.to_string()).collect();
        self.jobs
            .push(json!({ "job_name": name, "static_configs": [{ "targets": targets }] }));
        self
    }

    /// Sets the interval, which is also the timeout of a scrape and the interval of rules.
    #[must_use]
    pub fn every(mut self, interval: Duration) -> Self {
        self.every = interval;
        self
    }

    /// Adds a rule file.
    #[must_use]
    pub fn rules(mut self, file: &str) -> Self {
        self.rules.push(file.to_owned());
        self
    }

    /// Renders the configuration file. JSON is valid YAML.
    pub fn text(&self) -> String {
        let every = format!("{}ms", self.every.as_millis().max(1));
        let global =
            json!({ "scrape_interval": every, "scrape_timeout": every, "evaluation_interval": every });
        json!({ "global": global, "scrape_configs": self.jobs, "rule_files": self.rules }).to_string()
    }
}

/// Running Prometheus. It ends on drop, and when the test process ends in any other way.
#[derive(Debug)]
pub struct Prometheus {
    process: Process,
    url: String,
    _directory: KeptDirectory,
}

impl Prometheus {
    /// Starts Prometheus, and downloads the program first if it is missing. Returns once it answers queries.
    pub async fn start(scrape: &Scrape) -> Result<Self, Error> {
        Self::start_with(&scrape.text()).await
    }

    /// Starts Prometheus like [`start`](Self::start), with a complete configuration file.
    pub async fn start_with(configuration: &str) -> Result<Self, Error> {
        let program = tokio::task::spawn_blocking(assets::prometheus)
            .await
            .map_err(io::Error::other)??;
        let mut attempt = 1;
        loop {
            match Self::try_start(Program::new(&program), configuration).await {
                // Another process took the port between our check and the start.
                Err(Error::NotReady { tail, .. })
                    if attempt < START_ATTEMPTS && tail.contains("address already in use") =>
                {
                    attempt += 1;
                }
                result => return result,
            }
        }
    }

    async fn try_start(program: Program, configuration: &str) -> Result<Self, Error> {
        let directory = KeptDirectory::new("prometheus")?;
        let path = directory.path();
        let file = path.join("prometheus.yml");
        fs::write(&file, configuration)?;
        let address = format!("127.0.0.1:{}", ports::free()?);
        let program = program
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", path.join("data").display()))
            .arg(format!("--web.listen-address={address}"));
        let process = Process::start_logging_to(program, path, "prometheus")?;
        let started = Self {
            process,
            url: format!("http://{address}"),
            _directory: directory,
        };
        started.await_ready().await?;
        Ok(started)
    }

    async fn await_ready(&self) -> Result<(), Error> {
        let client = http_client()?;
        let ready = within(READY_IN, || async {
            if let Some(status) = self.process.exit_status().ok().flatten() {
                return Ok(Err(format!("it ended with {status}")));
            }
            let answer = client
                .get(format!("{}/-/ready", self.url))
                .send()
                .await
                .map_err(|error| error.to_string())?;
            if answer.status().is_success() {
                Ok(Ok(()))
            } else {
                Err(answer.status().to_string())
            }
        });
        let seen = match ready.await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(last_seen)) => TimedOut {
                deadline: READY_IN,
                attempts: 1,
                last_seen,
            },
            Err(timed_out) => timed_out,
        };
        Err(Error::NotReady {
            tail: self.process.tail(20),
            source: seen,
        })
    }

    /// Returns `http://127.0.0.1:PORT`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the process, to read its output or pause it.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Evaluates an expression now and returns the response's `data`, with `resultType` and `result`.
    pub async fn query(&self, expression: &str) -> Result<Value, Error> {
        self.ask("query", expression, &[]).await
    }

    /// Evaluates an expression over a range, from `start` to `end` in seconds since 1970, every `step`
    /// seconds.
    pub async fn query_range(
        &self,
        expression: &str,
        (start, end): (f64, f64),
        step: f64,
    ) -> Result<Value, Error> {
        let range = [("start", start), ("end", end), ("step", step)];
        self.ask("query_range", expression, &range).await
    }

    async fn ask(&self, path: &str, expression: &str, more: &[(&str, f64)]) -> Result<Value, Error> {
        let mut url =
            reqwest::Url::parse(&format!("{}/api/v1/{path}", self.url)).map_err(io::Error::other)?;
        url.query_pairs_mut().append_pair("query", expression);
        for (name, value) in more {
            url.query_pairs_mut().append_pair(name, &value.to_string());
        }
        let mut answer: Value = http_client()?.get(url).send().await?.json().await?;
        if answer["status"] == "success" {
            return Ok(answer["data"].take());
        }
        Err(Error::Refused {
            query: expression.to_owned(),
            answer,
        })
    }

    /// Returns the values of an instant vector, in response order; empty while there are none.
    pub async fn values(&self, expression: &str) -> Result<Vec<f64>, Error> {
        let data = self.query(expression).await?;
        let samples = data["result"].as_array().cloned().unwrap_or_default();
        let value = |sample: &Value| sample["value"][1].as_str().and_then(|text| text.parse().ok());
        Ok(samples.iter().filter_map(value).collect())
    }
}
