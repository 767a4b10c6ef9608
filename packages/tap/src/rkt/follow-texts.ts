import { type ClientReadableStream, type StatusObject, status } from "@grpc/grpc-js";
import { GetLogsRequest, type Pod, PodState, PublicAPIService } from "@tapedeck/proto/rkt/v1alpha/rkt";
import type { Connection } from "./connection.ts";
import type { Seen } from "./polling.ts";
import { linesOf, momentOfNanos, textOf, timeOf } from "./text-lines.ts";

export type FollowOptions = {
  readonly connection: Connection;
  readonly memory: TextMemory;
  readonly emit: (seen: Seen) => void;
  readonly pace?: TextPace;
};

export type Texts = {
  /** The pods as listed just now: opens what is new and leaves what has ended. */
  readonly see: (pods: readonly Pod[]) => void;
  /** Gives what is held back and leaves all streams. To be called at the end of the connection. */
  readonly leave: () => void;
};

/** What is known of a host's texts over all connections to it. */
export type TextMemory = {
  readonly streams: Map<string, Stream>;
  states: ReadonlyMap<string, PodState> | undefined;
};

/** What an app says, or (app "") everything in the pod. */
type Stream = {
  readonly pod: string;
  readonly app: string;
  /** The latest second of a line that was given. */
  second: bigint;
  opened: boolean;
  /** The pod has ended and all was heard. */
  finished: boolean;
  /** When the pod was not listed for the first time since it was; on the steady clock, as all times here. */
  goneAt: number | undefined;
};

/** A stream on this connection. */
type Opened = {
  readonly source: ClientReadableStream<Buffer> | undefined;
  heardAt: number;
  /** The pod was seen not running for the first time since it was. */
  endedAt: number | undefined;
  /** It has ended by itself so often since something was heard, and is not opened again before then. */
  failures: number;
  retryAt: number;
};

type Held = { readonly stream: Stream; readonly bytes: Buffer; readonly reopened: boolean; readonly due: number };

/** In ms. */
export type TextPace = {
  /** A pod that has ended: what was on its way has come by then. rkt itself never ends a stream. */
  readonly quiet: number;
  /** Doubles each time. */
  readonly firstRetry: number;
  /** What the pod says is given so much after what its apps say: most lines are known as an app's when they come. */
  readonly podDelay: number;
  /** One list may miss a pod that is there. */
  readonly forgetGone: number;
};

const usualPace: TextPace = { quiet: 5_000, firstRetry: 1_000, podDelay: 2_000, forgetGone: 60_000 };
const longestRetryMs = 30_000;
/** A pod that has just started has no journal yet; one that has none after so many questions gets none. */
const journalQuestions = 5;
const mostHeldBytes = 16 * 1024 * 1024;

export function newTextMemory(): TextMemory {
  return { streams: new Map(), states: undefined };
}

/**
 * Follows what the pods of a connection say: a stream for each app, as the lines themselves don't tell the app, and one
 * for the pod, which repeats all of them and has what its own services say.
 */
