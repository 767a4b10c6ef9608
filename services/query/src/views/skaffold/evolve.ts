import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { adopted, gapFilled, gapOpened } from "./adopted.ts";
import { v1EventOf, v2EventOf } from "./api-event-of.ts";
import { accepted, rejected, requested } from "./control.ts";
import { described } from "./described.ts";
import { evolveV1 } from "./evolve-v1.ts";
import { evolveV2 } from "./evolve-v2.ts";
import type { SkaffoldState } from "./state.ts";

/**
 * Applies one event of a session, in the order of the log. Returns the same object for an event that can't touch the
 * state. Total: what can't be decoded changes nothing. No event may be applied twice.
 */
export function evolve(state: SkaffoldState, event: Event): SkaffoldState {
  switch (event.channel) {
    case "v1": {
      const message = v1EventOf(event);
      return message ? evolveV1(state, message, event.injected) : state;
    }
    case "v2": {
      const message = v2EventOf(event);
      return message ? evolveV2(state, message, event.injected) : state;
    }
    case "tapedeck":
      return evolveTapedeck(state, event);
    default:
      return state;
  }
}

function evolveTapedeck(state: SkaffoldState, { kind, detail }: Event): SkaffoldState {
  switch (detail?.$case) {
    case "session_detail":
      if (kind !== "session.described") return state;
      return detail.value.adopted
        ? adopted(described(state, detail.value), detail.value)
        : described(state, detail.value);
    case "gap":
      if (kind === "session.gap_filled") return gapFilled(state, detail.value);
      return kind === "session.gap" ? gapOpened(state, detail.value) : state;
    case "control":
      if (kind === "control.requested") return requested(state, detail.value);
      if (kind === "control.accepted") return accepted(state, detail.value);
      return kind === "control.rejected" ? rejected(state, detail.value) : state;
    default:
      return state;
  }
}
