//! A statement that finds the keys of a page, assembled from fixed pieces.

use super::super::fault;
use super::cursor::CursorKey;
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use rutter_core::port::Error;
use rutter_core::port::query::TimeRange;

#[derive(Clone, Debug, Default)]
pub(super) struct SelectStatement {
    pub sql: String,
    values: Vec<Value>,
}

impl SelectStatement {
    /// Adds a piece and the values of its parameters.
    pub fn add<const N: usize>(&mut self, piece: &'static str, values: [Value; N]) {
        debug_assert_eq!(piece.matches('?').count(), N, "{piece}");
        self.sql.push_str(piece);
        self.values.extend(values);
    }

    pub fn append(&mut self, other: &SelectStatement) {
        self.sql.push_str(&other.sql);
        self.values.extend_from_slice(&other.values);
    }

    pub fn for_each_key(
        &self,
        connection: &Connection,
        each: &mut dyn FnMut(CursorKey) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut statement = connection.prepare_cached(&self.sql).map_err(fault::of)?;
        let mut rows = statement.query(params_from_iter(&self.values)).map_err(fault::of)?;
        while let Some(row) = rows.next().map_err(fault::of)? {
            each((row.get(0).map_err(fault::of)?, row.get(1).map_err(fault::of)?))?;
        }
        Ok(())
    }

    pub fn keys(&self, connection: &Connection) -> Result<Vec<CursorKey>, Error> {
        let mut keys = Vec::new();
        self.for_each_key(connection, &mut |key| {
            keys.push(key);
            Ok(())
        })?;
        Ok(keys)
    }
}

/// The bounds of a list sorted newest first: the earliest time, and an exclusive upper key.
pub(super) fn span(between: &TimeRange, after: Option<CursorKey>) -> [Value; 3] {
    let from = between.from.map_or(i64::MIN, |from| from.0);
    // The smallest key of that time, which excludes the time itself.
    let until = between.until.map(|until| (until.0, i64::MIN));
    let (time, number) = [after, until].into_iter().flatten().min().unwrap_or((i64::MAX, i64::MAX));
    [from.into(), time.into(), number.into()]
}

/// A list as one value, for `in (select value from json_each(?))`.
pub(super) fn list_of<T: serde::Serialize>(items: &[T]) -> Value {
    Value::Text(serde_json::to_string(items).expect("names and numbers are JSON"))
}
