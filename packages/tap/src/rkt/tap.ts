import { status } from "@grpc/grpc-js";
import { PublicAPIService } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { Look } from "@tapedeck/proto/tapedeck/v1/look";
import type { ControlAnswer, ControlRequest, Item } from "@tapedeck/proto/tapedeck/v1/recorder";
import { backoff, pause } from "@tapedeck/shared/sync/delay";
import { wallClock } from "@tapedeck/shared/time/wall-clock";
import { ulid } from "ulid";
import type { RunningTap, TapOptions, UpstreamTap } from "../tap.ts";
import { type Connection, dial } from "./connection.ts";
import { followTexts, newTextMemory } from "./follow-texts.ts";
import { imageDoubts, podDoubts } from "./list-doubts.ts";
import { poll, polledImages, polledPods, type Seen } from "./polling.ts";

export const channels = ["pods", "images", "logs"] as const;
export type Channel = (typeof channels)[number];

/** Between attempts to reach a server that is away; after one that is not rkt's the longer ones. */
const awayMs = { first: 250, longest: 5_000 };
const strangerMs = { first: 1_000, longest: 30_000 };
/** A connection that lives this long was a good one: after it we are quick again. */
const steadyMs = 5_000;

/**
 * Looks at one rkt host again and again: rkt tells no events. It concludes nothing; it only asks at once for what one
 * look makes doubtful about the one before. Settings: `interval` between two looks at the pods (or images) and `timeout`
 * of one call, in ms, by default 1000 and 10000; `load`: percent of one of the host's processors that looks may take, by default 2.
 */
export const tap: UpstreamTap = { livesInCommand: false, run };

function run(options: TapOptions): RunningTap {
  const { address, emit, signal, skipChannels = [], settings = {} } = options;
  // Who runs is known from the pods: without them there are no logs.
  const left = skipChannels.includes("pods") ? [...skipChannels, "logs"] : skipChannels;
  const wanted = channels.filter((channel) => !left.includes(channel));
  const intervalMs = milliseconds(settings.interval, 1_000);
  const timeoutMs = milliseconds(settings.timeout, 10_000);
  const load = Number(settings.load ?? 2) / 100;
  const now = wallClock();
  // What was seen last is compared with what is seen first on the next connection.
  const doubts = { pods: podDoubts(), images: imageDoubts() };
  let texts = newTextMemory();
  let host: string | undefined;

  async function listen(): Promise<void> {
    const away = backoff(awayMs.first, awayMs.longest);
    const strange = backoff(strangerMs.first, strangerMs.longest);
    let isStranger = false;
    while (!signal.aborted) {
      const dialled = await dial({ address, timeoutMs, signal });
      if (dialled.there === "stranger") {
        // Once is enough, as it is likely to stay what it is.
        if (!isStranger) refuse(dialled.reason);
        isStranger = true;
        await pause(strange.next(), signal);
        continue;
      }
      isStranger = false;
      strange.reset();
      if (dialled.there === "rkt") {
        const since = performance.now();
        await listenOnce(dialled.connection);
        if (performance.now() - since >= steadyMs) away.reset();
      }
      await pause(away.next(), signal);
    }
  }

  function connectionTeller(): (what: NonNullable<Item["what"]>) => void {
    const connection = ulid();
    return (what) => emit({ connection, at: now(), what });
  }

  function refuse(reason: string): void {
    const tell = connectionTeller();
    tell({ $case: "dialled", value: { address, channels: [] } });
    tell({ $case: "closed", value: { reason: `no api-service of rkt: ${reason}`, process_ended: false } });
  }

  async function listenOnce(connection: Connection): Promise<void> {
    const tell = connectionTeller();
    const { identity, version, info } = connection;
    tell({ $case: "dialled", value: { address, channels: [...wanted] } });
    tell({ $case: "identified", value: { identity, version } });
    tell({ $case: "described", value: { channel: "info", state: info } });
    if (host !== identity) {
      doubts.pods.forget();
      doubts.images.forget();
      texts = newTextMemory();
      host = identity;
    }

    const look = (channel: Channel) => (seen: Seen) => {
      const bytes = Buffer.from(Look.encode({ seen }).finish());
      tell({ $case: "frame", value: { channel, bytes, more: false } });
    };
    const follower = wanted.includes("logs")
      ? followTexts({ connection, memory: texts, emit: look("logs") })
      : undefined;
    const common = { connection, intervalMs, load, timeoutMs, roundTripMs: await roundTrip(connection, timeoutMs) };
    const onList = () => follower?.see(doubts.pods.listed() ?? []);
    const pods = () => poll({ ...common, what: polledPods, doubts: doubts.pods, emit: look("pods"), onList });
    const images = () => poll({ ...common, what: polledImages, doubts: doubts.images, emit: look("images") });
    const polls = [...(wanted.includes("pods") ? [pods()] : []), ...(wanted.includes("images") ? [images()] : [])];
    const reason = await connection.over;
    follower?.leave();
    await Promise.all(polls);
    tell({ $case: "closed", value: { reason, process_ended: false } });
  }

  async function control({ call }: ControlRequest): Promise<ControlAnswer> {
    return { call, code: status.UNIMPLEMENTED, message: "rkt has no control calls", response: Buffer.alloc(0) };
  }

  return { done: listen(), control };
}

/** What an answer takes that costs rkt next to nothing: the quickest of a few. */
async function roundTrip({ call }: Pick<Connection, "call">, timeoutMs: number): Promise<number> {
  let quickest = Number.POSITIVE_INFINITY;
  for (let n = 0; n < 3; n += 1) {
    const asked = performance.now();
    await call(PublicAPIService.getInfo.path, nothing, timeoutMs);
    quickest = Math.min(quickest, performance.now() - asked);
  }
  return quickest;
}

const nothing = Buffer.alloc(0);

function milliseconds(text: string | undefined, byDefault: number): number {
  const ms = Number(text);
  return Number.isFinite(ms) && ms > 0 ? ms : byDefault;
}
