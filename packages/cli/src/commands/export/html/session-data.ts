import { type Client, type Comparison, type Operation, TapedeckError, type TapedeckEvent } from "@tapedeck/client";
import { delay } from "@tapedeck/shared/sync/delay";
import { version } from "@tapedeck/shared/version";
import { dataVersion, type SessionData } from "@tapedeck/web/file/data";
import { CommandError } from "../../../command-error.ts";
import { NewestEvents } from "./newest-events.ts";
import { statePositions } from "./state-positions.ts";

/** A browser holds all of a file in memory. */
export type SessionBounds = {
  readonly events: number;
  /** Characters of JSON. */
  readonly eventCharacters: number;
  readonly statePoints: number;
  /** Characters of JSON, of all states together. */
  readonly stateCharacters: number;
  readonly operations: number;
  readonly comparisons: number;
};

export const defaultBounds: SessionBounds = {
  events: 50_000,
  eventCharacters: 64 * 2 ** 20,
  statePoints: 400,
  stateCharacters: 32 * 2 ** 20,
  operations: 20_000,
  comparisons: 20,
};

export type SessionDataRequest = { readonly session: string; readonly position: string };

type Reader = Pick<Client, "sessions" | "events" | "operations" | "state" | "compare">;

/**
 * A session as of a position, read through the public API. `reached` hears how many events were read.
 * @throws TapedeckError what the gateway refused
 */
export async function readSessionData(
  client: Reader,
  { session, position }: SessionDataRequest,
  bounds: SessionBounds,
  reached: (events: number) => void,
): Promise<SessionData> {
  const [head] = await Array.fromAsync(client.sessions({ sessions: [session], at: position }));
  if (head === undefined) throw new CommandError(`there is no session ${session}: see \`tapedeck sessions\`.`);
  const events = new NewestEvents(bounds.events, bounds.eventCharacters);
  for await (const event of client.events({ sessions: [session], after: "start", until: position, onGap: () => {} })) {
    // Mirrors repeat another event.
    if (event.kind !== "mirror.received") events.add(event);
    reached(events.count);
  }
  const { operations, older } = await newestOperations(client, { session, position }, bounds.operations);
  return {
    version: dataVersion,
    ...aboutFile(),
    session: head,
    position,
    events: events.events,
    olderEvents: events.count - events.events.length,
    operations,
    olderOperations: older,
    ...(await statesAt(client, head, events.events, bounds)),
    comparisons: await comparisonsOf(client, operations, position, bounds.comparisons),
  };
}

function aboutFile() {
  return { exportedAt: new Date().toISOString(), exportedBy: `tapedeck ${version}` };
}

async function newestOperations(
  client: Reader,
  { session, position }: SessionDataRequest,
  max: number,
): Promise<{ readonly operations: readonly Operation[]; readonly older: number }> {
  const operations: Operation[] = [];
  let older = 0;
  for await (const operation of client.operations({ sessions: [session], at: position })) {
    if (operations.length < max) operations.push(operation);
    else older++;
  }
  return { operations, older };
}

/** The server folds the session's state, so it is requested at the most informative moments. */
async function statesAt(
  client: Reader,
  { source, session }: SessionData["session"],
  events: readonly TapedeckEvent[],
  { statePoints: maxStatePoints, stateCharacters }: SessionBounds,
): Promise<Pick<SessionData, "statePoints" | "states">> {
  const readAt = async (at: string) => (await patiently(() => client.state(source, { session, at }))).state;
  const last = events.at(-1);
  if (last === undefined) return { statePoints: [], states: [] };
  const size = JSON.stringify(await readAt(last.position)).length;
  const positions = statePositions(events, Math.max(1, Math.min(maxStatePoints, Math.floor(stateCharacters / size))));
  const known = new Map<string, number>();
  let characters = 0;
  // The newest first: earlier states may have been larger.
  const statePoints = await inTurns(positions.toReversed(), async (position) => {
    if (characters > stateCharacters) return [];
    const json = JSON.stringify(await readAt(position));
    const state = known.get(json) ?? known.size;
    if (state === known.size) characters += json.length;
    known.set(json, state);
    return [{ position, state }];
  });
  return { statePoints: statePoints.flat().toReversed(), states: [...known.keys()].map((json) => JSON.parse(json)) };
}

/** Comparisons of the newest failed loops with the last good ones before them, as of the position. */
async function comparisonsOf(client: Reader, operations: readonly Operation[], position: string, max: number) {
  const failed = operations.filter(({ kind, outcome }) => kind === "loop" && outcome === "failed").slice(0, max);
  const found = await inTurns(failed, async ({ session, runner, loop }): Promise<[string, Comparison]> => {
    const side = `${session}.${runner}.${loop}`;
    return [side, await patiently(() => client.compare(side, { at: position }))];
  });
  return Object.fromEntries(found);
}

const atOnce = 4;

/** A few questions at a time; answers in the order of what was asked. */
async function inTurns<Item, Answer>(items: readonly Item[], ask: (item: Item) => Promise<Answer>): Promise<Answer[]> {
  const answers: Answer[] = [];
  let next = 0;
  const askOn = async () => {
    for (let at = next++; at < items.length; at = next++) answers[at] = await ask(items[at] as Item);
  };
  await Promise.all(Array.from({ length: atOnce }, askOn));
  return answers;
}

const maxTries = 30;

/** The requests that a token may make in a second. */
async function patiently<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  for (let tries = 1; ; tries++) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof TapedeckError) || error.code !== "limit_exceeded" || tries >= maxTries) throw error;
      await delay(1_000);
    }
  }
}
