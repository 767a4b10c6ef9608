import type { UpstreamState } from "@tapedeck/client";

/** The colour and sign of a value; nothing else has a colour. */
export type Tone = "good" | "bad" | "running" | "warning" | "quiet";
export type StateRow = {
  readonly name: string;
  readonly value: string;
  readonly tone: Tone;
  /** An address outside of the page. */
  readonly link?: string;
  /** A path of the page. */
  readonly path?: string;
};
export type StateSection = { readonly title: string; readonly rows: readonly StateRow[] };

type Json = unknown;

/** A source's state as a few short tables, whatever its upstream is. */
export function stateSections(upstream: string, state: UpstreamState): readonly StateSection[] {
  const sections =
    upstream === "skaffold"
      ? skaffold(state)
      : upstream === "vagrant"
        ? vagrant(state)
        : upstream === "rkt"
          ? rkt(state)
          : [];
  return sections.filter(({ rows }) => rows.length > 0);
}

const at = (value: Json, ...path: readonly string[]): Json =>
  path.reduce<Json>(
    (found, key) => (found === null || typeof found !== "object" ? undefined : Reflect.get(found, key)),
    value,
  );
const text = (value: Json): string =>
  typeof value === "string" ? value : typeof value === "number" ? String(value) : "";
const list = (value: Json): readonly Json[] => (Array.isArray(value) ? value : []);
const entries = (value: Json): readonly (readonly [string, Json])[] =>
  value !== null && typeof value === "object" ? Object.entries(value) : [];

function skaffold(state: UpstreamState): readonly StateSection[] {
  // The second API has more; old versions have the first alone.
  const known = (at(state, "v2", "buildState") ?? undefined) === undefined ? at(state, "v1") : at(state, "v2");
  const phases = ["test", "render", "deploy", "statusCheck", "fileSync", "verify", "exec"] as const;
  return [
    {
      title: "Artifacts",
      rows: entries(at(known, "buildState", "artifacts")).map(([name, value]) => row(name, text(value))),
    },
    {
      title: "Phases",
      rows: phases
        .map((phase) => row(phaseNames[phase], text(at(known, `${phase}State`, "status"))))
        .filter(({ value }) => value !== "" && value !== "not started"),
    },
    {
      title: "Resources",
      rows: entries(at(known, "statusCheckState", "resources")).map(([name, value]) => row(name, text(value))),
    },
    { title: "Ports", rows: entries(at(known, "forwardedPorts")).map(([, port]) => portRow(port)) },
    {
      title: "Debugging",
      rows: list(at(known, "debuggingContainers")).map((one) =>
        row(text(at(one, "podName")), text(at(one, "runtime")) || text(at(one, "containerName"))),
      ),
    },
  ];
}

const phaseNames = {
  test: "tests",
  render: "render",
  deploy: "deploy",
  statusCheck: "status check",
  fileSync: "file sync",
  verify: "verify",
  exec: "exec",
} as const;

function portRow(port: Json): StateRow {
  const local = text(at(port, "localPort"));
  const target = text(at(port, "targetPort", "intVal")) || text(at(port, "remotePort"));
  const name = text(at(port, "resourceName")) || text(at(port, "podName"));
  return {
    name: `${name}${target === "" ? "" : `:${target}`}`,
    value: `localhost:${local}`,
    tone: "good",
    // A recorded value is not trusted as an address: it must not lead elsewhere.
    ...(/^\d+$/.test(local) && { link: `http://localhost:${local}` }),
  };
}

function vagrant(state: UpstreamState): readonly StateSection[] {
  return [
    {
      title: "Machines",
      rows: list(at(state, "targets")).map((target) =>
        row(
          text(at(target, "name")),
          text(at(target, "record", "state", "short_description")) || text(at(target, "state")),
        ),
      ),
    },
    { title: "Commands", rows: newestCommands(list(at(state, "jobs"))) },
    {
      title: "Boxes",
      rows: list(at(state, "boxes")).map((box) => ({
        name: text(at(box, "name")),
        value: `${text(at(box, "version"))} ${text(at(box, "provider"))}`.trim(),
        tone: "quiet",
      })),
    },
  ];
}

const maxCommands = 5;

/** The newest first, and of equal command lines the newest: "up web1", not its flags. Jobs come in the order of queueing. */
function newestCommands(jobs: readonly Json[]): readonly StateRow[] {
  const rows = new Map<string, StateRow>();
  for (const job of jobs.toReversed()) {
    const command = text(at(job, "command", "command"));
    const name = [command, ...list(at(job, "command", "cli_args", "args")).map(text)].join(" ");
    if (command !== "" && !rows.has(name)) rows.set(name, commandRow(name, job));
  }
  return [...rows.values()].slice(0, maxCommands);
}

/** A job whose command failed is a SUCCESS, too: only the result of the run shows how the command ended. */
function commandRow(name: string, job: Json): StateRow {
  const [state, run] = [text(at(job, "state")), at(job, "result", "run")];
  if (state !== "SUCCESS" && state !== "ERROR") return { name, value: words(state), tone: "running" };
  if ((run ?? undefined) === undefined) return row(name, state === "ERROR" ? "failed" : "end unknown");
  if (at(run, "run_result") === true) return row(name, "succeeded");
  return row(name, at(job, "cancel_time") === undefined ? "failed" : "canceled");
}

function rkt(state: UpstreamState): readonly StateSection[] {
  const pods = list(at(state, "pods")).map((pod): StateSection => {
    const podState = words(text(at(pod, "state")).replace(/^POD_STATE_/, ""));
    return {
      title: `Pod ${text(at(pod, "id")).slice(0, 8)} · ${podState}`,
      rows: list(at(pod, "apps")).map((app) => appRow(app, podState)),
    };
  });
  const images = list(at(state, "images")).map((image) => ({
    name: text(at(image, "name")),
    value: text(at(image, "version")),
    tone: "quiet" as const,
  }));
  return [...pods, { title: "Images", rows: images }];
}

function appRow(app: Json, podState: string): StateRow {
  const [name, state] = [text(at(app, "name")), words(text(at(app, "state")).replace(/^APP_STATE_/, ""))];
  if (state !== "exited") return row(name, state === "" ? podState : state);
  const code = Number(text(at(app, "exit_code")) || "0");
  return { name, value: `exited ${code}`, tone: code === 0 ? "quiet" : "bad" };
}

/** "InProgress", "NOT_STARTED" and "not created" as words. */
export function words(value: string): string {
  return value
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .replaceAll("_", " ")
    .toLowerCase();
}

function row(name: string, value: string): StateRow {
  const text = words(value);
  return { name, value: text, tone: toneOf(text) };
}

function toneOf(value: string): Tone {
  if (/fail|error|abort/.test(value)) return "bad";
  if (/complete|succeeded|running|ready|success/.test(value)) return "good";
  if (/progress|pending|started$/.test(value) && !value.startsWith("not")) return "running";
  return "quiet";
}
