//! Responses of the games, and the referee's record of them.

use std::time::Duration;

use hook_core::answer::{
    AnswerHead, ContentType, MeasurementFailure, MeasurementReason, ProviderResponse, interpret_prometheus,
    interpret_web,
};
use hook_core::decide::{MeasurementKey, MeasurementOutcome};
use hook_core::judge::{MeasurementResult, Rules, judge};
use hook_core::render::{References, Rendered, render};
use hook_core::request::{HttpRequest, ProviderRequest};
use jiff::{SignedDuration, Timestamp};
use json_path::JsonPath;
use redact::Redactor;
use serde_json::{Value, json};
use shared_api::Phase;

use crate::hooks::{Of, SessionRequest};
use crate::kubelet::Machine;
use crate::questions::{ALL, PLAYERS_OF_ROOMS, TOO_MANY_SEATS_TAKEN};
use crate::world::World;

/// Behaviour of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    Answers,
    Stumbles,
    Hangs,
    Babbles,
    /// Returns a valid response about something else, without any of the keys.
    Forgets,
    /// Has counted nothing yet: 0 of 0.
    Divides,
    /// Omits the players of a room that does not respond. With Prometheus, a store does not respond, and
    /// there is a warning.
    LeavesOut,
}

/// State that a pod's game reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Behaviour {
    pub players: u8,
    pub manner: Manner,
}

impl Behaviour {
    pub const YES: Self = Self {
        players: 0,
        manner: Manner::Answers,
    };

    pub const NO: Self = Self {
        players: 9,
        manner: Manner::Answers,
    };

    pub fn any(dice: &mut fastrand::Rng) -> Self {
        match dice.u8(..15) {
            0..=5 => Self::YES,
            6 | 7 => Self::NO,
            8 => Self {
                players: 3,
                manner: Manner::Answers,
            },
            9 => Self {
                players: 0,
                manner: Manner::Stumbles,
            },
            10 => Self {
                players: 0,
                manner: Manner::Hangs,
            },
            11 => Self {
                players: 0,
                manner: Manner::Babbles,
            },
            12 => Self {
                players: 9,
                manner: Manner::Forgets,
            },
            13 => Self {
                players: 9,
                manner: Manner::Divides,
            },
            _ => Self {
                players: 9,
                manner: Manner::LeavesOut,
            },
        }
    }
}

/// Measurement in flight.
#[derive(Debug)]
pub struct Call {
    pub process: usize,
    pub incarnation: u64,
    pub of: Of,
    /// UID of the run.
    pub uid: String,
    pub key: MeasurementKey,
    pub number: u64,
    began: Timestamp,
    rendered: Result<Rendered, MeasurementFailure>,
    conditions: (Option<String>, Option<String>),
    on_no_data: Phase,
}

/// Measurement, as recorded by the world.
#[derive(Debug, Clone, PartialEq)]
pub struct Taken {
    pub key: MeasurementKey,
    pub phase: Phase,
    pub began: Timestamp,
    pub ended: Timestamp,
    /// UID of the pod that responded.
    pub pod: Option<String>,
}

impl World {
    /// Starts a measurement for a process.
    pub fn ask(&mut self, process: usize, wish: SessionRequest) {
        let SessionRequest::Measure {
            of,
            run,
            resolved,
            key,
            number,
        } = wish
        else {
            return;
        };
        let Ok(resolved) = resolved.as_ref() else { return };
        let Some(metric) = resolved.metric(&key.metric) else {
            return;
        };
        let written = run.spec.metrics.iter().find(|metric| metric.name == key.metric);
        let conditions =
            written.map(|metric| (metric.success_condition.clone(), metric.failure_condition.clone()));
        self.calls.push(Call {
            process,
            incarnation: self.processes[process].incarnation,
            of,
            uid: run.metadata.uid.clone().unwrap_or_default(),
            number,
            began: self.now,
            rendered: render(metric, &resolved.arguments, &References::new()),
            conditions: conditions.unwrap_or_default(),
            on_no_data: metric.on_no_data,
            key,
        });
    }

