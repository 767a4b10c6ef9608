import { createHash } from "node:crypto";

/** One recorded upstream, "workspace/developer/project/upstream". Each part is as `namePart` makes it. */
export type SourceName = string & { readonly __brand: "SourceName" };

/** The parts of a source's name. */
export type SourceParts = {
  readonly workspace: string;
  readonly developer: string;
  readonly project: string;
  readonly upstream: string;
};

/** The workspace of the demo, which takes no recordings from outside. */
export const demoWorkspace = "demo";

/** Bytes of UTF-8 of one part. Parts are in index rows, in subjects of NATS and in names of files. */
const maxPartBytes = 64;

/** The form of a part of a name, for error texts. */
export const nameForm = `1–${maxPartBytes} bytes of lower-case letters of any language, digits, _ and -`;

const asciiPart = /^[a-z0-9_-]{1,64}$/;

/** Joiners and variants of the same character: names with and without them look the same. */
const joiners = /\u200C|\u200D|[\uFE00-\uFE0F]/gu;

/** A character that a part keeps: of ASCII these, and otherwise letters, their marks, digits, and symbols that are pictures. */
const allowed = "(?:[a-z0-9_-]|(?!\\p{ASCII})[\\p{L}\\p{M}\\p{N}\\p{So}\\p{Sk}])";
const odd = new RegExp(`(?:(?!${allowed})[\\s\\S])+|^\\p{M}+`, "gu");

/** Control characters, and those that can't be seen or change the direction of what follows. */
const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

/**
 * Makes a name part of anything that people type: NFC, lower case, odd characters become "-", at most 64 bytes. A longer one is
 * cut and gets a hash of the whole, so that it stays different from others. Applied again, it changes nothing.
 */
export function namePart(text: string): string {
  if (asciiPart.test(text)) return text;
  const lower = text.normalize("NFC").toLowerCase().normalize("NFC");
  const part = lower.replace(joiners, "").normalize("NFC").replace(odd, "-");
  if (part === "") return "-";
  if (Buffer.byteLength(part) <= maxPartBytes) return part;
  const end = `-${createHash("sha256").update(part).digest("hex").slice(0, 8)}`;
  let cut = "";
  for (const character of part) {
    if (Buffer.byteLength(cut + character + end) > maxPartBytes) break;
    cut += character;
  }
  return cut + end;
}

/** Whether it can be part of a name as it is. */
export function isNamePart(text: string): boolean {
  return asciiPart.test(text) || (text !== "" && namePart(text) === text);
}

/**
 * Why a chosen name is refused; undefined: it is not. A name with such characters could pass for another one in a
 * terminal or on a page.
 */
export function nameError(text: string): string | undefined {
  const found = unprintable.exec(text.replace(joiners, ""))?.[0].codePointAt(0);
  if (found === undefined) return undefined;
  const code = found.toString(16).toUpperCase().padStart(4, "0");
  return `has the character U+${code}, which is a control character, can't be seen or changes the direction of text: remove it`;
}

/** Joins the parts: "workspace/developer/project/upstream". */
export function sourceName(parts: SourceParts): SourceName {
  const { workspace, developer, project, upstream } = parts;
  for (const [name, value] of Object.entries({ workspace, developer, project, upstream })) {
    if (!isNamePart(value)) throw new RangeError(`${name} ${JSON.stringify(value)} is not ${nameForm}`);
  }
  return `${workspace}/${developer}/${project}/${upstream}` as SourceName;
}

/** Undefined when the text is not a full source name. */
export function parseSourceName(text: string): SourceName | undefined {
  const parts = text.split("/");
  return parts.length === 4 && parts.every(isNamePart) ? (text as SourceName) : undefined;
}

/** Neighboring events are often of the same source. */
let latest: { readonly source: string; readonly parts: SourceParts } | undefined;

/** Splits a source's name into its parts. */
export function sourceParts(source: SourceName): SourceParts {
  if (latest?.source === source) return latest.parts;
  const [workspace = "", developer = "", project = "", upstream = ""] = source.split("/");
  const parts = { workspace, developer, project, upstream };
  latest = { source, parts };
  return parts;
}

/**
 * A name, or a part of one, where only ASCII can stand, such as in subjects and keys of NATS: other characters are the bytes of their
 * UTF-8 as "=E6=9D=8E". No name has a "=".
 */
export function asciiName(name: string): string {
  return name.replace(/\P{ASCII}+/gu, (text) =>
    [...Buffer.from(text)].map((byte) => `=${byte.toString(16).toUpperCase().padStart(2, "0")}`).join(""),
  );
}

/** The name that `asciiName` was given. */
export function nameOfAscii(text: string): string {
  return text.replace(/(?:=[0-9A-F]{2})+/g, (bytes) => Buffer.from(bytes.replaceAll("=", ""), "hex").toString("utf8"));
}
