-- A plan can be put away, or deleted while the journals of ended executions still need its text.
alter table plan add column state text not null default 'active' check (state in ('active', 'archived', 'deleted'));
-- A revision made for one execution is never the newest of its plan.
alter table revision add column for_execution integer not null default 0 check (for_execution in (0, 1));
