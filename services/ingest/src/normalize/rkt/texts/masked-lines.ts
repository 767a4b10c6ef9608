import { messageType } from "@tapedeck/shared/descriptors/registry";
import { isCut, messageOf, textOf } from "@tapedeck/tap/rkt/text-lines";
import { isKeyTail, maskContinued, tailOf } from "../../../secrets/continued-text.ts";
import { Tails } from "../../../secrets/pieces.ts";
import { text as printed } from "../../facts.ts";
import type { WatcherOptions } from "../../inventory/observing.ts";
import { mapStringFields } from "../../mask-strings.ts";

export const responseType = "v1alpha.GetLogsResponse";
const response = messageType(responseType);

/** Masks a response of one line, already masked alone, after the tail of the line before it. The time is left as it is. */
export const maskAfter: NonNullable<WatcherOptions["maskAfter"]> = (type, bytes, tail) => {
  let redacted = 0;
  if (type !== responseType) return { bytes, redacted };
  const mapped = mapStringFields(response, bytes, (text) => {
    const message = messageOf(text);
    const masked = maskContinued(tail, message);
    redacted += masked.secrets;
    return text.slice(0, text.length - message.length) + masked.text;
  });
  return { bytes: mapped.bytes, redacted };
};

/** Identifies the stream of a line. Empty app: the stream of everything in the pod. */
export type LineStream = { readonly pod: string; readonly app: string };

export type MaskedLine = {
  readonly bytes: Uint8Array;
  readonly redacted: number;
  readonly text: string;
  /** Other forms that the log may have it in: masked alone, or after what any stream left open lately. */
  readonly others: () => readonly string[];
};

export type LineMasks = Pick<WatcherOptions, "mask" | "maskAfter">;

/** Keys that have started in the stream of everything in a pod, and for how many more lines they may continue. */
type Mixed = { readonly tail: string; readonly open: number; readonly left: number };

/** Lines of other apps that may come between those of a key. */
const maxBetween = 200;

/**
 * Masks lines of the journal with secrets of several lines: each line after those before it in its stream. The stream
 * of everything in a pod mixes the lines of its apps, so a key that has begun there continues after lines of others.
 */
export class MaskedLines {
  readonly #masks: LineMasks;
  readonly #tails = new Tails();
  readonly #mixed = new Map<string, Mixed>();
  /** Streams that this recorder has had a line of. */
  readonly #seen = new Set<string>();

  constructor(masks: LineMasks) {
    this.#masks = masks;
  }

  /** A secret's next lines are expected. The log has nothing of that but the secret's last lines. */
  get isOpen(): boolean {
    return this.#tails.isOpen || this.#mixed.size > 0;
  }

  mask(stream: LineStream, line: Uint8Array): MaskedLine {
    const alone = this.#masks.mask(responseType, line);
    const masked = this.#continued(alone, this.#before(stream));
    const text = printed(textOf(masked.bytes));
    const others = () => {
      const tails = ["", ...this.#tails.recent];
      const forms = tails.map((tail) => printed(textOf(this.#continued(alone, tail).bytes)));
      return [...new Set(forms)].filter((form) => form !== text);
    };
    return { ...masked, text, others };
  }

  /** Takes in the stream's next line, as it is recorded. */
  took(stream: LineStream, text: string): void {
    const line = lineOf(text);
    this.#take(stream, line);
    this.#seen.add(keyOf(stream));
    if (stream.app === "") this.#followMixed(stream.pod, line);
  }

  /** Takes in a line read back from the log. */
  recorded(stream: LineStream, text: string): void {
    const line = lineOf(text);
    this.#take(stream, line);
    // The pod's stream has given it too, or will.
    this.#followMixed(stream.pod, line);
  }

  forget(pod: string, apps: Iterable<string>): void {
    this.#mixed.delete(pod);
    for (const key of [...apps].map((app) => keyOf({ pod, app }))) {
      this.#tails.end(key);
      this.#seen.delete(key);
    }
  }

  #before(stream: LineStream): string {
    const key = keyOf(stream);
    // A line that is known from the log alone may have come by another stream.
    const isMixed = stream.app === "" || !this.#seen.has(key);
    return this.#tails.before(key) || (isMixed ? (this.#mixed.get(stream.pod)?.tail ?? "") : "");
  }

  #take(stream: LineStream, text: string): void {
    const key = keyOf(stream);
    this.#tails.took({ stream: key, text }, stream.app === "" ? this.#tails.before(key) : this.#before(stream));
  }

  #continued(alone: Pick<MaskedLine, "bytes" | "redacted">, tail: string) {
    const { maskAfter: maskTail } = this.#masks;
    if (tail === "" || maskTail === undefined) return alone;
    const { bytes, redacted } = maskTail(responseType, alone.bytes, tail);
    return redacted === 0 ? alone : { bytes, redacted: alone.redacted + redacted };
  }

  #followMixed(pod: string, line: string): void {
    const before = this.#mixed.get(pod);
    const tail = tailOf(line);
    const open = (before?.open ?? 0) + Number(isKeyTail(tail)) - Number(line.includes("-----END"));
    if (isKeyTail(tail)) this.#mixed.set(pod, { tail, open, left: maxBetween });
    else if (before === undefined) return;
    else if (open <= 0 || before.left === 0) this.#mixed.delete(pod);
    else this.#mixed.set(pod, { tail: before.tail, open, left: before.left - 1 });
  }
}

/** The line with its own end. */
function lineOf(text: string): string {
  const message = messageOf(text);
  return isCut(message) ? message : `${message}\n`;
}

function keyOf({ pod, app }: LineStream): string {
  return `${pod}/${app}`;
}
