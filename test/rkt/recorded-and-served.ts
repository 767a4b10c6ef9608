import { join } from "node:path";
import { type InventoryKind, loadRecording, type RecordedUnary } from "@tapedeck/fakes/rkt/recording";
import type { Event as RktEvent } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Stack, startStack } from "../stack/stack.ts";
import { type RktClient, rktClient } from "./client.ts";
import { errorsWithObservations } from "./errors-recording.ts";
import { expectEvents, kindOf, lineOf, rktKinds } from "./events.ts";
import { exceptions } from "./exceptions.ts";
import { kinds, type RktHost, settled, startRktHost } from "./host.ts";
import { labelledFailures, labelledRuns } from "./labelled-runs.ts";
import { answersNow, type PositionedAnswer } from "./positioned-answers.ts";
import { answerOf, stepsOf } from "./steps.ts";
import { ask, expectRuns } from "./tables.ts";

export const recordingsFolder = join(import.meta.dirname, "../../packages/fakes/recordings", "rkt");

export type Scenario = {
  /** The number of answers compared with recorded ones. */
  readonly compared: Readonly<Record<string, number>>;
  /**
   * Written by hand, from what was done to the host (the steps): see `lineOf`. Absent: there is an
   * expected-events.jsonl.
   */
  readonly events?: readonly string[];
  /** The reasons of expected gaps. */
  readonly gaps?: readonly string[];
  readonly timeout?: string;
  /** The number of runs of pods and apps in the operations. */
  readonly runs?: number;
};

/** The tests of one recording. */
export function recordedAndServed(name: string, scenario: Scenario): void {
  describe(`${name}, recorded and served again`, () => testsOf(name, scenario));
}

