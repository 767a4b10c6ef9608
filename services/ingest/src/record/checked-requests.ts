import { Hello, type Item, Labelled, type PushRequest } from "@tapedeck/proto/tapedeck/v1/recorder";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { mapped } from "@tapedeck/shared/sync/mapped";
import { validTimestamp } from "@tapedeck/shared/time/timestamp";
import { maxBytes, payloadOf, withPayload } from "@tapedeck/tap/push/pieces";

/** Labels, and the user's own details: nothing larger is needed. */
const helloBytes = 256 * 1024;
/** Labels that changed later. */
const labelledBytes = helloBytes;
/** The most pieces of one message. Our taps send at most 64 of 1 MiB; empty ones would never reach `maxBytes`. */
const maxPieces = 4_096;
/** The longest id. Our taps send ULIDs. */
const idLength = 64;

type Open = {
  readonly item: Item;
  readonly channel: string;
  /** The pieces of a message that is put together here; all others are only counted. */
  readonly pieces: readonly Buffer[];
  readonly count: number;
  readonly bytes: number;
};

/**
 * A tap's pushed items, held to the rules of recorder.proto, so that a stranger's push can neither fill our memory nor
 * pass for something else. Described states come out whole; all else in its pieces. Items come out together, also one
 * that came alone.
 * @throws TapedeckError invalid_argument
 */
export function checkedRequests(requests: AsyncIterable<PushRequest>): AsyncIterableIterator<PushRequest> {
  const check = new ItemCheck();
  return mapped(requests, (request) => {
    const { body, sent_at } = request;
    if (body?.$case === "hello") {
      checkHello(body.value);
      check.begin(body.value.first_index);
      return request;
    }
    if (body?.$case !== "item" && body?.$case !== "items") return request;
    const items = check.checked(body.$case === "item" ? [body.value] : body.value.items);
    return items.length === 0 ? undefined : { body: { $case: "items", value: { items } }, sent_at };
  });
}

/** Checks items one after the other, and joins the pieces of described states. */
class ItemCheck {
  #last: bigint | undefined;
  #open: Open | undefined;

  /** The first `hello` says where the indexes begin. */
  begin(firstIndex: bigint): void {
    this.#last ??= firstIndex === 0n ? 0n : firstIndex - 1n;
  }

  checked(items: readonly Item[]): Item[] {
    return items.flatMap((item) => {
      this.#place(item);
      return this.#join(item) ?? [];
    });
  }

  #place({ index, connection, at, what }: Item): void {
    if (at !== undefined && validTimestamp(at) === undefined) {
      // A reader of the log has to be able to write it again.
      throw wrong("at", `item ${index}: at is not a time between the years 1 and 9999`);
    }
    if (what?.$case === "labelled") checkLabels(what.value, index);
    if (connection.length > idLength) throw wrong("connection", `item ${index}: the connection's id is too long`);
    const expected = this.#open === undefined ? (this.#last ?? 0n) + 1n : this.#open.item.index;
    const isAfterLoss = this.#open === undefined && what?.$case === "dropped" && index > expected;
    if (index !== expected && !isAfterLoss) throw wrong("index", `item ${index} came where ${expected} was expected`);
    this.#last = index;
  }

  #join(item: Item): Item | undefined {
    const open = this.#open;
    const piece = payloadOf(item);
    if (open !== undefined && !continues(open, item)) {
      throw wrong("more", `item ${item.index} is not the rest of what began with it`);
    }
    if (piece === undefined) return item;
    const bytes = (open?.bytes ?? 0) + piece.bytes.length;
    if (bytes > maxBytes) throw wrong("bytes", `item ${item.index} has more than ${maxBytes} bytes`);
    const count = (open?.count ?? 0) + 1;
    if (count > maxPieces) throw wrong("more", `item ${item.index} has more than ${maxPieces} pieces`);
    const isDescribed = item.what?.$case === "described";
    const pieces = isDescribed ? [...(open?.pieces ?? []), piece.bytes] : [];
    this.#open = piece.more ? { item, channel: piece.channel, pieces, count, bytes } : undefined;
    if (!isDescribed) return item;
    return piece.more ? undefined : withPayload(item, Buffer.concat(pieces), false);
  }
}

function continues({ item, channel }: Open, next: Item): boolean {
  const isSame = item.connection === next.connection && item.what?.$case === next.what?.$case;
  return isSame && payloadOf(next)?.channel === channel;
}

function checkHello(hello: Hello): void {
  if (hello.tap.length > idLength) throw wrong("tap", "the tap's id is too long");
  if (Hello.encode(hello).finish().length > helloBytes) {
    throw wrong("hello", `hello has more than ${helloBytes} bytes: are its labels that long?`);
  }
}

function checkLabels(labelled: Labelled, index: bigint): void {
  if (labelled.since !== undefined && validTimestamp(labelled.since) === undefined) {
    throw wrong("since", `item ${index}: since is not a time between the years 1 and 9999`);
  }
  if (Labelled.encode(labelled).finish().length > labelledBytes) {
    throw wrong("labels", `item ${index}: its labels have more than ${labelledBytes} bytes`);
  }
}

function wrong(field: string, message: string): TapedeckError {
  return new TapedeckError("invalid_argument", message, { field });
}
