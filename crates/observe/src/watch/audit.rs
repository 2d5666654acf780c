//! Audit events in the ledger's own journal: changes of settings, and deliveries that failed permanently.

use rutter_core::actor::Actor;
use rutter_core::journal::event::{Event, EventRecord};
use rutter_core::port::outbox::{Delivery, DeliveryAttempt};
use rutter_core::time::Timestamp;

/// Events of this setting are not sent to webhooks: an unreachable one would cause endless deliveries about itself.
const DELIVERY: &str = "delivery";

pub fn changed(actor: &Actor, at: Timestamp, setting: &str, id: &str, change: &str) -> Option<EventRecord> {
    let event = Event::SettingChanged { setting: setting.to_owned(), id: id.to_owned(), change: change.to_owned() };
    Some(EventRecord { at, actor: actor.clone(), event })
}

/// Only the response's status is recorded, not its text.
pub fn given_up(delivery: &Delivery, last: &DeliveryAttempt) -> Option<EventRecord> {
    let Delivery { number, destination, event, attempts, .. } = delivery;
    let message = match last.status {
        Some(status) => format!("answered {status}"),
        None => "had no answer".to_owned(),
    };
    let change = format!("event {event} to webhook {destination} given up; try {} {message}", attempts + 1);
    changed(&Actor::rutter(), last.at, DELIVERY, &number.to_string(), &change)
}

pub fn sent_again(actor: &Actor, at: Timestamp, number: u64) -> Option<EventRecord> {
    changed(actor, at, DELIVERY, &number.to_string(), "sent again")
}

pub fn is_of_delivery<P>(event: &Event<P>) -> bool {
    matches!(event, Event::SettingChanged { setting, .. } if setting == DELIVERY)
}