function testsOf(name: string, scenario: Scenario): void {
  const { compared, events, gaps = [], timeout = "1h" } = scenario;
  const loaded = loadRecording(join(recordingsFolder, name));
  const recording = name === "07-errors" ? errorsWithObservations(loaded) : loaded;
  const cleanup = new AsyncDisposableStack();
  const places: PositionedAnswer[] = [];
  let stack: Stack;
  let host: RktHost;
  let client: RktClient;

  beforeAll(async () => {
    host = cleanup.use(await startRktHost(recording));
    const source = { address: host.fake.address, interval: "10ms", redact: "off", timeout };
    stack = cleanup.use(await startStack({ rkt: [source] }));
    client = cleanup.use(rktClient(stack.grpc));
    await Promise.all(kinds.map((kind) => settled(host, stack, kind)));
  });
  afterAll(() => cleanup.disposeAsync());

  it("answers as the host did", async () => {
    const counts: Record<string, number> = {};
    const excepted: number[] = [];
    const compare = async (call: RecordedUnary) => {
      const { n, rpc, request, tag = "" } = call;
      const answer = { call: `${n} ${rpc} ${tag}`, ...(await client.ask(rpc, request)) };
      const asRecorded = { call: `${n} ${rpc} ${tag}`, ...answerOf(call) };
      const exception = exceptions[name]?.[n];
      if (exception === undefined) {
        counts[rpc] = (counts[rpc] ?? 0) + 1;
        expect(answer).toEqual(asRecorded);
      } else {
        excepted.push(n);
        expect(answer, exception.why).toMatchObject(exception.answer(recording, call));
        expect(answer, exception.why).not.toEqual(asRecorded);
      }
    };
    const play = async (kind: InventoryKind) => {
      for (const { polls, calls } of stepsOf(recording, kind)) {
        host.playTo(kind, polls);
        await settled(host, stack, kind);
        for (const call of calls) await compare(call);
        if (name === "01-full-lifecycle") places.push(...(await answersNow(kind, client, recording)));
      }
    };
    // The two are polled independently. In turns, each poll would hang for longer, and the tap polls slow hosts less.
    await Promise.all(kinds.map(play));
    expect(counts).toEqual(compared);
    expect(excepted.sort((a, b) => a - b)).toEqual(Object.keys(exceptions[name] ?? {}).map(Number));
  });

  it("gives the events of what was done", async () => {
    const actual = await hostEvents();
    if (events === undefined) expectEvents(actual, recording, host);
    else {
      const lines = kinds.flatMap((kind) => actual.filter((event) => kindOf(event) === kind));
      expect(lines.map((event) => lineOf(event, host))).toEqual(events);
    }
    const missed = (await stack.events()).flatMap(({ event }) => (event.kind === "session.gap" ? [event.summary] : []));
    expect(missed).toEqual(gaps);
  });

  if (name === "01-full-lifecycle")
    it("answers about a past position as it did then", async () => {
      const log = await stack.events();
      for (const { rpc, request, answer, offset, position, channel } of places) {
        expect(await client.ask(rpc, request, { "tapedeck-at": position })).toEqual(answer);
        // Polls are 10 ms apart, and a time includes all that was recorded until then.
        const last = log.findLast((one) => one.offset <= offset && [channel, "tapedeck"].includes(one.event.channel));
        const at = new Date((last?.recordedAt.getTime() ?? 0) + 2).toISOString();
        expect(await client.ask(rpc, request, { "tapedeck-at": at }), at).toEqual(answer);
      }
      const different = (rpc: string) =>
        new Set(places.filter((one) => one.rpc === rpc).map(({ answer }) => texted(answer)));
      // Absent, preparing, prepared, running, with a code, exited, garbage, being deleted.
      expect(different("ListPods").size).toBe(8);
      expect(different("InspectPod").size).toBe(8);
      // None, one, three, four, without one of them, without two.
      expect(different("ListImages").size).toBe(6);
    });

  if (scenario.runs !== undefined)
    it("has each run of a pod and of an app in SQL", async () => {
      await stack.caughtUp();
      expect(await expectRuns(stack.database, recording, await hostEvents())).toBe(scenario.runs);
    });

  it("has the runs of pods that a person reads from the recording", async () => {
    await stack.caughtUp();
    const rows = await ask(
      stack.database,
      `select left(pod, 4) || '-' || right(pod, 4) as pod, outcome, state, gone, apps::int, failed_apps::int as "failedApps",
         started_at is not null as started
       from tapedeck.pod_runs order by 1`,
    );
    expect(rows).toEqual(
      labelledRuns[name]?.map(({ outcome = null, gone: removed = false, failedApps = 0, started = true, ...run }) => ({
        ...run,
        outcome,
        gone: removed,
        failedApps,
        started,
      })),
    );
  });

  it("has the failures that a person reads from the recording", async () => {
    await stack.caughtUp();
    const rows = await ask(
      stack.database,
      `select phase, left(pod, 4) || '-' || right(pod, 4) as pod, app, error_code as code, failed_at is not null as dated
       from tapedeck.failures, lateral (select split_part(subject, '/', 1) as pod, split_part(subject, '/', 2) as app) of
       order by failed_at, position`,
    );
    const labelled = labelledFailures[name];
    expect(rows).toEqual(labelled?.map(([pod, app, code]) => ({ phase: "app", pod, app, code, dated: true })));
  });

  if (name === "01-full-lifecycle")
    it("keeps removed resources in its tables", async () => {
      const removed = (table: string, columns: string) =>
        ask(stack.database, `select ${columns}, gone, gone_at is not null as dated from tapedeck.${table} order by 1`);
      const isRemoved = { gone: true, dated: true };
      const isThere = { gone: false, dated: false };
      expect(await removed("rkt_pods", "pod, state, apps")).toEqual([
        { pod: "c6e226b0-5014-480c-b875-eb38a29bed83", state: "UNDEFINED", apps: 3, ...isRemoved },
      ]);
      expect(await removed("rkt_apps", "app, state, exit_code")).toEqual([
        { app: "batch", state: "EXITED", exit_code: 7, ...isRemoved },
        { app: "sidecar", state: "EXITED", exit_code: 0, ...isRemoved },
        { app: "worker", state: "EXITED", exit_code: 0, ...isRemoved },
      ]);
      expect(await removed("rkt_images", "name")).toEqual([
        { name: "other.example/batch", ...isRemoved },
        { name: "sim.example/stage1", ...isThere },
        { name: "sim.example/tools/sidecar", ...isRemoved },
        { name: "sim.example/worker", ...isThere },
      ]);
    });

  async function hostEvents(): Promise<RktEvent[]> {
    const log = await stack.events();
    return client.events(log.filter(({ event }) => rktKinds.has(event.kind)).length);
  }
}

function texted(answer: object): string {
  return JSON.stringify(answer, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value));
}
