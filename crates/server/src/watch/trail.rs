//! What stands in the ledger's own journal when somebody changes a setting, and of deliveries that were given up.

use rutter_core::actor::Actor;
use rutter_core::journal::event::{Event, Record};
use rutter_core::port::outbox::{Delivery, DeliveryAttempt};
use rutter_core::time::Timestamp;

/// What is not sent to webhooks: one that cannot be reached would be told, again and again, that it was not.
const DELIVERY: &str = "delivery";

pub(super) fn changed(actor: &Actor, at: Timestamp, setting: &str, id: &str, change: &str) -> Option<Record> {
    let event =
        Event::SettingChanged { setting: setting.to_owned(), id: id.to_owned(), change: change.to_owned() };
    Some(Record { at, actor: actor.clone(), event })
}

/// What a receiver said is not kept for ever, only its status.
pub(super) fn given_up(delivery: &Delivery, last: &DeliveryAttempt) -> Option<Record> {
    let Delivery { number, destination, event, attempts, .. } = delivery;
    let said = match last.status {
        Some(status) => format!("answered {status}"),
        None => "had no answer".to_owned(),
    };
    let change = format!("event {event} to webhook {destination} given up; try {} {said}", attempts + 1);
    changed(&Actor::rutter(), last.at, DELIVERY, &number.to_string(), &change)
}

pub(super) fn sent_again(actor: &Actor, at: Timestamp, number: u64) -> Option<Record> {
    changed(actor, at, DELIVERY, &number.to_string(), "sent again")
}

pub(super) fn is_of_delivery<P>(event: &Event<P>) -> bool {
    matches!(event, Event::SettingChanged { setting, .. } if setting == DELIVERY)
}
