//! Every limit of plans and executions, by name. A limit is refused by that name, never exceeded quietly.

use crate::time::Millis;

pub const PLAN_BYTES_MAX: usize = 1 << 20;
pub const PLAN_STEPS_MAX: usize = 1_000;
/// `depends_on` and references together.
pub const PLAN_EDGES_MAX: usize = 10_000;
pub const DEPTH_MAX: usize = 64;
pub const KEYS_MAX: usize = 10_000;
pub const ITEMS_MAX: usize = 100_000;
pub const STRING_BYTES_MAX: usize = 1 << 20;
/// Integers beyond ±(2^53 − 1) do not survive every JSON reader.
pub const INTEGER_MAX: i64 = (1 << 53) - 1;

pub const CATALOG_TOOLS_MAX: usize = 10_000;

pub const NAME_CHARS_MAX: usize = 128;
pub const TEXT_BYTES_MAX: usize = 16 << 10;
pub const TAGS_MAX: usize = 64;

/// Findings reported of one document; a hostile one could make more of them than it has bytes.
pub const FINDINGS_MAX: usize = 1_000;
/// Pointers and messages of all findings together; a key can be as long as the document.
pub const FINDINGS_BYTES_MAX: usize = 1 << 20;

pub const EXPRESSION_BYTES_MAX: usize = 4 << 10;
/// Brackets, signs, negations and `else` within each other. Each level costs stack, in the parser and after.
pub const EXPRESSION_DEPTH_MAX: usize = 32;
pub const EXPRESSION_FUEL: u64 = 50_000;
/// How large a value an expression or a whole set of parameters may become.
pub const VALUE_BYTES_MAX: usize = 256 << 10;

pub const SCHEMA_BYTES_MAX: usize = 256 << 10;
pub const SCHEMA_NODES_MAX: usize = 20_000;
/// How large a schema may become when its references are followed.
pub const SCHEMA_REACH_MAX: usize = 20_000;

pub const PARALLEL_MAX: u32 = 64;
pub const ATTEMPTS_MAX: u32 = 10;
pub const BACKOFF_MAX: Millis = Millis::hours(1);
/// How much longer each pause between attempts may be than the one before.
pub const BACKOFF_FACTOR_MAX: f64 = 10.0;
pub const TIMEOUT_MAX: Millis = Millis::hours(24);
pub const STEP_TIMEOUT_MAX: Millis = Millis::hours(24 * 30);
pub const DEADLINE_MAX: Millis = Millis::hours(24 * 90);
pub const APPROVAL_EXPIRES_MAX: Millis = Millis::hours(24 * 30);
pub const FAN_OUT_MAX: u32 = 10_000;
pub const FAN_OUT_DEFAULT: u32 = 1_000;
pub const PRIORITY_MAX: i32 = 1_000;

pub const ATTEMPT_TIMEOUT_DEFAULT: Millis = Millis::seconds(60);
pub const DEADLINE_DEFAULT: Millis = Millis::hours(24);
pub const APPROVAL_EXPIRES_DEFAULT: Millis = Millis::hours(24);
pub const ATTEMPTS_DEFAULT: u32 = 3;
pub const COMPENSATION_ATTEMPTS_DEFAULT: u32 = 5;
pub const BACKOFF_INITIAL_DEFAULT: Millis = Millis::seconds(1);
pub const BACKOFF_CAP_DEFAULT: Millis = Millis::seconds(60);

/// How often one part may lose its attempt to a crash before a person must look.
pub const LOSSES_MAX: u32 = 20;
pub const REPLANS_MAX: u32 = 100;
pub const REASON_BYTES_MAX: usize = 4 << 10;
/// What a tool may want to be asked under while it works on a call.
pub const TICKET_BYTES_MAX: usize = 1 << 10;
/// Entries of one execution; above it only ending and undoing go on.
pub const ENTRIES_MAX: u64 = 50_000;

/// What one call may send or bring back, as bytes of JSON.
pub const PAYLOAD_BYTES_MAX: usize = 16 << 20;
/// Larger payloads are kept apart, each content once.
pub const PAYLOAD_INLINE_MAX: usize = 64 << 10;
/// An entry without its payloads.
pub const ENTRY_BYTES_MAX: usize = 4 << 20;
pub const APPEND_ENTRIES_MAX: usize = 50_000;
pub const LETTER_BYTES_MAX: usize = 1 << 20;
/// Letters that wait for one execution.
pub const LETTERS_MAX: usize = 1_000;
pub const REQUEST_KEY_BYTES_MAX: usize = 255;
/// What is remembered under one id.
pub const NOTE_BYTES_MAX: usize = 1 << 20;
/// Notes changed in one piece.
pub const CHANGES_MAX: usize = 1_000;
/// Ids of notes, readers, destinations and events.
pub const ID_CHARS_MAX: usize = 255;
/// What one delivery carries.
pub const DELIVERY_BYTES_MAX: usize = 256 << 10;
/// Deliveries put into the outbox in one piece.
pub const DELIVERIES_MAX: usize = 1_000;
/// Items on one page of a list.
pub const PAGE_MAX: u32 = 1_000;
