import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { Resources as DescribedResources } from "@tapedeck/proto/tapedeck/v1/observation";
import { GetVersionInfoResponse } from "@tapedeck/proto/vagrant/vagrant";
import { base64 } from "../states/base64.ts";
import { withoutDescription } from "../states/description.ts";
import { decoded, messageOf } from "../states/message-of.ts";
import { resourceMessages } from "./resource-messages.ts";
import {
  described,
  isResourceKind,
  type ListedResource,
  put,
  type ResourceKind,
  type Resources,
  without,
} from "./resources.ts";
import type { VagrantState } from "./state.ts";

/**
 * Applies one event of a session, in the order of the log. Returns the same object for an event that can't touch the
 * state. Total: what can't be decoded changes nothing.
 */
export function evolve(state: VagrantState, event: Event): VagrantState {
  switch (event.channel) {
    case "resources": {
      const resources = evolveResources(state.resources, event);
      return resources === state.resources ? state : { ...state, resources };
    }
    case "tapedeck":
      return evolveVersion(state, event);
    default:
      return state;
  }
}

function evolveResources(before: Resources, event: Event): Resources {
  if (event.detail?.$case === "host") {
    const all = messageOf(event, "tapedeck.v1.Resources", DescribedResources);
    return described(before, event.detail.value, all && listedIn(all));
  }
  const resources = withoutDescription(before);
  const [kind = "", verb] = event.kind.split(".");
  const id = event.subject;
  if (!isResourceKind(kind) || id === "") return resources;
  if (verb === "removed") return without(resources, { kind, id });
  const { type, message } = resourceMessages[kind];
  if (event.original === undefined || messageOf<unknown>(event, type, message) === undefined) return resources;
  return put(resources, [{ kind, id, bytes: base64(event.original.bytes) }]);
}

function listedIn({ kinds }: DescribedResources): readonly ListedResource[] {
  return kinds.flatMap(({ kind, entries }) =>
    isResourceKind(kind) ? entries.filter(({ id }) => id !== "").map(({ id, bytes }) => listed(kind, id, bytes)) : [],
  );
}

function listed(kind: ResourceKind, id: string, bytes: Uint8Array): ListedResource {
  const isReadable = decoded<unknown>(resourceMessages[kind].message, bytes) !== undefined;
  return { kind, id, ...(isReadable && { bytes: base64(bytes) }) };
}

function evolveVersion(state: VagrantState, { kind, detail }: Event): VagrantState {
  if (kind !== "session.described" || detail?.$case !== "session_detail") return state;
  const bytes = detail.value.states.version;
  if (bytes === undefined || decoded(GetVersionInfoResponse, bytes) === undefined) return state;
  const version = base64(bytes);
  return version === state.version ? state : { ...state, version };
}
