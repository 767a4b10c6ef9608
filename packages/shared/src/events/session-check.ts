import { type Event, Original } from "@tapedeck/proto/tapedeck/v1/event";
import { decodeTime } from "ulid";
import { logStart } from "../log/offset.ts";
import { ownValue } from "../own-value.ts";
import { eventToJson } from "./json.ts";
import { ownChannel } from "./kinds.ts";

/** The session whose events are checked, as it was recorded there. */
export type ForeignSession = {
  readonly session: string;
  /** Full name. */
  readonly source: string;
  /** The id under which it was recorded first. Undefined: that is to be found out. */
  readonly origin?: string;
  /** Channels that its upstream can have, but "tapedeck". */
  readonly channels: readonly string[];
  /** By channel: how many events are no more. Undefined: that is to be found out. */
  readonly missing?: Readonly<Record<string, number>>;
};

/**
 * Takes a session's events in order, and describes what is wrong with the first that cannot be the next one. Events
 * that pass harm no reader of the log, even if they are made up: names and numbers are within readers' bounds. Unknown
 * kinds pass, as those of a later version.
 */
export type SessionCheck = {
  /** Undefined: it can be the next one. Nothing more may be asked after a problem. */
  next(event: Event): string | undefined;
  /** The problem with the session as a whole. */
  end(): string | undefined;
  readonly events: number;
  /** The id under which it was recorded first, from its first event; undefined before that. */
  readonly origin: string | undefined;
  /** By channel: how many events are missing so far. */
  readonly holes: Readonly<Record<string, number>>;
  /** The session has started, or was continued, after its last end. */
  readonly isOpen: boolean;
};

/** Emitted by Tapedeck alone: readers ignore their channel. */
const ownKinds: ReadonlySet<string> = new Set([
  ...["session.started", "session.identified", "session.labelled", "session.described", "session.ended"],
  ...["session.lost", "session.gap", "session.gap_filled"],
  ...["upstream.connected", "upstream.lost", "upstream.restored"],
  ...["control.requested", "control.accepted", "control.rejected"],
]);
const ulid = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;
const kindForm = /^[a-z][a-z_]{0,31}\.[a-z][a-z_]{0,31}$/;
const wordForm = /^[\w.]{0,200}$/;
const largestInt = 2 ** 31 - 1;
/** How far the clock that gave the session its id may be ahead. */
const clockMs = 24 * 3_600_000;

/** The problem with a session's id: it must not be in the future, or no session could follow it. */
export function sessionError(session: string, now = Date.now()): string | undefined {
  if (!ulid.test(session)) return `${quoted(session)} is not the id of a session`;
  return decodeTime(session) > now + clockMs ? `session ${session} begins in the future` : undefined;
}

/** Begins to check the events of a session that was recorded elsewhere, in their order. */
export function sessionCheck(expected: ForeignSession): SessionCheck {
  return new InOrderCheck(expected);
}

class InOrderCheck implements SessionCheck {
  readonly #expected: ForeignSession;
  readonly #last = new Map<string, { readonly ordinal: bigint; readonly frame: bigint; readonly part: number }>();
  readonly #holes = new Map<string, number>();
  #events = 0;
  #isOpen = false;
  #origin: string | undefined;

  constructor(expected: ForeignSession) {
    this.#expected = expected;
  }

  get events(): number {
    return this.#events;
  }

  get origin(): string | undefined {
    return this.#origin;
  }

