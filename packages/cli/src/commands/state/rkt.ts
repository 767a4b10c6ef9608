import { coloured } from "../../display/colour.ts";
import { agoText, bytesText } from "../../display/durations.ts";
import { statusColour } from "../../display/status-colour.ts";
import { table } from "../../display/table.ts";

/** A rkt host as the API gives it, as much of it as is shown. What is zero is not there; times are text, for their size. */
export type RktStateJson = {
  readonly info: { readonly rkt_version?: string; readonly global_flags?: { readonly dir?: string } } | null;
  readonly pods: readonly RktPod[];
  readonly images: readonly RktImage[];
};

type RktPod = {
  readonly id?: string;
  readonly state?: string;
  readonly apps?: readonly RktApp[];
  readonly annotations?: readonly { readonly Key?: string; readonly value?: string }[];
  /** Nanoseconds since 1970, as the others. */
  readonly created_at?: string;
  readonly started_at?: string;
  readonly gc_marked_at?: string;
};

type RktApp = {
  readonly name?: string;
  readonly state?: string;
  readonly exit_code?: number;
  readonly image?: { readonly name?: string; readonly version?: string };
};

type RktImage = {
  readonly id?: string;
  readonly name?: string;
  readonly version?: string;
  /** Bytes. */
  readonly size?: string;
  /** Seconds since 1970. */
  readonly import_timestamp?: string;
};

/** When pods were seen to have ended, by their ids: rkt does not report it. */
export type PodEnds = ReadonlyMap<string, string>;

/** The host itself, its pods with their apps, its images. */
export function rktText({ info, pods, images }: RktStateJson, ends: PodEnds, now = Date.now()): string {
  const about = [info?.rkt_version && `rkt ${info.rkt_version}`, info?.global_flags?.dir].filter(Boolean).join(", ");
  const parts = [about, podsText(pods, ends, now), imagesText(images, now)];
  return parts.filter((text) => text !== "").join("\n\n");
}

function podsText(pods: readonly RktPod[], ends: PodEnds, now: number): string {
  if (pods.length === 0) return "No pods.";
  const columns = ["POD", "STATE", "SINCE", "APP", "STATE", "IMAGE"].map((title) => ({ title }));
  // In the order in which they were made; those that are not made yet come last.
  const made = pods.toSorted((a, b) => Number(a.created_at ?? Infinity) - Number(b.created_at ?? Infinity) || 0);
  return table(
    columns,
    made.flatMap((pod) => podRows(pod, ends, now)),
  );
}

/** A row for each app; what is the pod's stands in the first. */
function podRows(pod: RktPod, ends: PodEnds, now: number): string[][] {
  const ofPod = [podName(pod), inItsColour(podState(pod)), agoText(since(pod, ends), now)];
  const [first = ["-", "-", "-"], ...others] = (pod.apps ?? []).map((app) => [
    app.name ?? "-",
    appState(app),
    imageName(app.image ?? {}),
  ]);
  return [[...ofPod, ...first], ...others.map((app) => ["", "", "", ...app])];
}

/** The short id of `rkt list`, and the name if kubelet gave it one. */
function podName({ id = "", annotations = [] }: RktPod): string {
  const name = annotations.find(({ Key }) => Key === "rkt.kubernetes.io/name")?.value;
  return [id.slice(0, 8), name].filter(Boolean).join(" ");
}

/** rkt answers a pod that is being deleted as one without a state. */
function podState({ state }: RktPod): string {
  return word(state, "POD_STATE_") ?? "deleting";
}

function since(pod: RktPod, ends: PodEnds): string | undefined {
  const { id = "", state, created_at, started_at, gc_marked_at } = pod;
  switch (state) {
    case "POD_STATE_PREPARED":
      return timeOf(created_at);
    case "POD_STATE_RUNNING":
      return timeOf(started_at);
    case "POD_STATE_EXITED":
      return ends.get(id);
    case "POD_STATE_GARBAGE":
      return timeOf(gc_marked_at);
    default:
      return undefined;
  }
}

/** A code exists before rkt reports that the app is over: it does so only when the whole pod is. */
function appState({ state, exit_code = 0 }: RktApp): string {
  if (exit_code > 0) return coloured("red", `exited ${exit_code}`);
  const is = word(state, "APP_STATE_") ?? "-";
  return is === "exited" ? "exited 0" : inItsColour(is);
}

function imagesText(images: readonly RktImage[], now: number): string {
  if (images.length === 0) return "No images.";
  const columns = [
    { title: "IMAGE" },
    { title: "SIZE", align: "right" as const },
    { title: "IMPORTED" },
    { title: "ID" },
  ];
  const rows = images
    .map((image) => [
      imageName(image),
      bytesText(Number(image.size ?? 0)),
      agoText(image.import_timestamp && new Date(Number(image.import_timestamp) * 1_000).toISOString(), now),
      (image.id ?? "").slice(0, "sha512-".length + 12),
    ])
    .toSorted(([a = ""], [b = ""]) => (a < b ? -1 : 1));
  return table(columns, rows);
}

function imageName({ name = "", version = "" }: { readonly name?: string; readonly version?: string }): string {
  return [name || "-", version].filter((part) => part !== "").join(":");
}

/** "POD_STATE_ABORTED_PREPARE" → "aborted prepare"; undefined where there is none. */
function word(state: string | undefined, prefix: string): string | undefined {
  return state?.replace(prefix, "").replaceAll("_", " ").toLowerCase();
}

function timeOf(nanos: string | undefined): string | undefined {
  return nanos === undefined ? undefined : new Date(Number(BigInt(nanos) / 1_000_000n)).toISOString();
}

function inItsColour(state: string): string {
  return coloured(statusColour(state), state);
}
