use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use test_kit::{ControlPlane, Options};

#[tokio::test]
async fn boots() {
    let t = std::time::Instant::now();
    let own = ControlPlane::start(Options::default()).await.unwrap();
    eprintln!("boot {:?}", t.elapsed());
    let api: Api<Namespace> = Api::all(own.client());
    api.get("default").await.unwrap();
}
