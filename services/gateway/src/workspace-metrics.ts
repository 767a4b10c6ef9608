import { Gauge, type Registry, replaceSeries, type Series } from "@tapedeck/shared/service/metrics";
import type { ListedWorkspace } from "./apis/maintain/workspaces/list-workspaces.ts";

/** The number of workspaces that are named, the largest ones. The sum of all others has a name that no workspace can have. */
const maxNamed = 20;
const others = "(other)";

/** A thousand workspaces are not counted for each scrape of each gateway. */
const rememberedMs = 15_000;

type Figure = (workspace: ListedWorkspace) => number | undefined;

const figures: readonly { readonly name: string; readonly help: string; readonly of: Figure }[] = [
  {
    name: "tapedeck_gateway_workspace_bytes",
    help: "Size of the log of a workspace, of the 20 largest; (other): of all others.",
    of: ({ bytes }) => bytes,
  },
  {
    name: "tapedeck_gateway_workspace_messages",
    help: "Messages in the log of a workspace, likewise.",
    of: ({ messages }) => messages,
  },
  {
    name: "tapedeck_gateway_workspace_behind_messages",
    help: "How many messages the tables of a workspace are behind its log, likewise. Absent while query does not answer.",
    of: ({ tables }) => tables?.behindMessages,
  },
];

/** `list`: all workspaces. Rejects while they can't be listed: then there are no figures. */
export function workspaceMetrics(registry: Registry, list: () => Promise<readonly ListedWorkspace[]>): void {
  let listed: { readonly at: number; readonly found: Promise<readonly ListedWorkspace[]> } | undefined;
  const known = () => {
    const now = performance.now();
    if (listed === undefined || now - listed.at >= rememberedMs) {
      listed = { at: now, found: list().catch(() => []) };
    }
    return listed.found;
  };
  for (const { name, help, of } of figures) {
    new Gauge({
      name,
      help,
      labelNames: ["workspace"],
      registers: [registry],
      collect() {
        const series = async () =>
          [...named(await known(), of)].map(([workspace, value]): Series => [{ workspace }, value]);
        return replaceSeries(this, series());
      },
    });
  }
}

function named(all: readonly ListedWorkspace[], of: Figure): ReadonlyMap<string, number> {
  const values = new Map<string, number>();
  const bySize = all.toSorted((a, b) => b.bytes - a.bytes);
  for (const [at, one] of bySize.entries()) {
    const value = of(one);
    if (value === undefined) continue;
    const name = at < maxNamed ? one.workspace : others;
    values.set(name, (values.get(name) ?? 0) + value);
  }
  return values;
}
