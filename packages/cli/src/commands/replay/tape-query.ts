import type { QueryClient } from "@tapedeck/gateway/skaffold-server";
import type { Session, Source } from "@tapedeck/proto/tapedeck/v1/lists";
import { folds, isState } from "@tapedeck/query/views/folds";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { parseWhen } from "@tapedeck/shared/filter/time";
import { formatPosition } from "@tapedeck/shared/log/position";
import { sourceParts } from "@tapedeck/shared/source";
import type { Tape } from "./tape.ts";

/** What query would say of a tape: one source, one session, and the state that its played events fold to. */
export function tapeQuery(tape: Tape): QueryClient {
  const { source, session, events } = tape;
  const at = (seq: number) => formatPosition({ epoch: tape.reader.epoch, seq });
  const { skaffold } = folds;
  let live = { state: skaffold.initial, seq: 0 };

  /** Folded on from where it was asked for last, where that is not behind. */
  function stateAt(seq: number): unknown {
    let { state, seq: done } = seq >= live.seq ? live : { state: skaffold.initial, seq: 0 };
    for (const { event } of events.slice(done, seq)) {
      if (isState(event.kind)) state = skaffold.evolve(state, event);
      done++;
    }
    if (done > live.seq) live = { state, seq: done };
    return state;
  }

  const placeOf = async (text: string): Promise<number> => {
    const when = parseWhen(text);
    if (when?.type === "position") return Math.min(when.position.seq, tape.played);
    if (when?.type !== "time") return tape.played;
    const next = await tape.reader.firstSince(new Date(when.time.getTime() + 1));
    return next === undefined ? tape.played : next - 1;
  };
  const hasEnded = (seq: number) =>
    events.slice(0, seq).some(({ event }) => event.kind === "session.ended" || event.kind === "session.lost");

  const listed = (): Source => {
    const { workspace, developer, project, upstream } = sourceParts(source);
    return {
      ...{ source, workspace, developer, project, upstream },
      status: "waiting",
      current_session: session,
      last_event_at: undefined,
      last_position: at(tape.played),
      developer_name: developer,
      project_name: project,
      first_position: at(1),
      address: "",
      gaps: 0,
    };
  };
  const listedSession = (): Session => ({
    session,
    source,
    labels: {},
    started_at: undefined,
    ended_at: undefined,
    end_reason: "",
    start_position: at(1),
    end_position: at(tape.played),
    upstream_version: "",
    gaps: 0,
    // It may be played again and followed to its end: for readers it goes on.
    ended: false,
  });
  const page = <Item>(items: Item[]) => ({ items, next_page: "", position: at(tape.played) });
  const nothing = async () => {
    throw new TapedeckError("not_found", "a replay serves Skaffold's own API only");
  };

  return {
    async readState({ collection = "", at: moment = "" }) {
      const seq = await placeOf(moment);
      const itemsOf = skaffold.collections[collection.replace(/^skaffold\./, "")];
      if (itemsOf === undefined) return nothing();
      const head = { position: at(seq), source, session, session_ended: hasEnded(seq) };
      return { head, rows: itemsOf(stateAt(seq)).map(({ key, bytes }) => ({ key, bytes })) };
    },
    async listSources({ sources = [], developers = [], projects = [] }) {
      const one = listed();
      const isMeant = [
        [sources, one.source],
        [developers, one.developer],
        [projects, one.project],
      ].every(([wanted = [], value = ""]) => wanted.length === 0 || wanted.includes(value as string));
      return page(isMeant ? [one] : []);
    },
    async listSessions({ sessions = [] }) {
      return page(sessions.length === 0 || sessions.includes(session) ? [listedSession()] : []);
    },
    listOperations: nothing,
    buildStats: nothing,
    position: async () => ({ position: at(tape.played), log_position: at(tape.played) }),
    [Symbol.asyncDispose]: async () => {},
  };
}
