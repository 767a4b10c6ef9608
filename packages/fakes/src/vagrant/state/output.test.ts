import { expect, it } from "vitest";
import { line, textOf } from "../client.ts";
import { makeOutput } from "./output.ts";

it("gives what was there before the reader apart from what came after", () => {
  const output = makeOutput();
  for (const msg of ["a", "b", "c"]) output.write(line(msg));
  const reader = output.read();
  expect(reader.next(2).map(textOf)).toEqual(["a", "b"]);
  output.write(line("d"));
  expect(reader.buffered()).toBe(1);
  expect(reader.next(64).map(textOf)).toEqual(["c"]);
  expect(reader.buffered()).toBe(0);
  expect(reader.next(64).map(textOf)).toEqual(["d"]);
  expect(reader.next(64)).toEqual([]);
  expect(output.total()).toBe(4);
});
