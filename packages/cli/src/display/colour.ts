import { randomInt } from "node:crypto";
import { styleText } from "node:util";
import type { Colour } from "./status-colour.ts";

export type Style = Colour | "bold";

/**
 * Parameters that our own colours carry until they are printed. Recorded text can't know them, so it can't colour anything.
 * Groups of four digits are taken for a sequence by all that measures text.
 */
const ours = Array.from({ length: 3 }, () => `;${randomInt(1_000, 10_000)}`).join("");

/** A coloured text, where stdout is a terminal that has colours. */
export function coloured(style: Style, text: string): string {
  const [start = "", end = ""] = styleText(style, "\0").split("\0");
  return start === "" ? text : `${marked(start)}${text}${marked(end)}`;
}

function marked(sequence: string): string {
  return sequence.replaceAll("m", `${ours}m`);
}

/** A sequence of our own as the terminal knows it; undefined for all others. */
export function ownColour(sequence: string): string | undefined {
  return sequence.endsWith(`${ours}m`) ? `${sequence.slice(0, -ours.length - 1)}m` : undefined;
}
