-- How often an execution departed from its plan, by kind, as JSON: {"forbidden":2}; null in rows that were written before.
alter table execution add column deviations text;
