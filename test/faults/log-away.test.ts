import { test } from "vitest";
import { awayAtTheStart, awayInTheMiddle, killedWhileSpilled } from "./log-away.ts";

test("a log that is away at the start is not waited for: all is spilled, and recorded when it is there", () =>
  awayAtTheStart());

test("a log that goes away in the middle costs nothing", () => awayInTheMiddle());

test("an ingest that is killed while it spills loses nothing", killedWhileSpilled);
