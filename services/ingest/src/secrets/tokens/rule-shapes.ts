import type { Run, TokenShape } from "./token-shape.ts";

/** The shapes of tokens in a rule's regular expression; none: it has no fixed beginning, or too much else. */
export function shapesOf(id: string, regex: string, keywords: readonly string[]): readonly TokenShape[] {
  const inContext = /\{0,5\}\((.*)\)\(\?:\[/.exec(regex)?.[1];
  const ignoresCase = inContext !== undefined && regex.startsWith("(?i)") ? "(?i)" : "";
  const { text, alone } = bare(ignoresCase + (inContext ?? regex));
  let variants: readonly (readonly Part[])[];
  try {
    variants = new Parser(text).all();
  } catch (error) {
    if (error instanceof Unsupported) return [];
    throw error;
  }
  const shapes = variants.flatMap((variant): TokenShape[] => {
    const [prefix, ...rest] = joined(variant);
    const isToken = typeof prefix === "string" && prefix.length >= shortestPrefix && leastOf(rest) >= shortestToken;
    if (!isToken || /:\/\/$|=/.test(prefix)) return [];
    const near = inContext === undefined ? [] : keywords.filter((word) => !prefix.toLowerCase().includes(word));
    return [{ id, parts: [prefix, ...rest], alone: alone || inContext !== undefined, near }];
  });
  return shapes.filter((shape) => !shapes.some((other) => other !== shape && isWithin(other, shape)));
}

/** A text of the one shape always contains the other. */
function isWithin(other: TokenShape, shape: TokenShape): boolean {
  const [[prefix, ...rest], [longer, ...same]] = [other.parts, shape.parts];
  return longer.endsWith(prefix) && longer !== prefix && JSON.stringify(rest) === JSON.stringify(same);
}

/** Shorter ones are found in words. */
const shortestPrefix = 3;
/** Characters that are not fixed. */
const shortestToken = 10;

type Part = string | Run;

/** Without what must stand before and after a token. */
function bare(regex: string): { readonly text: string; readonly alone: boolean } {
  const text = regex
    .replace(/\(\?:\[\\x60'"\\s;\]\|\\\\\[nr\]\|\$(?:\|\\b)?\)$/, "⊣")
    .replace(/\(\?:\[\^[^\]]+\]\|\\z\)$/, "⊣")
    .replace(/\\b$/, "⊣");
  return { text: text.replace("⊣", "").replaceAll("\\b", ""), alone: text.includes("⊣") || regex.includes("\\b") };
}

function leastOf(parts: readonly Part[]): number {
  return parts.reduce((sum, part) => sum + (typeof part === "string" ? 0 : part[1]), 0);
}

/** Neighbours of the same kind as one. */
function joined(parts: readonly Part[]): Part[] {
  const out: Part[] = [];
  for (const part of parts) {
    const before = out.at(-1);
    if (typeof part === "string" && typeof before === "string") out[out.length - 1] = before + part;
    else if (typeof part !== "string" && typeof before === "object" && before[0] === part[0])
      out[out.length - 1] = [part[0], before[1] + part[1], before[2] + part[2]];
    else out.push(part);
  }
  return out;
}

class Unsupported extends Error {}

const maxVariants = 16;
/** For what has no end. */
const longestRun = 1_000;

/** Reads the part of Go's regular expressions that describes tokens: text, classes, counts, alternatives. */
class Parser {
  #at = 0;
  #ignoresCase = false;
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  all(): readonly (readonly Part[])[] {
    const variants = this.#alternatives();
    if (this.#at < this.#text.length || variants.length > maxVariants) throw new Unsupported();
    return variants;
  }

  #alternatives(): (readonly Part[])[] {
    const before = this.#ignoresCase;
    const variants = [...this.#sequence()];
    while (this.#take("|")) {
      variants.push(...this.#sequence());
    }
    this.#ignoresCase = before;
    return variants;
  }

  #sequence(): (readonly Part[])[] {
    let variants: (readonly Part[])[] = [[]];
    while (this.#at < this.#text.length && !/[|)]/.test(this.#next())) {
      const next = this.#counted(this.#atom());
      variants = variants.flatMap((one) => next.map((other) => [...one, ...other]));
      if (variants.length > maxVariants) throw new Unsupported();
    }
    return variants;
  }

  #atom(): (readonly Part[])[] {
    const ignores = /^\(\?(-?)i\)/.exec(this.#text.slice(this.#at));
    if (ignores) {
      this.#at += ignores[0].length;
      this.#ignoresCase = ignores[1] === "";
      return [[]];
    }
    if (this.#take("(")) return this.#group();
    if (this.#take("[")) return [[[this.#alphabet(), 1, 1]]];
    if (this.#take("\\")) {
      const escaped = this.#step();
      if (escaped === "d") return [[["0-9", 1, 1]]];
      if (escaped === "w") return [[[alphabetOf(word), 1, 1]]];
      if (/[a-zA-Z]/.test(escaped)) throw new Unsupported();
      return [[escaped]];
    }
    const one = this.#step();
    if (/[.^$*+?{]/.test(one) && !(one === "." && this.#at > 1)) throw new Unsupported();
    return [[one]];
  }

  #group(): (readonly Part[])[] {
    const flags = /^\?(?:P<\w+>|(-?)(i?):)/.exec(this.#text.slice(this.#at));
    const before = this.#ignoresCase;
    if (flags) {
      this.#at += flags[0].length;
      if (flags[2] === "i") this.#ignoresCase = flags[1] === "";
    }
    const variants = this.#alternatives();
    if (!this.#take(")")) throw new Unsupported();
    this.#ignoresCase = before;
    return variants;
  }

  #counted(variants: (readonly Part[])[]): (readonly Part[])[] {
    const count = /^(?:\{(\d+)(?:(,)(\d*))?\}|([?*+]))\??/.exec(this.#text.slice(this.#at));
    if (!count) return variants;
    this.#at += count[0].length;
    const [, least = "0", comma, max = "", sign] = count;
    if (sign === "?") return [[], ...variants];
    const low = sign === "+" ? 1 : sign === "*" ? 0 : Number(least);
    const high = sign !== undefined || (comma && max === "") ? longestRun : Number(comma ? max : least);
    const [only = [], ...others] = variants;
    const [run] = only;
    if (others.length === 0 && only.length === 1 && typeof run === "object") return [[[run[0], low, high]]];
    if (low !== high || low > 4) throw new Unsupported();
    return Array.from({ length: low }).reduce<(readonly Part[])[]>(
      (all) => all.flatMap((one) => variants.map((other) => [...one, ...other])),
      [[]],
    );
  }

  #alphabet(): string {
    const characters = new Set<string>();
    if (this.#next() === "^") throw new Unsupported();
    while (!this.#take("]")) {
      if (this.#text.startsWith("[:alnum:]", this.#at)) {
        this.#at += "[:alnum:]".length;
        for (const one of word) if (one !== "_") characters.add(one);
        continue;
      }
      const first = this.#member(characters);
      if (first === undefined || this.#next() !== "-" || this.#text.charAt(this.#at + 1) === "]") continue;
      this.#step();
      const last = this.#member(characters) ?? first;
      for (let code = first.charCodeAt(0); code <= last.charCodeAt(0); code += 1)
        characters.add(String.fromCharCode(code));
    }
    if (this.#ignoresCase) {
      for (const one of [...characters]) characters.add(one.toLowerCase()).add(one.toUpperCase());
    }
    return alphabetOf(characters);
  }

  /** Undefined: it was more than one. */
  #member(characters: Set<string>): string | undefined {
    const one = this.#step();
    if (one !== "\\") {
      characters.add(one);
      return one;
    }
    const escaped = this.#step();
    const many = escaped === "w" ? word : escaped === "d" ? "0123456789" : undefined;
    if (many === undefined && /[a-zA-Z]/.test(escaped)) throw new Unsupported();
    for (const each of many ?? escaped) characters.add(each);
    return many === undefined ? escaped : undefined;
  }

  #next(): string {
    return this.#text.charAt(this.#at);
  }

  #step(): string {
    if (this.#at >= this.#text.length) throw new Unsupported();
    this.#at += 1;
    return this.#text.charAt(this.#at - 1);
  }

  #take(text: string): boolean {
    if (!this.#text.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }
}

const word = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";

/** Sorted, ranges as such, safe inside of brackets. */
function alphabetOf(characters: Iterable<string>): string {
  const codes = [...new Set(characters)].map((one) => one.charCodeAt(0)).sort((a, b) => a - b);
  let text = "";
  for (let i = 0; i < codes.length; ) {
    let end = i;
    while (codes[end + 1] === (codes[end] ?? 0) + 1) end += 1;
    const [first, last] = [characterOf(codes[i] ?? 0), characterOf(codes[end] ?? 0)];
    text += end - i > 1 ? `${first}-${last}` : end > i ? first + last : first;
    i = end + 1;
  }
  return text;
}

function characterOf(code: number): string {
  const one = String.fromCharCode(code);
  return /[\]\\^-]/.test(one) ? `\\${one}` : one;
}
