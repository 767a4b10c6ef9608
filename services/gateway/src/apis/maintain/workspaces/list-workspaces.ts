import { jetstreamManager, type StreamInfo } from "@nats-io/jetstream";
import type { RetentionResponse } from "@tapedeck/proto/tapedeck/v1/maintain";
import type { ProjectedWorkspace } from "@tapedeck/proto/tapedeck/v1/query";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { epochOf } from "@tapedeck/shared/log/epoch";
import { sequenceOf } from "@tapedeck/shared/log/offset";
import { parsePosition } from "@tapedeck/shared/log/position";
import { everySubject, workspaceOfStream } from "@tapedeck/shared/log/subjects";
import { timeoutSignal } from "@tapedeck/shared/sync/timers";
import type { NatsConnection } from "nats";
import type { z } from "zod";
import type { MaintainClient } from "../../../maintain-client.ts";
import type { QueryClient } from "../../../query-client.ts";
import type { workspace, workspaceRetention } from "../../tapedeck/schemas/workspaces.ts";

export type ListDeps = {
  /** The connection to NATS. @throws TapedeckError not_ready */
  readonly nats: () => { readonly connection: NatsConnection };
  readonly query: Pick<QueryClient, "workspaces">;
  readonly services: Pick<MaintainClient, "retention">;
};

/** A workspace that has a log, or rows. */
export type ListedWorkspace = z.infer<typeof workspace>;
type TablesOfWorkspace = NonNullable<ListedWorkspace["tables"]>;
export type WorkspaceRetention = z.infer<typeof workspaceRetention>;

const timeoutMs = 2_000;

/** All workspaces, or one, in alphabetical order. What one service can't say now is null. */
export async function listWorkspaces(
  { nats, query, services }: ListDeps,
  only: string | undefined,
): Promise<readonly ListedWorkspace[]> {
  const [logs, { items, isUnknown = () => false }, retentions] = await Promise.all([
    logsOf(nats().connection),
    query.workspaces(only ?? "").catch(() => ({ items: [], isUnknown: () => true })),
    retentionsOf(services),
  ]);
  const projected = new Map(items.map((item) => [item.workspace, item]));
  const names = new Set([...logs.keys(), ...projected.keys()]);
  return [...names]
    .filter((name) => only === undefined || name === only)
    .toSorted()
    .map((name) => {
      const log = logs.get(name);
      const tables = projected.get(name);
      const { messages = 0, bytes = 0, first_ts, last_ts } = log?.state ?? {};
      return {
        workspace: name,
        state: log !== undefined ? "recorded" : tables?.removed === true ? "removed" : "lost",
        messages,
        bytes,
        oldestAt: messages === 0 ? null : timeOf(first_ts),
        newestAt: messages === 0 ? null : timeOf(last_ts),
        tables: isUnknown(name) ? null : tablesOf(log, tables),
        retention: retentions === undefined ? null : retentionOf(retentions, name),
      };
    });
}

async function logsOf(connection: NatsConnection): Promise<ReadonlyMap<string, StreamInfo>> {
  try {
    const jsm = await jetstreamManager(connection, { timeout: timeoutMs, checkAPI: false });
    const all = await Array.fromAsync(jsm.streams.list(everySubject));
    return new Map(
      all.flatMap((info) => {
        const name = workspaceOfStream(info.config.name);
        return name === undefined ? [] : [[name, info] as const];
      }),
    );
  } catch (cause) {
    throw new TapedeckError("not_ready", "the logs can't be listed: try again in a moment", {}, { cause });
  }
}

function tablesOf(log: StreamInfo | undefined, tables: ProjectedWorkspace | undefined): TablesOfWorkspace {
  const last = log?.state.last_seq ?? 0;
  const position = parsePosition(tables?.position ?? "");
  const reached = position !== undefined && position.epoch === (log && epochOf(log)) ? sequenceOf(position.offset) : 0;
  return {
    sources: Number(tables?.sources ?? 0),
    events: Number(tables?.events ?? 0),
    behindMessages: Math.max(0, last - reached),
    query: tables?.query ?? "",
    waitsFor: tables?.waits_for || null,
  };
}

/** By workspace; that of the settings is under "". Undefined: ingest does not answer soon. */
async function retentionsOf({ retention }: ListDeps["services"]) {
  try {
    const signal = timeoutSignal(timeoutMs);
    const all = await Array.fromAsync(retention(signal));
    return signal.aborted ? undefined : new Map(all.map((one) => [one.workspace, one]));
  } catch {
    return undefined;
  }
}

function retentionOf(all: ReadonlyMap<string, RetentionResponse>, workspace: string): WorkspaceRetention {
  return retentionIn(all.get(workspace) ?? all.get(""), !all.has(workspace));
}

export function retentionIn(one: RetentionResponse | undefined, isDefault: boolean): WorkspaceRetention {
  const seconds = (value: bigint | undefined) => (value === undefined ? null : Number(value));
  return { factsSeconds: seconds(one?.facts_seconds), textSeconds: seconds(one?.text_seconds), isDefault };
}

function timeOf(text: string | undefined): string | null {
  return text === undefined ? null : new Date(text).toISOString();
}
