import { test } from "vitest";
import { muchOutputIsWhole } from "./much-output.ts";

test("a job with 20,000 pieces of output is recorded whole and served whole, in order", () =>
  muchOutputIsWhole(20_000));
