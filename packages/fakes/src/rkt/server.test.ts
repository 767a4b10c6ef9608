import { readdirSync } from "node:fs";
import { GetLogsRequest, GetLogsResponse, PodState, PublicAPIService } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { until } from "@tapedeck/shared/testing/until";
import { describe, expect, it } from "vitest";
import { recordings } from "../recordings.ts";
import type { Rpc } from "./calls.ts";
import { connectTo } from "./client.ts";
import { largeHost, madeUpRecording, runningPod } from "./host.ts";
import { loadRecording, pollRows, type RecordedUnary } from "./recording.ts";
import { type FakeRkt, startFakeRkt } from "./server.ts";

const fixtures = `${recordings.rkt}/`;
const load = (name: string) => loadRecording(`${fixtures}${name}`);
const scenarios = readdirSync(fixtures, { withFileTypes: true }).flatMap((entry) =>
  entry.isDirectory() ? [entry.name] : [],
);
const empty = Buffer.alloc(0);

const { getInfo, listPods, inspectPod, inspectImage } = PublicAPIService;

describe.each(scenarios)("%s, asked the same in the same order", (scenario) => {
  const recording = load(scenario);
  const polls = new Set([...pollRows(recording, "pods"), ...pollRows(recording, "images")]);
  const isList = ({ rpc }: RecordedUnary) => rpc === "ListPods" || rpc === "ListImages";
  // An unfiltered list beside the polling would be taken for the next poll.
  const isApart = (row: RecordedUnary) => isList(row) && !polls.has(row) && row.request.length <= 2;
  const requests = recording.rows.filter((row) => row.kind === "unary").filter((row) => !isApart(row));

  it("answers the same, byte for byte", async () => {
    await using fake = await startFakeRkt({ recording });
    using client = connectTo(fake);
    for (const { n, rpc, request, response = empty, error } of requests) {
      const expected = { n, code: error?.code ?? 0, bytes: response };
      // The recorded client had a deadline: it is never answered.
      if (error?.code === 4) {
        await givesUp(fake, client, rpc, request);
        continue;
      }
      // This text is the client's.
      const details = error?.code === 14 ? expect.any(String) : (error?.details ?? "");
      expect({ n, ...(await client.raw(rpc, request)) }).toEqual({ ...expected, details });
    }
    expect(fake.played).toEqual({
      pods: pollRows(recording, "pods").length,
      images: pollRows(recording, "images").length,
    });
    if (requests.length > 0) await fake.allPlayed;
  });

  it("streams the same, and leaves open what only the client ended", async () => {
    await using fake = await startFakeRkt({ recording });
    using client = connectTo(fake);
    for (const row of recording.rows.filter((each) => each.kind === "stream")) {
      if (row.end.code === 14) continue;
      const { got, end, cancel } = client.stream(row.rpc, row.request);
      const isOpen = row.end.code === 1 || row.end.code === 4;
      if (isOpen) {
        await until(() => got.length === row.messages.length, { message: `messages of ${row.n}` });
        await until(() => fake.calls[row.rpc].inFlight === 1, { message: "this call alone to be in flight" });
        cancel();
      }
      expect(await end).toMatchObject(isOpen ? { code: 1 } : row.end.code === 0 ? { code: 0 } : row.end);
      expect(got).toEqual(row.messages.map(({ bytes }) => bytes));
    }
  });
});

