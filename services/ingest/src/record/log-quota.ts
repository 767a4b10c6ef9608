import type { LogWriter, NewEvent } from "@tapedeck/shared/log/log";
import { isOwnSubject } from "@tapedeck/shared/log/subjects";

/** A log has as many bytes as its settings allow. */
export class LogAtQuotaError extends Error {
  override readonly name = "LogAtQuotaError";
}

export type LogQuotaOptions = {
  readonly workspace: string;
  readonly maxBytes: number;
  /** The bytes of the log now. Rejects when it can't be asked. */
  readonly bytes: () => Promise<number>;
  /** How old the known bytes may be. Default 2 s. */
  readonly everyMs?: number;
};

/** A larger event is not one that makes room. */
const smallBytes = 4_096;

/**
 * Keeps one workspace from filling the disk of all: its log takes nothing once it has the bytes that it may have, and what
 * comes waits as it does for a full disk. The log is not limited in NATS, which would refuse the marks of erasures as well:
 * then nothing could make room. A burst may exceed the quota by what comes until the bytes are asked for again.
 */
export class LogQuota {
  readonly #options: Required<LogQuotaOptions>;
  #bytes = 0;
  #askedAt = Number.NEGATIVE_INFINITY;

  constructor(options: LogQuotaOptions) {
    this.#options = { everyMs: 2_000, ...options };
  }

  /** Why nothing is recorded in the workspace, a sentence for people; undefined: there is room. */
  get reason(): string | undefined {
    const { workspace, maxBytes } = this.#options;
    void this.#refresh();
    if (this.#bytes < maxBytes) return undefined;
    return `the workspace "${workspace}": nothing is recorded, because its log has ${this.#bytes} of at most ${maxBytes} bytes: raise maxBytes in nats.logs, or let less stay with \`tapedeck workspace retention\``;
  }

  /** The same writer, which refuses what there is no room for. */
  limited(writer: LogWriter): LogWriter {
    return {
      ...writer,
      publish: async (source, name, events, expected) => {
        if (this.#askedAt === Number.NEGATIVE_INFINITY) await this.#refresh();
        const reason = this.reason;
        if (reason !== undefined && !events.every(isSmallAndOwn))
          return { outcome: "refused", cause: new LogAtQuotaError(reason) };
        return await writer.publish(source, name, events, expected);
      },
    };
  }

  async #refresh(): Promise<void> {
    const { bytes, everyMs } = this.#options;
    if (performance.now() - this.#askedAt < everyMs) return;
    this.#askedAt = performance.now();
    // A log that can't be asked says so to those who write into it.
    this.#bytes = await bytes().catch(() => this.#bytes);
  }
}

/** Facts of Tapedeck's own are few, and the marks of erasures are some of them. */
function isSmallAndOwn({ subject, event }: NewEvent): boolean {
  return isOwnSubject(subject) && event.byteLength < smallBytes;
}
