import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { Things as DescribedThings } from "@tapedeck/proto/tapedeck/v1/look";
import { GetVersionInfoResponse } from "@tapedeck/proto/vagrant/vagrant";
import { base64 } from "../states/base64.ts";
import { messageOf, read } from "../states/message-of.ts";
import { messages } from "./messages.ts";
import type { VagrantState } from "./state.ts";
import {
  described,
  isThingKind,
  type Listed,
  put,
  type ThingKind,
  type Things,
  undescribed,
  without,
} from "./things.ts";

/**
 * One event of a session, in the order of the log. What can't touch state gives the very same object back. Total: what
 * can't be read changes nothing.
 */
export function evolve(state: VagrantState, event: Event): VagrantState {
  switch (event.channel) {
    case "things": {
      const things = evolveThings(state.things, event);
      return things === state.things ? state : { ...state, things };
    }
    case "tapedeck":
      return evolveVersion(state, event);
    default:
      return state;
  }
}

function evolveThings(before: Things, event: Event): Things {
  if (event.detail?.$case === "host") {
    const all = messageOf(event, "tapedeck.v1.Things", DescribedThings);
    return described(before, event.detail.value, all && listedIn(all));
  }
  const things = undescribed(before);
  const [kind = "", verb] = event.kind.split(".");
  const id = event.subject;
  if (!isThingKind(kind) || id === "") return things;
  if (verb === "removed") return without(things, { kind, id });
  const { type, message } = messages[kind];
  if (event.original === undefined || messageOf<unknown>(event, type, message) === undefined) return things;
  return put(things, [{ kind, id, bytes: base64(event.original.bytes) }]);
}

function listedIn({ kinds }: DescribedThings): readonly Listed[] {
  return kinds.flatMap(({ kind, entries }) =>
    isThingKind(kind) ? entries.filter(({ id }) => id !== "").map(({ id, bytes }) => listed(kind, id, bytes)) : [],
  );
}

function listed(kind: ThingKind, id: string, bytes: Uint8Array): Listed {
  const isReadable = read<unknown>(messages[kind].message, bytes) !== undefined;
  return { kind, id, ...(isReadable && { bytes: base64(bytes) }) };
}

function evolveVersion(state: VagrantState, { kind, detail }: Event): VagrantState {
  if (kind !== "session.described" || detail?.$case !== "session_detail") return state;
  const bytes = detail.value.states.version;
  if (bytes === undefined || read(GetVersionInfoResponse, bytes) === undefined) return state;
  const version = base64(bytes);
  return version === state.version ? state : { ...state, version };
}