describe("polls", () => {
  const recording = load("01-full-lifecycle");
  const bytesOf = (kind: "pods" | "images") => pollRows(recording, kind).map(({ response }) => response);

  it("go through the recording, each kind for itself and whoever asks; the last one stays", async () => {
    await using fake = await startFakeRkt({ recording });
    using one = connectTo(fake);
    using other = connectTo(fake);
    const got: Buffer[] = [];
    for (let count = 0; count < 72; count++) got.push((await (count % 2 ? one : other).raw("ListPods", empty)).bytes);
    expect(got.slice(0, 70)).toEqual(bytesOf("pods"));
    expect(got.slice(70)).toEqual([got[69], got[69]]);
    expect(fake.polls).toEqual({ pods: 72, images: 0 });
    expect(fake.played).toEqual({ pods: 70, images: 0 });
    expect(fake.peers.size).toBe(2);
    expect((await one.raw("ListImages", empty)).bytes).toEqual(bytesOf("images")[0]);
  });

  it("have manifests only when they are asked for, and only of pods that have one", async () => {
    await using fake = await startFakeRkt({ recording });
    using client = connectTo(fake);
    const plain = pollRows(recording, "pods").map(
      ({ response = empty }) => listPods.responseDeserialize(response).pods,
    );
    for (const expected of plain) {
      const pods = await client.pods(true);
      for (const { apps, manifest } of pods) expect(manifest.length > 0).toBe(apps.length > 0);
      expect(pods.map((pod) => ({ ...pod, manifest: empty }))).toEqual(expected);
    }
    expect(plain.flat().some(({ apps }) => apps.length === 0)).toBe(true);
  });

  it("of a recording in detail have none when none are asked for", async () => {
    const filters = load("06-filters");
    const [, detailed] = pollRows(filters, "pods");
    await using fake = await startFakeRkt({ recording: filters });
    using client = connectTo(fake);
    expect((await client.raw("ListPods", listPods.requestSerialize({ filters: [], detail: true }))).bytes).toEqual(
      detailed?.response,
    );
    expect((await client.raw("ListPods", empty)).bytes).toEqual(pollRows(filters, "pods")[0]?.response);
    const images = await client.images(true);
    expect(images.length).toBeGreaterThan(0);
    expect(images.every(({ manifest }) => manifest.length > 0)).toBe(true);
  });

  it("that are held wait, alone; one that was given up has taken nothing", async () => {
    await using fake = await startFakeRkt({ recording });
    using client = connectTo(fake);
    const release = fake.hold("pods", 2);
    await client.pods();
    await givesUp(fake, client, "ListPods", empty);
    expect(fake.played.pods).toBe(1);

    const waiting = client.raw("ListPods", empty);
    await until(() => fake.calls.ListPods.inFlight === 1, { message: "the call" });
    await client.images();
    release();
    expect((await waiting).bytes).toEqual(bytesOf("pods")[1]);
    await until(() => fake.calls.ListPods.inFlight === 0, { message: "the call to be over" });
    expect(fake.calls.ListPods).toEqual({ made: 3, inFlight: 0, maxInFlight: 1 });
    expect(fake.polls.pods).toBe(2);
  });

  it("can hang altogether, and calls in flight are counted", async () => {
    await using fake = await startFakeRkt({ recording });
    using client = connectTo(fake);
    const release = fake.hold("pods");
    const calls = [client.raw("ListPods", empty), client.raw("ListPods", empty)];
    await until(() => fake.calls.ListPods.inFlight === 2, { message: "both calls" });
    release();
    expect((await Promise.all(calls)).map(({ bytes }) => bytes)).toEqual(bytesOf("pods").slice(0, 2));
    expect(fake.calls.ListPods.maxInFlight).toBe(2);
    expect(fake.newestCalls).toHaveLength(2);
  });

  it("repeat on a new connection what the former one got, if nothing happened meanwhile", async () => {
    const played = load("11-image-cache");
    await using fake = await startFakeRkt({ recording: played, repeatOnReconnect: true });
    const ask = async (client: ReturnType<typeof connectTo>) => (await client.raw("ListImages", empty)).bytes;
    const [first, second, third] = pollRows(played, "images").map(({ response }) => response);
    using before = connectTo(fake);
    expect([await ask(before), await ask(before)]).toEqual([first, second]);
    using after = connectTo(fake);
    expect([await ask(after), await ask(after)]).toEqual([second, third]);
  });

  it("reset the connection where the service was gone", async () => {
    const errors = load("07-errors");
    const lost = pollRows(errors, "pods").filter(({ error }) => error?.code === 14);
    expect(lost).toHaveLength(1);
    await using fake = await startFakeRkt({ recording: { ...errors, rows: [...lost, ...pollRows(errors, "pods")] } });
    using client = connectTo(fake);
    expect(await client.raw("ListPods", empty)).toMatchObject({ code: 14 });
    await until(async () => (await client.pods()).length === 2, { message: "a new connection" });
  });
});

