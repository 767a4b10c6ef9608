import { it } from "vitest";
import { muchOutputIsWhole } from "./much-output.ts";

it("a job with 100,000 pieces of output is recorded whole and served whole, in order", () =>
  muchOutputIsWhole(100_000));
