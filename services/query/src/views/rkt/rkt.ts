import { fromBase64 } from "../states/base64.ts";
import { fold } from "../states/fold.ts";
import { type Entries, entriesOf } from "./entries.ts";
import { evolve } from "./evolve.ts";
import { foldVersion, initialState, type RktState } from "./state.ts";
import { tables } from "./tables.ts";

export const rkt = fold<RktState>({
  version: foldVersion,
  initial: initialState,
  channels: ["pods", "images"],
  evolve,
  collections: {
    pods: ({ pods }) => items(pods),
    images: ({ images }) => items(images),
    info: ({ info }) => (info === null ? [] : [{ key: "info", bytes: fromBase64(info) }]),
  },
  tables,
  // Its events are concluded from its answers: there is nothing else to hold them against.
  drift: () => undefined,
});

function items(entries: Entries) {
  return entriesOf(entries).map(({ id, bytes }) => ({ key: id, bytes: fromBase64(bytes) }));
}
