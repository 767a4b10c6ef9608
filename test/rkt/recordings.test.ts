import { join } from "node:path";
import { type InventoryKind, loadRecording, type RecordedUnary, type Row } from "@tapedeck/fakes/rkt/recording";
import { GetInfoRequest, type Event as RktEvent } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Stack, startStack } from "../stack/stack.ts";
import { type RktClient, rktClient } from "./client.ts";
import { errorsWithObservations } from "./errors-recording.ts";
import { expectEvents, kindOf, lineOf, rktKinds } from "./events.ts";
import { exceptions } from "./exceptions.ts";
import { kinds, type RktHost, settled, startRktHost } from "./host.ts";
import { answersNow, type PositionedAnswer } from "./positioned-answers.ts";
import { answerOf, stepsOf } from "./steps.ts";
import { ask, expectRuns } from "./tables.ts";

const fixtures = join(import.meta.dirname, "../../packages/fakes/recordings", "rkt");

type Scenario = {
  /** So many answers were compared with recorded ones. */
  readonly compared: Readonly<Record<string, number>>;
  /** By hand, from what was done to the host (the steps): see `lineOf`. Absent: there is an expected-events.jsonl. */
  readonly events?: readonly string[];
  /** Reasons of what Tapedeck could not see. */
  readonly gaps?: readonly string[];
  readonly timeout?: string;
  /** So many runs of pods and apps are in the operations. */
  readonly runs?: number;
};

const scenarios: Readonly<Record<string, Scenario>> = {
  "01-full-lifecycle": { compared: { GetInfo: 1, ListPods: 11, InspectPod: 8, ListImages: 7 }, runs: 4 },
  "02-fast-and-skipped-states": { compared: { ListPods: 12, InspectPod: 11, ListImages: 1 } },
  "03-prepare-aborted": { compared: { ListPods: 7, InspectPod: 3, ListImages: 2 } },
  "05-app-exit-codes": { compared: { ListPods: 11, InspectPod: 12, ListImages: 3 }, runs: 10 },
  // Nothing was done to the host while it was looked at.
  "06-filters": { compared: { ListPods: 38, InspectPod: 7, ListImages: 25, InspectImage: 1 }, events: [] },
  // Two pods were prepared, one of them was renamed (its id is gone, another one is there), an image was removed.
  "07-errors": {
    compared: { InspectPod: 12, ListPods: 4, InspectImage: 7, ListImages: 2 },
    events: [
      "POD_PREPARED feed-0001 created_at 1795188503",
      "POD_PREPARED feed-0002 created_at 1795188503",
      "POD_PREPARED beef-0002 created_at 1795188503",
      "POD_GARBAGE_COLLECTED feed-0002 look 3 phase=never-ran",
      "IMAGE_REMOVED other.example/batch look 2 version=0.0.7",
    ],
  },
  "10-blocking-start": {
    compared: { ListPods: 5, InspectPod: 2, ListImages: 1 },
    timeout: "3s",
    gaps: ["something of pods may be missing: the pods could not be listed: no answer within 3000 ms"],
    events: [
      // A was prepared at :48.41, and its pid file came with the fourth look; it exited before the fifth.
      "POD_PREPARED dbec-22d7 created_at 1795188528 inferred=true",
      "POD_STARTED dbec-22d7 started_at 1795188530",
      "APP_STARTED dbec-22d7/worker started_at 1795188530",
      "APP_EXITED dbec-22d7/worker look 5 exit_code=0",
      "POD_EXITED dbec-22d7 look 5",
      // B died before its pid file. C came when nobody looked any more.
      "POD_PREPARED ed27-ed3f created_at 1795188532 inferred=true",
      "POD_EXITED ed27-ed3f look 7 started=false",
    ],
  },
  // The worker was removed and fetched again three times between looks, or missing in one; then it was removed for good.
  "11-image-cache": {
    compared: { ListImages: 7 },
    events: [
      "IMAGE_IMPORTED sim.example/stage1 import_timestamp 1795188538 version=0.2.0",
      "IMAGE_IMPORTED sim.example/tools/sidecar import_timestamp 1795188540 version=latest",
      "IMAGE_REMOVED sim.example/worker look 8 version=1.2.0",
    ],
  },
  // No preparation was ever aborted.
  "14-false-aborted-prepare": {
    compared: { ListPods: 4 },
    events: [
      "POD_PREPARED 77e8-f428 created_at 1795188590",
      "POD_PREPARED 34ef-5236 created_at 1795188591 inferred=true",
      "POD_STARTED 34ef-5236 started_at 1795188591 inferred=true",
      "APP_STARTED 34ef-5236/batch started_at 1795188591 inferred=true",
      "APP_EXITED 34ef-5236/batch look 5 exit_code=4",
      "POD_EXITED 34ef-5236 look 5",
    ],
  },
};