    /// Delivers the response to one measurement, if there is one by now.
    pub fn answer(&mut self, at: usize) {
        let call = &self.calls[at];
        let host = match &call.rendered {
            Ok(rendered) => match &rendered.request {
                ProviderRequest::Http(HttpRequest::Web(web)) => host_of(&web.url).to_owned(),
                ProviderRequest::Http(HttpRequest::Prometheus(server)) => host_of(&server.address).to_owned(),
                ProviderRequest::Job(_)
                | ProviderRequest::Read(_)
                | ProviderRequest::Annotate(_)
                | ProviderRequest::Exec(_) => {
                    unreachable!("no hook of the simulation acts in the cluster")
                }
            },
            Err(_) => String::new(),
        };
        let pod = self
            .server
            .pods
            .iter()
            .find(|pod| pod.read.ip.as_deref() == Some(&host));
        let pod = pod.map(|pod| pod.id.uid.clone());
        let runs = pod
            .as_ref()
            .and_then(|uid| self.machines.get(uid))
            .is_some_and(Machine::runs);
        let behaviour = if host == "canary" {
            Some(self.canary_behaviour)
        } else {
            pod.as_ref().filter(|_| runs).map(|uid| self.behaviour(uid))
        };
        let hangs = behaviour.is_some_and(|behaviour| behaviour.manner == Manner::Hangs);
        let late = self.now >= call.began + SignedDuration::from_secs(10);
        if hangs && !late {
            return;
        }
        let call = self.calls.swap_remove(at);
        let behaviour = behaviour.filter(|_| !hangs);
        let verdict = verdict(&call, behaviour, hangs, self.now);
        let expected = expected(&call, behaviour);
        assert_eq!(
            verdict.phase, expected,
            "{behaviour:?} was judged {verdict:?} by {:?}",
            call.conditions
        );
        let taken = Taken {
            key: call.key.clone(),
            phase: expected,
            began: call.began,
            ended: self.now,
            pod,
        };
        self.totals.measurements += 1;
        self.tell(|| format!("{} is measured for {}: {expected}", call.key.metric, call.of.0));
        self.referee.measured(&call.uid, taken);
        let outcome = MeasurementOutcome {
            key: call.key,
            started_at: call.began,
            finished_at: self.now,
            verdict,
        };
        let process = (call.process, call.incarnation);
        self.deliver_outcome(process, call.of, call.number, outcome);
    }
}

fn host_of(url: &str) -> &str {
    let rest = url.strip_prefix("http://").unwrap_or(url);
    rest.split([':', '/']).next().unwrap_or_default()
}

/// Returns the operator's reading of a response from a game, or from the Prometheus that scrapes it.
fn exchange(request: &ProviderRequest, behaviour: Behaviour) -> Result<ProviderResponse, MeasurementFailure> {
    let head = |code| AnswerHead {
        code,
        latency: Duration::from_millis(5),
        content_type: ContentType::Other,
    };
    let reply = |answer: String| match behaviour.manner {
        Manner::Stumbles => (503, "busy".to_owned()),
        Manner::Babbles => (200, "<html>welcome</html>".to_owned()),
        Manner::Forgets => (200, json!({"error": "no such pod"}).to_string()),
        Manner::Answers | Manner::Hangs | Manner::Divides | Manner::LeavesOut => (200, answer),
    };
    match request {
        ProviderRequest::Http(HttpRequest::Web(web)) => {
            let (code, body) = reply(page(behaviour).to_string());
            interpret_web(web, head(code), body.as_bytes())
        }
        ProviderRequest::Http(HttpRequest::Prometheus(server)) => {
            let value = match behaviour.manner {
                Manner::Divides => "NaN".to_owned(),
                _ => behaviour.players.to_string(),
            };
            let sample = json!({"metric": {}, "value": [0, value]});
            let mut answer =
                json!({"status": "success", "data": {"resultType": "vector", "result": [sample]}});
            if behaviour.manner == Manner::LeavesOut {
                answer["data"]["result"] = json!([]);
                answer["warnings"] = json!(["a store is down"]);
            }
            let (code, body) = reply(answer.to_string());
            interpret_prometheus(server, head(code), body.as_bytes())
        }
        ProviderRequest::Job(_)
        | ProviderRequest::Read(_)
        | ProviderRequest::Annotate(_)
        | ProviderRequest::Exec(_) => {
            unreachable!("no hook of the simulation acts in the cluster")
        }
    }
}

