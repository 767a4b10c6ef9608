import { expect, it } from "vitest";
import { paths, read } from "./repository.ts";

const decisions = paths.filter((path) => /^docs\/decisions\/\d{4}-.*\.md$/.test(path));

it("the README of the decisions lists each decision once", () => {
  const listed = Array.from(read("docs/decisions/README.md").matchAll(/\]\((\d{4}-[^)]*)\)/g), ([, name]) => name);
  expect(listed.toSorted()).toEqual(decisions.map((path) => path.replace("docs/decisions/", "")).toSorted());
});

it("no two decisions have one number, which is that of their title", () => {
  const numbers = decisions.map((path) => Number(path.slice("docs/decisions/".length).slice(0, 4)));
  expect(numbers).toEqual([...new Set(numbers)]);
  expect(decisions.map((path) => Number(/^# (\d+)\. /.exec(read(path))?.[1]))).toEqual(numbers);
});

it.each(decisions)("%s names its problem, the alternatives and the price", (path) => {
  const parts = Array.from(read(path).matchAll(/^\*\*(\w+)\.\*\*/gm), ([, part]) => part);
  expect(parts).toEqual(["Problem", "Decision", "Alternatives", "Price"]);
});
