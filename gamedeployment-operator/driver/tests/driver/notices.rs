//! Tests that a notice delays the hook of its pod for a limited time, and that a notice that cannot run, or that the
//! API server rejects, is reported once.

use std::collections::BTreeMap;

use gamedeployment_core::gate::{NewRun, Run};
use gamedeployment_core::plan::Action;
use gamedeployment_core::pod::Pod;
use gamedeployment_driver::request::{ApiCall, DriverOutput, Object, Request, RequestError, Response};
use gamedeployment_driver::watch_event::{Event, Template, WatchEvent, Workload};
use gamedeployment_driver::{Driver, DriverInput, DriverLimits};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;
use shared_api::GameDeployment;
use shared_api::names::pod as names;
use shared_api::reason::WorkloadReason;

use crate::kit::*;

/// A workload whose only pod is selected for deletion and has a player.
struct World {
    driver: Driver,
    fleet: GameDeployment,
    version: u64,
    annotations: BTreeMap<String, String>,
    /// Error of the API server if it rejects notices.
    rejects: Option<RequestError>,
    /// Seconds at which HookRuns were created, by type.
    created: Vec<(String, u64)>,
    /// Messages of the events `NoticeFailed`.
    reported: Vec<String>,
}

impl World {
    /// Creates the workload beside these HookTemplates.
    fn new(templates: &[&str]) -> Self {
        let mut fleet = fleet(0);
        let strategy = json!({ "hook": { "templateName": "ask" }, "notice": { "templateName": "bye" } });
        fleet.spec.pre_delete_update_strategy = serde_json::from_value(strategy).unwrap();
        let mut world = Self {
            driver: new_driver(&fleet),
            fleet,
            version: 10,
            annotations: BTreeMap::new(),
            rejects: None,
            created: Vec::new(),
            reported: Vec::new(),
        };
        for name in templates {
            world.add_template(name, 1);
        }
        world.show_pod("7", 1);
        world
    }

    fn add_template(&mut self, name: &str, second: u64) {
        let spec = json!({ "metrics": [{ "name": "a", "provider": { "web": { "url": "http://a" } } }] });
        let spec = Ok(serde_json::from_value(spec).unwrap());
        let template = Template::new(name.to_owned(), "1".to_owned(), spec, None);
        self.watch(WatchEvent::Template(Event::Apply(key(name), template)), second);
    }

    fn show_pod(&mut self, version: &str, second: u64) {
        let pod = pod_with_a_player(version, &json!(self.annotations));
        self.watch(WatchEvent::Pod(Event::Apply(key("fleet-a"), pod)), second);
    }

    /// Replaces the operator, before any HookRun is created.
    fn restart(&mut self, second: u64) {
        self.driver = new_driver(&self.fleet);
        self.add_template("ask", second);
        self.add_template("bye", second);
        self.show_pod(&self.version.to_string(), second);
    }

    fn watch(&mut self, event: WatchEvent, second: u64) {
        self.driver.handle(DriverInput::Watch(event), at(second));
    }

    /// Plays these seconds.
    fn play(&mut self, from: u64, to: u64) {
        for second in from..to {
            while let Some(output) = self.driver.poll(at(second)) {
                match output {
                    DriverOutput::Send(request) => self.serve(request, second),
                    DriverOutput::EmitWarnings(_, warnings) => {
                        let warnings = warnings.into_iter();
                        let of_notices =
                            warnings.filter(|warning| warning.reason == WorkloadReason::NoticeFailed);
                        self.reported.extend(of_notices.map(|warning| warning.message));
                    }
                    _ => {}
                }
            }
        }
    }

    fn serve(&mut self, request: Request, second: u64) {
        let answer = self.answer(&request.call, second);
        if let Ok(Response::Object(object)) = &answer {
            let event = match object {
                Object::Run(key, run) => WatchEvent::Run(Event::Apply(key.clone(), (**run).clone()), None),
                other => shown(other),
            };
            self.watch(event, second);
        }
        self.driver
            .handle(DriverInput::Response(request.id, answer), at(second));
    }

