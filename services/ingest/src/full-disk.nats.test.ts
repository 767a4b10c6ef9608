import { it } from "vitest";
import { recordsThroughFullDisk } from "./testing/full-disk.ts";

it("a log without room is reported, and with room recording goes on by itself with all that waited", () =>
  recordsThroughFullDisk(90_000));
