import { it } from "vitest";
import { recordsThroughFullDisk } from "./testing/full-disk.ts";

it("a log without room is reported within the 5 s that are promised", () => recordsThroughFullDisk(5_000));
