import { join } from "node:path";
import { openSpill, type Spill } from "@tapedeck/ingest/tap/spill";
import type { TapIdentity } from "@tapedeck/ingest/tap/spill-folder";
import { upstreams } from "@tapedeck/ingest/upstreams/index";
import type { TapItem } from "@tapedeck/ingest/upstreams/upstream";
import { pause } from "@tapedeck/shared/streams/pause";
import type { UpstreamName } from "@tapedeck/shared/upstreams";
import { ulid } from "ulid";
import { grpcTarget } from "../gateway-address.ts";
import { pushSource } from "../record/source-push.ts";
import type { Exit } from "./command-process.ts";
import type { Labels } from "./labels.ts";

export type RecordCommand = {
  readonly upstream: UpstreamName;
  /** Where the upstream in the command listens. */
  readonly address: string;
  /** Of the upstream's tap. */
  readonly settings?: Readonly<Record<string, string>> | undefined;
  /** Where Tapedeck takes frames, as `grpcTarget` reads it. */
  readonly to: string;
  readonly spillHome: string;
  readonly identity: Omit<TapIdentity, "tap" | "labels" | "upstream">;
  /** The developer that the user has named. */
  readonly asked: string | undefined;
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
  /** The Tapedeck that they are meant for, by the name of a target. */
  readonly to: string;
  /** Why, for people. */
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
  const { upstream, address, settings = {}, spillHome, warn } = options;
  const target = grpcTarget(options.to);
  const tap = ulid();
  const folder = join(spillHome, tap);
  const named = (labels: Labels): TapIdentity => ({ ...options.identity, upstream, tap, labels });
  const spill = await openSpill({ dir: folder, hello: named({}), to: target.name });
  const leaving = new AbortController();
  const connections = openConnections(spill, options);
  const running = upstreams[upstream].tap.run({ address, settings, emit: connections.emit, signal: leaving.signal });

  const told = new Set<string>();
  const push = pushSource({
    ...{ target, home: spillHome, spill, control: running.control, developer: options.asked, say: warn },
    identity: options.labels.then(named),
    // What passes by itself is worth a word only if it has not when the command ends.
    onAway: (trouble) => {
      if (trouble === undefined || trouble.mends || told.has(trouble.why)) return;
      told.add(trouble.why);
      warn(`not recorded for now: ${trouble.why}; what is heard waits on this machine`);
    },
  });

  return {
    finish: async (hurry) => {
      await connections.ended(lastFramesMs, hurry);
      connections.processEnded(await options.exited);
      leaving.abort();
      await running.done;
      connections.close();
      const all = await push.finish(commitMs, hurry);
      const { committed, nextIndex } = spill.state();
      // A command that opened no port said nothing: there is nothing to keep.
      const waiting = all ? 0 : Number(nextIndex - 1n - committed);
      if (waiting > 0) spill.persist();
      await spill[Symbol.asyncDispose]();
      return { waiting, folder, to: target.name, reason: push.trouble()?.why };
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