describe.each(Object.entries(scenarios))("%s, recorded and served again", (name, scenario) => {
  const { compared, events, gaps = [], timeout = "1h" } = scenario;
  const loaded = loadRecording(join(fixtures, name));
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
    // The two are looked at independently. In turns, each poll would hang for longer, and the tap goes easy on slow hosts.
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
      for (const { rpc, request, answer, seq, position, channel } of places) {
        expect(await client.ask(rpc, request, { "tapedeck-at": position })).toEqual(answer);
        // Looks are 10 ms apart, and a time means all that was recorded until then.
        const last = log.findLast((one) => one.seq <= seq && [channel, "tapedeck"].includes(one.event.channel));
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

  if (name === "01-full-lifecycle")
    it("keeps removed resources in its tables", async () => {
      const gone = (table: string, columns: string) =>
        ask(stack.database, `select ${columns}, gone, gone_at is not null as dated from tapedeck.${table} order by 1`);
      const isGone = { gone: true, dated: true };
      const isThere = { gone: false, dated: false };
      expect(await gone("rkt_pods", "pod, state, apps")).toEqual([
        { pod: "c6e226b0-5014-480c-b875-eb38a29bed83", state: "UNDEFINED", apps: 3, ...isGone },
      ]);
      expect(await gone("rkt_apps", "app, state, exit_code")).toEqual([
        { app: "batch", state: "EXITED", exit_code: 7, ...isGone },
        { app: "sidecar", state: "EXITED", exit_code: 0, ...isGone },
        { app: "worker", state: "EXITED", exit_code: 0, ...isGone },
      ]);
      expect(await gone("rkt_images", "name")).toEqual([
        { name: "other.example/batch", ...isGone },
        { name: "sim.example/stage1", ...isThere },
        { name: "sim.example/tools/sidecar", ...isGone },
        { name: "sim.example/worker", ...isThere },
      ]);
    });

  async function hostEvents(): Promise<RktEvent[]> {
    const log = await stack.events();
    return client.events(log.filter(({ event }) => rktKinds.has(event.kind)).length);
  }
});

describe("15-listening, one host for each way to start it", () => {
  const recording = loadRecording(join(fixtures, "15-listening"));
  const infos = recording.rows.filter((row): row is RecordedUnary => row.kind === "unary" && row.rpc === "GetInfo");

  it("gives each host's own description and no events", async () => {
    await using cleanup = new AsyncDisposableStack();
    const only = (row: Row) => startRktHost({ ...recording, rows: [row] });
    const hosts = await Promise.all(infos.map(async (row) => cleanup.use(await only(row))));
    const rkt = hosts.map(({ fake }, index) => ({ address: fake.address, developer: `h${index}`, interval: "10ms" }));
    const stack = cleanup.use(await startStack({ rkt }));
    const client = cleanup.use(rktClient(stack.grpc));
    expect(infos).toHaveLength(5);
    for (const [index, host] of hosts.entries()) {
      await settled(host, stack, "pods");
      const call = infos[index] as RecordedUnary;
      const head = { "tapedeck-source": `h${index}/host` };
      expect(await client.ask("GetInfo", GetInfoRequest.encode({}).finish(), head)).toEqual(answerOf(call));
      for (const rpc of ["ListPods", "ListImages"] as const) {
        expect(await client.ask(rpc, new Uint8Array(), head)).toEqual({ result: [] });
      }
    }
    expect((await stack.events()).filter(({ event }) => rktKinds.has(event.kind))).toEqual([]);
  });
});

function texted(answer: object): string {
  return JSON.stringify(answer, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value));
}
