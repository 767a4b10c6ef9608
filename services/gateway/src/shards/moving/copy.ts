import type { MovedMessage } from "@tapedeck/proto/tapedeck/v1/maintain";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import type { Log } from "@tapedeck/shared/log/jetstream";
import type { StoredMessage } from "@tapedeck/shared/log/log";
import type { Sequence } from "@tapedeck/shared/log/offset";
import { workspaceFilter } from "@tapedeck/shared/log/subjects";
import type { MaintainClient } from "../../maintain-client.ts";

/** The largest request to the new shard's ingest. A single message may be larger. */
const maxMessages = 256;
const maxBytes = 1024 * 1024;

export type Copying = {
  readonly workspace: string;
  /** The log that the workspace leaves. */
  readonly from: { readonly epoch: string; readonly stored: Log["stored"] };
  readonly to: Pick<MaintainClient, "arrive">;
  readonly signal: AbortSignal;
};

/** Copies the workspace's messages after one sequence up to another; yields the sequence up to which they are copied. */
export async function* copyMessages(
  { workspace, from: { epoch, stored }, to, signal }: Copying,
  after: Sequence,
  until: Sequence,
): AsyncGenerator<Sequence, void> {
  const range = { first: after + 1, last: until, subjects: [workspaceFilter(workspace)] };
  let [done, reached, bytes] = [after, after, 0];
  let batch: MovedMessage[] = [];
  const send = async () => {
    const messages = batch;
    [batch, bytes] = [[], 0];
    if (messages.length === 0) return;
    const request = { workspace, epoch, after_sequence: BigInt(done), messages };
    for await (const _ of to.arrive(request, signal));
    done = reached;
  };
  for await (const message of stored(range, signal)) {
    if (batch.length === maxMessages || bytes + message.data.byteLength > maxBytes) {
      await send();
      yield done;
    }
    batch.push(movedMessage(message));
    bytes += message.data.byteLength;
    reached = message.seq;
  }
  if (signal.aborted) return;
  await send();
  yield done;
}

function movedMessage({ seq, recordedAtMs, subject, writer, cursor, expiresAtMs, data }: StoredMessage): MovedMessage {
  if (writer === undefined || cursor === undefined) {
    throw new TapedeckError("internal", `message ${seq} of the log belongs to another program, and can't be moved`);
  }
  return {
    sequence: BigInt(seq),
    recorded_at_ms: BigInt(recordedAtMs),
    subject,
    writer,
    cursor: JSON.stringify(cursor),
    body: Buffer.from(data),
    ttl_seconds: expiresAtMs === undefined ? 0n : BigInt(Math.max(1, Math.ceil((expiresAtMs - Date.now()) / 1_000))),
  };
}
