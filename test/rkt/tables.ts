import type { RecordedRow, RecordedUpstream } from "@tapedeck/fakes/rkt/recording";
import { ListPodsResponse, type Event as RktEvent } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { Client } from "pg";
import { expect } from "vitest";
import { dataOf } from "./events.ts";

/** A line of expected-events.jsonl about an end. */
type Exit = { readonly type: string; readonly id: string; readonly from: string; readonly exit_code?: number };

/** An analyst's query: one run for each pod and app that ended, from rkt's start until the poll that missed it. */
export async function expectRuns(
  database: string,
  recording: RecordedUpstream,
  events: readonly RktEvent[],
): Promise<number> {
  const exits = (recording.expectedEvents as unknown as readonly Exit[]).filter(({ type }) => type.endsWith("_EXITED"));
  const starts = startsIn(recording.rows);
  const runs = exits.map(({ type, id, from, exit_code: code }) => {
    const isPod = type === "EVENT_TYPE_POD_EXITED";
    const failed = exits.some(
      (other) => (other.exit_code ?? 0) !== 0 && other.id === id && (isPod || other.from === from),
    );
    const exit = events.find(
      (event) => event.id === id && event.from === from && dataOf(event).time_source === "observed",
    );
    const lasted = nanosOf(dataOf(exit).observed_at ?? "") - (starts.get(id) ?? 0n);
    return {
      kind: isPod ? "pod" : "app",
      subject: isPod ? id : `${id}/${from}`,
      outcome: failed ? "failed" : "unknown",
      duration_ms: String(lasted / 1_000_000n),
      exit_code: code ?? null,
    };
  });
  const rows = await ask(
    database,
    `select kind, subject, outcome, duration_ms::text, exit_code from tapedeck.operations where kind in ('pod', 'app')`,
  );
  const sorted = (all: readonly object[]) => all.map((row) => JSON.stringify(row)).sort();
  expect(sorted(rows)).toEqual(sorted(runs));
  return runs.length;
}

export async function ask(database: string, sql: string): Promise<readonly object[]> {
  const client = new Client(database);
  await client.connect();
  try {
    return (await client.query<object>(sql)).rows;
  } finally {
    await client.end();
  }
}

/** By pod, ns since 1970. */
function startsIn(rows: readonly RecordedRow[]): ReadonlyMap<string, bigint> {
  const lists = rows.flatMap((row) =>
    row.kind === "unary" && row.rpc === "ListPods" && row.response !== undefined ? [row.response] : [],
  );
  const pods = lists.flatMap((bytes) => ListPodsResponse.decode(bytes).pods);
  return new Map(pods.flatMap(({ id, started_at }) => (started_at > 0n ? [[id, started_at] as const] : [])));
}

/** Nanoseconds since 1970 of an RFC 3339 time in UTC. */
function nanosOf(time: string): bigint {
  const [seconds = "", fraction = ""] = time.replace("Z", "").split(".");
  return BigInt(Date.parse(`${seconds}Z`)) * 1_000_000n + BigInt(fraction.padEnd(9, "0"));
}
