import { ownValue } from "@tapedeck/shared/own-value";
import { coloured } from "../../display/colour.ts";
import { agoText, tookText } from "../../display/durations.ts";
import { statusColour } from "../../display/status-colour.ts";
import { table } from "../../display/table.ts";

/** A Vagrant server as the API gives it, as much of it as is shown. What is zero is not there. */
export type VagrantStateJson = {
  readonly version: { readonly version?: string } | null;
  readonly targets: readonly VagrantTarget[];
  readonly projects: readonly { readonly name?: string; readonly path?: string }[];
  readonly boxes: readonly { readonly name?: string; readonly version?: string; readonly provider?: string }[];
  /** Those that are not over, and the newest of the others; in the order of queueing. */
  readonly jobs: readonly VagrantJob[];
};

type VagrantTarget = {
  readonly name?: string;
  readonly state?: string;
  readonly provider?: string;
  readonly project?: { readonly name?: string };
};

export type VagrantJob = {
  readonly id?: string;
  readonly state?: string;
  readonly queue_time?: string;
  readonly command?: { readonly command?: string; readonly cli_args?: Arguments };
} & Readonly<Record<string, unknown>>;

type Arguments = {
  readonly args?: readonly string[];
  readonly flags?: readonly { readonly name?: string; readonly string?: string; readonly bool?: boolean }[];
};

/** A command that has run or runs, of this session or one before it. */
export type RecordedVagrantCommand = {
  readonly subject: string;
  /** The job's id. */
  readonly instance?: string;
  readonly startedAt: string | null;
  readonly endedAt: string | null;
  readonly durationMs: number | null;
  readonly outcome: string | null;
  readonly error: string;
  readonly exitCode: number | null;
};

/** The server and its projects, its machines, what it does and has done (newest first), its boxes. */
export function vagrantText(
  state: VagrantStateJson,
  commands: readonly RecordedVagrantCommand[],
  now = Date.now(),
): string {
  const about = [
    state.version?.version && `Vagrant ${state.version.version}`,
    ...state.projects.map(({ name = "", path = "" }) => [name, path && `(${path})`].filter(Boolean).join(" ")),
  ];
  const parts = [about.filter(Boolean).join(", "), targetsText(state), runsText(state.jobs, commands, now)];
  return [...parts, boxesText(state)].filter((text) => text !== "").join("\n\n");
}

function targetsText({ targets, projects }: VagrantStateJson): string {
  if (targets.length === 0) return "No machines.";
  const titles = ["MACHINE", "STATE", "PROVIDER", ...(projects.length > 1 ? ["PROJECT"] : [])];
  const rows = targets.map(({ name = "-", state, provider = "-", project }) =>
    [name, inItsColour(machineState(state)), provider, project?.name ?? "-"].slice(0, titles.length),
  );
  return table(
    titles.map((title) => ({ title })),
    rows,
  );
}

/** The provider's word for such a machine: Vagrant has one word for a machine that is off and one that is destroyed. */
const machineStates: Readonly<Record<string, string>> = {
  CREATED: "running",
  DESTROYED: "powered off",
  NOT_CREATED: "not created",
};

function machineState(state = "UNKNOWN"): string {
  return ownValue(machineStates, state) ?? state.replaceAll("_", " ").toLowerCase();
}

function runsText(jobs: readonly VagrantJob[], commands: readonly RecordedVagrantCommand[], now: number): string {
  const known = new Set(commands.map(({ instance }) => instance));
  const unfinished = jobs.filter(({ id, state }) => !known.has(id) && state !== "SUCCESS" && state !== "ERROR");
  const byId = new Map(jobs.map((job) => [job.id, job]));
  const rows = [
    ...unfinished.toReversed().map((job) => [jobText(job), inItsColour(jobState(job)), agoText(job.queue_time, now)]),
    ...commands.map((command) => [
      jobText(byId.get(command.instance)) || command.subject,
      inItsColour(command.outcome ?? (command.endedAt === null ? "running" : "unknown")),
      agoText(command.startedAt ?? command.endedAt, now),
      tookText(command),
      whyText(command),
    ]),
  ];
  if (rows.length === 0) return "No commands.";
  return table(
    ["COMMAND", "OUTCOME", "BEGAN", "TOOK", "ERROR"].map((title) => ({ title })),
    rows.map((row) => [...row, "-", ""].slice(0, 5)),
  );
}

/** The command line: "up web1 --provision"; "(init)" for a job without a command. */
function jobText(job: VagrantJob | undefined): string {
  if (job === undefined) return "";
  const { command, cli_args: { args = [], flags = [] } = {} } = job.command ?? {};
  if (command === undefined) return `(${jobOperations.find((name) => name in job) ?? "job"})`;
  const options = flags.map(({ name = "", string, bool }) => {
    if (string !== undefined) return `--${name}=${string}`;
    return bool === false ? `--no-${name}` : `--${name}`;
  });
  return [command, ...args, ...options].join(" ");
}

const jobOperations = ["init", "init_basis", "init_project", "noop", "auth", "docs", "validate"] as const;

function jobState({ state = "" }: VagrantJob): string {
  return state === "WAITING" ? "assigned" : state.toLowerCase() || "unknown";
}

const longestWhy = 80;

/** The code is meaningless beside a message: Vagrant gives 0 then. */
function whyText({ outcome, error, exitCode }: RecordedVagrantCommand): string {
  if (outcome !== "failed") return "";
  const [line = ""] = error.trim().split("\n");
  const text = line || (exitCode ? `exit code ${exitCode}` : "");
  return text.length > longestWhy ? `${text.slice(0, longestWhy - 1)}…` : text;
}

function boxesText({ boxes }: VagrantStateJson): string {
  if (boxes.length === 0) return "";
  return table(
    ["BOX", "VERSION", "PROVIDER"].map((title) => ({ title })),
    boxes.map(({ name = "-", version = "-", provider = "-" }) => [name, version, provider]),
  );
}

function inItsColour(state: string): string {
  return coloured(statusColour(state), state);
}
