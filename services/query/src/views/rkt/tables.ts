import { isDeepStrictEqual } from "node:util";
import { Image, Pod } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { isDeleted } from "@tapedeck/shared/rkt/accept";
import type { RktAppRow, RktImageRow, RktNetworkRow, RktPodRow } from "../../db/schema.ts";
import { table } from "../../db/table.ts";
import { type Base64, fromBase64 } from "../states/base64.ts";
import { historyTable } from "../states/history-table.ts";
import type { StateTable, Step } from "../states/state-table.ts";
import { touches } from "../states/validity.ts";
import { changesBetween, type Entries } from "./entries.ts";
import { appRow, imageRow, networkRow, podRow } from "./rows.ts";
import type { RktState } from "./state.ts";

const pods = historyTable<RktState, RktPodRow>(table("rkt_pods", ["session", "pod"]), (step, of) =>
  changedPods(step).flatMap(({ before, after }) => {
    const was = before.map((pod) => podRow(step, of, pod));
    const now = after.map((pod) => podRow(step, of, pod));
    // Of a pod that is being deleted rkt tells next to nothing: what was known of it stays.
    const news = (known: RktPodRow, row: RktPodRow) => (after.some(isDeleted) ? { ...known, state: row.state } : row);
    return touches(step, { was, now, keyOf: ({ pod }) => pod, news });
  }),
);

const apps = historyTable<RktState, RktAppRow>(table("rkt_apps", ["session", "pod", "app"]), (step, of) =>
  changedPods(step).flatMap(({ before, after }) => {
    const was = before.flatMap((pod) => pod.apps.map((app) => appRow(step, of, pod, app)));
    const now = after.flatMap((pod) => pod.apps.map((app) => appRow(step, of, pod, app)));
    const news = (known: RktAppRow, row: RktAppRow) => (after.some(isDeleted) ? known : row);
    return touches(step, { was, now, keyOf: ({ app }) => app, news });
  }),
);

const networks = historyTable<RktState, RktNetworkRow>(
  table("rkt_networks", ["session", "pod", "network"]),
  (step, of) =>
    changedPods(step).flatMap(({ before, after }) => {
      const was = before.flatMap((pod) => pod.networks.map((network) => networkRow(of, pod, network)));
      const now = after.flatMap((pod) => pod.networks.map((network) => networkRow(of, pod, network)));
      const news = now.filter((row) => !was.some((other) => isDeepStrictEqual(row, other)));
      return news.map((row) => ({ row, write: () => row }));
    }),
);

const images = historyTable<RktState, RktImageRow>(table("rkt_images", ["session", "image"]), (step, of) =>
  changed(Image, step.before.images, step.after.images).flatMap(({ before, after }) => {
    const was = before.map((image) => imageRow(step, of, image));
    const now = after.map((image) => imageRow(step, of, image));
    return touches(step, { was, now, keyOf: ({ image }) => image });
  }),
);

export const tables: readonly StateTable<RktState>[] = [pods, apps, networks, images];

/** None or one, before and after an event. */
type Change<M> = { readonly before: readonly M[]; readonly after: readonly M[] };

function changedPods({ before, after }: Step<RktState>): readonly Change<Pod>[] {
  return changed(Pod, before.pods, after.pods);
}

function changed<M>(
  message: { readonly decode: (bytes: Uint8Array) => M },
  before: Entries,
  after: Entries,
): readonly Change<M>[] {
  const decoded = (bytes: Base64 | undefined) => (bytes === undefined ? [] : [message.decode(fromBase64(bytes))]);
  return changesBetween(before, after).map((change) => ({
    before: decoded(change.before),
    after: decoded(change.after),
  }));
}