describe("without a recorded answer", () => {
  it("InspectPod takes any prefix of one pod, in any case, and knows nothing else", async () => {
    const recording = load("06-filters");
    await using fake = await startFakeRkt({ recording: { ...recording, rows: pollRows(recording, "pods") } });
    using client = connectTo(fake);
    const pods = await client.pods(true);
    await client.pods();
    const find = async (id: string) => (await client.call(inspectPod, { id })).pod;
    for (const pod of pods) expect(await find(pod.id)).toEqual(pod);
    expect(await find("67E3")).toMatchObject({ id: "67e3348c-964e-4d89-a122-adfc8877cdb2" });
    for (const id of ["", "4", "zz", `${pods[0]?.id}0`]) {
      await expect(find(id)).rejects.toThrow("2 unable to resolve UUID");
    }
  });

  it("InspectPod answers what was listed last, not what was recorded at another time", async () => {
    const recording = load("01-full-lifecycle");
    await using fake = await startFakeRkt({ recording });
    using client = connectTo(fake);
    const exited = await until(
      async () => (await client.pods(true)).find(({ state }) => state === PodState.POD_STATE_EXITED),
      { message: "the pod to end" },
    );
    for (let count = 0; count < 3; count++) await client.pods();
    expect((await client.call(inspectPod, { id: exited.id })).pod).toEqual(exited);
  });

  it("InspectImage takes the whole id", async () => {
    const recording = load("01-full-lifecycle");
    await using fake = await startFakeRkt({ recording });
    using client = connectTo(fake);
    const images = await until(async () => (await client.images()).find(Boolean), { message: "an image" });
    const { image } = await client.call(inspectImage, { id: images.id });
    expect({ ...image, manifest: empty }).toEqual(images);
    await expect(client.call(inspectImage, { id: "sha512-24" })).rejects.toThrow(
      '2 ACI info not found with blob key "sha512-24"',
    );
  });

  it("a filter is none", async () => {
    await using fake = await startFakeRkt({ recording: load("06-filters") });
    using client = connectTo(fake);
    const filters = [{ ...emptyFilter, app_names: ["never asked for"] }];
    expect((await client.call(listPods, { filters, detail: false })).pods).toEqual(await client.pods());
    expect(fake.played.pods).toBe(1);
  });

  it("GetLogs goes by the rules of the real one", async () => {
    await using fake = await startFakeRkt({ recording: load("08-logs-journal") });
    using client = connectTo(fake);
    const pod_id = "91d2";
    const lines = async (request: Partial<GetLogsRequest>) => {
      const made = GetLogsRequest.encode({ ...noLogs, pod_id, ...request }).finish();
      const { got, end } = client.stream("GetLogs", Buffer.from(made));
      expect(await end).toMatchObject({ code: 0 });
      expect(got).toHaveLength(1);
      return GetLogsResponse.decode(got[0] ?? empty).lines.map((line) => line.replace(/.*MESSAGE=/, ""));
    };
    expect(await lines({ lines: 2, app_name: "side" })).toEqual(["side line 6", "side done, exit 0"]);
    expect(await lines({ since_time: 1_795_188_510n })).toEqual(["web done, exit 0", "side done, exit 0"]);
    expect(await lines({ since_time: 1_795_188_510n, lines: 1, app_name: "web" })).toEqual(["web done, exit 0"]);
    expect(await lines({ since_time: -2n })).toEqual([]);
    expect(await lines({ lines: -2 })).toEqual([]);

    const request = GetLogsRequest.encode({ ...noLogs, pod_id, lines: 3, follow: true }).finish();
    const { got, cancel } = client.stream("GetLogs", Buffer.from(request));
    await until(() => got.length === 3, { message: "a message for each line" });
    expect(fake.calls.GetLogs.inFlight).toBe(1);
    cancel();
  });

  it("broken requests and unknown methods fail as gRPC says", async () => {
    await using fake = await startFakeRkt({ recording: load("07-errors") });
    using client = connectTo(fake);
    expect(await client.raw("InspectPod", Buffer.from([0x0a, 0x05]))).toMatchObject({
      code: 9,
      details: "unexpected EOF",
    });
    expect(await client.raw("Nope", empty)).toMatchObject({ code: 12 });
  });
});

