import { LocalizedMessage } from "@tapedeck/proto/google/rpc/error_details";
import type { Status } from "@tapedeck/proto/google/rpc/status";
import { type CommandDetail, type Event, type JobDetail, Outcome } from "@tapedeck/proto/tapedeck/v1/event";
import { type Job, type Job_CommandOp, type Job_CommandResult, Job_State } from "@tapedeck/proto/vagrant/vagrant";
import type { Fact } from "../../fact.ts";
import { canceled, failed, message, name, succeeded } from "../../facts.ts";

/** No field of an event may grow with its frame. */
const longestList = 100;

/** The detail that every fact of a job has. */
export function jobDetail(job: Job, id: string): JobDetail {
  const { operation, scope, target_runner } = job;
  const command = operation?.$case === "command" ? operation.value : undefined;
  return {
    job: name(id),
    operation: operation?.$case ?? "",
    command: command === undefined ? "" : name(command.command || (command.component?.name ?? "")),
    args: command === undefined ? [] : argsOf(command),
    scope: scope?.$case ?? "",
    scope_id: name(scope?.value.resource_id ?? ""),
    scope_name: name(scope?.value.name ?? ""),
    runner: target_runner?.target?.$case === "id" ? name(target_runner.target.value.id) : "",
    state: nameOfState(job.state),
    attempt: 0,
    reason: "",
    stale: false,
  };
}

/** The detail of a job that no answer has described yet. */
export function unknownJob(id: string, state: number): JobDetail {
  return {
    job: name(id),
    operation: "",
    command: "",
    args: [],
    scope: "",
    scope_id: "",
    scope_name: "",
    runner: "",
    state: nameOfState(state),
    attempt: 0,
    reason: "",
    stale: false,
  };
}

/** The arguments as the user would write them: positional ones, then flags. */
function argsOf({ cli_args }: Job_CommandOp): string[] {
  const flags = (cli_args?.flags ?? []).map((flag) => {
    if (flag.value?.$case === "string") return `--${flag.name}=${flag.value.value}`;
    return flag.value?.value === false ? `--${flag.name}=false` : `--${flag.name}`;
  });
  return [...(cli_args?.args ?? []), ...flags].slice(0, longestList).map(name);
}

export function commandDetail({ job, command, args, scope_name }: JobDetail): CommandDetail {
  return { job, command, args, scope_name, succeeded: false, exit_code: 0, canceled: false };
}

/** "QUEUED"; empty for a state that is newer than this description of the API. */
function nameOfState(state: number): string {
  const found = Object.entries(Job_State).find(([, number]) => number === state)?.[0] ?? "";
  return found === "UNRECOGNIZED" ? "" : found;
}

export type Ending = Pick<Fact, "outcome" | "error">;

/**
 * How a command ended. Neither its job's state nor exit_code shows it: only run_result shows success. A job that
 * succeeded without any result shows nothing about its command.
 */
export function commandEnding({ result, cancel_time, operation }: Job): Ending {
  const run = result?.run;
  if (run === undefined) return operation?.$case === "command" ? { outcome: Outcome.OUTCOME_UNKNOWN } : succeeded;
  if (run.run_result === true) return succeeded;
  const error = runError(run);
  return cancel_time === undefined ? failed(error) : { ...canceled, error };
}

function runError({ exit_code, run_error }: Job_CommandResult): NonNullable<Event["error"]> {
  if (run_error !== undefined) return errorOf(run_error, exit_code === 0 ? run_error.code : exit_code);
  if (exit_code === 0) return { code: "", message: "", suggestions: [] };
  return { code: String(exit_code), message: `exited with ${exit_code}`, suggestions: [] };
}

/** The error with its message for people, if it has one. */
export function errorOf(status: Status, code = status.code): NonNullable<Event["error"]> {
  return { code: String(code), message: message(localizedIn(status) ?? status.message), suggestions: [] };
}

function localizedIn({ details }: Status): string | undefined {
  const found = details.find(({ type_url }) => type_url.endsWith("/google.rpc.LocalizedMessage"));
  try {
    return (found && LocalizedMessage.decode(found.value).message) || undefined;
  } catch {
    return undefined;
  }
}
