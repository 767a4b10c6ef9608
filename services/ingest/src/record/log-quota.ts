import type { LogWriter, NewEvent } from "@tapedeck/shared/log/log";
import { isOwnSubject } from "@tapedeck/shared/log/subjects";

/** A log has as many bytes as its settings allow. */
export class LogAtQuotaError extends Error {
  override readonly name = "LogAtQuotaError";
}

export type LogQuotaOptions = {
  readonly workspace: string;
  readonly maxBytes: number;
  /** The bytes of the log now. Rejects when the log can't be reached. */
  readonly bytes: () => Promise<number>;
};

/** How old the known bytes may be. */
const maxAgeMs = 2_000;
/** A larger event is not one that makes room. */
const smallBytes = 4_096;

/**
 * Keeps one workspace from filling the disk of all: its log takes nothing once it has the bytes that it may have, and what
 * comes waits as it does for a full disk. The log is not limited in NATS, which would refuse the marks of erasures as well:
 * then nothing could make room. A burst may exceed the quota by what comes until the bytes are read again. They are read
 * after something was published, and while the log is full: a quota costs a workspace at rest nothing.
 */
export class LogQuota {
  readonly #options: LogQuotaOptions;
  #bytes = 0;
  #readAt = Number.NEGATIVE_INFINITY;
  /** Something was published since the bytes were read. */
  #hasGrown = false;
  #reading: Promise<void> = Promise.resolve();

  constructor(options: LogQuotaOptions) {
    this.#options = options;
  }

  /** Why nothing is recorded in the workspace, a sentence for people; undefined: there is room, as far as is known. */
  whyFull(): string | undefined {
    const { workspace, maxBytes } = this.#options;
    const isFull = this.#bytes >= maxBytes;
    if (isFull || this.#hasGrown) void this.#readBytes();
    if (!isFull) return undefined;
    return `the workspace "${workspace}": nothing is recorded, because its log has ${this.#bytes} of at most ${maxBytes} bytes: raise maxBytes in nats.logs, or let less stay with \`tapedeck workspace retention\``;
  }

  /** The same writer, which refuses what there is no room for. */
  limited(writer: LogWriter): LogWriter {
    return {
      ...writer,
      publish: async (source, name, events, expected) => {
        if (this.#readAt === Number.NEGATIVE_INFINITY) await this.#readBytes();
        const reason = this.whyFull();
        if (reason !== undefined && !events.every(isSmallAndOwn))
          return { outcome: "refused", cause: new LogAtQuotaError(reason) };
        const published = await writer.publish(source, name, events, expected);
        this.#hasGrown = true;
        return published;
      },
    };
  }

  #readBytes(): Promise<void> {
    if (performance.now() - this.#readAt < maxAgeMs) return this.#reading;
    this.#readAt = performance.now();
    this.#hasGrown = false;
    this.#reading = this.#options.bytes().then(
      (bytes) => {
        this.#bytes = bytes;
      },
      () => {}, // The next publish says that the log can't be reached.
    );
    return this.#reading;
  }
}

/** Facts of Tapedeck's own are few, and the marks of erasures are some of them. */
function isSmallAndOwn({ subject, event }: NewEvent): boolean {
  return isOwnSubject(subject) && event.byteLength < smallBytes;
}