/// Builds a game's status document.
fn page(Behaviour { players, manner }: Behaviour) -> Value {
    let silent = json!({"error": "timeout"});
    let room = json!({"players": players});
    json!({
        "players": players,
        "state": if players > 0 { "busy" } else { "idle" },
        "rooms": [{"players": 0}, if manner == Manner::LeavesOut { silent } else { room }],
        "seats": if manner == Manner::Divides { json!({"taken": 0, "all": 0}) } else { json!({"taken": players, "all": 10}) },
    })
}

fn verdict(call: &Call, behaviour: Option<Behaviour>, hangs: bool, now: Timestamp) -> MeasurementResult {
    let answer: Result<ProviderResponse, MeasurementFailure> = match (&call.rendered, behaviour) {
        (Err(failure), _) => Err(failure.clone()),
        (Ok(_), None) if hangs => Err(MeasurementFailure::new(
            MeasurementReason::Timeout,
            "no answer within 10s",
        )),
        (Ok(_), None) => Err(MeasurementFailure::new(
            MeasurementReason::Unreachable,
            "connection refused",
        )),
        (Ok(rendered), Some(behaviour)) => exchange(&rendered.request, behaviour),
    };
    let rendered = call.rendered.as_ref().ok();
    let rules = Rules {
        success: rendered.and_then(|rendered| rendered.rules.success.as_ref()),
        failure: rendered.and_then(|rendered| rendered.rules.failure.as_ref()),
        on_no_data: call.on_no_data,
    };
    judge(&rules, &answer, now, &Redactor::default())
}

/// Returns the expected phase for a behaviour, from the few conditions that this world uses and without the
/// operators' expression language.
fn expected(call: &Call, behaviour: Option<Behaviour>) -> Phase {
    let (Ok(rendered), Some(Behaviour { players, manner })) = (&call.rendered, behaviour) else {
        return Phase::Error;
    };
    let (success, failure) = (call.conditions.0.as_deref(), call.conditions.1.as_deref());
    let path = match &rendered.request {
        ProviderRequest::Http(HttpRequest::Web(web)) => web.json_path.as_ref().map(JsonPath::source),
        ProviderRequest::Http(HttpRequest::Prometheus(_))
        | ProviderRequest::Job(_)
        | ProviderRequest::Read(_)
        | ProviderRequest::Annotate(_)
        | ProviderRequest::Exec(_) => None,
    };
    let answers = match manner {
        Manner::Answers => true,
        Manner::LeavesOut => path.is_some_and(|path| path != PLAYERS_OF_ROOMS),
        Manner::Divides if path.is_none() => return Phase::Inconclusive,
        Manner::Divides => failure != Some(TOO_MANY_SEATS_TAKEN),
        // The response lacks the keys, and the condition does not read them.
        Manner::Forgets => path == Some(ALL) && success == Some("true"),
        Manner::Stumbles | Manner::Hangs | Manner::Babbles => false,
    };
    if !answers {
        return Phase::Error;
    }
    match (success, failure) {
        // A user has edited the run so that it always succeeds.
        (Some("true"), None) => Phase::Successful,
        (_, Some(_)) if players > 5 => Phase::Failed,
        (Some(_), _) if players == 0 => Phase::Successful,
        (Some(_), Some(_)) => Phase::Inconclusive,
        (Some(_), None) => Phase::Failed,
        (None, _) => Phase::Successful,
    }
}
