import { isUtf8 } from "node:buffer";
import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { asBuffer } from "@tapedeck/shared/as-buffer";

/**
 * Looks at one string of a message and gives the text to put in its place, or undefined to leave it.
 * The new text must take as many bytes of UTF-8 as the old one: `"*".repeat(Buffer.byteLength(secret))`.
 * Bytes that are not UTF-8 are shown as U+001A, one character per byte, and stay as they are unless that is replaced.
 */
export type StringMapper = (text: string, path: string) => string | undefined;

/** A message after a visit of its strings. */
export type MappedStrings = {
  /** The very input if nothing changed, else a copy. */
  readonly bytes: Uint8Array;
  /** How many strings were replaced. */
  readonly changed: number;
  /** The bytes are no such message, or nested too deep; they are returned as they came, whatever was replaced. */
  readonly malformed: boolean;
};

/**
 * Overwrites text inside the string fields of an encoded message, in place and with the same number of bytes, so that
 * every length, number, unknown field and their order stay as the sender made them. `path` has the names of the .proto
 * files with dots, such as `skaffoldLogEvent.message`; maps have `.key` and `.value`; an item of a list has the name of
 * the list. A string that occurs twice is visited twice. Fields of type bytes and unknown fields are left alone. Time
 * is linear in the size of the message, plus what the mapper needs. Throws a RangeError if a new text has another
 * length, and the mapper's errors.
 */
export function mapStringFields(desc: DescMessage, bytes: Uint8Array, map: StringMapper): MappedStrings {
  const source = asBuffer(bytes);
  let copy: Buffer | undefined;
  let changed = 0;
  const replace: StringVisitor = (start, end, path) => {
    const text = byteTrueText(source.subarray(start, end));
    const replacement = map(text, path);
    if (replacement === undefined || replacement === text) return;
    copy ??= Buffer.from(source);
    overwrite(copy.subarray(start, end), text, replacement, path);
    changed += 1;
  };
  try {
    walkFields({ bytes: source, at: 0 }, source.length, { plan: planOf(desc), path: "", depth: 0 }, replace);
  } catch (error) {
    if (error instanceof Malformed) return { bytes, changed: 0, malformed: true };
    throw error;
  }
  return { bytes: copy ?? bytes, changed, malformed: false };
}

/** Only what differs is written: a byte that could not be shown as text must survive. */
function overwrite(target: Buffer, text: string, replacement: string, path: string): void {
  const before = Buffer.from(text);
  const after = Buffer.from(replacement);
  if (after.length !== target.length) {
    throw new RangeError(`the new text of ${path} takes ${after.length} bytes instead of ${target.length}`);
  }
  for (let at = 0; at < after.length; at += 1) {
    const byte = after[at] ?? 0;
    if (byte !== before[at]) target[at] = byte;
  }
}

/** The bytes as text that takes exactly as many bytes, so that lengths and offsets hold. */
function byteTrueText(bytes: Buffer): string {
  if (isUtf8(bytes)) return bytes.toString("utf8");
  const masked = Buffer.from(bytes);
  for (let at = 0; at < masked.length; ) {
    const length = characterLength(bytes, at);
    if (length === 0) masked[at] = 0x1a;
    at += length || 1;
  }
  return masked.toString("utf8");
}

function characterLength(bytes: Buffer, at: number): number {
  const first = bytes[at] ?? 0;
  const length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  return at + length <= bytes.length && isUtf8(bytes.subarray(at, at + length)) ? length : 0;
}

/** What of a message leads to strings: by field number, either a string itself (no plan) or what has some inside. */
type Plan = Map<number, { readonly name: string; readonly plan?: Plan; readonly isGroup: boolean }>;

const plans = new WeakMap<DescMessage, Plan>();
const noFields: Plan = new Map();

function planOf(desc: DescMessage): Plan {
  const known = plans.get(desc);
  if (known !== undefined) return known;
  const plan: Plan = new Map();
  // Before the fields: a message may hold its own kind.
  plans.set(desc, plan);
  for (const field of desc.fields) {
    const inside = planOfField(field);
    if (inside !== undefined) plan.set(field.number, { name: field.name, isGroup: isGroup(field), ...inside });
  }
  return plan;
}

function planOfField(field: DescField): { plan?: Plan } | undefined {
  if (field.fieldKind === "map") {
    const entry: Plan = new Map();
    if (field.mapKey === ScalarType.STRING) entry.set(1, { name: "key", isGroup: false });
    if (field.message) entry.set(2, { name: "value", plan: planOf(field.message), isGroup: false });
    else if (field.scalar === ScalarType.STRING) entry.set(2, { name: "value", isGroup: false });
    return { plan: entry };
  }
  if (field.message) return { plan: planOf(field.message) };
  return field.scalar === ScalarType.STRING ? {} : undefined;
}

function isGroup(field: DescField): boolean {
  return "delimitedEncoding" in field && field.delimitedEncoding;
}

type StringVisitor = (start: number, end: number, path: string) => void;
type Cursor = { readonly bytes: Buffer; at: number };
type FieldPosition = { readonly plan: Plan; readonly path: string; readonly depth: number; readonly group?: number };

class Malformed extends Error {}

/** The same limit as in protobuf-es; real messages need less than ten. */
const deepest = 100;

/** Reads fields up to `end`, or in a group up to its end mark. */
function walkFields(cursor: Cursor, end: number, place: FieldPosition, visit: StringVisitor): void {
  if (place.depth > deepest) throw new Malformed();
  while (cursor.at < end) {
    const tag = readVarint(cursor, end);
    const number = Math.floor(tag / 8);
    if (number < 1 || number > 0x1fff_ffff) throw new Malformed();
    const field = place.plan.get(number);
    const path = field === undefined || place.path === "" ? (field?.name ?? "") : `${place.path}.${field.name}`;
    const inside = (plan: Plan): FieldPosition => ({ plan, path, depth: place.depth + 1 });
    switch (tag % 8) {
      case 0:
        readVarint(cursor, end);
        break;
      case 1:
        skip(cursor, 8, end);
        break;
      case 2: {
        const length = readVarint(cursor, end);
        const start = cursor.at;
        skip(cursor, length, end);
        if (field === undefined || field.isGroup) break;
        if (field.plan === undefined) visit(start, cursor.at, path);
        else walkFields({ bytes: cursor.bytes, at: start }, cursor.at, inside(field.plan), visit);
        break;
      }
      case 3:
        walkFields(
          cursor,
          end,
          { ...inside(field?.isGroup ? (field.plan ?? noFields) : noFields), group: number },
          visit,
        );
        break;
      case 4:
        if (number !== place.group) throw new Malformed();
        return;
      case 5:
        skip(cursor, 4, end);
        break;
      default:
        throw new Malformed();
    }
  }
  if (place.group !== undefined) throw new Malformed();
}

function skip(cursor: Cursor, length: number, end: number): void {
  if (length > end - cursor.at) throw new Malformed();
  cursor.at += length;
}

/** Exact up to 2^53; greater ones only need to be skipped, or are too long for anything. */
function readVarint(cursor: Cursor, end: number): number {
  let value = 0;
  for (let factor = 1; cursor.at < end && factor < 2 ** 70; factor *= 128) {
    const byte = cursor.bytes[cursor.at++] ?? 0;
    value += (byte % 128) * factor;
    if (byte < 128) return value;
  }
  throw new Malformed();
}
