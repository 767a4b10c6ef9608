import type { InventoryKind, RecordedUpstream, UnaryRpc } from "@tapedeck/fakes/rkt/recording";
import {
  InspectPodRequest,
  ListImagesRequest,
  ListPodsRequest,
  ListPodsResponse,
} from "@tapedeck/proto/rkt/v1alpha/rkt";
import { logStart, type Offset } from "@tapedeck/shared/log/offset";
import { parsePosition } from "@tapedeck/shared/log/position";
import type { RktAnswer, RktClient } from "./client.ts";

/** An answer at a position of a log. */
export type PositionedAnswer = {
  readonly channel: InventoryKind;
  readonly rpc: UnaryRpc;
  readonly request: Uint8Array;
  readonly answer: RktAnswer;
  /** The position in the answer, and its sequence. */
  readonly position: string;
  readonly offset: Offset;
};

/** Sends all requests about the pods, or about the images, of a host that only ever has one pod. */
export async function answersNow(
  channel: InventoryKind,
  client: RktClient,
  recording: RecordedUpstream,
): Promise<PositionedAnswer[]> {
  const calls: readonly (readonly [UnaryRpc, Uint8Array])[] =
    channel === "images"
      ? [["ListImages", ListImagesRequest.encode({ filters: [], detail: true }).finish()]]
      : [
          ["ListPods", ListPodsRequest.encode({ filters: [], detail: true }).finish()],
          ["InspectPod", InspectPodRequest.encode({ id: podOf(recording) }).finish()],
        ];
  const places: PositionedAnswer[] = [];
  // An error has no position: it takes that of the list before it.
  let position = "";
  for (const [rpc, request] of calls) {
    const { answer, position: own } = await client.askWhere(rpc, request);
    if (own !== "") position = own;
    places.push({ channel, rpc, request, answer, position, offset: parsePosition(position)?.offset ?? logStart });
  }
  return places;
}

function podOf({ rows }: RecordedUpstream): string {
  const lists = rows.flatMap((row) => (row.kind === "unary" && row.rpc === "ListPods" ? (row.response ?? []) : []));
  return lists.flatMap((bytes) => ListPodsResponse.decode(bytes).pods)[0]?.id ?? "";
}
