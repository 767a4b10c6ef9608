import { join } from "node:path";
import { movedBy } from "@tapedeck/fakes/skaffold/event-log";
import { loadRecording, type RecordedUpstream } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll } from "vitest";
import { type Stack, startStack } from "../stack/stack.ts";
import { type Cable, cableTo, launchBrowser } from "./browser.ts";

const recordings = join(import.meta.dirname, "../../packages/fakes/recordings/skaffold");

/** The messages up to the end of a loop whose deploy failed, which both APIs report. */
const untilFailure = { v1: 17, v2: 122 };
/** The messages of the first API up to the middle of a build. */
const untilBuild = { v1: 37 };

/** A browser and a stack in which Bob's last loop has just failed and Alice's builds, for the tests of one block. */
export function failingAndBusy() {
  const cleanup = new AsyncDisposableStack();
  let [stack, cable, browser]: [Stack?, Cable?, Browser?] = [];

  beforeAll(async () => {
    const recorded = (name: string, last: number) =>
      startFakeSkaffold({ recording: endingNow(loadRecording(join(recordings, name)), last) });
    const bob = cleanup.use(await recorded("04-deploy-failure-then-recovery", untilFailure.v1));
    const alice = cleanup.use(await recorded("10-status-check-port-forward-sync-app-logs", untilBuild.v1));
    const skaffold = [
      { developer: "bob", address: bob.address },
      { developer: "alice", address: alice.address },
    ];
    stack = cleanup.use(await startStack({ skaffold }));
    cable = cleanup.use(await cableTo(stack.http));
    browser = cleanup.adopt(await launchBrowser(), (one) => one.close());
    await stack.connected();
    await Promise.all([bob.playUntil(untilFailure), alice.playUntil(untilBuild)]);
    await stack.drained(bob, alice);
  });
  afterAll(() => cleanup.disposeAsync());

  const started = <Part>(part: Part | undefined): Part => {
    if (part === undefined) throw new Error("the stack has not started");
    return part;
  };
  const api = async (path: string) => JSON.parse((await started(stack).httpCall("GET", `/api/v1/${path}`)).body);
  return {
    api,
    get stack() {
      return started(stack);
    },
    get cable() {
      return started(cable);
    },
    get browser() {
      return started(browser);
    },
    /** Through the cable. */
    get base() {
      return `http://${started(cable).address}`;
    },
    /** The newest loop of a source, as its URL names it. */
    async newestLoop(source: string) {
      const { items } = await api(`operations?source=${source}&kind=loop&limit=1`);
      const [{ session, runner, loop }] = items;
      return { session: session as string, name: `${session}.${runner}.${loop}` };
    },
  };
}

/** The same process, as if the message of the first API with this number were sent now. */
function endingNow(recording: RecordedUpstream, last: number): RecordedUpstream {
  const { v1, v2, logs } = recording.messages;
  const byMs = Math.round(Date.now() - (v1[last - 1]?.at ?? 0));
  const moved = (channel: "v1" | "v2" | "logs") =>
    ({ v1, v2, logs })[channel].map((message) => movedBy(channel, message, byMs));
  return { ...recording, messages: { v1: moved("v1"), v2: moved("v2"), logs: moved("logs") } };
}
