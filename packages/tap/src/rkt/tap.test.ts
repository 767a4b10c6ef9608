import { once } from "node:events";
import { createServer } from "node:net";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import { recordings } from "@tapedeck/fakes/recordings";
import { connectTo } from "@tapedeck/fakes/rkt/client";
import { largeHost, madeUpRecording, runningPod } from "@tapedeck/fakes/rkt/host";
import { loadRecording } from "@tapedeck/fakes/rkt/recording";
import { type FakeRkt, type FakeRktOptions, startFakeRkt } from "@tapedeck/fakes/rkt/server";
import {
  AppState,
  GetInfoResponse,
  InspectImageRequest,
  InspectPodRequest,
  InspectPodResponse,
  ListImagesResponse,
  ListPodsResponse,
  type Pod,
  PodState,
} from "@tapedeck/proto/rkt/v1alpha/rkt";
import { Observation } from "@tapedeck/proto/tapedeck/v1/observation";
import { delay } from "@tapedeck/shared/sync/delay";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { until } from "@tapedeck/shared/testing/until";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { TapItem } from "../tap.ts";
import { imageMethods, podMethods } from "./methods.ts";
import { isSameList } from "./poll-inventory.ts";
import { tap } from "./tap.ts";

const fixtures = `${recordings.rkt}/`;
const load = (name: string) => loadRecording(`${fixtures}${name}`);
const when = (message: string, condition: () => unknown) => until(() => Boolean(condition()), { message });

type What = NonNullable<TapItem["what"]>;
type ItemValue<C extends What["$case"]> = Extract<What, { $case: C }>["value"];

type Listening = {
  readonly skip?: readonly string[];
  readonly interval?: number;
  readonly timeout?: number;
  readonly load?: number;
};

function listen(address: string, options: Listening = {}) {
  const { skip = ["logs"], interval = 1, timeout = 10_000, load: percent = 100 } = options;
  const items: TapItem[] = [];
  const stop = new AbortController();
  const settings = { interval: `${interval}`, timeout: `${timeout}`, load: `${percent}` };
  const emit = (item: TapItem) => void items.push(item);
  const running = tap.run({ address, signal: stop.signal, skipChannels: skip, settings, emit });
  const all = <C extends What["$case"]>(name: C) =>
    items.flatMap(({ what }): ItemValue<C>[] => (what?.$case === name ? [what.value as ItemValue<C>] : []));
  const observations = (channel: string) =>
    all("frame").flatMap((frame) => (frame.channel === channel ? (Observation.decode(frame.bytes).result ?? []) : []));
  return {
    items,
    all,
    observations,
    control: running.control,
    done: running.done,
    ones: (channel: string) => observations(channel).flatMap((seen) => (seen.$case === "one" ? [seen.value] : [])),
    lists: (channel: string) => observations(channel).flatMap((seen) => (seen.$case === "all" ? [seen.value] : [])),
    failures: (channel: string) =>
      observations(channel).flatMap((seen) => (seen.$case === "failed" ? [seen.value] : [])),
    leave: () => stop.abort(),
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await running.done;
    },
  };
}

const calls = (fake: FakeRkt, rpc: "InspectPod" | "InspectImage") =>
  fake.newestCalls
    .filter((call) => call.rpc === rpc)
    .map(({ request }) => (rpc === "InspectPod" ? InspectPodRequest : InspectImageRequest).decode(request).id);

async function fakeOf(pods: readonly (readonly Pod[])[], options: Partial<FakeRktOptions> = {}): Promise<FakeRkt> {
  return startFakeRkt({ recording: madeUpRecording({ pods }), port: await ownPort(), ...options });
}

const [a, b, c] = [runningPod(1), runningPod(2), runningPod(3)];

function exited(pod: Pod, code: number): Pod {
  const apps = pod.apps.map((app) => ({ ...app, state: AppState.APP_STATE_EXITED, exit_code: code }));
  return { ...pod, apps, state: PodState.POD_STATE_EXITED, cgroup: "" };
}

