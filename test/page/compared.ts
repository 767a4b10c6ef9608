import { join } from "node:path";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll } from "vitest";
import { type Stack, startStack } from "../stack/stack.ts";
import { launchBrowser } from "./browser.ts";

const recordings = join(import.meta.dirname, "../../packages/fakes/recordings/skaffold");

/** A browser and a stack with two recorded developers whose loops differ, for the tests of one block. */
export function compared() {
  const cleanup = new AsyncDisposableStack();
  let stack: Stack;
  let browser: Browser;
  let base = "";

  beforeAll(async () => {
    const recorded = (name: string) => startFakeSkaffold({ recording: loadRecording(join(recordings, name)) });
    const bob = cleanup.use(await recorded("04-deploy-failure-then-recovery"));
    const olga = cleanup.use(await recorded("20-old-v1.39.18"));
    const skaffold = [
      { developer: "bob", address: bob.address },
      { developer: "olga", address: olga.address },
    ];
    stack = cleanup.use(await startStack({ skaffold }));
    base = `http://${stack.http}`;
    browser = cleanup.adopt(await launchBrowser(), (one) => one.close());
    await stack.connected();
    await Promise.all([bob.play(), olga.play()]);
    await stack.drained(bob, olga);
  });
  afterAll(() => cleanup.disposeAsync());

  return {
    get stack() {
      return stack;
    },
    get browser() {
      return browser;
    },
    get base() {
      return base;
    },
  };
}
