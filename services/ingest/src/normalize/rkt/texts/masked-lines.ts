import { mapStringFields } from "@tapedeck/shared/descriptors/mask-strings";
import { messageType } from "@tapedeck/shared/descriptors/registry";
import { isCut, messageOf, textOf } from "@tapedeck/tap/rkt/text-lines";
import { isKeyTail, maskContinued, tailOf } from "../../../secrets/continued-text.ts";
import { Tails } from "../../../secrets/pieces.ts";
import { text as printed } from "../../facts.ts";
import type { WatchOptions } from "../../inventory/observing.ts";

export const responseType = "v1alpha.GetLogsResponse";
const response = messageType(responseType);

/** A response of one line, already masked, after the tail of the line before it. The time stays out of that. */
export const maskAfter: NonNullable<WatchOptions["maskAfter"]> = (type, bytes, tail) => {
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

/** Whose line it is; app "": of the stream of everything in the pod. */
export type LineStream = { readonly pod: string; readonly app: string };

export type MaskedLine = {
  readonly bytes: Uint8Array;
  readonly redacted: number;
  readonly text: string;
  /** As what else the log may have it: masked alone, or after what was open lately in any stream. */
  readonly others: () => readonly string[];
};

export type MaskedLines = {
  readonly mask: (stream: LineStream, line: Uint8Array) => MaskedLine;
  /** The stream's next line, as it is recorded. */
  readonly took: (stream: LineStream, text: string) => void;
  /** The same of a line read back from the log. */
  readonly recorded: (stream: LineStream, text: string) => void;
  /** A secret's next lines are expected: what is remembered of that is in the log by nothing but its last lines. */
  readonly isOpen: () => boolean;
  readonly forget: (pod: string, apps: Iterable<string>) => void;
};

/** Keys that have begun in the stream of everything in a pod, and how many more lines they may go on for. */
type Mixed = { readonly tail: string; readonly open: number; readonly left: number };

/** Lines of other apps that may stand between those of a key. */
const mostBetween = 200;

/**
 * Masks lines of the journal with secrets of several lines: each line after those before it in its stream. In the stream of
 * everything in a pod the lines of its apps are mixed, so a key that has begun there goes on after lines of others.
 */
export function maskedLines({ mask, maskAfter: maskTail }: LineMasks): MaskedLines {
  const tails = new Tails();
  const mixed = new Map<string, Mixed>();

  /** Streams that have given a line here. */
  const heard = new Set<string>();

  function before(stream: LineStream): string {
    const key = keyOf(stream);
    // Of one that is only known from the log it may be that another stream has told what it gave.
    const isMixed = stream.app === "" || !heard.has(key);
    return tails.before(key) || (isMixed ? (mixed.get(stream.pod)?.tail ?? "") : "");
  }

  function took(stream: LineStream, line: string): void {
    const after = stream.app === "" ? tails.before(keyOf(stream)) : before(stream);
    tails.took({ stream: keyOf(stream), text: line }, after);
  }

  function continued(alone: Pick<MaskedLine, "bytes" | "redacted">, tail: string) {
    if (tail === "" || maskTail === undefined) return alone;
    const { bytes, redacted } = maskTail(responseType, alone.bytes, tail);
    return redacted === 0 ? alone : { bytes, redacted: alone.redacted + redacted };
  }

  function followMixed(pod: string, line: string): void {
    const before = mixed.get(pod);
    const begun = tailOf(line);
    const open = (before?.open ?? 0) + Number(isKeyTail(begun)) - Number(line.includes("-----END"));
    if (isKeyTail(begun)) mixed.set(pod, { tail: begun, open, left: mostBetween });
    else if (before === undefined) return;
    else if (open <= 0 || before.left === 0) mixed.delete(pod);
    else mixed.set(pod, { tail: before.tail, open, left: before.left - 1 });
  }

  return {
    mask(stream, line) {
      const alone = mask(responseType, line);
      const masked = continued(alone, before(stream));
      const text = printed(textOf(masked.bytes));
      const others = () => {
        const forms = ["", ...tails.recent].map((tail) => printed(textOf(continued(alone, tail).bytes)));
        return [...new Set(forms)].filter((form) => form !== text);
      };
      return { ...masked, text, others };
    },
    took(stream, text) {
      const line = lineOf(text);
      took(stream, line);
      heard.add(keyOf(stream));
      if (stream.app === "") followMixed(stream.pod, line);
    },
    recorded(stream, text) {
      const line = lineOf(text);
      took(stream, line);
      // The pod's stream has given it too, or will.
      followMixed(stream.pod, line);
    },
    isOpen: () => tails.isOpen || mixed.size > 0,
    forget(pod, apps) {
      mixed.delete(pod);
      for (const key of [...apps].map((app) => keyOf({ pod, app }))) {
        tails.end(key);
        heard.delete(key);
      }
    },
  };
}

export type LineMasks = Pick<WatchOptions, "mask" | "maskAfter">;

/** With the end that it has. */
function lineOf(text: string): string {
  const message = messageOf(text);
  return isCut(message) ? message : `${message}\n`;
}

function keyOf({ pod, app }: LineStream): string {
  return `${pod}/${app}`;
}
