import { silentLogger } from "@tapedeck/shared/service/logger";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { onTestFinished } from "vitest";
import type { Store, Stores } from "../record/recorder-options.ts";
import { type OpenStore, type OpenStores, openStores } from "../store.ts";

/** The stores of that NATS. The caller disposes them. */
export async function storesOn(natsUrl: string, ingest = "test", logger = silentLogger): Promise<OpenStores> {
  const stores = await openStores({ url: natsUrl }, ingest, logger, new AbortController().signal);
  if (stores === undefined) throw new Error("no stores");
  return stores;
}

/** The store of a workspace on a NATS of the test's own, until the test has finished. */
export async function openedStore(workspace = "acme"): Promise<OpenStore> {
  const nats = await startTestNats();
  onTestFinished(() => nats[Symbol.asyncDispose]());
  const stores = await storesOn(nats.url);
  onTestFinished(() => stores[Symbol.asyncDispose]());
  return stores.of(workspace);
}

/** Stores of which each is this one. */
export function onlyStore(store: Store): Stores {
  const { nats, leases, workspace } = store;
  return { nats, leases, of: async () => store, names: async () => [workspace] };
}
