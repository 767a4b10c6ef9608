import { it } from "vitest";
import { awayAtTheStart, awayInTheMiddle, killedWhileSpilled } from "./log-away.ts";

it("ingest starts without the log, spills everything, and records it when the log is back", () => awayAtTheStart());

it("a log that goes away in the middle loses nothing", () => awayInTheMiddle());

it("an ingest that is killed while it spills loses nothing", killedWhileSpilled);
