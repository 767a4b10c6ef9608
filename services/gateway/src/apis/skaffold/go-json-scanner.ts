/**
 * Finds the first JSON value of a body, as Go's json.Decoder does, with Go's error texts: clients of Skaffold's HTTP
 * server see those texts in its 400 answers. What follows the first value is not looked at.
 */
export type Scanned = { readonly start: number; readonly end: number } | { readonly error: string } | "empty";

class GoSyntaxError extends Error {
  override name = "GoSyntaxError";
}

export function scanFirstValue(text: string): Scanned {
  let at = 0;

  const fail = (context: string): never => {
    const char = String.fromCodePoint(text.codePointAt(at) ?? 0);
    throw new GoSyntaxError(at >= text.length ? "unexpected EOF" : `invalid character ${quoted(char)} ${context}`);
  };
  const space = () => {
    while (at < text.length && " \t\r\n".includes(text.charAt(at))) at++;
  };
  const digits = (context: string) => {
    if (!isDigit(text.charAt(at))) fail(context);
    while (isDigit(text.charAt(at))) at++;
  };

  const literal = (word: string) => {
    for (const [index, char] of [...word].entries()) {
      if (text.charAt(at) !== char) fail(`in literal ${word} (expecting ${quoted(word.charAt(index))})`);
      at++;
    }
  };
  const string = () => {
    for (at++; text.charAt(at) !== '"'; at++) {
      if (at >= text.length || text.charCodeAt(at) < 0x20) fail("in string literal");
      if (text.charAt(at) === "\\") escapeCode();
    }
    at++;
  };
  const escapeCode = () => {
    at++;
    if (text.charAt(at) === "u") {
      for (let i = 0; i < 4; i++) {
        at++;
        if (!/[0-9a-fA-F]/.test(text.charAt(at))) fail("in \\u hexadecimal character escape");
      }
    } else if (at >= text.length || !'"\\/bfnrt'.includes(text.charAt(at))) fail("in string escape code");
  };
  const number = () => {
    if (text.charAt(at) === "-") at++;
    if (text.charAt(at) === "0") at++;
    else digits("in numeric literal");
    if (text.charAt(at) === ".") {
      at++;
      digits("after decimal point in numeric literal");
    }
    if (/[eE]/.test(text.charAt(at))) {
      at++;
      if (/[+-]/.test(text.charAt(at))) at++;
      digits("in exponent of numeric literal");
    }
  };
  const members = (close: string, member: () => void, after: string) => {
    at++;
    space();
    if (text.charAt(at) === close) {
      at++;
      return;
    }
    for (;;) {
      member();
      space();
      const char = text.charAt(at);
      if (char !== close && char !== ",") fail(after);
      at++;
      if (char === close) return;
      space();
    }
  };
  const member = () => {
    if (text.charAt(at) !== '"') fail("looking for beginning of object key string");
    string();
    space();
    if (text.charAt(at) !== ":") fail("after object key");
    at++;
    space();
    value();
  };
  const value = () => {
    const char = text.charAt(at);
    if (char === "{") members("}", member, "after object key:value pair");
    else if (char === "[") members("]", value, "after array element");
    else if (char === '"') string();
    else if (char === "t") literal("true");
    else if (char === "f") literal("false");
    else if (char === "n") literal("null");
    else if (char === "-" || isDigit(char)) number();
    else fail("looking for beginning of value");
  };

  space();
  if (at >= text.length) return "empty";
  const start = at;
  try {
    value();
    return { start, end: at };
  } catch (error) {
    if (error instanceof GoSyntaxError) return { error: error.message };
    // The only other thing that can happen in here: nested deeper than the stack (Go stops at 10,000).
    return { error: "exceeded max depth" };
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