export function followTexts({ connection, memory, emit, pace = usualPace }: FollowOptions): Texts {
  const { streams } = memory;
  const opened = new Map<string, Opened>();
  const held: Held[] = [];
  let heldBytes = 0;
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;

  function see(pods: readonly Pod[]): void {
    if (isOver) return;
    const listed = new Map(pods.map((pod) => [pod.id, pod]));
    for (const pod of pods) if (isToFollow(pod)) addStreams(pod);
    memory.states = new Map(pods.map(({ id, state }) => [id, state]));
    for (const [key, stream] of streams) tend(key, stream, listed.get(stream.pod)?.state);
  }

  /** Those that run; and those that ran and ended between two looks. What had ended when we came is history. */
  function isToFollow({ id, state }: Pod): boolean {
    if (state === PodState.POD_STATE_RUNNING) return true;
    if (memory.states === undefined || !ended.has(state)) return false;
    return !ended.has(memory.states.get(id) ?? PodState.POD_STATE_UNDEFINED);
  }

  function addStreams({ id: pod, apps }: Pod): void {
    for (const app of [...apps.map(({ name }) => name), ""]) {
      const key = keyOf(pod, app);
      const known = streams.get(key);
      if (known !== undefined) known.finished = false;
      else streams.set(key, { pod, app, second: 0n, opened: false, finished: false, goneAt: undefined });
    }
  }

  function tend(key: string, stream: Stream, state: PodState | undefined): void {
    const now = performance.now();
    const isListed = state !== undefined;
    stream.goneAt = isListed ? undefined : (stream.goneAt ?? now);
    const on = opened.get(key);
    if (on?.source !== undefined) {
      on.endedAt = state === PodState.POD_STATE_RUNNING ? undefined : (on.endedAt ?? now);
      if (on.endedAt === undefined || now - Math.max(on.endedAt, on.heardAt) < pace.quiet) return;
      stream.finished = true;
      close(key, on);
    } else if (isListed && !stream.finished && now >= (on?.retryAt ?? 0)) {
      open(key, stream, on?.failures ?? 0);
    } else if (stream.goneAt !== undefined && now - stream.goneAt >= pace.forgetGone) {
      streams.delete(key);
      opened.delete(key);
    }
  }

  function open(key: string, stream: Stream, failures: number): void {
    const { pod, app } = stream;
    const request = { pod_id: pod, app_name: app, lines: 0, follow: true, since_time: since(stream), until_time: 0n };
    const source = connection.open(PublicAPIService.getLogs.path, GetLogsRequest.encode(request).finish());
    const on: Opened = { source, heardAt: performance.now(), endedAt: undefined, failures, retryAt: 0 };
    let reopened = stream.opened;
    stream.opened = true;
    opened.set(key, on);
    source.on("data", (bytes: Buffer) => {
      if (opened.get(key) !== on) return;
      on.heardAt = performance.now();
      on.failures = 0;
      if (app === "") hold({ stream, bytes, reopened, due: on.heardAt + pace.podDelay });
      else give(stream, bytes, reopened);
      reopened = false;
    });
    source.on("status", (end: StatusObject) => {
      if (opened.get(key) === on) over(key, on, end);
    });
  }

  /**
   * An app's stream goes back at least as far as its pod's: whoever compares the two finds every line of an app that
   * the pod repeats.
   */
  function since({ pod, app, second }: Stream): bigint {
    const all = app === "" ? second : (streams.get(keyOf(pod, ""))?.second ?? 0n);
    return all < second ? all : second;
  }

  function over(key: string, on: Opened, { code, details }: StatusObject): void {
    if (code === status.UNIMPLEMENTED || details === withoutLogs) {
      leave();
      emit({ $case: "failed", value: { code, message: details } });
      return;
    }
    const failures = on.failures + 1;
    const wait = Math.min(pace.firstRetry * 2 ** (failures - 1), longestRetryMs);
    const isFinal = details.startsWith(withoutJournal) && failures >= journalQuestions;
    const retryAt = isFinal ? Number.POSITIVE_INFINITY : performance.now() + wait;
    opened.set(key, { ...on, source: undefined, failures, retryAt });
  }

  function hold(one: Held): void {
    held.push(one);
    heldBytes += one.bytes.byteLength;
    if (heldBytes > mostHeldBytes) giveDue(mostHeldBytes / 2);
    timer ??= setTimeout(() => giveDue(), pace.podDelay);
  }

  /** Gives what has waited long enough, and more where more bytes than that are held. */
  function giveDue(most = mostHeldBytes): void {
    const now = performance.now();
    const stays = held.findIndex(({ due, bytes }) => {
      if (due > now && heldBytes <= most) return true;
      heldBytes -= bytes.byteLength;
      return false;
    });
    const given = held.splice(0, stays === -1 ? held.length : stays);
    clearTimeout(timer);
    const [first] = held;
    timer = first && setTimeout(() => giveDue(), first.due - now);
    for (const { stream, bytes, reopened } of given) give(stream, bytes, reopened);
  }

  function give(stream: Stream, bytes: Buffer, reopened: boolean): void {
    const { pod, app } = stream;
    const second = lastSecond(bytes);
    if (second > stream.second) stream.second = second;
    emit({ $case: "text", value: { pod, app, bytes, reopened } });
  }

  function close(key: string, on: Opened): void {
    opened.delete(key);
    on.source?.cancel();
  }

  function leave(): void {
    isOver = true;
    clearTimeout(timer);
    for (const { stream, bytes, reopened } of held.splice(0)) give(stream, bytes, reopened);
    for (const [key, on] of opened) close(key, on);
  }

  return { see, leave };
}

const ended: ReadonlySet<PodState> = new Set([PodState.POD_STATE_EXITED, PodState.POD_STATE_GARBAGE]);
const withoutLogs = "rkt built without logging support";
const withoutJournal = "logging unsupported for pod";

function keyOf(pod: string, app: string): string {
  return `${pod}/${app}`;
}

function lastSecond(response: Buffer): bigint {
  let last = 0n;
  for (const line of linesOf(response) ?? []) {
    const time = timeOf(textOf(line)) ?? 0n;
    if (time > last) last = time;
  }
  return momentOfNanos(last).seconds;
}
