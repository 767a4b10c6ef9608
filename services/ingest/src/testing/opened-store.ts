import { silentLogger } from "@tapedeck/shared/service/logger";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { onTestFinished } from "vitest";
import { type OpenStore, openStore } from "../store.ts";

/** The store of a NATS of the test's own, until the test has finished. */
export async function openedStore(): Promise<OpenStore> {
  const nats = await startTestNats();
  onTestFinished(() => nats[Symbol.asyncDispose]());
  const store = await openStore({ url: nats.url }, "test", silentLogger, new AbortController().signal);
  if (store === undefined) throw new Error("no store");
  onTestFinished(() => store[Symbol.asyncDispose]());
  return store;
}
