-- What an installation remembers beside its journals, and what it still has to send.

-- For executions(): by plan and status, which people ask for together.
create index execution_plan_status on execution (plan, status, opened_at);

create table note (
    number integer primary key,
    tenant integer not null references tenant,
    kind text not null check (kind <> ''),
    id text not null check (id <> ''),
    -- Counts its changes; 1 when it was new.
    version integer not null check (version > 0),
    changed_at integer not null,
    -- JSON.
    value text not null,
    -- For find(), list() and write().
    unique (tenant, kind, id)
) strict;

-- How far each reader of a ledger has come.
create table mark (
    tenant integer not null references tenant,
    reader text not null check (reader <> ''),
    place integer not null check (place >= 0),
    primary key (tenant, reader)
) strict, without rowid;

create table delivery (
    -- Never given twice, so that what became of one cannot be said of another.
    number integer primary key autoincrement,
    tenant integer not null references tenant,
    destination text not null check (destination <> ''),
    event text not null check (event <> ''),
    kind text not null,
    body blob not null,
    state text not null check (state in ('pending', 'delivered', 'dead')),
    -- The number of the last try; 0 before the first.
    attempts integer not null default 0,
    created_at integer not null,
    touched_at integer not null,
    due_at integer,
    check ((state = 'pending') = (due_at is not null)),
    -- For put(): each destination gets an event once.
    unique (tenant, destination, event)
) strict;
-- For due() and next_due(): longest due first.
create index delivery_due on delivery (due_at) where state = 'pending';
-- For deliveries(): newest first, of a tenant, by state, by destination, and by both. For counts(): by state, and by both.
create index delivery_tenant on delivery (tenant);
create index delivery_state on delivery (tenant, state);
create index delivery_destination on delivery (tenant, destination);
create index delivery_destination_state on delivery (tenant, destination, state);
-- For prune(): longest untouched first.
create index delivery_touched on delivery (tenant, touched_at) where state <> 'pending';

create table delivery_attempt (
    delivery integer not null references delivery,
    nth integer not null check (nth > 0),
    at integer not null,
    took_ms integer not null,
    status integer,
    outcome text not null,
    primary key (delivery, nth)
) strict, without rowid;
