//! The sentence of every event, as all surfaces show it.

use crate::journal::samples::{Values, all_plain, events};
use proptest::prelude::*;
use rutter_core::actor::Actor;
use rutter_core::id::PartId;
use rutter_core::journal::describe::{EventTone, Fragment, describe};
use rutter_core::journal::event::{AttemptFollowUp, CallSide, DoubtSource, Event, EventRecord};
use rutter_core::journal::label::KINDS;
use rutter_core::time::Timestamp;
use rutter_core::tool::{FailureCategory, ToolFailure};
use std::collections::BTreeSet;
use std::convert::Infallible;

#[test]
fn every_event_has_a_sentence() {
    let mut sentences = String::new();
    let mut kinds = BTreeSet::new();
    for event in all_plain() {
        let description = describe(&event);
        assert_eq!(description.kind, event.kind());
        assert_eq!(description.subject, event.subject());
        kinds.insert(description.kind);
        let tone = match description.tone {
            EventTone::Neutral => " ",
            EventTone::Good => "+",
            EventTone::Attention => "?",
            EventTone::Bad => "!",
        };
        let (topic, kind) = (description.topic, description.kind);
        sentences.push_str(&format!("{tone} {kind} ({topic:?}): {}\n", description.sentence()));
    }
    assert_eq!(kinds, KINDS.iter().copied().collect());
    insta::assert_snapshot!(sentences);
}

#[test]
fn a_surface_can_shorten_a_sentence() {
    let at = Timestamp(1_700_000_000_000);
    let part = PartId::parse("charge").unwrap();
    let failed: Event = Event::AttemptFailed {
        part: part.clone(),
        side: CallSide::Do,
        attempt: 2,
        failure: ToolFailure::new(FailureCategory::Timeout, "no answer\nafter 30s"),
        maybe: true,
        then: AttemptFollowUp::RetryAt(Timestamp(at.0 + 2_000)),
    };
    let record = EventRecord { at, actor: Actor::rutter(), event: failed };
    assert_eq!(
        record.describe().sentence(),
        "attempt 2 of charge timed out: \"no answer after 30s\"; whether it took effect is unknown; retry in 2s"
    );
    assert_eq!(record.describe().brief(5), "timed out: \"no an…\"; whether it took effect is unknown; retry in 2s");
    assert_eq!(record.describe().subject.unwrap().label(), "charge, attempt 2");
    let settled: Event = Event::DoubtSettled {
        part,
        side: CallSide::Undo,
        happened: false,
        source: DoubtSource::Person,
        reason: "no refund there".to_owned(),
        result: None,
        evidence: None,
        then: AttemptFollowUp::GiveUp,
    };
    let record = EventRecord { at, actor: Actor::person("operator"), event: settled };
    assert_eq!(
        record.describe().sentence(),
        "operator settled the doubt about the compensation of charge: it took no effect: \"no refund there\"; \
         no further attempt"
    );
    assert_eq!(
        describe(&record.event).brief(100),
        "settled the doubt: it took no effect: \"no refund there\"; no further attempt"
    );
    assert_eq!(record.describe().subject.unwrap().label(), "charge (compensation)");
}

#[test]
fn every_payload_of_an_event_has_a_name() {
    for event in all_plain() {
        let mut carried = 0;
        let mut count = |_| -> Result<(), Infallible> {
            carried += 1;
            Ok(())
        };
        let Ok(_) = event.clone().try_map(&mut count);
        assert_eq!(event.payloads().len(), carried, "{event:?}");
    }
}

proptest! {
    #[test]
    fn a_sentence_is_one_line_that_nothing_can_break_out_of(seed: u64) {
        let mut values = Values::random(seed);
        for event in events(&mut values) {
            let description = describe(&event).by(&Actor::agent("a\u{1b}[2J\nb")).at(Timestamp(0));
            for text in [description.sentence(), description.brief(20)] {
                prop_assert!(!text.is_empty(), "{event:?}");
                let is_plain = |c: char| !c.is_control() && c != '\u{2028}';
                prop_assert!(text.chars().all(is_plain), "{text:?}");
            }
        }
    }
}

#[test]
fn text_from_tools_agents_and_people_is_quoted() {
    const QUOTED: [&str; 5] = ["because", "try later", "ship by sea", "called the port", "which port?"];
    for event in all_plain() {
        for fragment in describe(&event).fragments {
            match fragment {
                Fragment::Words(text) | Fragment::Subject(text) | Fragment::Reference(text) => {
                    assert!(!QUOTED.iter().any(|quoted| text.contains(quoted)), "{text}");
                }
                Fragment::Quote(_) | Fragment::Due(_) => {}
            }
        }
    }
}
