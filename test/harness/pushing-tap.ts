import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { credentials, Metadata } from "@grpc/grpc-js";
import { delay } from "@tapedeck/shared/sync/delay";
import { timestampNow } from "@tapedeck/shared/time/timestamp";
import { gatewayLink, type RecorderLink } from "@tapedeck/tap/push/link";
import { pushItems, type RunningPush } from "@tapedeck/tap/push/push";
import { openSpill, type Spill } from "@tapedeck/tap/spill/spill";
import { ulid } from "ulid";
import { inject } from "vitest";

export type PushingTapOptions = {
  readonly link: RecorderLink;
  readonly project: string;
};

/** A link to a gateway with a token, or to an ingest with other metadata. */
export function linkTo(address: string, metadata: Readonly<Record<string, string>>): RecorderLink {
  const sent = new Metadata();
  for (const [name, value] of Object.entries(metadata)) sent.set(name, value);
  return gatewayLink({ address, credentials: credentials.createInsecure(), metadata: sent });
}

/** A tap without an upstream. It keeps each frame that a test has it say, pushes it, and pushes it again, as every tap does. */
export class PushingTap implements AsyncDisposable {
  readonly project: string;
  /** The errors with which pushes ended. */
  readonly refusals: string[] = [];
  readonly #spill: Spill;
  readonly #stop = new AbortController();
  readonly #push: RunningPush;
  readonly #connection = ulid();
  #said = 0;
  #speaking: Promise<void> = Promise.resolve();

  private constructor({ link, project }: PushingTapOptions, spill: Spill) {
    this.project = project;
    this.#spill = spill;
    const { signal } = this.#stop;
    this.#push = pushItems({
      link,
      spill,
      signal,
      log: { info: () => {}, warn: () => {} },
      control: async ({ call }) => ({ call, code: 14, message: "no upstream", response: Buffer.alloc(0) }),
      away: (error) => {
        if (error !== undefined) this.refusals.push(error instanceof Error ? error.message : String(error));
      },
    });
    const value = { address: "127.0.0.1:50051", channels: ["v1"] };
    this.#append({ $case: "dialled", value });
  }

  static async start(options: PushingTapOptions): Promise<PushingTap> {
    const dir = await mkdtemp(join(inject("serversFolder"), "pushing-"));
    const { project } = options;
    const hello = { developer: "alice", project, upstream: "skaffold", tap: ulid(), labels: {}, redact: "off" };
    return new PushingTap(options, await openSpill({ dir: join(dir, "spill"), hello }));
  }

  /** Its frames so far, in order. */
  get said(): readonly string[] {
    return Array.from({ length: this.#said }, (_, index) => this.#text(index + 1));
  }

  push(count = 1): void {
    for (let i = 0; i < count; i++) {
      const bytes = Buffer.from(this.#text(++this.#said));
      this.#append({ $case: "frame", value: { channel: "v1", bytes, more: false } });
    }
  }

  /** Says one thing; resolves when the recorder has acknowledged it, or when the tap stops. */
  async pushRecorded(): Promise<void> {
    this.push();
    const { nextIndex } = this.#spill.state();
    const { signal } = this.#stop;
    while (this.#spill.state().committed < nextIndex - 1n && !signal.aborted) await delay(2, signal);
  }

  /** The upstream's process ends, and with it the session. */
  end(): void {
    this.#append({ $case: "closed", value: { reason: "ended", process_ended: true } });
  }

  /** Says the next thing whenever all before it is recorded, and a pause later, until `finish`. */
  speak(pauseMs = 0): void {
    this.#speaking = (async () => {
      while (!this.#stop.signal.aborted && !this.#isDone) {
        this.push();
        await this.recorded();
        if (pauseMs > 0) await delay(pauseMs, this.#stop.signal);
      }
    })();
  }

  #isDone = false;

  /** Resolves when all frames so far are in a log. */
  async recorded(): Promise<void> {
    await this.#spill.drained(this.#stop.signal);
  }

  /** Stops speaking. Resolves when all is recorded. */
  async finish(): Promise<void> {
    this.#isDone = true;
    await this.#speaking;
    await this.recorded();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#push.done;
    await this.#speaking;
    await this.#spill[Symbol.asyncDispose]();
  }

  #text(number: number): string {
    return `${this.project} says ${number}`;
  }

  #append(what: Parameters<Spill["append"]>[0]["what"]): void {
    this.#spill.append({ connection: this.#connection, at: timestampNow(), what });
  }
}
