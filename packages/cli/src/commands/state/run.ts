import { styleText } from "node:util";
import { type Api, apiAt, type Page } from "../../api/api.ts";
import { CommandError } from "../../command-error.ts";
import { agoText } from "../../display/durations.ts";
import { shortSource } from "../../display/source-name.ts";
import { statusColour } from "../../display/status-colour.ts";
import { type PodEnds, type RktState, rktText } from "./rkt.ts";
import { type VagrantCommand, type VagrantState, vagrantText } from "./vagrant.ts";

export type StateOptions = {
  readonly url?: string;
  readonly json?: boolean;
  readonly source?: string;
  readonly session?: string;
  readonly at?: string;
};

type Phase = { readonly status?: string };
type Port = { readonly localPort: number; readonly containerName: string; readonly remotePort?: unknown };

/** Skaffold's v1 State, as much of it as is shown. */
type V1State = {
  readonly buildState?: {
    readonly artifacts?: Readonly<Record<string, string>>;
    readonly autoTrigger?: boolean;
  } | null;
  readonly testState?: Phase | null;
  readonly deployState?: (Phase & { readonly autoTrigger?: boolean }) | null;
  readonly statusCheckState?: (Phase & { readonly resources?: Readonly<Record<string, string>> }) | null;
  readonly fileSyncState?: (Phase & { readonly autoTrigger?: boolean }) | null;
  readonly forwardedPorts?: Readonly<Record<string, Port>>;
  readonly debuggingContainers?: readonly { readonly podName: string; readonly containerName: string }[];
};

type Operation = { readonly subject: string; readonly endedAt: string | null };

type StateAnswer = {
  readonly source: string;
  readonly session: string | null;
  readonly sessionEnded: boolean;
  readonly notHeardSince: string | null;
  readonly position: string;
} & (
  | { readonly upstream: "skaffold"; readonly state: { readonly v1: V1State } }
  | { readonly upstream: "rkt"; readonly state: RktState }
  | { readonly upstream: "vagrant"; readonly state: VagrantState }
);

export async function state({ url, json, source, session, at }: StateOptions): Promise<void> {
  const api = apiAt(url);
  const asked = source ?? (session === undefined ? undefined : await sourceOf(session, api));
  const answer = await api.get<StateAnswer>("/api/v1/state", { source: asked, session, at });
  if (json) {
    process.stdout.write(`${JSON.stringify(answer)}\n`);
    return;
  }
  const session_ = answer.session === null ? "no session yet" : `session ${answer.session}`;
  const ended = answer.sessionEnded ? ", ended" : "";
  console.log(`${styleText("bold", shortSource(answer.source))}  ${session_}${ended}`);
  console.log(styleText("dim", `as of ${answer.position}`));
  if (answer.notHeardSince !== null) console.log(styleText("red", notHeardText(answer.notHeardSince)));
  if (answer.upstream === "rkt") {
    console.log(`\n${rktText(answer.state, await podEnds(answer, api))}`);
    return;
  }
  if (answer.upstream === "vagrant") {
    console.log(`\n${vagrantText(answer.state, await lastCommands(answer, session, api))}`);
    return;
  }
  for (const [name, text] of stateLines(answer.state.v1)) console.log(`  ${name.padEnd(9)}${text}`);
}

/** What follows is what was known then. */
export function notHeardText(since: string, now = Date.now()): string {
  return `not heard since ${since.replace(/\.\d+/, "")} (${agoText(since, now)})`;
}

/** rkt does not tell when a pod ended; the record knows when it was seen so. */
async function podEnds({ source, session, position }: StateAnswer, api: Api): Promise<PodEnds> {
  if (session === null) return new Map();
  const asked = { source, session, kind: "pod", at: position, limit: 1_000 };
  const { items } = await api.get<Page<Operation>>("/api/v1/operations", asked);
  return new Map(items.flatMap(({ subject, endedAt }) => (endedAt === null ? [] : [[subject, endedAt] as const])));
}

/** Newest first, of earlier sessions too unless one is asked for: each command of a desk is a session of its own. */
async function lastCommands(
  { source, position }: StateAnswer,
  session: string | undefined,
  api: Api,
): Promise<readonly VagrantCommand[]> {
  const asked = { source, session, kind: "command", at: position, limit: 10 };
  const { items } = await api.get<Page<VagrantCommand>>("/api/v1/operations", asked);
  return items;
}

/** A session is of one source, so nobody need say both. */
async function sourceOf(session: string, api: Api): Promise<string> {
  const { items } = await api.get<Page<{ readonly source: string }>>("/api/v1/sessions", { session, limit: 1 });
  const [found] = items;
  if (found === undefined) throw new CommandError(`there is no session ${session}: see \`tapedeck sessions\`.`);
  return found.source;
}

/** One line for each part of the state. */
export function stateLines(v1: V1State): readonly (readonly [name: string, text: string])[] {
  const ports = Object.values(v1.forwardedPorts ?? {}).map(({ localPort, containerName }) =>
    containerName === "" ? String(localPort) : `${localPort} → ${containerName}`,
  );
  const debugged = (v1.debuggingContainers ?? []).map(({ podName, containerName }) => `${podName}/${containerName}`);
  const lines: (readonly [string, string])[] = [
    ["build", byName(v1.buildState?.artifacts)],
    ["test", phase(v1.testState)],
    ["deploy", phase(v1.deployState)],
    ["check", [phase(v1.statusCheckState), byName(v1.statusCheckState?.resources)].filter(Boolean).join("  ")],
    ["sync", phase(v1.fileSyncState)],
    ["ports", ports.join(", ")],
    ["debugged", debugged.join(", ")],
    ["auto", autos(v1)],
  ];
  return lines.filter(([, text]) => text !== "");
}

function phase(found: Phase | null | undefined): string {
  return found?.status === undefined ? "" : coloured(found.status);
}

function byName(statuses: Readonly<Record<string, string>> | undefined): string {
  return Object.entries(statuses ?? {})
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, status]) => `${name} ${coloured(status)}`)
    .join(", ");
}

function autos({ buildState, fileSyncState, deployState }: V1State): string {
  const flags = { build: buildState, sync: fileSyncState, deploy: deployState };
  if (Object.values(flags).every((found) => !found)) return "";
  return Object.entries(flags)
    .map(([name, found]) => `${name} ${found?.autoTrigger === true ? "on" : "off"}`)
    .join(", ");
}

function coloured(status: string): string {
  return styleText(statusColour(status), status);
}
