import { isDeepStrictEqual } from "node:util";
import { Image, Pod } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { isDeleted } from "@tapedeck/shared/rkt/accept";
import type { RktAppRow, RktPodRow } from "../../db/schema.ts";
import { table } from "../../db/table.ts";
import { type Base64, fromBase64 } from "../states/base64.ts";
import { historyTable } from "../states/history-table.ts";
import type { StateStep, StateTable } from "../states/state-table.ts";
import { rowChanges } from "../states/validity.ts";
import { changesBetween, type HostInventory } from "./inventory.ts";
import { appRow, imageRow, networkRow, podRow } from "./rows.ts";
import type { RktState } from "./state.ts";

const pods = historyTable(table("rkt_pods", ["session", "pod"]), (step: StateStep<RktState>, of) =>
  changedPods(step).flatMap((pod) =>
    rowChanges(step, {
      before: pod.before.map((before) => podRow(step, of, before)),
      after: pod.after.map((after) => podRow(step, of, after)),
      keyOf: (row) => row.pod,
      // rkt reports almost nothing about a pod that it is deleting, so what was known of it stays.
      merge: (known: RktPodRow, reported) =>
        pod.after.some(isDeleted) ? { ...known, state: reported.state } : reported,
    }),
  ),
);

const apps = historyTable(table("rkt_apps", ["session", "pod", "app"]), (step: StateStep<RktState>, of) =>
  changedPods(step).flatMap((pod) =>
    rowChanges(step, {
      before: pod.before.flatMap((before) => before.apps.map((app) => appRow(step, of, before, app))),
      after: pod.after.flatMap((after) => after.apps.map((app) => appRow(step, of, after, app))),
      keyOf: (row) => row.app,
      merge: (known: RktAppRow, reported) => (pod.after.some(isDeleted) ? known : reported),
    }),
  ),
);

/** The networks that a pod is in, or was in when it ran: a network's row is never marked as gone. */
const networks = historyTable(table("rkt_networks", ["session", "pod", "network"]), (step: StateStep<RktState>, of) =>
  changedPods(step).flatMap((pod) => {
    const before = pod.before.flatMap((one) => one.networks.map((network) => networkRow(of, one, network)));
    const after = pod.after.flatMap((one) => one.networks.map((network) => networkRow(of, one, network)));
    const changed = after.filter((row) => !before.some((other) => isDeepStrictEqual(row, other)));
    return changed.map((row) => ({ row, write: () => row }));
  }),
);

const images = historyTable(table("rkt_images", ["session", "image"]), (step: StateStep<RktState>, of) =>
  changedMessages(Image, step.before.images, step.after.images).flatMap((image) =>
    rowChanges(step, {
      before: image.before.map((before) => imageRow(step, of, before)),
      after: image.after.map((after) => imageRow(step, of, after)),
      keyOf: (row) => row.image,
    }),
  ),
);

export const tables: readonly StateTable<RktState>[] = [pods, apps, networks, images];

/** No message or one, before and after an event. */
type MessageChange<M> = { readonly before: readonly M[]; readonly after: readonly M[] };

function changedPods({ before, after }: StateStep<RktState>): readonly MessageChange<Pod>[] {
  return changedMessages(Pod, before.pods, after.pods);
}

function changedMessages<M>(
  message: { readonly decode: (bytes: Uint8Array) => M },
  before: HostInventory,
  after: HostInventory,
): readonly MessageChange<M>[] {
  const decoded = (bytes: Base64 | undefined) => (bytes === undefined ? [] : [message.decode(fromBase64(bytes))]);
  return changesBetween(before, after).map((change) => ({
    before: decoded(change.before),
    after: decoded(change.after),
  }));
}
