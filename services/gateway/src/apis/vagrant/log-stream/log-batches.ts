import { LogBatch, LogBatch_Entry } from "@tapedeck/proto/vagrant/vagrant";
import { holding } from "@tapedeck/shared/descriptors/message-fields";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { MessageBatch } from "../message-batch.ts";

const linesField = 3;

/** Collects lines into encoded hashicorp.vagrant.LogBatch messages, each of one job and session. */
export class LogBatches {
  readonly #lines = new MessageBatch((entries) =>
    Buffer.concat([
      LogBatch.encode({ deployment_id: this.#job, instance_id: this.#session, lines: [] }).finish(),
      holding(linesField, entries),
    ]),
  );
  #job = "";
  #session = "";

  *add({ event }: RecordedEvent, lines: readonly string[]): Generator<Uint8Array, void> {
    if (lines.length === 0) return;
    if (event.subject !== this.#job || event.session !== this.#session) yield* this.flush();
    this.#job = event.subject;
    this.#session = event.session;
    const timestamp = event.occurred_at ?? event.observed_at;
    for (const line of lines) yield* this.#lines.add(LogBatch_Entry.encode({ timestamp, line }).finish());
  }

  flush(): Generator<Uint8Array, void> {
    return this.#lines.flush();
  }
}
