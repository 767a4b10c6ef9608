import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import type { ReadableStream } from "node:stream/web";
import type { AuditEntry } from "@tapedeck/shared/audit/entry";
import type { SessionExport } from "@tapedeck/shared/audit/session-exports";
import type { Snapshot } from "@tapedeck/shared/log/backup";
import { backoff, delay } from "@tapedeck/shared/sync/delay";
import { nobodyAnswers } from "../api/api.ts";
import { CommandError } from "../command-error.ts";
import { httpBase } from "../gateway-address.ts";
import type { BackupWriter, BesideLogs } from "./backup-folder.ts";

/** Maintenance through a gateway, for a remote admin. Everything throws CommandError. */
export type RemoteMaintenance = {
  readonly erase: (session: string, signal: AbortSignal) => AsyncIterable<Erasing>;
  readonly eraseDeveloper: (developer: string, signal: AbortSignal) => AsyncIterable<ErasingDeveloper>;
  readonly rebuild: (signal: AbortSignal) => AsyncIterable<Rebuilding>;
  readonly workspaces: () => Promise<readonly ListedWorkspace[]>;
  readonly workspace: (name: string) => Promise<ListedWorkspace>;
  readonly removeWorkspace: (name: string, signal: AbortSignal) => AsyncIterable<RemovingWorkspace>;
  readonly setRetention: (
    name: string,
    retention: { readonly facts?: string | undefined; readonly text?: string | undefined },
  ) => Promise<WorkspaceRetention>;
  /** The audit log (who did what), the oldest first. Times are RFC 3339. */
  readonly audit: (period: { readonly since?: string; readonly until?: string }) => AsyncIterable<AuditEntry>;
  /** Gives the logs of all workspaces, or of one, to `writer`. Resolves with what is kept beside them. */
  readonly backUp: (
    writer: Pick<BackupWriter, "begin" | "take" | "end">,
    options: { readonly workspace?: string | undefined; readonly signal: AbortSignal },
  ) => Promise<BesideLogs>;
};

export type Erasing = {
  readonly source: string;
  readonly state: "removing" | "done";
  /** Absent until they are counted. */
  readonly events?: number | undefined;
  readonly removed: number;
  /** Earlier exports of the session. Absent: not known. */
  readonly exports?: readonly SessionExport[] | undefined;
};
export type ErasingDeveloper = {
  readonly state: "removing" | "done";
  readonly sessions: number;
  readonly erased: number;
  /** What keeps it from its end; empty or absent: nothing does. */
  readonly waitsFor?: string | undefined;
  /** At its end. Absent: not known. */
  readonly exports?: readonly SessionExport[] | undefined;
  /** At its end: tokens that still record under the name. */
  readonly tokens?: readonly { readonly id: string; readonly name: string }[];
};
/** See Workspace of the API. */
export type ListedWorkspace = {
  readonly workspace: string;
  readonly state: "recorded" | "removed" | "lost";
  readonly messages: number;
  readonly bytes: number;
  readonly oldestAt: string | null;
  readonly newestAt: string | null;
  readonly tables: {
    readonly sources: number;
    readonly events: number;
    readonly behindMessages: number;
    /** The query that has them; empty: the default one. */
    readonly query: string;
    readonly waitsFor: string | null;
  } | null;
  readonly retention: WorkspaceRetention | null;
};
/** In seconds; null: for ever. */
export type WorkspaceRetention = {
  readonly factsSeconds: number | null;
  readonly textSeconds: number | null;
  readonly isDefault: boolean;
};
export type RemovingWorkspace = {
  readonly state: "requested" | "removing" | "done";
  readonly messages: number;
};
export type Rebuilding = { readonly messages: number; readonly done: number; readonly events: number };