describe("a connection", () => {
  it("first emits what it is a connection to", async () => {
    await using fake = await startFakeRkt({ recording: load("01-full-lifecycle") });
    await using tapped = listen(fake.address);
    await when("a look", () => tapped.lists("pods").length > 0);
    const [dialled, identified, described] = tapped.items.map(({ what }) => what);
    expect(dialled).toEqual({ $case: "dialled", value: { address: fake.address, channels: ["pods", "images"] } });
    expect(identified?.$case === "identified" && identified.value.version).toContain("1.30.0");
    const state = described?.$case === "described" ? described.value.state : Buffer.alloc(0);
    expect(described).toMatchObject({ $case: "described", value: { channel: "info" } });
    const { info } = GetInfoResponse.decode(state);
    expect(identified).toMatchObject({ value: { identity: info?.global_flags?.dir } });
    expect(new Set(tapped.items.map(({ connection }) => connection)).size).toBe(1);
  });

  it("waits for the server, and for the next one", async () => {
    await using fake = await fakeOf([[a]]);
    await fake.goAway();
    await using tapped = listen(fake.address, { interval: 60_000 });
    await fake.comeBack();
    for (const count of [1, 2]) {
      await when(`connection ${count}`, () => tapped.lists("pods").length === count);
      // Nothing is asked for a minute; that it is gone is noticed all the same.
      await fake.goAway();
      await when(`end ${count}`, () => tapped.all("closed").length === count);
      await fake.comeBack();
    }
    expect(tapped.all("closed")[0]).toEqual({ reason: "the connection was lost", process_ended: false });
    await when("connection 3", () => tapped.all("dialled").length === 3);
    expect(fake.calls.GetInfo.made).toBeGreaterThanOrEqual(3);
    expect(new Set(tapped.items.map(({ connection }) => connection)).size).toBe(3);
  });

  it("ends when a call is answered that the server is unavailable", async () => {
    let lies = 1;
    const unavailable = { error: { code: 14, details: "going" } };
    await using fake = await fakeOf([[a]], {
      lie: ({ rpc }) => (rpc === "ListImages" && lies-- > 0 ? unavailable : undefined),
    });
    await using tapped = listen(fake.address);
    await when("another connection", () => tapped.all("dialled").length === 2);
    expect(tapped.all("closed")).toEqual([{ reason: "UNAVAILABLE: going", process_ended: false }]);
    expect(tapped.failures("images")).toEqual([]);
  });

  it("is refused, once, by what is not rkt", async () => {
    const server = new Server();
    const port = await new Promise<number>((resolve, reject) => {
      const bound = (error: Error | null, on: number) => (error ? reject(error) : resolve(on));
      server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), bound);
    });
    onTestFinished(() => server.forceShutdown());
    await using tapped = listen(`127.0.0.1:${port}`);
    await when("the refusal", () => tapped.all("closed").length === 1);
    expect(tapped.all("closed")[0]?.reason).toMatch(/^no api-service of rkt: UNIMPLEMENTED/);
    expect(tapped.all("identified")).toEqual([]);
  });

  it("is not taken for one where something listens and says nothing", async () => {
    const silent = createServer(() => {});
    silent.listen(0, "127.0.0.1");
    await once(silent, "listening");
    onTestFinished(() => void silent.close());
    const address = silent.address();
    await using tapped = listen(`127.0.0.1:${typeof address === "object" && address?.port}`, { timeout: 50 });
    await once(silent, "connection");
    await once(silent, "connection");
    expect(tapped.items).toEqual([]);
  });

  it("takes no control calls", async () => {
    await using tapped = listen("127.0.0.1:1");
    const answer = await tapped.control({ call: "C", method: "/v1alpha.PublicAPI/GetInfo", request: Buffer.alloc(0) });
    expect(answer).toEqual({ call: "C", code: 12, message: "rkt has no control calls", response: Buffer.alloc(0) });
  });
});

