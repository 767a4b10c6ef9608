import { parseSync } from "vite";

export type SourceText = {
  /** `title`: of a test or of a row of its cases. `name`: of a type or a class. */
  readonly kind: "comment" | "title" | "name";
  readonly text: string;
  /** Where it begins in the file. */
  readonly start: number;
};

/** Any node of a syntax tree: its own fields are read as they are found. */
type Node = { readonly type?: string; readonly start?: number; readonly [field: string]: unknown };

const declarations = new Set([
  "TSTypeAliasDeclaration",
  "TSInterfaceDeclaration",
  "ClassDeclaration",
  "TSEnumDeclaration",
]);

/** The comments, the titles of tests and the names of types in a file of TypeScript or of protobuf. */
export function textsOf(path: string, source: string): readonly SourceText[] {
  if (path.endsWith(".proto")) return joined(protoComments(source), source);
  const { program, comments } = parseSync(path, source);
  const texts: SourceText[] = [];
  const add = (kind: SourceText["kind"], node: Node | undefined) => {
    const text = kind === "name" ? node?.name : literal(node);
    if (typeof text === "string") texts.push({ kind, text, start: node?.start ?? 0 });
  };
  visit(program as unknown as Node, (node) => {
    if (declarations.has(node.type ?? "")) add("name", node.id as Node);
    if (node.type !== "CallExpression" || !/^(it|test|describe)$/.test(callee(node.callee as Node))) return;
    add("title", argument(node));
    for (const row of rowsOf(node.callee as Node)) add("title", row);
  });
  return [...joined(comments, source), ...texts];
}

type Comment = { readonly start: number; readonly end: number; readonly value: string };

/** Comments of single lines that follow each other are one text. */
function joined(comments: readonly Comment[], source: string): SourceText[] {
  const texts: (SourceText & { readonly end: number })[] = [];
  for (const { start, end, value } of comments) {
    const text = value
      .replace(/^\s*\*+ ?/gm, "")
      .trim()
      .replace(/\s+/g, " ");
    const last = texts.at(-1);
    if (last !== undefined && /^\s*$/.test(source.slice(last.end, start)) && source.startsWith("//", start)) {
      texts[texts.length - 1] = { ...last, end, text: `${last.text} ${text}` };
    } else texts.push({ kind: "comment", text, start, end });
  }
  return texts.map(({ end: _, ...text }) => text);
}

function protoComments(source: string): Comment[] {
  return Array.from(source.matchAll(/\/\/(.*)|\/\*([\s\S]*?)\*\//g), ({ index, 0: all, 1: line, 2: block }) => ({
    start: index,
    end: index + all.length,
    value: line ?? block ?? "",
  }));
}

function visit(node: unknown, see: (node: Node) => void): void {
  if (typeof node !== "object" || node === null) return;
  if (!Array.isArray(node)) see(node as Node);
  for (const inner of Object.values(node)) visit(inner, see);
}

/** `it`, also of `it.skipIf(…)` and of `it.each(…)`. */
function callee(node: Node): string {
  if (node.type === "Identifier") return String(node.name);
  return callee((node.object ?? node.callee ?? node.tag ?? { type: "Identifier", name: "" }) as Node);
}

function argument(node: Node): Node | undefined {
  return (node.arguments as readonly Node[])[0];
}

/** The titles in the rows of `it.each([…])`: a text alone, the first one of a list, or the field `title` or `name`. */
function rowsOf(node: Node): readonly (Node | undefined)[] {
  const rows = node.type === "CallExpression" ? argument(node) : undefined;
  if (rows?.type !== "ArrayExpression") return [];
  return (rows.elements as readonly Node[]).map((row) => {
    if (row.type === "ArrayExpression") return (row.elements as readonly Node[])[0];
    if (row.type !== "ObjectExpression") return row;
    const fields = row.properties as readonly { readonly key?: Node; readonly value?: Node }[];
    return fields.find(({ key }) => key?.name === "title" || key?.name === "name")?.value;
  });
}

function literal(node: Node | undefined): unknown {
  if (node?.type === "Literal") return node.value;
  if (node?.type !== "TemplateLiteral") return undefined;
  const quasis = node.quasis as readonly { readonly value: { readonly raw: string } }[];
  return quasis.map(({ value }) => value.raw).join("…");
}
