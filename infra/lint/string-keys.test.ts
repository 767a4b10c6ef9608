import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Node, SyntaxKind } from "typescript/unstable/ast";
import { isBinaryExpression, isElementAccessExpression } from "typescript/unstable/ast/is";
import { API, type Checker, type Program, type Type, TypeFlags } from "typescript/unstable/sync";
import { expect, it, onTestFinished } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Keys that are known to be there, because the same object was asked for them. */
const known = [
  "packages/shared/src/events/json.ts: (message as Record<string, unknown>)[name]",
  "packages/shared/src/own-value.ts: record[name]",
];

/*
 * Every plain object answers to `constructor` and `toString` without having an entry of that name, and takes none called
 * `__proto__` by assignment. A linter cannot see which names come from outside, but a compiler sees which are any text.
 */
it("no plain object is indexed by a text that may be any: ownValue or a Map is", () => {
  const api = new API({ cwd: root });
  onTestFinished(() => api.close());
  const projects = ["tsconfig.json", "packages/web/tsconfig.json"].map((name) => join(root, name));
  const snapshot = api.updateSnapshot({ openProjects: projects });
  const found = snapshot.getProjects().flatMap(({ program, checker }) => indexedByText(program, checker));
  expect([...new Set(found)].filter((one) => !known.includes(one))).toEqual([]);
});

function indexedByText(program: Program, checker: Checker): string[] {
  return program.getSourceFileNames().flatMap((name) => {
    const path = name.slice(root.length);
    if (!isOurs(path)) return [];
    const file = program.getSourceFile(name);
    if (file === undefined) return [];
    const keys = [...keysIn(file)];
    const types = keys.length === 0 ? [] : checker.getTypeAtLocation(keys);
    return keys.filter((_, index) => isText(types[index])).map((key) => `${path}: ${key.parent.getText(file)}`);
  });
}

function isOurs(path: string): boolean {
  return (
    /^(packages|services)\/\w+\/src\//.test(path) &&
    !/\.(test|contract|generated)\.tsx?$|\/(gen|testing)\/|^packages\/fakes/.test(path)
  );
}

/** What stands in brackets, or before `in`. */
function* keysIn(node: Node): Generator<Node, void> {
  if (isElementAccessExpression(node)) yield node.argumentExpression;
  if (isBinaryExpression(node) && node.operatorToken.kind === SyntaxKind.InKeyword) yield node.left;
  const inside: Node[] = [];
  node.forEachChild((child) => void inside.push(child));
  for (const child of inside) yield* keysIn(child);
}

function isText(type: Type | undefined): boolean {
  if (type === undefined) return false;
  if (type.isUnionType()) return type.getTypes().some(isText);
  return (type.flags & (TypeFlags.String | TypeFlags.TemplateLiteral)) !== 0;
}
