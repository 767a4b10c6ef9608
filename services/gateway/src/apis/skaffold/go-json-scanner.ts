/** The place of the first JSON value of a text, or why there is none. */
export type Scanned = { readonly start: number; readonly end: number } | { readonly error: string } | "empty";

/**
 * Finds the first JSON value of a body, as Go's json.Decoder does, with Go's error texts: clients of Skaffold's HTTP
 * server see those texts in its 400 answers. Ignores what follows the first value.
 */
export function scanFirstValue(text: string): Scanned {
  const scanner = new GoJsonScanner(text);
  scanner.space();
  const start = scanner.at;
  if (start >= text.length) return "empty";
  try {
    scanner.value();
    return { start, end: scanner.at };
  } catch (error) {
    if (error instanceof GoSyntaxError) return { error: error.message };
    // The only other failure is a value nested deeper than the stack. Go stops at 10,000 levels.
    return { error: "exceeded max depth" };
  }
}

class GoSyntaxError extends Error {
  override name = "GoSyntaxError";
}

/** A cursor over a text. Each method consumes what it is named after, and throws GoSyntaxError for anything else. */
class GoJsonScanner {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  get at(): number {
    return this.#at;
  }

  space(): void {
    while (!this.#isAtEnd && " \t\r\n".includes(this.#peek())) this.#at++;
  }

  value(): void {
    const char = this.#peek();
    if (char === "{") this.#members("}", () => this.#member(), "after object key:value pair");
    else if (char === "[") this.#members("]", () => this.value(), "after array element");
    else if (char === '"') this.#string();
    else if (char === "t") this.#literal("true");
    else if (char === "f") this.#literal("false");
    else if (char === "n") this.#literal("null");
    else if (char === "-" || isDigit(char)) this.#number();
    else this.#fail("looking for beginning of value");
  }

  /** Empty at the end of the text. */
  #peek(): string {
    return this.#text.charAt(this.#at);
  }

  get #isAtEnd(): boolean {
    return this.#at >= this.#text.length;
  }

  #members(close: string, member: () => void, after: string): void {
    this.#at++;
    this.space();
    if (this.#peek() === close) {
      this.#at++;
      return;
    }
    for (;;) {
      member();
      this.space();
      const char = this.#peek();
      if (char !== close && char !== ",") this.#fail(after);
      this.#at++;
      if (char === close) return;
      this.space();
    }
  }

  #member(): void {
    if (this.#peek() !== '"') this.#fail("looking for beginning of object key string");
    this.#string();
    this.space();
    if (this.#peek() !== ":") this.#fail("after object key");
    this.#at++;
    this.space();
    this.value();
  }

  #string(): void {
    for (this.#at++; this.#peek() !== '"'; this.#at++) {
      if (this.#isAtEnd || this.#text.charCodeAt(this.#at) < 0x20) this.#fail("in string literal");
      if (this.#peek() === "\\") this.#escapeCode();
    }
    this.#at++;
  }

  #escapeCode(): void {
    this.#at++;
    if (this.#peek() === "u") {
      for (let digit = 0; digit < 4; digit++) {
        this.#at++;
        if (!/[0-9a-fA-F]/.test(this.#peek())) this.#fail("in \\u hexadecimal character escape");
      }
    } else if (this.#isAtEnd || !'"\\/bfnrt'.includes(this.#peek())) this.#fail("in string escape code");
  }

  #literal(word: string): void {
    for (const [index, char] of [...word].entries()) {
      if (this.#peek() !== char) this.#fail(`in literal ${word} (expecting ${quoted(word.charAt(index))})`);
      this.#at++;
    }
  }

  #number(): void {
    if (this.#peek() === "-") this.#at++;
    if (this.#peek() === "0") this.#at++;
    else this.#digits("in numeric literal");
    if (this.#peek() === ".") {
      this.#at++;
      this.#digits("after decimal point in numeric literal");
    }
    if (/[eE]/.test(this.#peek())) {
      this.#at++;
      if (/[+-]/.test(this.#peek())) this.#at++;
      this.#digits("in exponent of numeric literal");
    }
  }

  #digits(context: string): void {
    if (!isDigit(this.#peek())) this.#fail(context);
    while (isDigit(this.#peek())) this.#at++;
  }

  #fail(context: string): never {
    const char = String.fromCodePoint(this.#text.codePointAt(this.#at) ?? 0);
    throw new GoSyntaxError(this.#isAtEnd ? "unexpected EOF" : `invalid character ${quoted(char)} ${context}`);
  }
}

function isDigit(char: string): boolean {
  return char >= "0" && char <= "9";
}

function quoted(char: string): string {
  if (char === "'") return "'\\''";
  if (char === '"') return "'\"'";
  return `'${JSON.stringify(char).slice(1, -1)}'`;
}
