import {
  type Image,
  InspectImageResponse,
  InspectPodResponse,
  ListImagesRequest,
  ListImagesResponse,
  ListPodsRequest,
  ListPodsResponse,
  type Pod,
} from "@tapedeck/proto/rkt/v1alpha/rkt";
import {
  type InventoryKind,
  pollRows,
  type RecordedAnswer,
  type RecordedStatus,
  type RecordedUpstream,
  type UnaryRpc,
} from "./recording.ts";

/** What is listed, by kind. */
export type Items = { readonly pods: Pod; readonly images: Image };

/** One observation of the host: an answer of ListPods or ListImages. */
export type Poll<K extends InventoryKind> = {
  readonly n: number;
  /** Ms since 1970. */
  readonly at: number;
  readonly tookMs: number;
  /** It failed; there are no items then. */
  readonly error?: RecordedStatus;
  /** With every manifest that the recording has of them. */
  readonly items: readonly Items[K][];
  /** The recorded bytes, which have manifests or not. */
  readonly recorded?: { readonly bytes: Buffer; readonly detail: boolean };
};

export type Polls = { readonly [K in InventoryKind]: readonly Poll<K>[] };

/** Its pods' or images' polls, in order. */
export function readPolls(recording: RecordedUpstream): Polls {
  return { pods: pollsOf(recording, "pods"), images: pollsOf(recording, "images") };
}

function pollsOf<K extends InventoryKind>(recording: RecordedUpstream, kind: K): Poll<K>[] {
  const { list, decode, withManifest } = shapes[kind];
  const manifests = manifestsIn(recording, kind);
  return pollRows(recording, kind).map(({ n, at, tookMs, request, response, error }) => {
    const base = { n, at, tookMs };
    if (response === undefined) return { ...base, error, items: [] };
    const items = decode(response).map((item) => withManifest(item, manifests.get(item.id)));
    return { ...base, items, recorded: { bytes: response, detail: list.decode(request).detail } };
  });
}

/** A manifest never changes, so the last one seen holds for the whole recording. */
function manifestsIn(recording: RecordedUpstream, kind: InventoryKind): Map<string, Buffer> {
  const { listRpc, inspectRpc, decode, decodeOne } = shapes[kind];
  const manifests = new Map<string, Buffer>();
  for (const row of recording.rows) {
    if (row.kind !== "unary" || row.response === undefined) continue;
    const items = row.rpc === listRpc ? decode(row.response) : row.rpc === inspectRpc ? decodeOne(row.response) : [];
    for (const { id, manifest } of items) if (manifest.length > 0) manifests.set(id, manifest);
  }
  return manifests;
}

/** The answer of ListPods or ListImages: byte for byte the recorded one, unless the manifests make a difference. */
export function listAnswer<K extends InventoryKind>(kind: K, { items, recorded }: Poll<K>, detail: boolean): Buffer {
  const { encode, without } = shapes[kind];
  if (recorded?.detail === detail) return recorded.bytes;
  return encode(detail ? items : items.map(without));
}

/**
 * The answer of InspectPod or InspectImage by the rules of the real one: any prefix that only one pod has, in any case;
 * an image's id exactly.
 */
export function inspectAnswer<K extends InventoryKind>(kind: K, poll: Poll<K> | undefined, id: string): RecordedAnswer {
  const { encodeOne, isMeant, notFound } = shapes[kind];
  const [found, ...others] = poll?.items.filter((item) => isMeant(item, id)) ?? [];
  if (found === undefined || others.length > 0) return { error: { code: 2, details: notFound(id) } };
  return { response: encodeOne(found) };
}

type Shape<T> = {
  readonly listRpc: UnaryRpc;
  readonly inspectRpc: UnaryRpc;
  readonly list: {
    readonly decode: (bytes: Buffer) => { readonly filters: readonly unknown[]; readonly detail: boolean };
  };
  readonly decode: (bytes: Buffer) => readonly T[];
  readonly encode: (items: readonly T[]) => Buffer;
  readonly decodeOne: (bytes: Buffer) => readonly T[];
  readonly encodeOne: (item: T) => Buffer;
  readonly withManifest: (item: T, manifest: Buffer | undefined) => T;
  readonly without: (item: T) => T;
  readonly isMeant: (item: T, id: string) => boolean;
  readonly notFound: (id: string) => string;
};

const none = Buffer.alloc(0);

export const shapes: { readonly [K in InventoryKind]: Shape<Items[K]> } = {
  pods: {
    listRpc: "ListPods",
    inspectRpc: "InspectPod",
    list: ListPodsRequest,
    decode: (bytes) => ListPodsResponse.decode(bytes).pods,
    encode: (pods) => Buffer.from(ListPodsResponse.encode({ pods: [...pods] }).finish()),
    decodeOne: (bytes) => [InspectPodResponse.decode(bytes).pod].flatMap((pod) => pod ?? []),
    encodeOne: (pod) => Buffer.from(InspectPodResponse.encode({ pod }).finish()),
    // The apps come from the manifest: a pod without them has none yet, or has none any more.
    withManifest: (pod, manifest = none) => (pod.apps.length > 0 ? { ...pod, manifest } : pod),
    without: (pod) => ({ ...pod, manifest: none }),
    isMeant: (pod, id) => id !== "" && pod.id.startsWith(id.toLowerCase()),
    notFound: () => "unable to resolve UUID",
  },
  images: {
    listRpc: "ListImages",
    inspectRpc: "InspectImage",
    list: ListImagesRequest,
    decode: (bytes) => ListImagesResponse.decode(bytes).images,
    encode: (images) => Buffer.from(ListImagesResponse.encode({ images: [...images] }).finish()),
    decodeOne: (bytes) => [InspectImageResponse.decode(bytes).image].flatMap((image) => image ?? []),
    encodeOne: (image) => Buffer.from(InspectImageResponse.encode({ image }).finish()),
    withManifest: (image, manifest = none) => ({ ...image, manifest }),
    without: (image) => ({ ...image, manifest: none }),
    isMeant: (image, id) => image.id === id,
    notFound: (id) => `ACI info not found with blob key "${id}"`,
  },
};
