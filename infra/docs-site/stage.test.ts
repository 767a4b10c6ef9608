import { join } from "node:path";
import { expect, it } from "vitest";

const { staged } = await import(join(import.meta.dirname, "stage.mjs"));

it.each([
  ["a page", "[team](team.md#tokens)", "[team](./team.md#tokens)"],
  ["a folder with a first page", "[decisions](decisions/)", "[decisions](./decisions/index.md)"],
  ["a page outside of docs/", "[contributing](../CONTRIBUTING.md)", "[contributing](./contributing.md)"],
])("a link to %s stays a link", (_, text, expected) => {
  expect(staged("docs/sql.md", text)).toBe(expected);
});

it("a link to a file that the site does not have becomes text, and one that leads nowhere is an error", () => {
  expect(staged("docs/sql.md", "[the workflow](../.github/workflows/test.yaml)")).toBe("the workflow");
  expect(() => staged("docs/sql.md", "[none](none.md)")).toThrow("docs/sql.md: none.md leads nowhere");
});

it("comments are left out, but not those in code", () => {
  const code = "```\n<!-- kept -->\n```";
  expect(staged("docs/sql.md", `# SQL\n\n<!-- Written\nby hand. -->\n\nText\n\n${code}`)).toBe(
    `# SQL\n\nText\n\n${code}`,
  );
});