    fn answer(&mut self, call: &ApiCall, second: u64) -> Result<Response, RequestError> {
        self.version += 1;
        let version = self.version.to_string();
        match call {
            ApiCall::Act(Action::CreateRevision(_)) => Ok(made(call)),
            ApiCall::Act(Action::RecordSelection(_, text, _)) => {
                let marks = [(names::DELETING, "true"), (names::CHOSEN_FOR, text.as_str())];
                Ok(self.note(&marks))
            }
            ApiCall::Act(Action::NoteQuestion(_, question, _)) => {
                Ok(self.note(&[(names::QUESTION, &question.text)]))
            }
            ApiCall::Act(Action::CreateRun(new)) => {
                let (kind, run) = stored(new, version, second);
                if let Some(error) = &self.rejects
                    && kind == "notice-step"
                {
                    return Err(error.clone());
                }
                self.created.push((kind, second));
                Ok(Response::Object(Object::Run(key(new.name()), Box::new(run))))
            }
            ApiCall::WriteStatus(status) => {
                self.fleet.metadata.resource_version = Some(version);
                self.fleet.status = Some((**status).clone());
                let workload = Workload::new(self.fleet.clone());
                Ok(Response::Object(Object::Workload(key("fleet"), workload)))
            }
            other => panic!("{other:?}"),
        }
    }

    /// Sets annotations of the pod.
    fn note(&mut self, annotations: &[(&str, &str)]) -> Response {
        let notes = annotations.iter();
        let notes = notes.map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        self.annotations.extend(notes);
        let pod: Pod = pod_with_a_player(&self.version.to_string(), &json!(self.annotations));
        Response::Object(Object::Pod(key("fleet-a"), Box::new(pod)))
    }

    /// Edits the spec, without a change that concerns the pod.
    fn edit(&mut self, second: u64) {
        self.version += 1;
        let metadata = &mut self.fleet.metadata;
        metadata.resource_version = Some(self.version.to_string());
        metadata.generation = metadata.generation.map(|generation| generation + 1);
        let workload = Workload::new(self.fleet.clone());
        self.watch(WatchEvent::Workload(Event::Apply(key("fleet"), workload)), second);
    }

    /// Returns the conditions with the reason `WriteFailed`, and whether their messages contain this answer.
    fn write_failures(&self, answer: &str) -> Vec<(&str, bool)> {
        let conditions = self.fleet.status.iter().flat_map(|status| &status.conditions);
        let failed = conditions.filter(|known| known.reason == "WriteFailed");
        let failed = failed.map(|known| (known.type_.as_str(), known.message.contains(answer)));
        failed.collect()
    }

    fn created(&self) -> Vec<(&str, u64)> {
        let created = self.created.iter();
        created.map(|(kind, second)| (kind.as_str(), *second)).collect()
    }

    fn kinds(&self) -> Vec<&str> {
        self.created.iter().map(|(kind, _)| kind.as_str()).collect()
    }

    /// Returns the only warning about notices.
    fn only_report(&self) -> &str {
        let [message] = &self.reported[..] else {
            panic!("{:?}", self.reported)
        };
        message
    }
}

fn new_driver(fleet: &GameDeployment) -> Driver {
    driver_of(Driver::new(false, DriverLimits::default()), fleet.clone())
}

/// Returns the error of a full quota.
fn quota() -> RequestError {
    RequestError::Refused("quota exceeded (403)".to_owned())
}

/// Returns a HookRun as the API server stores it, and its type.
fn stored(new: &NewRun, version: String, second: u64) -> (String, Run) {
    let mut run = new.render();
    let kind = run.metadata.labels.as_ref().unwrap()["hookrun-type"].clone();
    run.metadata.uid = Some(version.clone());
    run.metadata.resource_version = Some(version);
    run.metadata.generation = Some(1);
    run.metadata.creation_timestamp = Some(Time(at(second).wall));
    (kind, Run::read(&run))
}

#[test]
fn a_hook_runs_thirty_seconds_after_a_notice_that_is_not_measured() {
    let mut world = World::new(&["ask", "bye"]);
    world.play(2, 100);
    assert_eq!(world.created(), [("notice-step", 2), ("pre-delete-step", 32)]);
    assert_eq!(world.reported, [""; 0]);
}

