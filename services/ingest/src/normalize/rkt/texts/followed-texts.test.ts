import { recordings } from "@tapedeck/fakes/recordings";
import { runningPod } from "@tapedeck/fakes/rkt/host";
import { loadRecording } from "@tapedeck/fakes/rkt/recording";
import { type FakeRktOptions, startFakeRkt } from "@tapedeck/fakes/rkt/server";
import { ListPodsResponse } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { Observation } from "@tapedeck/proto/tapedeck/v1/observation";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { until } from "@tapedeck/shared/testing/until";
import type { TapItem } from "@tapedeck/tap/tap";
import { taps } from "@tapedeck/tap/taps";
import { expect, it, onTestFinished } from "vitest";
import { outcomesOf } from "../../inventory/observing.ts";
import { TextsWatcher } from "./texts-watcher.ts";

const recording = loadRecording(`${recordings.rkt}/08-logs-journal`);
const running = runningPod(1);
const [like] = running.apps;
const apps = ["web", "side"].flatMap((name) => (like ? [{ ...like, name }] : []));
const pod = { ...running, id: "91d2f685-a122-492d-8bbe-c843c3cdb304", apps };
const when = (message: string, condition: () => unknown) => until(() => Boolean(condition()), { message });

it("records each line once over lost connections", async () => {
  const response = Buffer.from(ListPodsResponse.encode({ pods: [pod] }).finish());
  const lie: FakeRktOptions["lie"] = ({ rpc }) => (rpc === "ListPods" ? { response } : undefined);
  await using fake = await startFakeRkt({ recording, lie, port: await ownPort() });
  const tapped = await follow(fake.address);
  /** What the newest connection gave. */
  const texts = () => {
    const newest = tapped.items.findLastIndex(({ what }) => what?.$case === "dialled");
    return tapped.items.slice(newest).flatMap(({ what }) => {
      const seen = what?.$case === "frame" ? Observation.decode(what.value.bytes).result : undefined;
      return seen?.$case === "text" ? [seen.value] : [];
    });
  };
  for (const count of [1, 2, 3]) {
    await when("lines", () => tapped.count("dialled") === count && texts().length > 0);
    await when("all streams", () => fake.calls.GetLogs.inFlight === 3);
    await fake.goAway();
    await when("the end", () => tapped.count("closed") === count);
    await fake.comeBack();
  }
  // The pod itself repeats its lines a while later.
  await when("the pod's lines", () => tapped.count("dialled") === 4 && texts().some(({ app }) => app === ""));
  await when("the lines of both apps", () => {
    const lines = linesOf(tapped.items);
    return lines.length > 16 && lines.some(({ container }) => container === "side");
  });
  await tapped.leave();
  const [dialled] = tapped.items;
  expect(dialled?.what).toMatchObject({ $case: "dialled", value: { channels: ["pods", "images", "logs"] } });

  const lines = linesOf(tapped.items);
  expect(new Set(lines.map(({ text }) => text)).size).toBe(lines.length);
  expect(lines.length).toBeGreaterThan(16);
  expect(lines.some(({ container }) => container === "side")).toBe(true);
  for (const { container, text } of lines) expect(text).toContain(`MESSAGE=${container}`);
});

async function follow(address: string) {
  const items: TapItem[] = [];
  const stop = new AbortController();
  const settings = { interval: "1", timeout: "10000", load: "100" };
  const { done } = (await taps.rkt()).run({
    address,
    settings,
    signal: stop.signal,
    emit: (item) => void items.push(item),
  });
  const leave = async () => {
    stop.abort();
    await done;
  };
  onTestFinished(leave);
  const count = (name: string) => items.filter(({ what }) => what?.$case === name).length;
  return { items, count, leave };
}

function linesOf(items: readonly TapItem[]) {
  const watcher = new TextsWatcher({ mask: (_, bytes) => ({ bytes, redacted: 0 }) });
  return items.flatMap(({ what, at = { seconds: 0n, nanos: 0 } }) => {
    if (what?.$case === "identified") watcher.connected();
    if (what?.$case !== "frame") return [];
    const seen = outcomesOf(watcher.observe(what.value.channel, Observation.decode(what.value.bytes), at));
    const facts = seen.flatMap((one) => (one.what === "frame" ? one.facts : []));
    return facts.flatMap(({ detail }) => (detail?.$case === "text" ? [detail.value] : []));
  });
}
