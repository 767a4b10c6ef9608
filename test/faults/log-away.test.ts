import { test } from "vitest";
import { awayAtTheStart, awayInTheMiddle, killedWhileSpilled } from "./log-away.ts";

test("ingest starts without the log, spills everything, and records it when the log is back", () => awayAtTheStart());

test("a log that goes away in the middle loses nothing", () => awayInTheMiddle());

test("an ingest that is killed while it spills loses nothing", killedWhileSpilled);
