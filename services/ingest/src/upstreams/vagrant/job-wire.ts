import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";

/** A job of a list; the bytes are a view of the list's own, encoded as the server encoded them. */
export type JobEntry = { readonly id: string; readonly bytes: Buffer };

/** The jobs of an encoded ListJobsResponse, in its order. Only their ids are decoded. Throws for bytes that are none. */
export function jobsIn(list: Uint8Array): readonly JobEntry[] {
  return slices(list, 1).map((bytes) => ({ id: slices(bytes, 1).at(-1)?.toString("utf8") ?? "", bytes }));
}

/** What a GetJobStreamResponse says, as bytes of its own. */
export type StreamMessage =
  | { readonly what: "open" | "complete" | "unknown" }
  /** Absent: a state without its job. */
  | { readonly what: "state"; readonly job: Buffer | undefined }
  | { readonly what: "terminal"; readonly events: readonly Buffer[]; readonly isBuffered: boolean };

/** Throws for bytes that are no message. */
export function streamMessageIn(response: Uint8Array): StreamMessage {
  const event = lastField(response);
  switch (event?.field) {
    case 1:
      return { what: "open" };
    case 2:
      return { what: "state", job: merged(event.bytes, 3) };
    case 3:
      return { what: "terminal", events: slices(event.bytes, 1), isBuffered: lastBool(event.bytes, 2) };
    case 5:
      return { what: "complete" };
    default:
      return { what: "unknown" };
  }
}

/** Of the members of a oneof the last one counts; what comes in pieces, one after the other, is one message. */
function lastField(message: Uint8Array): { readonly field: number; readonly bytes: Buffer } | undefined {
  let last: { readonly field: number; readonly bytes: Buffer } | undefined;
  for (const { field, bytes } of fieldsOf(message)) {
    if (bytes === undefined) continue;
    last = { field, bytes: last?.field === field ? Buffer.concat([last.bytes, bytes]) : bytes };
  }
  return last;
}

function merged(message: Uint8Array, wanted: number): Buffer | undefined {
  const [first, ...more] = slices(message, wanted);
  return first === undefined || more.length === 0 ? first : Buffer.concat([first, ...more]);
}

function slices(message: Uint8Array, wanted: number): readonly Buffer[] {
  return fieldsOf(message).flatMap(({ field, bytes }) => (field === wanted && bytes !== undefined ? [bytes] : []));
}

function lastBool(message: Uint8Array, wanted: number): boolean {
  return fieldsOf(message).findLast(({ field, flag }) => field === wanted && flag !== undefined)?.flag ?? false;
}

type Field = {
  readonly field: number;
  /** Of text, bytes and messages. */
  readonly bytes?: Buffer;
  /** Of a number: that it is not 0. */
  readonly flag?: boolean;
};

function fieldsOf(message: Uint8Array): readonly Field[] {
  const reader = new BinaryReader(message);
  const fields: Field[] = [];
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag();
    if (type === WireType.LengthDelimited) {
      const bytes = reader.bytes();
      fields.push({ field, bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength) });
    } else if (type === WireType.Varint) fields.push({ field, flag: reader.bool() });
    else reader.skip(type, field);
  }
  return fields;
}
