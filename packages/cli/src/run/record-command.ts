import { join } from "node:path";
import { credentials } from "@grpc/grpc-js";
import { grpcLink } from "@tapedeck/ingest/tap/link";
import { type PushLog, pushItems } from "@tapedeck/ingest/tap/push";
import { openSpill, type Spill } from "@tapedeck/ingest/tap/spill";
import type { TapIdentity } from "@tapedeck/ingest/tap/spill-folder";
import { upstreams } from "@tapedeck/ingest/upstreams/index";
import type { TapItem } from "@tapedeck/ingest/upstreams/upstream";
import { RecorderClient } from "@tapedeck/proto/tapedeck/v1/recorder";
import { pause } from "@tapedeck/shared/streams/pause";
import type { UpstreamName } from "@tapedeck/shared/upstreams";
import { ulid } from "ulid";
import type { Exit } from "./command-process.ts";
import type { Labels } from "./labels.ts";
import { refusalIn } from "./refusal.ts";

export type RecordCommand = {
  readonly upstream: UpstreamName;
  /** Where the upstream in the command listens. */
  readonly address: string;
  /** Of the upstream's tap. */
  readonly settings?: Readonly<Record<string, string>> | undefined;
  /** Where Tapedeck takes frames. */
  readonly to: string;
  readonly spillHome: string;
  readonly identity: Omit<TapIdentity, "tap" | "labels" | "upstream">;
  readonly labels: Promise<Labels>;
  /** The command is the upstream's process itself, so its end and exit code are the session's. */
  readonly isUpstream: boolean;
  /** The upstream's process is gone when the command has ended and the connection with it. */
  readonly endsInside?: boolean | undefined;
  readonly exited: Promise<Exit>;
  /** One line for people, while the command has the terminal. */
  readonly warn: (line: string) => void;
};

export type Left = {
  /** Items that Tapedeck has not taken; they wait in `folder`. */
  readonly waiting: number;
  readonly folder: string;
  /** Why, in Tapedeck's own words if it had any. */
  readonly reason: string | undefined;
};

export type CommandRecording = {
  /** After the command's end: takes what is still coming, and gives Tapedeck a moment to commit it. */
  readonly finish: (hurry: AbortSignal) => Promise<Left>;
};

/** Between the command's end and our own: for its last frames, and for Tapedeck to commit all. */
const lastFramesMs = 1_000;
const commitMs = 2_000;

/** Starts the tap beside a command: it drains from the first moment, whether Tapedeck is there or not. */
export async function recordCommand(options: RecordCommand): Promise<CommandRecording> {
  const { upstream, address, settings = {}, to, warn } = options;
  const tap = ulid();
  const folder = join(options.spillHome, tap);
  const named = (labels: Labels): TapIdentity => ({ ...options.identity, upstream, tap, labels });
  const spill = await openSpill({ dir: folder, hello: named({}) });
  const leaving = new AbortController();
  const connections = openConnections(spill, options);
  const running = upstreams[upstream].tap.run({ address, settings, emit: connections.emit, signal: leaving.signal });

  let refusal: string | undefined;
  let isConnected = false;
  const log: PushLog = {
    info: () => {},
    warn: (fields) => {
      isConnected = false;
      refusal = refusalIn(fields) ?? refusal;
    },
  };
  const client = new RecorderClient(to, credentials.createInsecure(), {
    "grpc.initial_reconnect_backoff_ms": 100,
    "grpc.max_reconnect_backoff_ms": 1_000,
  });
  const stopped = new AbortController();
  const pushing = options.labels.then((labels) => {
    spill.rename(named(labels));
    return pushItems({
      link: grpcLink(client),
      spill,
      control: running.control,
      signal: stopped.signal,
      log,
      welcomed: () => {
        isConnected = true;
      },
      sourceTaken: () => {
        const { developer, project } = spill.hello();
        const other = { ...spill.hello(), project: nextName(project) };
        warn(`${developer}/${project} is recorded by another tap: this one is ${developer}/${other.project}`);
        return other;
      },
    });
  });

  return {
    finish: async (hurry) => {
      await connections.ended(lastFramesMs, hurry);
      connections.processEnded(await options.exited);
      leaving.abort();
      await running.done;
      connections.close();
      const push = await pushing;
      const giveUp = () => stopped.abort();
      hurry.addEventListener("abort", giveUp);
      const all = await push.finish(isConnected && !hurry.aborted ? commitMs : 0);
      hurry.removeEventListener("abort", giveUp);
      client.close();
      const { committed, nextIndex } = spill.state();
      // A command that opened no port said nothing: there is nothing to keep.
      const waiting = all ? 0 : Number(nextIndex - 1n - committed);
      if (waiting > 0) spill.persist();
      await spill[Symbol.asyncDispose]();
      return { waiting, folder, reason: refusal };
    },
  };
}

/** Hands items to the spill, and knows whether a connection is open. */
function openConnections(spill: Spill, { isUpstream, endsInside = false }: RecordCommand) {
  let open = 0;
  let held: TapItem | undefined;
  let idle = Promise.withResolvers<void>();
  idle.resolve();

  function release(): void {
    if (held !== undefined) spill.append(held);
    held = undefined;
  }

  function emit(item: TapItem): void {
    release();
    if (item.what?.$case === "dialled" && open++ === 0) idle = Promise.withResolvers();
    if (item.what?.$case !== "closed") {
      spill.append(item);
      return;
    }
    // The end of the upstream's process is told with the command's end, which comes later, and with its exit code.
    if (isUpstream || endsInside) held = item;
    else spill.append(item);
    if (--open === 0) idle.resolve();
  }

  return {
    emit,
    close: release,
    /** Resolves when no connection is open, or when it has taken too long. */
    ended: async (boundMs: number, hurry: AbortSignal): Promise<void> => {
      const over = new AbortController();
      const bound = AbortSignal.any([over.signal, hurry]);
      await Promise.race([idle.promise, pause(boundMs, bound)]);
      over.abort();
    },
    processEnded: ({ code }: Exit): void => {
      if (held?.what?.$case !== "closed") return;
      const value = {
        ...held.what.value,
        process_ended: true,
        ...(isUpstream && code !== null && { exit_code: code }),
      };
      held = { ...held, what: { $case: "closed", value } };
    },
  };
}

/** "shop" → "shop-2" → "shop-3". */
export function nextName(project: string): string {
  const [, name = project, number] = /^(.*)-(\d{1,3})$/.exec(project) ?? [];
  return number === undefined ? `${project}-2` : `${name}-${Number(number) + 1}`;
}
