-- A table is named after what it holds: commands that wait for an execution.
alter table letter rename to command;
alter table execution rename column letters to commands;
drop index letter_execution;
-- For loading an execution with its commands, in order.
create index command_execution on command (execution, number);
