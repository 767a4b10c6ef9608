import { maintainClient } from "@tapedeck/gateway/for-cli/maintain";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { CommandError } from "../../command-error.ts";
import { inMessages } from "../../display/counted.ts";
import { print } from "../../display/output.ts";
import { auditHere } from "../../maintain/audit-here.ts";
import { dialRunning } from "../../maintain/here.ts";
import { routesHere, servicesChannel, servicesOptions } from "../../maintain/queries-here.ts";
import { type Rebuilding, remoteMaintenance } from "../../maintain/remote.ts";
import { announceTapedeck } from "../../maintain/which-tapedeck.ts";
import { Progress, type ProgressTo } from "../../progress.ts";

export type RebuildOptions = {
  readonly data: string;
  readonly url?: string;
  readonly here?: boolean;
  /** Default: all. */
  readonly workspace?: string;
};

/** Has query rebuild the tables: that of this machine's Tapedeck server, or that of another one through its gateway. */
export async function rebuildTables(options: RebuildOptions, progressTo: ProgressTo = {}): Promise<void> {
  const isElsewhere = announceTapedeck("rebuild", options);
  if (isElsewhere && options.workspace !== undefined)
    throw new CommandError("--workspace rebuilds the tables of one workspace on the server's own machine alone.");
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
  const rebuilding = isElsewhere
    ? remoteMaintenance(options.url).rebuild(stop.signal)
    : rebuildHere(options, stop.signal);
  const started = performance.now();
  let all = { messages: 0, events: 0 };
  using progress = new Progress({ what: "rebuild", unit: "messages", ...progressTo });
  for await (const { done, ...now } of rebuilding) {
    all = now;
    progress.reached(done, now.messages);
  }
  progress[Symbol.dispose]();
  const seconds = ((performance.now() - started) / 1_000).toFixed(1);
  if (stop.signal.aborted) print("stopped: the tables are unchanged, and the next rebuild continues from here");
  else print(`rebuilt the tables from ${inMessages(all)} (${seconds} s)`);
}

/** Goes past the gateway, which may require a token. */
async function* rebuildHere(
  { data, workspace = "" }: RebuildOptions,
  signal: AbortSignal,
): AsyncGenerator<Rebuilding, void> {
  await using machine = await dialRunning(data);
  const { ingest, routes } = await routesHere(machine);
  await using _ = routes;
  const queries = () => (workspace === "" ? routes.addresses() : [routes.addressFor(workspace)]);
  await auditHere(machine.nats, { action: "tables.rebuilt", about: workspace === "" ? {} : { workspace } });
  await using services = maintainClient({ ingest, queries }, machine.servicesKey, servicesChannel, servicesOptions);
  try {
    yield* services.rebuild({ workspace, fresh: false }, signal);
  } catch (cause) {
    if (cause instanceof TapedeckError) throw new CommandError(cause.message.replace(/\.?$/, "."), { cause });
    throw cause;
  }
}
