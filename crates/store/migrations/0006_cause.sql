-- Why an execution did not complete, is being stopped, or what it waits for; null in rows that were written before, as
-- are the number of steps that are completed and, once it has ended, its state in one line.
alter table execution add column cause text;
alter table execution add column completed integer;
alter table execution add column ending text;
