import type { TextSpan } from "./span.ts";

/** Finds all values of `data` and `stringData` of Kubernetes' Secrets, whatever their names, in YAML and JSON. */
export function kubernetesSecrets(text: string): TextSpan[] {
  if (!/kind["'\\]{0,4}:[ \t]{0,4}["'\\]{0,4}Secret(?![A-Za-z])/i.test(text)) return [];
  return [...inYaml(text), ...inJson(text)];
}

type Block = { readonly spans: readonly TextSpan[] };
/** The lines at one indentation of a document: an object that may be a Secret. */
type Level = { isSecret: boolean; readonly blocks: Block[] };

const keyLine = /^([ \t-]*)(["']?)(kind|data|stringData)\2:(.*)$/s;

function inYaml(text: string): TextSpan[] {
  const found: TextSpan[] = [];
  const levels = new Map<number, Level>();
  let block: { readonly indent: number; readonly spans: TextSpan[] } | undefined;
  const closeFrom = (indent: number) => {
    for (const [at, { isSecret, blocks }] of levels) {
      if (at < indent) continue;
      if (isSecret) for (const { spans } of blocks) for (const span of spans) found.push(span);
      levels.delete(at);
    }
  };
  for (const { line, at } of linesOf(text)) {
    if (line.trim() === "") continue;
    if (line.startsWith("---")) {
      closeFrom(0);
      block = undefined;
      continue;
    }
    const indent = line.search(/[^ \t]/);
    const isItem = line.startsWith("- ", indent);
    if (block !== undefined && indent > block.indent && !isItem) {
      const value = valueOfLine(line);
      if (value !== undefined) block.spans.push({ start: at + value.start, end: at + value.end });
      continue;
    }
    block = undefined;
    // A new item, or the end of an object.
    closeFrom(indent + 1);
    const key = keyLine.exec(line);
    if (key === null) continue;
    const [, before = "", , name, rest = ""] = key;
    const value = rest.trim();
    const level = levels.get(before.length) ?? { isSecret: false, blocks: [] };
    levels.set(before.length, level);
    if (name === "kind") level.isSecret ||= /^["']?Secret["']?$/i.test(value);
    else if (value === "") {
      block = { indent: before.length, spans: [] };
      level.blocks.push(block);
    }
  }
  closeFrom(0);
  return found;
}

/** The position at which a value begins in a line of a map, or the text in a line of a block. */
function valueOfLine(line: string): TextSpan | undefined {
  const key = /^\s*["']?[\w./-]{1,253}["']?:[ \t]*/.exec(line)?.[0].length ?? line.search(/\S/);
  const value = line.slice(key).trimEnd();
  if (value === "" || /^[|>][-+\d]{0,2}$/.test(value) || /^["']{2}$|^\{\{.*\}\}$|^(?:null|~)$/.test(value))
    return undefined;
  const quote = /^(["']).*\1$/.test(value) ? 1 : 0;
  return { start: key + quote, end: key + value.length - quote };
}

function* linesOf(text: string): Iterable<{ readonly line: string; readonly at: number }> {
  for (let at = 0; at < text.length; ) {
    const end = text.indexOf("\n", at);
    const to = end < 0 ? text.length : end;
    yield { line: text.slice(at, to), at };
    at = to + 1;
  }
}

type Open = { isSecret: boolean; readonly key: string; readonly strings: TextSpan[]; readonly data: TextSpan[] };

const deepest = 200;
/** JSON inside of JSON doubles its backslashes each time. More than these are no quote. */
const mark = /[{}]|(?<!\\)(\\{0,31}["'])((?:[^\n\\"']|\\[^"'\n\\])*)\1(\s{0,40}:)?/g;

/** Finds objects by their braces and quotes, which may be escaped: JSON is printed inside JSON. */
function inJson(text: string): TextSpan[] {
  const found: TextSpan[] = [];
  const open: Open[] = [];
  let key = "";
  for (const match of text.matchAll(mark)) {
    const [whole, quote = "", inside = "", colon] = match;
    const top = open.at(-1);
    if (whole === "{") {
      if (open.length < deepest) open.push({ isSecret: false, key, strings: [], data: [] });
      key = "";
    } else if (whole === "}") {
      const closed = open.pop();
      const outer = open.at(-1);
      if (closed?.isSecret) for (const span of closed.data) found.push(span);
      const isData = outer !== undefined && /^(?:data|stringData)$/.test(closed?.key ?? "");
      if (isData) for (const span of closed?.strings ?? []) outer.data.push(span);
      key = "";
    } else if (colon !== undefined) {
      key = inside;
    } else if (top !== undefined) {
      if (key === "kind" && inside === "Secret") top.isSecret = true;
      const start = match.index + quote.length;
      if (key !== "" && inside !== "") top.strings.push({ start, end: start + inside.length });
      key = "";
    }
  }
  return found;
}
