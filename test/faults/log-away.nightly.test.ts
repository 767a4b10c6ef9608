import { setTimeout as delay } from "node:timers/promises";
import { it } from "vitest";
import { awayAtTheStart, awayInTheMiddle } from "./log-away.ts";

/** The subject of these tests. */
const aMinute = () => delay(60_000);

it("a minute without the log at the start loses nothing", () => awayAtTheStart(aMinute));

it("a minute without the log in the middle loses nothing", () => awayInTheMiddle(aMinute));
