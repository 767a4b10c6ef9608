import { fromBase64 } from "../states/base64.ts";
import { fold } from "../states/fold.ts";
import { evolve } from "./evolve.ts";
import { type HostInventory, itemsOf } from "./inventory.ts";
import { foldVersion, initialState, type RktState } from "./state.ts";
import { tables } from "./tables.ts";

export const rkt = fold<RktState>({
  version: foldVersion,
  initial: initialState,
  channels: ["pods", "images"],
  evolve,
  collections: {
    pods: { of: "state", items: ({ pods }) => decodedItems(pods) },
    images: { of: "state", items: ({ images }) => decodedItems(images) },
    info: { of: "state", items: ({ info }) => (info === null ? [] : [{ key: "info", bytes: fromBase64(info) }]) },
  },
  tables,
  // The events are derived from rkt's answers, so those answers can't contradict them.
  drift: () => undefined,
});

function decodedItems(inventory: HostInventory) {
  return itemsOf(inventory).map(({ id, bytes }) => ({ key: id, bytes: fromBase64(bytes) }));
}
