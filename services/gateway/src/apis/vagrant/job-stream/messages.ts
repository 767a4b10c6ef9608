import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { GetJobStreamResponse, Job, Job_State } from "@tapedeck/proto/vagrant/vagrant";

// Messages of GetJobStream (hashicorp.vagrant.GetJobStreamResponse), made of recorded bytes without encoding them again.

/** A job as it was recorded at one moment. */
export type JobVersion = {
  readonly bytes: Uint8Array;
  readonly state: Job_State;
  /** It was canceled, or its time was up. */
  readonly canceling: boolean;
  /** A job that has not started has no output. */
  readonly hasStarted: boolean;
};

export function jobVersion(bytes: Uint8Array): JobVersion {
  const { state, cancel_time, ack_time } = Job.decode(bytes);
  return { bytes, state, canceling: cancel_time !== undefined, hasStarted: ack_time !== undefined };
}

export function isFinished(state: Job_State): boolean {
  return state === Job_State.SUCCESS || state === Job_State.ERROR;
}

export function openMessage(): Uint8Array {
  return GetJobStreamResponse.encode({ event: { $case: "open", value: {} } }).finish();
}

const stateField = 2;
const terminalField = 3;
const completeField = 5;

export function stateMessage(previous: Job_State, { state, bytes, canceling }: JobVersion): Uint8Array {
  const writer = new BinaryWriter().tag(stateField, WireType.LengthDelimited).fork();
  if (previous !== Job_State.UNKNOWN) writer.tag(1, WireType.Varint).int32(previous);
  if (state !== Job_State.UNKNOWN) writer.tag(2, WireType.Varint).int32(state);
  writer.tag(3, WireType.LengthDelimited).bytes(bytes);
  if (canceling) writer.tag(4, WireType.Varint).bool(true);
  return writer.join().finish();
}

export function terminalMessage(events: readonly Uint8Array[], buffered: boolean): Uint8Array {
  const writer = new BinaryWriter().tag(terminalField, WireType.LengthDelimited).fork();
  for (const event of events) writer.tag(1, WireType.LengthDelimited).bytes(event);
  if (buffered) writer.tag(2, WireType.Varint).bool(true);
  return writer.join().finish();
}

/** Has the error of the job, or its result, or neither. */
export function completeMessage({ bytes }: JobVersion): Uint8Array {
  const error = messageIn(bytes, 106);
  const result = messageIn(bytes, 107);
  const writer = new BinaryWriter().tag(completeField, WireType.LengthDelimited).fork();
  if (error !== undefined) writer.tag(1, WireType.LengthDelimited).bytes(error);
  if (result !== undefined) writer.tag(2, WireType.LengthDelimited).bytes(result);
  return writer.join().finish();
}

/** The bytes of a field that holds a message; undefined when it is not set. */
function messageIn(message: Uint8Array, fieldNumber: number): Uint8Array | undefined {
  const reader = new BinaryReader(message);
  let found: Uint8Array | undefined;
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag();
    if (field === fieldNumber && type === WireType.LengthDelimited) found = reader.bytes();
    else reader.skip(type, field);
  }
  return found;
}
