import type { RecordedUnary, RecordedUpstream } from "@tapedeck/fakes/rkt/recording";
import {
  InspectImageResponse,
  InspectPodResponse,
  ListImagesRequest,
  ListImagesResponse,
  ListPodsRequest,
  ListPodsResponse,
} from "@tapedeck/proto/rkt/v1alpha/rkt";

/**
 * Recording 07 with added polls of its host: the original inspects one pod or image at a time. The answers of these
 * polls follow from its steps and answers. Omits what a client could not ask: by TLS, or after its timeout.
 */
export function errorsWithObservations(recording: RecordedUpstream): RecordedUpstream {
  const callOf = (n: number) => {
    const call = recording.rows.find((row) => row.n === n);
    if (call?.kind !== "unary" || call.response === undefined) throw new Error(`${n} has no answer`);
    return call;
  };
  const bare = <T extends { manifest: Buffer }>(item: T) => ({ ...item, manifest: Buffer.alloc(0) });
  const prepared = [InspectPodResponse.decode(callOf(14).response).pod].flatMap((pod) => pod ?? []).map(bare);
  const fetched = [InspectImageResponse.decode(callOf(30).response).image].flatMap((image) => image ?? []).map(bare);
  const second = prepared.map((pod) => ({ ...pod, id: "feed0000-0000-4000-8000-000000000002" }));
  const pods = (n: number, response: Uint8Array) =>
    observation("ListPods", n, ListPodsRequest.encode(ListPodsRequest.create()).finish(), response);
  const images = (n: number, response: Uint8Array) =>
    observation("ListImages", n, ListImagesRequest.encode(ListImagesRequest.create()).finish(), response);
  const observations = [
    pods(7.5, new Uint8Array()),
    pods(13.5, ListPodsResponse.encode({ pods: [...prepared, ...second] }).finish()),
    // One of them was renamed again: a missing item is gone when it is missed twice.
    pods(23.4, callOf(52).response),
    pods(23.5, callOf(52).response),
    images(24.5, ListImagesResponse.encode({ images: fetched }).finish()),
    images(32.5, new Uint8Array()),
  ];
  const requests = recording.rows.filter(
    (row) => row.kind !== "unary" || row.rpc !== "GetInfo" || row.error === undefined,
  );
  return { ...recording, rows: [...requests, ...observations].sort((a, b) => a.n - b.n) };

  function observation(rpc: RecordedUnary["rpc"], n: number, request: Uint8Array, response: Uint8Array): RecordedUnary {
    const bytes = { request: Buffer.from(request), response: Buffer.from(response) };
    return { kind: "unary", n, at: callOf(14).at, tookMs: 0, tag: "look", rpc, ...bytes };
  }
}
