import { GetInfoResponse, Image, ListImagesResponse, ListPodsResponse, Pod } from "@tapedeck/proto/rkt/v1alpha/rkt";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { acceptPod } from "@tapedeck/shared/rkt/accept";
import { base64, fromBase64 } from "../states/base64.ts";
import { withoutDescription } from "../states/description.ts";
import { decoded, messageOf } from "../states/message-of.ts";
import { bytesOf, changed, described, type HostInventory, type InventoryItem } from "./inventory.ts";
import type { RktState } from "./state.ts";

/**
 * Applies one event of a session, in the order of the log. Returns the same object for an event that can't touch the
 * state. Total: what can't be decoded changes nothing.
 */
export function evolve(state: RktState, event: Event): RktState {
  switch (event.channel) {
    case "pods": {
      const pods = evolvePods(state.pods, event);
      return pods === state.pods ? state : { ...state, pods };
    }
    case "images": {
      const images = evolveImages(state.images, event);
      return images === state.images ? state : { ...state, images };
    }
    case "tapedeck":
      return evolveInfo(state, event);
    default:
      return state;
  }
}

function evolvePods(before: HostInventory, event: Event): HostInventory {
  if (event.detail?.$case === "host") {
    const list = messageOf(event, "v1alpha.ListPodsResponse", ListPodsResponse);
    return described(before, event.detail.value, list?.pods.flatMap(podItem));
  }
  const pods = withoutDescription(before);
  if (isRemoved(event)) return changed(pods, [{ id: event.subject }]);
  const listed = messageOf(event, "v1alpha.Pod", Pod);
  if (listed === undefined) return pods;
  const known = bytesOf(pods, listed.id);
  const accepted = acceptPod(known === undefined ? undefined : Pod.decode(fromBase64(known)), listed);
  return changed(pods, podItem(accepted));
}

/** True also for a pod that never ran, and for one whose collection was reported before. */
function isRemoved({ kind, detail }: Event): boolean {
  if (detail?.$case !== "pod") return false;
  const { phase, removed } = detail.value;
  if (kind === "pod.collected") return phase === "removed" || phase === "never-ran";
  return kind === "pod.changed" && removed;
}

function evolveImages(before: HostInventory, event: Event): HostInventory {
  if (event.detail?.$case === "host") {
    const list = messageOf(event, "v1alpha.ListImagesResponse", ListImagesResponse);
    return described(before, event.detail.value, list?.images.flatMap(imageItem));
  }
  const images = withoutDescription(before);
  if (event.kind === "image.removed") return changed(images, [{ id: event.subject }]);
  const listed = messageOf(event, "v1alpha.Image", Image);
  return listed === undefined ? images : changed(images, imageItem(listed));
}

/** Encodes the pod anew, so that the same pod has the same text whichever message reported it. Unknown fields stay. */
function podItem(pod: Pod): readonly InventoryItem[] {
  return pod.id === "" ? [] : [{ id: pod.id, bytes: base64(Pod.encode(pod).finish()) }];
}

function imageItem(image: Image): readonly InventoryItem[] {
  return image.id === "" ? [] : [{ id: image.id, bytes: base64(Image.encode(image).finish()) }];
}

function evolveInfo(state: RktState, { kind, detail }: Event): RktState {
  if (kind !== "session.described" || detail?.$case !== "session_detail") return state;
  const bytes = detail.value.states.info;
  if (bytes === undefined || decoded(GetInfoResponse, bytes) === undefined) return state;
  const info = base64(bytes);
  return info === state.info ? state : { ...state, info };
}
