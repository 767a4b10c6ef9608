import type { RecordedEvent } from "@tapedeck/shared/log/log";
import type { Offset } from "@tapedeck/shared/log/offset";
import { parsePosition } from "@tapedeck/shared/log/position";
import { z } from "zod";
import type {
  CauseOf,
  DueRequest,
  FormatPass,
  FormatReader,
  FormattedSink,
  SinkEvent,
  SinkRequest,
} from "../format.ts";
import { type ChatMessage, type ChatState, foldChat } from "./chat-state.ts";
import { ChatStates } from "./chat-states.ts";
import { type ChatCause, chatValues, type Dialect } from "./chat-values.ts";
import { type ChatTemplate, filled } from "./template.ts";

export type ChatPassOptions = {
  readonly sink: FormattedSink;
  readonly template: ChatTemplate;
  readonly dialect: Dialect;
  readonly reader: Pick<FormatReader, "read">;
  readonly memory: string | undefined;
  readonly causeOf: CauseOf;
  /** Between two messages about a source. */
  readonly intervalMs: number;
};

type HeldMessage = { readonly message: ChatMessage; readonly recorded: RecordedEvent };

const maxCauses = 1_000;
const maxSettled = 5_000;

/**
 * Messages by what each source was before, which is remembered with the cursor: after a kill the same events give the same messages. A
 * message that is accepted is not requested again together with others that are not.
 */
export class ChatPass implements FormatPass {
  readonly #options: ChatPassOptions;
  readonly #states: ChatStates;
  readonly #causes = new Map<string, Promise<ChatCause | undefined>>();
  /** The ids of the last messages that were accepted or parked. */
  readonly #settled = new Set<string>();
  /** The ids of messages that are due and have no event any more. */
  readonly #gone = new Set<string>();

  constructor(options: ChatPassOptions) {
    this.#options = options;
    this.#states = new ChatStates(statesIn(options.memory));
  }

  async requests(events: readonly SinkEvent[], signal: AbortSignal): Promise<readonly SinkRequest[]> {
    const [first] = events;
    if (first === undefined) return [];
    const { intervalMs } = this.#options;
    this.#states.goBackTo(first.recorded.offset);
    const requests: Promise<SinkRequest | undefined>[] = [];
    let oldestAt: number | undefined;
    for (const [index, { recorded, position }] of events.entries()) {
      const { event, offset } = recorded;
      const at = recorded.recordedAt.getTime();
      for (const held of await this.#heldMessages(at, signal)) requests.push(this.#heldRequest(held, index, signal));
      this.#flush(at, offset);
      const before = this.#states.of(event.source);
      const { state, message } = foldChat(before, { event, position, at, intervalMs });
      if (message !== undefined && !this.#settled.has(message.id)) {
        oldestAt ??= at;
        requests.push(this.#request(message, { covers: index + 1, oldestAt }, signal));
      }
      // Most events change nothing.
      if (state !== before) this.#states.change(event.source, state, { offset, freeSince: at - intervalMs });
    }
    return (await Promise.all(requests)).filter((request) => request !== undefined);
  }

  settled(id: string): void {
    this.#settled.add(id);
    const [oldest] = this.#settled;
    if (this.#settled.size > maxSettled && oldest !== undefined) this.#settled.delete(oldest);
  }

  memory(offset: Offset): string {
    return JSON.stringify(this.#states.entriesAt(offset));
  }

  dueAt(): number | undefined {
    return this.#states.dueAt(this.#options.intervalMs);
  }

  async dueRequests(now: number, signal: AbortSignal): Promise<readonly DueRequest[]> {
    const held = await this.#heldMessages(now, signal);
    return Promise.all(held.map((one) => this.#heldRequest(one, 0, signal)));
  }

  dueDelivered(now: number): void {
    this.#flush(now);
  }

  #flush(at: number, offset?: Offset): void {
    this.#states.flush(at, this.#options.intervalMs, (id) => this.#gone.has(id), offset);
    this.#gone.clear();
  }

  /** The messages that are due, without those that were sent already and those whose event is erased or has expired since. */
  async #heldMessages(at: number, signal: AbortSignal): Promise<readonly HeldMessage[]> {
    const due = this.#states.due(at, this.#options.intervalMs).filter(({ id }) => !this.#settled.has(id));
    const held = await Promise.all(
      due.map(async (message) => {
        const offset = parsePosition(message.id)?.offset;
        const read = offset === undefined ? [] : await Array.fromAsync(this.#options.reader.read([offset], signal));
        const [recorded] = read;
        if (recorded !== undefined) return { message, recorded };
        if (!signal.aborted) this.#gone.add(message.id);
        return undefined;
      }),
    );
    return held.filter((one) => one !== undefined);
  }

  async #heldRequest({ message, recorded }: HeldMessage, covers: number, signal: AbortSignal): Promise<DueRequest> {
    const own = await this.#request(message, { covers, oldestAt: message.at }, signal);
    return { ...own, of: { recorded, position: message.id } };
  }

  /** `oldestAt`: when the oldest failure was recorded that is sent with it. */
  async #request(
    message: ChatMessage,
    { covers, oldestAt }: { readonly covers: number; readonly oldestAt: number },
    signal: AbortSignal,
  ): Promise<SinkRequest> {
    const { sink, template, dialect } = this.#options;
    const cause = message.type === "failed" ? await this.#causeOf(message, oldestAt, signal) : undefined;
    return {
      id: message.id,
      body: filled(template, chatValues(message, cause, sink.page, dialect)),
      headers: { "content-type": "application/json; charset=UTF-8", "tapedeck-message": message.id },
      covers,
    };
  }

  /** The same in each attempt, although later output may show a better one. */
  #causeOf(message: ChatMessage, oldestRecordedAt: number, signal: AbortSignal): Promise<ChatCause | undefined> {
    const known = this.#causes.get(message.id);
    if (known !== undefined) return known;
    const { causeOf, sink } = this.#options;
    const { id: position, at: recordedAt, operation } = message;
    const cause = causeOf({ workspace: sink.workspace, position, recordedAt, oldestRecordedAt, ...operation }, signal);
    if (this.#causes.size >= maxCauses) this.#causes.clear();
    this.#causes.set(message.id, cause);
    return cause;
  }
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

const statesSchema = z.array(
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
      failedLoop: z.string().optional(),
      workedIn: z.string().optional(),
      failedCommands: z.array(z.string()).optional(),
    }),
  ]),
);

/** Nothing for what another version has written. */
function statesIn(memory: string | undefined): readonly (readonly [string, ChatState])[] {
  try {
    return statesSchema.parse(JSON.parse(memory ?? "[]"));
  } catch {
    return [];
  }
}
