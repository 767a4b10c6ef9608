import { join } from "node:path";
import { recordings } from "@tapedeck/fakes/recordings";
import { loadRecording, type RecordedMessage, type RecordedUpstream } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { LogEntry } from "@tapedeck/proto/skaffold/v1/skaffold";
import { Event as V2Event } from "@tapedeck/proto/skaffold/v2/skaffold";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { startStack } from "../stack/stack.ts";

type Difference = { readonly kind: string; readonly subject: string; readonly left?: string; readonly right?: string };

const recording = loadRecording(join(recordings.skaffold, "04-deploy-failure-then-recovery"));

/** The same, with a context of api that was edited before the second loop. */
function withMovedContext(): RecordedUpstream {
  const second = recording.messages.v2.findIndex(({ bytes }) => isTaskOfLoop(bytes, 2));
  const moved = (message: RecordedMessage, index: number): RecordedMessage => {
    const event = V2Event.decode(message.bytes);
    if (index < second || event.event_type?.$case !== "metaEvent") return message;
    for (const artifact of event.event_type.value.metadata?.build?.artifacts ?? [])
      if (artifact.name === "api") artifact.context = "services/api";
    return { ...message, bytes: Buffer.from(V2Event.encode(event).finish()) };
  };
  return { ...recording, messages: { ...recording.messages, v2: recording.messages.v2.map(moved) } };
}

function isTaskOfLoop(bytes: Buffer, loop: number): boolean {
  const event = V2Event.decode(bytes).event_type;
  return event?.$case === "taskEvent" && event.value.task === "DevLoop" && event.value.iteration === loop;
}

/** How many messages v1 sends up to the end of its first loop. */
function firstLoopOnV1(): number {
  const isEnd = ({ bytes }: RecordedMessage) => {
    const event = LogEntry.decode(bytes).event?.event_type;
    return event?.$case === "devLoopEvent" && event.value.status === "Succeeded";
  };
  return recording.messages.v1.findIndex(isEnd) + 1;
}

it("a configuration that v2 reports after the first loop's end on v1 is that of the loop", async () => {
  await using cleanup = new AsyncDisposableStack();
  const fakes = await Promise.all(
    [recording, withMovedContext()].map(async (played) => cleanup.use(await startFakeSkaffold({ recording: played }))),
  );
  const developers = ["same", "moved"];
  const skaffold = fakes.map(({ address }, index) => ({
    address,
    developer: developers[index] ?? "",
    project: "shop",
  }));
  const stack = cleanup.use(await startStack({ skaffold }));
  await Promise.all(fakes.map((fake) => fake.playUntil({ v1: firstLoopOnV1() })));
  await stack.drained(...fakes);
  await Promise.all(fakes.map((fake) => fake.play()));
  await stack.drained(...fakes);
  await stack.caughtUp();
  const settings = async (developer: string) => {
    const named = await stack.httpCall("GET", `/api/v1/operations?kind=loop&source=${developer}/shop&limit=100`);
    const { items } = JSON.parse(named.body) as { readonly items: readonly { readonly session: string }[] };
    const session = items[0]?.session;
    const query = new URLSearchParams({ left: `${session}.1.2`, right: `${session}.1.1` });
    const { status, body } = await stack.httpCall("GET", `/api/v1/compare?${query}`);
    expect(status, body).toBe(200);
    const { differences } = JSON.parse(body) as { readonly differences: readonly Difference[] };
    return differences.filter(({ kind }) => kind === "configuration");
  };
  await until(async () => (await settings("moved")).length > 0, { message: "the edited configuration" });
  expect(await settings("moved")).toMatchObject([{ subject: "build.api.context", left: "services/api", right: "api" }]);
  expect(await settings("same")).toEqual([]);
});
