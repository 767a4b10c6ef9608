import type { Offset } from "@tapedeck/shared/log/offset";
import { logStart } from "@tapedeck/shared/log/offset";
import { z } from "zod";
import type { CauseOf, FormatPass, FormattedSink, SinkEvent, SinkRequest } from "../format.ts";
import { type ChatMessage, type ChatState, dueAt, flushed, foldChat, unknownState } from "./chat-state.ts";
import { type ChatCause, chatValues, type Dialect } from "./chat-values.ts";
import { type ChatTemplate, filled } from "./template.ts";

/** The sources that need to be remembered, and how each is. */
type World = ReadonlyMap<string, ChatState>;

export type ChatPassOptions = {
  readonly sink: FormattedSink;
  readonly template: ChatTemplate;
  readonly dialect: Dialect;
  readonly memory: string | undefined;
  readonly causeOf: CauseOf;
  /** Between two messages about a source. */
  readonly intervalMs: number;
};

/** The most sources that are remembered: those that changed last. */
const maxSources = 2_000;
const maxCauses = 1_000;

type Sent = { readonly message: ChatMessage; readonly covers: number };

/**
 * Messages by what each source was before, which is remembered with the cursor: after a kill the same events give the same messages. The
 * states after the events that may not be delivered yet are kept, so that these events can be requested again.
 */
export class ChatPass implements FormatPass {
  readonly #options: ChatPassOptions;
  #worlds: { readonly offset: Offset; readonly world: World }[];
  readonly #causes = new Map<string, Promise<ChatCause | undefined>>();

  constructor(options: ChatPassOptions) {
    this.#options = options;
    this.#worlds = [{ offset: logStart, world: worldIn(options.memory) }];
  }

  async requests(events: readonly SinkEvent[], signal: AbortSignal): Promise<readonly SinkRequest[]> {
    const [first] = events;
    if (first === undefined) return [];
    const { intervalMs } = this.#options;
    let world = this.#goBackTo(first.recorded.offset);
    const sent: Sent[] = [];
    for (const [index, { recorded, position }] of events.entries()) {
      const { event, offset } = recorded;
      const at = recorded.recordedAt.getTime();
      if (isAnyDue(world, at, intervalMs)) {
        const next = new Map(world);
        for (const message of flushInto(next, at, intervalMs)) sent.push({ message, covers: index });
        world = next;
      }
      const before = world.get(event.source) ?? unknownState;
      const { state, message } = foldChat(before, { event, position, at, intervalMs });
      if (message !== undefined) sent.push({ message, covers: index + 1 });
      // Most events change nothing.
      if (state !== before) world = withState(world, event.source, state, at - intervalMs);
      this.#worlds.push({ offset, world });
    }
    return Promise.all(sent.map((one) => this.#request(one, signal)));
  }

  memory(offset: Offset): string {
    const { world } = this.#worlds.findLast((one) => one.offset <= offset) ?? { world: new Map() };
    return JSON.stringify([...world]);
  }

  dueAt(): number | undefined {
    const due = [...this.#now().values()].flatMap((state) => dueAt(state, this.#options.intervalMs) ?? []);
    return due.length === 0 ? undefined : Math.min(...due);
  }

  async dueRequests(now: number, signal: AbortSignal): Promise<readonly SinkRequest[]> {
    const messages = flushInto(new Map(this.#now()), now, this.#options.intervalMs);
    return Promise.all(messages.map((message) => this.#request({ message, covers: 0 }, signal)));
  }

  dueDelivered(now: number): void {
    const world = new Map(this.#now());
    flushInto(world, now, this.#options.intervalMs);
    const last = this.#worlds.pop();
    this.#worlds.push({ offset: last?.offset ?? logStart, world });
  }

  #now(): World {
    return this.#worlds.at(-1)?.world ?? new Map();
  }

  /** What was before an event; what came after it is forgotten. */
  #goBackTo(offset: Offset): World {
    const base = this.#worlds.findLast((one) => one.offset < offset) ?? { offset: logStart, world: new Map() };
    this.#worlds = [base];
    return base.world;
  }

  async #request({ message, covers }: Sent, signal: AbortSignal): Promise<SinkRequest> {
    const { sink, template, dialect } = this.#options;
    const cause = message.type === "failed" ? await this.#causeOf(message, signal) : undefined;
    return {
      id: message.id,
      body: filled(template, chatValues(message, cause, sink.page, dialect)),
      headers: { "content-type": "application/json; charset=UTF-8", "tapedeck-message": message.id },
      covers,
    };
  }

  /** The same in each attempt, although later output may show a better one. */
  #causeOf(message: ChatMessage, signal: AbortSignal): Promise<ChatCause | undefined> {
    const known = this.#causes.get(message.id);
    if (known !== undefined) return known;
    const { causeOf, sink } = this.#options;
    const cause = causeOf(
      { workspace: sink.workspace, position: message.id, recordedAt: message.at, ...message.operation },
      signal,
    );
    if (this.#causes.size >= maxCauses) this.#causes.clear();
    this.#causes.set(message.id, cause);
    return cause;
  }
}

/** Sends the held messages that are due, in the order in which they are. */
function flushInto(world: Map<string, ChatState>, at: number, intervalMs: number): readonly ChatMessage[] {
  const due = [...world]
    .flatMap(([source, state]) => {
      const time = dueAt(state, intervalMs);
      return time === undefined || time > at ? [] : [{ source, state, time }];
    })
    .toSorted((a, b) => a.time - b.time);
  return due.flatMap(({ source, state }) => {
    const { state: after, message } = flushed(state, intervalMs);
    world.set(source, after);
    return message ?? [];
  });
}

function isAnyDue(world: World, at: number, intervalMs: number): boolean {
  for (const state of world.values()) if ((dueAt(state, intervalMs) ?? Number.POSITIVE_INFINITY) <= at) return true;
  return false;
}

/** A good source is forgotten when its next message needs not to wait any more. */
function isWorthKeeping(state: ChatState, freeSince: number): boolean {
  const { isRed, isReportedRed, unreported, messageAt = Number.NEGATIVE_INFINITY, held, failedIn, workedIn } = state;
  return (
    isRed || isReportedRed || unreported > 0 || messageAt > freeSince || (held ?? failedIn ?? workedIn) !== undefined
  );
}

function withState(before: World, source: string, state: ChatState, freeSince: number): World {
  const world = new Map(before);
  world.delete(source);
  if (isWorthKeeping(state, freeSince)) world.set(source, state);
  for (const oldest of world.keys()) {
    if (world.size <= maxSources) break;
    world.delete(oldest);
  }
  return world;
}

const messageSchema = z.object({
  id: z.string(),
  type: z.enum(["failed", "good"]),
  at: z.number(),
  source: z.string(),
  what: z.string(),
  error: z.string(),
  operation: z.object({ session: z.string(), kind: z.string(), runner: z.number(), loop: z.number() }),
  path: z.string(),
  more: z.number(),
  redMs: z.number().optional(),
});

const worldSchema = z.array(
  z.tuple([
    z.string(),
    z.object({
      isRed: z.boolean(),
      isReportedRed: z.boolean(),
      redSince: z.number().optional(),
      unreported: z.number(),
      messageAt: z.number().optional(),
      held: messageSchema.optional(),
      failedIn: z.string().optional(),
      workedIn: z.string().optional(),
      failedCommands: z.array(z.string()).optional(),
    }),
  ]),
);

/** Nothing for what another version has written. */
function worldIn(memory: string | undefined): World {
  try {
    return new Map(worldSchema.parse(JSON.parse(memory ?? "[]")));
  } catch {
    return new Map();
  }
}
