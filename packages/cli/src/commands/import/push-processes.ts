import { join } from "node:path";
import { startInterval, stopTimer } from "@tapedeck/shared/sync/timers";
import { gatewayLink } from "@tapedeck/tap/push/link";
import { pushItems } from "@tapedeck/tap/push/push";
import type { ImportedProcess } from "@tapedeck/tap/skaffold/event-log/split-processes";
import { openSpill, type Spill } from "@tapedeck/tap/spill/spill";
import { ulid } from "ulid";
import { CommandError } from "../../command-error.ts";
import { grpcEndpoint } from "../../grpc-endpoint.ts";
import type { GrpcTarget } from "../../grpc-target.ts";
import { spillHome } from "../../recording/spill-home.ts";
import { refusalIn } from "./refusal.ts";

export type ToImport = {
  readonly developer: string;
  readonly project: string;
  /** The files that they were read from, for people. */
  readonly file: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly redact: "on" | "off";
  readonly target: GrpcTarget;
  /** Called with the number of messages recorded so far. */
  readonly onRecorded?: (messages: number) => void;
};

/** An import without progress for this long is given up. */
const timeoutMs = 60_000;
/** Another import of the same source that has just ended may not have released it yet. */
const takenMs = 5_000;
const progressMs = 100;

/**
 * Pushes processes as one tap would that observed them: a connection for each, the frames at their own times, the end.
 * Returns the full name of the source that has them now.
 * @throws CommandError when they are refused, or no recorder accepts them
 */
export async function pushProcesses(processes: readonly ImportedProcess[], options: ToImport): Promise<string> {
  const { developer, project, labels, redact, target, onRecorded = () => {} } = options;
  const tap = ulid();
  const hello = { developer, project, upstream: "skaffold", tap, labels: { imported: "true", ...labels }, redact };
  // Nothing may be dropped: it does not come again.
  await using spill = await openSpill({
    dir: join(spillHome(process.env), tap),
    hello,
    diskBytes: Number.MAX_SAFE_INTEGER,
  });
  for (const one of processes) append(spill, one, options.file);
  const stop = new AbortController();
  const takenUntil = Date.now() + takenMs;
  let refusal: string | undefined;
  let source = "";
  const pushing = pushItems({
    link: gatewayLink(grpcEndpoint(target)),
    spill,
    together: true,
    control: async ({ call }) => ({ call, code: 14, message: "an import", response: Buffer.alloc(0) }),
    signal: stop.signal,
    log: {
      info: () => {},
      warn: (fields) => {
        refusal = refusalIn(fields) ?? refusal;
      },
    },
    welcomed: (welcome) => {
      source = welcome.source;
    },
    sourceTaken: (message) => {
      refusal = message;
      return Date.now() < takenUntil ? spill.hello() : undefined;
    },
  });
  const progressTimer = startInterval(() => onRecorded(Number(spill.state().committed)), progressMs);
  const done = await pushing.finishWhileMoving(timeoutMs).finally(() => stopTimer(progressTimer));
  onRecorded(Number(spill.state().committed));
  stop.abort();
  if (!done) throw new CommandError(`not imported: ${refusal ?? `no Tapedeck server accepts it at ${target.name}`}`);
  return source;
}

function append(spill: Spill, { frames }: ImportedProcess, file: string): void {
  const connection = ulid();
  const first = frames[0]?.timestamp;
  const last = frames.at(-1)?.timestamp;
  const channels = [...new Set(frames.map(({ channel }) => channel))];
  spill.append({ connection, at: first, what: { $case: "dialled", value: { address: `file:${file}`, channels } } });
  for (const { channel, bytes, timestamp } of frames) {
    const value = { channel, bytes: Buffer.from(bytes), more: false };
    spill.append({ connection, at: timestamp, what: { $case: "frame", value } });
  }
  const closed = { reason: "the end of the file", process_ended: true };
  spill.append({ connection, at: last, what: { $case: "closed", value: closed } });
}