describe("the service", () => {
  const recording = load("01-full-lifecycle");

  it("can go away in the middle of a call and come back where it was", async () => {
    await using fake = await startFakeRkt({ recording });
    using client = connectTo(fake);
    await client.pods();
    fake.hold("pods");
    const waiting = client.raw("ListPods", empty);
    await until(() => fake.calls.ListPods.inFlight === 1, { message: "the call" });
    await fake.goAway();
    expect(await waiting).toMatchObject({ code: 14 });
    expect(await client.raw("GetInfo", empty)).toMatchObject({ code: 14 });
    await fake.comeBack();
    await until(async () => (await client.raw("GetInfo", empty)).code === 0, { message: "a new connection" });
    expect(fake.played.pods).toBe(1);
  });

  it("can be asked for another directory, be empty, and lie", async () => {
    const lies: Partial<Record<Rpc, { error: { code: number; details: string } }>> = {};
    await using fake = await startFakeRkt({ recording, lie: ({ rpc }) => lies[rpc] });
    using client = connectTo(fake);
    await until(async () => (await client.pods()).length > 0, { message: "a pod" });
    await until(async () => (await client.images()).length > 0, { message: "an image" });
    const reported = fake.played.pods;

    fake.setEmpty(true);
    fake.setDir("/not/mounted");
    expect([await client.pods(), await client.images()]).toEqual([[], []]);
    const { info } = await client.call(getInfo, {});
    expect(info).toMatchObject({ rkt_version: "1.30.0+git171c416f", global_flags: { dir: "/not/mounted" } });
    await expect(client.call(inspectPod, { id: "c6e226b0" })).rejects.toThrow("2 unable to resolve UUID");
    fake.setEmpty(false);
    expect(await client.pods()).toHaveLength(1);
    expect(fake.played.pods).toBe(reported + 1);

    lies.ListPods = { error: { code: 2, details: "failed to get pods" } };
    await expect(client.pods()).rejects.toThrow("2 failed to get pods");
    expect(fake.played.pods).toBe(reported + 1);
  });

  it("can have 5,000 pods, and what somebody made up", async () => {
    await using large = await startFakeRkt({ recording: largeHost({ pods: 5_000, polls: 2, ending: 1 }) });
    using client = connectTo(large);
    const detailed = await client.raw("ListPods", listPods.requestSerialize({ filters: [], detail: true }));
    expect(detailed.bytes.length / 5_000).toBeCloseTo(535, -2);
    expect(listPods.responseDeserialize(detailed.bytes).pods).toHaveLength(5_000);
    const plain = await client.raw("ListPods", empty);
    expect(plain.bytes.length / 5_000).toBeCloseTo(205, -2);
    const [first, second] = listPods.responseDeserialize(plain.bytes).pods;
    expect([first?.state, second?.state]).toEqual([PodState.POD_STATE_EXITED, PodState.POD_STATE_RUNNING]);

    const pods = [[runningPod(1)], []];
    await using small = await startFakeRkt({ recording: madeUpRecording({ pods }) });
    using other = connectTo(small);
    expect([await other.pods(true), await other.pods(true)]).toMatchObject(pods);
  });
});

/** Makes a call, waits until it has arrived, and leaves it unanswered. */
async function givesUp(fake: FakeRkt, client: ReturnType<typeof connectTo>, rpc: Rpc, request: Buffer): Promise<void> {
  const { made, inFlight } = fake.calls[rpc];
  const { end, cancel, got } = client.stream(rpc, request);
  await until(() => fake.calls[rpc].made === made + 1, { message: "the call to arrive" });
  // Another call is answered meanwhile.
  await client.raw("GetInfo", empty);
  cancel();
  // Or the fake has answered that its time is over, as was recorded.
  expect([1, 4]).toContain((await end).code);
  expect(got).toEqual([]);
  await until(() => fake.calls[rpc].inFlight === inFlight, { message: "the server to notice" });
}

const emptyFilter = {
  ids: [],
  states: [],
  app_names: [],
  image_ids: [],
  network_names: [],
  annotations: [],
  cgroups: [],
  pod_sub_cgroups: [],
};
const noLogs = { pod_id: "", app_name: "", lines: 0, follow: false, since_time: 0n, until_time: 0n };
