import type { SubscriptionMessage } from "../../apis/tapedeck/messages.ts";

/** Frames that were made a moment ago, and of what. */
let last = { of: [] as readonly SubscriptionMessage[], label: "", max: 0, frames: [] as readonly Buffer[] };

/**
 * The messages as text frames of WebSocket (RFC 6455, 5.2), many in a buffer: about `max` bytes, or one message. Each gets
 * the label behind its type: {"type":"event","id":"a","position":… Subscribers of the same events follow one another, and
 * mostly give their subscriptions the same ids: they share the buffers.
 */
export function framesOf(messages: readonly SubscriptionMessage[], label: string, max: number): readonly Buffer[] {
  const isSame = label === last.label && max === last.max && messages.length === last.of.length;
  if (isSame && messages.every((message, index) => message === last.of[index])) return last.frames;
  const frames: Buffer[] = [];
  let texts: string[] = [];
  let length = 0;
  for (const { json } of messages) {
    const at = json.indexOf(",");
    const text = json.slice(0, at) + label + json.slice(at + 1);
    if (texts.length > 0 && length + text.length > max) {
      frames.push(textFrames(texts));
      texts = [];
      length = 0;
    }
    texts.push(text);
    length += text.length;
  }
  if (texts.length > 0) frames.push(textFrames(texts));
  last = { of: messages, label, max, frames };
  return frames;
}

/** Text frames, one behind the other. */
export function textFrames(texts: readonly string[]): Buffer {
  const lengths = texts.map((text) => Buffer.byteLength(text));
  const total = lengths.reduce((sum, length) => sum + headLength(length) + length, 0);
  const frames = Buffer.allocUnsafeSlow(total);
  let at = 0;
  for (const [index, text] of texts.entries()) {
    at = writeHead(frames, at, lengths[index] as number);
    at += frames.write(text, at, "utf8");
  }
  return frames;
}

const finalText = 0x81;

function headLength(length: number): number {
  return length < 126 ? 2 : length < 65_536 ? 4 : 10;
}

/** Returns where the payload begins. */
function writeHead(frames: Buffer, at: number, length: number): number {
  frames[at] = finalText;
  if (length < 126) {
    frames[at + 1] = length;
    return at + 2;
  }
  if (length < 65_536) {
    frames[at + 1] = 126;
    return frames.writeUInt16BE(length, at + 2);
  }
  frames[at + 1] = 127;
  return frames.writeBigUInt64BE(BigInt(length), at + 2);
}
