import { type ServiceError, status } from "@grpc/grpc-js";
import { Hello, Imported, type Item, type PushRequest } from "@tapedeck/proto/tapedeck/v1/recorder";
import { encodeEvent } from "@tapedeck/shared/events/codec";
import { backoff, delay } from "@tapedeck/shared/sync/delay";
import { startTimer, stopTimer } from "@tapedeck/shared/sync/timers";
import { timestampOfMs } from "@tapedeck/shared/time/timestamp";
import type { RecorderLink } from "@tapedeck/tap/push/link";
import { CommandError } from "../../command-error.ts";
import type { GrpcTarget } from "../../grpc-target.ts";
import type { FiledSession, SessionFileReader } from "../../session-file/session-file.ts";
import type { SessionFileHeader } from "../../session-file/session-file-format.ts";

/** A way to a recorder, and a file's sessions; for all of them one. */
export type PushFrom = { readonly link: RecorderLink; readonly reader: SessionFileReader };

export type ToPush = {
  readonly target: GrpcTarget;
  /** The owner of the imported session, and labels that are added. */
  readonly hello: Pick<Hello, "developer" | "project" | "upstream" | "labels">;
  readonly from: PushFrom;
  readonly header: SessionFileHeader;
  readonly session: FiledSession;
  /** Called with the number of events sent, and with 0 when it begins again. */
  readonly onPushed?: (events: number) => void;
};

export type Pushed = {
  /** Full name of the source that has it now. */
  readonly source: string;
  /** Its id there. */
  readonly session: string;
  /** Events that were recorded; 0: it was there. */
  readonly added: number;
};

/** After this long without progress the import is given up; sooner if no recorder ever accepted it. */
const timeoutMs = { silent: 10_000, begun: 60_000 } as const;
/** Events travel together up to this, and larger ones in pieces of it. */
const itemBytes = 128 * 1024;
const progressEvery = 100;

/**
 * Pushes one session, from its beginning, as often as necessary: the recorder skips what it has.
 * @throws CommandError when it is refused, or no recorder accepts it
 */
export async function pushSession(options: ToPush): Promise<Pushed> {
  const { target, header, session } = options;
  const hello = Hello.fromPartial({
    ...options.hello,
    // A later run that continues a killed import takes over its place at once.
    tap: session.session,
    first_index: 1n,
    imported: importedOf(header, session),
  });
  const { link } = options.from;
  const waits = backoff(100, 2_000);
  let source = "";
  let furthest = 0n;
  let progressAt = Date.now();
  for (;;) {
    try {
      return await pushOnce();
    } catch (error) {
      const { code, details } = error as ServiceError;
      if (typeof code !== "number") throw error;
      if (!passing.has(code)) throw new CommandError(`not imported: ${details}`);
      if (Date.now() - progressAt > (source === "" ? timeoutMs.silent : timeoutMs.begun))
        throw nobodyTakes(details, target.name);
      await delay(waits.next(), new AbortController().signal);
    }
  }

  async function pushOnce(): Promise<Pushed> {
    const over = new AbortController();
    const late = startTimer(() => over.abort(nobodyTakes("", target.name)), timeoutMs.begun);
    const requested = requestsOr(options, hello, (unreadable) => over.abort(unreadable));
    let ended: Pushed | undefined;
    try {
      for await (const { body } of link(requested, over.signal)) {
        late.refresh();
        if (body?.$case === "welcome") source = body.value.source;
        if (body?.$case === "committed" && body.value.index > furthest) {
          furthest = body.value.index;
          progressAt = Date.now();
          waits.reset();
        }
        if (body?.$case === "import_ended") {
          const { added, session: there } = body.value;
          ended = { source, session: there, added: Number(added) };
        }
      }
      // The recorder releases the source when it ends the stream: only then can the next session come.
      if (ended !== undefined) return ended;
      over.signal.throwIfAborted();
      throw new CommandError(`${target.name} ended the import without an answer.`);
    } catch (error) {
      throw over.signal.aborted ? over.signal.reason : error;
    } finally {
      stopTimer(late);
      over.abort();
    }
  }
}

/** Transient failures: a recorder that stops, and a lost connection. */
const passing: ReadonlySet<number> = new Set([status.UNAVAILABLE, status.CANCELLED]);

function importedOf(
  { source, exportedAt }: SessionFileHeader,
  { session, origin, missing, recordedAt }: FiledSession,
): Imported {
  return Imported.fromPartial({
    session,
    source,
    ...(origin !== session && { origin_session: origin }),
    recorded_at: timestampOfMs(recordedAt.getTime()),
    exported_at: timestampOfMs(Date.parse(exportedAt)),
    missing: Object.fromEntries(Object.entries(missing).map(([channel, count]) => [channel, BigInt(count)])),
  });
}

/** Their sender does not notice what goes wrong in making them. */
async function* requestsOr(options: ToPush, hello: Hello, failed: (error: unknown) => void) {
  try {
    yield* requests(options, hello);
  } catch (error) {
    failed(error);
  }
}

async function* requests({ from, session, onPushed }: ToPush, hello: Hello): AsyncGenerator<PushRequest, void> {
  yield { body: { $case: "hello", value: hello } };
  let index = 1n;
  /** Pieces share their index. */
  const item = (what: Item["what"], more = false): PushRequest => {
    const value = { index, connection: hello.tap, what };
    if (!more) index++;
    return { body: { $case: "item", value } };
  };
  const recorded = (events: Buffer[], more = false) => item({ $case: "recorded", value: { events, more } }, more);
  let events: Buffer[] = [];
  let size = 0;
  let count = 0;
  for await (const event of from.reader.events(session)) {
    if (count++ % progressEvery === 0) onPushed?.(count - 1);
    const bytes = Buffer.from(encodeEvent(event));
    if (events.length > 0 && size + bytes.byteLength > itemBytes) {
      yield recorded(events);
      events = [];
      size = 0;
    }
    size += bytes.byteLength;
    if (bytes.byteLength <= itemBytes) events.push(bytes);
    else
      for (let start = 0; start < bytes.byteLength; start += itemBytes) {
        const end = start + itemBytes;
        yield recorded([bytes.subarray(start, end)], end < bytes.byteLength);
        size = 0;
      }
  }
  if (events.length > 0) yield recorded(events);
  onPushed?.(count);
  yield item({ $case: "recorded_end", value: { events: BigInt(session.events) } });
}

function nobodyTakes(details: string, name: string): CommandError {
  return new CommandError(
    `not imported: ${/moment/.test(details) ? details : `no Tapedeck server accepts it at ${name}`}`,
  );
}
