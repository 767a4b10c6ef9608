import { coloured } from "../../display/colour.ts";
import { statusColour } from "../../display/status-colour.ts";

export type SkaffoldStateJson = { readonly v1: V1State };

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

/** One line for each part of the state. */
export function skaffoldText({ v1 }: SkaffoldStateJson): string {
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
  return lines
    .filter(([, text]) => text !== "")
    .map(([name, text]) => `  ${name.padEnd(9)}${text}`)
    .join("\n");
}

function phase(found: Phase | null | undefined): string {
  return found?.status === undefined ? "" : inItsColour(found.status);
}

function byName(statuses: Readonly<Record<string, string>> | undefined): string {
  return Object.entries(statuses ?? {})
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, status]) => `${name} ${inItsColour(status)}`)
    .join(", ");
}

function autos({ buildState, fileSyncState, deployState }: V1State): string {
  const flags = { build: buildState, sync: fileSyncState, deploy: deployState };
  if (Object.values(flags).every((found) => !found)) return "";
  return Object.entries(flags)
    .map(([name, found]) => `${name} ${found?.autoTrigger === true ? "on" : "off"}`)
    .join(", ");
}

function inItsColour(status: string): string {
  return coloured(statusColour(status), status);
}
