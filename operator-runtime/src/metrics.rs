//! What every component tells Prometheus, under its own name.

use std::borrow::Cow;

use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

/// Says which build of which component this is. Returns the place for what all components tell: there each metric has
/// the component's name as a label, so that one can be told from another whatever the scrape's labels are.
pub fn common<'r>(
    registry: &'r mut Registry,
    component: &'static str,
    version: &'static str,
) -> &'r mut Registry {
    let build = Info::new([("component", component), ("version", version)]);
    registry.register("hookgate_build", "The component and its version", build);
    registry.sub_registry_with_label((Cow::from("component"), Cow::from(component)))
}