describe("observations", () => {
  it.each(["01-full-lifecycle", "02-fast-and-skipped-states", "11-image-cache"])(
    "show what a client saw that polled: %s",
    async (name) => {
      const recording = load(name);
      await using expected = await startFakeRkt({ recording });
      using client = connectTo(expected);
      await using fake = await startFakeRkt({ recording });
      await using tapped = listen(fake.address);
      await fake.allPlayed;
      tapped.leave();
      await tapped.done;
      for (const what of [podMethods, imageMethods]) {
        const channel = what === podMethods ? "pods" : "images";
        let all: Buffer | undefined;
        for (const seen of tapped.observations(channel).filter(({ $case }) => $case !== "one")) {
          if (seen.$case === "all") all = seen.value;
          const { bytes } = await client.raw(what.list.split("/")[2] ?? "", Buffer.from(what.listRequest));
          expect(all && isSameList(what, all, bytes)).toBe(true);
        }
        // The very last answer may have come when the tap was gone.
        expect(expected.played[channel]).toBeGreaterThanOrEqual(fake.played[channel] - 1);
        expect(fake.calls[channel === "pods" ? "ListPods" : "ListImages"].maxInFlight).toBe(1);
      }
      expect(tapped.observations("pods").some(({ $case }) => $case === "same")).toBe(true);
    },
  );

  it("are whole again after a while, even if nothing changes", async () => {
    const real = performance.now.bind(performance);
    let ahead = 0;
    vi.spyOn(performance, "now").mockImplementation(() => real() + ahead);
    onTestFinished(() => void vi.restoreAllMocks());
    await using fake = await fakeOf([[a, b]]);
    await using tapped = listen(fake.address);
    await when("some looks", () => tapped.observations("pods").length > 5);
    expect(tapped.lists("pods")).toHaveLength(1);
    ahead = 10_000;
    await when("another whole one", () => tapped.lists("pods").length === 2);
    expect(tapped.lists("pods")[1]).toEqual(tapped.lists("pods")[0]);
  });

  it("leave the host the time that `load` allows", async () => {
    await using fake = await fakeOf([[a], [a], [a]]);
    const releases = [fake.hold("pods", 1), fake.hold("pods", 2)];
    await using _ = listen(fake.address, { skip: ["images", "logs"], load: 10 });
    for (const [answered, release] of releases.entries()) {
      await when("the call", () => fake.calls.ListPods.made > answered);
      await delay(150); // what the answer costs: the pause that follows is made from it
      release();
    }
    // The first answer is not judged. After the second the host has more than 11 times what the answer took.
    await when("the answer", () => fake.polls.pods >= 2);
    const answeredAt = performance.now();
    await when("the next call", () => fake.calls.ListPods.made >= 3);
    expect(performance.now() - answeredAt).toBeGreaterThan(500);
  });

  it("may be larger than what gRPC takes by default", async () => {
    await using fake = await startFakeRkt({ recording: largeHost({ pods: 9_000 }) });
    await using tapped = listen(fake.address, { interval: 60_000 });
    const [list] = await until(() => tapped.lists("pods").length > 0 && tapped.lists("pods"), { message: "a look" });
    expect(list?.byteLength).toBeGreaterThan(4 * 1024 * 1024);
  });

  it("keep what can't be read", async () => {
    const response = Buffer.from([0x0a, 200, 1]);
    await using fake = await fakeOf([], { lie: ({ rpc }) => (rpc.startsWith("List") ? { response } : undefined) });
    await using tapped = listen(fake.address);
    await when("it is the same again", () => tapped.observations("images").some(({ $case }) => $case === "same"));
    await when("looks at pods", () => tapped.observations("pods").length > 2);
    expect([tapped.lists("pods"), tapped.lists("images")]).toEqual([[response], [response]]);
  });

  it("are of the wanted channels", async () => {
    await using fake = await fakeOf([[a]]);
    await using tapped = listen(fake.address, { skip: ["pods", "logs"] });
    await when("a look", () => tapped.observations("images").length > 3);
    expect(tapped.all("dialled")).toMatchObject([{ channels: ["images"] }]);
    expect(fake.calls.ListPods.made).toBe(0);
  });
});

describe("a poll that fails", () => {
  it("is emitted, and the connection lives on", async () => {
    const error = { code: 2, details: "failed to get pods" };
    let fails = true;
    await using fake = await fakeOf([[a]], { lie: ({ rpc }) => (rpc === "ListPods" && fails ? { error } : undefined) });
    await using tapped = listen(fake.address);
    await when("a failure", () => tapped.failures("pods").length > 0);
    expect(tapped.failures("pods")[0]).toMatchObject({ code: 2, message: "failed to get pods" });
    fails = false;
    await when("a good look", () => tapped.lists("pods").length === 1);
    expect(fake.peers.size).toBe(1);
  });

  it("does not stop the other kind when it hangs", async () => {
    // The one of a pod that starts: rkt answers nobody until that pod has a pid.
    await using fake = await startFakeRkt({ recording: load("10-blocking-start") });
    const release = fake.hold("pods");
    await using tapped = listen(fake.address, { timeout: 100 });
    await when("a failure", () => tapped.failures("pods").length > 0);
    expect(tapped.failures("pods")[0]).toMatchObject({ code: 4 });
    const before = fake.polls.images;
    // The first answer may have come too late as well, on a machine that is busy.
    const peers = fake.peers.size;
    await when("more images", () => fake.polls.images > before + 5);
    expect(tapped.lists("pods")).toEqual([]);
    release();
    await when("the pods", () => tapped.lists("pods").length > 0);
    expect(fake.calls.ListPods.maxInFlight).toBe(1);
    expect(fake.peers.size).toBe(peers);
  });
});

