//! Log lines for programs: one object per line, without terminal control characters.

use crate::clock;
use rutter_core::time::calendar;
use serde_json::{Map, Value, json};
use std::fmt::{self, Write as _};
use std::io::Write;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

pub(super) struct JsonLines<W> {
    writer: W,
}

impl<W> JsonLines<W> {
    pub fn new(writer: W) -> JsonLines<W> {
        JsonLines { writer }
    }
}

impl<S, O, W> Layer<S> for JsonLines<W>
where
    S: Subscriber,
    O: Write,
    W: Fn() -> O + Send + Sync + 'static,
{
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = LogFields::default();
        event.record(&mut fields);
        let metadata = event.metadata();
        let mut line = Map::new();
        line.insert("at".into(), json!(calendar::utc(clock::now())));
        line.insert("level".into(), json!(metadata.level().as_str().to_lowercase()));
        line.insert("target".into(), json!(metadata.target()));
        line.append(&mut fields.0);
        let line = format!("{}\n", visible(&Value::Object(line).to_string()));
        // The reader may be gone. One call, so that lines of several threads do not mix.
        let _ = (self.writer)().write_all(line.as_bytes());
    }
}

/// The fields of an event, by name.
#[derive(Default)]
struct LogFields(Map<String, Value>);

impl Visit for LogFields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), json!(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), json!(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), json!(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().to_owned(), json!(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.0.insert(field.name().to_owned(), json!(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().to_owned(), json!(value));
    }
}

/// JSON escapes only the first 32 characters; some terminals obey others, and some programs end a line at them.
fn visible(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    for character in line.chars() {
        match character {
            '\u{2028}' | '\u{2029}' => drop(write!(text, "\\u{:04x}", u32::from(character))),
            character if character.is_control() => {
                // Writing to a String cannot fail.
                let _ = write!(text, "\\u{:04x}", u32::from(character));
            }
            character => text.push(character),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};
    use tracing_subscriber::layer::SubscriberExt;

    #[derive(Clone, Default)]
    struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

    impl Write for SharedBuffer {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_has_the_fields_and_no_control_characters() {
        let stored = SharedBuffer::default();
        let writer = stored.clone();
        let subscriber = tracing_subscriber::registry().with(JsonLines::new(move || writer.clone()));
        tracing::subscriber::with_default(subscriber, || {
            let text = "\u{1b}[2J\n{\"evil\":1}\u{9b}\u{2028}\u{7f}";
            tracing::warn!(execution = %"exec_1", attempt = 2, error.code = "store.io", text = text, "{text}");
        });
        let written = String::from_utf8(stored.0.lock().unwrap().clone()).unwrap();
        assert_eq!(written.matches('\n').count(), 1, "{written:?}");
        assert!(written.trim_end().chars().all(|c| !c.is_control() && c != '\u{2028}'), "{written:?}");
        let line: Value = serde_json::from_str(&written).unwrap();
        assert_eq!(
            (&line["level"], &line["execution"], &line["attempt"]),
            (&json!("warn"), &json!("exec_1"), &json!(2))
        );
        assert_eq!((&line["error.code"], &line["text"]), (&json!("store.io"), &line["message"]));
        assert_eq!(line["text"], "\u{1b}[2J\n{\"evil\":1}\u{9b}\u{2028}\u{7f}");
    }
}
