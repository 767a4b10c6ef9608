/**
 * Text for a terminal. What was recorded, or what a server answered, may hold sequences that set the clipboard (OSC 52),
 * the title or the cursor, or that show characters in another order than they stand in (BiDi).
 */

/** Sequences of ESC or C1, and all controls but tab and line feed. Each alternative ends at the next introducer, so time is linear. */
const sequences = new RegExp(
  [
    // Strings (OSC, DCS, SOS, PM, APC) with their ends. One that does not end in its line loses its introducer only.
    String.raw`(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\n\x1b\x80-\x9f]*(?:\x07|\x1b\\|\x9c)`,
    // CSI with its parameters and final byte.
    String.raw`(?:\x1b\[|\x9b)[\x30-\x3f]*[\x20-\x2f]*[\x40-\x7e]`,
    String.raw`\x1b[\x20-\x2f]*[\x30-\x7e]`,
    String.raw`[\x00-\x08\x0b-\x1f\x7f-\x9f]`,
    // Marks, overrides and isolates of the direction of writing.
    String.raw`[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]`,
  ].join("|"),
  "g",
);
/** Some programs break lines at these. */
const separators = /[\u2028\u2029]/g;

/**
 * The text without anything that a terminal would obey: it has no control characters but tab and line feed, and none that
 * change the direction of writing. `keep` decides about each sequence: undefined removes it.
 */
export function terminalText(text: string, keep: (sequence: string) => string | undefined = removeAll): string {
  return text.replace(sequences, (sequence) => keep(sequence) ?? "").replace(separators, " ");
}

const removeAll = () => undefined;

/** All that `JSON.stringify` leaves as it is and a terminal obeys. */
const unescaped = /[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** JSON that a terminal can show: the same value, with such characters escaped. */
export function escapedJson(json: string): string {
  return json.replace(unescaped, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
