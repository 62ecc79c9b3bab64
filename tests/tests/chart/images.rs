//! Tests of the references of images: by digest in a released chart, and otherwise as the values say.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use crate::{CHART, documents, helm, of_kind};

const RELEASE: &str = include_str!("../../../.github/workflows/release.yml");

/// Images of the chart.
const IMAGES: [&str; 3] = ["gamedeployment-operator", "hook-operator", "admission"];

/// Returns the digest that the test's release has for the image at this position.
fn digest(position: usize) -> String {
    format!("sha256:{}", position.to_string().repeat(64))
}

/// Copies the chart, and writes digests into the copy as the workflow does.
fn release_into(directory: &Path) {
    let line = r#"echo "  hookgate.tkex.tencent.com/digest-$image: $digest" >>helm/Chart.yaml"#;
    assert!(
        RELEASE.contains(line),
        "release.yml writes digests in another way"
    );
    copy(Path::new(CHART), directory);
    let path = directory.join("Chart.yaml");
    let mut text = std::fs::read_to_string(&path).unwrap();
    for (position, image) in IMAGES.iter().enumerate() {
        let digest = digest(position);
        writeln!(text, "  hookgate.tkex.tencent.com/digest-{image}: {digest}").unwrap();
    }
    std::fs::write(path, text).unwrap();
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let copied = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &copied);
        } else {
            std::fs::copy(&path, copied).unwrap();
        }
    }
}

/// Returns the references of the images of all Deployments.
fn images(chart: &str, values: &str) -> BTreeSet<String> {
    let values = format!("admission.enabled=true,{values}");
    let rendered = documents(&helm(&["template", "hookgate", chart, "--set", &values]).unwrap());
    let deployments = of_kind(&rendered, "Deployment").into_iter();
    let image = |deployment: &Value| {
        let image = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
        image.as_str().unwrap().to_owned()
    };
    deployments.map(image).collect()
}

#[test]
fn a_released_chart_names_the_images_that_were_tested() {
    let directory = tempfile::tempdir().unwrap();
    release_into(directory.path());
    let chart = directory.path().to_str().unwrap();
    let by_digest = |registry: &str| {
        let all = IMAGES.iter().enumerate();
        let all = all.map(|(position, image)| format!("{registry}/{image}@{}", digest(position)));
        all.collect::<BTreeSet<String>>()
    };
    assert_eq!(images(chart, "log.level=info"), by_digest("ghcr.io/hookgate"));
    assert_eq!(images(chart, "image.registry=mirror"), by_digest("mirror"));
    let by_tag = BTreeSet::from(IMAGES.map(|image| format!("ghcr.io/hookgate/{image}:1.2.3")));
    assert_eq!(images(chart, "image.tag=1.2.3"), by_tag);

    let own = digest(7);
    let chosen = format!("image.tag=1.2.3,hookOperator.digest={own}");
    let found = images(chart, &chosen);
    assert!(
        found.contains(&format!("ghcr.io/hookgate/hook-operator@{own}")),
        "{found:?}"
    );
    assert!(found.contains("ghcr.io/hookgate/admission:1.2.3"), "{found:?}");
}

#[test]
fn a_chart_that_is_not_released_names_its_version() {
    for image in images(CHART, "log.level=info") {
        let (_, tag) = image.rsplit_once(':').unwrap();
        assert_eq!(tag, env!("CARGO_PKG_VERSION"), "{image}");
    }
}
