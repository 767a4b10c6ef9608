import { it } from "vitest";
import { muchOutputIsWhole } from "./much-output.ts";

it("a job with 6,000 pieces of output, more than the server keeps for a reader, is recorded whole and served whole, in order", () =>
  muchOutputIsWhole(6_000));
