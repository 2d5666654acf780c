-- Timers, memories and notifications of the built-in tools are notes, and timers of all tenants fire.

-- For count(), and for tenants(): the next tenant that has notes of a kind.
create index note_kind on note (kind, tenant);
