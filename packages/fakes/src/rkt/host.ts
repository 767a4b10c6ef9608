import { createHash } from "node:crypto";
import {
  type App,
  AppState,
  type Image,
  ImageType,
  ListImagesRequest,
  ListImagesResponse,
  ListPodsRequest,
  ListPodsResponse,
  type Pod,
  PodState,
} from "@tapedeck/proto/rkt/v1alpha/rkt";
import type { RecordedUnary, RecordedUpstream } from "./recording.ts";

export type MadeUpRecording = {
  readonly name?: string;
  /** The answers of ListPods, in order; with or without manifests. */
  readonly pods: readonly (readonly Pod[])[];
  readonly images?: readonly (readonly Image[])[];
};

/** A made-up recording, for what no real one has: one poll a second. */
export function madeUpRecording({ name = "made-up", pods, images = [] }: MadeUpRecording): RecordedUpstream {
  const rows: RecordedUnary[] = [];
  const add = (rpc: RecordedUnary["rpc"], at: number, tag: string, request: Uint8Array, response: Uint8Array) => {
    const bytes = { request: Buffer.from(request), response: Buffer.from(response) };
    rows.push({ kind: "unary", n: rows.length, at: firstPoll + at * 1_000, tookMs: 0, tag, rpc, ...bytes });
  };
  // The manifests come from one observation of everything, before the polls.
  const everyPod = new Map(pods.flat().map((pod) => [pod.id, pod]));
  const everyImage = new Map(images.flat().map((image) => [image.id, image]));
  const detail = { filters: [], detail: true };
  const plain = { filters: [], detail: false };
  add("ListPods", 0, "detail", encode(ListPodsRequest, detail), encodePods([...everyPod.values()]));
  add("ListImages", 0, "detail", encode(ListImagesRequest, detail), encodeImages([...everyImage.values()]));
  for (let poll = 0; poll < Math.max(pods.length, images.length); poll++) {
    const listed = pods[poll]?.map((pod) => ({ ...pod, manifest: none }));
    if (listed !== undefined) add("ListPods", poll, "poll", encode(ListPodsRequest, plain), encodePods(listed));
    const stored = images[poll]?.map((image) => ({ ...image, manifest: none }));
    if (stored !== undefined) add("ListImages", poll, "poll", encode(ListImagesRequest, plain), encodeImages(stored));
  }
  return { name, rows, expectedEvents: [] };
}

export type LargeHost = {
  readonly pods: number;
  /** Default 1. */
  readonly polls?: number;
  /** How many pods end from each poll to the next (default 0). */
  readonly ending?: number;
};

/** A host with many running pods of one app; about 205 bytes for each, 535 with manifests. */
export function largeHost({ pods, polls = 1, ending = 0 }: LargeHost): RecordedUpstream {
  const running = Array.from({ length: pods }, (_, index) => runningPod(index));
  const lists = Array.from({ length: polls }, (_, poll) =>
    running.map((pod, index) => (index < poll * ending ? exited(pod) : pod)),
  );
  return madeUpRecording({ name: `host-of-${pods}-pods`, pods: lists });
}

const firstPoll = Date.parse("2026-11-20T15:00:00Z");
const none = Buffer.alloc(0);

/** The `index`-th pod of such a host: running, always the same, sorted by index. */
export function runningPod(index: number): Pod {
  const id = `${index.toString(16).padStart(8, "0")}-0000-4000-8000-${index.toString(16).padStart(12, "0")}`;
  const created_at = BigInt(firstPoll) * 1_000_000n - BigInt(index) * 1_000_003n;
  return {
    id,
    pid: 1_000 + index,
    state: PodState.POD_STATE_RUNNING,
    apps: [app],
    networks: [{ name: "default", ipv4: `172.16.${(index >> 8) & 255}.${index & 255}`, ipv6: "" }],
    annotations: [],
    cgroup: "/machine.slice",
    created_at,
    started_at: created_at + 5_000_000n,
    gc_marked_at: 0n,
    manifest,
  };
}

function exited(pod: Pod): Pod {
  const apps = pod.apps.map((app) => ({ ...app, state: AppState.APP_STATE_EXITED }));
  return { ...pod, apps, state: PodState.POD_STATE_EXITED, cgroup: "" };
}

/** The image as pods list it: without size, labels and manifest. */
const image: Image = {
  base_format: { type: ImageType.IMAGE_TYPE_APPC, version: "0.8.11" },
  id: `sha512-${createHash("sha512").update("worker").digest("hex").slice(0, 64)}`,
  name: "sim.example/worker",
  version: "1.2.0",
  import_timestamp: 0n,
  manifest: none,
  size: 0n,
  annotations: [],
  labels: [],
};

const app: App = {
  name: "worker",
  image,
  state: AppState.APP_STATE_RUNNING,
  exit_code: 0,
  annotations: [],
};

const manifest = Buffer.from(
  JSON.stringify({
    acVersion: "0.8.11",
    acKind: "PodManifest",
    apps: [
      { name: "worker", image: { id: image.id }, app: { exec: ["/bin/app", "--name=worker"], user: "0", group: "0" } },
    ],
    volumes: [],
    isolators: [],
    annotations: [],
    ports: [],
  }),
);

type Encoder<T> = { readonly encode: (message: T) => { finish(): Uint8Array } };

function encode<T>(type: Encoder<T>, message: T): Uint8Array {
  return type.encode(message).finish();
}

function encodePods(pods: Pod[]): Uint8Array {
  return encode(ListPodsResponse, { pods });
}

function encodeImages(images: Image[]): Uint8Array {
  return encode(ListImagesResponse, { images });
}
