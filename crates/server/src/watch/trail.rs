//! What stands in the ledger's own journal when somebody changes a setting.

use rutter_core::actor::Actor;
use rutter_core::journal::event::{Event, Record};
use rutter_core::time::Timestamp;

pub(super) fn changed(actor: &Actor, at: Timestamp, setting: &str, id: &str, change: &str) -> Option<Record> {
    let event =
        Event::SettingChanged { setting: setting.to_owned(), id: id.to_owned(), change: change.to_owned() };
    Some(Record { at, actor: actor.clone(), event })
}
