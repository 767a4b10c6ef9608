import { it } from "vitest";
import { sinksLoseNothing } from "./sink-kills.ts";

const hour = 3_600_000;

it(
  "a sink loses nothing and keeps the order through 500 kills of gateways, its target and the network",
  {
    timeout: hour,
  },
  () => sinksLoseNothing({ gateway: 100, target: 200, network: 200 }),
);
