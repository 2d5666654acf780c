//! Public information about the service.

use crate::api::harbour::Harbour;
use serde_json::json;

#[tokio::test]
async fn the_service_reports_its_version_and_readiness() {
    let harbour = Harbour::new().await;
    let anybody = harbour.nobody();
    assert_eq!(anybody.get("/version").await.good()["name"], "rutter");
    let ready = anybody.get("/readyz").await.good();
    assert_eq!((&ready["is_ready"], &ready["broken"]), (&json!(true), &json!(0)));
}
