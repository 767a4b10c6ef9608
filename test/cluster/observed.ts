import type { Timestamp } from "@tapedeck/proto/google/protobuf/timestamp";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import type { ReceivedEvent } from "../faults/subscribers.ts";
import type { Excused } from "./faults.ts";

/** A fault's time span, in ms since 1970, and the machine's one-minute load average at its end. */
export type Span = {
  readonly name: string;
  readonly from: number;
  readonly to: number;
  readonly load: number;
  /** What has no goal in it. */
  readonly excused?: Excused | undefined;
};

/** The longest times in ms. */
export type Observed = Span & {
  /** From an upstream's message until it was in the log. */
  readonly recording: number;
  /** From the log until a subscriber had it. */
  readonly live: number;
  /** Between two answers to each prober, by its name. */
  readonly reads: Readonly<Record<string, number>>;
};

/** The longest time until an upstream's message of this span was in the log. */
export function longestRecording(events: readonly RecordedEvent[], { from, to }: Span): number {
  const delays = events.flatMap(({ event, recordedAt }) => {
    const said = event.channel === "tapedeck" ? undefined : event.occurred_at && msOf(event.occurred_at);
    return said === undefined || said < from || said >= to ? [] : [recordedAt.getTime() - said];
  });
  return Math.max(0, ...delays);
}

/** The longest time until the subscriber had an event that was recorded in this span. */
export function longestDelivery(
  events: readonly RecordedEvent[],
  seen: readonly ReceivedEvent[],
  { from, to }: Span,
): number {
  const received = new Map(seen.map(({ event, receivedAt }) => [event.id, receivedAt]));
  const delays = events.flatMap(({ event, recordedAt }) => {
    const recorded = recordedAt.getTime();
    const at = received.get(event.id);
    return at === undefined || recorded < from || recorded >= to ? [] : [at - recorded];
  });
  return Math.max(0, ...delays);
}

/** The goals of docs/cluster.md, in ms. */
const goals = { recording: 10_000, state: 2_000, events: 2_000 };

/**
 * The load average for each core up to which times are judged. A cluster and its test make up to 2.5 themselves, of which
 * much is waiting for the disk.
 */
const judgedLoad = 3;

export type Judgement = { readonly missed: readonly string[]; readonly notJudged: readonly string[] };

/** Compares times with the goals. On a busy machine they say nothing about Tapedeck, so they are not judged. */
export function judged(rows: readonly Observed[], cores: number): Judgement {
  const isBusy = ({ load }: Observed) => load > judgedLoad * cores;
  const missed = rows.flatMap((row) => {
    if (isBusy(row)) return [];
    const reached = { recording: row.recording, state: row.reads.state ?? 0, events: row.reads.events ?? 0 };
    return (["recording", "state", "events"] as const)
      .filter((what) => what !== row.excused && reached[what] > goals[what])
      .map((what) => `${row.name}: ${what} ${seconds(reached[what])}, the goal is ${seconds(goals[what])}`);
  });
  return { missed, notJudged: rows.filter(isBusy).map(({ name, load }) => `${name} (load ${load.toFixed(1)})`) };
}

/** Renders a Markdown table, times in seconds. */
export function tableOf(rows: readonly Observed[]): string {
  const reads = Object.keys(rows[0]?.reads ?? {});
  const header = [
    "fault",
    "longest delay of a record",
    "of a live event",
    ...reads.map((name) => `${name} without an answer`),
    "lasted",
    "load",
  ];
  const lines = rows.map(({ name, recording, live, reads: waits, from, to, load }) => [
    name,
    ...[recording, live, ...reads.map((read) => waits[read] ?? 0)].map(seconds),
    seconds(to - from),
    load.toFixed(1),
  ]);
  return [header, header.map(() => "---"), ...lines].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

const seconds = (ms: number) => `${(Math.max(0, ms) / 1_000).toFixed(2)} s`;

const msOf = ({ seconds: whole, nanos }: Timestamp) => Number(whole) * 1_000 + nanos / 1e6;
