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
    pods: ({ pods }) => decodedItems(pods),
    images: ({ images }) => decodedItems(images),
    info: ({ info }) => (info === null ? [] : [{ key: "info", bytes: fromBase64(info) }]),
  },
  tableCollections: {},
  tables,
  // The events are derived from rkt's answers, so those answers can't contradict them.
  drift: () => undefined,
});

function decodedItems(inventory: HostInventory) {
  return itemsOf(inventory).map(({ id, bytes }) => ({ key: id, bytes: fromBase64(bytes) }));
}
