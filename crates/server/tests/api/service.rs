//! What anybody may know without a key.

use crate::harbour::Harbour;
use serde_json::json;

#[tokio::test]
async fn the_service_says_what_it_is_and_whether_it_works() {
    let harbour = Harbour::new().await;
    let anybody = harbour.nobody();
    assert_eq!(anybody.get("/version").await.good()["name"], "rutter");
    let ready = anybody.get("/readyz").await.good();
    assert_eq!((&ready["is_ready"], &ready["broken"]), (&json!(true), &json!(0)));
}
