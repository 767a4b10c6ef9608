import { print, printError, printJson } from "../../display/output.ts";
import { table } from "../../display/table.ts";
import { type Moving, remoteMaintenance } from "../../maintain/remote.ts";
import { Progress, type ProgressTo } from "../../progress.ts";

export type ListShardsOptions = { readonly url?: string; readonly json?: boolean };
export type MoveOptions = { readonly url?: string; readonly to: string };

export async function listShards({ url, json = false }: ListShardsOptions): Promise<void> {
  const shards = await remoteMaintenance(url).shards();
  if (json) {
    printJson(shards);
    return;
  }
  const rows = shards.map(({ name, state, workspaces }) => [name, state, workspaces.join(", ")]);
  print(table([{ title: "shard" }, { title: "state" }, { title: "workspaces" }], rows));
}

/** What people see of the steps that take time. */
const stepTexts: Partial<Readonly<Record<Moving["step"], { readonly what: string; readonly unit: string }>>> = {
  copying: { what: "copy", unit: "messages" },
  removing: { what: "remove from the old shard", unit: "messages" },
  rebuilding: { what: "rebuild the old shard's tables", unit: "events" },
};

export async function moveWorkspace(
  workspace: string,
  { url, to }: MoveOptions,
  progressTo: ProgressTo = {},
): Promise<void> {
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
  let step: Moving["step"] | undefined;
  let progress: Progress | undefined;
  let waitedSince: number | undefined;
  let isSwitched = false;
  try {
    for await (const { step: now, all, done } of remoteMaintenance(url).move({ workspace, to }, stop.signal)) {
      if (now === "fencing") waitedSince ??= performance.now();
      if (now === "switched") isSwitched = true;
      if (now === "switched" && waitedSince !== undefined) {
        print(`switched: nothing was recorded for ${((performance.now() - waitedSince) / 1_000).toFixed(1)} s`);
      }
      const show = stepTexts[now];
      if (now !== step) {
        progress?.[Symbol.dispose]();
        progress = show && new Progress({ ...show, ...progressTo });
        step = now;
      }
      progress?.reached(done, all);
    }
  } finally {
    progress?.[Symbol.dispose]();
    if (waitedSince !== undefined && !isSwitched) {
      printError(
        stop.signal.aborted
          ? `the gateway continues until ${workspace} is in ${to}: nothing is recorded in it until then`
          : `nothing is recorded in ${workspace} until it is in ${to}: the gateways retry by themselves`,
      );
    }
  }
  if (stop.signal.aborted) {
    const isLeft = waitedSince === undefined && !isSwitched;
    print(isLeft ? "stopped: the same command continues the move" : "stopped: the gateway finishes the move");
  } else print(step === undefined ? `${workspace} is in ${to} already` : `moved ${workspace} to ${to}`);
}
