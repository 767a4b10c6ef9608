import { credentials, Metadata } from "@grpc/grpc-js";
import { LogEntry } from "@tapedeck/proto/skaffold/v1/skaffold";
import { type Item, type PushRequest, RecorderClient } from "@tapedeck/proto/tapedeck/v1/recorder";
import { Notifier } from "@tapedeck/shared/sync/notifier";
import { timestampNow } from "@tapedeck/shared/time/timestamp";
import { grpcLink, type RecorderLink } from "@tapedeck/tap/push/link";
import { Mailbox } from "@tapedeck/tap/push/mailbox";
import { ulid } from "ulid";

/** A tap without an upstream. It pushes its frames to ingest at once. */
export class PushedSource implements AsyncDisposable {
  readonly workspace: string;
  readonly project: string;
  readonly #box = new Mailbox<PushRequest>();
  readonly #connection = ulid();
  readonly #saidAt: number[] = [];
  /** From saying each frame to hearing that it is recorded. */
  readonly #latenciesMs: number[] = [];
  readonly #seen = new Notifier();
  readonly #pushing: Promise<void>;
  #index = 0n;
  #isRecorded = false;
  #isOver = false;

  constructor(link: RecorderLink, workspace: string, project: string) {
    this.workspace = workspace;
    this.project = project;
    const hello = { developer: "alice", project, upstream: "skaffold", tap: ulid(), labels: {}, redact: "off" };
    void this.#box.put({ body: { $case: "hello", value: { ...hello, first_index: 1n, settings: {} } } });
    this.#put({ $case: "dialled", value: { address: "127.0.0.1:50051", channels: ["v1"] } });
    this.#pushing = this.#push(link);
  }

  /** Never waits: a real tap keeps what it can't push. */
  push(): void {
    const entry = `${this.project} ${this.#saidAt.length}`;
    this.#saidAt.push(performance.now());
    const bytes = LogEntry.encode(LogEntry.fromPartial({ timestamp: timestampNow(), entry })).finish();
    this.#put({ $case: "frame", value: { channel: "v1", bytes: Buffer.from(bytes), more: false } });
  }

  /** The texts that are expected in the log. */
  get frames(): readonly string[] {
    return this.#saidAt.map((_, round) => `${this.project} ${round}`);
  }

  /** Resolves when the source is in the log, and all that was said, with how long each frame took. */
  async recorded(): Promise<readonly number[]> {
    while (!this.#isRecorded || this.#latenciesMs.length < this.#saidAt.length) {
      await Promise.race([this.#seen.next(), this.#pushing]);
    }
    return this.#latenciesMs;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    this.#box.close();
    await this.#pushing;
  }

  #put(what: Item["what"]): void {
    const value = { index: ++this.#index, connection: this.#connection, at: timestampNow(), what };
    void this.#box.put({ body: { $case: "item", value } });
  }

  async #push(link: RecorderLink): Promise<void> {
    for await (const { body } of link(this.#box, new AbortController().signal)) {
      if (body?.$case !== "committed") continue;
      this.#isRecorded = true;
      // The first item is no frame.
      const recorded = Number(body.value.index) - 1;
      for (let at = this.#latenciesMs.length; at < recorded; at++) {
        this.#latenciesMs.push(performance.now() - (this.#saidAt[at] ?? 0));
      }
      this.#seen.ring();
    }
    if (!this.#isOver) throw new Error(`the push of ${this.project} ended`);
  }
}

/** One connection to ingest for all sources of a workspace. */
export class WorkspaceLink implements Disposable {
  readonly link: RecorderLink;
  readonly #client: RecorderClient;

  /** `key`: that of the services, where ingest has one. */
  constructor(address: string, workspace: string, key?: string) {
    this.#client = new RecorderClient(address, credentials.createInsecure());
    const metadata = new Metadata();
    metadata.set("tapedeck-workspace", workspace);
    if (key !== undefined) metadata.set("tapedeck-key", key);
    this.link = grpcLink(this.#client, metadata);
  }

  [Symbol.dispose](): void {
    this.#client.close();
  }
}