  get holes(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#holes);
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  next(event: Event): string | undefined {
    const reason = this.#identity(event) ?? this.#place(event) ?? fields(event);
    if (reason !== undefined) return reason;
    this.#events++;
    this.#origin ??= originOf(event);
    if (event.channel !== ownChannel) return undefined;
    if (event.kind === "session.started" || event.kind === "upstream.restored") this.#isOpen = true;
    if (event.kind === "session.ended" || event.kind === "session.lost") this.#isOpen = false;
    return undefined;
  }

  end(): string | undefined {
    if (this.#events === 0) return "the session has no events";
    const missing = Object.entries(this.#expected.missing ?? {});
    const wrong = missing.find(([channel, count]) => count !== (this.#holes.get(channel) ?? 0));
    if (wrong === undefined) return undefined;
    const [channel, count] = wrong;
    return `${count} events of ${quoted(channel)} are declared missing, and ${this.#holes.get(channel) ?? 0} are`;
  }

  #identity(event: Event): string | undefined {
    const { session, source, origin, channels } = this.#expected;
    const { channel, ordinal, kind, id } = event;
    if (event.session !== session) return `it is of session ${quoted(event.session)}`;
    if (event.source !== source) return `it is of source ${quoted(event.source)}`;
    if (channel !== ownChannel && !channels.includes(channel)) return `there is no channel ${quoted(channel)}`;
    if (id !== `${channel === ownChannel ? source : session}.${channel}.${ordinal}`) return "its id is another event's";
    if (!kindForm.test(kind)) return `${quoted(kind)} is not a kind`;
    if (kind.startsWith("source.") || kind === "session.erased") return `a session has no ${kind}`;
    if (channel !== ownChannel && ownKinds.has(kind)) return `no upstream emits ${kind}`;
    const isFirst = kind === "session.started" && channel === ownChannel;
    if (isFirst !== (this.#events === 0)) {
      return isFirst ? "the session has begun before" : "the session's beginning, session.started, is missing";
    }
    if (isFirst && origin !== undefined && originOf(event) !== origin)
      return `it was recorded first as session ${quoted(originOf(event))}`;
    return isFirst ? sessionError(originOf(event)) : undefined;
  }

  /** Inside its channel. Tapedeck's own is counted through the source, so that holes are other sessions' there. */
  #place({ channel, ordinal, frame_ordinal: frame, part }: Event): string | undefined {
    const before = this.#last.get(channel) ?? { ordinal: 0n, frame: 0n, part: 0 };
    this.#last.set(channel, { ordinal, frame, part });
    if (ordinal > Number.MAX_SAFE_INTEGER || frame > ordinal) return `ordinal ${ordinal}, frame ${frame} can't be`;
    if (channel === ownChannel)
      return ordinal > before.ordinal ? undefined : outOfOrder(channel, ordinal, before.ordinal);
    const hole = ordinal - before.ordinal - 1n;
    if (hole < 0n) return outOfOrder(channel, ordinal, before.ordinal);
    if (hole === 0n) {
      const follows = part === 0 ? frame === before.frame + 1n : frame === before.frame && part === before.part + 1;
      return follows
        ? undefined
        : `part ${part} of frame ${frame} can't come after part ${before.part} of frame ${before.frame}`;
    }
    const sum = (this.#holes.get(channel) ?? 0) + Number(hole);
    this.#holes.set(channel, sum);
    if (!this.#mayMiss(channel, sum)) return `${channel} ${before.ordinal + 1n} is missing before it`;
    return frame < before.frame ? `frame ${frame} can't come after frame ${before.frame}` : undefined;
  }

  #mayMiss(channel: string, count: number): boolean {
    const { missing } = this.#expected;
    return missing === undefined || count <= (ownValue(missing, channel) ?? 0);
  }
}

/** The bounds of columns and subjects on what record itself counts; Tapedeck's APIs must be able to express it. */
function fields(event: Event): string | undefined {
  const { part, redacted, operation, original = Original.create() } = event;
  for (const [name, number] of Object.entries({ part, redacted, runner: operation?.runner, loop: operation?.loop })) {
    if (number !== undefined && number > largestInt) return `${name} ${number} is too large`;
  }
  if (original.size > Number.MAX_SAFE_INTEGER) return `size ${original.size} is too large`;
  if (!wordForm.test(original.type)) return `${quoted(original.type)} is not the name of a message`;
  if (!wordForm.test(operation?.kind ?? "")) return `${quoted(operation?.kind ?? "")} is not a kind of operation`;
  try {
    eventToJson({ offset: logStart, recordedAt: new Date(0), subject: "", event }, "x");
    return undefined;
  } catch (cause) {
    return cause instanceof Error ? cause.message : String(cause);
  }
}

function originOf({ session, detail }: Event): string {
  return (detail?.$case === "session_detail" ? detail.value.origin_session : undefined) ?? session;
}

function outOfOrder(channel: string, ordinal: bigint, before: bigint): string {
  return `${channel} ${ordinal} can't come after ${channel} ${before}`;
}

/** The beginning of a text, short enough for a sentence. */
function quoted(text: string): string {
  return JSON.stringify(text.length <= 100 ? text : `${text.slice(0, 100).toWellFormed()}…`);
}
