import {
  type App,
  AppState,
  appStateToJSON,
  type Image,
  type Network,
  type Pod,
  podStateToJSON,
} from "@tapedeck/proto/rkt/v1alpha/rkt";
import { timestampOfNanos } from "@tapedeck/shared/time/timestamp";
import type { RktAppRow, RktImageRow, RktNetworkRow, RktPodRow } from "../../db/schema.ts";
import { key, text } from "../../db/text.ts";
import { storedTimestamp } from "../../db/timestamp.ts";
import type { OfSession, StateStep } from "../states/state-table.ts";
import { validityFrom } from "../states/validity.ts";
import type { RktState } from "./state.ts";

/** The row that this event alone would write. */
export function podRow(step: StateStep<RktState>, of: OfSession, pod: Pod): RktPodRow {
  const { annotations, id } = pod;
  return {
    ...of,
    pod: key(id),
    name: text(annotations.find(({ Key }) => Key === "rkt.kubernetes.io/name")?.value || id),
    state: word(podStateToJSON(pod.state), pod.state),
    pid: pod.pid > 0 ? pod.pid : null,
    cgroup: text(pod.cgroup),
    created_at: timestampOfUnixNanos(pod.created_at),
    started_at: timestampOfUnixNanos(pod.started_at),
    gc_marked_at: timestampOfUnixNanos(pod.gc_marked_at),
    apps: pod.apps.length,
    ...validityFrom(step),
  };
}

export function appRow(step: StateStep<RktState>, of: OfSession, pod: Pod, app: App): RktAppRow {
  const isOver = app.state === AppState.APP_STATE_EXITED || app.exit_code > 0;
  return {
    ...of,
    pod: key(pod.id),
    app: key(app.name),
    image_id: text(app.image?.id ?? ""),
    image_name: text(app.image?.name ?? ""),
    image_version: text(app.image?.version ?? ""),
    state: word(appStateToJSON(app.state), app.state),
    exit_code: isOver ? app.exit_code : null,
    ...validityFrom(step),
  };
}

export function networkRow(of: OfSession, pod: Pod, { name, ipv4, ipv6 }: Network): RktNetworkRow {
  return { ...of, pod: key(pod.id), network: key(name), ipv4: text(ipv4), ipv6: text(ipv6) };
}

export function imageRow(step: StateStep<RktState>, of: OfSession, image: Image): RktImageRow {
  // rkt itself uses the first of several labels with the same key, so the first is written last.
  const labels = image.labels.toReversed().map(({ Key, value }) => [text(Key), text(value)]);
  return {
    ...of,
    image: key(image.id),
    name: text(image.name),
    version: text(image.version),
    imported_at: timestampOfUnixNanos(image.import_timestamp * second),
    // An odd upstream may report a size that does not fit the column.
    size: Math.max(0, Math.min(Number(image.size), Number.MAX_SAFE_INTEGER)),
    labels: Object.fromEntries(labels),
    ...validityFrom(step),
  };
}

const second = 1_000_000_000n;

/** From nanoseconds since 1970. rkt reports 0 for an unknown time. */
function timestampOfUnixNanos(nanos: bigint): string | null {
  return nanos <= 0n ? null : storedTimestamp(timestampOfNanos(nanos)).at;
}

/** "POD_STATE_RUNNING" → "RUNNING"; an unknown state is its number. */
function word(name: string, state: number): string {
  return name === "UNRECOGNIZED" ? String(state) : name.replace(/^(POD|APP)_STATE_/, "");
}