describe("a doubtful entry is asked for at once", () => {
  it("a pod that is missing", async () => {
    await using fake = await fakeOf([[a, b], [b], [b]]);
    await using tapped = listen(fake.address);
    await when("the answer", () => tapped.ones("pods").length > 0);
    const order = tapped.observations("pods").map(({ $case }) => $case);
    expect(order.slice(0, 3)).toEqual(["all", "all", "one"]);
    expect(tapped.ones("pods")).toMatchObject([
      { id: a.id, bytes: Buffer.alloc(0), code: 2, message: "unable to resolve UUID" },
    ]);
  });

  it("a pod that has ended with an app that may have returned 0", async () => {
    await using fake = await fakeOf([
      [a, b],
      [exited(a, 0), exited(b, 7)],
      [exited(a, 0), exited(b, 7), exited(c, 0)],
    ]);
    await using tapped = listen(fake.address);
    await when("both answers", () => tapped.ones("pods").length === 2);
    expect(tapped.ones("pods").map(({ id }) => id)).toEqual([a.id, c.id]);
    const [one] = tapped.ones("pods");
    expect(one && InspectPodResponse.decode(one.bytes).pod).toMatchObject(exited(a, 0));
    await when("more looks", () => tapped.observations("pods").length > 10);
    expect(calls(fake, "InspectPod")).toEqual([a.id, c.id]);
  });

  it("an image that is missing", async () => {
    await using fake = await startFakeRkt({ recording: load("11-image-cache") });
    await using tapped = listen(fake.address);
    await fake.allPlayed;
    // The last answer is seen a moment after it was given.
    const answers = () => tapped.observations("images").filter(({ $case }) => $case !== "one").length;
    await when("all answers", () => answers() > fake.played.images);
    const lists = tapped.lists("images").map((list) => ListImagesResponse.decode(list).images.map(({ id }) => id));
    const missing = lists.flatMap((list, index) => (lists[index - 1] ?? []).filter((id) => !list.includes(id)));
    expect(missing.length).toBeGreaterThan(0);
    await when("the answers", () => tapped.ones("images").length >= missing.length);
    expect(tapped.ones("images").map(({ id }) => id)).toEqual(missing);
    expect(tapped.ones("images")[0]).toMatchObject({ code: 2 });
  });

  it("but not of all pods when all are gone", async () => {
    const pods = Array.from({ length: 60 }, (_, index) => runningPod(index));
    await using fake = await fakeOf([pods, [], []]);
    await using tapped = listen(fake.address);
    await when("some", () => tapped.ones("pods").length === 50 && tapped.observations("pods").at(-1)?.$case === "same");
    expect(calls(fake, "InspectPod")).toHaveLength(50);
    expect(fake.calls.InspectPod.maxInFlight).toBe(1);
  });

  it("also on the next connection to the same host", async () => {
    await using fake = await fakeOf([[a, b]]);
    await using tapped = listen(fake.address);
    await when("a look", () => tapped.lists("pods").length === 1);
    await fake.goAway();
    fake.setEmpty(true);
    await fake.comeBack();
    await when("answers", () => tapped.ones("pods").length === 2);
    expect(calls(fake, "InspectPod")).toEqual([a.id, b.id]);
    expect(tapped.lists("pods").map((list) => ListPodsResponse.decode(list).pods.length)).toEqual([2, 0]);
  });

  it("but not when it is another host's", async () => {
    await using fake = await fakeOf([[a, b]]);
    await using tapped = listen(fake.address);
    await when("a look", () => tapped.lists("pods").length === 1);
    await fake.goAway();
    fake.setEmpty(true);
    fake.setDir("/another");
    await fake.comeBack();
    await when(
      "a look there",
      () => tapped.lists("pods").length === 2 && tapped.observations("pods").at(-1)?.$case === "same",
    );
    expect(tapped.all("identified").at(-1)?.identity).toBe("/another");
    expect(calls(fake, "InspectPod")).toEqual([]);
  });
});

describe("a tap that is stopped", () => {
  it("leaves at once, also in the middle of calls that hang", async () => {
    await using fake = await fakeOf([[a]]);
    fake.hold("pods");
    fake.hold("images");
    const tapped = listen(fake.address, { timeout: 60_000 });
    await when("hanging calls", () => fake.calls.ListPods.inFlight + fake.calls.ListImages.inFlight === 2);
    tapped.leave();
    await tapped.done;
    expect(tapped.items.at(-1)?.what).toEqual({
      $case: "closed",
      value: { reason: "the tap has disconnected", process_ended: false },
    });
    await when("rkt to be rid of us", () => fake.calls.ListPods.inFlight + fake.calls.ListImages.inFlight === 0);
    expect(tapped.observations("pods")).toEqual([]);
  });

  it("leaves at once where nobody is", async () => {
    const tapped = listen("127.0.0.1:1");
    tapped.leave();
    await tapped.done;
    expect(tapped.items).toEqual([]);
  });
});
