import type { QueryClient } from "@tapedeck/gateway/for-cli/skaffold-server";
import type { Session, Source } from "@tapedeck/proto/tapedeck/v1/lists";
import { isState, skaffoldFold, stateItems } from "@tapedeck/query/for-cli/skaffold-fold";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { parseWhen } from "@tapedeck/shared/filter/time";
import { justBefore, offsetOf, type Sequence, sequenceOf } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import { sourceParts } from "@tapedeck/shared/source";
import type { Tape } from "./tape.ts";

/** Answers as query would for a tape: one source, one session, and the state that its played events fold to. */
export function tapeQuery(tape: Tape): QueryClient {
  return new TapeQuery(tape);
}

class TapeQuery implements QueryClient {
  readonly #tape: Tape;
  readonly #state: FoldedTape;

  constructor(tape: Tape) {
    this.#tape = tape;
    this.#state = new FoldedTape(tape);
  }

  async readState({ collection = "", at: position = "" }: Parameters<QueryClient["readState"]>[0]) {
    const { source, session, events } = this.#tape;
    const count = await this.#countAt(position);
    const items = stateItems(skaffoldFold, collection.replace(/^skaffold\./, ""), this.#state.at(count));
    if (items === undefined) return onlySkaffold();
    const session_ended = events.slice(0, count).some(({ event: { kind } }) => ends.includes(kind));
    const head = { position: this.#positionOf(count), source, session, session_ended, heard_at: {} };
    return { head, rows: items.map(({ key, bytes }) => ({ key, bytes })) };
  }

  async listSources({ sources = [], developers = [], projects = [] }: Parameters<QueryClient["listSources"]>[0]) {
    const one = this.#source();
    const isMeant = [
      [sources, one.source],
      [developers, one.developer],
      [projects, one.project],
    ].every(([values = [], value = ""]) => values.length === 0 || values.includes(value as string));
    return this.#page(isMeant ? [one] : []);
  }

  async listSessions({ sessions = [] }: Parameters<QueryClient["listSessions"]>[0]) {
    const isMeant = sessions.length === 0 || sessions.includes(this.#tape.session);
    return this.#page(isMeant ? [this.#session()] : []);
  }

  listOperations(): Promise<never> {
    return onlySkaffold();
  }

  search(): Promise<never> {
    return onlySkaffold();
  }

  buildStats(): Promise<never> {
    return onlySkaffold();
  }

  stats(): Promise<never> {
    return onlySkaffold();
  }

  findEvents(): Promise<never> {
    return onlySkaffold();
  }

  runSql(): Promise<never> {
    return onlySkaffold();
  }

  // biome-ignore lint/correctness/useYield: it has no tables
  async *exportTables() {
    await onlySkaffold();
  }

  async setAside() {
    return { sources: [] };
  }

  async workspaces() {
    return { items: [] };
  }

  async position() {
    const position = this.#positionOf(this.#tape.played);
    return { position, log_position: position };
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  /** How many events had been played. */
  async #countAt(text: string): Promise<number> {
    const { played, reader } = this.#tape;
    const when = parseWhen(text);
    if (when?.type === "position") return Math.min(sequenceOf(when.position.offset), played);
    if (when?.type !== "time") return played;
    const next = await reader.firstSince(new Date(when.time.getTime() + 1));
    return next === undefined ? this.#tape.played : sequenceOf(justBefore(next));
  }

  #positionOf(seq: Sequence): string {
    return formatPosition({ epoch: this.#tape.reader.epoch, offset: offsetOf(seq) });
  }

  #page<Item>(items: Item[]) {
    return { items, next_page: "", position: this.#positionOf(this.#tape.played) };
  }

  #source(): Source {
    const { source, session, played } = this.#tape;
    const { workspace, developer, project, upstream } = sourceParts(source);
    return {
      source,
      workspace,
      developer,
      project,
      upstream,
      status: "waiting",
      current_session: session,
      last_event_at: undefined,
      last_position: this.#positionOf(played),
      developer_name: developer,
      project_name: project,
      first_position: this.#positionOf(1),
      address: "",
      gaps: 0,
      heard_at: {},
    };
  }

  #session(): Session {
    const { source, session, played } = this.#tape;
    return {
      session,
      source,
      labels: {},
      started_at: undefined,
      ended_at: undefined,
      end_reason: "",
      command_line: "",
      start_position: this.#positionOf(1),
      end_position: this.#positionOf(played),
      upstream_version: "",
      gaps: 0,
      // It may be played again and followed to its end, so for readers it is still running.
      ended: false,
    };
  }
}

const ends: readonly string[] = ["session.ended", "session.lost"];

async function onlySkaffold(): Promise<never> {
  throw new TapedeckError("not_found", "a replay serves Skaffold's own API only");
}

/** The state of Skaffold after `count` events, folded on from the last requested one where that is earlier. */
class FoldedTape {
  readonly #events: Tape["events"];
  #last: { readonly state: SkaffoldState; readonly count: number } = start;

  constructor({ events }: Tape) {
    this.#events = events;
  }

  at(count: number): SkaffoldState {
    let { state, count: done } = count >= this.#last.count ? this.#last : start;
    for (const { event } of this.#events.slice(done, count)) {
      if (isState(event.kind)) state = skaffoldFold.evolve(state, event);
      done++;
    }
    if (done > this.#last.count) this.#last = { state, count: done };
    return state;
  }
}

type SkaffoldState = typeof skaffoldFold.initial;
const start = { state: skaffoldFold.initial, count: 0 };
