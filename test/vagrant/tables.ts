import type { RecordedUpstream } from "@tapedeck/fakes/vagrant/recording";
import type { Timestamp } from "@tapedeck/proto/google/protobuf/timestamp";
import { Target } from "@tapedeck/proto/vagrant/vagrant";
import { expect } from "vitest";
import { ask } from "../rkt/tables.ts";
import { jobsIn } from "./facts.ts";

/** An analyst's queries of a sample in which a command failed and its job did not. */
export async function expectTables(database: string, recording: RecordedUpstream): Promise<void> {
  const { init, up } = jobsIn(recording);
  const lasted = (from: Timestamp | undefined, to: Timestamp | undefined) =>
    String((nanosOf(to) - nanosOf(from)) / 1_000_000n);
  const error = "The SSH command responded with a non-zero exit status. (shortened)";
  const failed = { outcome: "failed", duration_ms: lasted(up.ack_time, up.complete_time), error_code: "2", error };
  expect(await operations(database)).toEqual([
    {
      kind: "job",
      subject: init.id,
      instance: "",
      exit_code: null,
      error_code: "",
      error: "",
      outcome: "succeeded",
      duration_ms: lasted(init.ack_time, init.complete_time),
    },
    { kind: "job", subject: up.id, instance: "", exit_code: null, ...failed },
    // The answered exit code is 0, which means nothing for a failed command.
    { kind: "command", subject: "up", instance: up.id, exit_code: null, ...failed },
  ]);
  const columns = "job, operation, command, scope_name, state, outcome, exit_code, error_code";
  expect(await ask(database, `select ${columns} from tapedeck.vagrant_jobs order by job`)).toEqual([
    {
      job: init.id,
      operation: "init",
      command: "",
      scope_name: "shop",
      state: "SUCCESS",
      outcome: "succeeded",
      exit_code: null,
      error_code: "",
    },
    {
      job: up.id,
      operation: "command",
      command: "up",
      scope_name: "shop",
      state: "SUCCESS",
      outcome: "failed",
      exit_code: null,
      error_code: "2",
    },
  ]);
  const targets = await ask(
    database,
    "select name, state, project_name, gone, message from tapedeck.vagrant_targets order by name",
  );
  expect(targets).toMatchObject(
    ["web1", "web2"].map((name) => ({ name, state: "CREATED", project_name: "shop", gone: false })),
  );
  for (const target of targets) {
    const { name, message } = target as { readonly name: string; readonly message: Buffer };
    expect(Target.decode(message).name).toBe(name);
  }
}

/** The commands of each sample as a person reads it. Setting up is a job without a command. */
export const labelledCommands: Readonly<Record<string, readonly object[]>> = {
  // From 41.590 to 42.645 s.
  up: [failedUp("1055")],
  // From 43.276 to 44.309 s.
  "up-shipped-cli": [failedUp("1033")],
};

/** The failures of each sample: phase, subject, error code. The job, which succeeded, is none. */
export const labelledFailures: Readonly<Record<string, readonly object[]>> = {
  up: [{ phase: "command", subject: "up", code: "2" }],
  "up-shipped-cli": [{ phase: "command", subject: "up", code: "2" }],
};

export function failures(database: string): Promise<readonly object[]> {
  return ask(
    database,
    "select phase, subject, error_code as code from tapedeck.failures where upstream = 'vagrant' order by position",
  );
}

/** A command about both machines names none; the second one's provisioner failed. */
function failedUp(ms: string) {
  return {
    command: "up",
    machine: null,
    provider: null,
    box: null,
    box_version: null,
    vagrant_version: "2.3.7",
    duration_ms: ms,
    outcome: "failed",
    exit_code: null,
    error_code: "2",
  };
}

export function commandTimes(database: string): Promise<readonly object[]> {
  return ask(
    database,
    `select command, machine, provider, box, box_version, duration_ms::text, outcome, exit_code, error_code, vagrant_version
     from tapedeck.vagrant_command_times order by start_position`,
  );
}

/** The operations of jobs and commands, in the order of their starts. */
export function operations(database: string): Promise<readonly object[]> {
  const columns = "kind, subject, instance, outcome, duration_ms::text, exit_code, error_code, error";
  return ask(
    database,
    `select ${columns} from tapedeck.operations where kind in ('job', 'command') order by start_position`,
  );
}

function nanosOf(time: Timestamp | undefined): bigint {
  return (time?.seconds ?? 0n) * 1_000_000_000n + BigInt(time?.nanos ?? 0);
}