/** Uses the HTTP API of the named or chosen gateway (`chosenTapedeck`), with an admin's token if one is needed. */
export function remoteMaintenance(url: string | undefined): RemoteMaintenance {
  const { base, headers } = httpBase(url);

  async function ask(method: string, path: string, signal?: AbortSignal, body?: object): Promise<Readable> {
    const json = body && { body: JSON.stringify(body), headers: { ...headers, "content-type": "application/json" } };
    const request = { method, headers, ...json, ...(signal && { signal }) };
    const response = await fetch(`${base}/api/v1/${path}`, request).catch((error: Error) => {
      const { message } = nobodyAnswers(base, (error.cause as NodeJS.ErrnoException | undefined)?.code);
      throw new PassingError(message, { cause: error });
    });
    if (response.ok && response.body !== null) return Readable.fromWeb(response.body as ReadableStream);
    const { error } = ((await response.json().catch(() => ({}))) ?? {}) as { error?: { message?: string } };
    const message = error?.message ?? `${base} answered ${response.status}`;
    throw passing.includes(response.status) ? new PassingError(message) : new CommandError(message);
  }

  async function json<T>(method: string, path: string, body?: object): Promise<T> {
    return JSON.parse(await text(await ask(method, path, undefined, body))) as T;
  }

  async function* progress<T>(method: string, path: string, signal?: AbortSignal): AsyncGenerator<T, void> {
    try {
      for await (const line of linesOf(await ask(method, path, signal))) {
        const { type, error, ...update } = JSON.parse(line) as { type: string; error?: ErrorBody };
        if (type === "complete") return;
        if (error?.code === "not_ready") throw new PassingError(error.message);
        if (error !== undefined) throw new CommandError(error.message);
        yield update as Awaited<T>;
      }
    } catch (error) {
      if (signal?.aborted !== true) throw error;
    }
    if (signal?.aborted !== true) throw brokenOff();
  }

  /** Requests again after a broken connection: the server continues meanwhile, and reports its progress. */
  async function* erase<T>(path: string, signal: AbortSignal): AsyncGenerator<T, void> {
    const retry = backoff(1_000, 10_000);
    let heardAt: number | undefined;
    while (!signal.aborted) {
      try {
        for await (const now of progress<T>("DELETE", path, signal)) {
          heardAt = performance.now();
          retry.reset();
          yield now as Awaited<T>;
        }
        return;
      } catch (error) {
        const isOver = heardAt === undefined || performance.now() - heardAt > silentMs;
        if (isOver || !(error instanceof PassingError)) throw error;
      }
      await delay(retry.next(), signal);
    }
  }

  return {
    erase: (session, signal) => erase<Erasing>(`sessions/${encodeURIComponent(session)}`, signal),
    eraseDeveloper: (developer, signal) =>
      erase<ErasingDeveloper>(`developers/${encodeURIComponent(developer)}`, signal),
    workspaces: async () => (await json<{ readonly items: readonly ListedWorkspace[] }>("GET", "workspaces")).items,
    workspace: (name) => json("GET", `workspaces/${encodeURIComponent(name)}`),
    removeWorkspace: (name, signal) => erase<RemovingWorkspace>(`workspaces/${encodeURIComponent(name)}`, signal),
    setRetention: (name, retention) => json("POST", `workspaces/${encodeURIComponent(name)}/retention`, retention),
    rebuild: (signal) => progress<Rebuilding>("POST", "rebuild", signal),
    audit: (period) => progress<AuditEntry>("GET", `audit?${new URLSearchParams(period)}`),
    async backUp(writer, { workspace, signal }) {
      const path = workspace === undefined ? "backup" : `backup?workspace=${encodeURIComponent(workspace)}`;
      for await (const { letter, content } of framesOf(await ask("GET", path, signal))) {
        if (letter === "p") await writer.take(content);
        else if (letter === "w")
          await writer.begin((JSON.parse(content.toString()) as { workspace: string }).workspace);
        else if (letter === "s") await writer.end(JSON.parse(content.toString()) as Snapshot);
        else if (letter === "z") return besideLogsIn(content);
        else throw new CommandError((JSON.parse(content.toString()) as { message: string }).message);
      }
      throw brokenOff();
    },
  };
}

/** A gateway of an earlier version sends no sinks. */
function besideLogsIn(content: Buffer): BesideLogs {
  const beside = JSON.parse(content.toString()) as Pick<BesideLogs, "tokens"> & Partial<BesideLogs>;
  return { ...beside, sinks: beside.sinks ?? {} };
}

/** Whether trying again may help: the server does not answer at present, or the connection was lost. */
class PassingError extends CommandError {}

/** The status of too many calls, of a Tapedeck that is starting, and of a proxy whose Tapedeck does not answer. */
const passing: readonly number[] = [429, 502, 503, 504];

/** How long after the last answer a command asks again. */
const silentMs = 120_000;

type ErrorBody = { readonly code?: string; readonly message: string };

function brokenOff(cause?: unknown): PassingError {
  return new PassingError("the connection was lost: run the command again.", { cause });
}

/** @throws PassingError when the connection breaks off */
async function* linesOf(stream: AsyncIterable<Uint8Array>): AsyncGenerator<string, void> {
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for await (const chunk of stream) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      yield* lines;
    }
  } catch (cause) {
    throw brokenOff(cause);
  }
}

const headBytes = 5;

/** Reads the frames of the gateway's /api/v1/backup: a letter, a length, and that many bytes. */
async function* framesOf(stream: AsyncIterable<Uint8Array>) {
  let rest = Buffer.alloc(0);
  for await (const chunk of stream) {
    rest = Buffer.concat([rest, chunk]);
    for (;;) {
      const end = rest.length < headBytes ? Number.POSITIVE_INFINITY : headBytes + rest.readUInt32BE(1);
      if (rest.length < end) break;
      yield { letter: rest.toString("latin1", 0, 1), content: rest.subarray(headBytes, end) };
      rest = rest.subarray(end);
    }
  }
}
