-- Plans, executions, entries, payloads, and the ledger over them.
--
-- A place is tenant << 40 | leaf: the key of an entry says whose it is and where it stands in the ledger, so that
-- entries are always added at the end and need no index to be found there.

create table tenant (
    number integer primary key,
    name text not null unique,
    -- The ledger's name in its checkpoints. A restored ledger gets another one, and the next epoch.
    origin text not null,
    epoch integer not null default 1,
    -- The end of the ledger's own journal.
    seq integer not null default 0,
    head blob not null,
    -- How many plans there are; kept, so that nobody has to count.
    plans integer not null default 0
) strict;

-- Names that stand in every entry, once. Kinds 1 and 2 and actor 1 are so frequent that no index is kept for them.
create table kind (
    number integer primary key,
    name text not null unique
) strict;
insert into kind (number, name) values (1, 'attempt_started'), (2, 'attempt_succeeded');

create table actor (
    number integer primary key,
    party text not null check (party in ('rutter', 'agent', 'person')),
    name text not null,
    unique (party, name)
) strict;
insert into actor (number, party, name) values (1, 'rutter', 'rutter');

create table plan (
    number integer primary key,
    tenant integer not null references tenant,
    id text not null,
    name text not null,
    -- The newest one.
    revision integer not null,
    saved_at integer not null,
    unique (tenant, id)
) strict;
-- For plans(): by name, and all of a tenant.
create index plan_name on plan (tenant, name, saved_at);
create index plan_saved on plan (tenant, saved_at);

create table revision (
    number integer primary key,
    plan integer not null references plan,
    revision integer not null,
    hash blob not null,
    actor integer not null references actor,
    saved_at integer not null,
    name text not null,
    goal text not null,
    tags text not null,
    steps integer not null,
    format text not null check (format in ('json', 'yaml')),
    -- The author's bytes and the pinned tools, compressed.
    source blob not null,
    tools blob not null,
    unique (plan, revision)
) strict;
-- For load(), open() and executions(): a journal names its plan by hash.
create index revision_hash on revision (hash);

-- For plans(): by tag. Of the newest revision only.
create table plan_tag (
    tenant integer not null,
    tag text not null,
    saved_at integer not null,
    plan integer not null references plan,
    primary key (tenant, tag, saved_at, plan)
) strict, without rowid;
-- For save(): the tags of the revision before.
create index plan_tag_plan on plan_tag (plan);

create table worker (
    number integer primary key,
    name text not null unique,
    until integer not null
) strict;

create table execution (
    -- Never given twice, because letters and entries are found by it.
    number integer primary key autoincrement,
    tenant integer not null references tenant,
    id text not null,
    plan integer not null references plan,
    status text not null check (status in ('pending', 'running', 'paused', 'waiting', 'replanning', 'compensating',
        'completed', 'partial', 'failed', 'cancelled', 'compensated')),
    driver text not null check (driver in ('server', 'agent')),
    hash blob not null,
    revision integer not null,
    settled integer not null,
    total integer not null,
    questions integer not null,
    opened_at integer not null,
    started_at integer,
    last_at integer not null,
    due_at integer,
    seq integer not null,
    head blob not null,
    epoch integer not null,
    owner integer references worker,
    letters integer not null default 0,
    unique (tenant, id)
) strict;
-- For executions(): newest first, of a tenant, by status, by plan, and those that wait for somebody. For clean(): by status.
create index execution_opened on execution (tenant, opened_at);
create index execution_status on execution (tenant, status, opened_at);
create index execution_plan on execution (plan, opened_at);
create index execution_asking on execution (tenant, opened_at) where questions > 0;
-- For claim(): what is due.
create index execution_due on execution (due_at) where due_at is not null;

-- For executions(): by tag.
create table execution_tag (
    tenant integer not null,
    tag text not null,
    opened_at integer not null,
    execution integer not null references execution,
    primary key (tenant, tag, opened_at, execution)
) strict, without rowid;
-- For clean(): the tags of an execution.
create index execution_tag_execution on execution_tag (execution);

-- How many executions of a tenant have which status; kept, so that nobody has to count.
create table total (
    tenant integer not null,
    status text not null,
    count integer not null,
    primary key (tenant, status)
) strict, without rowid;

create table entry (
    place integer primary key,
    -- The execution's number, or minus the tenant's number in the ledger's own journal; null when it was removed.
    execution integer,
    seq integer,
    tenant integer,
    at integer,
    -- Numbers of `kind` and `actor`; not declared, because looking them up again for each entry costs as much as writing it.
    kind integer,
    actor integer,
    hash blob not null,
    bytes blob,
    check ((execution is null) = (bytes is null))
) strict;
-- For load(), append() and verify.
create unique index entry_seq on entry (execution, seq);
-- For entries(): newest first, of a tenant, by type, by actor.
create index entry_at on entry (tenant, at);
create index entry_kind on entry (tenant, kind, at) where kind > 2;
create index entry_actor on entry (tenant, actor, at) where actor > 1;

-- A payload's number is place * 4 + its position in the event. One that is gone was erased.
create table payload (
    number integer primary key,
    salt blob not null,
    bytes blob,
    blob integer references blob,
    check ((bytes is null) <> (blob is null))
) strict;
-- For erase(): whether a blob is still used.
create index payload_blob on payload (blob) where blob is not null;

-- Large payloads, compressed, each once.
create table blob (
    number integer primary key,
    hash blob not null unique,
    bytes blob not null
) strict;

create table letter (
    -- Never given twice, so that an answer to one cannot take away another.
    number integer primary key autoincrement,
    execution integer not null references execution,
    actor integer not null references actor,
    at integer not null,
    bytes blob not null
) strict;
-- For load() and append().
create index letter_execution on letter (execution, number);

-- Requests that came with a key, so that the same one has one effect.
create table request (
    tenant integer not null,
    key text not null,
    digest blob not null,
    execution text not null,
    at integer not null,
    primary key (tenant, key)
) strict, without rowid;
-- For clean(): old keys.
create index request_at on request (tenant, at);

-- Roots of complete subtrees of the ledger's tree, of 2^8, 2^16, … leaves. What is below is computed from the entries.
create table node (
    tenant integer not null,
    level integer not null,
    position integer not null,
    hash blob not null,
    primary key (tenant, level, position)
) strict, without rowid;

create table checkpoint (
    tenant integer not null,
    epoch integer not null,
    size integer not null,
    at integer not null,
    note text not null,
    primary key (tenant, epoch, size)
) strict, without rowid;

-- Public keys that signed checkpoints.
create table signer (
    key text primary key
) strict, without rowid;

-- What people search for. The rowid is the entry's place, or tenant << 40 | the plan's number: a tenant's words are
-- found without looking at anybody else's.
create virtual table entry_text using fts5 (words, content = '', contentless_delete = 1);
create virtual table plan_text using fts5 (words, content = '', contentless_delete = 1);
