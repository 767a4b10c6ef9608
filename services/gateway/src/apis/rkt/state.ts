import { fromBinary, type JsonObject, toJson } from "@bufbuild/protobuf";
import { messageType } from "@tapedeck/shared/descriptors/registry";
import type { UpstreamState } from "../upstream-state.ts";

/** rkt's clients know this form: original field names, and no fields that are zero. Manifests are in rkt's own API. */
export const rktState: UpstreamState = {
  isLarge: false,
  collections: [
    ["rkt.info", "v1alpha.GetInfoResponse"],
    ["rkt.pods", "v1alpha.Pod"],
    ["rkt.images", "v1alpha.Image"],
  ],
  toJson: ([[info] = [undefined], pods = [], images = []]) => ({
    info: info === undefined ? null : messageJson("v1alpha.GetInfoResponse", info).info,
    pods: pods.map((pod) => messageJson("v1alpha.Pod", pod)),
    images: images.map((image) => messageJson("v1alpha.Image", image)),
  }),
};

function messageJson(type: string, bytes: Uint8Array): JsonObject {
  const desc = messageType(type);
  const { manifest: _, ...json } = toJson(desc, fromBinary(desc, bytes), { useProtoFieldName: true }) as JsonObject;
  return json;
}