#[test]
fn a_hook_whose_notice_has_no_template_runs_at_once_and_is_reported_once() {
    let mut world = World::new(&["ask"]);
    world.play(2, 100);
    assert_eq!(world.created(), [("pre-delete-step", 2)]);
    let message = world.only_report();
    assert!(
        message.contains("HookTemplate bye does not exist; create it"),
        "{message}"
    );
}

#[test]
fn a_hook_runs_thirty_seconds_after_its_notice_was_first_rejected() {
    for answer in ["admission webhook denied it (400)", "quota exceeded (403)"] {
        let mut world = World::new(&["ask", "bye"]);
        world.rejects = Some(RequestError::Refused(answer.to_owned()));
        world.play(2, 32);
        assert_eq!(world.created(), [] as [(&str, u64); 0], "{answer}");
        assert_eq!(world.write_failures(answer), [("ScaleBlocked", true)]);
        world.play(32, 100);
        assert_eq!(world.created(), [("pre-delete-step", 32)], "{answer}");
        assert!(
            world.write_failures(answer).is_empty(),
            "nothing is rejected any more"
        );
        let message = world.only_report();
        let cause = format!("the API server rejects its HookRun: {answer}");
        assert!(message.contains(&cause), "{message}");
    }
}

/// Somebody raises the quota, and edits the spec meanwhile.
#[test]
fn a_notice_that_is_accepted_in_time_precedes_the_hook() {
    let mut world = World::new(&["ask", "bye"]);
    world.rejects = Some(quota());
    world.play(2, 10);
    world.edit(10);
    world.play(10, 20);
    world.rejects = None;
    world.play(20, 100);
    assert_eq!(world.kinds(), ["notice-step", "pre-delete-step"]);
    let created = world.created();
    assert!(created[0].1 < 32, "{created:?}");
    assert_eq!(created[1].1 - created[0].1, 30);
    assert_eq!(world.reported, [""; 0]);
}

#[test]
fn edits_of_the_spec_do_not_prolong_the_wait_for_a_rejected_notice() {
    let mut world = World::new(&["ask", "bye"]);
    world.rejects = Some(quota());
    for second in 2..60 {
        world.play(second, second + 1);
        world.edit(second);
    }
    assert_eq!(world.created(), [("pre-delete-step", 32)]);
}

#[test]
fn a_notice_for_which_the_api_server_has_no_capacity_still_precedes_the_hook() {
    let answer = "too many requests (429)";
    let mut world = World::new(&["ask", "bye"]);
    world.rejects = Some(RequestError::Throttled(answer.to_owned()));
    world.play(2, 100);
    assert_eq!(world.created(), [] as [(&str, u64); 0]);
    assert_eq!(world.write_failures(answer), [("ScaleBlocked", true)]);
    world.rejects = None;
    world.play(100, 200);
    assert_eq!(world.kinds(), ["notice-step", "pre-delete-step"]);
    let created = world.created();
    assert_eq!(created[1].1 - created[0].1, 30);
    assert_eq!(world.reported, [""; 0]);
}

#[test]
fn the_wait_for_a_rejected_notice_continues_while_the_hook_cannot_run_for_a_moment() {
    let mut world = World::new(&["ask", "bye"]);
    world.rejects = Some(quota());
    world.play(2, 10);
    world.watch(
        WatchEvent::Template(Event::Delete(key("ask"), "ask".to_owned())),
        10,
    );
    world.play(10, 20);
    world.add_template("ask", 20);
    world.play(20, 100);
    assert_eq!(world.created(), [("pre-delete-step", 32)]);
}

/// The new process notes the question again, as for a rerun.
#[test]
fn a_restart_of_the_operator_restarts_the_wait_for_a_rejected_notice() {
    let mut world = World::new(&["ask", "bye"]);
    world.rejects = Some(quota());
    world.play(2, 20);
    world.restart(20);
    world.play(20, 100);
    assert_eq!(world.created(), [("pre-delete-step", 50)]);
}
