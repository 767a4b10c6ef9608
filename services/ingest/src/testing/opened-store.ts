import { silentLogger } from "@tapedeck/shared/service/logger";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { onTestFinished } from "vitest";
import { MoveMarks } from "../record/moves/move-marks.ts";
import { type OpenStore, openStore } from "../store.ts";

export type OpenedStore = { readonly store: OpenStore; readonly marks: MoveMarks };

/** The store of a NATS of the test's own, with the marks of moves there, until the test has finished. */
export async function openedStore(): Promise<OpenedStore> {
  const nats = await startTestNats();
  onTestFinished(() => nats[Symbol.asyncDispose]());
  const store = await openStore({ url: nats.url }, "test", silentLogger, new AbortController().signal);
  if (store === undefined) throw new Error("no store");
  onTestFinished(() => store[Symbol.asyncDispose]());
  return { store, marks: new MoveMarks(store.nats) };
}
