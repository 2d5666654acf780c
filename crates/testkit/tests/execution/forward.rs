//! Going forward: who begins when, and in which order.

use rutter_core::journal::event::Side;
use rutter_testkit::scene::{Scene, done};
use serde_json::json;

#[test]
fn sequential_steps_go_in_plan_order() {
    let mut scene = Scene::started(
        "steps:
  - {id: c, tool: t.once}
  - {id: a, tool: t.once}
  - {id: b, tool: t.once}",
    );
    for name in ["c", "a", "b"] {
        assert_eq!(scene.calls(), [name]);
        scene.returns(name, done(json!({})));
    }
    assert_eq!(scene.status(), "completed");
    assert_eq!(scene.started_calls(Side::Do), ["c", "a", "b"]);
}
